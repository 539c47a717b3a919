//! What the API says of the nodes of a cluster, and how its control plane is.

use super::{Kube, MEMBER_PATIENCE, Trouble};
use crate::api::stray::{is_of, strays};
use crate::api::{self, Health};
use crate::error::{Error, Kind};
use crate::kubeadm;
use driver::{Context, Target};
use futures_util::future::join_all;
use model::addon::AddonsFact;
use model::cluster::{Machine, Role};
use model::id::{ClusterId, MachineId};
use model::observed::{
    CertificatesFact, ControlPlaneFact, Fact, Member, NodeFact, Observation, Silence, Wellbeing,
};
use model::secret::Secret;
use model::time::Timestamp;
use model::version::Version;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a host may take to tell of its part of the control plane: nodes are not to wait for
/// it, and what is not known by then is left out.
const LOOK_MAX: Duration = Duration::from_secs(8);

/// How long certificates are left alone that were looked at: they do not end sooner for that.
const CERTIFICATES_EVERY: Duration = Duration::from_mins(10);

/// How long an API may be silent before that is told: whoever is started again is so for a while.
const SILENT_MAX: Duration = Duration::from_mins(1);

/// As many letters of what a kubelet says as people are shown.
const TOLD_MAX: usize = 160;

/// What earlier looks have seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Looks {
    /// When the certificates of which machine were last looked at.
    certificates: Arc<Mutex<BTreeMap<MachineId, Instant>>>,
    /// The members of etcd, as they were last told: one that is too sick to answer in time is not
    /// well for that.
    etcd: Latest<Vec<Member>>,
    /// The nodes that somebody locked, as they were last read: a list that did not come unlocks none.
    locks: Latest<BTreeMap<String, String>>,
    /// Since when the API of which cluster cannot be asked.
    silent: Arc<Mutex<BTreeMap<ClusterId, Instant>>>,
}

/// What was told last of each cluster.
type Latest<T> = Arc<Mutex<BTreeMap<ClusterId, T>>>;

/// What is told now, or else what was last told.
fn latest<T: Clone + Default>(of: &Latest<T>, cluster: ClusterId, told: Option<T>) -> T {
    let known = of.lock();
    let mut known = known.unwrap_or_else(PoisonError::into_inner);
    match told {
        Some(told) => {
            known.insert(cluster, told.clone());
            told
        }
        None => known.get(&cluster).cloned().unwrap_or_default(),
    }
}

impl Looks {
    fn is_due(&self, machine: MachineId) -> bool {
        let looks = self.certificates.lock();
        let looks = looks.unwrap_or_else(PoisonError::into_inner);
        let last = looks.get(&machine);
        last.is_none_or(|last| last.elapsed() >= CERTIFICATES_EVERY)
    }

    fn done(&self, machine: MachineId) {
        let looks = self.certificates.lock();
        let mut looks = looks.unwrap_or_else(PoisonError::into_inner);
        looks.retain(|_, last| last.elapsed() < CERTIFICATES_EVERY);
        looks.insert(machine, Instant::now());
    }

    /// The API of a cluster was asked.
    fn heard(&self, cluster: ClusterId) {
        let silent = self.silent.lock();
        let mut silent = silent.unwrap_or_else(PoisonError::into_inner);
        silent.remove(&cluster);
    }

    /// The API of a cluster could not be asked; how long that has been so.
    fn unheard(&self, cluster: ClusterId) -> Duration {
        let silent = self.silent.lock();
        let mut silent = silent.unwrap_or_else(PoisonError::into_inner);
        silent.entry(cluster).or_insert_with(Instant::now).elapsed()
    }

    /// The members as they are told now, or else as they were last told.
    fn members(&self, cluster: ClusterId, told: Option<Vec<Member>>) -> Vec<Member> {
        latest(&self.etcd, cluster, told.filter(|told| !told.is_empty()))
    }

    /// The locks as they are read now, or else as they were last read.
    fn locks(
        &self,
        cluster: ClusterId,
        nodes: Option<&[api::node::Node]>,
    ) -> BTreeMap<String, String> {
        latest(&self.locks, cluster, nodes.map(locks))
    }
}

impl Kube {
    /// Looks at all nodes of a cluster by one question to its API, and at its control plane. Where
    /// nobody answers nothing is told of nodes: silence is not absence.
    pub(super) async fn looked_at(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let control = |machine: &&Machine| machine.role == Role::Control;
        let members: Vec<_> = target.machines.iter().filter(control).cloned().collect();
        if members.is_empty() {
            return Vec::new();
        }
        let at = cx.now();
        let kept = unless_cancelled(cx, self.kept(cx, target.cluster)).await;
        // Without one there is no control plane yet.
        let Some(Ok(kubeconfig)) = kept else {
            return Vec::new();
        };
        // Side by side: certificates are worth knowing of most when they keep the API silent.
        let ((mut facts, kept), certificates) = tokio::join!(
            self.asked(cx, target, &members, &kubeconfig),
            self.certificates(cx, target.cluster, &members, &kubeconfig)
        );
        facts.extend(certificates);
        // Whoever renews the certificates of a member keeps its kubeconfig, too.
        if let (Kept::Refused, Some(first)) = (kept, first_of(&members)) {
            let end = kubeadm::day_of(at);
            facts.push(Fact::Certificates(first.id, CertificatesFact { end }));
        }
        let seen = facts.into_iter().map(|fact| Observation {
            cluster: target.cluster,
            fact,
            at,
        });
        seen.collect()
    }

    /// What the API tells, asked of the first member that answers, and whether that knows what is
    /// kept to open it. Who is called off hands over what is known by then.
    async fn asked(
        &self,
        cx: &Context,
        target: &Target,
        members: &[Machine],
        kubeconfig: &Secret,
    ) -> (Vec<Fact>, Kept) {
        let cluster = target.cluster;
        let entering = self.entered(cx, cluster, members, kubeconfig);
        let (entered, kept) = match unless_cancelled(cx, entering).await {
            Some(Err(Trouble::Kube(error))) if error.kind == Kind::Credentials => {
                let entering = self.known_again(cx, cluster, members, error);
                (unless_cancelled(cx, entering).await, Kept::Refused)
            }
            entered => (entered, Kept::Known),
        };
        let (door, member) = match entered {
            Some(Ok(entered)) => entered,
            Some(Err(Trouble::Kube(error))) => {
                return (
                    self.silence(cluster, &error).into_iter().collect(),
                    Kept::Known,
                );
            }
            Some(Err(_)) | None => return (Vec::new(), Kept::Known),
        };
        self.looks.heard(cluster);
        let (nodes, asking, health, etcd, addons) = tokio::join!(
            unless_cancelled(cx, door.nodes()),
            unless_cancelled(cx, door.asking()),
            unless_cancelled(cx, door.health(MEMBER_PATIENCE)),
            within(cx, self.etcd(cx, target.cluster, &member)),
            within(cx, async { door.addons_seen().await.ok() })
        );
        let addons = addons.map(|addons| Fact::Addons(AddonsFact { addons }));
        let nodes = nodes.and_then(Result::ok);
        let asking = asking.and_then(Result::ok).unwrap_or_default();
        let mut failing = match health {
            Some(Ok(Health::Failing(checks))) => checks,
            Some(Ok(Health::Ready) | Err(_)) | None => Vec::new(),
        };
        failing.sort();
        let wellbeing = Wellbeing {
            failing,
            etcd: self.looks.members(target.cluster, etcd),
            troubles: nodes.as_deref().map(troubles).unwrap_or_default(),
            locks: self.looks.locks(target.cluster, nodes.as_deref()),
            silence: None,
        };
        let begun = Fact::ControlPlane(ControlPlaneFact {
            initialised: true,
            wellbeing: Some(wellbeing),
        });
        // Who looked for some of the machines cannot tell the others from strays.
        let strays = nodes
            .as_deref()
            .filter(|_| target.whole)
            .map(|nodes| Fact::Strays(strays(nodes, &target.machines)));
        let nodes = nodes
            .iter()
            .flat_map(|nodes| of_nodes(target, nodes, &asking));
        let whole = std::iter::once(begun).chain(addons).chain(strays);
        (whole.chain(nodes).collect(), kept)
    }

    /// That the API of a cluster cannot be asked, once that has lasted.
    fn silence(&self, cluster: ClusterId, error: &Error) -> Option<Fact> {
        if self.looks.unheard(cluster) < SILENT_MAX {
            return None;
        }
        let code = error.kind.code();
        // Which of its members said what last differs from look to look.
        let because = if error.kind == Kind::NoMember {
            format!("no member of its control plane answers ({code})")
        } else {
            format!("{} ({code})", error.what)
        };
        let wellbeing = Wellbeing {
            etcd: self.looks.members(cluster, None),
            locks: self.looks.locks(cluster, None),
            silence: Some(Silence {
                because,
                hint: error.kind.hint().to_owned(),
            }),
            ..Wellbeing::default()
        };
        Some(Fact::ControlPlane(ControlPlaneFact {
            initialised: true,
            wellbeing: Some(wellbeing),
        }))
    }

    async fn etcd(
        &self,
        cx: &Context,
        cluster: ClusterId,
        member: &Machine,
    ) -> Option<Vec<Member>> {
        let program = kubeadm::members(None);
        let report = self.hosts.visit(cx, cluster, member, &program).await;
        kubeadm::told_members(&report.ok()?)
    }

    /// When the certificates of control machines end, of those that were not looked at lately. That
    /// with which we come is told as one of the first member.
    async fn certificates(
        &self,
        cx: &Context,
        cluster: ClusterId,
        members: &[Machine],
        kubeconfig: &Secret,
    ) -> Vec<Fact> {
        let first = first_of(members).map(|first| first.id);
        let ours = kubeadm::kubeconfig_end(kubeconfig);
        let due = members.iter().filter(|member| self.looks.is_due(member.id));
        let looks = due.map(async |member| {
            let end = within(cx, self.certificates_of(cx, cluster, member)).await?;
            self.looks.done(member.id);
            let ours = ours.filter(|_| first == Some(member.id));
            let end = ours.map_or(end, |ours| ours.min(end));
            Some(Fact::Certificates(member.id, CertificatesFact { end }))
        });
        join_all(looks).await.into_iter().flatten().collect()
    }

    async fn certificates_of(
        &self,
        cx: &Context,
        cluster: ClusterId,
        member: &Machine,
    ) -> Option<Timestamp> {
        let program = kubeadm::certificates();
        let report = self.hosts.visit(cx, cluster, member, &program).await;
        kubeadm::certificates_end(&report.ok()?)
    }
}

/// Whether what is kept opens the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Nobody said otherwise.
    Known,
    /// It was refused, and what a member has was not.
    Refused,
}

/// The member that what we come with belongs to, always the same one.
fn first_of(members: &[Machine]) -> Option<&Machine> {
    members.iter().min_by_key(|member| member.id)
}

/// Waits for an answer; none when the look is called off before it comes.
async fn unless_cancelled<T>(cx: &Context, asking: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = cx.cancelled() => None,
        answer = asking => Some(answer),
    }
}

/// Waits for something that nobody may have to wait for.
async fn within<T>(cx: &Context, looking: impl Future<Output = Option<T>>) -> Option<T> {
    unless_cancelled(cx, timeout(LOOK_MAX, looking))
        .await?
        .ok()?
}

/// What is known of the machines that are to be nodes.
fn of_nodes(target: &Target, nodes: &[api::node::Node], asking: &BTreeSet<String>) -> Vec<Fact> {
    let machines = target.machines.iter();
    let machines = machines.filter(|machine| machine.role.is_node());
    let facts = machines.filter_map(|machine| {
        let node = nodes.iter().find(|node| is_of(node, machine));
        let asks = asking.contains(machine.name.as_str());
        let fact = node.map_or(Some(NodeFact::Absent), |node| fact(node, asks));
        fact.map(|fact| Fact::Node(machine.id, fact))
    });
    facts.collect()
}

/// Nodes that somebody locked.
fn locks(nodes: &[api::node::Node]) -> BTreeMap<String, String> {
    let locked = nodes.iter().filter_map(|node| {
        let lock = node.lock()?;
        Some((node.name.clone(), lock.to_owned()))
    });
    locked.collect()
}

/// What is wrong with nodes, as they say themselves: in words that stay the same while it does.
fn troubles(nodes: &[api::node::Node]) -> BTreeMap<String, String> {
    let nodes = nodes.iter().filter_map(|node| {
        let wrong = node.conditions.iter().filter(|condition| {
            let well = if condition.of == "Ready" {
                "True"
            } else {
                "False"
            };
            condition.status != well
        });
        let wrong: Vec<_> = wrong
            .map(|condition| {
                let not = if condition.of == "Ready" { "not " } else { "" };
                let told = steady(&condition.message);
                let told = if told.is_empty() {
                    told
                } else {
                    format!(": {told}")
                };
                format!("{not}{} ({}{told})", condition.of, condition.reason)
            })
            .collect();
        (!wrong.is_empty()).then(|| (node.name.clone(), wrong.join(", ")))
    });
    nodes.collect()
}

/// What a kubelet says, as far as it says the same again: where numbers begin it counts, often
/// seconds.
fn steady(message: &str) -> String {
    let steady = message
        .chars()
        .take_while(|letter| !letter.is_ascii_digit());
    let steady: String = steady.take(TOLD_MAX).collect();
    steady.trim().to_owned()
}

/// A node as the planner knows it, and whether its kubelet asks for a certificate; one of a version
/// that nobody knows is left out.
pub(super) fn fact(node: &api::node::Node, asks: bool) -> Option<NodeFact> {
    Some(NodeFact::Joined {
        ready: node.ready,
        cordoned: node.cordoned,
        version: node.kubelet.parse().ok()?,
        care: node.care(),
        asks,
        gated: node.gated(),
    })
}

/// Why a node is not what it should be, in words.
pub(super) fn not_ready(node: &api::node::Node, version: Version) -> String {
    if node.ready {
        let runs = &node.kubelet;
        return format!("it runs {runs} and should run {version}");
    }
    let ready = node
        .conditions
        .iter()
        .find(|condition| condition.of == "Ready");
    ready.map_or_else(
        || "it has not said yet whether it is".to_owned(),
        |condition| format!("{}: {}", condition.reason, condition.message),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::node::Condition;

    #[test]
    fn of_a_node_only_what_is_wrong_is_told() {
        let condition = |of: &str, status: &str, reason: &str| Condition {
            of: of.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "seen active 3m12s ago".to_owned(),
        };
        let node = |name: &str, conditions: Vec<Condition>| api::node::Node {
            name: name.to_owned(),
            conditions,
            ..api::node::Node::default()
        };
        let told = troubles(&[
            node(
                "well",
                vec![
                    condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                    condition("Ready", "True", "KubeletReady"),
                ],
            ),
            node(
                "full",
                vec![
                    condition("DiskPressure", "True", "KubeletHasDiskPressure"),
                    condition("Ready", "True", "KubeletReady"),
                ],
            ),
            node(
                "dead",
                vec![condition("Ready", "Unknown", "NodeStatusUnknown")],
            ),
        ]);
        let told: Vec<_> = told
            .iter()
            .map(|(node, what)| format!("{node}: {what}"))
            .collect();
        assert_eq!(
            told,
            [
                "dead: not Ready (NodeStatusUnknown: seen active)",
                "full: DiskPressure (KubeletHasDiskPressure: seen active)"
            ]
        );
    }
}
