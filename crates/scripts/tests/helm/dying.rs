//! Somebody dies while Helm works.

use crate::testing::{Known, context, secret};
use crate::world::{Heard, World, following, helm_or_skip, nobody_secret, with_text, within};
use driver::deploy::{Acted, Because, Deployer as _};
use model::environment::config::Level;
use model::environment::settings::Kubeconfig;
use model::environment::status::Deed;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

async fn appears(file: &Path) {
    within(async {
        while !file.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_killed_server_finds_helm_again_and_begins_nothing_twice() {
    let test = "a_killed_server_finds_helm_again_and_begins_nothing_twice";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    without_cluster(&mut world);
    world.before_helm(
        "[ \"$1\" = upgrade ] || exec \"$HELM\" \"$@\"\n\
         echo begun >>\"$HERE/begun\"\n\
         while ! [ -e \"$HERE/go\" ]; do sleep 0.05; done\n\
         echo released; exit 7",
    );
    let cx = nobody_secret();
    let mut work = world.work(Deed::Update, &cx).await;
    let heard = Heard::default();
    let begun = world.home.path().join("begun");
    // The server is killed while Helm works.
    let follow = following(&heard);
    tokio::select! {
        acted = world.helm.act(&cx, &work, &follow) => panic!("{acted:?}"),
        () = appears(&begun) => {}
    }
    work.begun_at = Some(world.helm.place().to_owned());
    let again = world.again();
    let heard = Heard::default();
    let follow = following(&heard);
    let acted = tokio::join!(within(again.act(&cx, &work, &follow)), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        std::fs::write(world.home.path().join("go"), "").unwrap();
    });
    assert_eq!(acted.0, Acted::Exited { status: 7 });
    assert_eq!(heard.all(), "released");
    assert_eq!(std::fs::read_to_string(begun).unwrap(), "begun\n");
    again.forget(work.action).await;
    assert!(!world.runs().join(work.action.to_string()).exists());
}

/// A chart whose hook nobody runs: Helm waits for it.
fn with_hook(world: &mut World) -> PathBuf {
    let hook = world.own_chart().join("templates/hook.yaml");
    let text = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: wait\n  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: wait, image: wait}]\n";
    std::fs::write(&hook, text).unwrap();
    hook
}

/// Waits until Helm waits for its hook.
async fn hook_is_there(world: &World) {
    within(async {
        while world.names("jobs").is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_cancels_ends_helm_and_the_next_one_may_begin() {
    let test = "whoever_cancels_ends_helm_and_the_next_one_may_begin";
    let Some(mut world) = World::placed(test, "v4.1.4", "cancelled") else {
        return;
    };
    let hook = with_hook(&mut world);
    let cx = nobody_secret();
    let work = world.work(Deed::Create, &cx).await;
    let heard = Heard::default();
    let follow = following(&heard);
    let cancel = async {
        hook_is_there(&world).await;
        follow.end.cancel();
    };
    let (acted, ()) = tokio::join!(within(world.helm.act(&cx, &work, &follow)), cancel);
    let because = Because::Cancelled;
    assert_eq!(acted, Acted::Killed { because }, "{}", heard.all());
    std::fs::remove_file(hook).unwrap();
    world.kubectl(&["delete", "job", "wait"]);
    world.done(&cx, Deed::Update).await;
    world.done(&cx, Deed::Cleanup).await;
}

#[tokio::test]
async fn a_runner_that_is_killed_takes_helm_along_and_leaves_nothing_secret() {
    let test = "a_runner_that_is_killed_takes_helm_along_and_leaves_nothing_secret";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    without_cluster(&mut world);
    world.before_helm(
        "[ \"$1\" = upgrade ] || exec \"$HELM\" \"$@\"\n\
         echo $$ >\"$HERE/pid.new\"; mv \"$HERE/pid.new\" \"$HERE/pid\"; exec sleep 600",
    );
    let known = vec![(Level::Application, "password", &b"swordfish-77"[..])];
    let cx = context(Known(known));
    let mut work = world.work(Deed::Create, &cx).await;
    let settings = &mut work.subject.application;
    settings.retain(|one| one.key.as_str() != "password");
    settings.push(secret("password"));
    let run = world.runs().join(work.action.to_string());
    let pid = world.home.path().join("pid");
    let heard = Heard::default();
    let follow = following(&heard);
    let kill = async {
        appears(&pid).await;
        assert!(!with_text(&run, "swordfish").is_empty());
        let began = std::fs::read(run.join("began")).unwrap();
        let began: serde_json::Value = serde_json::from_slice(&began).unwrap();
        end(&began["session"].to_string());
    };
    let (acted, ()) = tokio::join!(within(world.helm.act(&cx, &work, &follow)), kill);
    assert_eq!(acted, Acted::Lost);
    let nothing: [PathBuf; 0] = [];
    assert_eq!(with_text(world.home.path(), "swordfish"), nothing);
    let helm = std::fs::read_to_string(pid).unwrap();
    assert!(!Path::new("/proc").join(helm.trim()).join("cwd").exists());
}

/// Kills a process.
fn end(number: &str) {
    let kill = Command::new("kill").args(["-KILL", number]).status();
    assert!(kill.unwrap().success());
}

/// Has nothing ask a cluster.
fn without_cluster(world: &mut World) {
    let conf = world.home.path().join("kubeconfig");
    std::fs::write(&conf, "").unwrap();
    world.chart().kubeconfig = Some(Kubeconfig::File(conf.display().to_string()));
    world.programs.kubectl = Some("/bin/true".into());
}

#[tokio::test]
async fn a_release_that_somebody_was_killed_at_is_freed() {
    let test = "a_release_that_somebody_was_killed_at_is_freed";
    for (version, namespace) in [("v4.1.4", "freed-four"), ("v3.19.5", "freed-three")] {
        let Some(mut world) = World::placed(test, version, namespace) else {
            return;
        };
        let hook = with_hook(&mut world);
        world.before_helm(
            "[ \"$1\" = upgrade ] || exec \"$HELM\" \"$@\"\n\
             \"$HELM\" \"$@\" & echo $! >\"$HERE/pid.new\"; mv \"$HERE/pid.new\" \"$HERE/pid\"; wait $!",
        );
        let cx = nobody_secret();
        let work = world.work(Deed::Create, &cx).await;
        let heard = Heard::default();
        let kill = async {
            let pid = world.home.path().join("pid");
            appears(&pid).await;
            hook_is_there(&world).await;
            let number = std::fs::read_to_string(pid).unwrap();
            end(number.trim());
        };
        let follow = following(&heard);
        let (acted, ()) = tokio::join!(within(world.helm.act(&cx, &work, &follow)), kill);
        assert!(
            matches!(acted, Acted::Exited { status: 137, .. }),
            "{acted:?} {}",
            heard.all()
        );
        // The next one is not kept out.
        std::fs::remove_file(hook).unwrap();
        world.kubectl(&["delete", "job", "wait"]);
        let (acted, heard) = world.act(&cx, Deed::Update).await;
        assert!(
            matches!(acted, Acted::Exited { status: 0, .. }),
            "{acted:?} {}",
            heard.all()
        );
        let told = "secret/sh.helm.release.v1.orange-button.v1 was left by somebody who was killed";
        assert!(heard.all().contains(told), "{}", heard.all());
        world.done(&cx, Deed::Cleanup).await;
    }
}
