//! Who dies in the middle, and what those find who come back.

use crate::testing::subject;
use crate::world::{
    Heard, World, ending, following, lives, nobody_secret, open, until, within, work,
};
use driver::deploy::{Acted, Because, Deployer as _, Output, Stream};
use model::environment::link::Link;
use model::environment::status::Deed;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Where the process that is to be killed finds its world.
const HOME: &str = "SCRIPTS_FOLLOWER_HOME";

/// Writes each line down at once, so that it outlives whoever heard it.
struct Written(Mutex<std::fs::File>);

impl Output for Written {
    fn known(&self, _: Stream) -> u64 {
        0
    }

    fn line(&self, stream: Stream, text: &str) {
        let line = format!("{stream:?} {text}\n");
        self.0.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn links(&self, _: &[Link]) {}
}

/// Not a test: a process that follows a script until it is killed. Without its variable nothing.
#[tokio::test]
async fn follower() {
    let Some(home) = std::env::var_os(HOME).map(PathBuf::from) else {
        return;
    };
    let cx = nobody_secret();
    let mut subject = subject();
    let scripts = home.join("scripts");
    subject.settings.scripts = scripts.into_os_string().into_string().unwrap();
    let work = work(subject, Deed::Archive, &cx);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(home.join("heard"))
        .unwrap();
    let written = Written(Mutex::new(file));
    let acted = open(&home).act(&cx, &work, &following(&written)).await;
    panic!("nobody killed me: {acted:?}");
}

/// Starts the process above.
fn follow(home: &Path) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "dying::follower"]).env(HOME, home);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The runner of some work, as it says itself.
fn runner(world: &World, work: &driver::deploy::Work) -> Pid {
    let began = std::fs::read(world.runs(work).join("began")).unwrap();
    let began: serde_json::Value = serde_json::from_slice(&began).unwrap();
    let number = began["session"].as_i64().unwrap();
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

#[tokio::test]
async fn who_follows_is_killed_and_another_follows_on() {
    let world = World::new();
    // It goes on when it is told to, so that nothing depends on time.
    world.script(
        "archive",
        "echo ran >>\"$HERE/ran\"
         i=0; while [ $i -lt 100 ]; do echo \"line $i\"; i=$((i + 1)); done; echo hm >&2
         while [ ! -e \"$HERE/on\" ]; do sleep 0.05; done
         while [ $i -lt 200 ]; do echo \"line $i\"; i=$((i + 1)); done",
    );
    let cx = nobody_secret();
    let mut follower = follow(world.home.path());
    until(|| world.read("heard").contains("line 99\n") && world.read("heard").contains("Err hm"))
        .await;
    follower.kill().unwrap();
    follower.wait().unwrap();
    let mut work = world.work(Deed::Archive, &cx);
    work.begun_at = Some(world.scripts.place().to_owned());
    let known = world
        .read("heard")
        .lines()
        .filter(|line| line.starts_with("Out"))
        .count();
    assert_eq!(known, 100);
    // Somebody finds it, and leaves it alone.
    let heard = Heard::after(100, 1);
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    let leaving = ending(cancel);
    let left = within(world.again().act(&leaving, &work, &following(&heard))).await;
    assert_eq!(left, Acted::Left);
    std::fs::write(world.path("on"), "").unwrap();
    let acted = within(world.again().act(&cx, &work, &following(&heard))).await;
    assert_eq!(acted, Acted::Exited { status: 0 });
    let lines: Vec<_> = (100..200).map(|i| format!("line {i}")).collect();
    assert_eq!(heard.lines(Stream::Out), lines);
    assert_eq!(heard.lines(Stream::Err), [""; 0]);
    assert_eq!(world.read("ran"), "ran\n");
}

#[tokio::test]
async fn who_follows_dies_and_the_script_ends_meanwhile() {
    let world = World::new();
    world.script(
        "archive",
        "echo begun; while [ ! -e \"$HERE/on\" ]; do sleep 0.05; done; echo end; exit 7",
    );
    let cx = nobody_secret();
    let mut follower = follow(world.home.path());
    until(|| world.read("heard") == "Out begun\n").await;
    follower.kill().unwrap();
    follower.wait().unwrap();
    std::fs::write(world.path("on"), "").unwrap();
    let work = world.work(Deed::Archive, &cx);
    until(|| world.runs(&work).join("end.json").exists()).await;
    let (acted, heard) = world.act(&cx, &work).await;
    assert_eq!(acted, Acted::Exited { status: 7 });
    assert_eq!(heard.lines(Stream::Out), ["begun", "end"]);
}

#[tokio::test]
async fn a_runner_that_is_killed_is_lost_and_so_is_its_script() {
    let world = World::new();
    world.script(
        "archive",
        "echo $$ >\"$HERE/pid\"; echo begun; set -m; sleep 1000 & echo $! >\"$HERE/other\"; wait",
    );
    let cx = nobody_secret();
    let work = world.work(Deed::Archive, &cx);
    let acting = world.act(&cx, &work);
    let kill = async {
        let stdout = world.runs(&work).join("stdout");
        let heard = || std::fs::read_to_string(&stdout).is_ok_and(|text| text == "begun\n");
        until(|| heard() && world.read("other").ends_with('\n')).await;
        kill_process(runner(&world, &work), Signal::KILL).unwrap();
    };
    let ((acted, heard), ()) = within(async { tokio::join!(acting, kill) }).await;
    assert_eq!(acted, Acted::Lost);
    assert_eq!(heard.lines(Stream::Out), ["begun"]);
    assert!(!lives(&world.read("pid")) && !lives(&world.read("other")));
    // Whoever asks again is told the same, and nothing is begun.
    let (acted, _) = world.act(&cx, &work).await;
    assert_eq!(acted, Acted::Lost);
}

#[tokio::test]
async fn a_runner_that_is_asked_to_end_ends_its_script() {
    let world = World::new();
    world.script("archive", "echo $$ >\"$HERE/pid\"; sleep 1000");
    let cx = nobody_secret();
    let work = world.work(Deed::Archive, &cx);
    let acting = world.act(&cx, &work);
    let ask = async {
        until(|| world.read("pid").ends_with('\n')).await;
        kill_process(runner(&world, &work), Signal::TERM).unwrap();
    };
    let ((acted, _), ()) = within(async { tokio::join!(acting, ask) }).await;
    assert_eq!(
        acted,
        Acted::Killed {
            because: Because::Signal(15)
        }
    );
    assert!(!lives(&world.read("pid")));
}

/// An order as a follower gives it.
fn late(world: &World, work: &driver::deploy::Work, attempt: u64) -> std::process::ExitStatus {
    let order = serde_json::json!({
        "attempt": attempt,
        "program": world.path("scripts/archive"),
        "arguments": [],
        "secrets": [],
        "patience_ms": 60_000,
        "grace_ms": 1000,
    });
    let mut runner = Command::new(env!("CARGO_BIN_EXE_run-script"));
    runner.arg(world.runs(work)).stdin(Stdio::piped());
    let mut runner = runner.spawn().unwrap();
    let mut stdin = runner.stdin.take().unwrap();
    stdin.write_all(order.to_string().as_bytes()).unwrap();
    drop(stdin);
    runner.wait().unwrap()
}

#[tokio::test]
async fn a_late_runner_does_nothing() {
    let world = World::new();
    world.script("archive", "echo ran >>\"$HERE/ran\"");
    let cx = nobody_secret();
    let work = world.work(Deed::Archive, &cx);
    // Prepared and given up: the runner was none.
    let surroundings = scripts::Surroundings::new(std::env::vars_os());
    let broken =
        scripts::Scripts::open(&world.path("runs"), vec!["/bin/false".into()], surroundings);
    let heard = Heard::default();
    let acted = within(broken.unwrap().act(&cx, &work, &following(&heard))).await;
    assert!(matches!(acted, Acted::Unbegun(_)), "{acted:?}");
    assert!(late(&world, &work, 1).success());
    assert_eq!(world.read("ran"), "", "void");
    // Begun by the next attempt, once.
    let (acted, _) = world.act(&cx, &work).await;
    assert_eq!(acted, Acted::Exited { status: 0 });
    assert!(late(&world, &work, 1).success());
    assert!(late(&world, &work, 2).success());
    assert_eq!(world.read("ran"), "ran\n");
}

#[tokio::test]
async fn many_runners_begin_a_script_once() {
    let world = World::new();
    world.script("archive", "echo ran >>\"$HERE/ran\"; sleep 0.2");
    let cx = nobody_secret();
    let work = world.work(Deed::Archive, &cx);
    let all = async {
        let (a, b, c) = (world.again(), world.again(), world.again());
        let heard = [Heard::default(), Heard::default(), Heard::default()];
        let following: Vec<_> = heard.iter().map(|heard| following(heard)).collect();
        tokio::join!(
            a.act(&cx, &work, &following[0]),
            b.act(&cx, &work, &following[1]),
            c.act(&cx, &work, &following[2]),
        )
    };
    let good = Acted::Exited { status: 0 };
    assert_eq!(within(all).await, (good.clone(), good.clone(), good));
    assert_eq!(world.read("ran"), "ran\n");
}

#[tokio::test]
async fn what_was_begun_elsewhere_is_lost_when_its_time_is_over() {
    let world = World::new();
    world.script("archive", "echo ran >\"$HERE/ran\"");
    let cx = nobody_secret();
    let mut work = world.work(Deed::Archive, &cx);
    work.begun_at = Some("elsewhere".to_owned());
    work.deadline = cx.now();
    let (acted, _) = world.act(&cx, &work).await;
    assert_eq!((acted, world.read("ran")), (Acted::Lost, String::new()));
    assert!(cx.now() >= work.deadline.plus(crate::world::GRACE));
}

/// How much memory this process has had at most, in kB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}

/// Counts lines and bytes, and keeps the last.
#[derive(Default)]
struct Counted(Mutex<(u64, u64, String)>);

impl Output for Counted {
    fn known(&self, _: Stream) -> u64 {
        0
    }

    fn line(&self, _: Stream, text: &str) {
        let mut counted = self.0.lock().unwrap();
        counted.0 += 1;
        counted.1 += u64::try_from(text.len()).unwrap() + 1;
        text.clone_into(&mut counted.2);
    }

    fn links(&self, _: &[Link]) {}
}

#[tokio::test]
async fn a_hundred_megabytes_do_not_fill_the_memory() {
    let world = World::new();
    world.script(
        "archive",
        "yes 'a line of forty characters, or about it.' | head -c 120000000
         head -c 5000000 /dev/zero
         grep VmHWM /proc/$PPID/status >\"$HERE/runner\"",
    );
    let cx = nobody_secret();
    let work = world.work(Deed::Archive, &cx);
    let before = peak(std::process::id());
    let counted = Counted::default();
    let acted = within(world.scripts.act(&cx, &work, &following(&counted))).await;
    assert_eq!(acted, Acted::Exited { status: 0 });
    let (lines, bytes, last) = counted.0.into_inner().unwrap();
    assert!(
        (99_900_000..100_000_200).contains(&bytes),
        "{bytes} bytes in {lines} lines"
    );
    assert_eq!(
        last,
        "slipway: more than 100 MB were printed; the rest is dropped"
    );
    // The system counts pages in batches: what did not grow may look smaller.
    let grown = peak(std::process::id()).saturating_sub(before);
    assert!(grown < 32_000, "the follower grew by {grown} kB");
    let runner = world.read("runner");
    let runner: u64 = runner
        .split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!(runner < 32_000, "the runner had {runner} kB");
}
