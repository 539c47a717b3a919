//! A plan in the making: what rules ask for, against what is under way and what is wished.

use super::around::{around, reaches};
use super::renewal;
use super::survey::{Life, Place, Survey, cancelled, count, given_up};
use super::{Plan, View};
use crate::advance::{self, Ward};
use crate::held::{Held, Owner, Reason, Scope};
use crate::hops;
use crate::ledger::{Slot, spent};
use crate::summary::{Phase, Summary};
use model::cluster::{Desired, Role};
use model::id::{self, MachineId, TaskId};
use model::intent::Wish;
use model::name::Name;
use model::task::{Action, Kind, Open, State, Task};
use model::time::Timestamp;
use model::version::Version;
use std::collections::{BTreeMap, BTreeSet};

/// Attempts after which a failure that is still being retried is shown as an error.
///
/// With the back-off's doubling this is about a minute: longer than a hiccup, shorter
/// than a coffee.
pub(crate) const ATTEMPTS_BEFORE_ERROR: u32 = 5;

/// A plan in the making.
pub(super) struct Draft<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) survey: &'a Survey<'a>,
    /// The version that nodes go to now.
    pub(super) version: Version,
    tasks: Vec<Task>,
    /// Unfinished tasks that go on. What a worker holds does, whether or not anybody still wants it:
    /// nothing is as it was seen until that has ended, or its lease.
    kept: BTreeSet<TaskId>,
    reopen: Vec<TaskId>,
    held: Vec<Held>,
    /// Which machines each of those counts.
    counted: BTreeSet<(usize, MachineId)>,
    /// Machines that a kept or new task touches, and what it does.
    busy: BTreeMap<MachineId, Kind>,
    /// Machines that are out of service, and those that this plan takes out of it.
    out: Vec<Slot>,
    /// Rows of the ledger that it takes for that.
    rows: Vec<Slot>,
    /// The member of the control plane that is being changed.
    member: Option<(MachineId, Name)>,
    paused: Option<&'a str>,
    /// When machines may be taken out of service again, where they may not be now.
    closed: Option<Timestamp>,
    /// When to plan again in any case.
    wake: Option<Timestamp>,
    /// Who does not serve, and what is known of all of them.
    ward: Ward<'a>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(view: &'a View<'a>, survey: &'a Survey<'a>) -> Self {
        let pause = |wish: &Wish| matches!(wish, Wish::Pause);
        let paused = view
            .intents
            .iter()
            .find(|intent| pause(&intent.wish) && intent.counts(view.now));
        let budgets = &view.desired.disruption;
        // Also those whose equipment was begun without a row, when they did not serve.
        let disturbed = |place: &&Place<'_>| place.equips() && place.disturbed_by(Kind::Equip);
        let out = |place: &&Place<'_>| place.out_of_service() || disturbed(place);
        let out = survey.places.iter().filter(out);
        let running = view.open.iter();
        let running = running.filter(|open| open.state == State::Running);
        Self {
            view,
            survey,
            version: within_reach(view.desired, &survey.runs()),
            tasks: Vec::new(),
            kept: running.map(|open| open.id).collect(),
            reopen: Vec::new(),
            held: Vec::new(),
            counted: BTreeSet::new(),
            busy: BTreeMap::new(),
            out: out.map(|place| Slot::of(place.machine, budgets)).collect(),
            rows: Vec::new(),
            member: survey.members().find(|place| changing(place)).map(named),
            closed: budgets.windows.opens(view.now),
            wake: None,
            ward: Ward::of(view),
            paused: paused.map(|intent| intent.author.as_str()),
        }
    }

    /// Asks for `action` on a machine: begins it, keeps it going, or says why not.
    pub(super) fn want(&mut self, place: &Place<'_>, action: Action) {
        let kind = action.kind();
        // An earlier rule has asked for something else; that comes first.
        let other = self.busy.get(&place.machine.id).copied();
        if let Some(other) = other.filter(|other| *other != kind) {
            self.hold(place, kind, Reason::Running { kind: other });
            return;
        }
        if let Some(by) = self.cancelled(place.machine.id, kind) {
            self.hold(place, kind, Reason::Cancelled { by });
            return;
        }
        match place.open {
            Some(open) if same(self, place, open, &action) => self.keep(place, open),
            Some(open) if open.state == State::Running => {
                self.busy.insert(place.machine.id, open.action.kind());
                self.hold(
                    place,
                    kind,
                    Reason::Running {
                        kind: open.action.kind(),
                    },
                );
            }
            Some(_) | None => self.begin(place, action),
        }
    }

    fn keep(&mut self, place: &Place<'_>, open: &Open) {
        self.kept.insert(open.id);
        let kind = open.action.kind();
        self.busy.insert(place.machine.id, kind);
        self.note_out(place, kind);
        // What has failed and may fail for ever keeps nobody else waiting.
        if open.error.is_none() {
            self.note_member(place, kind);
        }
        let failed = open.error.clone();
        let asked = self.view.intents.iter().any(|intent| {
            matches!(&intent.wish, Wish::Retry { task } if *task == open.id)
                && intent.counts(self.view.now)
        });
        match (open.state, failed) {
            (State::Stuck | State::Waiting, Some(_)) if asked || open.corrected => {
                self.reopen.push(open.id);
            }
            (State::Stuck, error) => {
                let error = error.unwrap_or_else(|| "no reason was recorded".to_owned());
                self.hold(
                    place,
                    kind,
                    Reason::Stuck {
                        task: open.id,
                        error,
                    },
                );
            }
            (State::Waiting, Some(error)) => {
                let reason = Reason::Backoff {
                    task: open.id,
                    attempts: open.attempts,
                    due: open.not_before,
                    error,
                };
                self.hold(place, kind, reason);
            }
            (State::Waiting, None) | (State::Running | State::Done | State::Withdrawn, _) => {}
        }
    }

    fn begin(&mut self, place: &Place<'_>, action: Action) {
        if let Some(reason) = self.pause() {
            self.hold(place, action.kind(), reason);
            return;
        }
        if let Some((times, due)) = self.in_vain(place, &action) {
            self.wake(due);
            self.hold(place, action.kind(), Reason::Vain { times, due });
            return;
        }
        let needed = action.needs(&place.machine.origin);
        let missing: Vec<_> = needed
            .filter(|secret| self.view.missing.contains(secret))
            .collect();
        if !missing.is_empty() {
            for secret in missing {
                self.hold(place, action.kind(), secret.into());
            }
            return;
        }
        let desired = self.view.desired;
        self.draw(place, action.kind());
        self.note_out(place, action.kind());
        self.note_member(place, action.kind());
        let id = TaskId::derive(id::Origin {
            parent: &place.machine.id.to_string(),
            name: action.kind().as_str(),
            ordinal: self.view.parent,
            incarnation: desired.generation.0,
        });
        self.busy.insert(place.machine.id, action.kind());
        self.tasks.push(Task {
            id,
            project: desired.project.clone(),
            cluster: desired.cluster,
            cluster_name: desired.name.clone(),
            generation: desired.generation,
            machine: place.machine.clone(),
            around: around(self, place, &action),
            action,
        });
    }

    /// How often this ended well and changed nothing, and when it is tried once more.
    fn in_vain(&self, place: &Place<'_>, action: &Action) -> Option<(u32, Timestamp)> {
        let id = place.machine.id;
        let mut vain = self.view.vain.iter();
        let same = vain.find(|vain| vain.machine == id && vain.action == *action)?;
        Some((same.times, same.waits(self.view.now)?))
    }

    /// Remembers which member of the control plane is being changed.
    fn note_member(&mut self, place: &Place<'_>, kind: Kind) {
        let changes = place.disturbed_by(kind) && place.machine.role == Role::Control;
        if changes && self.member.is_none() {
            self.member = Some(named(place));
        }
    }

    /// Counts a machine that is being drained or equipped again among those that are out of
    /// service.
    fn note_out(&mut self, place: &Place<'_>, kind: Kind) {
        let id = place.machine.id;
        if takes_out(place, kind) && !self.out.iter().any(|out| out.machine == id) {
            let budgets = &self.view.desired.disruption;
            self.out.push(Slot::of(place.machine, budgets));
        }
    }

    /// Draws a row for a machine that serves until this task begins.
    fn draw(&mut self, place: &Place<'_>, kind: Kind) {
        let id = place.machine.id;
        let drawn = self.view.ledger.iter().any(|slot| slot.machine == id);
        let serves = kind == Kind::Drain || place.in_service();
        if takes_out(place, kind) && serves && !drawn {
            let budgets = &self.view.desired.disruption;
            self.rows.push(Slot::of(place.machine, budgets));
        }
    }

    /// Why a machine that serves may not be taken out of service now: no window is open.
    pub(super) fn closed(&self) -> Option<Reason> {
        self.closed.map(|opens| Reason::Window { opens })
    }

    /// Why a machine that serves may not be taken out of service now: as many as may be are.
    pub(super) fn over_budget(&self, place: &Place<'_>) -> Option<Reason> {
        let budgets = &self.view.desired.disruption;
        let slot = Slot::of(place.machine, budgets);
        spent(budgets, &self.out, self.view.elsewhere, &slot).or_else(|| self.member_out(place))
    }

    /// Why a node may not be emptied: somebody said that it is to be left alone.
    pub(super) fn locked(&self, place: &Place<'_>) -> Option<Reason> {
        let label = self.view.observed.lock_of(&place.machine.name)?.to_owned();
        Some(Reason::Locked { label })
    }

    /// Whether another member of the control plane is being changed: whatever the budgets say,
    /// the next one waits until that has ended.
    pub(super) fn member_first(&self, place: &Place<'_>) -> Option<Reason> {
        let (id, name) = self.member.as_ref()?;
        let waits = place.machine.role == Role::Control && *id != place.machine.id;
        waits.then(|| Reason::Turn {
            after: name.clone(),
        })
    }

    /// Whether another member of the control plane is out of service: whatever the budgets
    /// say, they go one at a time.
    fn member_out(&self, place: &Place<'_>) -> Option<Reason> {
        if place.machine.role != Role::Control {
            return None;
        }
        let out = |other: &&Place<'_>| {
            let id = other.machine.id;
            id != place.machine.id && self.out.iter().any(|out| out.machine == id)
        };
        let mut out = self.survey.members().filter(out);
        let by = out.next()?.machine.name.to_string();
        Some(Reason::Budget {
            scope: Scope::ControlPlane,
            by,
            unavailable: 1 + count(out),
            budget: 1,
        })
    }

    /// Whether somebody gave up on cleaning a given machine.
    pub(super) fn given_up(&self, place: &Place<'_>) -> bool {
        given_up(self.view, place)
    }

    /// When another takes the place of a machine that does not serve, where nothing changes until then.
    pub(super) fn replaced_at(&self, place: &Place<'_>) -> Option<Timestamp> {
        advance::replaced_at(self.view, &self.ward, place.machine)
    }

    /// Who asked that this be left undone.
    pub(super) fn cancelled(&self, machine: MachineId, kind: Kind) -> Option<String> {
        cancelled(self.view, machine, kind).map(str::to_owned)
    }

    /// Whether a task of this plan or an unfinished one keeps its node from its own work.
    fn is_disturbed(&self, place: &Place<'_>) -> bool {
        let busy = self.busy.get(&place.machine.id);
        busy.is_some_and(|kind| place.disturbed_by(*kind) || *kind == Kind::Uncordon)
    }

    /// Whether a task of this plan or an unfinished one does this to the machine.
    pub(super) fn is_doing(&self, place: &Place<'_>, kind: Kind) -> bool {
        self.busy.get(&place.machine.id) == Some(&kind)
    }

    /// Whether a task of this plan or an unfinished one does this to any machine.
    pub(super) fn is_done_anywhere(&self, kind: Kind) -> bool {
        self.busy.values().any(|doing| *doing == kind)
    }

    /// Whether it was said already that the control plane is lost.
    pub(super) fn is_told_lost(&self) -> bool {
        self.held.iter().any(|held| held.reason.is_loss())
    }

    /// Whether it was said already why this must wait.
    pub(super) fn is_held(&self, kind: Kind) -> bool {
        self.held.iter().any(|held| held.kind == kind)
    }

    /// Whether a task of this plan or an unfinished one touches the machine.
    pub(super) fn is_busy(&self, place: &Place<'_>) -> bool {
        self.busy.contains_key(&place.machine.id)
    }

    /// The machine from which something is done to the whole cluster: the one that does it, else the
    /// first member of the control plane that fits and has nothing else to do, else the first.
    pub(super) fn member_for(
        &self,
        kind: Kind,
        fits: impl Fn(&Place<'a>) -> bool,
    ) -> Option<Place<'a>> {
        let control = |place: &&Place<'a>| place.machine.role == Role::Control && fits(place);
        let members: Vec<&Place<'a>> = self.survey.wanted().filter(control).collect();
        let doing = members.iter().find(|place| place.doing(kind));
        let idle = members.iter().find(|place| !self.is_busy(place));
        let chosen = doing.or(idle).or(members.first())?;
        Some(**chosen)
    }

    /// Has the cluster planned again then, though nothing may have happened.
    pub(super) fn wake(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |known| known.min(at)));
    }

    /// Whether somebody asked that nothing new be begun.
    pub(super) const fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Why nothing new is begun, where somebody asked for that.
    pub(super) fn pause(&self) -> Option<Reason> {
        let by = self.paused?.to_owned();
        Some(Reason::Paused { by })
    }

    /// Keeps what is under way on a machine, where it is of this kind.
    pub(super) fn let_end(&mut self, place: &Place<'_>, kind: Kind) {
        if let Some(open) = place.open.filter(|_| place.doing(kind)) {
            self.kept.insert(open.id);
            self.busy.insert(place.machine.id, kind);
        }
    }

    /// Lets the mesh wait. One that is under way goes on: the next one adds what came since.
    pub(super) fn hold_mesh(&mut self, place: &Place<'_>, reason: Reason) {
        self.let_end(place, Kind::Mesh);
        self.hold(place, Kind::Mesh, reason);
    }

    /// Notes that `kind` must wait for `reason`; equal reasons become one line, which counts a machine
    /// once: two of its needs may be met by one secret.
    pub(super) fn hold(&mut self, place: &Place<'_>, kind: Kind, reason: Reason) {
        let same = |held: &Held| held.kind == kind && held.reason == reason;
        let known = self.held.iter().rposition(same);
        let at = known.unwrap_or(self.held.len());
        let first = self.counted.insert((at, place.machine.id));
        match known.and_then(|at| self.held.get_mut(at)) {
            Some(held) => held.machines += u32::from(first),
            None => self.held.push(Held {
                kind,
                machine: place.machine.name.clone(),
                machines: 1,
                reason,
            }),
        }
    }

    /// Notes that machines that nobody knows yet must wait for `reason`.
    pub(super) fn hold_unborn(&mut self, kind: Kind, machine: Name, machines: u32, reason: Reason) {
        self.held.push(Held {
            kind,
            machine,
            machines,
            reason,
        });
    }

    pub(super) fn finish(self) -> Plan {
        let view = self.view;
        let withdraw = view.open.iter().map(|open| open.id);
        let withdraw: Vec<_> = withdraw.filter(|id| !self.kept.contains(id)).collect();
        let budgets = &view.desired.disruption;
        let release = self.releases();
        let summary = self.summary();
        let opens = self.held.iter().filter_map(|held| held.reason.opens());
        let renewals = renewal::times(view, self.survey);
        let upkeep = advance::wake(view, &self.ward);
        let wake = opens.chain(renewals).chain(upkeep).chain(self.wake).min();
        Plan {
            cluster: view.desired.cluster,
            generation: view.desired.generation,
            parent: view.parent,
            tasks: self.tasks,
            disturbs: self.rows,
            budgets: budgets.clone(),
            withdraw,
            reopen: self.reopen,
            release,
            wake,
            held: self.held,
            summary,
        }
    }

    /// Rows of the ledger that nobody needs: the machine serves again, or is a node no more.
    fn releases(&self) -> Vec<MachineId> {
        let needed = |machine: MachineId| {
            let place = self
                .survey
                .places
                .iter()
                .find(|place| place.machine.id == machine);
            place
                .is_some_and(|place| place.slot || place.node.is_some() && self.is_disturbed(place))
        };
        self.view
            .ledger
            .iter()
            .map(|slot| slot.machine)
            .filter(|machine| !needed(*machine))
            .collect()
    }

    fn summary(&self) -> Summary {
        let tally = |role: Role| {
            let of_role = || {
                self.survey
                    .wanted()
                    .filter(move |place| place.machine.role == role)
            };
            let metal = self.view.desired.metal.iter();
            let unborn: u32 = metal.filter(|of| of.role == role).map(|of| of.count).sum();
            let wanted = count(of_role()) + unborn;
            // Who is to go serves until then, in the place of those that are still to come.
            let all = self.survey.places.iter();
            let all = all.filter(|place| place.machine.role == role && place.in_service());
            (count(all).min(wanted), wanted)
        };
        let leaving = count(
            self.survey
                .leaving()
                .filter(|place| place.life != Life::Absent && !self.given_up(place)),
        );
        let running = self.kept.len() + self.tasks.len();
        Summary {
            phase: self.phase(leaving),
            control: tally(Role::Control),
            compute: tally(Role::Compute),
            leaving,
            tasks: u32::try_from(running).unwrap_or(u32::MAX),
            message: self.message(),
        }
    }

    fn phase(&self, leaving: u32) -> Phase {
        let person = self
            .held
            .iter()
            .any(|held| held.reason.owner() == Owner::Person);
        let failing = self.held.iter().any(|held| {
            let failing = matches!(held.reason, Reason::Backoff { attempts, .. } if attempts >= ATTEMPTS_BEFORE_ERROR);
            failing || matches!(held.reason, Reason::TakenBack { .. })
        });
        let quiet = self.held.is_empty() && self.kept.is_empty() && self.tasks.is_empty();
        if person || failing {
            Phase::Error
        } else if self.view.desired.tombstone {
            if leaving == 0 && quiet {
                Phase::Gone
            } else {
                Phase::Deleting
            }
        } else if !quiet {
            Phase::Scheduled
        } else if self.view.observed.silence().is_some() {
            Phase::Error
        } else {
            Phase::Done
        }
    }

    /// One sentence: what needs a person, else what fails, else what is being done.
    fn message(&self) -> String {
        let person = self
            .held
            .iter()
            .find(|held| held.reason.owner() == Owner::Person);
        let failing = self.held.iter().find(|held| {
            matches!(
                held.reason,
                Reason::Backoff { .. } | Reason::TakenBack { .. }
            )
        });
        if let Some(held) = person.or(failing) {
            return held.to_string();
        }
        let under_way = self
            .view
            .open
            .iter()
            .find(|open| self.kept.contains(&open.id));
        let named = under_way.and_then(|open| {
            let place = self
                .survey
                .places
                .iter()
                .find(|place| place.machine.id == open.machine)?;
            Some((open.action.kind(), &place.machine.name))
        });
        let first = named.or_else(|| {
            self.tasks
                .first()
                .map(|task| (task.action.kind(), &task.machine.name))
        });
        match (first, self.held.first()) {
            (Some((kind, name)), _) => {
                let more = self.kept.len() + self.tasks.len() - 1;
                let more = match more {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let removes = matches!(kind, Kind::Delete | Kind::Release);
                if self.view.desired.tombstone && !removes {
                    format!("waits for the end of {kind} {name}{more}")
                } else {
                    format!("{kind} {name}{more}")
                }
            }
            (None, Some(held)) => held.to_string(),
            (None, None) if self.view.desired.tombstone => "gone".to_owned(),
            (None, None) => match self.view.observed.silence() {
                Some(silence) => format!("its API cannot be asked: {}", silence.because),
                None => "as declared".to_owned(),
            },
        }
    }
}

/// The version that nodes go to now. Who turns up late may be further behind than anybody was when
/// that was decided: all others wait for it.
fn within_reach(desired: &Desired, runs: &[Version]) -> Version {
    let (heads_for, next) = (desired.heads_for(), hops::next(desired.version, runs));
    if next.minor < heads_for.minor {
        next
    } else {
        heads_for
    }
}

/// Whether a machine counts as out of service while work of this kind is done to it. One that
/// is upgraded or leaves was drained before.
fn takes_out(place: &Place<'_>, kind: Kind) -> bool {
    matches!(kind, Kind::Drain | Kind::Renew) || kind == Kind::Equip && place.disturbed_by(kind)
}

/// Whether a worker is changing the node at this moment.
fn changing(place: &Place<'_>) -> bool {
    let open = |open: &Open| open.state == State::Running && place.disturbed_by(open.action.kind());
    place.open.is_some_and(open)
}

fn named(place: &Place<'_>) -> (MachineId, Name) {
    (place.machine.id, place.machine.name.clone())
}

/// Whether an unfinished task does what is asked for. One that waits and was begun with
/// another secret, or would enter by another way, does not: the manifest was corrected.
fn same(draft: &Draft<'_>, place: &Place<'_>, open: &Open, action: &Action) -> bool {
    let origin = || open.origin.entered_like(&place.machine.origin);
    let may_go_on = || origin() && reaches(draft, place, open, action);
    open.action == *action && (open.state == State::Running || may_go_on())
}
