//! What kubeadm is told, in its own words.

use super::{DISCOVERY, Node, PKI, provider_id};
use crate::api::node::CONTROL_PLANE;
use crate::api::wish::COMING;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::cluster::Role;
use model::kubernetes::{API_PORT, ProxyMode, api_name};
use serde_json::{Value, json};
use zeroize::Zeroizing;

/// The form of its settings that kubeadm of all our versions reads.
const FORM: &str = "kubeadm.k8s.io/v1beta4";

/// Where containerd listens.
const SOCKET: &str = "unix:///run/containerd/containerd.sock";

/// How a node that comes introduces itself, and whom it believes.
pub struct Discovery<'a> {
    /// The authority of the cluster, as PEM.
    pub authority: &'a [u8],
    /// Where the API is now.
    pub server: String,
    /// What lets it in, for a short time.
    pub token: &'a str,
}

/// What `kubeadm init` reads.
pub fn init_config(node: &Node<'_>) -> Zeroizing<String> {
    documents(&[
        json!({
            "apiVersion": FORM,
            "kind": "InitConfiguration",
            // Nobody joins with the one that kubeadm makes.
            "bootstrapTokens": [{ "ttl": "1m0s" }],
            "localAPIEndpoint": local(node),
            "nodeRegistration": registration(node),
        }),
        cluster(node),
        kubelet(),
        proxy(node),
    ])
}

/// What `kubeadm join` reads.
pub fn join_config(node: &Node<'_>, token: &str) -> Zeroizing<String> {
    let mut join = json!({
        "apiVersion": FORM,
        "kind": "JoinConfiguration",
        "discovery": {
            "file": { "kubeConfigPath": DISCOVERY },
            "tlsBootstrapToken": token,
        },
        "nodeRegistration": registration(node),
        // Who is not let in says nothing until then; whoever tries again brings another invitation.
        "timeouts": { "discovery": "1m0s" },
    });
    if let (Role::Control, Some(join)) = (node.machine.role, join.as_object_mut()) {
        let own = json!({ "localAPIEndpoint": local(node) });
        join.insert("controlPlane".to_owned(), own);
    }
    documents(&[join])
}

impl Discovery<'_> {
    /// The kubeconfig of a node that nobody knows yet.
    pub fn kubeconfig(&self) -> Zeroizing<String> {
        documents(&[json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "cluster",
                "cluster": {
                    "server": self.server,
                    "certificate-authority-data": STANDARD.encode(self.authority),
                },
            }],
            "users": [{ "name": "comer", "user": { "token": self.token } }],
            "contexts": [{ "name": "comer", "context": { "cluster": "cluster", "user": "comer" } }],
            "current-context": "comer",
        })])
    }
}

fn local(node: &Node<'_>) -> Value {
    json!({ "advertiseAddress": node.machine.address, "bindPort": API_PORT })
}

fn registration(node: &Node<'_>) -> Value {
    let machine = node.machine;
    json!({
        "name": machine.name,
        "criSocket": SOCKET,
        "imagePullPolicy": "IfNotPresent",
        "kubeletExtraArgs": [
            { "name": "node-ip", "value": machine.address },
            { "name": "provider-id", "value": provider_id(machine) },
        ],
        "taints": taints(machine.role),
    })
}

/// What keeps pods away until the node carries what it should, and what kubeadm itself would say.
fn taints(role: Role) -> Value {
    let taint = |key: &str| json!({ "key": key, "effect": "NoSchedule" });
    match role {
        Role::Control => json!([taint(CONTROL_PLANE), taint(COMING)]),
        Role::Compute | Role::Balancer => json!([taint(COMING)]),
    }
}

fn cluster(node: &Node<'_>) -> Value {
    let kubernetes = &node.around.kubernetes;
    let name = api_name(node.cluster);
    let mut names = vec![name.clone(), "127.0.0.1".to_owned()];
    names.extend(node.outside.map(|at| at.to_string()));
    // Where the mesh carries pods, their addresses are decided with those of machines.
    let allocate = kubernetes.through_mesh().is_none().to_string();
    json!({
        "apiVersion": FORM,
        "kind": "ClusterConfiguration",
        // Each upgrade reads it: whoever skipped kube-proxy once would get it then.
        "proxy": { "disabled": kubernetes.proxy == ProxyMode::None },
        "clusterName": node.cluster,
        "kubernetesVersion": node.version.to_string(),
        "controlPlaneEndpoint": format!("{name}:{API_PORT}"),
        "networking": {
            "podSubnet": kubernetes.pods.to_string(),
            "serviceSubnet": kubernetes.services.to_string(),
        },
        "apiServer": {
            "certSANs": names,
            "extraArgs": [
                { "name": "kubelet-certificate-authority", "value": format!("{PKI}/ca.crt") },
                // Who is told to end says so and answers until load balancers have seen it.
                { "name": "shutdown-delay-duration", "value": "6s" },
            ],
        },
        "controllerManager": {
            "extraArgs": [{ "name": "allocate-node-cidrs", "value": allocate }],
        },
    })
}

/// How full the disk of images may be before the kubelet takes some away.
pub(super) const IMAGES_FULL_PERCENT: u8 = 95;

fn kubelet() -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
        "failCgroupV1": false,
        // A container that does not listen would else hold a reboot for a minute and a half.
        "shutdownGracePeriod": "30s",
        "shutdownGracePeriodCriticalPods": "10s",
        "rotateCertificates": true,
        // What it serves with is signed by the cluster, so that the API server knows whom it asks.
        "serverTLSBootstrap": true,
        // The usual 15 % of a large disk are hundreds of gigabytes that nobody may use, and images
        // that were brought to a host cannot be pulled again where there is no registry.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "2Gi",
            "nodefs.inodesFree": "5%",
            "imagefs.available": "3Gi",
            "imagefs.inodesFree": "5%",
        },
        "imageGCHighThresholdPercent": IMAGES_FULL_PERCENT,
        "imageGCLowThresholdPercent": 90,
    })
}

fn proxy(node: &Node<'_>) -> Value {
    let mode = match node.around.kubernetes.proxy {
        ProxyMode::Iptables | ProxyMode::None => "iptables",
        ProxyMode::Nftables => "nftables",
        ProxyMode::Ipvs => "ipvs",
    };
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": mode,
        // How many connections a host follows is the host's business.
        "conntrack": { "maxPerCore": 0, "min": 0 },
        "clusterCIDR": node.around.kubernetes.pods.to_string(),
    })
}

/// JSON is YAML, and needs no care about what has to be quoted.
fn documents(all: &[Value]) -> Zeroizing<String> {
    let texts: Vec<String> = all.iter().map(|one| format!("{one:#}\n")).collect();
    Zeroizing::new(texts.join("---\n"))
}
