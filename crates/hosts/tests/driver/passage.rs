//! The driver's way to what listens inside of a machine.

use crate::apart::apart;
use crate::scene::{Inside, Scene};
use crate::stage::machine;
use hosts::error::Kind;
use hosts::sandbox::{Ending, Level, Sandbox};
use hosts::{Hosts, Parts};
use model::cluster::Role;
use model::id::{self, ClusterId};
use model::task::Action;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Answers one request after the other, to those on the host alone.
const ANSWER: &str = "mkdir -p /srv/answer; echo from within >/srv/answer/index.html; cd /srv/answer; \
    setsid python3 -m http.server 8081 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null & \
    until curl -s -o /dev/null http://127.0.0.1:8081/; do sleep 0.05; done";

#[test]
fn what_listens_inside_of_a_machine_is_reached() {
    let name = "passage::what_listens_inside_of_a_machine_is_reached";
    apart(name, Level::Lite, async |lab| {
        let sandbox = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
        let cluster = ClusterId::derive(id::Origin {
            parent: "lab",
            name: "within",
            ordinal: 1,
            incarnation: 0,
        });
        let hosts = Hosts::new(Parts {
            sandbox: sandbox.clone().into(),
            cache: lab.dir.join("cache"),
            sources: Vec::new(),
            playbooks: false,
        });
        let scene = Arc::new(Scene::new(hosts, cluster, Vec::new()));
        let machine = machine(cluster, "one", Role::Control, 1, Level::Lite);
        scene.act(&machine, Action::Key).await;
        scene.act(&machine, Action::Create).await;
        let attempt = scene.attempt();
        let passages = scene
            .hosts
            .passages(attempt.context(), cluster, &machine, 8081);
        let error = passages.open().await.err().unwrap();
        assert_eq!(error.kind, Kind::NobodyListens, "{error}");
        let seen = sandbox.find(&machine.id.to_string()).await.unwrap();
        Inside::at(seen.address).sh(ANSWER);
        for _ in 0..3 {
            let mut stream = passages.clone().open().await.unwrap();
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("\r\n\r\nfrom within\n"), "{answer}");
        }
        sandbox.clear().await.unwrap();
    });
}
