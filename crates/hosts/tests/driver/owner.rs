//! Whose a given host is: what others have is not touched, and what is not the host we changed is
//! let go.

use crate::apart::apart;
use crate::bad::host_keys;
use crate::scene::{Inside, Scene};
use crate::stage::{given_at, machine};
use driver::Outcome;
use hosts::sandbox::Level;
use hosts::{Hosts, Parts};
use model::cluster::{Machine, Role};
use model::host::{Purpose, Recipe};
use model::id::{self, ClusterId};
use model::task::Action;
use std::sync::Arc;

/// What somebody else has on the host, and how it still looks.
const THEIRS: &str = "mkdir -p /etc/slipway /var/lib/slipway; echo theirs >/var/lib/slipway/note; \
    ip link show wg0 >/dev/null 2>&1 || ip link add wg0 type bridge";
const STILL: &str = "cat /etc/slipway/machine /var/lib/slipway/note; ip -o link show wg0 | wc -l";

/// How an attempt ended, and what it logged.
async fn tried(scene: &Arc<Scene>, machine: &Machine, action: Action) -> (String, String) {
    let attempt = scene.attempt();
    let outcome = scene.apply(&attempt, &scene.task(machine, action)).await;
    let ended = match outcome {
        Outcome::Done(..) => "done".to_owned(),
        Outcome::Retry(error) => format!("retry {}", error.attempted),
        Outcome::Stuck(error) => format!("stuck {}", error.attempted),
    };
    (ended, attempt.log().join("\n"))
}

fn recipe() -> Action {
    Action::Equip {
        recipe: Recipe {
            purpose: Purpose::Node,
            proxy: None,
            playbooks: Vec::new(),
        },
    }
}

#[test]
fn what_others_have_is_not_touched() {
    let name = "owner::what_others_have_is_not_touched";
    apart(name, Level::Lite, async |lab| {
        let sandbox = lab.open().await;
        let made = sandbox.create(&lab.order("one", Level::Lite)).await;
        let made = made.unwrap();
        let cluster = ClusterId::derive(id::Origin {
            parent: "lab",
            name: "edge",
            ordinal: 1,
            incarnation: 0,
        });
        let mut machine = machine(cluster, "one", Role::Compute, 1, Level::Lite);
        machine.origin = given_at(made.address);
        let hosts = Hosts::new(Parts {
            sandbox: sandbox.clone().into(),
            cache: lab.dir.join("cache"),
            sources: Vec::new(),
            playbooks: false,
        });
        let key = std::fs::read(lab.dir.join("key")).unwrap();
        let scene = Arc::new(Scene::new(hosts, cluster, key));
        scene.act(&machine, Action::Key).await;
        let inside = Inside::at(made.address);

        // Another machine's, and one of the same name of another installation's.
        for theirs in [
            "machine-0 0123456789abcdef",
            &format!("{} 0123456789abcdef", machine.id),
        ] {
            inside.sh(&format!("{THEIRS}; echo {theirs} >/etc/slipway/machine"));
            let before = inside.sh(STILL);
            for action in [Action::Prepare, recipe()] {
                let (ended, log) = tried(&scene, &machine, action).await;
                assert!(ended.starts_with("stuck"), "{ended}: {log}");
                assert!(ended.ends_with("(HOST-023)"), "{ended}");
            }
            let (ended, log) = tried(&scene, &machine, Action::Release).await;
            assert_eq!(ended, "done", "{log}");
            assert!(
                log.contains(&format!("it belongs to {theirs}: it is left as it is")),
                "{log}"
            );
            assert_eq!(inside.sh(STILL), before);
        }
        // One that nobody has is not cleaned either: what is there was never ours.
        inside.sh("rm /etc/slipway/machine");
        let (ended, log) = tried(&scene, &machine, Action::Release).await;
        assert_eq!(ended, "done", "{log}");
        assert_eq!(inside.sh("cat /var/lib/slipway/note"), "theirs");
        inside.sh("ip link del wg0; rm -r /var/lib/slipway");

        // Ours is taken, equipped and cleaned.
        scene.act(&machine, Action::Prepare).await;
        scene.act(&machine, recipe()).await;
        // A mesh that would take the way on which we come is told to nobody.
        let mut task = scene.mesh(std::slice::from_ref(&machine)).await;
        if let Action::Mesh { mesh } = &mut task.action {
            mesh.network = "10.77.0.0/24".parse().unwrap();
        }
        let (ended, log) = tried(&scene, &machine, task.action).await;
        assert!(ended.starts_with("stuck"), "{ended}: {log}");
        assert!(ended.ends_with("(HOST-030)"), "{ended}");
        inside.sh("! ip link show wg0");
        assert_ne!(scene.act(&machine, Action::Release).await, 0);
        inside.sh("! [ -e /etc/slipway ] && ! [ -e /var/lib/slipway ]");

        // One that was installed anew is another host: it is let go, and can come back.
        scene.act(&machine, Action::Prepare).await;
        inside.sh(&host_keys().0);
        let (ended, log) = tried(&scene, &machine, Action::Release).await;
        assert_eq!(ended, "done", "{log}");
        assert!(log.contains("(HOST-004)"), "{log}");
        sandbox.clear().await.unwrap();
    });
}
