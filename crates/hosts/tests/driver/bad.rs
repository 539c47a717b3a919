//! Everything that can be wrong with a host and with what it is given, on real hosts: each trouble
//! has its own error with a hint, the task says who must act, and when it is mended the same task
//! ends as if there had been none.

use crate::apart::{Lab, apart};
use crate::envoy;
use crate::scene::{Inside, Scene};
use crate::stage::{given_at, machine};
use driver::Outcome;
use driver::suite::{balance, equip};
use hosts::artifacts::Source;
use hosts::error::{Kind, Owner};
use hosts::sandbox::{Ending, Level, Order, Sandbox};
use hosts::{Hosts, Parts};
use model::cluster::{Machine, Role};
use model::id::{self, ClusterId};
use model::task::{Action, Task};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use During::{Balance, Equip, Prepare};
use Owner::{Person, Slipway};

/// How many hosts are worked on at once.
const AT_ONCE: usize = 4;

/// The file that is half there, and where it is written before it is renamed.
const FILE: &str = "/etc/security/limits.d/90-slipway.conf";
const BESIDE: &str = "/etc/security/limits.d/.slipway-new.90-slipway.conf";

/// Where the proxy's program lies on a host.
const BIN: &str = "/usr/local/lib/slipway/bin";

/// What an outsider sees on a host: every file that we may have written, but for keys that are
/// drawn, numbers of processes, and whose machine it is.
const PICTURE: &str = "find /etc/apt /etc/environment /etc/modules-load.d /etc/security /etc/slipway /etc/sysctl.d \
    /usr/local /var/lib/slipway -type f ! -path /etc/slipway/machine ! -name '*.pid' ! -name log ! -name '*.new' \
    -exec sha256sum {} + | sort -k 2; find / -xdev -name '*slipway-new*'; pgrep -c envoy || :";

/// When something goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum During {
    /// A given machine is entered for the first time.
    Prepare,
    /// It is made ready.
    Equip,
    /// It gets the proxy of a load balancer.
    Balance,
}

/// What goes wrong, and how it is mended.
enum Trouble {
    /// On the host: a shell's text for each.
    Inside(String, String),
    /// The secret has a key that the host does not know.
    Key,
    /// The mirror has another file than it promises.
    Mirror,
}

/// One line of the table.
struct Line {
    /// What is wrong, in the words of those who asked.
    what: &'static str,
    during: During,
    code: &'static str,
    acts: Owner,
    trouble: Trouble,
}

/// A tool of the host that is another one for a while.
fn tool(name: &str, text: &str) -> Trouble {
    let path = format!("/usr/local/bin/{name}");
    let put = format!("printf '#!/bin/sh\\n%s\\n' '{text}' >{path}; chmod 755 {path}");
    Trouble::Inside(put, format!("rm {path}"))
}

fn inside(breaks: &str, mends: &str) -> Trouble {
    Trouble::Inside(breaks.to_owned(), mends.to_owned())
}

/// A disk of so many bytes at a directory, and no room on it.
fn full(directory: &str, bytes: u32) -> Trouble {
    let fill = format!(
        "mkdir -p {directory}; mount -t tmpfs -o size={bytes} tmpfs {directory}; \
         head -c {bytes} /dev/zero >{directory}/fill"
    );
    let room = format!("rm {directory}/fill; mount -o remount,size=400m {directory}");
    Trouble::Inside(fill, room)
}

/// What is written to a path is lost, though nobody complains.
fn lost(path: &str, before: &str) -> Trouble {
    let above = Path::new(path).parent().unwrap().display();
    let hole = format!("{before} mkdir -p {above}; : >{path}; mount --bind /dev/null {path}");
    Trouble::Inside(hole, format!("umount {path}"))
}

/// Another key of the SSH server, and the right one again; sessions that are open end.
fn other_host_key() -> Trouble {
    let (new, old) = host_keys();
    Trouble::Inside(new, old)
}

/// What gives a host another host key and has its SSH server use it, and what undoes that.
pub(crate) fn host_keys() -> (String, String) {
    let key = "/etc/ssh/ssh_host_ed25519_key";
    // The one that listened reads the new key as long as it lives: it must be gone first.
    let again = "old=$(pgrep -x sshd); kill $old || :; \
        for p in $old; do while [ -e /proc/$p ]; do sleep 0.02; done; done; \
        until ssh-keyscan -t ed25519 127.0.0.1 2>/dev/null | grep -q \"$(cut -d' ' -f2 KEY.pub)\"; do sleep 0.05; done";
    let again = again.replace("KEY", key);
    let new = format!(
        "for f in {key} {key}.pub; do mv $f $f.right; done; ssh-keygen -q -t ed25519 -N '' -f {key}; {again}"
    );
    let old = format!("for f in {key} {key}.pub; do mv $f.right $f; done; {again}");
    (new, old)
}

/// The whole table. What takes longest begins first.
fn table() -> Vec<Line> {
    let mut lines = tools();
    lines.extend(talk());
    lines.extend(disks());
    lines
}

fn line(
    what: &'static str,
    during: During,
    code: &'static str,
    acts: Owner,
    trouble: Trouble,
) -> Line {
    Line {
        what,
        during,
        code,
        acts,
        trouble,
    }
}

/// Tools of the host that are not what they were.
fn tools() -> Vec<Line> {
    let hangs = tool("stat", "exec sleep 1000");
    let flood = "head -c 100000000 /dev/zero | tr \"\\0\" x >&2; exec /usr/bin/date \"$@\"";
    let hour = || tool("date", "exec /usr/bin/date -d \"+1 hour\" \"$@\"");
    let gone = inside("mv /usr/bin/flock /root", "mv /root/flock /usr/bin");
    let odd = tool("stat", "echo Segmentation fault, or is it?");
    vec![
        line("hangs", Equip, "HOST-005", Slipway, hangs),
        line("100 MB", Equip, "HOST-028", Person, tool("date", flood)),
        line("clock skew", Prepare, "HOST-011", Person, hour()),
        line("clock skew", Equip, "HOST-011", Person, hour()),
        line("missing tool", Equip, "HOST-008", Person, gone),
        line("garbage", Equip, "HOST-010", Person, odd),
    ]
}

/// Nobody listens, and who does is somebody else, or takes us for somebody else.
fn talk() -> Vec<Line> {
    let reject = "nft 'table ip bad { chain in { type filter hook input priority 0; \
                  tcp dport 22 reject with tcp reset; }; }'";
    let nobody = inside(reject, "nft delete table ip bad");
    let other = other_host_key();
    vec![
        line("wrong key", Prepare, "HOST-003", Person, Trouble::Key),
        line("changed host key", Equip, "HOST-004", Person, other),
        line("refused", Equip, "HOST-001", Slipway, nobody),
    ]
}

/// Disks and files, of the host and of the mirror.
fn disks() -> Vec<Line> {
    let remount = "mount --bind /etc /etc; mount -o remount,ro,bind /etc";
    let read_only = inside(remount, "umount -l /etc");
    let (home, bin) = (full("/var/lib/slipway", 16_384), full(BIN, 1_048_576));
    let half = lost(BESIDE, &format!("printf '* soft nofi' >{FILE};"));
    let beside = format!("{BIN}/envoy-{}.slipway-new", hosts::artifacts::pins::ENVOY);
    let other = Trouble::Mirror;
    vec![
        line("full disk", Equip, "HOST-006", Person, home),
        line("full disk", Balance, "HOST-006", Person, bin),
        line("read-only", Equip, "HOST-007", Person, read_only),
        line("half-written", Equip, "HOST-019", Slipway, half),
        line(
            "half-written",
            Balance,
            "HOST-019",
            Slipway,
            lost(&beside, ""),
        ),
        line("checksum", Balance, "ARTIFACT-001", Person, other),
    ]
}

/// A host of its own for one line.
struct Case {
    scene: Arc<Scene>,
    machine: Machine,
    inside: Inside,
    /// The mirror of its driver.
    mirror: PathBuf,
}

impl Case {
    /// A bare host, and a driver that has never seen it.
    async fn new(lab: &Lab, given: &Sandbox, number: u8, mirror: &Path) -> Self {
        let name = format!("case-{number}");
        let origin = id::Origin {
            parent: "bad",
            name: &name,
            ordinal: 0,
            incarnation: 0,
        };
        let cluster = ClusterId::derive(origin);
        // All are called the same, so that all are told the same.
        let mut machine = machine(cluster, "door", Role::Balancer, 1, Level::Lite);
        let order = Order {
            id: machine.id.to_string(),
            ..lab.order(&name, Level::Lite)
        };
        let made = given.create(&order).await.unwrap();
        machine.origin = given_at(made.address);
        let dir = lab.dir.join(&name);
        let own = dir.join("mirror");
        mirrored(mirror, &own);
        let hosts = Hosts::new(Parts {
            sandbox: given.clone().into(),
            cache: dir.join("cache"),
            sources: vec![Source::Directory(own.clone())],
            playbooks: false,
        });
        let key = std::fs::read(lab.dir.join("key")).unwrap();
        Self {
            scene: Arc::new(Scene::new(hosts, cluster, key)),
            machine,
            inside: Inside::at(made.address),
            mirror: own,
        }
    }

    /// Does all that comes before; answers the task during which something goes wrong.
    async fn until(&self, during: During) -> Task {
        let prepare = self.scene.task(&self.machine, Action::Prepare);
        if during == During::Prepare {
            return prepare;
        }
        self.scene.done(&prepare).await;
        let equip = self.scene.task(&self.machine, equip(&self.machine));
        if during == During::Equip {
            return equip;
        }
        self.scene.done(&equip).await;
        let mesh = self.scene.mesh(std::slice::from_ref(&self.machine)).await;
        self.scene.done(&mesh).await;
        let balance = balance(&self.machine, &[&self.machine]);
        self.scene.task(&self.machine, balance)
    }

    fn breaks(&self, trouble: &Trouble) {
        match trouble {
            Trouble::Inside(breaks, _) => drop(self.inside.sh(breaks)),
            Trouble::Key => {
                let (other, _) = hosts::ssh::new_key("another").unwrap();
                self.scene.ring.set(other.expose().to_vec());
            }
            Trouble::Mirror => {
                let file = artifact(&self.mirror);
                let size = file.metadata().unwrap().len();
                std::fs::remove_file(&file).unwrap();
                let other = std::fs::File::create(&file).unwrap();
                other.set_len(size).unwrap();
            }
        }
    }

    fn mends(&self, trouble: &Trouble, lab: &Lab, mirror: &Path) {
        match trouble {
            Trouble::Inside(_, mends) => drop(self.inside.sh(mends)),
            Trouble::Key => {
                let right = std::fs::read(lab.dir.join("key")).unwrap();
                self.scene.ring.set(right);
            }
            Trouble::Mirror => mirrored(mirror, &self.mirror),
        }
    }

    fn picture(&self) -> String {
        self.inside.sh(PICTURE)
    }
}

/// The proxy of load balancers in a mirror.
fn artifact(mirror: &Path) -> PathBuf {
    let index = std::fs::read_to_string(mirror.join("index.json")).unwrap();
    let mut names = index.split("\"name\":\"").skip(1);
    let envoy = names.find(|name| name.starts_with("envoy/")).unwrap();
    mirror.join(envoy.split_once('"').unwrap().0)
}

/// Has a mirror there that is the same: its file is large, so it is not copied.
fn mirrored(from: &Path, to: &Path) {
    let file = artifact(from);
    let link = to.join(file.strip_prefix(from).unwrap());
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::fs::copy(from.join("index.json"), to.join("index.json")).unwrap();
    drop(std::fs::remove_file(&link));
    std::os::unix::fs::symlink(file, link).unwrap();
}

/// Walks one line: it goes wrong, says so, is mended, and ends as if nothing had been.
async fn walk(lab: Lab, given: Sandbox, number: u8, mirror: PathBuf, line: Line, wished: String) {
    let what = line.what;
    let case = Case::new(&lab, &given, number, &mirror).await;
    let task = case.until(line.during).await;
    let began = Instant::now();
    case.breaks(&line.trouble);
    refused(&case, &task, &line).await;
    println!("{what}: {} after {:.1?}", line.code, began.elapsed());
    case.mends(&line.trouble, &lab, &mirror);
    case.scene.done(&task).await;
    assert_eq!(case.scene.done(&task).await.0, 0, "{what}: done twice");
    same(&case.picture(), &wished, what);
    if line.during == During::Balance && what == "half-written" {
        torn(&case, &task, &wished).await;
    }
    given.delete(&case.machine.id.to_string()).await.unwrap();
}

/// An attempt that fails as its line says, in its outcome and in its log.
async fn refused(case: &Case, task: &Task, line: &Line) {
    let what = line.what;
    let before = case
        .inside
        .sh("sha256sum /etc/slipway/* /etc/security/limits.d/* 2>/dev/null || :");
    let attempt = case.scene.attempt();
    let outcome = case.scene.apply(&attempt, task).await;
    let log = attempt.log();
    let (acts, error) = match outcome {
        Outcome::Retry(error) => (Owner::Slipway, error),
        Outcome::Stuck(error) => (Owner::Person, error),
        Outcome::Done(..) => panic!("{what}: nobody noticed: {log:#?}"),
    };
    let code = format!("({})", line.code);
    assert!(error.attempted.contains(&code), "{what}: {error}: {log:#?}");
    assert_eq!(acts, line.acts, "{what}: {error}");
    assert!(!error.hint.is_empty(), "{what}: {error}");
    let kind = Kind::of_code(line.code).unwrap();
    assert_eq!(kind.owner(), line.acts, "{what}");
    assert_eq!(log.last(), Some(&error.to_string()), "{what}: {log:#?}");
    let logged: usize = log.iter().map(String::len).sum();
    assert!(logged < 2_000_000, "{what}: {logged} bytes in the log");
    // What was there is whole, however it ended, and nothing goes on.
    let after = case
        .inside
        .sh("sha256sum /etc/slipway/* /etc/security/limits.d/* 2>/dev/null || :");
    for file in before.lines() {
        assert!(after.contains(file), "{what}: {file} is not in\n{after}");
    }
    assert_eq!(case.inside.sh("pgrep -x sleep || :"), "", "{what}");
}

/// A program that lies on the host in part, as after a power cut, is brought again.
async fn torn(case: &Case, task: &Task, wished: &str) {
    case.inside.sh(&format!(
        "cd {BIN}; for f in envoy-*; do head -c 1000 $f >/tmp/torn; chmod 755 /tmp/torn; \
         rm $f; cp -p /tmp/torn $f; rm /tmp/torn; done"
    ));
    assert_ne!(case.scene.done(task).await.0, 0);
    assert_eq!(case.scene.done(task).await.0, 0);
    same(&case.picture(), wished, "a torn program");
}

/// Two hosts show the same, as if nothing had been.
fn same(is: &str, wished: &str, what: &str) {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (is, wished) = (lines(is), lines(wished));
    let differ: Vec<_> = is.symmetric_difference(&wished).collect();
    assert!(differ.is_empty(), "{what}: {differ:#?}");
}

/// What a host shows that had no trouble, after each of the tasks.
async fn untroubled(lab: &Lab, given: &Sandbox, mirror: &Path) -> impl Fn(During) -> String {
    let case = Case::new(lab, given, 0, mirror).await;
    let mut shown = Vec::new();
    for during in [During::Prepare, During::Equip, During::Balance] {
        let task = case.until(during).await;
        case.scene.done(&task).await;
        shown.push((during, case.picture()));
    }
    given.delete(&case.machine.id.to_string()).await.unwrap();
    move |during| {
        let found = shown.iter().find(|(one, _)| *one == during);
        found.unwrap().1.clone()
    }
}

#[test]
fn every_trouble_has_its_error_and_is_mended() {
    let name = "bad::every_trouble_has_its_error_and_is_mended";
    let Some(mirror) = envoy::mirror(name) else {
        return;
    };
    apart(name, Level::Lite, async |lab| {
        let lines = table();
        let troubles: BTreeSet<_> = lines.iter().map(|line| line.what).collect();
        let codes: BTreeSet<_> = lines.iter().map(|line| line.code).collect();
        assert_eq!(troubles.len(), 12, "{troubles:?}");
        assert_eq!(codes.len(), 12, "each has its own: {codes:?}");

        let given = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
        let wished = untroubled(&lab, &given, &mirror).await;
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let mut walks = JoinSet::new();
        for (number, line) in (1..).zip(lines) {
            let (lab, given, mirror) = (Lab::new(lab.dir.clone()), given.clone(), mirror.clone());
            let (turn, wished) = (turns.clone().acquire_owned(), wished(line.during));
            let turn = turn.await.unwrap();
            walks.spawn(async move {
                walk(lab, given, number, mirror, line, wished).await;
                drop(turn);
            });
        }
        while let Some(walked) = walks.join_next().await {
            walked.unwrap();
        }
        given.clear().await.unwrap();
    });
}
