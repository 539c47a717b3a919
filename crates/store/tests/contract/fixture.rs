//! The smallest world a store test can be written in.

use model::admit::admit;
use model::care::Care;
use model::cluster::{Desired, Generation, Machine};
use model::id::ClusterId;
use model::manifest::Manifest;
use model::name::Name;
use model::observed::{ControlPlaneFact, Fact, MachineFact, NodeFact, Observation};
use model::snapshot::{RestoredFact, Snapshot, SnapshotId, SnapshotsFact, Taking};
use model::source;
use model::task::{Action, Task};
use model::time::Timestamp;
use model::version::Version;
use plan::{Held, Plan, Reason};
use std::time::Duration;
use store::{
    Allowed, Claim, ClusterView, CommitError, Ended, Recorded, Store, Submission, SubmitError,
    Submitted,
};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const WORKER: &str = "worker-1";

/// So many seconds after the beginning of the test.
pub(crate) const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000_000 + seconds * 1000)
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(crate) fn project() -> Name {
    Name::default_project()
}

/// A manifest with one pool of control machines and one of workers for all its clusters.
pub(crate) fn text(manifest: &str, clusters: &[&str], control: u32, workers: u32) -> String {
    let clusters: Vec<_> = clusters
        .iter()
        .zip(0..)
        .map(|(name, net)| {
            format!(
                "      - {{name: {name}, version: v1.34.1, network: 10.{net}.0.0/16, \
                 pools: {{control: [brain], compute: [muscle]}}}}\n"
            )
        })
        .collect();
    let clusters = clusters.concat();
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {manifest}}}
spec:
  providers:
    - {{name: lab, providerType: simulated}}
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: north}}, count: {control}, serverType: small, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: north}}, count: {workers}, serverType: small, image: debian-12}}
  kubernetes:
    clusters:
{clusters}"
    )
}

/// A manifest whose cluster has one made control machine and given workers.
pub(crate) fn text_with_given(manifest: &str, cluster: &str, endpoints: &str) -> String {
    format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: {manifest}}}
spec:
  providers:
    - {{name: lab, providerType: simulated}}
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: north}}, count: 1, serverType: small, image: debian-12}}
    static:
      - {{name: attic, nodes: [{endpoints}]}}
  kubernetes:
    clusters:
      - {{name: {cluster}, version: v1.34.1, network: 10.8.0.0/24, pools: {{control: [brain], compute: [attic]}}}}
"
    )
}

/// A text with some of its words replaced, each of which must be there.
#[track_caller]
pub(crate) fn edited(text: &str, edits: &[(&str, &str)]) -> String {
    let mut edited = text.to_owned();
    for (from, to) in edits {
        assert!(edited.contains(from), "there is no `{from}` to replace");
        edited = edited.replace(from, to);
    }
    edited
}

/// The same for a manifest whose workers share the fate of a rack: one may be out of service
/// at a time, of all clusters together.
pub(crate) fn in_a_rack(text: &str) -> String {
    edited(
        text,
        &[
            (
                "  nodePools:",
                "  disruption: {groups: [{name: rack, unavailable: 1}]}\n  nodePools:",
            ),
            (
                "{name: muscle,",
                "{name: muscle, disruption: {group: rack},",
            ),
        ],
    )
}

pub(crate) fn admitted(text: &str) -> Manifest {
    admit(&source::parse(text).unwrap()).unwrap()
}

pub(crate) fn submission(text: &str) -> Submission {
    Submission {
        project: project(),
        manifest: admitted(text),
        text: text.to_owned(),
        author: "ana".into(),
        parent: None,
        allow: Allowed::default(),
        key: None,
    }
}

pub(crate) async fn submit(store: &Store, text: &str) -> Result<Submitted, SubmitError> {
    store.submit(submission(text), at(0)).await
}

/// The same into another project than the usual one.
pub(crate) async fn submit_to(
    store: &Store,
    project: &Name,
    text: &str,
) -> Result<Submitted, SubmitError> {
    let submission = Submission {
        project: project.clone(),
        ..submission(text)
    };
    store.submit(submission, at(0)).await
}

/// A cluster with one control machine and so many workers, as declared and not planned.
pub(crate) async fn cluster(store: &Store, name: &str, workers: u32) -> ClusterId {
    let submitted = submit(store, &text(name, &[name], 1, workers))
        .await
        .unwrap();
    submitted.changed[0].0
}

pub(crate) async fn view(store: &Store, cluster: ClusterId) -> ClusterView {
    store.cluster_view(cluster).await.unwrap().unwrap()
}

/// Plans one cluster and commits the plan.
pub(crate) async fn plan(store: &Store, cluster: ClusterId, now: Timestamp) {
    let plan = plan::plan(&view(store, cluster).await.view(now));
    store.commit(plan, now).await.unwrap();
}

/// Plans one cluster as the engine does: what the store refuses now is held back, and told.
pub(crate) async fn plan_and_hold(store: &Store, cluster: ClusterId, now: Timestamp) -> Vec<Held> {
    let mut plan = plan::plan(&view(store, cluster).await.view(now));
    loop {
        match store.commit(plan.clone(), now).await {
            Ok(()) => return plan.held,
            Err(CommitError::Refused { machine, reason }) => plan.hold_back(machine, &reason),
            Err(error @ (CommitError::Stale | CommitError::Store(_))) => panic!("{error}"),
        }
    }
}

/// What a commit is refused for.
pub(crate) async fn refusal(store: &Store, plan: Plan, now: Timestamp) -> Reason {
    match store.commit(plan, now).await {
        Err(CommitError::Refused { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Claims all that is due.
pub(crate) async fn claim(store: &Store, now: Timestamp) -> Vec<Claim> {
    store.claim(WORKER, 500, 500, LEASE, now).await.unwrap()
}

pub(crate) async fn record(store: &Store, claim: Claim, ended: Ended, now: Timestamp) -> Recorded {
    store
        .record(claim, ended, Vec::new(), Vec::new(), Vec::new(), now)
        .await
        .unwrap()
}

/// Plans and does all there is to do, the way a driver for whom all goes well would.
pub(crate) async fn settle(store: &Store, cluster: ClusterId, now: Timestamp) {
    for _ in 0..100 {
        let Some(view) = store.cluster_view(cluster).await.unwrap() else {
            return;
        };
        let plan = plan::plan(&view.view(now));
        let told = view.is_told(&plan, now);
        if !told {
            store.commit(plan, now).await.unwrap();
        }
        let claims = claim(store, now).await;
        if told && claims.is_empty() {
            return;
        }
        for claim in claims {
            let seen = effect(&claim.task, now);
            assert_eq!(
                store
                    .record(claim, Ended::Done, seen, Vec::new(), Vec::new(), now)
                    .await
                    .unwrap(),
                Recorded::Yes
            );
        }
    }
    panic!("{cluster} does not settle");
}

/// What would be seen after a task was done.
pub(crate) fn effect(task: &Task, now: Timestamp) -> Vec<Observation> {
    let machine = &task.machine;
    let joined = |version: Version, cordoned: bool, care: Option<&Care>| {
        Fact::Node(
            machine.id,
            NodeFact::Joined {
                ready: true,
                cordoned,
                version,
                care: care.map(Care::fingerprint),
                asks: false,
                gated: false,
            },
        )
    };
    let facts = match &task.action {
        Action::Create | Action::CreateExposed | Action::Prepare => vec![running(machine)],
        Action::Init { version, care, .. } => {
            vec![
                Fact::ControlPlane(ControlPlaneFact::started()),
                Fact::Snapshots(SnapshotsFact::none_since(now)),
                joined(*version, false, Some(care)),
            ]
        }
        Action::Join { version, care, .. } => vec![joined(*version, false, Some(care))],
        Action::Tend { care } => vec![joined("v1.34.1".parse().unwrap(), false, Some(care))],
        Action::Upgrade { version } => vec![joined(*version, false, None)],
        Action::Drain => vec![joined("v1.34.1".parse().unwrap(), true, None)],
        Action::Uncordon | Action::Readmit { .. } => {
            vec![joined("v1.34.1".parse().unwrap(), false, None)]
        }
        Action::Leave => vec![Fact::Node(machine.id, NodeFact::Absent)],
        Action::Clear { leftovers } => {
            let gone = leftovers.iter();
            gone.map(|left| Fact::Node(left.machine, NodeFact::Absent))
                .collect()
        }
        Action::Delete | Action::Release => vec![Fact::Machine(machine.id, MachineFact::Absent)],
        Action::Key
        | Action::Equip { .. }
        | Action::Mesh { .. }
        | Action::Balance { .. }
        | Action::Name { .. }
        | Action::Expose
        | Action::Shut
        | Action::Install { .. }
        | Action::Renew { .. } => Vec::new(),
        Action::Snapshot { taking } => vec![saved(taking, now)],
        Action::Restore { restoring } => vec![Fact::Restored(RestoredFact {
            snapshot: restoring.snapshot.clone(),
            wish: restoring.wish,
        })],
    };
    facts
        .into_iter()
        .map(|fact| Observation {
            cluster: task.cluster,
            fact,
            at: now,
        })
        .collect()
}

/// That a snapshot was taken, the only one.
fn saved(taking: &Taking, now: Timestamp) -> Fact {
    let snapshot = Snapshot {
        id: SnapshotId::of(now, "0a1b2c3d").unwrap(),
        size: 1,
        version: taking.version,
        before: taking.before,
    };
    Fact::Snapshots(SnapshotsFact {
        since: now,
        kept: vec![snapshot],
        answered: taking.wish,
    })
}

pub(crate) fn running(machine: &Machine) -> Fact {
    let reference = format!("vm-{}", machine.name);
    Fact::Machine(
        machine.id,
        MachineFact::Running {
            reference,
            address: machine.address.into(),
        },
    )
}

pub(crate) fn absent(machine: &Machine) -> Fact {
    Fact::Machine(machine.id, MachineFact::Absent)
}

/// The machines of a desired state: those to stay, then, in brackets, those to leave.
pub(crate) fn machines(desired: &Desired) -> String {
    let staying = desired
        .machines
        .iter()
        .map(|machine| machine.name.to_string());
    let leaving = desired
        .leaving
        .iter()
        .map(|machine| format!("({})", machine.name));
    staying.chain(leaving).collect::<Vec<_>>().join(" ")
}

/// Every event so far: kind, object without its id, sentence.
pub(crate) async fn events(store: &Store) -> String {
    let events = store.events(None, 0, 1000).await.unwrap();
    let lines = events.into_iter().map(|event| {
        let object = event.object.split("/task-").next().unwrap_or_default();
        format!("{} {object}: {}\n", event.kind, event.message)
    });
    lines.collect()
}

pub(crate) const fn generation(number: u64) -> Generation {
    Generation(number)
}
