//! A cluster of real hosts for the rules of the contract, seen from outside the driver.

use crate::apart::Lab;
use crate::scene::Ring;
use driver::suite::{self, Cast, Fixture};
use driver::{Clock, Open};
use hosts::artifacts::Source;
use hosts::sandbox::{Ending, Level, Order, Sandbox, Settings};
use hosts::{Hosts, Parts};
use model::cluster::{Machine, Origin, Role};
use model::id::{self, ClusterId, MachineId};
use model::name::Name;
use model::observed::Observation;
use model::provider::Provider;
use model::secret::SecretRef;
use model::task::{Action, Task};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// What an outsider sees on a host: files that we write, what runs of ours, the tunnel.
///
/// Keys of the mesh and process numbers differ from life to life.
const PICTURE: &str = "cd / && find etc/slipway etc/wireguard usr/local/lib/slipway var/lib/slipway/envoy \
    -xdev -type f ! -name '*.pid' ! -name log ! -path '*/bin/*' 2>/dev/null | sort | while read -r f; do \
    printf '%s %s\\n' \"$f\" \"$(sha256sum <\"$f\" | cut -c1-12)\"; done; \
    wg show wg0 allowed-ips 2>/dev/null | sort; pgrep -c envoy; ip -br addr show wg0 2>/dev/null";

/// A sandbox for the driver, and another for machines that are given.
pub(crate) struct Stage {
    hosts: Hosts,
    made: Sandbox,
    given: Sandbox,
    lab: Lab,
    casts: AtomicU8,
}

impl Stage {
    pub(crate) async fn new(lab: &Lab, mirror: PathBuf) -> Self {
        let lab = Lab::new(lab.dir.clone());
        let made = lab.settings(Ending::WithUs);
        let given = Settings {
            dir: lab.dir.join("given"),
            subnet: "10.78.0.0/24".parse().unwrap(),
            ..made.clone()
        };
        // Two processes cannot have one sandbox open; two handles of one process can share it.
        let made = Sandbox::open(made).await.unwrap();
        Self {
            hosts: Hosts::new(Parts {
                sandbox: made.clone().into(),
                cache: lab.dir.join("cache"),
                sources: vec![Source::Directory(mirror)],
                playbooks: true,
            }),
            given: Sandbox::open(given).await.unwrap(),
            made,
            lab,
            casts: AtomicU8::new(0),
        }
    }

    pub(crate) async fn clear(&self) {
        self.made.clear().await.unwrap();
        self.given.clear().await.unwrap();
    }

    /// The host of a machine, and the sandbox it is in.
    async fn find(&self, machine: &Machine) -> Option<(&Sandbox, hosts::sandbox::Seen)> {
        for sandbox in [&self.made, &self.given] {
            if let Some(seen) = sandbox.find(&machine.id.to_string()).await {
                return Some((sandbox, seen));
            }
        }
        None
    }
}

/// What a host shows to somebody who is in it without a key: the driver's own hosts know the
/// cluster's key alone.
fn shown(seen: &hosts::sandbox::Seen) -> String {
    let inside = Command::new("nsenter")
        .args(["--target", &inside_of(seen.address).to_string()])
        .args(["--mount", "--net", "--pid", "sh", "-c", PICTURE])
        .output()
        .unwrap();
    String::from_utf8_lossy(&inside.stdout).into_owned()
}

/// The SSH server of a host, found by the address it is reached at: it is inside the host's
/// namespaces.
pub(crate) fn inside_of(at: Ipv4Addr) -> u32 {
    let mut found = None;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if !line.starts_with(b"sshd: /usr/sbin/sshd -D") && !line.starts_with(b"/usr/sbin/sshd") {
            continue;
        }
        let routes = Command::new("nsenter")
            .args(["--target", &pid.to_string(), "--net", "ip", "-br", "addr"])
            .output()
            .unwrap();
        let address = format!(" {at}/");
        if String::from_utf8_lossy(&routes.stdout).contains(&address) {
            found = Some(pid);
        }
    }
    found.unwrap()
}

/// A machine that a sandbox makes.
pub(crate) fn machine(
    cluster: ClusterId,
    name: &str,
    role: Role,
    last: u8,
    level: Level,
) -> Machine {
    let origin = Origin::Made {
        provider: "here".parse().unwrap(),
        via: Provider::Sandbox,
        region: "local".to_owned(),
        zone: None,
        server_type: level.as_str().to_owned(),
        image: hosts::sandbox::IMAGE.to_owned(),
        hardware: model::hardware::Hardware::default(),
        secret: None,
    };
    suite::machine(cluster, name, role, last, origin).unwrap()
}

/// Where a machine comes from that is there already, and is entered by root.
pub(crate) fn given_at(endpoint: Ipv4Addr) -> Origin {
    Origin::Given {
        endpoint,
        ssh_port: 22,
        username: "root".to_owned(),
        secret: Some(SecretRef {
            name: "keys".parse().unwrap(),
            key: None,
        }),
        jump: None,
    }
}

impl Fixture for Stage {
    type Driver = Hosts;

    fn driver(&self) -> &Hosts {
        &self.hosts
    }

    fn clock(&self) -> Clock {
        Clock::System
    }

    fn cast(&self) -> Cast {
        let number = self.casts.fetch_add(1, Ordering::Relaxed);
        let name: Name = format!("cluster-{number}").parse().unwrap();
        let cluster = ClusterId::derive(id::Origin {
            parent: "lab",
            name: name.as_str(),
            ordinal: 0,
            incarnation: 0,
        });
        let mut given = machine(cluster, "given", Role::Compute, 3, Level::Lite);
        let order = Order {
            id: given.id.to_string(),
            ..self.lab.order("given", Level::Lite)
        };
        let made = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(self.given.create(&order))
        });
        given.origin = given_at(made.unwrap().address);
        Cast {
            cluster,
            name,
            network: "10.8.0.0/24".parse().unwrap(),
            version: "1.34.0".parse().unwrap(),
            next_version: "1.35.0".parse().unwrap(),
            control: machine(cluster, "control", Role::Control, 1, Level::Lite),
            compute: machine(cluster, "compute", Role::Compute, 2, Level::Lite),
            given,
            balancer: Some(machine(cluster, "door", Role::Balancer, 4, Level::Lite)),
            kubernetes: false,
        }
    }

    /// A machine that nobody can enter: there is no such key.
    fn impossible(&self, cast: &Cast) -> Task {
        let mut machine = cast.given.clone();
        if let Origin::Given { username, .. } = &mut machine.origin {
            "nobody-at-all".clone_into(username);
        }
        cast.task(&machine, Action::Prepare)
    }

    async fn machines_named(&self, machine: MachineId) -> usize {
        let id = machine.to_string();
        let made = self.made.list().await;
        made.iter().filter(|seen| seen.id == id).count()
    }

    async fn picture(&self, cast: &Cast) -> String {
        let mut picture = String::new();
        for machine in cast.machines() {
            if let Some((_, seen)) = self.find(&machine).await {
                let shown = shown(&seen);
                picture.push_str(&format!("{} {:?}\n{shown}", machine.name, seen.state));
            }
        }
        picture
    }

    async fn cut_power(&self, machine: &Machine) {
        if let Some((sandbox, seen)) = self.find(machine).await {
            sandbox.power_off(&seen.id).await.unwrap();
        }
    }

    fn soon(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn unforeseen(
        &self,
        task: &Task,
        before: &[Observation],
        after: &[Observation],
    ) -> Vec<String> {
        plan::unforeseen(
            task,
            &before.iter().cloned().collect(),
            after,
            self.clock().now(),
        )
    }

    fn secrets(&self) -> Arc<dyn Open> {
        Arc::new(Ring::new(std::fs::read(self.lab.dir.join("key")).unwrap()))
    }
}
