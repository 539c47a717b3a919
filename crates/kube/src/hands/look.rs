//! What the API says of the nodes of a cluster, and how its control plane is.

use super::{Kube, MEMBER_PATIENCE, Trouble};
use crate::api::stray::{is_of, strays};
use crate::api::{self, Door, Health};
use crate::error::{Error, Kind};
use crate::kubeadm;
use driver::{Context, Target};
use futures_util::future::join_all;
use model::addon::AddonsFact;
use model::cluster::{Machine, Role};
use model::id::{ClusterId, MachineId};
use model::observed::{
    CertificatesFact, ControlPlaneFact, Fact, Member, NodeFact, Observation, Silence, SilenceFact,
    Wellbeing,
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

/// How far apart looks may be that are taken for one after the other.
const APART: Duration = Duration::from_mins(3);

/// How long it may take to find a member that answers: there is more to ask before a look ends.
const ENTER_MAX: Duration = Duration::from_secs(22);

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
    /// The first and the last of the looks in a row that found nobody to ask.
    silent: Arc<Mutex<BTreeMap<ClusterId, (Instant, Instant)>>>,
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

    /// The API of a cluster could not be asked; how long that has been so. Looks that are far apart
    /// say nothing of the time between them: another server may have asked it.
    fn unheard(&self, cluster: ClusterId) -> Duration {
        let silent = self.silent.lock();
        let mut silent = silent.unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let (first, last) = silent.entry(cluster).or_insert((now, now));
        if last.elapsed() > APART {
            *first = now;
        }
        *last = now;
        first.elapsed()
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
        let ((mut facts, entered), certificates) = tokio::join!(
            self.asked(cx, target, &members, &kubeconfig),
            self.certificates(cx, target.cluster, &members)
        );
        facts.extend(certificates);
        // Whoever renews the certificates of a member keeps its kubeconfig, too.
        if let Some(entered) = entered.filter(|_| target.whole) {
            let end = match entered.with {
                Key::Kept => kubeadm::kubeconfig_end(&kubeconfig),
                Key::Theirs => Some(kubeadm::day_of(at)),
            };
            end_with(&mut facts, &entered, end);
        }
        let seen = facts.into_iter().map(|fact| Observation {
            cluster: target.cluster,
            fact,
            at,
        });
        seen.collect()
    }

    /// What the API tells, asked of the first member that answers, and which one that was. Who is
    /// called off hands over what is known by then.
    async fn asked(
        &self,
        cx: &Context,
        target: &Target,
        members: &[Machine],
        kubeconfig: &Secret,
    ) -> (Vec<Fact>, Option<Entered>) {
        let cluster = target.cluster;
        let entering = timeout(
            ENTER_MAX,
            self.entered_somehow(cx, cluster, members, kubeconfig),
        );
        let (door, member, with) = match unless_cancelled(cx, entering).await {
            Some(Ok(Ok(entered))) => entered,
            Some(Ok(Err(Trouble::Kube(error)))) => {
                return (self.silence(target, &error).into_iter().collect(), None);
            }
            Some(Err(_elapsed)) => {
                let error = Error::new(Kind::NoMember, "nobody answered in time");
                return (self.silence(target, &error).into_iter().collect(), None);
            }
            Some(Ok(Err(_))) | None => return (Vec::new(), None),
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
        let heard = Fact::Silence(SilenceFact { silence: None });
        let heard = target.whole.then_some(heard);
        let whole = std::iter::once(begun).chain(heard).chain(addons);
        let entered = Entered {
            member: member.id,
            with,
        };
        (whole.chain(strays).chain(nodes).collect(), Some(entered))
    }

    /// The API of a cluster, opened with what is kept or, where that is refused, with what a member
    /// has.
    pub(super) async fn entered_somehow(
        &self,
        cx: &Context,
        cluster: ClusterId,
        members: &[Machine],
        kubeconfig: &Secret,
    ) -> Result<(Door, Machine, Key), Trouble> {
        match self.entered(cx, cluster, members, kubeconfig).await {
            Err(Trouble::Kube(error)) if error.kind == Kind::Credentials => {
                let entered = self.known_again(cx, cluster, members, error).await;
                entered.map(|(door, member)| (door, member, Key::Theirs))
            }
            entered => entered.map(|(door, member)| (door, member, Key::Kept)),
        }
    }

    /// That the API of a cluster cannot be asked, once that has lasted. Who looks for some of the
    /// machines cannot tell.
    fn silence(&self, target: &Target, error: &Error) -> Option<Fact> {
        if !target.whole || self.looks.unheard(target.cluster) < SILENT_MAX {
            return None;
        }
        let code = error.kind.code();
        // Which of its members said what last differs from look to look.
        let because = if error.kind == Kind::NoMember {
            format!("no member of its control plane answers ({code})")
        } else {
            format!("{} ({code})", steady(&error.what))
        };
        let silence = Silence {
            because,
            hint: error.kind.hint().to_owned(),
        };
        Some(Fact::Silence(SilenceFact {
            silence: Some(silence),
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

    /// When the certificates of control machines end, of those that were not looked at lately.
    async fn certificates(
        &self,
        cx: &Context,
        cluster: ClusterId,
        members: &[Machine],
    ) -> Vec<Fact> {
        let due = members.iter().filter(|member| self.looks.is_due(member.id));
        let looks = due.map(async |member| {
            let end = within(cx, self.certificates_of(cx, cluster, member)).await?;
            self.looks.done(member.id);
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

/// By whom the API was asked.
struct Entered {
    member: MachineId,
    with: Key,
}

/// What opened the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// What is kept.
    Kept,
    /// What a member has: what is kept was refused.
    Theirs,
}

/// Has the certificates of a member end no later than that with which it was asked, where those
/// were looked at or that was refused.
fn end_with(facts: &mut Vec<Fact>, entered: &Entered, end: Option<Timestamp>) {
    let Some(end) = end else {
        return;
    };
    let known = facts.iter_mut().find_map(|fact| {
        if let Fact::Certificates(of, fact) = fact
            && *of == entered.member
        {
            Some(fact)
        } else {
            None
        }
    });
    match known {
        Some(fact) => fact.end = fact.end.min(end),
        None if entered.with == Key::Theirs => {
            facts.push(Fact::Certificates(entered.member, CertificatesFact { end }));
        }
        None => {}
    }
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
