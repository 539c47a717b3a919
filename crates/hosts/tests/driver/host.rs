//! One real host without package sources, and a driver whose mirrors a test chooses.

use crate::apart::Lab;
use driver::{Clock, Context, Driver as _, Keeping, Log, Open, Opening, Outcome};
use hosts::artifacts::Source;
use hosts::sandbox::{Ending, Level, Made, Sandbox};
use hosts::{Hosts, Parts};
use model::cluster::{Generation, Machine, Origin, Role};
use model::host::{Purpose, Recipe};
use model::id::{self, ClusterId, MachineId, TaskId};
use model::name::Name;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::task::{Action, Task};
use model::time::Timestamp;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

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
    hosts: Hosts,
    lines: Arc<Lines>,
}

/// The log of attempts, and a line at which something shall happen.
#[derive(Default)]
struct Lines(Mutex<(Vec<String>, Option<(String, CancellationToken)>)>);

impl Log for Lines {
    fn line(&self, _: Timestamp, text: &str) {
        let (lines, watched) = &mut *self.0.lock().unwrap();
        lines.push(text.to_owned());
        if let Some((part, seen)) = watched
            && text.contains(part.as_str())
        {
            seen.cancel();
        }
    }
}

struct Keyring(Vec<u8>);

impl Open for Keyring {
    fn open<'a>(&'a self, _: &'a SecretRef) -> Opening<'a> {
        Box::pin(std::future::ready(Ok(Secret::from(self.0.clone()))))
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

impl Host {
    pub(crate) const ID: &'static str = "bare";

    /// Makes it and takes it into use.
    pub(crate) async fn new(lab: Lab) -> Self {
        let sandbox = Sandbox::open(lab.settings(Ending::WithUs)).await.unwrap();
        let order = lab.order(Self::ID, Level::Lite);
        let made = sandbox.create(&order).await.unwrap();
        let mut host = Self {
            machine: machine(made.address),
            hosts: driver(&sandbox, &lab, Vec::new()),
            lab,
            made,
            sandbox,
            lines: Arc::default(),
        };
        host.mirrors(Vec::new());
        assert_eq!(told(host.act(Action::Prepare).await), "done");
        host.on_host(BARE);
        host
    }

    /// Another driver, with these mirrors and an empty cache.
    pub(crate) fn mirrors(&mut self, mirrors: Vec<Source>) {
        drop(std::fs::remove_dir_all(self.lab.dir.join("cache")));
        self.hosts = driver(&self.sandbox, &self.lab, mirrors);
    }

    /// Takes away what was installed of it.
    pub(crate) fn strip(&self) {
        self.on_host(BARE);
    }

    async fn act(&self, action: Action) -> Outcome {
        let key = std::fs::read(self.lab.dir.join("key")).unwrap();
        let (log, keyring) = (self.lines.clone(), Arc::new(Keyring(key)));
        let cancel = CancellationToken::new();
        let cx = Context::new(Clock::System, log, keyring, cancel, 1);
        let task = Task {
            id: TaskId::derive(origin("task")),
            project: Name::default_project(),
            cluster: ClusterId::derive(origin("edge")),
            cluster_name: "edge".parse().unwrap(),
            generation: Generation(1),
            machine: self.machine.clone(),
            action,
        };
        self.hosts.apply(&cx, &task).await
    }

    /// Equips it; how that ended, and what was logged.
    pub(crate) async fn equip(&self) -> (String, String) {
        let recipe = Recipe {
            purpose: Purpose::Node,
            proxy: None,
            playbooks: Vec::new(),
        };
        let ended = told(self.act(Action::Equip { recipe }).await);
        (ended, self.log())
    }

    /// Begins to equip it, and drops the attempt when the log has such a line. Whether it had.
    pub(crate) async fn equip_until(&self, part: &str) -> bool {
        let seen = CancellationToken::new();
        self.lines.0.lock().unwrap().1 = Some((part.to_owned(), seen.clone()));
        let met = tokio::select! {
            biased;
            () = seen.cancelled() => true,
            _ = self.equip() => false,
        };
        self.lines.0.lock().unwrap().1 = None;
        self.log();
        met
    }

    fn log(&self) -> String {
        let lines: Vec<String> = self.lines.0.lock().unwrap().0.drain(..).collect();
        lines.join("\n")
    }

    /// What a person sees on the host.
    pub(crate) fn on_host(&self, command: &str) -> String {
        let shown = self.lab.ssh(&self.made, command);
        shown.unwrap_or_else(|error| panic!("{command}: {error}\n{}", self.log()))
    }

    pub(crate) fn packages(&self) -> String {
        self.on_host(PACKAGES)
    }

    pub(crate) fn picture(&self) -> String {
        self.packages() + "\n" + &self.on_host(LEFT)
    }
}

fn driver(sandbox: &Sandbox, lab: &Lab, sources: Vec<Source>) -> Hosts {
    Hosts::new(Parts {
        sandbox: sandbox.clone().into(),
        cache: lab.dir.join("cache"),
        sources,
        playbooks: false,
    })
}

fn told(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done(..) => "done".to_owned(),
        Outcome::Retry(error) => format!("retry {}; {}", error.attempted, error.hint),
        Outcome::Stuck(error) => format!("stuck {}; {}", error.attempted, error.hint),
    }
}

fn origin(name: &str) -> id::Origin<'_> {
    id::Origin {
        parent: "lab",
        name,
        ordinal: 1,
        incarnation: 0,
    }
}

fn machine(endpoint: Ipv4Addr) -> Machine {
    Machine {
        id: MachineId::derive(origin("bare")),
        name: "edge-bare-01".parse().unwrap(),
        pool: "bare".parse().unwrap(),
        role: Role::Compute,
        ordinal: 1,
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, 1),
        balancer: None,
        origin: Origin::Given {
            endpoint,
            ssh_port: 22,
            username: "root".to_owned(),
            secret: Some(SecretRef {
                name: "keys".parse().unwrap(),
                key: None,
            }),
            jump: None,
        },
    }
}
