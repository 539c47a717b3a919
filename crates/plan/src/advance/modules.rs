//! What machines are made from, where a tag or a branch is named: the commit to which it leads is
//! noted when somebody has seen it, and a newer one is taken when the cluster may be worked on, or
//! when somebody asks.
//!
//! Nobody's branch moves machines by itself: without a window that the cluster declares and without
//! a wish, newer modules are offered and nothing else. Where data would go with the machines a window is
//! not enough: nobody knows when a branch moves, so nobody has agreed to that.

use super::serves;
use crate::expand::growing::Stand;
use crate::held::{Held, Reason};
use crate::loss::kept_on;
use crate::planner::View;
use model::cluster::{Desired, Machine, Origin};
use model::intent::{Intent, Wish};
use model::name::Name;
use model::observed::Observed;
use model::task::Kind;
use model::templates::{Commit, Reference, Templates};
use model::time::Timestamp;
use model::upkeep::{Roll, SURGE_DEFAULT};
use std::collections::BTreeSet;
use std::fmt;

/// Newer modules that a pool could be made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Which pool.
    pub pool: Name,
    /// The tag or the branch that its provider names.
    pub reference: Reference,
    /// What its machines are made from.
    pub from: Commit,
    /// Where the tag or the branch leads now.
    pub to: Commit,
    /// Since when it leads there, as far as anybody knows.
    pub since: Option<Timestamp>,
    /// What takes it.
    pub next: Taken,
}

/// What takes newer modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// The pool is on its way to machines of another kind, or is to go.
    UnderWay,
    /// The cluster's next window.
    InWindow(Timestamp),
    /// A wish alone.
    OnRequest {
        /// What would go with each machine, as the object of a sentence.
        kept: Option<&'static str>,
        /// Whether the cluster declares windows, in which that is not taken.
        timed: bool,
    },
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pool,
            reference,
            from,
            to,
            since,
            next: _,
        } = self;
        let (from, to) = (from.short(), to.short());
        write!(f, "pool {pool} could have newer modules: {reference} leads")?;
        if let Some(since) = since {
            write!(f, ", since {since},")?;
        }
        write!(f, " to {to}, and machines are made from {from}")
    }
}

impl Offer {
    /// What takes the newer modules.
    pub fn next_action(&self, cluster: &Name) -> String {
        let asked = format!("`slipway pool update {cluster}/{}`", self.pool);
        match &self.next {
            Taken::UnderWay => "the pool is on its way to other machines".to_owned(),
            Taken::InWindow(opens) => {
                format!("taken by itself when the window opens, {opens}; {asked} notes it at once")
            }
            Taken::OnRequest { kept: None, .. } => {
                format!("{asked} takes them, one machine after the other")
            }
            Taken::OnRequest {
                kept: Some(kept),
                timed,
            } => {
                let windows = if *timed {
                    "; say replace: true of the pool to have windows do so"
                } else {
                    ""
                };
                format!(
                    "{asked} takes them, one machine after the other, each with {kept}{windows}"
                )
            }
        }
    }
}

/// Newer modules that pools of a cluster could be made from, and what takes them.
pub fn offers(view: &View<'_>) -> Vec<Offer> {
    let mut offers: Vec<Offer> = Vec::new();
    if view.observed.followed.is_empty() || view.desired.tombstone {
        return offers;
    }
    for machine in &view.desired.machines {
        let told = offers.iter().any(|offer| offer.pool == machine.pool);
        if let Some((reference, from, to)) = newer(view, machine).filter(|_| !told) {
            let followed = view.observed.followed.get(&reference);
            offers.push(Offer {
                pool: machine.pool.clone(),
                since: followed.and_then(|followed| followed.since),
                reference,
                from,
                to,
                next: taken(view, machine),
            });
        }
    }
    offers
}

fn taken(view: &View<'_>, machine: &Machine) -> Taken {
    let windows = &view.desired.disruption.windows;
    let mut rolls = view.desired.rolls.iter();
    let wished = wished(view, &machine.pool).is_some();
    let goes = wished || rolls.any(|roll| roll.pool == machine.pool);
    let timed = !windows.0.is_empty();
    let kept = keeps(view, machine);
    match windows.opens(view.now) {
        _ if goes => Taken::UnderWay,
        _ if kept.is_some() || !timed => Taken::OnRequest { kept, timed },
        opens => Taken::InWindow(opens.unwrap_or(view.now)),
    }
}

/// What would go with machines beside this one, itself included, and nobody has agreed to lose.
pub(crate) fn keeps(view: &View<'_>, beside: &Machine) -> Option<&'static str> {
    let (desired, stand) = (view.desired, Stand::of(beside));
    let mut machines = desired.machines.iter().filter(|of| stand.holds(of));
    let kept = machines.find_map(|machine| kept_on(desired, view.observed, machine));
    kept.filter(|_| !desired.replacing.contains(stand.pool))
}

/// What a window would do, and does not because data would go with the machines.
pub(crate) fn spared(view: &View<'_>) -> Vec<Held> {
    let held = offers(view).into_iter().filter_map(|offer| {
        let Taken::OnRequest {
            kept: Some(kept),
            timed: true,
        } = offer.next
        else {
            return None;
        };
        let machines = view.desired.machines.iter();
        let mut machines = machines.filter(|of| of.pool == offer.pool && newer(view, of).is_some());
        let first = machines.next()?.name.clone();
        Some(Held {
            kind: Kind::Drain,
            machine: first,
            machines: u32::try_from(machines.count())
                .unwrap_or(u32::MAX)
                .saturating_add(1),
            reason: Reason::Data {
                kept: kept.to_owned(),
                modules: format!("{} leads to {}", offer.reference, offer.to.short()),
                pool: format!("{}/{}", view.desired.name, offer.pool),
            },
        })
    });
    held.collect()
}

/// The tag or the branch of a machine that leads elsewhere by now: from which commit to which.
fn newer(view: &View<'_>, machine: &Machine) -> Option<(Reference, Commit, Commit)> {
    let (reference, from) = (machine.origin.reference()?, machine.origin.pinned()?);
    let to = view.observed.commit_of(&reference)?.clone();
    (to != from).then_some((reference, from, to))
}

/// The commit that somebody wishes a pool to be made from.
fn wished(view: &View<'_>, pool: &Name) -> Option<Commit> {
    let of_pool = |intent: &Intent| {
        if let Wish::Update { pool: of, commit } = &intent.wish
            && of == pool
            && intent.counts(view.now)
        {
            commit.clone()
        } else {
            None
        }
    };
    view.intents.iter().rev().find_map(of_pool)
}

/// Notes what is to be made from which commit, as far as that was seen.
pub(super) fn pin(view: &View<'_>) -> Option<(Desired, String)> {
    let machines = view
        .desired
        .machines
        .iter()
        .map(|of| (&of.pool, &of.origin));
    let rolls = view.desired.rolls.iter().map(|of| (&of.pool, &of.origin));
    let mut all = machines.chain(rolls);
    if !all.any(|(pool, origin)| to_pin(view, pool, origin).is_some()) {
        return None;
    }
    let mut next = view.desired.clone();
    let mut noted = BTreeSet::new();
    let machines = next.machines.iter_mut();
    let machines = machines.map(|of| (of.pool.clone(), &mut of.origin));
    let rolls = next.rolls.iter_mut();
    let rolls = rolls.map(|roll| (roll.pool.clone(), &mut roll.origin));
    for (pool, origin) in machines.chain(rolls) {
        if let Some(commit) = to_pin(view, &pool, origin) {
            noted.extend(origin.reference().map(|of| (of, commit.clone())));
            *origin = origin.clone().at(Some(commit));
        }
    }
    let told = noted.iter();
    let told = told.map(|(reference, commit)| format!("{reference} leads to {}", commit.short()));
    let told: Vec<_> = told.collect();
    Some((next, told.join(", ")))
}

/// What is to be made from: what others of the pool are made from, else what was seen.
fn to_pin(view: &View<'_>, pool: &Name, origin: &Origin) -> Option<Commit> {
    if !origin.lacks_commit() {
        return None;
    }
    let reference = origin.reference()?;
    let seen = view.observed.commit_of(&reference).cloned();
    beside(view.desired, pool, origin.templates()?).or(seen)
}

/// What machines of a pool are made from that name these modules.
fn beside(desired: &Desired, pool: &Name, templates: &Templates) -> Option<Commit> {
    let of_pool = desired.machines.iter().filter(|of| of.pool == *pool);
    let mut origins = of_pool.map(|of| &of.origin);
    let same = |of: &Origin| of.templates().is_some_and(|of| of.written_like(templates));
    origins.find_map(|of| of.pinned().filter(|_| same(of)))
}

/// Has a pool go to newer modules, or a roll that fails follow its branch.
pub(super) fn next(view: &View<'_>) -> Option<(Desired, String)> {
    let mut rolls = view.desired.rolls.iter().enumerate();
    rolls
        .find_map(|(at, roll)| follow(view, at, roll))
        .or_else(|| begin(view))
}

/// A pool in which nobody goes anywhere yet, and that should be made from newer modules now.
fn begin(view: &View<'_>) -> Option<(Desired, String)> {
    let machines = view.desired.machines.iter();
    let mut idle = machines.filter(|machine| {
        let mut rolls = view.desired.rolls.iter();
        !rolls.any(|roll| roll.holds(machine))
    });
    let (machine, commit) = idle.find_map(|machine| Some((machine, due(view, machine)?)))?;
    let mut next = view.desired.clone();
    let Stand {
        pool,
        role,
        balancer,
    } = Stand::of(machine);
    next.rolls.push(Roll {
        pool: pool.clone(),
        role,
        balancer: balancer.cloned(),
        origin: machine.origin.clone().at(Some(commit.clone())),
        surge: SURGE_DEFAULT,
        coming: Vec::new(),
        failed: None,
    });
    let because = format!("pool {pool} goes to modules of {}", commit.short());
    Some((next, because))
}

/// The commit that a machine should be made from by now, where it is made from another: the one that
/// somebody asks for, else, in a window that the cluster declares and where no data goes along, the newest.
fn due(view: &View<'_>, machine: &Machine) -> Option<Commit> {
    let (reference, from) = (machine.origin.reference()?, machine.origin.pinned()?);
    // Who cannot be reached gives nobody any modules.
    if is_silent(view.observed, &reference) {
        return None;
    }
    let windows = &view.desired.disruption.windows;
    let open = !windows.0.is_empty() && windows.opens(view.now).is_none();
    let newest = || view.observed.commit_of(&reference).cloned();
    let unasked = || newest().filter(|_| open && all_serve(view, machine));
    let unasked = || unasked().filter(|_| keeps(view, machine).is_none());
    let due = wished(view, &machine.pool).or_else(unasked);
    due.filter(|due| *due != from)
}

/// Whether nobody of a machine's pool is missed: who is about to come is not sent away again.
fn all_serve(view: &View<'_>, beside: &Machine) -> bool {
    let stand = Stand::of(beside);
    let mut machines = view.desired.machines.iter().filter(|of| stand.holds(of));
    machines.all(|machine| serves(view, machine))
}

fn is_silent(observed: &Observed, reference: &Reference) -> bool {
    let followed = observed.followed.get(reference);
    followed.is_some_and(|followed| followed.trouble().is_some())
}

/// Modules that fail are mended where they are: the next try takes what the branch leads to by then.
fn follow(view: &View<'_>, at: usize, roll: &Roll) -> Option<(Desired, String)> {
    let failing = roll.failed.is_some() && roll.coming.is_empty();
    let (reference, from) = (roll.origin.reference()?, roll.origin.pinned()?);
    let to = view.observed.commit_of(&reference)?;
    if !failing || *to == from {
        return None;
    }
    let mut next = view.desired.clone();
    let roll = next.rolls.get_mut(at)?;
    roll.origin = roll.origin.clone().at(Some(to.clone()));
    roll.failed = None;
    let because = format!("pool {} goes on to modules of {}", roll.pool, to.short());
    Some((next, because))
}

/// When a window opens in which newer modules are taken.
pub(super) fn wake(view: &View<'_>) -> Option<Timestamp> {
    let opens = offers(view)
        .into_iter()
        .filter_map(|offer| match offer.next {
            Taken::InWindow(opens) => Some(opens),
            Taken::UnderWay | Taken::OnRequest { .. } => None,
        });
    opens.filter(|opens| *opens > view.now).min()
}

/// What will be known of tags and branches when all goes well: those that nobody has looked up will
/// be, and none leads elsewhere meanwhile.
pub(crate) fn foreseen(desired: &Desired, observed: &mut Observed, now: Timestamp) {
    let origins = || {
        let rolls = desired.rolls.iter().map(|roll| &roll.origin);
        let machines = desired.machines.iter().map(|machine| &machine.origin);
        machines.chain(rolls)
    };
    let lacking = origins().filter(|origin| origin.lacks_commit());
    let lacking: BTreeSet<_> = lacking.filter_map(Origin::reference).collect();
    observed.followed.retain(|of, _| lacking.contains(of));
    for reference in lacking {
        let followed = observed.followed.entry(reference).or_default();
        if followed.trouble().is_none() && followed.commit.is_none() {
            followed.commit = Some((Commit::to_come(), now));
        }
    }
}
