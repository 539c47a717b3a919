//! One real host without package sources, and a driver whose mirrors a test chooses.

use crate::apart::Lab;
use crate::scene::{Attempt, Scene};
use crate::stage::{given_at, machine};
use driver::Outcome;
use hosts::artifacts::Source;
use hosts::sandbox::{Ending, Level, Made, Sandbox};
use hosts::{Hosts, Parts};
use model::cluster::{Machine, Role};
use model::host::{Purpose, Recipe};
use model::id::{self, ClusterId};
use model::task::Action;
use std::sync::Arc;
use std::time::Duration;

/// What the rest of the world would be for packages, taken away; and two packages that every host
/// of the sandbox has.
const BARE: &str = "rm -rf /etc/apt/sources.list.d /var/lib/apt/lists; : >/etc/apt/sources.list; \
    dpkg --force-remove-reinstreq --purge wireguard-go wireguard-tools >/dev/null 2>&1; \
    rm -rf /var/lib/slipway/debs; ! command -v wg";

/// The packages of the host: how many, and how ours are.
const PACKAGES: &str = "dpkg --audit; dpkg-query -W | wc -l; \
    dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' 'wireguard*' 2>/dev/null; true";

/// What else an outsider sees: what we remember, and what we left.
const LEFT: &str = "cat /var/lib/slipway/packages /etc/slipway/prepared; \
    ls /var/lib/slipway /var/cache/apt/archives/*.deb 2>/dev/null; true";

/// A host that was there before.
pub(crate) struct Host {
    pub(crate) sandbox: Sandbox,
    lab: Lab,
    made: Made,
    machine: Machine,
    scene: Arc<Scene>,
}

impl Host {
    pub(crate) const ID: &'static str = "bare";

    /// Makes it and takes it into use.
    pub(crate) async fn new(lab: Lab) -> Self {
        let sandbox = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
        let order = lab.order(Self::ID, Level::Lite);
        let made = sandbox.create(&order).await.unwrap();
        let mut machine = machine(cluster(), Self::ID, Role::Compute, 1, Level::Lite);
        machine.origin = given_at(made.address);
        let host = Self {
            machine,
            scene: scene(&sandbox, &lab, Vec::new()),
            lab,
            made,
            sandbox,
        };
        host.scene.act(&host.machine, Action::Prepare).await;
        host.on_host(BARE);
        host
    }

    /// Another driver, with these mirrors and an empty cache.
    pub(crate) fn mirrors(&mut self, mirrors: Vec<Source>) {
        drop(std::fs::remove_dir_all(self.lab.dir.join("cache")));
        self.scene = scene(&self.sandbox, &self.lab, mirrors);
    }

    /// Takes away what was installed of it.
    pub(crate) fn strip(&self) {
        self.on_host(BARE);
    }

    async fn attempted(&self, attempt: &Attempt) -> Outcome {
        let recipe = Recipe {
            purpose: Purpose::Node,
            proxy: None,
            playbooks: Vec::new(),
        };
        let task = self.scene.task(&self.machine, Action::Equip { recipe });
        self.scene.apply(attempt, &task).await
    }

    /// Equips it; how that ended, and what was logged.
    pub(crate) async fn equip(&self) -> (String, String) {
        let attempt = self.scene.attempt();
        let ended = told(self.attempted(&attempt).await);
        (ended, attempt.log().join("\n"))
    }

    /// Begins to equip it, and drops the attempt when the log has such a line. Whether it had.
    pub(crate) async fn equip_until(&self, part: &str) -> bool {
        let attempt = self.scene.attempt();
        let said = || attempt.log().iter().any(|line| line.contains(part));
        let seen = async {
            while !said() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            biased;
            () = seen => true,
            _ = self.attempted(&attempt) => said(),
        }
    }

    /// What a person sees on the host.
    pub(crate) fn on_host(&self, command: &str) -> String {
        let shown = self.lab.ssh(&self.made, command);
        shown.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    pub(crate) fn packages(&self) -> String {
        self.on_host(PACKAGES)
    }

    pub(crate) fn picture(&self) -> String {
        self.packages() + "\n" + &self.on_host(LEFT)
    }
}

fn scene(sandbox: &Sandbox, lab: &Lab, sources: Vec<Source>) -> Arc<Scene> {
    let hosts = Hosts::new(Parts {
        sandbox: sandbox.clone().into(),
        cache: lab.dir.join("cache"),
        sources,
        playbooks: false,
    });
    let key = std::fs::read(lab.dir.join("key")).unwrap();
    Arc::new(Scene::new(hosts, cluster(), key))
}

fn told(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done(..) => "done".to_owned(),
        Outcome::Retry(error) => format!("retry {}; {}", error.attempted, error.hint),
        Outcome::Stuck(error) => format!("stuck {}; {}", error.attempted, error.hint),
    }
}

fn cluster() -> ClusterId {
    ClusterId::derive(id::Origin {
        parent: "lab",
        name: "edge",
        ordinal: 1,
        incarnation: 0,
    })
}
