//! Scripts that change something, under their runner.

use crate::testing::{Known, context, secret, setting};
use crate::world::{Heard, World, following, lives, nobody_secret, until, within};
use driver::deploy::{Acted, Because, Deployer as _, Stream};
use model::environment::config::Level;
use model::environment::settings::SecretDelivery;
use model::environment::status::Deed;
use std::time::Duration;

fn exited(acted: &Acted, heard: &Heard) -> (i32, Vec<String>) {
    let Acted::Exited { status } = acted else {
        panic!("{acted:?}");
    };
    (*status, heard.links())
}

#[tokio::test]
async fn an_environment_is_created_once_and_its_end_is_found_again() {
    let mut world = World::new();
    world.subject.application = vec![setting("image.tag", "v7")];
    world
        .script("info", "echo app,https://orange.example")
        .script(
            "create",
            "echo ran >>\"$HERE/ran\"; echo \"$@\"; echo hm >&2; echo; exit 3",
        );
    let cx = nobody_secret();
    let mut work = world.work(Deed::Create, &cx);
    let (acted, heard) = world.act(&cx, &work).await;
    assert_eq!(
        exited(&acted, &heard),
        (3, vec!["app https://orange.example".to_owned()])
    );
    assert_eq!(
        heard.lines(Stream::Out),
        [
            "--project-name Cactus store --base-domain cactus-store.com --namespace cactus --name orange-button --application-config image.tag=v7",
            ""
        ]
    );
    assert_eq!(heard.lines(Stream::Err), ["hm"]);
    // Somebody died before the end was recorded.
    work.begun_at = Some(world.scripts.place().to_owned());
    let heard = Heard::after(1, 1);
    let again = world.again();
    let acted = within(again.act(&cx, &work, &following(&heard))).await;
    assert_eq!(
        exited(&acted, &heard),
        (3, vec!["app https://orange.example".to_owned()])
    );
    assert_eq!(heard.lines(Stream::Out), [""]);
    assert_eq!(heard.lines(Stream::Err), [""; 0]);
    assert_eq!(world.read("ran"), "ran\n");
    again.forget(work.action).await;
    assert!(!world.runs(&work).exists());
}

#[tokio::test]
async fn without_links_it_goes_on_and_says_so() {
    let world = World::new();
    world.script("update", "echo done");
    let cx = nobody_secret();
    let (acted, heard) = world.act(&cx, &world.work(Deed::Update, &cx)).await;
    assert_eq!(exited(&acted, &heard), (0, vec![]));
    let told = heard.lines(Stream::Err).join("\n");
    assert!(
        told.starts_with("slipway: info: there is no script info in"),
        "{told}"
    );
    assert_eq!(heard.lines(Stream::Out), ["done"]);
    world.script("archive", "exit 0");
    let (acted, heard) = world.act(&cx, &world.work(Deed::Archive, &cx)).await;
    assert_eq!(exited(&acted, &heard), (0, vec![]));
    assert_eq!(heard.lines(Stream::Err), [""; 0]);
}

#[tokio::test]
async fn restore_is_another_name_of_unarchive() {
    let world = World::new();
    world.script("restore", "echo back");
    let cx = nobody_secret();
    let (_, heard) = world.act(&cx, &world.work(Deed::Restore, &cx)).await;
    assert_eq!(heard.lines(Stream::Out), ["back"]);
}

#[tokio::test]
async fn what_cannot_be_begun_is_told_and_may_be_tried_again() {
    let world = World::new();
    let cx = nobody_secret();
    let work = world.work(Deed::Cleanup, &cx);
    let (acted, _) = world.act(&cx, &work).await;
    assert!(
        matches!(&acted, Acted::Unbegun(error) if error.attempted.contains("(SCRIPT-001)")),
        "{acted:?}"
    );
    world.script("cleanup", "exit 0");
    let (acted, heard) = world.act(&cx, &work).await;
    assert_eq!(exited(&acted, &heard), (0, vec![]));
    let file = world.path("scripts/archive");
    std::fs::write(&file, "#!/nowhere\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, mode).unwrap();
    let (acted, _) = world.act(&cx, &world.work(Deed::Archive, &cx)).await;
    assert!(
        matches!(&acted, Acted::Unbegun(error) if error.attempted.contains("(SCRIPT-002)")),
        "{acted:?}"
    );
}

#[tokio::test]
async fn a_runner_that_is_none_is_told() {
    let world = World::new();
    world.script("archive", "exit 0");
    let surroundings = scripts::Surroundings::new(std::env::vars_os());
    for (runner, why) in [
        (
            vec!["/bin/false".into()],
            "the runner did not begin: it said nothing (SCRIPT-013)",
        ),
        (vec!["/nowhere".into()], "(SCRIPT-013)"),
    ] {
        let other = scripts::Scripts::open(&world.path("runs"), runner, surroundings.clone());
        let cx = nobody_secret();
        let (work, heard) = (world.work(Deed::Archive, &cx), Heard::default());
        let acted = within(other.unwrap().act(&cx, &work, &following(&heard))).await;
        assert!(
            matches!(&acted, Acted::Unbegun(error) if error.attempted.ends_with(why)),
            "{acted:?}"
        );
    }
}

#[tokio::test]
async fn what_takes_too_long_is_ended_with_all_it_started() {
    let world = World::new();
    world.script(
        "archive",
        "echo begun
         sh -c 'trap \"\" TERM; echo $$ >\"$0/same\"; while :; do sleep 1; done' \"$HERE\" &
         set -m
         sh -c 'trap \"\" TERM; echo $$ >\"$0/other\"; while :; do sleep 1; done' \"$HERE\" &
         trap 'echo asked; exit 0' TERM
         while :; do sleep 0.1; done",
    );
    let cx = nobody_secret();
    let mut work = world.work(Deed::Archive, &cx);
    work.deadline = cx.now().plus(Duration::from_secs(2));
    let (acted, heard) = world.act(&cx, &work).await;
    assert_eq!(
        acted,
        Acted::Killed {
            because: Because::TimedOut
        }
    );
    assert_eq!(heard.lines(Stream::Out), ["begun", "asked"]);
    let told = heard.lines(Stream::Err).join("\n");
    assert!(told.contains("slipway: it took longer than"), "{told}");
    assert!(!lives(&world.read("same")), "one of its group");
    assert!(!lives(&world.read("other")), "one of a group of its own");
}

#[tokio::test]
async fn what_a_script_says_when_it_is_asked_to_end_is_kept() {
    let world = World::new();
    let say = "exec seq 1 9000";
    world.script(
        "archive",
        &format!("trap '{say}' TERM; echo begun; while :; do read -t 9 _ <>\"$HERE/fifo\"; done"),
    );
    let cx = nobody_secret();
    for _ in 0..5 {
        let mut work = world.work(Deed::Archive, &cx);
        work.deadline = cx.now().plus(Duration::from_secs(1));
        let (acted, heard) = world.act(&cx, &work).await;
        world.scripts.forget(work.action).await;
        assert!(matches!(acted, Acted::Killed { .. }), "{acted:?}");
        assert_eq!(heard.lines(Stream::Out).len(), 9001);
    }
}

#[tokio::test]
async fn a_runner_that_is_frozen_is_ended_with_its_script() {
    let world = World::new();
    world.script(
        "archive",
        "echo $PPID >\"$HERE/runner\"; echo $$ >\"$HERE/pid\"; exec sleep 600",
    );
    let cx = nobody_secret();
    let mut work = world.work(Deed::Archive, &cx);
    let heard = Heard::default();
    let following = following(&heard);
    let frozen = async {
        until(|| world.path("pid").exists() && lives(&world.read("pid"))).await;
        let runner = world.read("runner").trim().to_owned();
        let mut stop = std::process::Command::new("kill");
        assert!(stop.args(["-STOP", &runner]).status().unwrap().success());
        following.end.cancel();
    };
    let (acted, ()) = tokio::join!(world.scripts.act(&cx, &work, &following), frozen);
    assert_eq!(acted, Acted::Lost);
    assert!(!lives(&world.read("pid")));
    // The same where another server has begun it.
    work.begun_at = Some(world.scripts.place().to_owned());
    let again = within(
        world
            .again()
            .act(&cx, &work, &crate::world::following(&heard)),
    )
    .await;
    assert_eq!(again, Acted::Lost);
}

#[tokio::test]
async fn what_does_not_heed_is_killed() {
    let world = World::new();
    world.script(
        "archive",
        "trap '' TERM; echo $$ >\"$HERE/pid\"; while :; do sleep 0.1; done",
    );
    let cx = nobody_secret();
    let work = world.work(Deed::Archive, &cx);
    let heard = Heard::default();
    let following = following(&heard);
    let acting = world.scripts.act(&cx, &work, &following);
    let cancel = async {
        until(|| world.read("pid").ends_with('\n')).await;
        following.end.cancel();
    };
    let (acted, ()) = within(async { tokio::join!(acting, cancel) }).await;
    assert_eq!(
        acted,
        Acted::Killed {
            because: Because::Cancelled
        }
    );
    assert_eq!(
        heard.lines(Stream::Err),
        ["slipway: it was cancelled, and was killed"]
    );
    assert!(!lives(&world.read("pid")));
}

#[tokio::test]
async fn what_is_cancelled_before_it_began_never_begins() {
    let world = World::new();
    world.script("archive", "echo ran >\"$HERE/ran\"");
    let cx = nobody_secret();
    let work = world.work(Deed::Archive, &cx);
    let heard = Heard::default();
    let following = following(&heard);
    following.end.cancel();
    let acted = within(world.scripts.act(&cx, &work, &following)).await;
    assert_eq!(
        acted,
        Acted::Withdrawn {
            because: Because::Cancelled
        }
    );
    assert_eq!(world.read("ran"), "");
}

#[tokio::test]
async fn what_is_too_late_never_begins() {
    let world = World::new();
    world.script("archive", "echo ran >\"$HERE/ran\"");
    let cx = nobody_secret();
    let mut work = world.work(Deed::Archive, &cx);
    work.deadline = cx.now();
    let (acted, _) = world.act(&cx, &work).await;
    assert_eq!(
        acted,
        Acted::Withdrawn {
            because: Because::TimedOut
        }
    );
    assert_eq!(world.read("ran"), "");
}

#[tokio::test]
async fn another_signal_is_told() {
    let world = World::new();
    world.script("archive", "echo begun; kill -9 $$");
    let cx = nobody_secret();
    let (acted, heard) = world.act(&cx, &world.work(Deed::Archive, &cx)).await;
    assert_eq!(
        acted,
        Acted::Killed {
            because: Because::Signal(9)
        }
    );
    assert_eq!(heard.lines(Stream::Out), ["begun"]);
}

#[tokio::test]
async fn what_a_script_leaves_running_goes_on_and_is_not_waited_for() {
    let world = World::new();
    world.script("create", "sleep 1000 & echo $! >\"$HERE/left\"; echo up");
    let cx = nobody_secret();
    let (acted, heard) = world.act(&cx, &world.work(Deed::Create, &cx)).await;
    assert_eq!(exited(&acted, &heard), (0, vec![]));
    assert_eq!(heard.lines(Stream::Out), ["up"]);
    let left = world.read("left");
    assert!(lives(&left));
    let left = rustix::process::Pid::from_raw(left.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
}

/// Every file below a directory that has some bytes in it.
fn files_with(directory: &std::path::Path, needle: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let has = bytes
                .windows(needle.len())
                .any(|part| part == needle.as_bytes());
            found.extend(has.then_some(path));
        }
    }
    found
}

#[tokio::test]
async fn nothing_secret_is_left_behind_or_repeated() {
    let mut world = World::new();
    world.subject.application = vec![secret("db.password")];
    world.script("info", "echo app,https://swordfish@orange.example");
    let cx = context(Known(vec![(
        Level::Application,
        "db.password",
        b"swordfish",
    )]));
    for (delivery, tell) in [
        (SecretDelivery::File, "cat \"$SLIPWAY_SECRETS/1\"; echo"),
        (
            SecretDelivery::Env,
            "echo \"$SLIPWAY_SECRET_APPLICATION_db__password\"",
        ),
        (
            SecretDelivery::Argv,
            "for last; do :; done; echo \"${last#*=}\"",
        ),
    ] {
        world.subject.settings.secret_delivery = Some(delivery);
        world.script(
            "create",
            &format!("{tell}; tr '\\0' ' ' </proc/$PPID/cmdline >\"$HERE/runner\""),
        );
        let work = world.work(Deed::Create, &cx);
        let (acted, heard) = world.act(&cx, &work).await;
        assert_eq!(
            exited(&acted, &heard),
            (0, vec!["app https://***@orange.example".to_owned()])
        );
        assert_eq!(heard.lines(Stream::Out), ["***"], "{delivery:?}");
        assert_eq!(
            files_with(&world.path("runs"), "swordfish"),
            [""; 0].map(std::path::PathBuf::from)
        );
        assert!(world.read("runner").contains("runs"));
        assert!(!world.read("runner").contains("swordfish"));
        world.scripts.forget(work.action).await;
    }
}
