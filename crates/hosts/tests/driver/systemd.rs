//! A life on hosts with systemd: packages of the distribution, units, a real reboot and a power cut.

use crate::apart::{Lab, World, apart_with, groups, keys};
use crate::scene::{Inside, Scene};
use crate::stage::{given_at, machine};
use crate::{envoy, way_out};
use driver::suite::{balance, equip};
use hosts::artifacts::Source;
use hosts::sandbox::{Level, Order, Sandbox};
use hosts::{Hosts, Parts, balancer};
use model::cluster::{Machine, Role};
use model::host::{Proxy, Purpose, Recipe};
use model::id::{self, ClusterId};
use model::observed::{Fact, MachineFact};
use model::task::{Action, Task};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Where hosts find the way out.
const WAY_OUT: &str = "10.77.0.1:3128";

/// What equipping a node asks of its distribution.
const PACKAGES: &str =
    "containerd containernetworking-plugins conntrack ethtool open-iscsi nfs-common socat";

/// Takes them from a host, and what came with them. Descriptions in every language are too much to
/// fetch, and a host that is thrown away need not wait for its disk.
const PURGE: &str = "echo 'Acquire::Languages \"none\";' >/etc/apt/apt.conf.d/99short; \
    echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/99short; export DEBIAN_FRONTEND=noninteractive; \
    apt-get -q -y purge --auto-remove PACKAGES >/tmp/purged 2>&1 || { cat /tmp/purged; exit 1; }; rm /tmp/purged";

/// Whether the package sources of a host answer through the way out.
const SOURCES: &str = "set -- $(grep -m 1 -o 'http[^ ]* [^ ]*' /etc/apt/sources.list); \
    curl -sf -m 20 -o /dev/null -x http://WAY_OUT \"$1/dists/$2/InRelease\"";

/// What a given host must show again when it is given back: packages, what runs at boot, our
/// files, and settings of the kernel.
const PICTURE: &str = "dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n' | grep -v ^rc; \
    systemctl list-unit-files --no-legend --state=enabled | cut -d' ' -f1; \
    find / -xdev \\( -path /proc -o -path /var/lib/dpkg -o -path /var/cache -o -path /var/lib/apt -o -path /var/log \
        -o -path /usr/lib/slipway -o -path /etc/ssh \\) -prune -o \\( -name '*slipway*' -o -path '/etc/wireguard/*' \
        -o -path '/etc/containerd/*' -o -path '/etc/sysctl.d/*' -o -path '/etc/systemd/system/*' \
        -o -path '/etc/modules-load.d/*' -o -path '/usr/local/*' -o -name crictl.yaml \\) -print | sort; \
    sysctl net.ipv4.ip_forward net.ipv4.ip_local_port_range net.ipv4.tcp_fin_timeout; cat /etc/environment; \
    systemctl is-active containerd || :; ip -br link | cut -d' ' -f1 | cut -d@ -f1";

/// Answers with the host's name, now and after each boot.
const TARGET: &str = "mkdir -p /srv/answer; hostname >/srv/answer/index.html; \
    printf '[Service]\\nExecStart=/usr/bin/python3 -m http.server 30080 --directory /srv/answer\\n\
    [Install]\\nWantedBy=multi-user.target\\n' >/etc/systemd/system/answer.service; \
    systemctl enable -q --now answer";

const NO_TARGET: &str =
    "systemctl disable -q --now answer; rm -r /etc/systemd/system/answer.service /srv/answer";

#[test]
fn hosts_with_systemd_live_through_reboots_and_leave_nothing() {
    let name = "systemd::hosts_with_systemd_live_through_reboots_and_leave_nothing";
    let Some(mirror) = envoy::mirror(name) else {
        return;
    };
    apart_with(name, Level::Systemd, way_out::outer, async |lab| {
        let empty = lab.world();
        let story = Story::begin(lab, mirror).await;
        let before = story.equip(name).await;
        story.connect().await;
        story.balance().await;
        story.go_down().await;
        story.end(&before, &empty).await;
    });
}

/// Two machines that are made and one that is given, all of one sandbox.
struct Story {
    lab: Lab,
    sandbox: Sandbox,
    scene: Arc<Scene>,
    control: Machine,
    door: Machine,
    given: Machine,
    begun: Instant,
}

impl Story {
    /// All three boot at once.
    async fn begin(lab: Lab, mirror: PathBuf) -> Self {
        let begun = Instant::now();
        let sandbox = lab.open().await;
        let cluster = ClusterId::derive(id::Origin {
            parent: "lab",
            name: "systemd",
            ordinal: 0,
            incarnation: 0,
        });
        let machine = |name, role, last| machine(cluster, name, role, last, Level::Systemd);
        let control = machine("control", Role::Control, 1);
        let door = machine("door", Role::Balancer, 2);
        let mut given = machine("given", Role::Compute, 3);
        let hosts = Hosts::new(Parts {
            sandbox: sandbox.clone().into(),
            cache: lab.dir.join("cache"),
            sources: vec![Source::Directory(mirror)],
            playbooks: false,
        });
        let key = std::fs::read(lab.dir.join("key")).unwrap();
        let scene = Arc::new(Scene::new(hosts, cluster, key));
        scene.act(&control, Action::Key).await;
        let order = Order {
            id: given.id.to_string(),
            ..lab.order("given", Level::Systemd)
        };
        let (made, ..) = tokio::join!(
            sandbox.create(&order),
            scene.act(&control, Action::Create),
            scene.act(&door, Action::Create),
        );
        given.origin = given_at(made.unwrap().address);
        let story = Self {
            lab,
            sandbox,
            scene,
            control,
            door,
            given,
            begun,
        };
        story.tell("three hosts answer");
        story
    }

    fn tell(&self, what: &str) {
        println!("{what} after {:.1} s", self.begun.elapsed().as_secs_f64());
    }

    async fn at(&self, machine: &Machine) -> Ipv4Addr {
        let seen = self.sandbox.find(&machine.id.to_string()).await;
        seen.unwrap().address
    }

    async fn inside(&self, machine: &Machine) -> Inside {
        Inside::at(self.at(machine).await)
    }

    /// Does something until it works: what was just started may need a moment.
    async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let began = Instant::now();
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(began.elapsed() < Duration::from_mins(1), "{what}: never");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Story {
    /// Takes the given host's packages away, where they can be had again; answers what it shows,
    /// and whether they can.
    async fn bare(&self, test: &str) -> (String, bool) {
        way_out::inner(&self.lab.dir, WAY_OUT.parse().unwrap());
        let inside = self.inside(&self.given).await;
        let sources = inside.try_sh(&SOURCES.replace("WAY_OUT", WAY_OUT)).is_ok();
        if sources {
            inside.sh(&PURGE.replace("PACKAGES", PACKAGES));
        } else {
            lab::skip(test, "package sources do not answer: nothing is installed");
        }
        self.tell("the given host is bare");
        (inside.sh(PICTURE), sources)
    }

    /// What the given host is told: to fetch its packages through the way out.
    fn through_proxy(&self) -> Task {
        let proxy = Proxy {
            endpoint: format!("http://{WAY_OUT}"),
            except: vec!["localhost".to_owned()],
        };
        let recipe = Recipe {
            purpose: Purpose::Node,
            proxy: Some(proxy),
            playbooks: Vec::new(),
        };
        self.scene.task(&self.given, Action::Equip { recipe })
    }

    /// All are equipped at once, the given one is killed while it installs; answers what the nodes
    /// showed before.
    async fn equip(&self, test: &str) -> [String; 2] {
        // Its packages were there before us, and their services ran.
        let furnished = self.inside(&self.control).await.sh(PICTURE);
        let made = async |machine: &Machine| {
            let task = self.scene.task(machine, equip(machine));
            self.scene.done(&task).await;
            assert_eq!(self.scene.done(&task).await.0, 0, "{}", machine.name);
        };
        let given = async {
            let (bare, sources) = self.bare(test).await;
            self.scene.act(&self.given, Action::Prepare).await;
            let task = self.through_proxy();
            self.killed(&task, sources).await;
            self.scene.done(&task).await;
            assert_eq!(self.scene.done(&task).await.0, 0);
            bare
        };
        let (bare, ..) = tokio::join!(given, made(&self.control), made(&self.door));
        for node in [&self.control, &self.given] {
            let inside = self.inside(node).await;
            inside.sh(&format!("dpkg-query -W {PACKAGES} && ctr version"));
            let state =
                inside.sh("systemctl is-active containerd; systemctl is-enabled containerd");
            assert_eq!(state, "active\nenabled", "{}", node.name);
        }
        self.tell("all are equipped");
        [furnished, bare]
    }

    /// An attempt that ends in the middle, with packages half unpacked where there are any.
    async fn killed(&self, task: &Task, sources: bool) {
        let attempt = self.scene.attempt();
        let applied = self.scene.apply(&attempt, task);
        let middle = Self::until("the middle of equipping", async || {
            let log = attempt.log();
            let begun = log.iter().any(|line| line.contains("Unpacking containerd"));
            (begun || !sources).then_some(log)
        });
        tokio::select! {
            outcome = applied => panic!("it ended before it was killed: {outcome:?}"),
            log = middle => println!("killed after {} lines: {:?}", log.len(), log.last()),
        }
    }

    /// The mesh over all three, by the units that start it at each boot.
    async fn connect(&self) {
        let all = [&self.control, &self.door, &self.given].map(Clone::clone);
        let task = self.scene.mesh(&all).await;
        self.scene.done(&task).await;
        assert_eq!(self.scene.done(&task).await.0, 0);
        for machine in &all {
            let unit = "systemctl is-active wg-quick@wg0; systemctl is-enabled wg-quick@wg0";
            assert_eq!(self.inside(machine).await.sh(unit), "active\nenabled");
        }
        self.reach_each_other().await;
        self.tell("all reach each other");
    }

    async fn reach_each_other(&self) {
        // Who was down speaks first: it knows that its peers must shake hands again.
        for from in [&self.given, &self.door, &self.control] {
            let inside = self.inside(from).await;
            for to in [&self.control, &self.door, &self.given] {
                let ping = format!("ping -c 1 -W 1 {}", to.address);
                let what = format!("{} to {}", from.name, to.name);
                Self::until(&what, async || inside.try_sh(&ping).ok()).await;
            }
        }
    }

    /// The two nodes answer through the door, over the mesh.
    async fn balance(&self) {
        for node in [&self.control, &self.given] {
            self.inside(node).await.sh(TARGET);
        }
        let task = self.balancing();
        self.scene.done(&task).await;
        assert_eq!(self.scene.done(&task).await.0, 0);
        let unit = format!(
            "systemctl is-active {0}; systemctl is-enabled {0}",
            balancer::SERVICE
        );
        assert_eq!(self.inside(&self.door).await.sh(&unit), "active\nenabled");
        self.answer(&["host-given", "control"]).await;
        self.tell("both answer through the load balancer");
    }

    fn balancing(&self) -> Task {
        let targets = [&self.control, &self.given];
        self.scene.task(&self.door, balance(&self.door, &targets))
    }

    /// Asks the door until exactly these have answered in ten requests.
    async fn answer(&self, names: &[&str]) {
        let wished: BTreeSet<String> = names.iter().map(|&name| name.to_owned()).collect();
        let url = format!("http://{}:8080/", self.at(&self.door).await);
        Self::until(&format!("{names:?} answer"), async || {
            let heard: BTreeSet<String> = (0..10).map(|_| asked(&url)).collect();
            (heard == wished).then_some(())
        })
        .await;
    }

    /// Nothing is left to do for anybody.
    async fn settled(&self) {
        let all = [&self.control, &self.door, &self.given].map(Clone::clone);
        let tasks = [
            self.scene.task(&self.control, equip(&self.control)),
            self.scene.task(&self.door, equip(&self.door)),
            self.through_proxy(),
            self.scene.mesh(&all).await,
            self.balancing(),
        ];
        for task in tasks {
            let (changed, _) = self.scene.done(&task).await;
            assert_eq!(changed, 0, "{} {}", task.action.kind(), task.machine.name);
        }
    }

    /// The given host loses its power, and the door goes down in good order and comes back; who is
    /// left goes on, and when all are back they are as they were.
    async fn go_down(&self) {
        let (given, door) = (self.given.id.to_string(), self.door.id.to_string());
        let before = (
            self.scene.told(&self.door).await,
            self.scene.told(&self.given).await,
        );
        self.sandbox.power_off(&given).await.unwrap();
        let looked = async {
            let seen = self.scene.look(std::slice::from_ref(&self.given)).await;
            let silent =
                |fact: &Fact| matches!(fact, Fact::Machine(_, MachineFact::Unreachable { .. }));
            assert!(seen.iter().all(silent) && seen.len() == 1, "{seen:?}");
        };
        let rebooted = async {
            self.sandbox.reboot(&door).await.unwrap();
            assert_ne!(self.scene.told(&self.door).await.boot, before.0.boot);
            self.tell("the load balancer rebooted");
            self.answer(&["control"]).await;
            self.tell("it serves with who is left");
        };
        tokio::join!(looked, rebooted);
        self.sandbox.power_on(&given).await.unwrap();
        assert_ne!(self.scene.told(&self.given).await.boot, before.1.boot);
        self.reach_each_other().await;
        self.tell("with its power back all reach each other");
        self.answer(&["host-given", "control"]).await;
        let inside = self.inside(&self.given).await;
        Self::until("containerd", async || inside.try_sh("ctr version").ok()).await;
        self.settled().await;
        self.tell("nothing is left to do");
    }

    /// Both nodes are given back as they were, and nothing is left of anybody.
    async fn end(&self, before: &[String; 2], empty: &World) {
        let given_back = async |node: &Machine, before: &str| {
            let inside = self.inside(node).await;
            inside.sh(NO_TARGET);
            assert_ne!(self.scene.act(node, Action::Release).await, 0);
            assert_eq!(self.scene.act(node, Action::Release).await, 0);
            let shown = inside.sh(PICTURE);
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
            let (shown, mut before) = (lines(&shown), lines(before));
            // Whose it is was told when it was made.
            before.remove("/etc/slipway");
            let differ: Vec<_> = shown.symmetric_difference(&before).collect();
            assert!(differ.is_empty(), "{}: {differ:#?}", node.name);
        };
        let [furnished, bare] = before;
        tokio::join!(
            given_back(&self.control, furnished),
            given_back(&self.given, bare)
        );
        self.tell("both nodes are as they were");
        let hosts = keys(&self.lab.dir);
        for machine in [&self.control, &self.door] {
            self.scene.act(machine, Action::Delete).await;
            assert_eq!(self.sandbox.find(&machine.id.to_string()).await, None);
        }
        self.sandbox.clear().await.unwrap();
        for key in &hosts {
            assert_eq!(groups(key), Vec::<PathBuf>::new());
        }
        self.lab.settles_to(empty).await;
        self.tell("nothing is left");
    }
}

/// Who answers at an address; nobody where it takes too long.
fn asked(url: &str) -> String {
    let answer = std::process::Command::new("curl")
        .args(["-s", "-m", "5", url])
        .output()
        .unwrap();
    String::from_utf8_lossy(&answer.stdout).trim().to_owned()
}
