//! Hosts as namespaces, and the bridge between them.
//!
//! Each host is a process that is the first of its own process, mount and network namespaces. It
//! reads from a pipe that we hold: when this process ends, however that happens, it ends too, and
//! the kernel ends whatever runs in there.

use hosts::mesh;
use hosts::program::{Mark, Program, Report};
use model::mesh::{Member, Mesh, MeshKey, Tunnel};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a host sees of this machine: an /etc of its own without our files, an empty /run.
const HOST: &str = "set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work
mount -t overlay none -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
rm -rf /etc/wireguard /etc/slipway
mount -t tmpfs none /run
ip link set lo up
echo ready
cat >/dev/null";

/// The first process of namespaces.
pub(crate) struct Space {
    outer: Child,
    /// The process inside, by which the namespaces are entered.
    inner: u32,
}

impl Space {
    /// New namespaces, in which `script` has said `ready` and still runs.
    fn new(script: &str) -> Self {
        let mut outer = Command::new("unshare")
            .args(["--net", "--mount", "--uts", "--pid", "--fork"])
            .args(["--kill-child=KILL", "--mount-proc", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(outer.stdout.take().unwrap())
            .read_line(&mut said)
            .unwrap();
        assert_eq!(said, "ready\n", "namespaces were not made");
        let of = outer.id();
        let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap();
        let inner = children.trim().parse().unwrap();
        Self { outer, inner }
    }

    /// A command that will run inside.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.inner.to_string()])
            .args(["--net", "--mount", "--uts", "--pid", program])
            .args(arguments);
        command
    }

    /// A cable from here to another, with the names of its ends. Only the network is entered:
    /// our process numbers mean nothing inside.
    fn join(&self, name: &str, other: &Self, there: &str) {
        let ended = Command::new("nsenter")
            .args([
                "--target",
                &self.inner.to_string(),
                "--net",
                "ip",
                "link",
                "add",
                name,
            ])
            .args([
                "type",
                "veth",
                "peer",
                "name",
                there,
                "netns",
                &other.inner.to_string(),
            ])
            .status();
        assert!(ended.unwrap().success(), "no cable");
    }

    /// What a line of shell prints; it must end well.
    pub(crate) fn sh(&self, line: &str) -> String {
        let out = self.command("sh", &["-c", line]).output().unwrap();
        let (said, wrong) = (utf8(out.stdout), utf8(out.stderr));
        assert!(out.status.success(), "{line}: {said}{wrong}");
        said
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        drop(self.outer.kill());
        drop(self.outer.wait());
    }
}

/// Hosts on one bridge.
pub(crate) struct World {
    bridge: Space,
}

impl World {
    pub(crate) fn new() -> Self {
        let script =
            "set -e; ip link add br0 type bridge; ip link set br0 up; echo ready; cat >/dev/null";
        Self {
            bridge: Space::new(script),
        }
    }

    /// A host on the bridge; its number is the last part of its addresses.
    pub(crate) fn host(&self, number: u8) -> Host {
        let space = Space::new(HOST);
        self.plug(&space, number);
        Host {
            space,
            number,
            given: false,
        }
    }

    /// Several, with the numbers from 1.
    pub(crate) fn hosts(&self, count: u8) -> Vec<Host> {
        (1..=count).map(|number| self.host(number)).collect()
    }

    /// A host that reaches the bridge only through a router that hides it.
    pub(crate) fn hidden(&self, number: u8) -> (Space, Host) {
        let router = Space::new(HOST);
        self.plug(&router, number);
        router.sh("echo 1 >/proc/sys/net/ipv4/ip_forward
            nft -f - <<'END'
            table ip nat {
                chain out { type nat hook postrouting priority srcnat; oifname eth0 masquerade random; }
                chain through {
                    type filter hook forward priority filter; policy drop;
                    iifname eth1 accept
                    ct state established,related accept
                }
            }
END");
        let space = Space::new(HOST);
        router.join("eth1", &space, "eth0");
        router.sh("ip address add 198.51.100.1/24 dev eth1; ip link set eth1 up");
        space.sh(
            "ip address add 198.51.100.2/24 dev eth0; ip link set eth0 up
                  ip route add default via 198.51.100.1",
        );
        let host = Host {
            space,
            number,
            given: true,
        };
        (router, host)
    }

    fn plug(&self, space: &Space, number: u8) {
        let port = format!("port{number}");
        self.bridge.join(&port, space, "eth0");
        self.bridge.sh(&format!("ip link set {port} master br0 up"));
        space.sh(&format!(
            "ip address add 192.0.2.{number}/24 dev eth0; ip link set eth0 up"
        ));
    }
}

/// A host as our programs see it.
pub(crate) struct Host {
    space: Space,
    number: u8,
    /// Whether it was there before us, and may be hidden behind a router.
    pub(crate) given: bool,
}

impl std::ops::Deref for Host {
    type Target = Space;

    fn deref(&self) -> &Space {
        &self.space
    }
}

impl Host {
    /// Its address in the mesh: each in another /24 of one /20, so that a wrong prefix shows.
    pub(crate) fn address(&self) -> String {
        format!("10.8.{0}.{0}", self.number)
    }

    /// Starts a program; it leads a process group.
    pub(crate) fn start(&self, program: &Program) -> Child {
        let limit = program.limit.as_secs().to_string();
        let mut child = Command::new("timeout")
            .args(["--foreground", "-s", "KILL", &limit, "nsenter"])
            .args(["--target", &self.space.inner.to_string()])
            .args(["--net", "--mount", "--uts", "--pid", "sh", "-s"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(program.text.as_bytes()).unwrap();
        child
    }

    /// Runs a program to its end, whatever that is.
    pub(crate) fn run(&self, program: &Program) -> Report {
        let out = self.start(program).wait_with_output().unwrap();
        let (said, wrong) = (utf8(out.stdout), utf8(out.stderr));
        let private = self.sh("cat /etc/wireguard/slipway.key 2>/dev/null || :");
        let told = format!("{said}{wrong}");
        assert!(
            private.is_empty() || !told.contains(private.trim()),
            "the private key was printed"
        );
        Report {
            status: out.status.code().and_then(|code| u32::try_from(code).ok()),
            marks: said.lines().filter_map(Mark::parse).collect(),
            tail: told
                .lines()
                .filter(|line| Mark::parse(line).is_none())
                .map(str::to_owned)
                .collect(),
            dropped: 0,
        }
    }

    /// Runs a program that must end well.
    pub(crate) fn well(&self, program: &Program) -> Report {
        let report = self.run(program);
        assert_eq!(
            (report.status, report.failure()),
            (Some(0), None),
            "{report:?}"
        );
        assert!(
            report.tail.iter().all(|line| line.starts_with("peers: ")),
            "{report:?}"
        );
        report
    }

    /// Its public key, made if need be.
    pub(crate) fn key(&self) -> MeshKey {
        mesh::key(&self.well(&mesh::key_program()))
            .unwrap()
            .unwrap()
    }

    /// It as a member of a mesh.
    pub(crate) fn member(&self) -> Member {
        let number = self.number;
        let origin = if self.given {
            r#""given":{"endpoint":"192.0.2.1","ssh_port":22,"username":"root"}"#
        } else {
            r#""made":{"provider":"lab","via":"simulated","region":"r","zone":null,"server_type":"s","image":"i"}"#
        };
        let text = format!(
            r#"{{"machine":{{"id":"{}","name":"m{number}","pool":"p","role":"compute","ordinal":1,
            "incarnation":0,"address":"{}","origin":{{{origin}}}}},"key":"{}","at":"192.0.2.{number}"}}"#,
            self.id(),
            self.address(),
            self.key(),
        );
        serde_json::from_str(&text).unwrap()
    }

    fn id(&self) -> String {
        format!("machine-00000000000{:02}", self.number)
    }

    /// Its end of a mesh.
    pub(crate) fn tunnel(&self, of: &Mesh) -> Tunnel {
        of.tunnel(self.id().parse().unwrap()).unwrap()
    }

    /// What it tells when it is looked at.
    pub(crate) fn look(&self) -> Report {
        self.well(&Program {
            title: "look".to_owned(),
            text: zeroize::Zeroizing::new(format!("set -eu\n{}", mesh::look_snippet())),
            limit: Duration::from_secs(20),
        })
    }

    /// Reaches another over the mesh, within half a minute.
    pub(crate) fn reaches(&self, other: &Self) {
        self.sh(&format!("ping -q -c 1 -w 30 {}", other.address()));
    }

    /// The process of its wireguard-go, or nothing.
    pub(crate) fn daemon(&self) -> String {
        let daemons = self.sh("grep -lx wireguard-go /proc/[0-9]*/comm 2>/dev/null || :");
        let number = |path: &str| path.split('/').nth(2).unwrap().to_owned();
        daemons.lines().map(number).collect::<Vec<_>>().join(" ")
    }

    /// Its wireguard-go ends within ten seconds, now that its interface is gone.
    pub(crate) fn daemon_ends(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.daemon().is_empty() {
            assert!(Instant::now() < deadline, "wireguard-go lives on");
        }
    }

    /// Ends its wireguard-go as a power cut would, and with it the interface.
    pub(crate) fn cut(&self) {
        let daemon = self.daemon();
        assert!(!daemon.is_empty());
        self.sh(&format!(
            "kill -9 {daemon}; while ip link show dev wg0 >/dev/null 2>&1; do sleep 0.02; done"
        ));
    }

    /// Everything that must be the same after another way to the same end.
    pub(crate) fn state(&self) -> String {
        self.sh("LC_ALL=C
            for what in public-key listen-port allowed-ips persistent-keepalive preshared-keys endpoints; do
                echo $what; wg show wg0 $what | sort
            done
            ip -4 -o address show dev wg0 | tr -s ' ' | cut -d' ' -f2-
            ip -o link show dev wg0 | tr -s ' ' | cut -d' ' -f2-6
            ip -4 route show dev wg0
            find /etc/wireguard /etc/slipway -type f | sort | xargs stat -c '%n %a'
            find /etc/wireguard /etc/slipway -type f | sort | xargs sha256sum")
    }
}

/// The mesh of hosts.
pub(crate) fn mesh_of(hosts: &[&Host]) -> Mesh {
    Mesh {
        network: "10.8.0.0/20".parse().unwrap(),
        pods: None,
        members: hosts.iter().map(|host| host.member()).collect(),
        to: vec![],
    }
}

/// A mesh that has come about on these hosts.
pub(crate) fn meshed(hosts: &[Host]) -> (Vec<&Host>, Mesh) {
    let all: Vec<_> = hosts.iter().collect();
    let mesh = mesh_of(&all);
    bring(&mesh, &all);
    (all, mesh)
}

/// Brings a mesh about on hosts, on all at once; the number of changed items of each.
pub(crate) fn bring(mesh: &Mesh, hosts: &[&Host]) -> Vec<usize> {
    let one = |host: &Host| {
        let wish = host.tunnel(mesh);
        let report = host.well(&mesh::tunnel_program(&wish));
        assert_eq!(
            mesh::read(&report).unwrap(),
            Some(wish.fact()),
            "{report:?}"
        );
        report.changed()
    };
    std::thread::scope(|scope| {
        let one = &one;
        let started: Vec<_> = hosts
            .iter()
            .map(|host| scope.spawn(move || one(host)))
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Every host reaches every host over the mesh.
pub(crate) fn all_reach_all(hosts: &[&Host]) {
    for one in hosts {
        for other in hosts {
            one.reaches(other);
        }
    }
}

/// What was printed.
pub(crate) fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
