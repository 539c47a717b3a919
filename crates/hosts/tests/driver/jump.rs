//! A given machine that only one other host can reach: the driver goes through that one.

use crate::apart::{Lab, apart};
use crate::stage::inside_of;
use driver::{Clock, Context, Driver as _, Keeping, Log, Open, Opening, Outcome, Target};
use hosts::sandbox::{Ending, Level, Made, Order, Sandbox};
use hosts::{Hosts, Parts};
use model::cluster::{Generation, Jump, Machine, Origin, Role};
use model::host::{Purpose, Recipe};
use model::id::{self, ClusterId, MachineId, TaskId};
use model::name::Name;
use model::observed::{Fact, MachineFact};
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::task::{Action, Task};
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Keys by the name of their secret, and what came of tasks, as the vault has them.
#[derive(Default)]
struct Book {
    keys: Mutex<BTreeMap<String, Vec<u8>>>,
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
    opened: Mutex<Vec<String>>,
}

impl Open for Book {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        let name = secret.name.to_string();
        let key = self.keys.lock().unwrap()[&name].clone();
        self.opened.lock().unwrap().push(name);
        Box::pin(std::future::ready(Ok(Secret::from(key))))
    }

    fn kept<'a>(&'a self, _: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        let kept = self.kept.lock().unwrap().get(entry.as_str()).cloned();
        Box::pin(std::future::ready(Ok(kept.map(Secret::from))))
    }
}

impl Book {
    fn key(&self, secret: &str, key: &Secret) {
        let key = key.expose().to_vec();
        self.keys.lock().unwrap().insert(secret.to_owned(), key);
    }

    fn text(&self, entry: &str) -> String {
        let kept = self.kept.lock().unwrap().get(entry).cloned();
        String::from_utf8(kept.unwrap_or_default()).unwrap()
    }

    /// The secrets that were opened since the last call.
    fn opened(&self) -> Vec<String> {
        std::mem::take(&mut *self.opened.lock().unwrap())
    }
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _: Timestamp, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// Two hosts, of which the second answers to the first alone.
struct Stage {
    lab: Lab,
    sandbox: Sandbox,
    jump: Made,
    behind: Made,
    hosts: Hosts,
    book: Arc<Book>,
    lines: Arc<Lines>,
    machine: Machine,
}

fn origin(name: &str) -> id::Origin<'_> {
    id::Origin {
        parent: "lab",
        name,
        ordinal: 1,
        incarnation: 0,
    }
}

fn secret(name: &str) -> SecretRef {
    SecretRef {
        name: name.parse().unwrap(),
        key: None,
    }
}

fn driver(lab: &Lab, sandbox: &Sandbox) -> Hosts {
    Hosts::new(Parts {
        sandbox: sandbox.clone().into(),
        cache: lab.dir.join("cache"),
        sources: Vec::new(),
        playbooks: false,
    })
}

/// Runs a test with two hosts of its own.
fn staged(name: &str, body: impl AsyncFnOnce(&mut Stage)) {
    apart(name, Level::Lite, async |lab| {
        let mut stage = Stage::new(lab).await;
        body(&mut stage).await;
        stage.sandbox.clear().await.unwrap();
    });
}

impl Stage {
    async fn new(lab: Lab) -> Self {
        let sandbox = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
        let (front, authorized_key) = hosts::ssh::new_key("front").unwrap();
        let order = Order {
            authorized_key,
            ..lab.order("jump", Level::Lite)
        };
        let jump = sandbox.create(&order).await.unwrap();
        let order = lab.order("behind", Level::Lite);
        let behind = sandbox.create(&order).await.unwrap();
        // Whatever it says to us is lost; the other host hears it.
        let deaf = std::process::Command::new("nsenter")
            .args(["--target", &inside_of(behind.address).to_string(), "--net"])
            .args(["ip", "route", "add", "blackhole", "10.77.0.1/32"])
            .status();
        assert!(deaf.unwrap().success());
        let book = Book::default();
        book.key("front", &front);
        let rack = std::fs::read(lab.dir.join("key")).unwrap();
        book.key("rack", &Secret::from(rack));
        let stage = Self {
            hosts: driver(&lab, &sandbox),
            machine: machine(&jump, &behind),
            lab,
            sandbox,
            jump,
            behind,
            book: Arc::new(book),
            lines: Arc::default(),
        };
        assert!(!stage.in_reach());
        stage
    }

    async fn until(&self, what: &str, so: impl Fn() -> bool) {
        for _ in 0..300 {
            if so() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}: not within a while");
    }

    /// Whether we reach the host behind without the one in front.
    fn in_reach(&self) -> bool {
        let at = SocketAddr::from((self.behind.address, 22));
        TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok()
    }

    /// As after a new start of the server: nothing is known but what was kept.
    fn restart(&mut self) {
        self.hosts = driver(&self.lab, &self.sandbox);
    }

    fn context(&self) -> Context {
        let (log, book): (Arc<dyn Log>, Arc<dyn Open>) = (self.lines.clone(), self.book.clone());
        Context::new(Clock::System, log, book, CancellationToken::new(), 1)
    }

    /// Carries out a task and keeps what came of it; tells how it ended.
    async fn act(&self, action: Action) -> String {
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
        match self.hosts.apply(&self.context(), &task).await {
            Outcome::Done(_, outputs) => {
                let mut kept = self.book.kept.lock().unwrap();
                for output in outputs {
                    assert_eq!(output.owner, Owner::Machine(self.machine.id));
                    kept.insert(output.entry.to_string(), output.value.expose().to_vec());
                }
                "done".to_owned()
            }
            Outcome::Retry(error) => format!("retry {}", error.attempted),
            Outcome::Stuck(error) => format!("stuck {}", error.attempted),
        }
    }

    async fn equip(&self) -> String {
        let recipe = Recipe {
            purpose: Purpose::Node,
            proxy: None,
            playbooks: Vec::new(),
        };
        self.act(Action::Equip { recipe }).await
    }

    /// What a look sees of the machine.
    async fn look(&self) -> Vec<Fact> {
        let target = Target {
            cluster: ClusterId::derive(origin("edge")),
            machines: vec![self.machine.clone()],
            whole: false,
        };
        let seen = self.hosts.probe(&self.context(), &target).await;
        seen.into_iter().map(|seen| seen.fact).collect()
    }

    fn jump(&mut self) -> &mut Jump {
        match &mut self.machine.origin {
            Origin::Given {
                jump: Some(jump), ..
            } => jump,
            Origin::Given { .. } | Origin::Made { .. } => panic!("it is behind another host"),
        }
    }

    /// What a person sees on the jump host.
    fn on_jump(&self, command: &str) -> String {
        let key = self.lab.dir.join("front-key");
        std::fs::write(&key, &self.book.keys.lock().unwrap()["front"]).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&key, mode).unwrap();
        let output = std::process::Command::new("ssh")
            .args([
                "-F",
                "/dev/null",
                "-o",
                "BatchMode=yes",
                "-o",
                "IdentitiesOnly=yes",
            ])
            .args([
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
                "-i",
            ])
            .arg(&key)
            .args([&format!("root@{}", self.jump.address), command])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {said}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// The key that the jump host shows to everybody.
    fn shown_key(&self) -> String {
        let scan = std::process::Command::new("ssh-keyscan")
            .args(["-T", "5", "-t", "ed25519", &self.jump.address.to_string()])
            .output()
            .unwrap();
        String::from_utf8_lossy(&scan.stdout).into_owned()
    }

    fn log(&self) -> String {
        std::mem::take(&mut *self.lines.0.lock().unwrap()).join("\n")
    }
}

fn machine(jump: &Made, behind: &Made) -> Machine {
    Machine {
        id: MachineId::derive(origin("rack")),
        name: "edge-rack-01".parse().unwrap(),
        pool: "rack".parse().unwrap(),
        role: Role::Compute,
        ordinal: 1,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, 1),
        balancer: None,
        origin: Origin::Given {
            endpoint: behind.address,
            ssh_port: 22,
            username: "root".to_owned(),
            secret: Some(secret("rack")),
            jump: Some(Jump {
                endpoint: jump.address,
                ssh_port: 22,
                username: "root".to_owned(),
                secret: Some(secret("front")),
                since: Generation(1),
            }),
        },
    }
}

/// A key without its comment.
fn bare(line: &str) -> String {
    line.split_whitespace()
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_machine_behind_another_is_taken_equipped_looked_at_and_given_back() {
    staged(
        "jump::a_machine_behind_another_is_taken_equipped_looked_at_and_given_back",
        async |stage| {
            stage.on_jump("touch /run/mark");
            assert_eq!(stage.act(Action::Prepare).await, "done", "{}", stage.log());
            assert_eq!(
                stage.book.opened(),
                ["front", "rack"],
                "each door has its key"
            );
            assert_eq!(
                bare(&stage.book.text("host-key")),
                bare(&stage.behind.host_key)
            );
            let kept = stage.book.text("jump-host-key");
            let known = format!("1 {}:22 {}", stage.jump.address, bare(&stage.jump.host_key));
            assert!(kept.starts_with(&known), "{kept}");
            assert_eq!(stage.equip().await, "done", "{}", stage.log());
            let log = stage.log();
            assert!(log.contains("equip: changed "), "{log}");
            // A second run, and one after a new start of the server.
            for _ in 0..2 {
                assert_eq!(stage.equip().await, "done", "{}", stage.log());
                let log = stage.log();
                assert!(log.contains("equip: 0 changed, "), "{log}");
                stage.restart();
            }
            let seen = stage.look().await;
            let at = stage.behind.address;
            let running = |fact: &Fact| matches!(fact, Fact::Machine(_, MachineFact::Running { address, .. }) if *address == at);
            assert!(seen.iter().any(running), "{seen:?}");
            let equipped =
                |fact: &Fact| matches!(fact, Fact::Host(_, host) if host.equipped.is_some());
            assert!(seen.iter().any(equipped), "{seen:?}");
            assert_eq!(stage.act(Action::Release).await, "done", "{}", stage.log());
            let gone = Fact::Machine(stage.machine.id, MachineFact::Absent);
            assert_eq!(stage.look().await, [gone]);
            // Nothing was ever done to the one in front, nor was there another way.
            let changed = stage.on_jump("find /etc /usr /var/lib -newer /run/mark");
            assert_eq!(changed, "");
            assert!(!stage.in_reach());
        },
    );
}

#[test]
fn a_wrong_key_is_told_of_the_door_that_refuses_it() {
    staged(
        "jump::a_wrong_key_is_told_of_the_door_that_refuses_it",
        async |stage| {
            let (wrong, _) = hosts::ssh::new_key("wrong").unwrap();
            let right = stage.book.keys.lock().unwrap().clone();
            let (jump, behind) = (stage.jump.address, stage.behind.address);
            stage.book.key("front", &wrong);
            let told = stage.act(Action::Prepare).await;
            let refused = format!(
                "stuck could not reach root@{behind}:22, because of its jump host: \
                 could not log in to root@{jump}:22: it refuses the key "
            );
            assert!(told.starts_with(&refused), "{told}");
            assert!(told.ends_with(" (HOST-003)"), "{told}");
            assert_eq!(
                stage.book.opened(),
                ["front"],
                "the one behind is not reached"
            );
            assert_eq!(stage.look().await, [], "it was never entered");
            *stage.book.keys.lock().unwrap() = right.clone();
            stage.book.key("rack", &wrong);
            let told = stage.act(Action::Prepare).await;
            let refused = format!(
                "stuck could not log in to root@{behind}:22 through root@{jump}:22: it refuses the key "
            );
            assert!(told.starts_with(&refused), "{told}");
            assert!(told.ends_with(" (HOST-003)"), "{told}");
            *stage.book.keys.lock().unwrap() = right;
            assert_eq!(stage.act(Action::Prepare).await, "done", "{}", stage.log());
        },
    );
}

#[test]
fn a_jump_host_that_is_another_one_is_refused_until_it_is_put_back() {
    staged(
        "jump::a_jump_host_that_is_another_one_is_refused_until_it_is_put_back",
        async |stage| {
            assert_eq!(stage.act(Action::Prepare).await, "done", "{}", stage.log());
            let before = stage.book.text("jump-host-key");
            // The listening server only: whoever came by it is told the end by its own.
            stage.on_jump(
                "rm /etc/ssh/ssh_host_ed25519_key* && ssh-keygen -q -N '' -t ed25519 -f /etc/ssh/ssh_host_ed25519_key \
                 && kill \"$(pgrep -o -x sshd)\"",
            );
            stage.restart();
            let old = bare(&stage.jump.host_key);
            stage
                .until("the jump host answers with another key", || {
                    let now = stage.shown_key();
                    !now.is_empty() && !now.contains(&old)
                })
                .await;
            stage.book.opened();
            let (jump, behind) = (stage.jump.address, stage.behind.address);
            let told = stage.equip().await;
            let refused = format!(
                "stuck could not reach root@{behind}:22, because of its jump host: \
                 could not connect to root@{jump}:22: its host key is SHA256:"
            );
            assert!(told.starts_with(&refused), "{told}");
            assert!(told.ends_with(" is pinned (HOST-004)"), "{told}");
            assert_eq!(
                stage.book.opened(),
                Vec::<String>::new(),
                "no key is shown to it"
            );
            let reference = format!("host-{behind}");
            let seen = stage.look().await;
            let [
                Fact::Machine(
                    machine,
                    MachineFact::Unreachable {
                        reference: told,
                        because,
                    },
                ),
            ] = seen.as_slice()
            else {
                panic!("it is out of reach: {seen:?}");
            };
            assert_eq!((*machine, told), (stage.machine.id, &reference));
            let because = because.as_deref().unwrap();
            assert!(because.contains("(HOST-004)"), "{because}");
            // Somebody took it out of the manifest and put it back: it is met anew, and then kept.
            stage.jump().since = Generation(3);
            assert_eq!(stage.equip().await, "done", "{}", stage.log());
            let after = stage.book.text("jump-host-key");
            assert!(
                after.starts_with(&format!("3 {jump}:22 ssh-ed25519 ")),
                "{after}"
            );
            assert_ne!(
                bare(after.split_once("22 ").unwrap().1),
                bare(before.split_once("22 ").unwrap().1)
            );
            // The one behind is known as it was.
            assert_eq!(
                bare(&stage.book.text("host-key")),
                bare(&stage.behind.host_key)
            );
            stage.restart();
            assert_eq!(stage.equip().await, "done", "{}", stage.log());
        },
    );
}

#[test]
fn a_jump_host_that_is_away_is_named_and_waited_for() {
    staged(
        "jump::a_jump_host_that_is_away_is_named_and_waited_for",
        async |stage| {
            assert_eq!(stage.act(Action::Prepare).await, "done", "{}", stage.log());
            stage.sandbox.power_off("jump").await.unwrap();
            // The connections are still believed to be open, and then there are none.
            for _ in 0..2 {
                let told = stage.equip().await;
                let away = format!(
                    "retry could not reach root@{}:22, because of its jump host: could not connect to root@{}:22: ",
                    stage.behind.address, stage.jump.address
                );
                assert!(told.starts_with(&away), "{told}");
                stage.restart();
            }
            stage.sandbox.power_on("jump").await.unwrap();
            assert_eq!(stage.equip().await, "done", "{}", stage.log());
            // A power cut that nobody noticed is none the next time.
            stage.sandbox.reboot("jump").await.unwrap();
            assert_eq!(stage.equip().await, "done", "{}", stage.log());
        },
    );
}
