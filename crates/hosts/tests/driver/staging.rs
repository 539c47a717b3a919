//! Programs and images of Kubernetes on a host with systemd: brought once, put into place, and
//! taken away. Stand-ins do: it is the bringing that is proved here.

use crate::apart::apart;
use crate::scene::{Inside, Scene};
use crate::stage::machine;
use driver::suite::equip;
use hosts::artifacts::{Source, mirror, quiet};
use hosts::error::{Error, Kind};
use hosts::hands::{Stage, Staged};
use hosts::sandbox::{Ending, Level, Sandbox};
use hosts::{Hosts, Parts, recipe};
use model::cluster::{Machine, Role};
use model::id::{self, ClusterId};
use model::task::Action;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// An image with one empty layer, in an archive that names it as told.
const IMAGE: &str = r#"
set -e
cd "$1"; rm -rf t; mkdir -p t/blobs/sha256; cd t
blob() { set -- "$1" "$(sha256sum <"$1" | cut -c1-64)"; size=$(stat -c %s "$1"); mv "$1" "blobs/sha256/$2"; sum=sha256:$2; }
mkdir root; echo "$2" >root/name; tar -C root -cf layer .; rm -r root
blob layer; layer='"digest":"'$sum'","size":'$size
printf '{"architecture":"%s","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["%s"]}}' "$3" "$sum" >config
blob config; config='"digest":"'$sum'","size":'$size
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json",%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar",%s}]}' "$config" "$layer" >manifest
blob manifest
shift 3; list=
for ref in "$@"; do
    list="$list${list:+,}{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"digest\":\"$sum\",\"size\":$size,\"annotations\":{\"io.containerd.image.name\":\"$ref\"}}"
done
printf '{"schemaVersion":2,"manifests":[%s]}' "$list" >index.json
printf '{"imageLayoutVersion":"1.0.0"}' >oci-layout
tar -cf ../image.tar oci-layout index.json blobs; rm -r ../t
"#;

/// What is left of Kubernetes on a host that was a node.
const USED: &str = "mkdir -p /etc/kubernetes/manifests /var/lib/etcd/member /var/lib/kubelet/pods/p/volumes/v /etc/cni/net.d; \
    mount -t tmpfs tmpfs /var/lib/kubelet/pods/p/volumes/v; echo x >/etc/kubernetes/kubelet.conf; \
    echo '{}' >/etc/cni/net.d/10-slipway.conflist; ip link add cni0 type bridge; \
    iptables -t nat -N KUBE-SERVICES; iptables -t nat -A PREROUTING -j KUBE-SERVICES; iptables -t nat -A PREROUTING -j ACCEPT; \
    iptables -t nat -N SLIPWAY-PODS; iptables -t nat -A POSTROUTING -s 10.244.0.0/16 -j SLIPWAY-PODS; \
    printf '[Service]\\nType=oneshot\\nRemainAfterExit=yes\\nExecStart=/bin/true\\n[Install]\\nWantedBy=multi-user.target\\n' \
    >/etc/systemd/system/slipway-pods.service; systemctl enable -q --now slipway-pods; \
    printf '# BEGIN slipway api\\n10.8.0.2 api.lab.slipway.internal\\n# END slipway api\\n' >>/etc/hosts";

const LEFT: &str = "for f in /etc/kubernetes /var/lib/etcd /var/lib/kubelet /var/lib/slipway /usr/bin/kubeadm /usr/bin/kubelet \
    /usr/bin/kubectl /etc/systemd/system/kubelet.service /etc/systemd/system/*slipway* \
    /etc/systemd/system/*/slipway* /etc/cni/net.d/*slipway* /opt/cni /sys/class/net/cni0; do \
    [ ! -e $f ] || echo $f; done; ctr -n k8s.io images ls -q; iptables-save | grep -e KUBE -e SLIPWAY || :; \
    grep slipway /etc/hosts || :; systemctl list-units --plain --no-legend 'slipway*'; \
    systemctl is-active kubelet || :; iptables -t nat -S PREROUTING";

/// A mirror with two versions; of the images some are missing.
fn filled(mirror: &Path, architecture: &str) {
    for version in ["v1.34.4", "v1.35.0"] {
        let at = mirror.join(format!("kubernetes/{version}/linux-{architecture}"));
        fs::create_dir_all(at.join("images")).unwrap();
        for program in ["kubeadm", "kubelet", "kubectl"] {
            let text = format!("#!/bin/sh\n# {program} {version}\nexec sleep infinity\n");
            fs::write(at.join(program), text).unwrap();
        }
        let pause = ["registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10.1"];
        archive(&at, "pause", architecture, &pause);
        let proxy = format!("registry.k8s.io/kube-proxy:{version}");
        archive(&at, "kube-proxy", architecture, &[&proxy]);
    }
}

fn archive(at: &Path, name: &str, architecture: &str, references: &[&str]) {
    let made = Command::new("sh")
        .args(["-c", IMAGE, "sh", at.to_str().unwrap(), name, architecture])
        .args(references)
        .status();
    assert!(made.unwrap().success());
    let to = at.join(format!("images/{name}.tar"));
    fs::rename(at.join("image.tar"), to).unwrap();
}

/// A web server that has nothing.
fn nowhere() -> Source {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            let _asked = stream.read(&mut asked).unwrap();
            let answer =
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).unwrap();
        }
    });
    Source::Upstream(format!("http://{address}/release").parse().unwrap())
}

struct Story {
    scene: Arc<Scene>,
    machine: Machine,
    inside: Inside,
}

impl Story {
    async fn begin(sandbox: &Sandbox, lab: &Path) -> Self {
        let architecture = match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "amd64",
        };
        let mirror = lab.join("mirror");
        filled(&mirror, architecture);
        mirror::index(&mirror, &quiet).await.unwrap();
        let hosts = Hosts::new(Parts {
            sandbox: sandbox.clone().into(),
            cache: lab.join("cache"),
            sources: vec![Source::Directory(mirror), nowhere()],
            playbooks: false,
        });
        let cluster = ClusterId::derive(id::Origin {
            parent: "lab",
            name: "staging",
            ordinal: 1,
            incarnation: 0,
        });
        let scene = Arc::new(Scene::new(hosts, cluster, Vec::new()));
        let machine = machine(cluster, "one", Role::Compute, 1, Level::Systemd);
        scene.act(&machine, Action::Key).await;
        scene.act(&machine, Action::Create).await;
        scene.act(&machine, equip(&machine)).await;
        let seen = sandbox.find(&machine.id.to_string()).await.unwrap();
        Self {
            scene,
            machine,
            inside: Inside::at(seen.address),
        }
    }

    /// Brings a version; what was brought, by the log.
    async fn stage(&self, version: &str, what: Stage) -> Result<(Staged, Vec<String>), Error> {
        let attempt = self.scene.attempt();
        let (cluster, version) = (self.scene.cluster, version.parse().unwrap());
        let staging =
            self.scene
                .hosts
                .stage(attempt.context(), cluster, &self.machine, version, what);
        let staged = staging.await?;
        let log = attempt.log();
        let brought = log.iter().filter_map(|line| line.strip_prefix("brought "));
        let file = |line: &str| {
            let (path, _) = line.split_once(',').unwrap();
            path.rsplit('/').next().unwrap().to_owned()
        };
        Ok((staged, brought.map(file).collect()))
    }

    async fn apply(&self, items: &[recipe::item::Item]) -> usize {
        let attempt = self.scene.attempt();
        let program = recipe::render(items, "place", Duration::from_mins(2));
        let visit = self.scene.hosts.visit(
            attempt.context(),
            self.scene.cluster,
            &self.machine,
            &program,
        );
        visit.await.unwrap().changed()
    }
}

#[test]
fn kubernetes_is_brought_to_a_host_once_and_taken_away() {
    let name = "staging::kubernetes_is_brought_to_a_host_once_and_taken_away";
    apart(name, Level::Systemd, async |lab| {
        let sandbox = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
        let story = Story::begin(&sandbox, &lab.dir).await;
        let rules = story.inside.sh("iptables -t nat -S PREROUTING");
        brought_once(&story).await;
        what_nobody_has_is_told(&story).await;
        put_into_place(&story).await;
        taken_away(&story, &rules).await;
        sandbox.clear().await.unwrap();
    });
}

async fn brought_once(story: &Story) {
    let (staged, brought) = story.stage("v1.34.4", Stage::Worker).await.unwrap();
    assert_eq!(staged.left, ["coredns"]);
    let all = [
        "kubeadm",
        "kubelet",
        "kubectl",
        "kube-proxy.tar",
        "pause.tar",
    ];
    assert_eq!(brought, all);
    let images = "ctr -n k8s.io images ls | grep -o '^registry[^ ]*' | sort; \
        ctr -n k8s.io images ls | grep -c io.cri-containerd.pinned=pinned; \
        find /var/lib/slipway/kubernetes -name '*.tar'; [ ! -e /usr/bin/kubelet ]";
    assert_eq!(
        story.inside.sh(images),
        "registry.k8s.io/kube-proxy:v1.34.4\nregistry.k8s.io/pause:3.10\nregistry.k8s.io/pause:3.10.1\n3"
    );
    let (again, brought) = story.stage("v1.34.4", Stage::Worker).await.unwrap();
    assert_eq!((again, brought), (staged, Vec::new()));
    story
        .inside
        .sh("ctr -n k8s.io images rm --sync registry.k8s.io/pause:3.10; rm /var/lib/slipway/kubernetes/v1.34.4/kubectl");
    let (_, brought) = story.stage("v1.34.4", Stage::Worker).await.unwrap();
    assert_eq!(brought, ["kubectl", "pause.tar"]);
    let (control, brought) = story.stage("v1.34.4", Stage::Control).await.unwrap();
    assert_eq!((control.left.len(), brought.len()), (5, 0));
}

async fn what_nobody_has_is_told(story: &Story) {
    let error = story.stage("v1.36.99", Stage::Worker).await.unwrap_err();
    assert_eq!(error.kind, Kind::NoVersion, "{error}");
    assert!(error.what.contains("v1.36.99"), "{error}");
}

async fn put_into_place(story: &Story) {
    let (old, _) = story.stage("v1.34.4", Stage::Worker).await.unwrap();
    let (new, brought) = story.stage("v1.35.0", Stage::Worker).await.unwrap();
    assert_eq!(brought.len(), 5);
    let all = recipe::kubernetes_packages("v1.34.4", &old.programs);
    assert!(story.apply(&all).await >= 5);
    assert_eq!(story.apply(&all).await, 0);
    let state = "systemctl is-enabled kubelet; systemctl is-active kubelet || :";
    assert_eq!(story.inside.sh(state), "enabled\ninactive");
    // As kubeadm does.
    story.inside.sh("systemctl start kubelet");
    let versions = "for p in kubeadm kubelet kubectl; do sed -n 's/^# //p' /usr/bin/$p; done; \
        systemctl show -p MainPID --value kubelet; tr '\\0' ' ' </proc/$(systemctl show -p MainPID --value kubelet)/cmdline";
    let before = story.inside.sh(versions);
    let kubeadm = recipe::kubeadm("v1.35.0", &new.programs);
    assert_eq!(story.apply(&kubeadm).await, 1);
    let middle = story.inside.sh(versions);
    assert_eq!(middle, before.replace("kubeadm v1.34.4", "kubeadm v1.35.0"));
    let kubelet = recipe::kubelet("v1.35.0", &new.programs);
    // Two programs, and the service that runs one of them.
    assert_eq!(story.apply(&kubelet).await, 3);
    let after = story.inside.sh(versions);
    assert!(!after.contains("v1.34.4"), "{after}");
    let pid = |shown: &str| shown.lines().nth(3).unwrap().to_owned();
    assert_ne!(pid(&after), pid(&before));
    assert_eq!(story.apply(&kubelet).await, 0);
}

async fn taken_away(story: &Story, rules: &str) {
    story.inside.sh(USED);
    assert_ne!(story.scene.act(&story.machine, Action::Release).await, 0);
    let left = format!("inactive\n{rules}\n-A PREROUTING -j ACCEPT");
    assert_eq!(story.inside.sh(LEFT), left);
    let mounts = story.inside.sh("grep -c kubelet /proc/mounts || :");
    assert_eq!(mounts, "0");
    assert_eq!(story.scene.act(&story.machine, Action::Release).await, 0);
}
