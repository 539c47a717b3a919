//! Who sends which message, for how long, and what came of it.
//!
//! Of a lane only the oldest message that has not ended is ever taken, by one server: that is what
//! keeps the order. Whoever dies in the middle leaves it to be sent again, under the same id.

use super::settings;
use crate::Store;
use crate::audit;
use crate::body::{FORMAT, Row, Scope, Tx, Value, first};
use crate::error::Error;
use crate::events::note;
use crate::queue::Recorded;
use model::environment::EnvironmentName;
use model::environment::settings::Settings;
use model::id::{DeliveryId, EnvironmentId};
use model::name::Name;
use model::time::Timestamp;
use std::time::Duration;

/// Messages of one lane that wait, at most: whoever has not been told of so much will not read it
/// when they are back.
const WAITING_MAX: u32 = 10_000;

/// How long a message is left alone that another version of the program wrote.
const ASIDE_FOR: Duration = Duration::from_mins(10);

/// The right to send a message until the lease runs out.
#[derive(Debug)]
#[must_use = "a claim dropped unrecorded blocks its lane until the lease runs out"]
pub struct DeliveryClaim {
    /// Which.
    pub id: DeliveryId,
    /// Whose.
    pub project: Name,
    /// Who sends it.
    pub kind: String,
    /// Who is told.
    pub target: String,
    /// Of which environment.
    pub environment: Option<(EnvironmentId, EnvironmentName)>,
    /// What it is about.
    pub occasion: String,
    /// What it says: a document of its kind.
    pub document: String,
    /// How often it was sent before.
    pub tries: u32,
    /// From when on its patience counts.
    pub since: Timestamp,
    /// What its project says now: a target may have been mended since.
    pub settings: Option<Settings>,
    fence: u64,
    worker: String,
}

/// What came of sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// It has arrived.
    Delivered {
        /// What was answered.
        said: String,
    },
    /// It has not, and is sent again.
    Again {
        /// Why not.
        said: String,
        /// When.
        due: Timestamp,
    },
    /// It has not, and is not sent again.
    GivenUp {
        /// Why not.
        said: String,
    },
    /// There was nobody to be told: it is forgotten.
    Forgotten,
}

impl Store {
    /// Claims messages that are due, at most `room`, of each lane the oldest.
    pub async fn claim_deliveries(
        &self,
        worker: &str,
        room: u32,
        lease: Duration,
        now: Timestamp,
    ) -> Result<Vec<DeliveryClaim>, Error> {
        let worker = worker.to_owned();
        let question = move |tx: &mut dyn Tx| claim(tx, &worker, room, now.plus(lease), now);
        self.runner.write(Scope::Rows, question).await
    }

    /// When the next message is due, or its lease ends.
    pub async fn next_delivery(&self) -> Result<Option<Timestamp>, Error> {
        let question = |tx: &mut dyn Tx| {
            let sql = format!("SELECT MIN(COALESCE(h.lease_until, h.due)) FROM {HEADS}");
            let next = first(tx, &sql, &[])?.map(|mut row| row.take::<Option<Timestamp>>());
            Ok(next.transpose()?.flatten())
        };
        self.runner.read(question).await
    }

    /// Records what came of sending a message.
    pub async fn record_delivery(
        &self,
        claim: &DeliveryClaim,
        end: DeliveryEnd,
        now: Timestamp,
    ) -> Result<Recorded, Error> {
        let held = Held {
            id: claim.id,
            fence: claim.fence,
            worker: claim.worker.clone(),
        };
        self.runner
            .write(Scope::Rows, move |tx| record(tx, &held, &end, now))
            .await
    }

    /// Has those messages sent by others whose senders fell silent; answers how many.
    pub async fn expire_deliveries(&self, now: Timestamp) -> Result<u32, Error> {
        self.give_deliveries_back("AND lease_until <= $1", now)
            .await
    }

    /// Has all messages sent again that somebody was at: nobody else can live.
    pub async fn void_deliveries(&self, now: Timestamp) -> Result<u32, Error> {
        self.give_deliveries_back("", now).await
    }

    async fn give_deliveries_back(
        &self,
        which: &'static str,
        now: Timestamp,
    ) -> Result<u32, Error> {
        let question = move |tx: &mut dyn Tx| {
            let given = tx.execute(
                &format!(
                    "UPDATE environment_deliveries SET state = 'waiting', due = $1, lease_until = NULL,
                         worker = NULL WHERE state = 'sending' {which}"
                ),
                &[now.into()],
            )?;
            Ok(u32::try_from(given).unwrap_or(u32::MAX))
        };
        self.runner.write(Scope::Rows, question).await
    }
}

/// The oldest message of each lane that has not ended, as `h`. Lanes are found one after the other in
/// an index, so that it costs as much as there are lanes, however many messages wait.
const HEADS: &str = "(WITH RECURSIVE lanes(lane) AS (
         SELECT MIN(lane) FROM environment_deliveries WHERE ended_at IS NULL
         UNION ALL
         SELECT (SELECT MIN(m.lane) FROM environment_deliveries m
                 WHERE m.ended_at IS NULL AND m.lane > lanes.lane)
         FROM lanes WHERE lanes.lane IS NOT NULL)
     SELECT lane FROM lanes WHERE lane IS NOT NULL) AS l
     JOIN environment_deliveries h ON h.seq = (
         SELECT MIN(o.seq) FROM environment_deliveries o WHERE o.lane = l.lane AND o.ended_at IS NULL)";

fn claim(
    tx: &mut dyn Tx,
    worker: &str,
    room: u32,
    until: Timestamp,
    now: Timestamp,
) -> Result<Vec<DeliveryClaim>, Error> {
    let sql = format!(
        "SELECT h.seq, h.fence FROM {HEADS} WHERE h.state = 'waiting' AND h.due <= $1
         ORDER BY h.due, h.seq LIMIT $2"
    );
    let mut claimed = Vec::new();
    for mut row in tx.query(&sql, &[now.into(), room.into()])? {
        let (seq, fence): (u64, u64) = (row.take()?, row.take()?);
        // Whoever was quicker has changed it meanwhile.
        let taken = first(
            tx,
            "UPDATE environment_deliveries SET state = 'sending', fence = $2, worker = $3, lease_until = $4,
                 tries = tries + 1
             WHERE seq = $1 AND state = 'waiting' AND fence = $5
             RETURNING id, project, kind, target, environment, name, occasion, tries, since, format, body",
            &[
                seq.into(),
                (fence + 1).into(),
                worker.into(),
                until.into(),
                fence.into(),
            ],
        )?;
        if let Some(row) = taken {
            claimed.extend(read(tx, row, (fence + 1, worker), now)?);
        }
    }
    Ok(claimed)
}

fn read(
    tx: &mut dyn Tx,
    mut row: Row,
    (fence, worker): (u64, &str),
    now: Timestamp,
) -> Result<Option<DeliveryClaim>, Error> {
    let (id, project): (DeliveryId, Name) = (row.take()?, row.take()?);
    let (kind, target) = (row.take()?, row.take()?);
    let environment: Option<EnvironmentId> = row.take()?;
    let name: Option<EnvironmentName> = row.take()?;
    let (occasion, tries, since) = (row.take()?, row.take::<u32>()?, row.take()?);
    let (format, document): (u32, String) = (row.take()?, row.take()?);
    if format > FORMAT {
        let said = "another version of the program wrote it";
        tx.execute(
            "UPDATE environment_deliveries SET state = 'waiting', lease_until = NULL, worker = NULL,
                 tries = tries - 1, due = $2, said = $3 WHERE id = $1",
            &[id.into(), now.plus(ASIDE_FOR).into(), said.into()],
        )?;
        return Ok(None);
    }
    let settings = match settings::of_project(tx, &project) {
        Err(error) if error.is_unreadable() => None,
        read => read?,
    };
    Ok(Some(DeliveryClaim {
        id,
        project,
        kind,
        target,
        environment: environment.zip(name),
        occasion,
        document,
        tries: tries.saturating_sub(1),
        since,
        settings,
        fence,
        worker: worker.to_owned(),
    }))
}

/// What proves that somebody may record.
struct Held {
    id: DeliveryId,
    fence: u64,
    worker: String,
}

const OURS: &str = "WHERE id = $1 AND fence = $2 AND worker = $3 AND state = 'sending'";

fn record(
    tx: &mut dyn Tx,
    held: &Held,
    end: &DeliveryEnd,
    now: Timestamp,
) -> Result<Recorded, Error> {
    let ours: [Value; 3] = [held.id.into(), held.fence.into(), (&held.worker).into()];
    let kept = |said: &str| audit::kept(said.to_owned());
    let (set, more): (_, Vec<Value>) = match end {
        DeliveryEnd::Forgotten => {
            let sql = format!("DELETE FROM environment_deliveries {OURS}");
            return Ok(recorded(tx.execute(&sql, &ours)?));
        }
        DeliveryEnd::Delivered { said } => (
            "state = 'delivered', ended_at = $4, said = $5",
            vec![now.into(), kept(said).into()],
        ),
        DeliveryEnd::Again { said, due } => (
            "state = 'waiting', due = $4, said = $5",
            vec![(*due).into(), kept(said).into()],
        ),
        DeliveryEnd::GivenUp { said } => (
            "state = 'given-up', ended_at = $4, said = $5",
            vec![now.into(), kept(said).into()],
        ),
    };
    let sql = format!(
        "UPDATE environment_deliveries SET {set}, lease_until = NULL, worker = NULL {OURS}
         RETURNING project, lane, kind, target, name, occasion"
    );
    let Some(mut row) = first(tx, &sql, &[ours.as_slice(), &more].concat())? else {
        return Ok(Recorded::LeaseLost);
    };
    let (project, lane): (Name, String) = (row.take()?, row.take()?);
    let (kind, target): (String, String) = (row.take()?, row.take()?);
    let (name, occasion): (Option<EnvironmentName>, String) = (row.take()?, row.take()?);
    match end {
        DeliveryEnd::Delivered { .. } | DeliveryEnd::Forgotten => {}
        DeliveryEnd::Again { .. } => overflow(tx, (&project, &lane, &target), now)?,
        DeliveryEnd::GivenUp { said } => {
            let of = name.map_or_else(|| occasion.clone(), |name| format!("{name}: {occasion}"));
            let message = audit::kept(format!("{kind} {target} was not told of {of}: {said}"));
            let object = format!("delivery/{}", held.id);
            note(tx, (&project, now), "delivery.given-up", object, message);
        }
    }
    Ok(Recorded::Yes)
}

/// Gives up the oldest of a lane in which too many wait.
fn overflow(
    tx: &mut dyn Tx,
    (project, lane, target): (&Name, &str, &str),
    now: Timestamp,
) -> Result<(), Error> {
    let dropped = tx.execute(
        "UPDATE environment_deliveries SET state = 'given-up', ended_at = $2, said = 'too many wait'
         WHERE lane = $1 AND ended_at IS NULL AND state = 'waiting' AND seq <= (
             SELECT seq FROM environment_deliveries WHERE lane = $1 AND ended_at IS NULL
             ORDER BY seq DESC LIMIT 1 OFFSET $3)",
        &[lane.into(), now.into(), WAITING_MAX.into()],
    )?;
    if dropped > 0 {
        let message = format!("{dropped} messages to {target} are given up, too many wait");
        let object = format!("project/{project}");
        note(tx, (project, now), "delivery.given-up", object, message);
    }
    Ok(())
}

const fn recorded(rows: usize) -> Recorded {
    if rows == 0 {
        Recorded::LeaseLost
    } else {
        Recorded::Yes
    }
}

/// Gives up all messages that have not ended: what they tell of was long ago when a backup is read,
/// and may have been told.
pub(crate) fn doubt_deliveries(tx: &mut dyn Tx, now: Timestamp) -> Result<(), Error> {
    tx.execute(
        "UPDATE environment_deliveries SET state = 'given-up', ended_at = $1, lease_until = NULL, worker = NULL,
             said = 'it waited when the backup was made, and may have been sent since' WHERE ended_at IS NULL",
        &[now.into()],
    )?;
    Ok(())
}
