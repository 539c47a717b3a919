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
    let keys = keys.into_iter().map(|known| known.key);
    (defaults.collect(), keys.collect())
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
            (
                "replicas",
                "many",
                "application.replicas: found \"many\", allowed: a whole number from 0 to 20",
            ),
            (
                "store.size",
                "huge",
                "application.store.size: found \"huge\", allowed: a text that matches ^[0-9]+[KMGT]i$",
            ),
            (
                "unheard.of",
                "1",
                "application.unheard.of: `unheard` is not known to the chart; allowed: env, global, image, ingress, password, replicas, store",
            ),
            (
                "image.tag.suffix",
                "x",
                "application.image.tag.suffix: setting image.tag.suffix is part of image.tag, which is something else than a mapping",
            ),
        ] {
            let kept = world.edits.clone();
            world.set(key, text);
            assert_eq!(wrong(judged(&world).await), [why]);
            world.edits = kept;
        }
        // What was removed is not there for the chart either, and all is told at once.
        world
            .edits
            .insert("image.tag".parse().unwrap(), Edit::Removed);
        world.set("image.pullPolicy", "Sometimes");
        assert_eq!(
            wrong(judged(&world).await),
            [
                "application.image.pullPolicy: found \"Sometimes\", allowed: \"Always\", \"IfNotPresent\" or \"Never\"",
                "application.image.tag: found nothing, allowed: a text of 1 to 128 characters",
            ]
        );
        // What only the chart itself knows is said by Helm.
        world.edits.clear();
        let chart = world.own_chart();
        let text = "{{ if gt (int .Values.replicas) 5 }}{{ fail \"too many\" }}{{ end }}";
        std::fs::write(chart.join("templates/few.yaml"), text).unwrap();
        world.set("replicas", "6");
        let Judged::Bad(said) = judged(&world).await else {
            panic!("it did not fail");
        };
        assert!(said.contains("too many"), "{said}");
    }
}

/// The faults of settings, in lines.
fn wrong(judged: Judged) -> Vec<String> {
    let Judged::Wrong(faults) = judged else {
        panic!("{judged:?}");
    };
    faults.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn keys_are_told_with_what_the_schema_says() {
    let test = "keys_are_told_with_what_the_schema_says";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let world = World::alone(&helm);
    let cx = nobody_secret();
    for of in [Of::Deployment, Of::Application(&[])] {
        let known = within(world.helm.keys(&cx, &world.subject.settings, of));
        let known = known.await.unwrap();
        let known = |key: &str| {
            let found = known.iter().find(|known| known.key == key).unwrap();
            let default = found.default.clone().unwrap_or_default();
            format!("{} [{default}]", found.shape.words())
        };
        assert_eq!(known("replicas"), "a whole number from 0 to 20 [2]");
        assert_eq!(known("ingress.path"), "a text that matches ^/ [/]");
        assert_eq!(known("ingress.enabled"), "true or false [true]");
        assert_eq!(known("env"), "a mapping, as JSON [{}]");
    }
}

/// A chart that shows the types of what it is given, and what it was given.
const TYPES: &str = r#"kinds: {{ range list "flag" "count" "ratio" "name" "mode" "list" "free" }}{{ . }}={{ index $.Values . | kindOf }} {{ end }}
deep: {{ kindOf .Values.deep.flag }} {{ kindOf (index .Values.list 0) }}
"#;

const TYPES_SCHEMA: &str = r##"{
  "properties": {
    "flag": {"type": "boolean"}, "count": {"$ref": "#/definitions/count"}, "ratio": {"type": "number"},
    "name": {"type": "string"}, "mode": {"enum": ["1", "2"]}, "list": {"type": "array", "items": {"type": "string"}},
    "deep": {"properties": {"flag": {"type": ["boolean", "null"]}}}
  },
  "definitions": {"count": {"type": "integer"}}
}"##;

/// What Helm itself makes of the values that it is given.
#[tokio::test]
async fn typed_values_reach_a_real_helm_typed() {
    for version in lab::helm::VERSIONS {
        let test = "typed_values_reach_a_real_helm_typed";
        let Some(helm) = helm_or_skip(test, version) else {
            return;
        };
        let mut world = World::alone(&helm);
        world.chart().host = None;
        let chart = world.own_chart();
        std::fs::remove_dir_all(chart.join("templates")).unwrap();
        std::fs::create_dir(chart.join("templates")).unwrap();
        std::fs::write(chart.join("values.yaml"), "flag: false\n").unwrap();
        std::fs::write(chart.join("values.schema.json"), TYPES_SCHEMA).unwrap();
        for (key, text) in [
            ("flag", "true"),
            ("count", "1"),
            ("ratio", "1"),
            ("name", "1"),
            ("mode", "2"),
            ("list[0]", "true"),
            ("deep.flag", "false"),
            ("free", "12"),
        ] {
            world.set(key, text);
        }
        assert_eq!(judged(&world).await, Judged::Good);
        // What it was given is told where it fails on purpose.
        let fail = format!("{{{{ fail (tpl `{TYPES}` .) }}}}");
        std::fs::write(chart.join("templates/types.yaml"), fail).unwrap();
        let Judged::Bad(said) = judged(&world).await else {
            panic!("it did not fail");
        };
        let kinds =
            "flag=bool count=float64 ratio=float64 name=string mode=string list=slice free=float64";
        assert!(said.contains(kinds), "{said}");
        assert!(said.contains("deep: bool string"), "{said}");
        std::fs::remove_file(chart.join("templates/types.yaml")).unwrap();
        // Whatever is refused here, Helm refuses, too: it is asked with the schema alone.
        for (key, text) in [
            ("count", "1.5"),
            ("mode", "3"),
            ("list[0]", "a"),
            ("name", "x"),
        ] {
            let kept = world.edits.clone();
            world.set(key, text);
            let by_us = matches!(judged(&world).await, Judged::Wrong(_));
            assert_eq!(by_us, !helm_takes(&helm, &chart, key, text), "{key}={text}");
            world.edits = kept;
        }
    }
}

/// Whether Helm takes a chart with one value, that is a number where it looks like one.
fn helm_takes(helm: &Path, chart: &Path, key: &str, text: &str) -> bool {
    let verb = if text.parse::<f64>().is_ok() && key != "mode" {
        "--set-json"
    } else {
        "--set-string"
    };
    let ran = Command::new(helm)
        .arg("template")
        .arg(chart)
        .args([verb, &format!("{key}={text}")])
        .output();
    ran.unwrap().status.success()
}

#[tokio::test]
async fn helm_is_the_last_judge_of_what_is_not_understood() {
    let test = "helm_is_the_last_judge_of_what_is_not_understood";
    let Some(helm) = helm_or_skip(test, lab::helm::VERSIONS[0]) else {
        return;
    };
    let mut world = World::alone(&helm);
    world.chart().host = None;
    let chart = world.own_chart();
    std::fs::write(chart.join("values.yaml"), "name: shop\n").unwrap();
    let schema = |text: &str| std::fs::write(chart.join("values.schema.json"), text).unwrap();
    let templates = chart.join("templates");
    std::fs::remove_dir_all(&templates).unwrap();
    schema(r#"{"properties": {"name": {"not": {"const": "lemon"}}}}"#);
    assert_eq!(judged(&world).await, Judged::Good);
    world.set("name", "lemon");
    let Judged::Bad(said) = judged(&world).await else {
        panic!("Helm took it");
    };
    assert!(said.contains("name"), "{said}");
    // One that is too large for us is not for Helm, which reads 5 MiB.
    let filler = "x".repeat(9 * 512 * 1024);
    schema(&format!(
        r#"{{"description": "{filler}", "properties": {{"name": {{"type": "integer"}}}}}}"#
    ));
    world.edits.clear();
    let Judged::Bad(said) = judged(&world).await else {
        panic!("Helm took it");
    };
    assert!(said.contains("name"), "{said}");
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
    // Nor is it told when its own setting cannot have it.
    let cx_short = context(Known(vec![(Level::Application, "image.tag", b"hunter2")]));
    let mut short = world.configured(&cx_short).await;
    short
        .application
        .retain(|one| one.key.as_str() != "image.tag");
    short.application.push(secret("image.tag"));
    let file = chart.join("values.schema.json");
    let before = std::fs::read(&file).unwrap();
    let schema = r#"{"properties": {"image": {"properties": {"tag": {"pattern": "^v"}}}}}"#;
    std::fs::write(&file, schema).unwrap();
    let told = wrong(within(world.helm.judge(&cx_short, &short)).await.unwrap());
    assert_eq!(
        told,
        ["application.image.tag: found a secret value, allowed: a text that matches ^v"]
    );
    std::fs::write(&file, before).unwrap();
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
