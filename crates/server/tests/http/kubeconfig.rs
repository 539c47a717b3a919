//! Kubeconfigs: who gets one, and where it asks.

use axum::http::{Method, StatusCode};
use expect_test::expect;
use model::access::Role;
use model::observed::{Fact, MachineFact, Observation};
use model::sealed::{Owner, Place};
use model::secret::{EntryName, Secret};
use model::task::Action;
use serde_json::Value;
use store::{Claim, Ended, Page, SealedRow};

use crate::world::{PROJECT, World, request};

/// What kubeadm would have written, as far as it matters here.
const KUBECONFIG: &str = "apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0t
    server: https://api.first.slipway.internal:6443
  name: first
kind: Config
";

/// What a task that starts a control plane leaves behind.
async fn sealed(world: &World, claim: &Claim, text: &str) -> SealedRow {
    let place = Place {
        project: "default".parse().unwrap(),
        owner: Owner::Cluster(claim.task.cluster),
        entry: EntryName::kubeconfig(),
    };
    let value = Secret::from_text(text.to_owned());
    let sealed = world.server.vault.seal(&place, &value).await.unwrap();
    SealedRow { place, sealed }
}

/// A world whose control plane was started, and left this.
async fn started(text: &str) -> World {
    let world = World::with_hello().await;
    loop {
        world.plan().await;
        let claims = world.claim(100).await;
        assert!(!claims.is_empty(), "the control plane is never started");
        for claim in claims {
            if matches!(claim.task.action, Action::Init { .. }) {
                let output = sealed(&world, &claim, text).await;
                world.end_with(claim, Ended::Done, vec![output]).await;
                return world;
            }
            world.end(claim, Ended::Done).await;
        }
    }
}

#[tokio::test]
async fn a_kubeconfig_asks_where_the_api_is_now_and_expects_its_name() {
    let world = started(KUBECONFIG).await;
    let given = world.get("/clusters/first/kubeconfig").await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    assert_eq!(given.header("content-type"), "application/yaml");
    assert_eq!(given.header("cache-control"), "no-store");
    expect![[r"
        apiVersion: v1
        clusters:
        - cluster:
            certificate-authority-data: LS0t
            server: https://10.8.0.1:6443
            tls-server-name: api.first.slipway.internal
          name: first
        kind: Config
    "]]
    .assert_eq(&given.text);
}

#[tokio::test]
async fn who_takes_a_kubeconfig_is_written_down_and_who_asks_for_its_head_takes_none() {
    let world = started(KUBECONFIG).await;
    let path = format!("{PROJECT}/clusters/first/kubeconfig");
    let taken = async || {
        let page = Page {
            limit: 100,
            after: None,
        };
        let entries = world.store.audit(None, page).await.unwrap().items;
        let opened = entries.iter().filter(|entry| entry.action == "secret.open");
        opened.map(|entry| entry.detail.clone()).collect::<Vec<_>>()
    };
    let head = world.send(request(Method::HEAD, &path)).await;
    assert_eq!((head.status, head.text.as_str()), (StatusCode::OK, ""));
    assert_eq!(taken().await, [""; 0]);
    let token = world.give("ann", Role::User, None).await;
    let refused = world.ask(&token, Method::GET, &path, Value::Null).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(taken().await, [""; 0]);
    world.get("/clusters/first/kubeconfig").await;
    assert_eq!(taken().await, ["kubeconfig"]);
}

#[tokio::test]
async fn a_simulated_cluster_keeps_what_it_has() {
    let text = KUBECONFIG.replace("api.first.slipway.internal", "10.8.0.1");
    let world = started(&text).await;
    let given = world.get("/clusters/first/kubeconfig").await;
    assert_eq!(given.text, text);
}

#[tokio::test]
async fn without_a_control_plane_or_an_address_there_is_none() {
    let world = World::with_hello().await;
    let mut picture = world.get("/clusters/first/kubeconfig").await.picture();
    let world = started(KUBECONFIG).await;
    let live = world.store.live_clusters().await.unwrap();
    let seen = world.store.cluster_view(live[0].id).await.unwrap().unwrap();
    let lost = MachineFact::Unreachable {
        reference: "vm-first-brain-01".to_owned(),
        because: None,
    };
    let lost = Observation {
        cluster: live[0].id,
        fact: Fact::Machine(seen.desired.machines[0].id, lost),
        at: world.now(),
    };
    let observed = world.store.observe(live[0].id, vec![lost], world.now());
    assert!(observed.await.unwrap());
    picture += &world.get("/clusters/first/kubeconfig").await.picture();
    expect![[r#"
        409 API-016: cluster `first` has no kubeconfig: its control plane was not started yet
          hint: wait until a control node is ready; `slipway why cluster first` says what that waits for
        409 API-017: api.first.slipway.internal leads to first-brain-01, which was not seen to run: its address is not known
          hint: wait until it runs; `slipway describe machine first-brain-01` says how it was last seen
    "#]]
    .assert_eq(&picture);
}
