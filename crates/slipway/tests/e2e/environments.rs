//! Environments by Helm, on a cluster that Slipway made and whose kubeconfig nobody handles.

use crate::asking::until;
use crate::shape::{NAME, Shape};
use crate::site::{Site, VERSION, story};
use serde_json::Value;

/// The chart that environments are made of.
const CHART: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/environments/chart"
);

/// The namespace of the project.
const NAMESPACE: &str = "shop";

/// The environment.
const ORANGE: &str = "orange";

/// What its pods belong to.
const DEPLOYMENT: &str = "deployment/orange-echo";

/// Nobody may remove anything that has pods: whoever should allow it does not answer.
const FORBIDDING: &str = r#"{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration",
"metadata":{"name":"forbidding"},"webhooks":[{"name":"forbidding.slipway.dev","sideEffects":"None",
"admissionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"},"failurePolicy":"Fail",
"rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["DELETE"],"resources":["deployments"]}]}]}"#;

#[test]
fn a_chart_goes_through_every_status_on_a_cluster_of_ours() {
    let test = "environments::a_chart_goes_through_every_status_on_a_cluster_of_ours";
    if lab::helm::program(lab::helm::VERSIONS[0]).is_none() {
        return lab::skip(test, &lab::helm::missing());
    }
    story(test, &[VERSION], |site| {
        site.step("a cluster is ready", |site| {
            site.apply(Shape::small(VERSION, 1));
            site.bring_echo();
        });
        site.step("an environment is created, and answers", |site| {
            settled(site);
            env(site, &["create", ORANGE, "-t", "1", "-e", "replicas=2"]);
            is(site, "create-pending");
            is(site, "running");
            answers(site);
            let links = seen(site)["links"].to_string();
            assert!(links.contains("http://orange.shop.example"), "{links}");
        });
        site.step(
            "what is not as it should be is seen, and that it is again",
            broken,
        );
        site.step("what the chart cannot take is refused", refused);
        site.step("it is updated", |site| {
            let words = ["update", ORANGE, "-e", "replicas=1", "-e", "env.COUNT=7"];
            env(site, &words);
            is(site, "update-pending");
            is(site, "running");
            assert_eq!(replicas(site), "1");
            // A number where the chart wants a text is a text: else Kubernetes would refuse it.
            assert_eq!(variable(site, "COUNT"), "7");
        });
        site.step("it is archived while the server is killed", |site| {
            env(site, &["archive", ORANGE]);
            is(site, "archive-pending");
            site.kill();
            site.start();
            is(site, "archived");
            assert_eq!(pods(site), "");
        });
        site.step("it is restored as it was", |site| {
            env(site, &["restore", ORANGE]);
            is(site, "running");
            assert_eq!(replicas(site), "1");
            answers(site);
        });
        site.step("a cleanup fails, and succeeds when it may", |site| {
            env(site, &["archive", ORANGE, "--wait"]);
            site.kubectl(&["create", "-f", "-"], FORBIDDING).unwrap();
            env(site, &["cleanup", ORANGE, "--yes"]);
            is(site, "cleanup-failed");
            let allowed = ["delete", "validatingwebhookconfiguration", "forbidding"];
            site.kubectl(&allowed, "").unwrap();
            env(site, &["cleanup", ORANGE, "--yes", "--wait"]);
            let left = in_namespace(site, &["get", "all,secrets,ingresses", "-o", "name"]);
            assert_eq!(left, "");
            assert_eq!(site.told(&["env", "list"]), Vec::<Value>::new());
        });
        site.step("delete", |site| site.delete());
    });
}

/// Says how environments are made.
fn settled(site: &mut Site) {
    let place = ["--project-name", "Shop", "--base-domain", "shop.example"];
    let chart = ["--namespace", NAMESPACE, "--chart", CHART];
    let rest = [
        "--cluster",
        NAME,
        "--host-key",
        "ingress.host",
        "--every",
        "1s",
    ];
    let words = [&["settings", "set"][..], &place, &chart, &rest].concat();
    env(site, &words);
}

/// What somebody breaks in the cluster is seen.
fn broken(site: &mut Site) {
    let other = ["set", "image", DEPLOYMENT, "echo=slipway.lab/echo:2"];
    let nowhere = r#"{"spec":{"template":{"spec":{"nodeSelector":{"room":"none"}}}}}"#;
    let nowhere = ["patch", DEPLOYMENT, "--patch", nowhere];
    for (breaking, status) in [
        (&other[..], "tag-mismatch"),
        (&nowhere[..], "partial-failure"),
    ] {
        in_namespace(site, breaking);
        is(site, status);
        in_namespace(site, &["rollout", "undo", DEPLOYMENT]);
        is(site, "running");
    }
    in_namespace(site, &["delete", DEPLOYMENT]);
    is(site, "failure");
    env(site, &["update", ORANGE, "-e", "replicas=2"]);
    is(site, "running");
}

/// Wrong values are told at once, and nothing is begun.
fn refused(site: &mut Site) {
    let told = env(site, &["keys", "-o", "json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let mut known = told["settings"].as_array().unwrap().iter();
    let known = known.find(|known| known["key"] == "replicas").unwrap();
    assert_eq!(known["types"], serde_json::json!(["integer"]));
    let before = seen(site);
    let words = [
        "env",
        "update",
        ORANGE,
        "-e",
        "replicas=many",
        "-o",
        "imge.tag=2",
    ];
    let said = site.refused(&words);
    for part in [
        "ENV-021",
        "application.replicas: found \"many\", allowed: a whole number from 0 to 20",
        "deployment.imge.tag: `imge` is not known to the chart; did you mean `image`?",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(seen(site)["generation"], before["generation"]);
    assert_eq!(replicas(site), "2");
}

#[track_caller]
fn env(site: &mut Site, words: &[&str]) -> String {
    site.client(&[&["env"], words].concat())
}

fn seen(site: &mut Site) -> Value {
    let told = site.client(&["env", "info", ORANGE, "-o", "json"]);
    serde_json::from_str(&told).unwrap()
}

/// Waits until the environment has a status.
#[track_caller]
fn is(site: &mut Site, status: &str) {
    until(status, || (seen(site)["status"] == status).then_some(()));
}

#[track_caller]
fn in_namespace(site: &mut Site, words: &[&str]) -> String {
    let words = [&["--namespace", NAMESPACE], words].concat();
    site.kubectl(&words, "").unwrap()
}

fn replicas(site: &mut Site) -> String {
    in_namespace(
        site,
        &["get", DEPLOYMENT, "-o", "jsonpath={.spec.replicas}"],
    )
}

/// The value of a variable of its containers.
fn variable(site: &mut Site, name: &str) -> String {
    let path =
        format!("jsonpath={{.spec.template.spec.containers[0].env[?(@.name==\"{name}\")].value}}");
    in_namespace(site, &["get", DEPLOYMENT, "-o", &path])
}

fn pods(site: &mut Site) -> String {
    in_namespace(site, &["get", "pods", "-o", "name"])
}

/// Asks the service of the environment, on a machine of the cluster.
fn answers(site: &mut Site) {
    let words = [
        "get",
        "service/orange-echo",
        "-o",
        "jsonpath={.spec.clusterIP}",
    ];
    let url = format!("http://{}/", in_namespace(site, &words));
    let name = site.names("compute").remove(0);
    until("an answer", || {
        let asked = Site::host(&name).run(&["curl", "--silent", "--fail", &url], b"");
        asked
            .ok()
            .filter(|answer| answer.starts_with("orange-echo-"))
    });
}
