//! The engine: Kubernetes is started, joined, upgraded and taken away by kubeadm, over SSH.
//!
//! Everything here is pure: what a node is told is rendered, and what kubeadm said is read. On the
//! host, [`MARKER`] says that it has become a node, and of which version its control plane is; what
//! was begun and not finished is taken back by the next attempt, before it begins anew.

mod certificates;
mod config;
mod etcd;
mod found;
mod pods;
mod said;

pub use certificates::{certificates, certificates_end, day_of, kubeconfig_end};
pub use config::{Discovery, init_config, join_config};
pub use etcd::told_members;
pub use found::{found, stale_pods};
pub use said::trouble;

use hosts::program::{Program, quoted};
use hosts::recipe::item::Item;
use hosts::recipe::{self, Kubernetes as Programs};
use model::care::Care;
use model::cluster::{Machine, Role};
use model::kubernetes::{ProxyMode, api_name};
use model::name::Name;
use model::task::Around;
use model::version::Version;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use zeroize::Zeroizing;

/// Says that a host has become a node.
pub const MARKER: &str = "/etc/slipway/node";

/// Says that certificates are being made anew, and that not all that uses them was started again. A
/// boot starts all of it, so that it need not outlive one.
pub const RENEWING: &str = "/run/slipway/renewing";

/// What kubeadm is told.
pub const CONFIG: &str = "/etc/slipway/kubeadm.yaml";

/// The kubeconfig with which a node introduces itself.
pub const DISCOVERY: &str = "/etc/slipway/discovery.conf";

/// Where a host keeps images.
const IMAGES: &str = "/var/lib/containerd";

/// How long a host may take for kubeadm: images may have to be pulled.
const KUBEADM_MAX: Duration = Duration::from_mins(15);

/// How long it may take for everything else.
const ITEMS_MAX: Duration = Duration::from_mins(5);

const UPGRADE: &str = include_str!("kubeadm/upgrade.sh");
const RENEW: &str = include_str!("kubeadm/renew.sh");
const RUN: &str = include_str!("kubeadm/run.sh");
const LEAVE: &str = include_str!("kubeadm/leave.sh");
const MEMBER: &str = include_str!("kubeadm/member.sh");
const SAVE: &str = include_str!("kubeadm/save.sh");
const RESTORE: &str = include_str!("kubeadm/restore.sh");
const KUBELET: &str = include_str!("kubeadm/kubelet.sh");

/// Where the kubelet finds the pods of a control plane.
const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// Where etcd of a host writes what it knows; nothing else is there.
const SAVED: &str = "/var/lib/slipway/snapshot";

/// Where a host has what it is put back from.
const RESTORED: &str = "/var/lib/slipway/restore";

/// The files that all members of a control plane share.
pub const SHARED: [&str; 8] = [
    "ca.crt",
    "ca.key",
    "sa.key",
    "sa.pub",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "etcd/ca.crt",
    "etcd/ca.key",
];

/// Where they are.
pub const PKI: &str = "/etc/kubernetes/pki";

/// A machine that is or becomes a node.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// Which machine.
    pub machine: &'a Machine,
    /// What people call its cluster.
    pub cluster: &'a Name,
    /// The cluster around it.
    pub around: &'a Around,
    /// Which Kubernetes.
    pub version: Version,
    /// Where it answers people.
    pub outside: Option<IpAddr>,
    /// What it carries, and where it finds the API.
    pub care: &'a Care,
}

impl Node<'_> {
    /// Where it finds the API once it is a node: those that run one ask their own.
    pub fn api(&self) -> Vec<Ipv4Addr> {
        api(self.machine, self.around, self.care)
    }

    /// Everything that is on the host before kubeadm runs. `config` is what kubeadm reads, `more`
    /// what it needs besides.
    pub fn before(
        &self,
        programs: &Programs,
        api: &[Ipv4Addr],
        config: &str,
        more: Vec<Item>,
    ) -> Program {
        let version = self.version.to_string();
        let mut items = recipe::kubernetes_packages(&version, programs);
        items.push(hosts_lines(self.cluster, api));
        items.extend(pods::items(self));
        items.push(secret_file(CONFIG, config.as_bytes()));
        items.extend(more);
        recipe::render(&items, "what kubeadm needs", ITEMS_MAX)
    }

    /// What is left to do when kubeadm has done its work: the API is found where it will be, and
    /// what only kubeadm had to know is gone.
    pub fn after(&self) -> Program {
        let items = [
            hosts_lines(self.cluster, &self.api()),
            Item::absent(DISCOVERY),
            Item::absent(CONFIG),
        ];
        recipe::render(&items, "what kubeadm leaves", ITEMS_MAX)
    }

    /// Runs kubeadm once. What another attempt left half done is taken back first.
    pub fn run(&self, verb: Verb) -> Program {
        let (words, skipped) = match verb {
            Verb::Init => ("init", self.skipped(&["show-join-command"])),
            Verb::Join => ("join", String::new()),
        };
        let head = [
            ("verb", words),
            ("skip", &skipped),
            ("config", CONFIG),
            ("marker", MARKER),
            ("version", &self.version.to_string()),
            ("shared", &SHARED.join(" ")),
        ];
        script(&format!("kubeadm {words}"), &head, RUN)
    }

    /// Parts of what kubeadm does that nobody needs.
    fn skipped(&self, always: &[&str]) -> String {
        let proxy = match self.around.kubernetes.proxy {
            ProxyMode::None => Some("addon/kube-proxy"),
            ProxyMode::Iptables | ProxyMode::Nftables | ProxyMode::Ipvs => None,
        };
        let all: Vec<_> = always.iter().copied().chain(proxy).collect();
        all.join(",")
    }

    /// Puts another kubeadm into place, before it upgrades.
    pub fn newer_kubeadm(&self, programs: &Programs) -> Program {
        let items = recipe::kubeadm(&self.version.to_string(), programs);
        recipe::render(&items, "kubeadm", ITEMS_MAX)
    }

    /// Upgrades what kubeadm runs on this node.
    pub fn upgrade(&self) -> Program {
        let version = self.version.to_string();
        let verb = if self.around.leads { "apply" } else { "node" };
        let full = config::IMAGES_FULL_PERCENT.to_string();
        let head = [
            ("verb", "upgrade"),
            ("how", verb),
            ("skip", &self.skipped(&[])),
            ("marker", MARKER),
            ("version", &version),
            ("images", IMAGES),
            ("full", &full),
        ];
        script(&format!("kubeadm upgrade {verb}"), &head, UPGRADE)
    }

    /// Puts another kubelet into place, after kubeadm has upgraded the rest.
    pub fn newer_kubelet(&self, programs: &Programs) -> Program {
        let items = recipe::kubelet(&self.version.to_string(), programs);
        recipe::render(&items, "kubelet", ITEMS_MAX)
    }
}

/// Where a node finds the API: those that run one ask their own. Who was told nothing asks those
/// by whom we reach it.
pub fn api(machine: &Machine, around: &Around, care: &Care) -> Vec<Ipv4Addr> {
    match machine.role {
        Role::Control => vec![machine.address],
        Role::Compute | Role::Balancer if care.api.is_empty() => {
            let through = around.through.iter();
            through.map(|member| member.address).take(1).collect()
        }
        Role::Compute | Role::Balancer => care.api.clone(),
    }
}

/// What a node says that its provider calls it.
pub fn provider_id(machine: &Machine) -> String {
    model::stray::mark(machine.id)
}

/// What kubeadm is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Start a control plane.
    Init,
    /// Join one that runs.
    Join,
}

/// Makes the certificates of a control machine anew, and starts again what uses them.
pub fn renew() -> Program {
    script("kubeadm certs renew", &[("marker", RENEWING)], RENEW)
}

/// Takes Kubernetes off a host that is no node any more, but for programs and images.
pub fn leave() -> Program {
    script("leave", &[("marker", MARKER)], LEAVE)
}

/// The member of etcd that is to go.
#[derive(Debug, Clone, Copy)]
pub struct Without<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Where it is, where that is known: one that has not started yet has no name.
    pub address: Option<Ipv4Addr>,
}

impl<'a> From<&'a Machine> for Without<'a> {
    fn from(machine: &'a Machine) -> Self {
        Self {
            name: machine.name.as_str(),
            address: Some(machine.address),
        }
    }
}

/// Tells the members of etcd, seen from the one on this host, and removes the one that is called
/// `without`, if there is one.
pub fn members(without: Option<Without<'_>>) -> Program {
    let peer = without.and_then(|without| without.address);
    let peer = peer.map(|address| format!("https://{address}:2380"));
    let head = [
        ("name", without.map_or("", |without| without.name)),
        ("peer", peer.as_deref().unwrap_or_default()),
    ];
    script("members of etcd", &head, MEMBER)
}

/// The file that [`save`] leaves on a host.
pub fn saved_file() -> String {
    format!("{SAVED}/db")
}

/// The file that [`restore`] expects on a host.
pub fn restored_file() -> String {
    format!("{RESTORED}/db")
}

/// Has the member of etcd on a host write what it knows to [`saved_file`].
pub fn save() -> Program {
    let manifest = format!("{MANIFESTS}/etcd.yaml");
    let head = [("directory", SAVED), ("manifest", &manifest)];
    script("etcd snapshot", &head, SAVE)
}

/// Removes what [`save`] left on a host.
pub fn forget_saved() -> Program {
    recipe::render(&[Item::absent(SAVED)], "forget the snapshot", ITEMS_MAX)
}

/// A step on the way back to a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// Tells whether all is done already.
    Look,
    /// Ends the control plane of the machine.
    Stop,
    /// Makes the data of its member of etcd anew.
    Load,
    /// Starts it again.
    Start,
    /// Removes what was there before, and remembers that all is done.
    Clean,
}

impl Back {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Stop => "stop",
            Self::Load => "load",
            Self::Start => "start",
            Self::Clean => "clean",
        }
    }
}

/// One step of one member on the way back to a snapshot, for a wish; revisions are lifted by so much.
pub fn restore(
    step: Back,
    (wish, lift): (&str, u64),
    machine: &Machine,
    members: &[&Machine],
) -> Program {
    let peer = |machine: &Machine| format!("https://{}:2380", machine.address);
    let all = members.iter();
    let all: Vec<_> = all
        .map(|member| format!("{}={}", member.name, peer(member)))
        .collect();
    let head = [
        ("verb", step.as_str()),
        ("wish", wish),
        ("lift", &lift.to_string()),
        ("directory", RESTORED),
        ("manifests", MANIFESTS),
        ("name", machine.name.as_str()),
        ("peer", &peer(machine)),
        ("members", &all.join(",")),
    ];
    script(&format!("etcd restore: {}", step.as_str()), &head, RESTORE)
}

/// Starts the kubelet of a node again when its API has gone back in time.
pub fn restart_kubelet(wish: &str) -> Program {
    script("restart kubelet", &[("wish", wish)], KUBELET)
}

/// Has the kubelet of a node make itself known to the cluster, which has forgotten it.
pub fn make_known() -> Program {
    let restart = "set -u\ntimeout 60 systemctl restart kubelet || exit 1\necho '::slipway changed kubelet'\n";
    script("make the node known", &[], restart)
}

/// Where the one name of the API leads.
fn hosts_lines(cluster: &Name, api: &[Ipv4Addr]) -> Item {
    let name = api_name(cluster);
    recipe::api_at(api.iter().map(|at| format!("{at} {name}")).collect())
}

/// A file that only root may read.
pub fn secret_file(path: &str, content: &[u8]) -> Item {
    Item::File {
        path: path.to_owned(),
        mode: 0o600,
        owner: "root:root".to_owned(),
        content: content.to_vec().into(),
        secret: true,
    }
}

fn script(title: &str, head: &[(&str, &str)], body: &str) -> Program {
    let lines = head.iter();
    let lines: String = lines
        .map(|(name, value)| format!("{name}={}\n", quoted(value)))
        .collect();
    // In a function: what was cut off on its way runs nothing.
    let text = format!("main() {{\n{lines}{body}\n}}\nmain </dev/null\n");
    Program {
        title: title.to_owned(),
        text: Zeroizing::new(text),
        limit: KUBEADM_MAX,
    }
}

#[cfg(test)]
mod tests;
