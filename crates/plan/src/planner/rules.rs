//! The rules, each with its reasons for not acting.
//!
//! In their order: what is missing comes first, the control plane before the rest, what
//! was interrupted before what is new, removals after additions, upgrades last of all.

use super::View;
use super::draft::Draft;
use super::hosts::{self, balancers};
use super::names;
use super::ports;
use super::snapshots;
use super::strays;
use super::survey::{Life, Node, Place, Survey, count};
use super::tending::{Cares, still_asked};
use crate::held::Reason;
use model::cluster::{Desired, Machine, Origin, Role};
use model::name::Name;
use model::observed::{Followed, MachineFact};
use model::task::{Action, Kind, Open, State};
use model::upkeep::Roll;
use model::version::Version;

/// How many of `members` must be ready so that etcd can decide.
pub(super) const fn quorum(members: u32) -> u32 {
    members / 2 + 1
}

/// Machines that should be and are not.
pub(super) fn create(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let open = ports::made_open(draft, cares);
    let mut keyless = Vec::new();
    for place in draft.survey.wanted() {
        match place.life {
            _ if place.outlived && !makes_room(draft, place) => forget(draft, place),
            Life::Unseen | Life::Absent | Life::Booting
                if hosts::lacks_key(draft, place.machine) =>
            {
                keyless.push(place);
            }
            Life::Unseen | Life::Absent | Life::Booting
                if let Some(reason) = unresolved(draft.view, place.machine) =>
            {
                draft.hold(place, Kind::Create, reason);
            }
            Life::Unseen | Life::Absent | Life::Booting => {
                if let Some(action) = names::before_it_is_made(draft, place) {
                    draft.want(place, action);
                }
                let action = acquire(place.machine, open);
                match at_its_address(draft.survey, place) {
                    Some(other) if !place.doing(action.kind()) => {
                        let after = other.machine.name.clone();
                        draft.hold(place, action.kind(), Reason::Turn { after });
                    }
                    _ if let Some(turn) = balancers::not_its_turn(draft, place) => {
                        draft.hold(place, action.kind(), turn);
                    }
                    Some(_) | None => draft.want(place, action),
                }
            }
            // Whoever makes it waits until it answers, and says so if it never does.
            Life::Unreachable if being_made(place) => draft.let_end(place, Kind::Create),
            Life::Unreachable => {
                let reason = outvoted(draft.survey, place);
                let reason = reason.unwrap_or_else(|| out_of_reach(draft, place));
                let reason = replaced(draft, place, reason);
                draft.hold(place, serves_by(place), reason);
            }
            Life::Running => {}
        }
    }
    hosts::make_key(draft, &keyless);
}

/// Takes a node out whose machine is gone.
fn forget(draft: &mut Draft<'_>, place: &Place<'_>) {
    let refused = undecided(draft, place).or_else(|| draft.member_first(place));
    match refused {
        Some(reason) => draft.hold(place, Kind::Leave, reason),
        None => draft.want(place, Action::Leave),
    }
}

/// Whether a member is made again before it has left: nobody can decide on that, and a snapshot needs
/// machines that it can be put back to.
fn makes_room(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    place.machine.role == Role::Control && undecided(draft, place).is_some()
}

/// Why etcd cannot decide that a node goes whose machine is gone.
fn undecided(draft: &Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let refused = cannot_join(draft.survey);
    refused.or_else(|| quorum_at_risk(draft.survey, place, After::Less))
}

/// Why nobody knows what a machine would be made from.
fn unresolved(view: &View<'_>, machine: &Machine) -> Option<Reason> {
    let reference = machine.origin.reference()?;
    let followed = view.observed.followed.get(&reference);
    let trouble = followed.and_then(Followed::trouble);
    machine.origin.lacks_commit().then(|| Reason::Modules {
        reference: reference.to_string(),
        because: trouble.map(|trouble| trouble.because.clone()),
        lasting: trouble.is_some_and(|trouble| trouble.lasting),
    })
}

/// Whether somebody makes it right now.
fn being_made(place: &Place<'_>) -> bool {
    place.doing(Kind::Create) && place.open.is_some_and(|open| open.state == State::Running)
}

/// Why nobody can do without a member that does not answer: too few others do.
fn outvoted(survey: &Survey<'_>, place: &Place<'_>) -> Option<Reason> {
    let member = place.machine.role == Role::Control && place.node.is_some();
    let several = survey.voters().nth(1).is_some();
    cannot_join(survey).filter(|_| member && several)
}

/// Why a machine that is there is of no use.
fn out_of_reach(draft: &Draft<'_>, place: &Place<'_>) -> Reason {
    let seen = draft.view.observed.machines.get(&place.machine.id);
    match seen.and_then(|seen| seen.machine.as_ref()) {
        Some((MachineFact::Unreachable { because, .. }, _)) => match because {
            Some(because) => Reason::Unusable {
                because: because.clone(),
            },
            None => Reason::Unreachable,
        },
        Some((
            MachineFact::Absent | MachineFact::Booting { .. } | MachineFact::Running { .. },
            _,
        ))
        | None => Reason::Unreachable,
    }
}

/// The work that lets a machine serve.
fn serves_by(place: &Place<'_>) -> Kind {
    match place.machine.role {
        Role::Control | Role::Compute => Kind::Join,
        Role::Balancer => Kind::Balance,
    }
}

/// What makes a machine one of ours. The port of the API is open on one that comes to a cloud where
/// it should be.
pub(super) fn acquire(machine: &Machine, open: bool) -> Action {
    match machine.origin {
        Origin::Made { .. } if open && machine.has_firewall() => Action::CreateExposed,
        Origin::Made { .. } => Action::Create,
        Origin::Given { .. } => Action::Prepare,
    }
}

fn dispose(machine: &Machine) -> Action {
    match machine.origin {
        Origin::Made { .. } => Action::Delete,
        Origin::Given { .. } => Action::Release,
    }
}

/// Whether a machine runs and waits to become a node.
pub(super) fn joinable(place: &Place<'_>) -> bool {
    place.wanted && place.node.is_none() && place.life == Life::Running && place.connected()
}

/// The first member of the control plane, then the others one after the other.
pub(super) fn start_control_plane(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    ask_again(draft);
    let desired = draft.view.desired;
    let control = |place: &&Place<'_>| place.machine.role == Role::Control && joinable(place);
    let waiting: Vec<_> = draft.survey.wanted().filter(control).collect();
    // What was begun goes on before anything else is begun.
    let begun = |kind: Kind| waiting.iter().find(move |place| place.doing(kind));
    let first = begun(Kind::Init).or_else(|| begun(Kind::Join));
    let first = first.or(waiting.first());
    let Some(first) = first.copied() else {
        // Who comes later must know of it.
        let begun = draft.survey.places.iter().find(|place| starting(place));
        if let Some(begun) = begun.filter(|_| !draft.view.observed.initialised) {
            remember(draft, begun);
        }
        return;
    };
    if let Some(elsewhere) = starting_elsewhere(draft.survey, first) {
        let after = elsewhere.machine.name.clone();
        draft.hold(first, Kind::Init, Reason::Turn { after });
        remember(draft, elsewhere);
    } else if !draft.view.observed.initialised {
        draft.want(
            first,
            Action::Init {
                version: desired.version,
                network: desired.network,
                care: cares.wished(first),
            },
        );
    } else if let Some(reason) =
        cannot_join(draft.survey).or_else(|| strays::namesake(draft.survey, first))
    {
        draft.hold(first, Kind::Join, reason);
    } else {
        draft.want(first, join(draft, cares, first));
    }
    for place in waiting {
        if place.machine.id != first.machine.id {
            draft.hold(
                place,
                Kind::Join,
                Reason::Turn {
                    after: first.machine.name.clone(),
                },
            );
        }
    }
}

/// Keeps the task that started the control plane until it has ended well: what opens the API comes
/// of it, and nobody else can be asked for that.
fn ask_again(draft: &mut Draft<'_>) {
    let begun = |open: &&Open| open.action.kind() == Kind::Init && open.attempts > 0;
    let mut wanted = draft.survey.wanted();
    let place = wanted.find(|place| place.open.as_ref().is_some_and(begun));
    // Its node may be seen before its control plane is.
    let seen = |place: &&Place<'_>| draft.view.observed.initialised || place.node.is_some();
    let Some(place) = place.filter(seen) else {
        return;
    };
    match place.open {
        Some(_) if place.life == Life::Unreachable => draft.let_end(place, Kind::Init),
        Some(open) => draft.want(place, open.action.clone()),
        None => {}
    }
}

/// Keeps the task of a machine that does not answer: without it nobody would remember that a
/// control plane may have been started there.
fn remember(draft: &mut Draft<'_>, place: &Place<'_>) {
    if let Some(open) = place.open
        && place.wanted
        && place.life == Life::Unreachable
    {
        draft.want(place, open.action.clone());
    }
}

/// Whether a control plane may have been started on a machine, though nobody has seen it yet.
fn starting(place: &Place<'_>) -> bool {
    place.open.is_some_and(|open| {
        // That its machine is absent may have been seen before the attempt that runs.
        let may_be = place.life != Life::Absent || open.state == State::Running;
        may_be && open.action.kind() == Kind::Init && open.attempts > 0
    })
}

/// Another machine on which a control plane may have been started: a second one would split
/// the cluster.
fn starting_elsewhere<'s, 'a>(survey: &'s Survey<'a>, but: &Place<'_>) -> Option<&'s Place<'a>> {
    let mut places = survey.places.iter();
    places.find(|place| place.machine.id != but.machine.id && starting(place))
}

/// Why nothing can join a control plane that was started.
pub(super) fn cannot_join(survey: &Survey<'_>) -> Option<Reason> {
    let members = count(survey.voters());
    let ready = count(survey.members().filter(|place| place.ready_control()));
    let (votes, counting) = strays::votes(&survey.left);
    let (ready, needed) = (ready + counting, quorum(members + votes));
    if survey.members().next().is_none() {
        Some(Reason::ControlPlaneLost)
    } else if ready < needed {
        Some(Reason::Quorum {
            ready,
            needed,
            silent: silent(survey),
        })
    } else {
        None
    }
}

/// What a machine joins with: never ahead of the control plane, which is upgraded first.
fn join_version(draft: &Draft<'_>) -> Version {
    let members = draft.survey.members().filter_map(|place| place.node);
    let oldest = members.map(|node| node.version).min();
    oldest.map_or(draft.view.desired.version, |oldest| {
        oldest.min(draft.view.desired.version)
    })
}

/// How a machine joins. One that comes in place of others has gates to pass before it serves.
fn join(draft: &Draft<'_>, cares: &Cares<'_>, place: &Place<'_>) -> Action {
    let desired = draft.view.desired;
    let comes = |roll: &Roll| roll.coming.contains(&place.machine.id);
    Action::Join {
        version: join_version(draft),
        care: cares.wished(place),
        gated: !desired.disruption.gates.is_empty() && desired.rolls.iter().any(comes),
    }
}

/// Workers, all at once, as soon as the control plane can do without one of its members.
pub(super) fn join_compute(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let wanted = count(
        draft
            .survey
            .wanted()
            .filter(|place| place.machine.role == Role::Control),
    );
    let ready = count(
        draft
            .survey
            .places
            .iter()
            .filter(|place| place.ready_control()),
    );
    let missing = draft
        .survey
        .wanted()
        .find(|place| place.machine.role == Role::Control && !place.ready_control());
    let reason = if draft.view.observed.initialised {
        cannot_join(draft.survey).or_else(|| cares.unreached())
    } else {
        unborn(draft.view.desired).filter(|_| wanted == 0)
    };
    for place in draft.survey.wanted() {
        if place.machine.role != Role::Compute || !joinable(place) {
            continue;
        }
        match (&reason, missing) {
            (Some(reason), _) => draft.hold(place, Kind::Join, reason.clone()),
            (None, Some(missing)) if ready < quorum(wanted) => {
                let waiting_for = missing.machine.name.clone();
                draft.hold(place, Kind::Join, Reason::ControlPlane { waiting_for });
            }
            (None, _) if let Some(reason) = strays::namesake(draft.survey, place) => {
                draft.hold(place, Kind::Join, reason);
            }
            (None, Some(_) | None) => {
                draft.want(place, join(draft, cares, place));
            }
        }
    }
}

/// Why nothing can join yet where all of the control plane has still to be discovered.
fn unborn(desired: &Desired) -> Option<Reason> {
    let mut metal = desired.metal.iter();
    let wanted = metal.find(|wanted| wanted.role == Role::Control)?;
    Some(Reason::ControlPlane {
        waiting_for: Name::of_machine(&desired.name, &wanted.pool, 1),
    })
}

/// Nodes that we took out of service and have nothing left to do to, and those that came in place of
/// others and wait at their gates.
pub(super) fn uncordon(draft: &mut Draft<'_>) {
    let version = draft.version;
    for place in draft.survey.wanted() {
        let Some(node) = place.node else { continue };
        if place.life == Life::Unreachable {
            continue;
        }
        let due = if place.slot {
            node.cordoned && node.version >= version
        } else {
            node.gated
        };
        if node.ready && due {
            draft.want(place, readmission(draft.view.desired));
        } else if !node.ready && place.open.is_none() {
            let reason = replaced(draft, place, unready(draft.view, place));
            draft.hold(place, Kind::Join, reason);
        }
    }
}

/// Whether somebody else takes the place of one that does not serve.
fn replaced(draft: &Draft<'_>, place: &Place<'_>, reason: Reason) -> Reason {
    match draft.replaced_at(place) {
        Some(due) => Reason::Repair {
            because: reason.to_string(),
            due,
        },
        None => reason,
    }
}

fn unready(view: &View<'_>, place: &Place<'_>) -> Reason {
    let told = view.observed.wellbeing.as_ref();
    let trouble = told.and_then(|(told, _)| told.troubles.get(place.machine.name.as_str()));
    trouble.map_or(Reason::NotReady, |because| Reason::Sick {
        because: because.clone(),
    })
}

/// What brings a node back into service.
fn readmission(desired: &Desired) -> Action {
    match desired.disruption.gates.as_slice() {
        [] => Action::Uncordon,
        gates => Action::Readmit {
            gates: gates.to_vec(),
        },
    }
}

/// Nodes on another version: the control plane first and one at a time, then the workers, as
/// many at once as may be, on a stable topology.
pub(super) fn upgrade(draft: &mut Draft<'_>) {
    let outdated: Vec<_> = older(draft.survey.wanted(), draft.version).collect();
    if outdated.is_empty() {
        paused_halfway(draft);
    }
    let (begun, fresh): (Vec<_>, Vec<_>) = outdated.into_iter().partition(|place| place.slot);
    // What was begun goes on, also when budgets or windows have changed since.
    for place in &begun {
        if let Some(member) = drained_early(draft, place) {
            if place.node.is_some_and(|node| node.cordoned) && able(place) {
                draft.want(place, readmission(draft.view.desired));
            } else {
                let after = member.machine.name.clone();
                draft.hold(place, Kind::Upgrade, Reason::Turn { after });
            }
        } else if kept_waiting(draft, place) {
            draft.want(place, readmission(draft.view.desired));
        } else {
            upgrade_node(draft, place, None);
        }
    }
    let control = begun
        .iter()
        .chain(&fresh)
        .find(|place| place.machine.role == Role::Control);
    let one_by_one = control.is_some() || one_by_one(draft);
    let (unsettled, member) = (unsettled(draft.survey), member_out(draft.survey));
    let (gated, mut first) = (gated(draft), begun.first().copied());
    for place in &fresh {
        let after = match (first, control) {
            _ if gated.is_some() => gated,
            (Some(first), _) if one_by_one => Some(first),
            // Every member waits for something of its own.
            (None, Some(control)) if place.machine.role == Role::Compute => Some(*control),
            (Some(_) | None, _) => None,
        };
        if let Some(reason) = draft.closed() {
            draft.hold(place, Kind::Upgrade, reason);
        } else if let Some(after) = after {
            let after = after.machine.name.clone();
            draft.hold(place, Kind::Upgrade, Reason::Turn { after });
        } else {
            let worker = place.machine.role == Role::Compute;
            let refused = unsettled
                .clone()
                .or_else(|| draft.locked(place))
                .or_else(|| draft.over_budget(place))
                .or_else(|| member.clone().filter(|_| worker));
            let local = refused.as_ref().is_some_and(Reason::is_local);
            upgrade_node(draft, place, refused);
            first = first.or((!local).then_some(*place));
        }
    }
}

/// Nodes that have an older version than this.
fn older<'s, 'a: 's>(
    places: impl Iterator<Item = &'s Place<'a>>,
    version: Version,
) -> impl Iterator<Item = &'s Place<'a>> {
    places.filter(move |place| place.node.is_some_and(|node| node.version < version))
}

/// Tells of an upgrade that has come to a stepping stone and does not go on from there, because
/// somebody asked that nothing be begun.
fn paused_halfway(draft: &mut Draft<'_>) {
    if let Some(reason) = draft.pause() {
        for place in older(draft.survey.wanted(), draft.view.desired.version) {
            draft.hold(place, Kind::Upgrade, reason.clone());
        }
    }
}

/// The member of the control plane for which a worker has to wait, though it was drained: the version
/// was raised since, or the member comes late. It serves until then.
fn drained_early<'a>(draft: &Draft<'a>, place: &Place<'_>) -> Option<&'a Place<'a>> {
    let worker = place.machine.role == Role::Compute;
    let mut members = older(draft.survey.members(), draft.version);
    members.next().filter(|_| worker)
}

/// A node that has come to its gates: what is wrong with it may be wrong with the next.
fn gated<'a>(draft: &Draft<'a>) -> Option<Place<'a>> {
    let there = |place: &&Place<'_>| {
        let node = place.node.filter(|node| node.version >= draft.version);
        place.slot && node.is_some_and(|node| node.cordoned)
    };
    let gates = !draft.view.desired.disruption.gates.is_empty();
    let mut places = draft.survey.wanted().filter(|_| gates);
    places.find(there).copied()
}

/// Why workers must wait: a member of the control plane is not back in service.
fn member_out(survey: &Survey<'_>) -> Option<Reason> {
    let mut members = survey.members();
    let out = members.find(|member| member.wanted && member.slot)?;
    Some(Reason::ControlPlane {
        waiting_for: out.machine.name.clone(),
    })
}

/// Whether one machine of the cluster is taken out of service after the other.
fn one_by_one(draft: &Draft<'_>) -> bool {
    draft.view.desired.disruption.unavailable == 1
}

/// Whether a member was drained and cannot be upgraded, because etcd would lose its quorum. Nobody
/// knows how long that lasts, and others may have to leave first: it serves until then.
fn kept_waiting(draft: &Draft<'_>, place: &Place<'_>) -> bool {
    let idle = place.open.is_none() || place.doing(Kind::Uncordon);
    let drained = place.node.is_some_and(|node| node.cordoned);
    drained && idle && able(place) && quorum_at_risk(draft.survey, place, After::Same).is_some()
}

/// Whether a node could serve if it were let.
fn able(place: &Place<'_>) -> bool {
    place.life == Life::Running && place.node.is_some_and(|node| node.ready)
}

fn upgrade_node(draft: &mut Draft<'_>, place: &Place<'_>, refused: Option<Reason>) {
    let version = draft.version;
    let drained = place.slot && place.node.is_some_and(|node| node.cordoned) && !draining(place);
    let refused = refused.or_else(|| draft.member_first(place));
    let refused = refused.or_else(|| quorum_at_risk(draft.survey, place, After::Same));
    match refused.or_else(|| snapshots::comes_first(draft, place)) {
        Some(reason) => draft.hold(place, Kind::Upgrade, reason),
        None if drained => draft.want(place, Action::Upgrade { version }),
        None => draft.want(place, Action::Drain),
    }
}

/// Why the topology is not stable enough for an upgrade to begin.
fn unsettled(survey: &Survey<'_>) -> Option<Reason> {
    let leaving = survey.leaving().find(|place| place.node.is_some());
    missing(survey).or_else(|| {
        leaving.map(|place| Reason::Turn {
            after: place.machine.name.clone(),
        })
    })
}

/// Machines that should be nodes and are not, and could come now.
fn missing(survey: &Survey<'_>) -> Option<Reason> {
    let mut missing = survey.wanted().filter(|place| {
        let comes = place.machine.role.is_node() && !place.blocked;
        comes && place.node.is_none() && at_its_address(survey, place).is_none()
    });
    let first = missing.next()?;
    Some(Reason::Additions {
        waiting_for: first.machine.name.clone(),
        missing: 1 + count(missing),
    })
}

/// The machine that stands at the address of a given one and has to give it back first.
pub(super) fn at_its_address<'s, 'a>(
    survey: &'s Survey<'a>,
    place: &Place<'_>,
) -> Option<&'s Place<'a>> {
    let Origin::Given { endpoint, .. } = &place.machine.origin else {
        return None;
    };
    survey.leaving().find(|leaving| {
        remains(leaving)
            && matches!(&leaving.machine.origin, Origin::Given { endpoint: other, .. } if other == endpoint)
    })
}

/// How many members the control plane has after a change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// As many as before.
    Same,
    /// One less.
    Less,
}

/// Whether etcd could lose its quorum while a member is changed or removed.
pub(super) fn quorum_at_risk(
    survey: &Survey<'_>,
    place: &Place<'_>,
    after: After,
) -> Option<Reason> {
    if place.machine.role != Role::Control {
        return None;
    }
    // Whoever is left of others still has a vote.
    let (votes, counting) = strays::votes(&survey.left);
    let members = count(survey.voters()) + votes;
    let ready = survey
        .members()
        .filter(|other| other.machine.id != place.machine.id && other.ready_control());
    let others = count(ready) + counting;
    let needed = match after {
        // The only member has nobody to keep a quorum with, and can still be changed in place.
        After::Same if members == 1 => 0,
        After::Same => quorum(members),
        // Etcd decides on the removal as it is now, and on everything else as it is then.
        After::Less => {
            let now = quorum(members).saturating_sub(u32::from(place.ready_control()));
            let now = if half_removed(place) { 0 } else { now };
            now.max(quorum(members.saturating_sub(1)))
        }
    };
    (others < needed).then(|| Reason::Quorum {
        ready: others,
        needed,
        silent: silent(survey),
    })
}

/// Whether a member was begun to be taken out and is not well since: etcd may have decided on that
/// already, and nothing but its end makes it whole.
fn half_removed(place: &Place<'_>) -> bool {
    let left = |open: &Open| open.action.kind() == Kind::Leave && open.attempts > 0;
    place.open.is_some_and(left) && !place.ready_control()
}

/// How many members of the control plane do not answer, or never will.
pub(super) fn silent(survey: &Survey<'_>) -> u32 {
    let members = survey.voters();
    count(members.filter(|place| place.life == Life::Unreachable || place.outlived))
}

/// Whether something of a machine may be left.
///
/// An unfinished attempt may have made it since it was last seen to be absent; removing
/// what is not there does no harm, forgetting what is there does.
fn remains(place: &Place<'_>) -> bool {
    place.life != Life::Absent || place.open.is_some_and(|open| open.attempts > 0)
}

/// Machines that should go: out of service, out of the cluster, out of the world.
pub(super) fn remove(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let nodes: Vec<_> = draft
        .survey
        .leaving()
        .filter(|place| place.node.is_some())
        .collect();
    let control = |place: &&Place<'_>| place.machine.role == Role::Control;
    let members: Vec<_> = nodes.iter().copied().filter(control).collect();
    let (first, first_member) = (first_of(&nodes), first_of(&members));
    let one_by_one = one_by_one(draft);
    let missing = missing(draft.survey);
    // Nobody else waits until load balancers are told.
    let untold = first.and_then(|_| balancers::not_told_yet(draft, cares));
    for place in draft.survey.leaving() {
        let named = names::taken_back(draft, place);
        if !remains(place) && named.is_none() || draft.given_up(place) {
            continue;
        }
        // Members of the control plane go one at a time, whatever the budget.
        let ahead = match (one_by_one, place.machine.role) {
            (true, _) => first,
            (false, Role::Control) => first_member,
            (false, Role::Compute | Role::Balancer) => None,
        };
        let closed = draft.closed().filter(|_| !out_already(place));
        match (place.node, ahead) {
            (None, _)
                if let Some(reason) = balancers::still_needed(draft, place)
                    .or_else(|| still_asked(draft, cares, place)) =>
            {
                draft.hold(place, dispose(place.machine).kind(), reason);
            }
            (None, _) => match named {
                Some(Err(reason)) => draft.hold(place, dispose(place.machine).kind(), reason),
                Some(Ok(action)) => draft.want(place, action),
                None => draft.want(place, dispose(place.machine)),
            },
            (Some(_), _) if let Some(reason) = closed => draft.hold(place, Kind::Drain, reason),
            (Some(_), Some(ahead)) if ahead.machine.id != place.machine.id => {
                draft.hold(
                    place,
                    Kind::Drain,
                    Reason::Turn {
                        after: ahead.machine.name.clone(),
                    },
                );
            }
            (Some(_), Some(_) | None) => {
                let told = untold.clone().or_else(|| still_asked(draft, cares, place));
                remove_node(draft, place, (missing.clone(), told));
            }
        }
    }
}

/// The node whose turn it is: one that serves nobody any more, or else the first.
fn first_of<'s, 'a>(nodes: &[&'s Place<'a>]) -> Option<&'s Place<'a>> {
    let out = nodes.iter().find(|place| out_already(place));
    out.or(nodes.first()).copied()
}

/// Whether the node serves nobody any more, or was told not to.
fn out_already(place: &Place<'_>) -> bool {
    let idle = |node: Node| !node.ready || node.gated;
    place.slot || place.life == Life::Unreachable || place.node.is_some_and(idle)
}

/// Whether a drain was begun and has not ended: the node takes no new workloads, and may
/// still have old ones. One that does not answer has nothing left to move.
fn draining(place: &Place<'_>) -> bool {
    let answers = place.life != Life::Unreachable && place.node.is_some_and(|node| node.ready);
    answers
        && place
            .open
            .is_some_and(|open| open.action.kind() == Kind::Drain)
}

fn remove_node(
    draft: &mut Draft<'_>,
    place: &Place<'_>,
    (missing, untold): (Option<Reason>, Option<Reason>),
) {
    let begun = out_already(place);
    let refused = if begun {
        None
    } else {
        missing
            .or_else(|| draft.locked(place))
            .or_else(|| draft.over_budget(place))
    };
    // Who never served has nothing to be moved off, whatever was begun.
    let idle = !place.slot && place.node.is_some_and(|node| node.gated);
    let drained = begun && !place.in_service() && (idle || !draining(place));
    let action = if drained {
        Action::Leave
    } else {
        Action::Drain
    };
    let refused = refused.or_else(|| draft.member_first(place));
    let refused = refused.or_else(|| untold.filter(|_| drained || !begun));
    match refused.or_else(|| quorum_at_risk(draft.survey, place, After::Less)) {
        Some(reason) => draft.hold(place, action.kind(), reason),
        None => draft.want(place, action),
    }
}

/// Everything goes: workers first, so that their departure can still be recorded.
pub(super) fn tear_down(draft: &mut Draft<'_>) {
    let remaining: Vec<_> = draft
        .survey
        .leaving()
        .filter(|place| remains(place) || names::taken_back(draft, place).is_some())
        .filter(|place| !draft.given_up(place))
        .collect();
    // A given machine that does not answer may never: nobody waits for it.
    let silent = |place: &Place<'_>| {
        place.life == Life::Unreachable && matches!(place.machine.origin, Origin::Given { .. })
    };
    let worker = remaining
        .iter()
        .find(|place| place.machine.role == Role::Compute && !silent(place));
    for place in &remaining {
        match worker {
            Some(worker) if place.machine.role == Role::Control => {
                let after = worker.machine.name.clone();
                draft.hold(place, dispose(place.machine).kind(), Reason::Turn { after });
            }
            Some(_) | None => match names::taken_back(draft, place) {
                Some(Ok(action)) => draft.want(place, action),
                Some(Err(_)) | None => draft.want(place, dispose(place.machine)),
            },
        }
    }
}
