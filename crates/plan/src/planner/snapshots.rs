//! Snapshots of etcd: by schedule, before upgrades, when somebody asks, and the way back.

use super::View;
use super::draft::Draft;
use super::survey::{Life, Place, cancelled};
use crate::held::Reason;
use model::cluster::{Machine, Role};
use model::id::IntentId;
use model::intent::Wish;
use model::snapshot::{EtcdBackup, Restoring, SnapshotId, SnapshotsFact, Taking};
use model::task::{Action, Kind, Open, State};
use model::time::Timestamp;
use model::version::Version;

/// Takes a snapshot when one is due or wished; nobody has to wait for it.
pub(super) fn take(draft: &mut Draft<'_>) {
    let (wish, due) = (wished(draft.view), due(draft));
    // One that is taken before an upgrade is as good, and waits for the same.
    let taken = draft.is_done_anywhere(Kind::Snapshot) || draft.is_held(Kind::Snapshot);
    if taken || wish.is_none() && (!due || draft.is_paused()) {
        return;
    }
    if let Some(place) = chosen(draft) {
        let action = taking(draft, None);
        draft.want(&place, action);
    }
}

/// Whether a snapshot is due; if it is not yet, the cluster is looked at again when it is.
fn due(draft: &mut Draft<'_>) -> bool {
    let view = draft.view;
    let Some(backup) = &view.desired.etcd_backup else {
        return false;
    };
    if !view.observed.initialised {
        return false;
    }
    // Of a cluster that was never saved nobody knows when it should have been.
    let next = known(view).map_or(view.now, |known| known.due(backup.every));
    if next > view.now {
        draft.wake(next);
    }
    next <= view.now
}

/// Why a node that would be the first of its cluster with the new version must wait: etcd was not
/// saved before. Asks for that.
pub(super) fn comes_first(draft: &mut Draft<'_>, place: &Place<'_>) -> Option<Reason> {
    let version = draft.version;
    let newer = |member: &Place<'_>| member.node.is_some_and(|node| node.version >= version);
    let leads = place.machine.role == Role::Control && !draft.survey.members().any(newer);
    let saved = known(draft.view).is_some_and(|known| known.before(version, draft.view.now));
    if !leads || saved || draft.view.desired.etcd_backup.is_none() {
        return None;
    }
    if let Some(place) = chosen(draft) {
        let action = taking(draft, Some(version));
        draft.want(&place, action);
    }
    Some(Reason::Snapshot { before: version })
}

/// The member that is asked for what etcd knows: the one that was asked already, else the first
/// that has nothing else to do.
fn chosen<'a>(draft: &Draft<'a>) -> Option<Place<'a>> {
    let able = |place: &&Place<'_>| place.wanted && place.ready_control();
    let mut members = draft.survey.members().filter(able);
    let begun = |place: &&Place<'_>| place.doing(Kind::Snapshot);
    let asked = draft.survey.members().filter(able).find(begun);
    let idle = |place: &&Place<'_>| {
        let runs = place.open.is_some_and(|open| open.state == State::Running);
        !runs && !draft.is_busy(place)
    };
    asked.or_else(|| members.find(idle)).copied()
}

fn taking(draft: &Draft<'_>, before: Option<Version>) -> Action {
    let desired = draft.view.desired;
    let usual = EtcdBackup::default();
    let backup = desired.etcd_backup.as_ref().unwrap_or(&usual);
    let nodes = || draft.survey.wanted().filter_map(|place| place.node);
    let members = draft.survey.members().filter_map(|place| place.node);
    let runs = members.map(|node| node.version).min();
    let outdated = nodes().any(|node| node.version < draft.version);
    Action::Snapshot {
        taking: Taking {
            version: runs.unwrap_or(desired.version),
            before,
            wish: wished(draft.view),
            to: backup.to.clone(),
            keep: backup.keep,
            guard: outdated.then_some(draft.version),
        },
    }
}

fn known<'a>(view: &View<'a>) -> Option<&'a SnapshotsFact> {
    let (known, _) = view.observed.snapshots.as_ref()?;
    Some(known)
}

/// The first wish for a snapshot that is not fulfilled.
fn wished(view: &View<'_>) -> Option<IntentId> {
    let answered = known(view).and_then(|known| known.answered);
    let mut wishes = view.intents.iter().filter(|intent| intent.counts(view.now));
    let open = wishes.find(|intent| intent.wish == Wish::Snapshot && Some(intent.id) != answered);
    open.map(|intent| intent.id)
}

/// A snapshot that is to be put back, the wish for it, and since when that is.
pub(super) type Back = (SnapshotId, IntentId, Timestamp);

/// What is to be put back, as long as it is not, and on whose behalf.
pub(super) fn to_restore(view: &View<'_>) -> Option<Back> {
    let restored = view.observed.restored.as_ref();
    let done = |id: IntentId| restored.is_some_and(|(restored, _)| restored.wish == id);
    let restoring = |open: &Open| {
        if let Action::Restore { restoring } = &open.action {
            let (wish, at) = (restoring.wish, restoring.asked_at);
            Some((restoring.snapshot.clone(), wish, at))
        } else {
            None
        }
    };
    // Whatever becomes of it, nothing else may begin before it has ended.
    let mut running = view.open.iter().filter(|open| open.state == State::Running);
    if let Some(running) = running.find_map(restoring) {
        return Some(running);
    }
    // What was begun is finished, whoever has thought better of it: half a control plane serves
    // nobody.
    let goes_on =
        |open: &&Open| open.attempts > 0 && cancelled(view, open.machine, Kind::Restore).is_none();
    let begun = view.open.iter().filter(goes_on).filter_map(restoring);
    let wishes = view.intents.iter().filter(|intent| intent.counts(view.now));
    let wishes = wishes.filter_map(|intent| {
        if let Wish::Restore { snapshot } = &intent.wish {
            Some((snapshot.clone(), intent.id, intent.created_at))
        } else {
            None
        }
    });
    begun.chain(wishes).find(|(_, wish, _)| !done(*wish))
}

/// Puts a snapshot back. Nothing else is done to the cluster until that has ended.
pub(super) fn restore(draft: &mut Draft<'_>, (snapshot, wish, asked_at): Back) {
    let survey = draft.survey;
    let members = || survey.members().filter(|place| place.wanted);
    let begun = survey.places.iter().find(|place| {
        let runs = |open: &Open| open.state == State::Running;
        place.doing(Kind::Restore) && place.open.is_some_and(runs)
    });
    let begun = begun.or_else(|| members().find(|place| place.doing(Kind::Restore)));
    let Some(carrier) = begun.or_else(|| members().next()) else {
        let control = |place: &&Place<'_>| place.machine.role == Role::Control;
        if let Some(first) = survey.wanted().find(control) {
            draft.hold(first, Kind::Restore, Reason::ControlPlaneLost);
        }
        return;
    };
    // Members that keep what they know and come back together would be a second etcd.
    let silent = members().find(|place| place.life == Life::Unreachable);
    if let Some(silent) = silent {
        draft.hold(silent, Kind::Restore, Reason::Unreachable);
        draft.let_end(carrier, Kind::Restore);
        return;
    }
    let elsewhere =
        |open: &&Open| open.state == State::Running && open.action.kind() != Kind::Restore;
    if let Some(other) = draft.view.open.iter().find(elsewhere) {
        let kind = other.action.kind();
        draft.hold(carrier, Kind::Restore, Reason::Running { kind });
        return;
    }
    let usual = EtcdBackup::default();
    let backup = draft.view.desired.etcd_backup.as_ref().unwrap_or(&usual);
    let restoring = Restoring {
        snapshot,
        wish,
        asked_at,
        from: backup.to.clone(),
        nodes: nodes(draft),
    };
    draft.want(carrier, Action::Restore { restoring });
}

/// All nodes that answer, members of etcd first.
fn nodes(draft: &Draft<'_>) -> Vec<Machine> {
    let answers = |place: &&Place<'_>| place.node.is_some() && place.life == Life::Running;
    let nodes = || draft.survey.places.iter().filter(answers);
    let control = |place: &&Place<'_>| place.machine.role == Role::Control;
    let members = nodes().filter(control);
    let others = nodes().filter(|place| !control(place));
    members
        .chain(others)
        .map(|place| place.machine.clone())
        .collect()
}
