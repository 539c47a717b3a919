//! Lanes: how busy each cluster is, when its next task is due, and whose turn it is.

use crate::body::{Tx, Value, for_each, insert};
use crate::error::Error;
use model::id::ClusterId;
use model::time::Timestamp;
use std::collections::BTreeSet;

/// The clusters that come next; their index has that order, so the first rows found are
/// they. Those that another worker has its hands on are passed over.
const LEAST_BUSY: &str = "SELECT cluster, running FROM lanes WHERE running < $1 AND due <= $2
     ORDER BY running, due, cluster LIMIT $3 FOR UPDATE SKIP LOCKED";

/// Clusters that are served in one statement.
const LANES_MAX: u32 = 64;

/// Changes of lanes that are caught up with at once.
const CHANGES_MAX: u32 = 1_000;

/// Which clusters are served next, and how many tasks each may begin.
pub(super) fn shares(
    tx: &mut dyn Tx,
    per_cluster: u32,
    room: u32,
    now: Timestamp,
) -> Result<Vec<(ClusterId, u32)>, Error> {
    let most = room.min(LANES_MAX);
    let rows = tx.query(LEAST_BUSY, &[per_cluster.into(), now.into(), most.into()])?;
    let mut lanes = Vec::with_capacity(rows.len());
    for mut row in rows {
        lanes.push((row.take()?, row.take()?));
    }
    let all = u32::try_from(lanes.len()).is_ok_and(|found| found < most);
    // Lanes that were not looked at are at least as busy as the last that was.
    let level = match lanes.last() {
        Some((_, running)) if !all => per_cluster.min(*running + 1),
        Some(_) | None => per_cluster,
    };
    Ok(share(lanes, room, level))
}

/// Shares room among clusters, given with how many tasks they run: as if each task went to
/// whoever runs the fewest then, up to a level.
fn share(lanes: Vec<(ClusterId, u32)>, room: u32, level: u32) -> Vec<(ClusterId, u32)> {
    let needed = |level: u32| -> u64 {
        let missing = |(_, running): &(ClusterId, u32)| u64::from(level.saturating_sub(*running));
        lanes.iter().map(missing).sum()
    };
    // The highest level that all can be filled to; what is left over goes to the first.
    let (mut full, mut over) = (0, level);
    while full < over {
        let middle = full + (over - full).div_ceil(2);
        if needed(middle) <= u64::from(room) {
            full = middle;
        } else {
            over = middle - 1;
        }
    }
    let mut left = u64::from(room).saturating_sub(needed(full));
    let mut shares = Vec::with_capacity(lanes.len());
    for (cluster, running) in lanes {
        let mut share = full.saturating_sub(running);
        if left > 0 && running <= full && running + share < level {
            share += 1;
            left -= 1;
        }
        if share > 0 {
            shares.push((cluster, share));
        }
    }
    shares
}

/// The first tasks that are due in each of these clusters, by their numbers.
pub(super) fn due(
    tx: &mut dyn Tx,
    shares: &[(ClusterId, u32)],
    now: Timestamp,
) -> Result<Vec<Value>, Error> {
    let sets: Vec<_> = shares
        .iter()
        .map(|(cluster, share)| vec![(*cluster).into(), now.into(), (*share).into()])
        .collect();
    let found = tx.queries(
        "SELECT seq FROM tasks WHERE cluster = $1 AND state = 'waiting' AND not_before <= $2
         ORDER BY not_before, seq LIMIT $3",
        &sets,
    )?;
    let rows = found.into_iter().flatten();
    rows.map(|mut row| row.take::<u64>().map(Value::from))
        .collect()
}

/// Has it recomputed, at the end of the transaction, how busy a cluster is and when its next
/// task is due.
pub(crate) fn refresh(tx: &mut dyn Tx, cluster: ClusterId) {
    tx.outbox().lanes.insert(cluster);
}

/// Sees to the lanes that may have changed.
///
/// Where several write at once, only those who claim have lanes for themselves: the others say
/// which have changed, and wait for nobody.
pub(crate) fn refresh_all(tx: &mut dyn Tx) -> Result<(), Error> {
    let lanes = std::mem::take(&mut tx.outbox().lanes);
    let lanes: Vec<Value> = lanes.into_iter().map(Value::from).collect();
    if tx.is_alone() {
        return compute(tx, &lanes);
    }
    let rows: Vec<_> = lanes.into_iter().map(|lane| vec![lane]).collect();
    insert(tx, "lane_changes (cluster)", &rows, "")?;
    Ok(())
}

/// Computes anew what others, and this transaction so far, have said to be changed.
pub(super) fn catch_up(tx: &mut dyn Tx) -> Result<(), Error> {
    refresh_all(tx)?;
    if tx.is_alone() {
        return Ok(());
    }
    let rows = tx.query(
        "DELETE FROM lane_changes
         WHERE id IN (SELECT id FROM lane_changes ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
         RETURNING cluster",
        &[CHANGES_MAX.into()],
    )?;
    let changed = rows
        .into_iter()
        .map(|mut row| row.take())
        .collect::<Result<BTreeSet<ClusterId>, _>>()?;
    let changed: Vec<Value> = changed.into_iter().map(Value::from).collect();
    compute(tx, &changed)
}

/// Recomputes how busy clusters are and when their next tasks are due.
pub(super) fn compute(tx: &mut dyn Tx, lanes: &[Value]) -> Result<(), Error> {
    // Who counts must have the lane first: otherwise what somebody else is about to commit
    // would be missing from the count that is written after it.
    let sql = "SELECT 1 FROM lanes WHERE cluster IN ({}) ORDER BY cluster FOR UPDATE";
    if for_each(tx, sql, &[], lanes)?.len() < lanes.len() {
        for_each(
            tx,
            "INSERT INTO lanes (cluster, running)
             SELECT id, 0 FROM clusters WHERE phase <> 'gone' AND id IN ({})
             ON CONFLICT (cluster) DO NOTHING",
            &[],
            lanes,
        )?;
    }
    for_each(
        tx,
        "UPDATE lanes SET
             running = (SELECT COUNT(*) FROM tasks WHERE tasks.cluster = lanes.cluster AND state = 'running'),
             due = (SELECT MIN(not_before) FROM tasks WHERE tasks.cluster = lanes.cluster AND state = 'waiting')
         WHERE cluster IN ({})",
        &[],
        lanes,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LEAST_BUSY, share};
    use crate::body::{Row, Tx as _, Value};
    use crate::error::Error;
    use model::id::ClusterId;
    use model::time::Timestamp;

    /// Shares as the plain rule would: each task to whoever runs the fewest, first come first.
    fn one_by_one(
        mut lanes: Vec<(ClusterId, u32)>,
        room: u32,
        level: u32,
    ) -> Vec<(ClusterId, u32)> {
        let before = lanes.clone();
        for _ in 0..room {
            let next = lanes.iter_mut().filter(|(_, running)| *running < level);
            let Some((_, running)) = next.min_by_key(|(_, running)| *running) else {
                break;
            };
            *running += 1;
        }
        let given = lanes
            .iter()
            .zip(before)
            .map(|(after, before)| (after.0, after.1 - before.1));
        given.filter(|(_, share)| *share > 0).collect()
    }

    #[test]
    fn room_is_shared_as_if_task_by_task() {
        let id = |ordinal| {
            ClusterId::derive(model::id::Origin {
                parent: "p",
                name: "c",
                ordinal,
                incarnation: 0,
            })
        };
        for (running, room, level) in [
            (vec![0, 0, 0], 7, 256),
            (vec![0, 1, 5], 3, 256),
            (vec![0, 1, 5], 100, 6),
            (vec![2, 2, 3], 1, 4),
            (vec![4], 256, 256),
            (vec![], 5, 5),
            (vec![0, 0, 0, 0], 2, 1),
        ] {
            let lanes: Vec<_> = (0_u64..).map(id).zip(running.clone()).collect();
            assert_eq!(
                share(lanes.clone(), room, level),
                one_by_one(lanes, room, level),
                "{running:?}, room {room}, level {level}"
            );
        }
    }

    #[test]
    fn the_next_cluster_is_found_without_sorting() -> Result<(), Error> {
        let mut tx = crate::sqlite::in_memory()?;
        let explain = format!("EXPLAIN QUERY PLAN {LEAST_BUSY}");
        let steps = tx.query(
            &explain,
            &[1_u32.into(), Timestamp::default().into(), 1_u32.into()],
        )?;
        let steps: Vec<_> = steps.into_iter().map(Row::rest).collect();
        let [step] = steps.as_slice() else {
            return Err(Error::Other {
                attempted: "find the next cluster in one step",
                cause: None,
            });
        };
        let expected = "SEARCH lanes USING COVERING INDEX lanes_by_load (running<?)";
        assert_eq!(step.last(), Some(&Value::from(expected)));
        Ok(())
    }
}
