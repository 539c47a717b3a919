//! Hosts that keep a probe waiting, beside others that do not.

use super::*;
use crate::hands::Parts;
use crate::ssh::{self, Connections, Limits};
use driver::{Clock, Keeping, Log, Open, Opening};
use model::cluster::{Origin, Role};
use model::id::{self, MachineId};
use model::observed::Observation;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::time::Timestamp;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

struct Unread;

impl Log for Unread {
    fn line(&self, _: Timestamp, _: &str) {}
}

/// Every machine was entered once and had this host key.
struct Pinned(String);

impl Open for Pinned {
    fn open<'a>(&'a self, _: &'a SecretRef) -> Opening<'a> {
        Box::pin(std::future::ready(Ok(Secret::from_text(String::new()))))
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        let key = Secret::from_text(self.0.clone());
        Box::pin(std::future::ready(Ok(Some(key))))
    }
}

fn machine(ordinal: u32, port: u16) -> Machine {
    let origin = id::Origin {
        parent: "edge",
        name: "rack",
        ordinal: ordinal.into(),
        incarnation: 0,
    };
    Machine {
        id: MachineId::derive(origin),
        name: format!("edge-rack-{ordinal}").parse().unwrap(),
        pool: "rack".parse().unwrap(),
        role: Role::Compute,
        ordinal,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, 1),
        balancer: None,
        origin: Origin::Given {
            endpoint: Ipv4Addr::LOCALHOST,
            ssh_port: port,
            username: "root".to_owned(),
            secret: None,
            jump: None,
        },
    }
}

/// Is connected to by the kernel, and says nothing.
async fn mute() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn look_at(ports: &[u16], at_once: usize, patience: Duration) -> Vec<Observation> {
    let dir = tempfile::tempdir().unwrap();
    let mut hosts = Hosts::new(Parts {
        #[cfg(feature = "sandbox")]
        sandbox: crate::sandbox::Settings {
            dir: dir.path().join("sandbox"),
            rootfs: None,
            cache: None,
            subnet: "10.77.0.0/24".parse().unwrap(),
            ending: crate::sandbox::Ending::WithUs,
        }
        .into(),
        cache: dir.path().join("cache"),
        sources: Vec::new(),
        playbooks: false,
    });
    Arc::get_mut(&mut hosts.inner).unwrap().connections = Connections::new(Limits {
        at_once,
        ..Limits::default()
    });
    let (_, public) = ssh::new_key("host").unwrap();
    let cx = Context::new(
        Clock::System,
        Arc::new(Unread),
        Arc::new(Pinned(public)),
        CancellationToken::new(),
        1,
    );
    let target = Target {
        cluster: ClusterId::derive(id::Origin {
            parent: "lab",
            name: "edge",
            ordinal: 1,
            incarnation: 0,
        }),
        machines: (1..).zip(ports).map(|(n, at)| machine(n, *at)).collect(),
        whole: true,
    };
    let began = Instant::now();
    let seen = hosts.looked_at(&cx, &target, patience).await;
    let took = began.elapsed();
    assert!(took < patience + Duration::from_secs(4), "{took:?}");
    seen
}

fn unreachable_at(ordinal: u32) -> Fact {
    unreachable(&machine(ordinal, 1), None)
}

#[tokio::test]
async fn a_host_that_hangs_is_unreachable_and_hides_no_other() {
    let (_held, silent) = mute().await;
    let (listener, refusing) = mute().await;
    drop(listener);
    let ports = [silent, refusing];
    let seen = look_at(&ports, 64, Duration::from_millis(500)).await;
    let mut facts: Vec<_> = seen.into_iter().map(|seen| seen.fact).collect();
    // The one that answered at once was seen first.
    assert_eq!(facts.remove(0), unreachable_at(2));
    assert_eq!(facts, [unreachable_at(1)]);
}

#[tokio::test]
async fn a_host_that_had_no_turn_is_not_blamed() {
    let (_one, first) = mute().await;
    let (_two, second) = mute().await;
    let seen = look_at(&[first, second], 1, Duration::from_millis(500)).await;
    assert_eq!(seen.len(), 1, "nobody knows of the other: {seen:?}");
}

#[test]
fn only_what_is_the_fault_of_a_host_is_said_of_it() {
    for theirs in [Kind::NoSudo, Kind::Garbage, Kind::MissingTool, Kind::Silent] {
        assert!(out_of_reach(theirs), "{theirs:?}");
    }
    for ours in [Kind::OurSide, Kind::NoKey, Kind::KeyAway, Kind::BadKey] {
        assert!(!out_of_reach(ours), "{ours:?}");
    }
}
