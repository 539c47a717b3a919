//! What a host needs so that a node of Kubernetes, or a proxy, can run on it.

use crate::recipe::Level;
use crate::recipe::item::{Item, Source, State, Unit};
use crate::recipe::network::kept;

/// Where the container runtime listens.
const SOCKET: &str = "unix:///run/containerd/containerd.sock";

/// The settings of the container runtime.
const CONTAINERD: &str = "/etc/containerd/config.toml";

/// How to ask it.
const CRICTL: &str = "/etc/crictl.yaml";

/// The image of the container that holds the network of each pod. kubeadm warns of another one
/// than its own; any of 3.10 serves every version, and every mirror has this one.
pub const PAUSE: &str = "registry.k8s.io/pause:3.10.1";

/// Limits and kernel settings of a host that holds many connections.
///
/// The range of ports for outgoing connections is wide, so ports on which something of ours
/// listens are kept out of it.
pub fn balancer_requirements(level: Level) -> Vec<Item> {
    let mut items = vec![Item::file(
        "/etc/security/limits.d/90-slipway.conf",
        "* soft nofile 65535\n* hard nofile 65535\nroot soft nofile 65535\nroot hard nofile 65535\n",
    )];
    match level {
        Level::Systemd => items.push(Item::file(
            "/etc/systemd/system.conf.d/90-slipway.conf",
            "[Manager]\nDefaultLimitNOFILE=65535:524288\n",
        )),
        Level::Lite => {}
    }
    items.extend([
        sysctl("fs.file-max", "2097152", true),
        sysctl("net.core.somaxconn", "65535", true),
        sysctl("net.ipv4.ip_local_port_range", "2048 65535", false),
        sysctl(
            "net.ipv4.ip_local_reserved_ports",
            "2379-2380,6443,10248-10260,30000-32767,51820",
            false,
        ),
        sysctl("net.ipv4.tcp_fin_timeout", "30", false),
    ]);
    items
}

/// What the kubelet and its pods need of a host; whether it swaps is told.
pub fn node_requirements(level: Level) -> Vec<Item> {
    let mut items = balancer_requirements(level);
    items.extend(["overlay", "br_netfilter"].map(|name| Item::Module {
        name: name.to_owned(),
    }));
    items.extend([
        sysctl("fs.inotify.max_queued_events", "65535", true),
        sysctl("fs.inotify.max_user_instances", "65535", true),
        sysctl("fs.inotify.max_user_watches", "2097152", true),
        sysctl("net.ipv4.ip_forward", "1", false),
        sysctl("net.bridge.bridge-nf-call-iptables", "1", false),
        sysctl("net.bridge.bridge-nf-call-ip6tables", "1", false),
        Item::Told {
            key: "swap".to_owned(),
            print: "sw_slurp /proc/swaps; case ${sw_all#*\"$sw_line\"} in \
                    '') echo off ;; *) echo on ;; esac"
                .to_owned(),
        },
    ]);
    items
}

fn sysctl(key: &str, value: &str, at_least: bool) -> Item {
    Item::Sysctl {
        key: key.to_owned(),
        value: value.to_owned(),
        at_least,
    }
}

/// The distribution's containerd, and how to ask it. `read` names more items that it reads.
pub fn container_runtime(level: Level, read: &[String]) -> Vec<Item> {
    let systemd_cgroup = match level {
        Level::Systemd => true,
        Level::Lite => false,
    };
    let config = Item::file(
        CONTAINERD,
        format!(
            "version = 2\n\n\
             [plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n  \
             sandbox_image = \"{PAUSE}\"\n\n\
             [plugins.\"io.containerd.grpc.v1.cri\".registry]\n  \
             config_path = \"/etc/containerd/certs.d\"\n\n\
             [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\n  \
             runtime_type = \"io.containerd.runc.v2\"\n\n\
             [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\n  \
             SystemdCgroup = {systemd_cgroup}\n"
        ),
    );
    let restart_when = std::iter::once(config.name()).chain(read.iter().cloned());
    let service = Item::Service {
        name: "containerd".to_owned(),
        unit: Unit::Packaged,
        state: State::Running,
        restart_when: restart_when.collect(),
    };
    vec![
        Item::packages(&["containerd"]),
        config,
        Item::file(
            CRICTL,
            format!("runtime-endpoint: {SOCKET}\nimage-endpoint: {SOCKET}\ntimeout: 10\n"),
        ),
        service,
    ]
}

/// Disks over the network for pods; disks of the host are kept from being taken for paths of one.
///
/// The initiator's daemon is left to its package, whose socket starts it when a disk is asked for.
pub fn storage() -> Vec<Item> {
    let blacklist = Item::file(
        "/etc/multipath/conf.d/90-slipway.conf",
        "blacklist {\n    devnode \"^sd[a-z0-9]+\"\n    devnode \"^vd[a-z0-9]+\"\n    \
         devnode \"^nvme[0-9]\"\n}\n",
    );
    let multipath = Item::Service {
        name: "multipathd".to_owned(),
        unit: Unit::Packaged,
        state: State::Kept,
        restart_when: vec![blacklist.name()],
    };
    vec![
        Item::packages(&["open-iscsi", "nfs-common"]),
        blacklist,
        multipath,
    ]
}

/// Where the programs of Kubernetes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kubernetes {
    /// Packages, of a mirror or of a directory on the host.
    Packages(Source),
    /// Programs that were pushed to a directory on the host.
    Programs {
        /// Which directory.
        directory: String,
        /// What must be in it: each program, its SHA-256 and its size.
        programs: Vec<(String, String, u64)>,
    },
}

/// kubeadm, kubelet and kubectl of one version, which stays until another one is wished.
pub fn kubernetes_packages(version: &str, from: &Kubernetes) -> Vec<Item> {
    let mut items = kubeadm(version, from);
    items.extend(kubelet(version, from));
    items
}

/// kubeadm alone: it upgrades a node before the kubelet is another one.
pub fn kubeadm(version: &str, from: &Kubernetes) -> Vec<Item> {
    programs(version, from, &["kubeadm"])
}

/// kubelet and kubectl. A kubelet that runs is restarted when it changed; one that does not is left
/// to kubeadm, and runs at each boot from then on.
pub fn kubelet(version: &str, from: &Kubernetes) -> Vec<Item> {
    let mut items = programs(version, from, &["kubelet", "kubectl"]);
    match from {
        Kubernetes::Packages(_) => {}
        Kubernetes::Programs { .. } => items.extend([
            Item::file(KUBELET_UNIT.0, KUBELET_UNIT.1),
            Item::file(KUBELET_DROP_IN.0, KUBELET_DROP_IN.1),
        ]),
    }
    let read: Vec<String> = items.iter().map(Item::name).collect();
    items.push(Item::When {
        condition: "[ \"$sw_init\" = systemd ]".to_owned(),
        items: vec![Item::Command {
            name: "kubelet at each boot".to_owned(),
            unless: "systemctl is-enabled -q kubelet".to_owned(),
            run: "systemctl daemon-reload && systemctl enable -q kubelet".to_owned(),
        }],
    });
    items.push(kept("kubelet", &read));
    items
}

fn programs(version: &str, from: &Kubernetes, names: &[&str]) -> Vec<Item> {
    match from {
        Kubernetes::Packages(source) => {
            let version = version.trim_start_matches('v');
            let name = |name| format!("{name}={version}-*");
            vec![Item::Packages {
                names: names.iter().map(name).collect(),
                source: source.clone(),
                held: true,
            }]
        }
        Kubernetes::Programs {
            directory,
            programs,
        } => {
            let wished = |(name, ..): &&(String, String, u64)| names.contains(&name.as_str());
            let placed = |(name, sha256, size): &(String, String, u64)| Item::Placed {
                path: format!("/usr/bin/{name}"),
                mode: 0o755,
                sha256: sha256.clone(),
                size: *size,
                from: format!("{directory}/{name}"),
            };
            programs.iter().filter(wished).map(placed).collect()
        }
    }
}

/// The kubelet's unit, as its package has it.
const KUBELET_UNIT: (&str, &str) = (
    "/etc/systemd/system/kubelet.service",
    "[Unit]\nDescription=kubelet: The Kubernetes Node Agent\nWants=network-online.target\n\
     After=network-online.target\n\n[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n\
     StartLimitInterval=0\nRestartSec=10\n\n[Install]\nWantedBy=multi-user.target\n",
);

/// What kubeadm adds to it, as its package has it.
const KUBELET_DROP_IN: (&str, &str) = (
    "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf",
    "[Service]\n\
     Environment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
     --kubeconfig=/etc/kubernetes/kubelet.conf\"\n\
     Environment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"\n\
     EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\n\
     EnvironmentFile=-/etc/default/kubelet\n\
     ExecStart=\n\
     ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS \
     $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS\n",
);

/// Files of ours that the items here write, for whoever takes them away.
pub(crate) const WRITTEN: [&str; 5] = [
    "/etc/security/limits.d/90-slipway.conf",
    "/etc/systemd/system.conf.d/90-slipway.conf",
    "/etc/modules-load.d/slipway-overlay.conf",
    "/etc/modules-load.d/slipway-br_netfilter.conf",
    "/etc/multipath/conf.d/90-slipway.conf",
];

/// Files that somebody else may have had before the items here wrote them.
pub(crate) const REPLACED: [&str; 4] = [CONTAINERD, CRICTL, KUBELET_UNIT.0, KUBELET_DROP_IN.0];
