//! Pictures of what Kubernetes says, and what is made of it.

use super::*;
use serde_json::{Value, json};

struct Pods {
    desired: u64,
    there: u64,
    updated: u64,
    ready: u64,
}

const GOOD: Pods = Pods {
    desired: 2,
    there: 2,
    updated: 2,
    ready: 2,
};

fn object(kind: &str, image: &str, pods: &Pods) -> Value {
    json!({
        "kind": kind,
        "metadata": {
            "name": "web",
            "generation": 3,
            "annotations": {RELEASE: "orange", "else": "x"},
        },
        "spec": {
            "replicas": pods.desired,
            "selector": {"matchLabels": {"app": "web", "part": "a"}},
            "template": {"spec": {"containers": [{"image": "redis:7"}, {"image": image}]}},
        },
        "status": {
            "observedGeneration": 3,
            "replicas": pods.there,
            "readyReplicas": pods.ready,
            "updatedReplicas": pods.updated,
        },
    })
}

fn read(objects: &[Value]) -> Vec<Workload> {
    let list = json!({"items": objects}).to_string();
    let mut all = workloads(list.as_bytes()).unwrap();
    all.remove("orange").unwrap_or_default()
}

fn seen(objects: &[Value], tag: &str) -> (Seen, String) {
    up(&read(objects), Some(tag).filter(|tag| !tag.is_empty()))
}

#[test]
fn all_ready_with_the_right_tag_is_good() {
    let web = object("Deployment", "shop:v7", &GOOD);
    let good = (Seen::Good, "deployment web: 2 of 2 ready".to_owned());
    assert_eq!(seen(std::slice::from_ref(&web), "v7"), good);
    assert_eq!(seen(&[web], ""), good);
    // What should have no pods is well without.
    let none = Pods {
        desired: 0,
        there: 0,
        updated: 0,
        ready: 0,
    };
    let none = object("Deployment", "shop:v7", &none);
    assert_eq!(seen(&[none], "v7").0, Seen::Good);
}

#[test]
fn what_is_not_ready_is_partial_while_something_is() {
    let some = Pods { ready: 1, ..GOOD };
    let none = Pods { ready: 0, ..GOOD };
    let web = |pods| object("Deployment", "shop:v7", pods);
    let (how, said) = seen(&[web(&some)], "v7");
    assert_eq!(how, Seen::Bad(Failure::Partial));
    assert_eq!(said, "deployment web: 1 of 2 ready");
    assert_eq!(seen(&[web(&none)], "v7").0, Seen::Bad(Failure::Generic));
    let with_store = [web(&none), object("StatefulSet", "store:1", &GOOD)];
    assert_eq!(seen(&with_store, "v7").0, Seen::Bad(Failure::Partial));
    assert_eq!(seen(&[], "v7").0, Seen::Bad(Failure::Generic));
}

#[test]
fn pods_of_before_and_news_not_yet_noticed_are_no_success() {
    let rolling = Pods { updated: 1, ..GOOD };
    let (how, said) = seen(&[object("Deployment", "shop:v7", &rolling)], "v7");
    assert_eq!(how, Seen::Bad(Failure::Partial));
    assert_eq!(said, "deployment web: 1 of 2 still as before");
    let surge = Pods { there: 3, ..GOOD };
    let surge = object("Deployment", "shop:v7", &surge);
    assert_eq!(seen(&[surge], "v7").0, Seen::Bad(Failure::Partial));
    let mut news = object("Deployment", "shop:v7", &GOOD);
    news["metadata"]["generation"] = json!(4);
    let (how, said) = seen(&[news], "v7");
    assert_eq!(how, Seen::Bad(Failure::Partial));
    assert_eq!(said, "deployment web: was changed a moment ago");
}

#[test]
fn another_tag_is_told_unless_nothing_runs() {
    let web = object("Deployment", "registry:5000/shop:v6@sha256:00", &GOOD);
    let (how, said) = seen(&[web], "v7");
    assert_eq!(how, Seen::Bad(Failure::TagMismatch));
    assert!(said.ends_with("no image has the tag v7: redis:7, registry:5000/shop:v6@sha256:00"));
    let none = Pods { ready: 0, ..GOOD };
    let none = object("Deployment", "shop:v6", &none);
    assert_eq!(seen(&[none], "v7").0, Seen::Bad(Failure::Generic));
}

#[test]
fn tags_are_found_behind_ports_and_before_digests() {
    assert_eq!(tag_of("shop:v1"), Some("v1"));
    assert_eq!(tag_of("registry:5000/shop:v1@sha256:00"), Some("v1"));
    assert_eq!(tag_of("registry:5000/shop"), None);
    assert_eq!(tag_of("shop@sha256:00"), None);
}

#[test]
fn one_pod_on_every_node_counts_by_nodes_and_cannot_rest() {
    let mut agent = object("DaemonSet", "agent:1", &GOOD);
    agent["status"] = json!({
        "observedGeneration": 3,
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 3,
        "updatedNumberScheduled": 3,
        "numberReady": 2,
    });
    let (how, said) = seen(std::slice::from_ref(&agent), "1");
    assert_eq!(how, Seen::Bad(Failure::Partial));
    assert_eq!(said, "daemonset web: 2 of 3 ready");
    assert_eq!(down(&read(std::slice::from_ref(&agent))).0, Seen::Good);
    assert_eq!(resting(&read(&[agent])).count(), 0);
}

#[test]
fn what_runs_jobs_waits_for_its_time_or_is_suspended() {
    let job = |suspend: bool, jobs: usize| {
        let template = json!({"spec": {"containers": [{"image": "shop:v7"}]}});
        json!({
            "kind": "CronJob",
            "metadata": {"name": "nightly", "generation": 2, "annotations": {RELEASE: "orange"}},
            "spec": {"suspend": suspend, "jobTemplate": {"spec": {"template": template}}},
            "status": {"active": vec![json!({"name": "x"}); jobs]},
        })
    };
    let (how, said) = seen(&[job(false, 1)], "v7");
    assert_eq!(
        (how, said.as_str()),
        (Seen::Good, "cronjob nightly: waits for its time")
    );
    // What does not run is not made better by it.
    let none = Pods { ready: 0, ..GOOD };
    let web = object("Deployment", "shop:v7", &none);
    assert_eq!(
        seen(&[web, job(false, 1)], "v7").0,
        Seen::Bad(Failure::Generic)
    );
    assert_eq!(down(&read(&[job(false, 0)])).0, Seen::Bad(Failure::Generic));
    assert_eq!(down(&read(&[job(true, 1)])).0, Seen::Bad(Failure::Generic));
    assert_eq!(down(&read(&[job(true, 0)])).0, Seen::Good);
    let mut archived = job(true, 0);
    archived["metadata"]["annotations"][REPLICAS] = json!("1");
    let (how, said) = seen(&[archived], "v7");
    assert_eq!(
        (how, said.as_str()),
        (Seen::Bad(Failure::Generic), "cronjob nightly: is archived")
    );
}

#[test]
fn what_rests_has_no_pods_and_wants_none() {
    let rests = Pods {
        desired: 0,
        there: 0,
        updated: 0,
        ready: 0,
    };
    let web = |pods| read(&[object("Deployment", "shop:v7", pods)]);
    assert_eq!(down(&web(&rests)).0, Seen::Good);
    let labels = |all: &[(&str, &str)]| {
        let all = all
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        all.collect::<BTreeMap<_, _>>()
    };
    let rested = web(&rests);
    let rested = resting(&rested).next().unwrap();
    assert!(rested.selects(&labels(&[("app", "web"), ("part", "a"), ("more", "x")])));
    assert!(!rested.selects(&labels(&[("app", "web")])));
    let going = Pods { there: 1, ..rests };
    let (how, said) = down(&web(&going));
    assert_eq!(how, Seen::Bad(Failure::Generic));
    assert_eq!(said, "deployment web: 1 there, 0 wanted");
    assert_eq!(down(&web(&GOOD)).0, Seen::Bad(Failure::Generic));
    assert_eq!(down(&[]).0, Seen::Good);
    let mut archived = object("Deployment", "shop:v7", &Pods { there: 0, ..going });
    archived["metadata"]["annotations"][REPLICAS] = json!("2");
    let (how, said) = seen(&[archived], "v7");
    assert_eq!(how, Seen::Bad(Failure::Generic));
    assert_eq!(said, "deployment web: is archived");
}

#[test]
fn others_are_not_of_the_release() {
    let mut other = object("Deployment", "shop:v7", &GOOD);
    other["metadata"]["annotations"][RELEASE] = json!("apple");
    let mut nobody = object("Deployment", "shop:v7", &GOOD);
    nobody["metadata"] = json!({"name": "alone"});
    assert_eq!(read(&[other, nobody]), []);
    assert!(workloads(b"{}").is_err());
}

fn ingress(release: &str, spec: &Value) -> Value {
    let metadata = json!({"name": "web", "annotations": {RELEASE: release}});
    json!({"kind": "Ingress", "metadata": metadata, "spec": spec})
}

#[test]
fn links_are_the_hosts_of_ingresses() {
    let paths = |paths: &[&str]| {
        let paths: Vec<_> = paths.iter().map(|path| json!({"path": path})).collect();
        json!({"paths": paths})
    };
    let spec = json!({
        "rules": [
            {"host": "orange.example", "http": paths(&["/api", "/"])},
            {"host": "orange.example", "http": paths(&["/"])},
            {"host": "api.example", "http": paths(&["/(.*)", "/v1"])},
            {"host": "*.example"},
            {"http": paths(&["/"])},
        ],
        "tls": [{"hosts": ["orange.example"]}],
    });
    let other = json!({"rules": [{"host": "other.example"}]});
    let list = json!({"items": [ingress("orange", &spec), ingress("apple", &other)]});
    let links = links(list.to_string().as_bytes(), "orange").unwrap();
    let links = links
        .iter()
        .map(|link| (link.name.as_str(), link.url.as_str()));
    assert_eq!(
        links.collect::<Vec<_>>(),
        [
            ("web", "https://orange.example"),
            ("web", "http://api.example/v1"),
        ]
    );
}
