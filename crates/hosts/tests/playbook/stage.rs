//! One real host, and a driver that plays playbooks on it.

use crate::apart::{Lab, apart};
use driver::{Clock, Context, Driver as _, Keeping, Log, Open, Opening, Outcome};
use hosts::sandbox::{Ending, Level, Made, Order, Sandbox};
use hosts::{Hosts, Parts};
use model::cluster::{Generation, Jump, Machine, Origin, Role};
use model::host::{Playbook, Purpose, Recipe};
use model::id::{self, ClusterId, MachineId, TaskId};
use model::name::Name;
use model::observed::Fact;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::task::{Action, Task};
use model::time::Timestamp;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Runs a test on a host of its own, where there is an Ansible.
pub(crate) fn on_a_host(name: &str, user: &str, body: impl AsyncFnOnce(Stage)) {
    let Some(ansible) = ansible() else {
        let reason =
            "there is no ansible-core; SLIPWAY_ANSIBLE names the directory of its programs";
        return lab::skip(name, reason);
    };
    apart(name, Level::Lite, async |lab| {
        let stage = Stage::new(lab, user, &ansible).await;
        let sandbox = stage.sandbox.clone();
        body(stage).await;
        sandbox.clear().await.unwrap();
    });
}

/// The same on a host that is entered through another one, which has another key and a user of
/// its own.
pub(crate) fn behind_another(name: &str, body: impl AsyncFnOnce(Stage, Made)) {
    on_a_host(name, "root", async |mut stage| {
        let key = stage.lab.dir.join("front");
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&key)
            .status();
        assert!(made.unwrap().success());
        let order = Order {
            authorized_key: std::fs::read_to_string(key.with_extension("pub")).unwrap(),
            ..stage.lab.order("front", Level::Lite)
        };
        let front = stage.sandbox.create(&order).await.unwrap();
        if let Origin::Given { jump, .. } = &mut stage.machine.origin {
            *jump = Some(Jump {
                endpoint: front.address,
                ssh_port: 22,
                username: "root".to_owned(),
                secret: Some(secret("front")),
                since: Generation(1),
            });
        }
        body(stage, front).await;
    });
}

/// Where Ansible's programs are.
fn ansible() -> Option<PathBuf> {
    let tools = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools/ansible/bin");
    let named = std::env::var_os("SLIPWAY_ANSIBLE").map(PathBuf::from);
    let bin = named.unwrap_or(tools).canonicalize().ok()?;
    bin.join("ansible-playbook").exists().then_some(bin)
}

/// One host with a driver.
pub(crate) struct Stage {
    pub(crate) lab: Lab,
    pub(crate) made: Made,
    pub(crate) hosts: Hosts,
    pub(crate) machine: Machine,
    sandbox: Sandbox,
    lines: Arc<Lines>,
    pub(crate) cancel: CancellationToken,
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _: Timestamp, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// The directory with the keys of the hosts, each under the name of its secret.
struct Keyring(PathBuf);

impl Open for Keyring {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        let key = std::fs::read(self.0.join(secret.name.as_str())).unwrap();
        Box::pin(std::future::ready(Ok(Secret::from(key))))
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// What a person without root's key needs.
const USER: &str = "useradd -m -s /bin/sh ann && cp -r /root/.ssh /home/ann/ && chown -R ann /home/ann \
    && echo 'ann ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/ann";

impl Stage {
    async fn new(lab: Lab, user: &str, ansible: &std::path::Path) -> Self {
        let sandbox = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
        let made = sandbox
            .create(&lab.order("one", Level::Lite))
            .await
            .unwrap();
        if user != "root" {
            lab.ssh(&made, USER).unwrap();
        }
        let mut path = ansible.as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let hosts = Hosts::new(Parts {
            sandbox: sandbox.clone().into(),
            cache: lab.dir.join("cache"),
            sources: Vec::new(),
            playbooks: true,
        });
        let stage = Self {
            machine: machine(user, made.address),
            hosts: hosts.searching(path),
            lab,
            made,
            sandbox,
            lines: Arc::default(),
            cancel: CancellationToken::new(),
        };
        assert_eq!(told(stage.act(Action::Prepare).await), "done");
        stage
    }

    /// The same with other places where programs are searched.
    pub(crate) fn searching(mut self, path: impl Into<OsString>) -> Self {
        self.hosts = self.hosts.clone().searching(path.into());
        self
    }

    pub(crate) async fn act(&self, action: Action) -> Outcome {
        let keyring = Arc::new(Keyring(self.lab.dir.clone()));
        let log: Arc<dyn Log> = self.lines.clone();
        let cx = Context::new(Clock::System, log, keyring, self.cancel.clone(), 1);
        let task = Task {
            id: TaskId::derive(origin("task")),
            project: Name::default_project(),
            cluster: ClusterId::derive(origin("edge")),
            cluster_name: "edge".parse().unwrap(),
            generation: Generation(1),
            machine: self.machine.clone(),
            action,
            around: None,
        };
        self.hosts.apply(&cx, &task).await
    }

    /// Has the host play these, and tells how that ended.
    pub(crate) async fn equip(&self, playbooks: &[(&str, &str)]) -> String {
        let recipe = recipe(playbooks);
        told(self.act(Action::Equip { recipe }).await)
    }

    /// What a person sees on the host.
    pub(crate) fn on_host(&self, command: &str) -> String {
        let shown = self.lab.ssh(&self.made, command);
        shown.unwrap_or_else(|error| panic!("{command}: {error}\n{}", self.log()))
    }

    /// The stamp on the host.
    pub(crate) fn stamp(&self) -> String {
        self.on_host("cat /etc/slipway/prepared 2>/dev/null || echo none")
    }

    /// What was logged since the last call.
    pub(crate) fn log(&self) -> String {
        self.lines
            .0
            .lock()
            .unwrap()
            .drain(..)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// What a host is to have, with these playbooks.
pub(crate) fn recipe(playbooks: &[(&str, &str)]) -> Recipe {
    let playbook = |(name, text): &(&str, &str)| Playbook {
        name: name.parse().unwrap(),
        text: (*text).to_owned(),
    };
    Recipe {
        purpose: Purpose::Node,
        proxy: None,
        playbooks: playbooks.iter().map(playbook).collect(),
    }
}

/// How a task ended, and what the host says of itself.
pub(crate) fn told(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done(seen, _) => {
            let mut told = "done".to_owned();
            for seen in seen {
                if let Fact::Host(_, host) = seen.fact
                    && let Some(print) = host.equipped
                {
                    told = format!("done {print}");
                }
            }
            told
        }
        Outcome::Retry(error) => format!("retry {}", error.attempted),
        Outcome::Stuck(error) => format!("stuck {}", error.attempted),
    }
}

fn origin(name: &str) -> id::Origin<'_> {
    id::Origin {
        parent: "lab",
        name,
        ordinal: 1,
        incarnation: 0,
    }
}

fn machine(user: &str, endpoint: Ipv4Addr) -> Machine {
    Machine {
        id: MachineId::derive(origin("brain")),
        name: "edge-brain-01".parse().unwrap(),
        pool: "brain".parse().unwrap(),
        role: Role::Control,
        ordinal: 1,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, 1),
        balancer: None,
        origin: Origin::Given {
            endpoint,
            ssh_port: 22,
            username: user.to_owned(),
            secret: Some(secret("key")),
            jump: None,
        },
    }
}

fn secret(name: &str) -> SecretRef {
    SecretRef {
        name: name.parse().unwrap(),
        key: None,
    }
}
