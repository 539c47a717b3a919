//! Servers that share their database have no sandbox: each would take the others' machines for gone.

use crate::scene::Scene;
use crate::stage::machine;
use driver::Outcome;
use hosts::hands::Opened;
use hosts::sandbox::Level;
use hosts::{Hosts, Parts};
use model::cluster::Role;
use model::id::{self, ClusterId};
use model::task::Action;
use std::sync::Arc;

/// A driver that has no sandbox of its own, and a machine of one.
fn stage() -> (Arc<Scene>, model::cluster::Machine) {
    let cluster = ClusterId::derive(id::Origin {
        parent: "lab",
        name: "shared",
        ordinal: 0,
        incarnation: 0,
    });
    let hosts = Hosts::new(Parts {
        sandbox: Opened::refused(),
        cache: std::env::temp_dir().join("slipway-never-made"),
        sources: Vec::new(),
        playbooks: false,
    });
    let scene = Arc::new(Scene::new(hosts, cluster, Vec::new()));
    let machine = machine(cluster, "one", Role::Compute, 1, Level::Lite);
    (scene, machine)
}

#[tokio::test]
async fn without_a_sandbox_of_its_own_no_machine_is_made_or_said_to_be_gone() {
    let (scene, machine) = stage();
    scene.act(&machine, Action::Key).await;
    let made = scene.task(&machine, Action::Create);
    let outcome = scene.apply(&scene.attempt(), &made).await;
    let Outcome::Stuck(error) = outcome else {
        panic!("it was made: {outcome:?}");
    };
    assert!(error.attempted.ends_with("(SANDBOX-008)"), "{error:?}");
    assert_eq!(scene.look(std::slice::from_ref(&machine)).await, []);
}

#[tokio::test]
async fn a_machine_that_was_never_made_is_deleted_and_one_that_was_made_elsewhere_is_not() {
    let (scene, machine) = stage();
    let delete = scene.task(&machine, Action::Delete);
    scene.done(&delete).await;
    scene.ring.keep_host_key(&machine);
    let outcome = scene.apply(&scene.attempt(), &delete).await;
    let Outcome::Stuck(error) = outcome else {
        panic!("it was said to be gone: {outcome:?}");
    };
    assert!(error.attempted.ends_with("(SANDBOX-008)"), "{error:?}");
}
