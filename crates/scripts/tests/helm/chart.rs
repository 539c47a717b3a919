//! What a chart says of its values, and what is judged by it. No cluster is asked.

use crate::testing::{Known, context, secret};
use crate::world::{World, example, helm_or_skip, nobody_secret, within};
use driver::deploy::{Deployer as _, Judged, Of};
use model::environment::config::{Edit, Level};
use std::path::Path;
use std::process::Command;

/// What a chart tells of itself: defaults and keys.
async fn told(world: &World) -> (Vec<String>, Vec<String>) {
    let cx = nobody_secret();
    let settings = &world.subject.settings;
    let of = Of::Application(&[]);
    let defaults = within(world.helm.defaults(&cx, settings, of))
        .await
        .unwrap();
    let defaults = defaults.iter();
    let defaults = defaults.map(|(key, value)| format!("{key}={}", value.as_str()));
    let keys = within(world.helm.keys(&cx, settings, of)).await.unwrap();
    (defaults.collect(), keys)
}

#[tokio::test]
async fn defaults_and_keys_come_from_values_and_schema() {
    for version in lab::helm::VERSIONS {
        let test = "defaults_and_keys_come_from_values_and_schema";
        let Some(helm) = helm_or_skip(test, version) else {
            return;
        };
        let mut world = World::alone(&helm);
        let (defaults, keys) = told(&world).await;
        assert_eq!(
            defaults,
            [
                "env={}",
                "image.pullPolicy=Never",
                "image.repository=slipway.lab/echo",
                "image.tag=1",
                "ingress.annotations={}",
                "ingress.enabled=true",
                "ingress.host=",
                "ingress.tlsSecret=",
                "password=",
                "replicas=2",
                "store.enabled=false",
                "store.size=1Gi",
            ]
        );
        // What has no default is named by the schema.
        assert!(keys.contains(&"ingress.path".to_owned()), "{keys:?}");
        assert!(keys.contains(&"image.tag".to_owned()), "{keys:?}");
        // The same chart as an archive.
        let packed = Command::new(&helm)
            .args(["package", "--destination"])
            .arg(world.home.path())
            .arg(example())
            .output();
        assert!(packed.unwrap().status.success());
        world.chart().chart = world
            .home
            .path()
            .join("echo-1.0.0.tgz")
            .display()
            .to_string();
        assert_eq!(told(&world).await, (defaults, keys));
        // How it is deployed has nothing of its own.
        let cx = nobody_secret();
        let of = world
            .helm
            .defaults(&cx, &world.subject.settings, Of::Deployment);
        assert_eq!(of.await.unwrap().iter().count(), 0);
    }
}

#[tokio::test]
async fn a_chart_that_changed_is_read_again() {
    let test = "a_chart_that_changed_is_read_again";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    let chart = world.own_chart();
    let (before, _) = told(&world).await;
    std::fs::write(chart.join("values.yaml"), "replicas: 5\n").unwrap();
    let (after, _) = told(&world).await;
    assert_ne!(after, before);
    assert_eq!(after, ["replicas=5"]);
}

async fn judged(world: &World) -> Judged {
    let cx = nobody_secret();
    let subject = world.configured(&cx).await;
    within(world.helm.judge(&cx, &subject)).await.unwrap()
}

#[tokio::test]
async fn a_configuration_is_judged_by_schema_and_chart() {
    for version in lab::helm::VERSIONS {
        let test = "a_configuration_is_judged_by_schema_and_chart";
        let Some(helm) = helm_or_skip(test, version) else {
            return;
        };
        let mut world = World::alone(&helm);
        world.set("replicas", "3");
        world.set("env.MODE", "1");
        assert_eq!(judged(&world).await, Judged::Good);
        for (key, text, why) in [
            ("replicas", "many", "replicas"),
            ("store.size", "huge", "size"),
            ("unheard.of", "1", "unheard"),
            (
                "image.tag.suffix",
                "x",
                "setting image.tag.suffix is part of image.tag",
            ),
        ] {
            let kept = world.edits.clone();
            world.set(key, text);
            let Judged::Bad(said) = judged(&world).await else {
                panic!("{key}={text} is good");
            };
            assert!(said.contains(why), "{said}");
            world.edits = kept;
        }
        // What was removed is not there for the chart either.
        world
            .edits
            .insert("image.tag".parse().unwrap(), Edit::Removed);
        let Judged::Bad(said) = judged(&world).await else {
            panic!("a chart without its tag is good");
        };
        assert!(said.contains("tag"), "{said}");
    }
}

#[tokio::test]
async fn a_secret_is_judged_and_not_told() {
    let test = "a_secret_is_judged_and_not_told";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    let chart = world.own_chart();
    // A chart that repeats what it is given.
    let text = "{{ if ne .Values.password \"\" }}{{ fail .Values.password }}{{ end }}";
    std::fs::write(chart.join("templates/talk.yaml"), text).unwrap();
    let cx = context(Known(vec![(
        Level::Application,
        "password",
        b"hunter2-hunter2",
    )]));
    let mut subject = world.configured(&cx).await;
    subject
        .application
        .retain(|one| one.key.as_str() != "password");
    subject.application.push(secret("password"));
    let Judged::Bad(said) = within(world.helm.judge(&cx, &subject)).await.unwrap() else {
        panic!("it did not fail");
    };
    assert!(said.contains("***") && !said.contains("hunter2"), "{said}");
    // Of an environment that is not there yet nobody knows the value; the type is judged.
    std::fs::remove_file(chart.join("templates/talk.yaml")).unwrap();
    subject.id = None;
    let judged = within(world.helm.judge(&cx, &subject)).await.unwrap();
    assert_eq!(judged, Judged::Good);
    assert_eq!(left_in_passing(&world.runs()), 0);
}

/// What is left where secrets pass through; the lock of a process that lives is none of them.
fn left_in_passing(runs: &Path) -> usize {
    let processes = std::fs::read_dir(runs.join("passing")).unwrap();
    let left = processes.flat_map(|own| std::fs::read_dir(own.unwrap().path()).unwrap());
    left.filter(|entry| entry.as_ref().unwrap().file_name() != "lock")
        .count()
}
