//! A cluster gets the next Kubernetes while somebody uses it all the time.

use crate::asking::{Asking, api, asked};
use crate::shape::{API, Shape, WEB};
use crate::site::{NEXT, VERSION, foreseen};
use crate::whole::{WHOLE, made};
use std::time::Duration;

/// How long the API may be silent: a load balancer looks every two seconds whether a target is there.
const SILENCE_MAX: Duration = Duration::from_secs(10);

#[test]
fn while_a_cluster_is_upgraded_pods_and_the_api_answer() {
    let test = "upgrade::while_a_cluster_is_upgraded_pods_and_the_api_answer";
    let next = Shape {
        version: NEXT,
        ..WHOLE
    };
    foreseen(test, &[VERSION, NEXT], |site| {
        let door = made(site);
        let (web, at) = (door.clone(), door);
        let pods = Asking::begin("pods", move || asked(&web, WEB));
        let apis = Asking::begin("the API", move || api(&at, API));
        site.step(&format!("from {VERSION} to {NEXT}"), |site| {
            site.apply(next);
        });
        let (pods, apis) = (pods.end(), apis.end());
        for (who, heard) in [("pods", &pods), ("the API", &apis)] {
            site.figure(&format!("{who} {heard}"));
        }
        assert!(pods.failures.is_empty(), "{pods}");
        assert!(apis.silence < SILENCE_MAX, "{apis}");
        site.step("delete", |site| site.delete());
    });
}
