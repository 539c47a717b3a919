//! The example scripts: they are tried, and drive an environment through its statuses.

use crate::testing::{secret, setting, subject};
use crate::world::{Heard, World, following, nobody_secret, within};
use driver::Context;
use driver::deploy::{Acted, Deployer as _, Judged, Of, Stream, Subject};
use model::environment::config::{LevelEdits, effective};
use model::environment::status::{Deed, Failure, Look, Seen, Status};
use scripts::contract::Script;
use scripts::error::{Error, Kind};
use scripts::trial::{self, Finding, Verdict};
use scripts::{Scripts, Surroundings};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/environments/scripts")
}

/// The world, whose environments are directories below `state`.
fn surroundings(world: &World) -> Surroundings {
    let state = ("SLIPWAY_EXAMPLE_STATE".into(), world.path("state").into());
    Surroundings::new(std::env::vars_os().chain([state]))
}

async fn tried(world: &World, path: &Path, patience: Duration) -> Result<Vec<Finding>, Error> {
    within(trial::directory(path, patience, surroundings(world))).await
}

#[tokio::test]
async fn nothing_is_wrong_with_them() {
    let world = World::new();
    let found = tried(&world, &examples(), Duration::from_mins(1))
        .await
        .unwrap();
    let wrong: Vec<_> = found
        .iter()
        .filter(|found| matches!(found.verdict, Verdict::Wrong(_)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let seen = |script| {
        let found = found.iter().find(|found| found.script == script);
        found.map(|found| found.seen.as_str()).unwrap()
    };
    assert_eq!(seen(Script::ApplicationConfig), "told 4 settings");
    assert_eq!(seen(Script::Check), "ended with status 1: trial is not up");
    assert_eq!(seen(Script::ConfigCheck), "ended with status 0");
    assert!(!world.path("state").exists(), "nothing was changed");
}

#[tokio::test]
async fn settings_that_are_told_again_are_named() {
    let world = World::new();
    world.script("deployment_config", "printf 'repl,1\\na,2\\nrepl,3\\n'");
    let patience = Duration::from_secs(10);
    let found = tried(&world, &world.path("scripts"), patience).await;
    let found = found.unwrap();
    let of = |found: &&Finding| found.script == Script::DeploymentConfig;
    let seen = &found.iter().find(of).unwrap().seen;
    assert_eq!(
        seen,
        "told 2 settings; `repl` again in line 3, where it does not count"
    );
}

#[tokio::test]
async fn each_fault_of_a_directory_is_found() {
    let world = World::new();
    world
        .script("deployment_config", "echo a,b,c")
        .script("deployment_keys", "exit 3")
        .script("check", "sleep 100");
    let patience = Duration::from_millis(500);
    let found = tried(&world, &world.path("scripts"), patience)
        .await
        .unwrap();
    let codes: Vec<_> = found
        .iter()
        .filter_map(|found| match found.verdict {
            Verdict::Wrong(kind) => Some(format!("{} {}", found.script, kind.code())),
            Verdict::Good | Verdict::Untried | Verdict::Absent => None,
        })
        .collect();
    assert_eq!(
        codes[..3],
        [
            "deployment_config SCRIPT-006",
            "deployment_config_keys SCRIPT-005",
            "application_config SCRIPT-001"
        ]
    );
    assert!(codes.contains(&"check SCRIPT-004".to_owned()), "{codes:?}");
    assert_eq!(codes.len(), 13);
    assert!(
        tried(&world, &world.path("nowhere"), patience)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn scripts_that_nobody_could_run_are_found_without_running_them() {
    let world = World::new();
    world
        .script("create", "true")
        .script("update", "true")
        .script("archive", "true")
        .script("unarchive", "true")
        .script("cleanup", "true");
    std::fs::copy("/bin/true", world.path("scripts/cleanup")).unwrap();
    let rewritten = [
        ("create", "#!/bin/sh\r\ntrue\r\n"),
        ("update", "#!/no/such/shell\n"),
        ("unarchive", "echo hi\n"),
    ];
    for (script, text) in rewritten {
        std::fs::write(world.path("scripts").join(script), text).unwrap();
    }
    let found = tried(&world, &world.path("scripts"), Duration::from_secs(5)).await;
    let found = found.unwrap();
    let seen = |script| {
        let found = found.iter().find(|found| found.script == script).unwrap();
        (
            found.verdict,
            found
                .seen
                .rsplit_once("/scripts/")
                .unwrap_or(("", &found.seen))
                .1,
        )
    };
    let wrong = Verdict::Wrong(Kind::NotExecutable);
    let returned = "create has a first line that ends in a carriage return";
    assert_eq!(seen(Script::Create), (wrong, returned));
    let nobody = "update is to be run by \"/no/such/shell\", which is not there";
    assert_eq!(seen(Script::Update), (wrong, nobody));
    let unnamed = "unarchive has no first line that says who runs it";
    assert_eq!(seen(Script::Unarchive), (wrong, unnamed));
    assert_eq!(seen(Script::Archive).0, Verdict::Untried);
    assert_eq!(seen(Script::Cleanup).0, Verdict::Untried, "a program");
}

/// An environment of the example scripts.
struct Story {
    cx: Context,
    scripts: Scripts,
    subject: Subject,
}

impl Story {
    async fn begin(world: &World) -> Self {
        let runner = vec![env!("CARGO_BIN_EXE_run-script").into()];
        let scripts = Scripts::open(&world.path("runs"), runner, surroundings(world)).unwrap();
        let cx = nobody_secret();
        let mut subject = subject();
        let path = examples().canonicalize().unwrap();
        subject.settings.scripts = path.into_os_string().into_string().unwrap();
        let told = scripts.defaults(&cx, &subject.settings, Of::Deployment);
        subject.deployment = effective(&told.await.unwrap(), &LevelEdits::new());
        let of = Of::Application(&subject.deployment);
        let told = scripts.defaults(&cx, &subject.settings, of).await;
        subject.application = effective(&told.unwrap(), &LevelEdits::new());
        Self {
            cx,
            scripts,
            subject,
        }
    }

    /// The environment with one setting more.
    fn with(&self, key: &str, value: &str) -> Subject {
        let mut subject = self.subject.clone();
        subject.application.push(setting(key, value));
        subject
    }

    /// The status of the script, how many links there are, and what it printed.
    async fn act(&self, deed: Deed, (key, value): (&str, &str)) -> (i32, usize, Vec<String>) {
        let heard = Heard::default();
        let work = crate::world::work(self.with(key, value), deed, &self.cx);
        let acted = within(self.scripts.act(&self.cx, &work, &following(&heard))).await;
        self.scripts.forget(work.action).await;
        let Acted::Exited { status } = acted else {
            panic!("{acted:?}");
        };
        (status, heard.links().len(), heard.lines(Stream::Out))
    }

    async fn look(&self, look: Look, (key, value): (&str, &str)) -> Seen {
        let subject = self.with(key, value);
        let looked = within(self.scripts.look(&self.cx, &subject, look)).await;
        looked.unwrap().seen
    }
}

/// A setting that changes nothing.
const PLAIN: (&str, &str) = ("greeting", "hello");

#[tokio::test]
async fn they_bring_every_status_about() {
    let world = World::new();
    let story = Story::begin(&world).await;
    let bad = Seen::Bad(Failure::Generic);
    assert_eq!(story.look(Look::Up, PLAIN).await, bad);
    let (status, links, out) = story.act(Deed::Create, ("demo.slow", "1")).await;
    assert_eq!((status, links), (0, 2));
    assert_eq!(out[..2], ["create orange-button", "1 of 1 s"]);
    assert_eq!(story.look(Look::Up, PLAIN).await, Seen::Good);
    assert_eq!(story.look(Look::Down, PLAIN).await, bad);
    for (key, value, failure) in [
        ("demo.health", "bad", Failure::Generic),
        ("demo.health", "partial", Failure::Partial),
        ("demo.health", "mismatch", Failure::TagMismatch),
        ("image.tag", "v2", Failure::TagMismatch),
    ] {
        let seen = story.look(Look::Up, (key, value)).await;
        assert_eq!(seen, Seen::Bad(failure), "{key}={value}");
    }
    assert_eq!(story.act(Deed::Update, ("demo.fail", "update")).await.0, 1);
    assert_eq!(
        story.act(Deed::Archive, ("demo.archive", "stuck")).await.0,
        0
    );
    assert_eq!(story.look(Look::Down, PLAIN).await, bad);
    assert_eq!(story.act(Deed::Archive, PLAIN).await.0, 0);
    assert_eq!(story.look(Look::Down, PLAIN).await, Seen::Good);
    assert_eq!(story.act(Deed::Restore, PLAIN).await.0, 0);
    assert_eq!(story.look(Look::Up, PLAIN).await, Seen::Good);
    assert_eq!(
        story.act(Deed::Cleanup, ("demo.cleanup", "fail")).await.0,
        1
    );
    assert_eq!(story.act(Deed::Cleanup, PLAIN).await.0, 0);
    assert!(!world.path("state/cactus/orange-button").exists());
}

#[tokio::test]
async fn they_judge_and_are_told() {
    let world = World::new();
    let story = Story::begin(&world).await;
    let odd = story.with("demo.health", "fine");
    let why = "demo.health is ok, bad, partial or mismatch, and not `fine`";
    let judged = story.scripts.judge(&story.cx, &odd).await;
    assert_eq!(judged, Ok(Judged::Bad(why.to_owned())));
    // Nothing is sealed of an environment that is not there yet.
    let mut new = story.subject.clone();
    new.application.push(secret("db.password"));
    new.id = None;
    let judged = story.scripts.judge(&story.cx, &new).await;
    assert_eq!(judged, Ok(Judged::Good));
    let (was, became) = (Status::CreatePending, Status::Running);
    story
        .scripts
        .notify(&story.subject, was, became)
        .await
        .unwrap();
    let told = world.read("state/notifications");
    assert_eq!(told, "orange-button: CreatePending, now Running\n");
}

#[test]
fn they_are_good_shell() {
    let mut files: Vec<_> = std::fs::read_dir(examples())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_none_or(|ending| ending == "sh"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 16);
    let checked = Command::new("shellcheck")
        .args(["-x", "-P", "SCRIPTDIR"])
        .args(&files)
        .output();
    let Ok(checked) = checked else {
        lab::skip("they_are_good_shell", "shellcheck is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}");
}
