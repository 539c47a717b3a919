//! A pool becomes another kind of machine while somebody uses it; a kind that cannot be made is taken
//! back, and a corrected one takes over.

use crate::asking::{Asking, asked};
use crate::shape::{NAME, Shape, WEB};
use crate::site::{Site, VERSION, foreseen};
use crate::whole::{WHOLE, made};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Compute machines stand elsewhere from now on, one at a time.
const MOVED: &str = "compute, providerSpec: {name: here, region: local, zone: b}, replace: true";

/// How they were declared first.
const STOOD: &str = "compute, providerSpec: {name: here, region: local}";

/// How long a pool may take.
const PATIENCE: Duration = Duration::from_mins(20);

fn text(edits: &[(&str, &str)]) -> String {
    let mut text = Shape::manifest(WHOLE);
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}

/// The compute machines: what each is called that nobody else ever is, and its name, which the next
/// one may get.
fn compute(site: &mut Site) -> Vec<(String, String)> {
    let mut machines = site.machines();
    machines.retain(|machine| machine["role"] == "compute");
    let text = |machine: &Value, of: &str| machine[of].as_str().unwrap().to_owned();
    let both = |machine: &Value| (text(machine, "id"), text(machine, "name"));
    machines.iter().map(both).collect()
}

/// Waits until something is told of the cluster. New compute machines get what pods are made of on
/// the way, as they would from a registry.
fn until_told(site: &mut Site, brought: &mut BTreeSet<String>, told: impl Fn(&mut Site) -> bool) {
    let began = Instant::now();
    while !told(site) {
        assert!(began.elapsed() < PATIENCE, "never happens");
        for (id, name) in compute(site) {
            if !brought.contains(&id) && site.bring_echo_to(&name) {
                brought.insert(id);
            }
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// The names of compute machines that stand elsewhere and are nodes.
fn moved(site: &mut Site, before: &[String]) -> usize {
    let mut names = site.names("compute");
    names.retain(|name| !before.contains(name));
    let mut ready = |name: &String| {
        let node = site.kubectl(&["get", "node", name, "--no-headers"], "");
        node.is_ok_and(|line| line.split_whitespace().nth(1) == Some("Ready"))
    };
    names.iter().filter(|name| ready(name)).count()
}

#[test]
fn a_kind_that_fails_is_taken_back_and_a_corrected_one_takes_over_while_pods_answer() {
    let test =
        "roll::a_kind_that_fails_is_taken_back_and_a_corrected_one_takes_over_while_pods_answer";
    foreseen(test, &[VERSION], |site| {
        let door = made(site);
        let before = site.names("compute");
        let mut brought: BTreeSet<String> = compute(site).into_iter().map(|(id, _)| id).collect();
        let at = door.clone();
        let pods = Asking::begin("pods", move || asked(&at, WEB));
        let good = text(&[(STOOD, MOVED)]);
        site.step("the first machine of the new kind serves", |site| {
            site.declare_text(&good, &[]);
            until_told(site, &mut brought, |site| moved(site, &before) == 1);
        });
        site.step("a kind that cannot be made is taken back", |site| {
            let typo = good.replacen("zone: b}, replace: true", "zone: c}, replace: true", 1);
            let at = typo.find("zone: c").unwrap();
            let (head, tail) = typo.split_at(at);
            let typo = format!("{head}{}", tail.replacen("debian-12", "debian-21", 1));
            site.declare_text(&typo, &[]);
            until_told(site, &mut brought, |site| {
                let why = site.client(&["why", "cluster", NAME]);
                why.contains("taken back") && why.contains("(HOST-036)")
            });
            let nodes = site.kubectl(&["get", "nodes", "--no-headers"], "").unwrap();
            let serve = |line: &&str| line.contains("compute") && line.contains(" Ready ");
            assert!(nodes.lines().filter(serve).count() >= 2, "{nodes}");
        });
        site.step("the corrected kind takes over", |site| {
            site.declare_text(&good, &[]);
            until_told(site, &mut brought, |site| {
                let cluster = site.told(&["get", "clusters"]).remove(0);
                let done = cluster["state"] == "done";
                done && moved(site, &before) == 2
            });
            assert_eq!(site.names("compute").len(), 2);
            site.rolled_out();
        });
        let pods = pods.end();
        site.figure(&format!("pods {pods}"));
        assert!(pods.failures.is_empty(), "{pods}");
        site.step("delete", |site| site.delete());
    });
}
