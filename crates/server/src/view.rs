//! From what is stored to what the contract shows.
//!
//! Outward only: nothing here decides, and every type of the store is taken apart by name
//! so that a new field is either shown or left out on purpose.

use api::{
    ChangeView, ClusterHead, ClusterState, ClusterSummary, EventView, GenerationView, HeldView,
    HostSeen, IntentView, LogLine, MachineSeen, MachineView, ManifestGeneration, ManifestState,
    ManifestView, NewerModulesView, NodeSeen, Owner, ProjectView, TaskState, TaskView, TokenState,
    TokenView,
};
use model::name::Name;
use model::observed::Fact;
use model::task::State;
use model::time::Timestamp;
use plan::{Held, Offer, Phase, Reason, Summary};
use store::{
    Change, ClusterRow, Event, GenerationRow, MachineRow, ManifestRow, ProjectRow, Quota, TaskRow,
    TokenRow,
};

/// Where a cluster stands.
pub(crate) const fn state(phase: Phase) -> ClusterState {
    match phase {
        Phase::Pending => ClusterState::Pending,
        Phase::Scheduled => ClusterState::Scheduled,
        Phase::Done => ClusterState::Done,
        Phase::Error => ClusterState::Error,
        Phase::Deleting => ClusterState::Deleting,
        Phase::Gone => ClusterState::Gone,
    }
}

/// Where a manifest stands, from where its clusters stand.
pub(crate) fn state_of_manifest(clusters: impl IntoIterator<Item = Phase>) -> ManifestState {
    match Phase::of_manifest(clusters) {
        Phase::Pending => ManifestState::Pending,
        Phase::Scheduled | Phase::Deleting => ManifestState::Scheduled,
        Phase::Done | Phase::Gone => ManifestState::Done,
        Phase::Error => ManifestState::Error,
    }
}

/// One cluster in one line.
pub(crate) fn summary(name: String, summary: Summary) -> ClusterSummary {
    let Summary {
        phase,
        control,
        compute,
        leaving,
        tasks,
        message,
    } = summary;
    ClusterSummary {
        name,
        state: state(phase),
        control: control.into(),
        compute: compute.into(),
        leaving,
        tasks,
        message,
    }
}

/// One cluster without its machines and tasks.
pub(crate) fn head(row: ClusterRow) -> ClusterHead {
    let ClusterRow {
        id,
        project,
        manifest,
        name,
        incarnation,
        generation,
        version,
        summary: line,
        held: waits,
        probed_at,
        updated_at,
    } = row;
    ClusterHead {
        id: id.to_string(),
        project: project.into(),
        manifest: manifest.into(),
        incarnation,
        generation: generation.0,
        version: version.to_string(),
        summary: summary(name.into(), line),
        held: plan::told(&waits).iter().map(held).collect(),
        observed_at: probed_at.map(Into::into),
        updated_at: updated_at.into(),
    }
}

/// Work that waits.
pub(crate) fn held(held: &Held) -> HeldView {
    let (task, due_at) = match &held.reason {
        Reason::Backoff { task, due, .. } => (Some(task), Some(*due)),
        Reason::Stuck { task, .. } => (Some(task), None),
        Reason::Window { opens: at }
        | Reason::Repair { due: at, .. }
        | Reason::TakenBack { due: at, .. }
        | Reason::Vain { due: at, .. }
        | Reason::Leftover {
            ends: plan::Ends::Due(at),
            ..
        } => (None, Some(*at)),
        Reason::Budget { .. }
        | Reason::Quorum { .. }
        | Reason::Additions { .. }
        | Reason::ControlPlane { .. }
        | Reason::Turn { .. }
        | Reason::Cancelled { .. }
        | Reason::Paused { .. }
        | Reason::Stopped { .. }
        | Reason::ControlPlaneLost
        | Reason::Running { .. }
        | Reason::Unreachable
        | Reason::Unusable { .. }
        | Reason::NotReady
        | Reason::Sick { .. }
        | Reason::Unwell { .. }
        | Reason::Claimed { .. }
        | Reason::Snapshot { .. }
        | Reason::Secret { .. }
        | Reason::SameKey { .. }
        | Reason::Locked { .. }
        | Reason::Successor { .. }
        | Reason::Leftover { .. }
        | Reason::Namesake { .. }
        | Reason::Unnamed { .. }
        | Reason::Unable { .. }
        | Reason::Unmatched { .. }
        | Reason::Modules { .. }
        | Reason::Data { .. }
        | Reason::Quota { .. } => (None, None),
    };
    HeldView {
        kind: held.kind.into(),
        machine: held.machine.to_string(),
        machines: held.machines,
        reason: held.reason.word().to_owned(),
        text: held.to_string(),
        owner: match held.reason.owner() {
            plan::Owner::Slipway => Owner::Slipway,
            plan::Owner::Person => Owner::Person,
        },
        next_action: held.next_action(),
        task: task.map(ToString::to_string),
        due_at: due_at.map(Into::into),
    }
}

/// One task.
pub(crate) fn task(row: TaskRow) -> TaskView {
    let TaskRow {
        task,
        state,
        attempts,
        fence: _,
        not_before,
        lease_until,
        worker,
        error,
        created_at,
        updated_at,
    } = row;
    let kind = task.action.kind();
    TaskView {
        id: task.id.to_string(),
        cluster: task.cluster_name.into(),
        generation: task.generation.0,
        machine: task.machine.name.into(),
        kind: kind.into(),
        effect: kind.effect().into(),
        state: TaskState::from(state),
        attempts,
        due_at: (state == State::Waiting).then(|| not_before.into()),
        lease_until: lease_until.map(Into::into),
        worker,
        error,
        created_at: created_at.into(),
        updated_at: updated_at.into(),
    }
}

/// One machine.
pub(crate) fn machine(row: &MachineRow) -> MachineView {
    let MachineRow {
        machine,
        cluster,
        cluster_id,
        leaving,
        seen,
    } = row;
    MachineView::new((cluster, *cluster_id), machine, *leaving, seen)
}

/// Something that was seen to change.
pub(crate) fn change(change: Change) -> ChangeView {
    let Change { at, source, fact } = change;
    let mut seen = ChangeView {
        at: at.into(),
        source: source.as_str().to_owned(),
        machine: None,
        node: None,
        host: None,
        certificates_end: None,
    };
    match fact {
        Fact::Machine(_, fact) => seen.machine = Some(MachineSeen::from(&(fact, at))),
        Fact::Node(_, fact) => seen.node = Some(NodeSeen::from(&(fact, at))),
        Fact::Host(_, fact) => seen.host = Some(HostSeen::from(&(fact, at))),
        Fact::Certificates(_, fact) => seen.certificates_end = Some(fact.end.into()),
        // Facts about the whole cluster are not kept under any machine, and events tell of names.
        Fact::ControlPlane(_)
        | Fact::Access(_)
        | Fact::Addons(_)
        | Fact::Strays(_)
        | Fact::Silence(_)
        | Fact::Snapshots(_)
        | Fact::Restored(_)
        | Fact::Names(..)
        | Fact::Port(..)
        | Fact::Commit(..)
        | Fact::Unresolved(..) => {}
    }
    seen
}

/// Newer modules of a pool.
pub(crate) fn newer_modules(offer: &Offer, cluster: &Name) -> NewerModulesView {
    NewerModulesView {
        pool: offer.pool.to_string(),
        reference: offer.reference.to_string(),
        from: offer.from.to_string(),
        to: offer.to.to_string(),
        since: offer.since.map(Into::into),
        next_action: offer.next_action(cluster),
    }
}

/// One manifest.
pub(crate) fn manifest(row: ManifestRow) -> ManifestView {
    let ManifestRow {
        project,
        name,
        generation,
        author,
        created_at,
        deleted,
        text,
        clusters,
    } = row;
    ManifestView {
        project: project.into(),
        name: name.into(),
        generation: generation.0,
        author,
        created_at: created_at.into(),
        deleted,
        state: state_of_manifest(clusters.iter().map(|(_, summary)| summary.phase)),
        text,
        clusters: clusters
            .into_iter()
            .map(|(name, line)| summary(name.into(), line))
            .collect(),
    }
}

/// One manifest as it was declared at one time.
pub(crate) fn manifest_generation(row: ManifestRow) -> ManifestGeneration {
    let ManifestRow {
        project,
        name,
        generation,
        author,
        created_at,
        deleted,
        text,
        clusters: _,
    } = row;
    ManifestGeneration {
        project: project.into(),
        name: name.into(),
        generation: generation.0,
        author,
        created_at: created_at.into(),
        deleted,
        text,
    }
}

/// One accepted change.
pub(crate) fn generation(row: GenerationRow) -> GenerationView {
    let GenerationRow {
        generation,
        author,
        at,
        deleted,
        because,
        brief,
    } = row;
    let kept = |text: String| Some(text).filter(|text| !text.is_empty());
    GenerationView {
        generation: generation.0,
        author: Some(author),
        at: at.into(),
        deleted,
        because: kept(because),
        changed: kept(brief),
    }
}

/// Lines of a log, which were read after that place.
///
/// The store puts a line where others are missing, in the place of the last of them. Where
/// only one is missing its place looks like any other, and the words must tell.
pub(crate) fn lines(after: u64, lines: Vec<store::LogLine>) -> Vec<LogLine> {
    let mut expected = after.saturating_add(1);
    let line = |line: store::LogLine| {
        let store::LogLine {
            seq,
            attempt,
            at,
            text,
        } = line;
        let missing = seq.saturating_sub(expected) + 1;
        let dropped = (missing > 1 || text == ONE_DROPPED).then_some(missing);
        expected = seq.saturating_add(1);
        LogLine {
            seq,
            attempt,
            at: at.into(),
            text,
            dropped,
        }
    };
    lines.into_iter().map(line).collect()
}

/// What the store writes where one line is missing; a test has it write so.
const ONE_DROPPED: &str = "… 1 lines were dropped here …";

/// One event.
pub(crate) fn event(event: Event) -> EventView {
    let Event {
        id,
        at,
        project,
        kind: what,
        object,
        message,
    } = event;
    // The store says `task/task-1`; the contract says `task` and `task-1`.
    let (kind, object) = object.split_once('/').unwrap_or(("", &object));
    let (kind, object) = (kind.to_owned(), object.to_owned());
    EventView {
        id,
        at: at.into(),
        project: project.into(),
        what,
        kind,
        object,
        message,
    }
}

/// One project.
pub(crate) fn project(row: ProjectRow) -> ProjectView {
    let ProjectRow {
        name,
        quota:
            Quota {
                clusters: clusters_max,
                machines: machines_max,
                environments,
            },
        clusters,
        machines,
        created_at,
        updated_at,
    } = row;
    ProjectView {
        name: name.into(),
        quota: api::Quota {
            clusters: clusters_max,
            machines: machines_max,
            environments,
        },
        used: api::Used { clusters, machines },
        created_at: created_at.into(),
        updated_at: updated_at.into(),
    }
}

/// One token, as it stands now.
pub(crate) fn token(row: TokenRow, now: Timestamp) -> TokenView {
    let TokenRow {
        id,
        name,
        project,
        role,
        created_by,
        created_at,
        expires_at,
        last_used_at,
        revoked_at,
    } = row;
    let state = if revoked_at.is_some() {
        TokenState::Revoked
    } else if expires_at.is_some_and(|end| end <= now) {
        TokenState::Expired
    } else {
        TokenState::Active
    };
    TokenView {
        id: id.to_string(),
        name,
        role: role.into(),
        project: project.map(Into::into),
        state,
        created_by,
        created_at: created_at.into(),
        expires_at: expires_at.map(Into::into),
        last_used_at: last_used_at.map(Into::into),
        revoked_at: revoked_at.map(Into::into),
    }
}

/// One page of a list, with every item shown.
pub(crate) fn listed<T, U>(listed: store::Listed<T>, show: impl FnMut(T) -> U) -> api::Listed<U> {
    let store::Listed { items, next } = listed;
    api::Listed {
        items: items.into_iter().map(show).collect(),
        next,
    }
}

/// One wish.
pub(crate) fn intent(intent: &model::intent::Intent, about: Option<String>) -> IntentView {
    IntentView {
        about,
        ..intent.into()
    }
}
