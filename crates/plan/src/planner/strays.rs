//! Nodes that are left of machines that the cluster does not have: somebody destroyed a machine before
//! its node had left, or etcd was put back to a day on which it had others.
//!
//! Only nodes with our mark are touched, and none that may still be of use: whoever is ready is a
//! person's to judge, and whoever is not is given as long as a machine of ours, unless it is known that
//! its machine is gone. A member of etcd goes with its node while the others can decide. What nobody
//! could list is nobody's leftover.

use super::View;
use super::draft::Draft;
use super::rules::{outnumbered, quorum};
use super::survey::{Life, Place, Survey, count, given_up};
use crate::held::{Ends, Reason};
use model::cluster::Role;
use model::id::MachineId;
use model::observed::Member;
use model::stray::{Leftover, Stray};
use model::task::{Action, Kind};
use model::time::Timestamp;

/// A node that is left of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) node: &'a str,
    machine: MachineId,
    /// Whether it may have a member of etcd, which goes with it.
    member: bool,
    /// Its vote there, where no machine of ours is counted for it.
    vote: Option<Vote>,
    /// Since when it is not ready, where it is not.
    unready_since: Option<Timestamp>,
    /// Whether it is known that its machine is of no use to anybody.
    lost: bool,
}

/// A vote in etcd of which no machine of ours knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vote {
    /// It can be counted on for now.
    Counts,
    /// It is silent, and the others have to do without it.
    Silent,
}

/// The nodes that are left of machines which are neither to stay nor still on their way out.
pub(super) fn left<'a>(view: &View<'a>, places: &[Place<'a>]) -> Vec<Left<'a>> {
    let listed = view.observed.strays().filter_map(|(node, stray)| {
        let machine = stray.machine?;
        let place = places.iter().find(|place| place.machine.id == machine);
        let lost = match place {
            None => false,
            Some(place) if is_gone(view, place) => true,
            Some(_) => return None,
        };
        // Where a machine of ours is a node of that name, the member is that one's.
        let ours = |place: &Place<'_>| place.machine.name.as_str() == node && place.node.is_some();
        let member = stray.control && has_member(view, node) && !places.iter().any(ours);
        Some(Left {
            node,
            machine,
            member,
            vote: vote(view, node, stray).filter(|_| member),
            unready_since: stray.unready_since,
            lost,
        })
    });
    let given_up = places
        .iter()
        .filter(|place| !place.wanted && given_up(view, place));
    let given_up = given_up.filter_map(|place| {
        let (node, ready) = (place.machine.name.as_str(), place.node?.ready);
        Some(Left {
            node,
            machine: place.machine.id,
            member: place.machine.role == Role::Control && has_member(view, node),
            vote: None,
            unready_since: (!ready).then_some(view.now),
            lost: !ready,
        })
    });
    listed.chain(given_up).collect()
}

/// Whether a machine that was to leave is gone, and was when the nodes were listed.
fn is_gone(view: &View<'_>, place: &Place<'_>) -> bool {
    let seen = view.observed.machines.get(&place.machine.id);
    let since = seen.and_then(|seen| seen.machine.as_ref());
    let listed = view.observed.strays.as_ref().map(|(_, at)| *at);
    let before = since.is_some_and(|(_, since)| listed.is_some_and(|listed| *since <= listed));
    !place.wanted && place.life == Life::Absent && place.open.is_none() && before
}

/// The members of etcd, where anybody told of them.
fn members<'a>(view: &View<'a>) -> &'a [Member] {
    let told = view.observed.wellbeing.as_ref();
    told.map(|(told, _)| &told.etcd[..]).unwrap_or_default()
}

/// Whether etcd has a member of that name, as far as anybody knows.
fn has_member(view: &View<'_>, node: &str) -> bool {
    let told = members(view);
    told.is_empty() || told.iter().any(|member| member.name == node)
}

/// The vote that a node has which is left. One that only learns has none.
fn vote(view: &View<'_>, node: &str, stray: &Stray) -> Option<Vote> {
    let counts = match members(view).iter().find(|member| member.name == node) {
        None => stray.unready_since.is_none(),
        Some(Member { learner: true, .. }) => return None,
        Some(member) => member.healthy,
    };
    Some(if counts { Vote::Counts } else { Vote::Silent })
}

impl Left<'_> {
    /// Why it is not cleared now, where nothing but itself is looked at.
    fn kept(&self, draft: &Draft<'_>) -> Option<Reason> {
        let heard = self.unready_since.is_none() || self.vote == Some(Vote::Counts);
        let ends = match (self.unready_since, heard) {
            (_, true) if self.lost => Ends::Silence,
            (None, _) | (_, true) => Ends::Person,
            (Some(_), false) if self.lost => return None,
            (Some(since), false) => match draft.view.desired.repair.after {
                None => Ends::Person,
                Some(after) if since.plus(after) <= draft.view.now => return None,
                Some(after) => Ends::Due(since.plus(after)),
            },
        };
        Some(self.waits(ends, heard))
    }

    fn waits(&self, ends: Ends, heard: bool) -> Reason {
        Reason::Leftover {
            node: self.node.to_owned(),
            of: self.machine,
            heard,
            ends,
        }
    }

    fn cleared(&self) -> Leftover {
        Leftover {
            node: self.node.to_owned(),
            machine: self.machine,
            control: self.member,
        }
    }
}

/// How many votes of etcd no machine of ours has, and how many of those count.
pub(super) fn votes(left: &[Left<'_>]) -> (u32, u32) {
    let votes = || left.iter().filter_map(|left| left.vote);
    let counting = votes().filter(|vote| *vote == Vote::Counts);
    (count(votes()), count(counting))
}

/// Takes out of the cluster what is left of machines it does not have, all by one task.
pub(super) fn clear(draft: &mut Draft<'_>) {
    let Some(place) = draft.member_for(Kind::Clear, Place::ready_control) else {
        return;
    };
    let survey = draft.survey;
    let mut leftovers = Vec::new();
    for left in &survey.left {
        let refused = left.kept(draft);
        let refused = refused.or_else(|| undecided(draft, &place, left).filter(|_| left.member));
        match refused {
            Some(reason) => {
                if let Reason::Leftover {
                    ends: Ends::Due(due),
                    ..
                } = reason
                {
                    draft.wake(due);
                }
                draft.hold(&place, Kind::Clear, reason);
            }
            None => leftovers.push(left.cleared()),
        }
    }
    if !leftovers.is_empty() {
        draft.want(&place, Action::Clear { leftovers });
    }
}

/// Why etcd does not lose a member now: another is being changed, or too few of the others decide.
fn undecided(draft: &Draft<'_>, place: &Place<'_>, left: &Left<'_>) -> Option<Reason> {
    let survey = draft.survey;
    let ready = count(survey.members().filter(|place| place.ready_control()));
    let (votes, counting) = votes(&survey.left);
    let voters = count(survey.voters());
    let (decide, needed) = (ready + counting, quorum(voters + votes));
    // Where all of ours are well, nothing that they do ends the wait.
    let ours_are_well = ready == voters;
    let silent = || {
        if ours_are_well && members(draft.view).is_empty() {
            return left.waits(Ends::Told, false);
        }
        let mut reason = outnumbered(survey, decide, needed);
        if let Reason::Quorum { silent, .. } = &mut reason
            && ours_are_well
        {
            *silent += votes - counting;
        }
        reason
    };
    let silent = (decide < needed).then(silent);
    draft.member_first(place).or(silent)
}

/// The node that is left of another machine and has the name of this one: it has to go before this one
/// can join.
pub(super) fn namesake(survey: &Survey<'_>, place: &Place<'_>) -> Option<Reason> {
    let name = place.machine.name.as_str();
    let mut left = survey.left.iter();
    let same = left.find(|left| left.node == name && left.machine != place.machine.id)?;
    Some(Reason::Namesake { of: same.machine })
}
