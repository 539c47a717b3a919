//! The way in: who is let in, who is not, and what is said when nobody answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::api::{Door, Health, Limits};
use kube::error::{Error, Kind};
use lab::control_plane::{ControlPlane, Papers};
use model::secret::Secret;
use tokio::net::TcpListener;

use crate::world::{self, dial, door_of, ready};

const LIMIT: Duration = Duration::from_secs(20);

/// Asks with a kubeconfig at a port.
async fn ask(kubeconfig: String, port: u16, limits: Limits) -> Result<Health, Error> {
    let door = Door::open(&Secret::from_text(kubeconfig), dial(port), limits).await?;
    door.health(LIMIT).await
}

#[tokio::test]
async fn a_ready_server_says_so_and_which_it_is() {
    let Some(door) = ready("a_ready_server_says_so_and_which_it_is").await else {
        return;
    };
    assert_eq!(door.health(LIMIT).await, Ok(Health::Ready));
    assert!(door.version().await.unwrap().starts_with("v1."));
}

#[tokio::test]
async fn a_server_without_its_etcd_names_the_check_that_fails() {
    let test = "a_server_without_its_etcd_names_the_check_that_fails";
    let Some(programs) = lab::control_plane::programs() else {
        lab::skip(test, "the programs of a control plane are not in the cache");
        return;
    };
    let mut plane = ControlPlane::start(&programs, &[]).unwrap();
    let door = world::door(&plane).await;
    plane.kill("etcd").unwrap();
    world::until("etcd is missed", async || {
        matches!(door.health(LIMIT).await, Ok(Health::Failing(checks)) if checks.contains(&"etcd".to_owned()))
    })
    .await;
    plane.kill("kube-apiserver").unwrap();
    assert_eq!(
        door.health(LIMIT).await.unwrap_err().kind,
        Kind::Unreachable
    );
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let test = "a_certificate_of_another_authority_is_refused";
    let Some(plane) = lab::control_plane::shared_or_skip(test) else {
        return;
    };
    // Ours is not known there.
    let stranger = Papers::new().unwrap();
    let paper = stranger.client("admin", &["system:masters"]).unwrap();
    let config = plane.papers().kubeconfig("https://127.0.0.1:1", &paper);
    let door = door_of(plane, config).await;
    assert_eq!(door.nodes().await.unwrap_err().kind, Kind::Credentials);
    // Theirs is not known to us.
    let paper = plane.papers().client("admin", &["system:masters"]).unwrap();
    let config = stranger.kubeconfig("https://127.0.0.1:1", &paper);
    let error = ask(config, plane.port(), Limits::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::WrongServer, "{error}");
    // Known, and without any right.
    let door = door_of(plane, plane.kubeconfig_of("nobody", &[]).unwrap()).await;
    assert_eq!(door.nodes().await.unwrap_err().kind, Kind::Forbidden);
}

#[tokio::test]
async fn nobody_and_silence_are_unreachable() {
    let papers = Papers::new().unwrap();
    let paper = papers.client("admin", &[]).unwrap();
    let config = || papers.kubeconfig("https://127.0.0.1:1", &paper);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // It listens, and says nothing.
    let hasty = Limits {
        connect: Duration::from_millis(200),
        answer: Duration::from_mins(10),
    };
    let error = ask(config(), port, hasty).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unreachable, "{error}");
    let hasty = Limits {
        connect: Duration::from_mins(10),
        answer: Duration::from_millis(200),
    };
    let error = ask(config(), port, hasty).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unreachable, "{error}");
    drop(listener);
    let error = ask(config(), port, Limits::default()).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unreachable, "{error}");
}

#[tokio::test]
async fn streams_are_used_again() {
    let Some(plane) = lab::control_plane::shared_or_skip("streams_are_used_again") else {
        return;
    };
    world::door(plane).await;
    let dialled = Arc::new(AtomicUsize::new(0));
    let (count, to) = (dialled.clone(), dial(plane.port()));
    let config = Secret::from_text(plane.kubeconfig().unwrap());
    let counting = move || {
        count.fetch_add(1, Ordering::Relaxed);
        to()
    };
    let door = Door::open(&config, counting, Limits::default())
        .await
        .unwrap();
    for _ in 0..5 {
        door.version().await.unwrap();
    }
    assert_eq!(dialled.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_kubeconfig_runs_nothing_and_reads_nothing() {
    let papers = Papers::new().unwrap();
    let paper = papers.client("hidden-name", &[]).unwrap();
    let fine = papers.kubeconfig("https://127.0.0.1:1", &paper);
    let user = "  user:\n";
    let cluster = "  cluster:\n";
    let with = |after: &str, line: &str| fine.replace(after, &format!("{after}    {line}\n"));
    let wrong = [
        "no: kubeconfig".to_owned(),
        ": : :".to_owned(),
        String::new(),
        with(
            user,
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/tmp/ran]}",
        ),
        with(user, "auth-provider: {name: gcp}"),
        with(user, "tokenFile: /etc/hostname"),
        with(user, "client-key: /etc/hostname"),
        with(user, "as: somebody"),
        with(cluster, "certificate-authority: /etc/hostname"),
        with(cluster, "insecure-skip-tls-verify: true"),
        with(cluster, "proxy-url: http://127.0.0.1:1"),
        fine.replace("client-key-data: ", "client-key-data: AAAA"),
        fine.replace("current-context: lab", "current-context: other"),
    ];
    for config in wrong {
        let secret = Secret::from_text(config.clone());
        let opened = Door::open(&secret, dial(1), Limits::default()).await;
        let error = opened.err().unwrap_or_else(|| panic!("{config}"));
        assert_eq!(error.kind, Kind::BadKubeconfig, "{config}");
        assert!(!error.to_string().contains("LS0t"), "{error}");
    }
    assert!(
        Door::open(&Secret::from_text(fine), dial(1), Limits::default())
            .await
            .is_ok()
    );
}
