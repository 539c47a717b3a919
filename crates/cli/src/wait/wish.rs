//! Waits until a wish about the etcd of a cluster is fulfilled.

use super::{look, watched};
use crate::context::Context;
use crate::error::Error;
use crate::pages::all;
use crate::progress::ERROR_GRACE;
use crate::table::indent;
use crate::view;
use api::{
    Client, ClusterView, Exit, HeldView, IntentView, Owner, RestoredView, SnapshotView, TaskKind,
    WishView,
};
use std::time::Duration;
use tokio::time::Instant;

/// What to wait for, and for how long.
pub(crate) struct Wait<'a> {
    /// The cluster as it was before somebody wished.
    pub(crate) before: &'a ClusterView,
    /// What was wished of it.
    pub(crate) intent: &'a IntentView,
    /// The longest wait; absent means without end.
    pub(crate) timeout: Option<Duration>,
}

/// How waiting ends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Saved(SnapshotView),
    Restored(RestoredView),
    /// It needs a person.
    Failing(Vec<HeldView>),
    /// Somebody took the wish back, or its time is over.
    Ended,
}

/// Waits; shows what came of it.
pub(crate) async fn wait(
    context: &mut Context<'_>,
    client: &Client,
    wait: Wait<'_>,
) -> Result<Exit, Error> {
    let Wait {
        before,
        intent,
        timeout,
    } = wait;
    let cluster = &before.head.summary.name;
    let again = format!("slipway describe cluster {cluster}");
    let start = Instant::now();
    let mut failing = None;
    let judged = async || {
        // First of all: what was fulfilled meanwhile is then seen in the cluster.
        let open = all(async |page| client.intents(page).await).await?;
        let open = open.items.iter().any(|other| other.id == intent.id);
        let now = client.cluster(cluster).await?;
        let verdict = judge(
            (before, &now),
            (intent, open),
            (&mut failing, start.elapsed()),
        );
        Ok((look(client, &now.head.manifest).await?, verdict))
    };
    let verdict = match watched(context, client, (timeout, &again), judged).await? {
        Ok((_, verdict)) => verdict,
        Err(exit) => return Ok(exit),
    };
    match verdict {
        Verdict::Saved(snapshot) => {
            context.show(&snapshot, |_| {
                format!("snapshot {} of cluster {cluster} is kept\n", snapshot.id)
            })?;
            Ok(Exit::Done)
        }
        Verdict::Restored(restored) => {
            context.show(&restored, |_| {
                format!("cluster {cluster} is restored from {}\n", restored.snapshot)
            })?;
            Ok(Exit::Done)
        }
        Verdict::Failing(held) => {
            let said = format!("error: cluster {cluster} has trouble that lasts");
            context.out().say(&said);
            context.out().complain(&indent(&view::held(&held)));
            context.out().say(&format!(
                "hint: `slipway why cluster {cluster}` shows the whole chain"
            ));
            Ok(Exit::Failed)
        }
        Verdict::Ended => {
            let id = &intent.id;
            context.out().say(&format!(
                "error: {id} was withdrawn or has ended before it was fulfilled"
            ));
            Ok(Exit::Conflict)
        }
    }
}

/// Judges what was seen so long after the waiting began; nothing means go on.
fn judge(
    (before, now): (&ClusterView, &ClusterView),
    (intent, open): (&IntentView, bool),
    (failing, elapsed): (&mut Option<Duration>, Duration),
) -> Option<Verdict> {
    let (known, was) = (snapshots(now), snapshots(before));
    if !open {
        let done = match &intent.wish {
            WishView::Restore { snapshot } => {
                let restored = known.and_then(|known| known.restored.as_ref());
                let ours = restored.filter(|restored| {
                    restored.snapshot == *snapshot && restored.observed_at >= intent.created_at
                });
                ours.cloned().map(Verdict::Restored)
            }
            WishView::Snapshot {}
            | WishView::Scale { .. }
            | WishView::Replace { .. }
            | WishView::Retire { .. }
            | WishView::Retry { .. }
            | WishView::Cancel { .. }
            | WishView::Update { .. }
            | WishView::Pause {} => {
                let newest = known.and_then(|known| known.kept.last());
                let fresh = newest.filter(|newest| {
                    let mut older = was.iter().flat_map(|was| &was.kept);
                    older.all(|older| older.id != newest.id)
                });
                fresh.cloned().map(Verdict::Saved)
            }
        };
        return Some(done.unwrap_or(Verdict::Ended));
    }
    let kind = match &intent.wish {
        WishView::Restore { .. } => TaskKind::Restore,
        WishView::Snapshot {}
        | WishView::Scale { .. }
        | WishView::Replace { .. }
        | WishView::Retire { .. }
        | WishView::Retry { .. }
        | WishView::Cancel { .. }
        | WishView::Update { .. }
        | WishView::Pause {} => TaskKind::Snapshot,
    };
    let ours = |held: &&HeldView| held.kind == kind && held.owner == Owner::Person;
    let held: Vec<_> = now.head.held.iter().filter(ours).cloned().collect();
    if held.is_empty() {
        *failing = None;
        return None;
    }
    let since = *failing.get_or_insert(elapsed);
    let long = elapsed.saturating_sub(since) >= ERROR_GRACE;
    long.then_some(Verdict::Failing(held))
}

fn snapshots(view: &ClusterView) -> Option<&api::SnapshotsView> {
    view.kubernetes.as_ref()?.snapshots.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const OLD: &str = "20260307T020000Z-0a1b2c3d";
    const NEW: &str = "20260308T020000Z-4e5f6a7b";
    const NOON: &str = "2026-03-08T12:00:00Z";

    /// A cluster of which these snapshots are kept.
    fn cluster(kept: &[&str], restored: &Value, held: &[&str]) -> ClusterView {
        let kept = kept
            .iter()
            .map(|id| json!({"id": id, "takenAt": NOON, "bytes": 7, "version": "v1.34.4"}));
        let kept: Vec<_> = kept.collect();
        let held = held.iter().map(|kind| {
            json!({
                "kind": kind, "machine": "edge-brain-01", "machines": 1, "reason": "stuck",
                "text": "could not", "owner": "person", "nextAction": "do something"
            })
        });
        let held: Vec<_> = held.collect();
        let view = json!({
            "id": "cluster-1", "project": "default", "manifest": "hello", "incarnation": 0,
            "generation": 3, "version": "v1.35.0", "name": "edge", "state": "done",
            "control": {"ready": 1, "wanted": 1}, "compute": {"ready": 1, "wanted": 1},
            "leaving": 0, "tasks": 0, "message": "as declared", "held": held,
            "observedAt": NOON, "updatedAt": NOON, "machines": [], "openTasks": [],
            "kubernetes": {
                "cni": "routed", "kubeProxy": "iptables", "podNetwork": "10.244.0.0/16",
                "serviceNetwork": "10.96.0.0/12",
                "endpoint": {"name": "api.edge.slipway.internal", "port": 6443, "machines": []},
                "certificates": [],
                "snapshots": {"kept": kept, "restored": restored}
            }
        });
        serde_json::from_value(view).unwrap()
    }

    fn intent(wish: &Value) -> IntentView {
        let intent = json!({
            "id": "intent-1", "project": "default", "cluster": "edge", "wish": wish,
            "author": "ann", "reason": "audit", "createdAt": NOON, "expiresAt": null
        });
        serde_json::from_value(intent).unwrap()
    }

    /// What is judged of a cluster at once, when nothing was in its way before.
    fn judged(now: &ClusterView, wish: &Value, open: bool) -> Option<Verdict> {
        let before = cluster(&[OLD], &Value::Null, &[]);
        let at = (&mut None, Duration::ZERO);
        judge((&before, now), (&intent(wish), open), at)
    }

    #[test]
    fn a_snapshot_is_there_when_the_wish_is_gone_and_a_new_one_is_kept() {
        let wish = json!({"snapshot": {}});
        let both = cluster(&[OLD, NEW], &Value::Null, &[]);
        assert_eq!(judged(&both, &wish, true), None);
        let Some(Verdict::Saved(snapshot)) = judged(&both, &wish, false) else {
            panic!("it is there");
        };
        assert_eq!(snapshot.id, NEW);
        let same = cluster(&[OLD], &Value::Null, &[]);
        assert_eq!(judged(&same, &wish, false), Some(Verdict::Ended));
    }

    #[test]
    fn a_cluster_is_restored_when_that_was_seen_after_the_wish() {
        let wish = json!({"restore": {"snapshot": OLD}});
        let restored = |id: &str, at: &str| {
            let restored = json!({"snapshot": id, "observedAt": at});
            let now = cluster(&[OLD], &restored, &[]);
            judged(&now, &wish, false)
        };
        assert!(matches!(
            restored(OLD, "2026-03-08T12:00:01Z"),
            Some(Verdict::Restored(_))
        ));
        for (id, at) in [(OLD, "2026-03-08T11:59:59Z"), (NEW, "2026-03-08T12:00:01Z")] {
            assert_eq!(restored(id, at), Some(Verdict::Ended));
        }
    }

    #[test]
    fn only_what_is_in_the_way_of_the_wish_and_lasts_ends_the_wait() {
        let wish = intent(&json!({"snapshot": {}}));
        let before = cluster(&[], &Value::Null, &[]);
        let mut failing = None;
        let mut after = |held: &[&str], seconds: u64| {
            let now = cluster(&[], &Value::Null, held);
            let at = (&mut failing, Duration::from_secs(seconds));
            judge((&before, &now), (&wish, true), at)
        };
        assert_eq!(after(&["join"], 0), None);
        assert_eq!(after(&["join"], 20), None);
        assert_eq!(after(&["snapshot"], 30), None);
        assert_eq!(after(&[], 35), None);
        assert_eq!(after(&["snapshot", "join"], 40), None);
        let ended = after(&["snapshot", "join"], 50);
        let Some(Verdict::Failing(held)) = ended else {
            panic!("it lasts: {ended:?}");
        };
        assert_eq!(held.len(), 1);
    }
}
