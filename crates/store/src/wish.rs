//! Wishes in and out: checked, stored, and in the desired state where they shape it.
//!
//! A wish about the shape of a cluster changes its desired state in the transaction that
//! stores the wish, through the same expansion as a submission. Every change of wishes
//! makes plans stale that did not know of it.

mod sense;

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::blast::{Allowed, TooMuch, judge, lost};
use crate::body::{Scope, Tx, first};
use crate::clusters::{self, ClusterView};
use crate::desired::Cause;
use crate::error::Error;
use crate::events::note;
use crate::{desired, intents, manifests};
use model::cluster::{Desired, Role};
use model::id::{self, ClusterId, IntentId};
use model::intent::{Intent, Wish};
use model::manifest::Manifest;
use model::name::Name;
use model::time::Timestamp;
use plan::{Change, Limits, Loss};
use sense::checked;
use std::collections::{BTreeMap, BTreeSet};

/// A wish on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Who owns the cluster.
    pub project: Name,
    /// The cluster it is about.
    pub cluster: Name,
    /// What is wished. What it repeats of other documents (`was` of a scale, machine and
    /// kind of a cancel) is filled in from them.
    pub wish: Wish,
    /// Who wishes it.
    pub author: Actor,
    /// Why.
    pub reason: String,
    /// Until when; absent means until it is fulfilled or withdrawn.
    pub expires_at: Option<Timestamp>,
}

/// A wish on its way out; an id alone allows no more than the limits do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Withdrawal {
    /// Which wish.
    pub intent: IntentId,
    /// What going back may take away.
    pub allow: Allowed,
}

impl From<IntentId> for Withdrawal {
    fn from(intent: IntentId) -> Self {
        Self {
            intent,
            allow: Allowed::default(),
        }
    }
}

/// Why a wish was refused, or could not be taken back; nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum WishError {
    /// What it is about does not exist.
    #[error("there is no {what} {name}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// It makes no sense for what there is.
    #[error("{reason}")]
    Refused {
        /// Why, as one clause.
        reason: String,
    },
    /// It would remove more machines at once than somebody agreed to.
    #[error("{removed} of the {of} machines of {what} would be removed at once")]
    Blast {
        /// Whose machines: `cluster NAME` or `the fleet`.
        what: String,
        /// How many would go.
        removed: u32,
        /// Of how many.
        of: u32,
        /// The per cent that must be allowed.
        percent_needed: u32,
        /// How somebody who means it says so.
        hint: String,
    },
    /// Machines would go together with data that their cluster keeps on them.
    #[error("{0}")]
    DataLoss(Loss),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Store {
    /// Stores a wish, and what the cluster should be because of it; the same wish again
    /// is answered with the one there is.
    pub async fn wish(&self, draft: Draft, now: Timestamp) -> Result<Intent, WishError> {
        self.runner
            .write(Scope::Whole, move |tx| wish(tx, draft.clone(), now))
            .await
    }

    /// Takes a wish back; answers whether there was one.
    pub async fn withdraw_intent(
        &self,
        project: &Name,
        withdrawal: impl Into<Withdrawal>,
        author: impl Into<Actor>,
        now: Timestamp,
    ) -> Result<bool, WishError> {
        let (project, withdrawal) = (project.clone(), withdrawal.into());
        let author = author.into();
        self.runner
            .write(Scope::Whole, move |tx| {
                withdraw(tx, &project, withdrawal, &author, now)
            })
            .await
    }
}

fn wish(tx: &mut dyn Tx, draft: Draft, now: Timestamp) -> Result<Intent, WishError> {
    let view = target(tx, &draft)?;
    let wish = checked(tx, &view, draft.wish)?;
    let same = |intent: &&Intent| intent.wish == wish && intent.expires_at == draft.expires_at;
    if let Some(intent) = view.intents.iter().find(same) {
        return Ok(intent.clone());
    }
    for older in view
        .intents
        .iter()
        .filter(|older| outlived(&view.desired, &older.wish, &wish))
    {
        intents::end(tx, older.id, now)?;
    }
    let intent = Intent {
        id: fresh(tx, view.desired.cluster, &wish, now)?,
        project: draft.project,
        cluster: draft.cluster,
        wish,
        author: draft.author.name.clone(),
        reason: draft.reason,
        created_at: now,
        expires_at: draft.expires_at,
    };
    intents::insert(tx, view.desired.cluster, &intent)?;
    clusters::unplan(tx, view.desired.cluster)?;
    let wished = said(tx, &intent.wish)?;
    let message = format!("{} wishes: {wished}; {}", intent.author, intent.reason);
    note(
        tx,
        (&intent.project, now),
        "intent.wished",
        format!("cluster/{}", intent.cluster),
        message,
    );
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(intent.project.clone()),
            actor: draft.author,
            action: "intent.wish",
            object: format!("cluster/{}", intent.cluster),
            generations: (Some(view.desired.generation.0), None),
            detail: wished.clone(),
        },
    );
    if shapes(&intent.wish) {
        let consent = Consent::to(&view.desired, &intent.wish);
        let because = format!("{wished}: {}", intent.reason);
        let cause = Cause {
            author: &intent.author,
            because: &because,
        };
        reshape(tx, view.desired.cluster, cause, consent, now)?;
    }
    Ok(intent)
}

/// The cluster a wish is about: that of the task it names, for a cluster on its way out may
/// have a successor of the same name; else the one to stay; else the newest not gone.
fn target(tx: &mut dyn Tx, draft: &Draft) -> Result<ClusterView, WishError> {
    let task = match &draft.wish {
        Wish::Retry { task } | Wish::Cancel { task, .. } => Some(*task),
        Wish::Scale { .. }
        | Wish::Replace { .. }
        | Wish::Retire { .. }
        | Wish::Pause
        | Wish::Snapshot
        | Wish::Restore { .. }
        | Wish::Update { .. } => None,
    };
    let row = first(
        tx,
        "SELECT id FROM clusters WHERE project = $1 AND name = $2 AND phase <> 'gone'
         ORDER BY CASE WHEN id = (SELECT cluster FROM tasks WHERE id = $3) THEN 0 ELSE 1 END,
                  tombstone, incarnation DESC LIMIT 1",
        &[
            (&draft.project).into(),
            (&draft.cluster).into(),
            task.into(),
        ],
    )?;
    let view = match row {
        Some(mut row) => clusters::view(tx, row.take()?)?,
        None => None,
    };
    view.ok_or_else(|| WishError::NotFound {
        what: "cluster",
        name: draft.cluster.to_string(),
    })
}

/// Whether a wish changes what a cluster should be.
const fn shapes(wish: &Wish) -> bool {
    match wish {
        Wish::Scale { .. } | Wish::Replace { .. } | Wish::Retire { .. } => true,
        Wish::Retry { .. }
        | Wish::Cancel { .. }
        | Wish::Pause
        | Wish::Snapshot
        | Wish::Restore { .. }
        | Wish::Update { .. } => false,
    }
}

/// Whether the newer of two wishes leaves nothing of the older. Who has a machine go without
/// another in its place wants no more of them than are left, whatever was wished before.
fn outlived(desired: &Desired, older: &Wish, newer: &Wish) -> bool {
    match (older, newer) {
        (Wish::Scale { pool: older, .. }, Wish::Scale { pool: newer, .. })
        | (Wish::Update { pool: older, .. }, Wish::Update { pool: newer, .. }) => older == newer,
        (Wish::Scale { pool, .. }, Wish::Retire { machine }) => {
            let mut machines = desired.machines.iter();
            machines.any(|of| of.id == *machine && of.pool == *pool)
        }
        (older, newer) => older == newer,
    }
}

pub(crate) fn refused(reason: String) -> WishError {
    WishError::Refused { reason }
}

/// The current manifest of a cluster, with no other cluster in it.
fn manifest_of(tx: &mut dyn Tx, desired: &Desired) -> Result<Manifest, WishError> {
    let head = manifests::head(tx, &desired.project, &desired.manifest)?;
    let head = head.ok_or_else(|| WishError::NotFound {
        what: "manifest",
        name: desired.manifest.to_string(),
    })?;
    let mut manifest =
        manifests::document(tx, &desired.project, &desired.manifest, head.generation)?;
    manifest
        .clusters
        .retain(|cluster| cluster.name == desired.name);
    Ok(manifest)
}

/// Who agreed to what a change of wishes removes.
#[derive(Clone, Copy)]
pub(crate) enum Consent {
    /// Nobody: it is a new wish, and only a manifest may remove that much.
    Unasked,
    /// Whoever names the machine that goes with its disk, and nobody to more than that.
    Named,
    /// The author of the manifest, who declared between which sizes the pool is scaled.
    Declared,
    /// Whoever takes a wish back, or recovers a cluster, to so much.
    Withdrawn(Allowed),
    /// The author, when the wish was made with an end: that the machines go then is a part
    /// of what was wished. To ask again would ask nobody, and leave machines that nothing
    /// declares.
    Expired,
}

impl Consent {
    /// Who agreed to what a new wish removes.
    fn to(desired: &Desired, wish: &Wish) -> Self {
        let scaled = match wish {
            Wish::Scale { pool, .. } => desired.autoscalers.contains_key(pool),
            Wish::Retire { .. } => true,
            Wish::Replace { .. } => return Self::Named,
            Wish::Retry { .. }
            | Wish::Cancel { .. }
            | Wish::Pause
            | Wish::Snapshot
            | Wish::Restore { .. }
            | Wish::Update { .. } => false,
        };
        if scaled {
            Self::Declared
        } else {
            Self::Unasked
        }
    }

    fn limits(self) -> Limits {
        match self {
            Self::Unasked | Self::Named => Limits::default(),
            Self::Withdrawn(allowed) => Limits::default().allowing(allowed.blast),
            Self::Declared | Self::Expired => Limits::default().allowing(Some(100)),
        }
    }

    /// Whether data may go with machines. What shrinks by itself within what is declared may: whoever has
    /// a pool scaled that keeps data was told so.
    const fn loses_data(self) -> bool {
        match self {
            Self::Unasked => false,
            Self::Withdrawn(allowed) => allowed.data_loss,
            Self::Named | Self::Declared | Self::Expired => true,
        }
    }

    fn refuse(self, too_much: TooMuch) -> WishError {
        let TooMuch {
            what,
            removed,
            of,
            percent_needed,
        } = too_much;
        let hint = match self {
            Self::Unasked | Self::Named | Self::Declared => format!(
                "change the manifest instead, and apply it with `--allow-blast {percent_needed}`"
            ),
            Self::Withdrawn(_) | Self::Expired => {
                format!("if this is what you want, withdraw it with `allowBlast={percent_needed}`")
            }
        };
        WishError::Blast {
            what,
            removed,
            of,
            percent_needed,
            hint,
        }
    }
}

/// Expands one cluster again and stores what it should be, where that differs.
pub(crate) fn reshape(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    cause: Cause<'_>,
    consent: Consent,
    now: Timestamp,
) -> Result<(), WishError> {
    let Some(view) = clusters::view(tx, cluster)?.filter(|view| !view.desired.tombstone) else {
        return Ok(());
    };
    let manifest = manifest_of(tx, &view.desired)?;
    let expanded = plan::expand(
        &view.desired.project,
        &manifest,
        &[view.known()],
        &BTreeMap::new(),
        now,
    );
    let expanded = expanded.map_err(|faults| {
        refused(
            faults
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
        )
    })?;
    for expansion in expanded
        .iter()
        .filter(|expansion| expansion.change == Change::Changed)
    {
        sound(&expansion.desired).map_err(refused)?;
        let change = std::iter::once((&view, &expansion.desired));
        judge(tx, change.clone(), &manifest, consent.limits())?
            .map_err(|too_much| consent.refuse(too_much))?;
        lost(change, &manifest, consent.loses_data()).map_err(WishError::DataLoss)?;
        desired::store(tx, &expansion.desired, Some(&view.desired), cause, now)?;
        intents::end_fulfilled_updates(tx, &expansion.desired, &view.intents, now)?;
    }
    Ok(())
}

/// What admission demands of a declared cluster, asked of a wished one; answers what is wrong.
pub(crate) fn sound(desired: &Desired) -> Result<(), String> {
    // Those that come in place of others are no more of them.
    let comes = |id| desired.rolls.iter().any(|roll| roll.coming.contains(&id));
    let made = desired.machines.iter().filter(|machine| !comes(machine.id));
    let made = made.map(|machine| (machine.role, 1));
    let metal = desired
        .metal
        .iter()
        .map(|wanted| (wanted.role, wanted.count));
    let control = made.chain(metal).filter(|(role, _)| *role == Role::Control);
    let control: u32 = control.map(|(_, count)| count).sum();
    if !matches!(control, 1 | 3 | 5 | 7) {
        return Err(format!(
            "found {control} control machines, allowed: 1, 3, 5 or 7"
        ));
    }
    let capacity = desired.network.capacity();
    if u32::try_from(desired.machines.len()).unwrap_or(u32::MAX) >= capacity {
        let machines = desired.machines.len();
        return Err(format!(
            "network {} has no room for {machines} machines",
            desired.network
        ));
    }
    Ok(())
}

/// An id that no wish had before.
fn fresh(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    wish: &Wish,
    now: Timestamp,
) -> Result<IntentId, Error> {
    let mut incarnation = 0;
    loop {
        let origin = id::Origin {
            parent: &cluster.to_string(),
            name: wish.as_str(),
            ordinal: u64::try_from(now.as_millis()).unwrap_or(0),
            incarnation,
        };
        let id = IntentId::derive(origin);
        if first(tx, "SELECT 1 FROM intents WHERE id = $1", &[id.into()])?.is_none() {
            return Ok(id);
        }
        incarnation += 1;
    }
}

fn withdraw(
    tx: &mut dyn Tx,
    project: &Name,
    Withdrawal { intent, allow }: Withdrawal,
    author: &Actor,
    now: Timestamp,
) -> Result<bool, WishError> {
    let row = first(
        tx,
        "SELECT cluster, format, body FROM intents WHERE id = $1 AND project = $2 AND open = 1",
        &[intent.into(), project.into()],
    )?;
    let Some(mut row) = row else { return Ok(false) };
    let (cluster, intent): (ClusterId, Intent) = (row.take()?, row.document()?);
    intents::end(tx, intent.id, now)?;
    clusters::unplan(tx, cluster)?;
    let wished = said(tx, &intent.wish)?;
    let message = format!("withdrawn: {wished}");
    let because = message.clone();
    note(
        tx,
        (project, now),
        "intent.withdrawn",
        format!("cluster/{}", intent.cluster),
        message,
    );
    audit::enter(
        tx,
        Entry {
            at: now,
            project: Some(project.clone()),
            actor: author.clone(),
            action: "intent.withdraw",
            object: format!("cluster/{}", intent.cluster),
            generations: (None, None),
            detail: wished,
        },
    );
    if shapes(&intent.wish) {
        let consent = Consent::Withdrawn(allow);
        let cause = Cause {
            author: &author.name,
            because: &because,
        };
        reshape(tx, cluster, cause, consent, now)?;
    }
    Ok(true)
}

/// Ends wishes whose time is over; answers which clusters that concerns.
pub(crate) fn expire(tx: &mut dyn Tx, now: Timestamp) -> Result<BTreeSet<ClusterId>, Error> {
    let rows = tx.query(
        "SELECT id, cluster, format, body FROM intents WHERE open = 1 AND expires_at <= $1
         ORDER BY expires_at, seq",
        &[now.into()],
    )?;
    let mut clusters = BTreeSet::new();
    for mut row in rows {
        let (id, cluster): (IntentId, ClusterId) = (row.take()?, row.take()?);
        intents::end(tx, id, now)?;
        clusters::unplan(tx, cluster)?;
        clusters.insert(cluster);
        // Over it is, whatever it was.
        let Some(intent) = row.readable::<Intent>()? else {
            continue;
        };
        let mut message = format!("expired: {}", said(tx, &intent.wish)?);
        if shapes(&intent.wish) {
            let cause = Cause {
                author: &intent.author,
                because: &message,
            };
            match reshape(tx, cluster, cause, Consent::Expired, now) {
                Ok(()) => {}
                Err(WishError::Store(error)) if !error.is_unreadable() => return Err(error),
                // What is declared cannot be had: the next submission says so to somebody.
                Err(
                    refused @ (WishError::NotFound { .. }
                    | WishError::Refused { .. }
                    | WishError::Blast { .. }
                    | WishError::DataLoss(_)
                    | WishError::Store(_)),
                ) => {
                    message = format!(
                        "{message}; the machines stay until the manifest is applied again: {refused}"
                    );
                }
            }
        }
        note(
            tx,
            (&intent.project, now),
            "intent.expired",
            format!("cluster/{}", intent.cluster),
            message,
        );
    }
    Ok(clusters)
}

/// A wish in words: machines by their names, tasks by what they do.
fn said(tx: &mut dyn Tx, wish: &Wish) -> Result<String, Error> {
    let about = intents::about(tx, wish)?;
    let or = |id: &dyn std::fmt::Display| about.clone().unwrap_or_else(|| id.to_string());
    Ok(match wish {
        Wish::Scale {
            pool,
            count,
            was: 0,
        } => format!("scale pool {pool} to {count}"),
        Wish::Scale { pool, count, was } => format!("scale pool {pool} from {was} to {count}"),
        Wish::Replace { machine } => format!("replace {}", or(machine)),
        Wish::Retire { machine } => format!("retire {}", or(machine)),
        Wish::Retry { task } => format!("retry {}", or(task)),
        Wish::Cancel { task, .. } => format!("cancel {}", or(task)),
        Wish::Pause => "pause".to_owned(),
        Wish::Snapshot => "snapshot of etcd".to_owned(),
        Wish::Restore { snapshot } => format!("restore etcd from {snapshot}"),
        Wish::Update { pool, commit } => match commit {
            Some(commit) => format!("update pool {pool} to modules of {}", commit.short()),
            None => format!("update pool {pool}"),
        },
    })
}
