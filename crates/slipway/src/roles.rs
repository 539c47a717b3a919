//! The roles of the program put together: what serving and working have in common.

use crate::couriers::Couriers;
use crate::failure::{Failure, failed};
use crate::hands::Hands;
use crate::place::{Database, Place, make_directory};
use anyhow::Context as _;
use driver::Clock;
use engine::{Deliveries, DeliverySettings, Engine, EnvironmentSettings, Environments, Settings};
use hosts::artifacts::Source;
use hosts::{Hosts, Parts};
#[cfg(feature = "sandbox")]
use hosts::{hands::Opened, sandbox};
#[cfg(feature = "sandbox")]
use model::network::Network;
use scripts::helm::{Helm, Programs};
use scripts::{Deployers, Scripts, Surroundings};
use sim::{Pace, World};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{Actor, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use vault::{KeyConfig, KeyFile, KeySource, Vault};

/// The file in the data directory that holds the simulated world.
pub(crate) const WORLD_FILE: &str = "world.jsonl";

/// Options of every role that works.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) database: Database,
    /// The file with the simulated world, where providers of type `simulated` have their machines
    /// [default: world.jsonl in the data directory]
    #[arg(
        long,
        value_name = "FILE",
        env = "SLIPWAY_WORLD",
        hide_env_values = true
    )]
    pub(crate) world: Option<PathBuf>,
    /// The file with the master key that opens sealed secrets; made at the first start
    /// [default: slipway.key in the data directory]
    #[arg(
        long,
        value_name = "FILE",
        env = "SLIPWAY_KEY_FILE",
        hide_env_values = true,
        conflicts_with = "key_command"
    )]
    pub(crate) key_file: Option<PathBuf>,
    /// A program that keeps the master key instead of a file, with its arguments: it is called
    /// with `wrap` or `unwrap` as last argument, reads the data key from standard input and
    /// writes the answer to standard output, both as base64
    #[arg(
        long,
        value_name = "COMMAND",
        env = "SLIPWAY_KEY_COMMAND",
        hide_env_values = true
    )]
    pub(crate) key_command: Option<String>,
    /// Where hosts get what their distribution does not have, and packages for hosts without a
    /// network: a directory or a URL, made with `slipway mirror`; may be given several times, the
    /// first that has something gives it
    #[arg(
        long,
        value_name = "SOURCE",
        env = "SLIPWAY_MIRROR",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub(crate) mirror: Vec<Source>,
    /// Play the playbooks that manifests name, with Ansible, on this machine: whoever may apply a
    /// manifest can then run programs here
    #[arg(long, env = "SLIPWAY_ALLOW_PLAYBOOKS", hide_env_values = true)]
    pub(crate) allow_playbooks: bool,
    /// The program that deploys environments of projects with a chart [default: helm in PATH]
    #[arg(
        long,
        value_name = "PATH",
        env = "SLIPWAY_HELM",
        hide_env_values = true
    )]
    pub(crate) helm: Option<PathBuf>,
    /// The program with which their Kubernetes is asked [default: kubectl in PATH]
    #[arg(
        long,
        value_name = "PATH",
        env = "SLIPWAY_KUBECTL",
        hide_env_values = true
    )]
    pub(crate) kubectl: Option<PathBuf>,
    /// Look at what a task touches before it begins and when it is done, and tell in its log and in
    /// the server's what came out otherwise than plans say; it takes longer
    #[arg(long, env = "SLIPWAY_SECOND_LOOK", hide_env_values = true)]
    pub(crate) second_look: bool,
    /// The addresses of hosts that providers of type `sandbox` make out of this machine
    /// [default: 10.213.0.0/20]
    #[cfg(feature = "sandbox")]
    #[arg(
        long,
        value_name = "NETWORK",
        env = "SLIPWAY_SANDBOX_SUBNET",
        hide_env_values = true
    )]
    pub(crate) sandbox_subnet: Option<Network>,
    /// The root filesystem of these hosts, as an archive or a directory
    /// [default: built once, from this machine's package sources]
    #[cfg(feature = "sandbox")]
    #[arg(
        long,
        value_name = "PATH",
        env = "SLIPWAY_SANDBOX_ROOTFS",
        hide_env_values = true
    )]
    pub(crate) sandbox_rootfs: Option<PathBuf>,
    /// Whether these hosts end with the program, as those of a demo do.
    #[cfg(feature = "sandbox")]
    #[arg(skip)]
    pub(crate) sandbox_ends: bool,
}

/// Where sandbox hosts are unless told otherwise: a part of the private addresses that few use.
#[cfg(feature = "sandbox")]
const SANDBOX_SUBNET: &str = "10.213.0.0/20";

/// The directory in the data directory that holds the sandbox.
#[cfg(feature = "sandbox")]
const SANDBOX: &str = "sandbox";

/// The directory in the data directory that holds what was fetched for hosts.
const ARTIFACTS: &str = "artifacts";

/// Where snapshots of etcd are kept, within the data directory.
const SNAPSHOTS: &str = "snapshots";

/// The directory in the data directory that holds what scripts of environments print, and how they
/// end.
const SCRIPTS: &str = "scripts";

impl Options {
    /// Where the key file is, or would be.
    fn key_path(&self, data_dir: &Path) -> PathBuf {
        self.key_file
            .clone()
            .unwrap_or_else(|| data_dir.join(KeyFile::NAME))
    }

    /// Refuses to go on without the key file of the servers: a worker that came first would
    /// make another one, and no server could open what it seals.
    pub(crate) fn must_have_key(&self, data_dir: &Path) -> anyhow::Result<()> {
        let file = self.key_path(data_dir);
        if self.key_command.is_some() || file.exists() {
            return Ok(());
        }
        Err(Failure {
            what: format!("the master key {} is missing", file.display()),
            code: "SERVE-009",
            hint: "start a server first, which makes it; then copy it here, readable by its owner alone"
                .to_owned(),
        }
        .into())
    }

    /// What environments of projects with a chart are deployed with.
    fn programs(&self) -> Programs {
        Programs {
            helm: self.helm.clone(),
            kubectl: self.kubectl.clone(),
        }
    }

    /// What hosts are worked on with.
    #[cfg_attr(
        not(feature = "sandbox"),
        expect(
            clippy::unnecessary_wraps,
            reason = "the network of a sandbox may be wrong"
        )
    )]
    fn parts(
        &self,
        data_dir: &Path,
        #[cfg_attr(
            not(feature = "sandbox"),
            expect(unused_variables, reason = "who has no sandbox shares none")
        )]
        shared: bool,
    ) -> anyhow::Result<Parts> {
        Ok(Parts {
            // Each server would have a sandbox of its own, and take the others' machines for gone.
            #[cfg(feature = "sandbox")]
            sandbox: if shared {
                Opened::refused()
            } else {
                self.sandbox(data_dir)?.into()
            },
            cache: data_dir.join(ARTIFACTS),
            sources: self.mirror.clone(),
            playbooks: self.allow_playbooks,
        })
    }

    #[cfg(feature = "sandbox")]
    fn sandbox(&self, data_dir: &Path) -> anyhow::Result<sandbox::Settings> {
        let subnet = match self.sandbox_subnet {
            Some(subnet) => subnet,
            None => SANDBOX_SUBNET.parse()?,
        };
        Ok(sandbox::Settings {
            dir: data_dir.join(SANDBOX),
            rootfs: self.sandbox_rootfs.clone(),
            cache: None,
            subnet,
            ending: if self.sandbox_ends {
                sandbox::Ending::WithUs
            } else {
                sandbox::Ending::Stay
            },
        })
    }

    /// Where the master key is. With a command, a key file that is there still opens what it
    /// has wrapped, so that an installation can move from one to the other.
    pub(crate) fn keys(&self, data_dir: &Path) -> KeyConfig {
        let file = KeySource::File(self.key_path(data_dir));
        match &self.key_command {
            Some(line) => KeyConfig {
                current: KeySource::command(line),
                older: vec![file],
            },
            None => KeyConfig::only(file),
        }
    }
}

/// What a process works with.
pub(crate) struct Installation {
    /// Where truth is.
    pub(crate) store: Store,
    /// Where secrets are sealed and opened.
    pub(crate) vault: Vault,
    /// The hands.
    world: World,
    pub(crate) hosts: Hosts,
    /// Those who deploy environments.
    pub(crate) deployers: Arc<Deployers>,
    /// Those who tell somebody outside what becomes of them.
    pub(crate) couriers: Arc<Couriers>,
    snapshots: PathBuf,
    second_look: bool,
    clock: Clock,
}

impl Installation {
    /// Opens everything on a data directory.
    pub(crate) async fn open(data_dir: &Path, options: &Options) -> anyhow::Result<Self> {
        make_directory(data_dir)?;
        let place = Place::of(&options.database, data_dir)?;
        if matches!(place, Place::Directory(_)) {
            miss_database(data_dir)?;
        }
        let store = place.open()?;
        place.must_agree(Clock::System.now(), Settings::default().lease / 3)?;
        let world = options
            .world
            .clone()
            .unwrap_or_else(|| data_dir.join(WORLD_FILE));
        let world = World::open(&world, Pace::Demo, 0).map_err(|error| {
            let what = format!("cannot open the simulated world in {}", world.display());
            let hint = "check that the directory can be written, or move the file away".to_owned();
            failed(what, "SERVE-002", hint, error)
        })?;
        let hosts = Hosts::new(options.parts(data_dir, store.is_shared())?);
        let clock = Clock::System;
        let own = Actor::new(worker(), "start");
        let keys = options.keys(data_dir);
        let vault = vault::open(store.clone(), keys, own, Arc::new(move || clock.now())).await;
        if let Some(error) = vault.closed() {
            tracing::error!(
                error.code = error.code(),
                "secrets stay closed, all else goes on: {error}; {}",
                error.hint()
            );
        }
        let deployers = Arc::new(deployers(&data_dir.join(SCRIPTS), options.programs())?);
        Ok(Self {
            store,
            vault,
            world,
            hosts,
            couriers: Arc::new(Couriers::new(deployers.clone())?),
            deployers,
            snapshots: data_dir.join(SNAPSHOTS),
            second_look: options.second_look,
            clock,
        })
    }

    /// What time it is.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// The hands for Kubernetes on hosts, for whoever works on no task.
    #[cfg(feature = "sandbox")]
    pub(crate) fn kube(&self) -> kube::Kube {
        kube::Kube::new(self.hosts.clone(), &self.snapshots)
    }

    /// The loops of environments, ready to run.
    pub(crate) fn environments(&self) -> Environments<Deployers> {
        let settings = EnvironmentSettings {
            worker: worker(),
            alone: !self.store.is_shared(),
            seed: u64::from(std::process::id()),
            ..EnvironmentSettings::default()
        };
        Environments::new(
            self.store.clone(),
            self.vault.clone(),
            self.deployers.clone(),
            self.clock,
            settings,
        )
    }

    /// The loop of messages to somebody outside, ready to run.
    pub(crate) fn deliveries(&self) -> Deliveries<Couriers> {
        let settings = DeliverySettings {
            worker: worker(),
            alone: !self.store.is_shared(),
            seed: u64::from(std::process::id()),
            ..DeliverySettings::default()
        };
        Deliveries::new(
            self.store.clone(),
            self.vault.clone(),
            self.couriers.clone(),
            self.clock,
            settings,
        )
    }

    /// The engine, ready to run.
    pub(crate) fn engine(&self) -> Engine<Hands> {
        let settings = Settings {
            worker: worker(),
            alone: !self.store.is_shared(),
            second_look: self.second_look,
            seed: u64::from(std::process::id()),
            ..Settings::default()
        };
        let hands = Hands::new(&self.world, self.hosts.clone(), &self.snapshots);
        let hands = Arc::new(hands);
        Engine::new(
            self.store.clone(),
            self.vault.clone(),
            hands,
            self.clock,
            settings,
        )
    }
}

/// Those who deploy environments, by scripts or Helm, which are run by this very program.
fn deployers(home: &Path, programs: Programs) -> anyhow::Result<Deployers> {
    let program = std::env::current_exe().context("could not find this program")?;
    let runner = vec![program.into(), "run-script".into()];
    let surroundings = Surroundings::new(std::env::vars_os());
    let scripts = Scripts::open(home, runner.clone(), surroundings.clone());
    let scripts = scripts.map_err(unkept)?;
    let helm = Helm::open(home, runner, surroundings, programs).map_err(unkept)?;
    Deployers::new(scripts, helm).context("scripts and Helm are kept in two places")
}

fn unkept(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    let hint = "check that the directory can be written".to_owned();
    failed(
        "cannot keep the scripts of environments",
        "SCRIPT-013",
        hint,
        error,
    )
}

/// How this process signs its leases: no two processes share a name, on whatever machine.
fn worker() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let began = Clock::System.now().as_millis();
    format!("{}-{}-{began}", host.trim(), std::process::id())
}

/// Roles that are running; one that ends takes the others along.
pub(crate) struct Running {
    roles: JoinSet<anyhow::Result<()>>,
    failed: Option<anyhow::Error>,
}

impl Running {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            roles: JoinSet::new(),
            failed: None,
        }
    }

    /// Starts a role.
    pub(crate) fn start(&mut self, role: impl Future<Output = ()> + Send + 'static) {
        self.roles.spawn(async move {
            role.await;
            Ok(())
        });
    }

    /// Waits until somebody asks the program to end, or a role ends by itself; then tells all
    /// of them to end.
    pub(crate) async fn until_told(&mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        tokio::select! {
            biased;
            stopped = told_to_stop() => stopped?,
            // A role that ends by itself takes the others along: half a server helps nobody.
            () = self.one_ended() => tracing::error!("a part of the program ended by itself"),
        }
        tracing::info!("ending: what is under way is given back and goes on at the next start");
        stop.cancel();
        Ok(())
    }

    async fn one_ended(&mut self) {
        let ended = self.roles.join_next().await;
        let ended = ended.map(|role| role.context("a role of the program broke down"));
        self.failed = match ended {
            Some(Ok(Ok(()))) | None => {
                Some(anyhow::anyhow!("a role of the program ended by itself"))
            }
            Some(Ok(Err(error)) | Err(error)) => Some(error),
        };
    }

    /// Waits until every role has ended.
    pub(crate) async fn ended(mut self) -> anyhow::Result<()> {
        while let Some(role) = self.roles.join_next().await {
            role.context("a role of the program broke down")??;
        }
        self.failed.map_or(Ok(()), Err)
    }
}

/// Begins to listen; answers where.
pub(crate) async fn listening(listen: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        let what = format!("cannot listen on {listen}");
        let hint = "another program may hold this port: end it, or choose another with --listen";
        failed(what, "SERVE-001", hint.to_owned(), error)
    })?;
    let address = listener
        .local_addr()
        .context("could not read the listening address")?;
    Ok((listener, address))
}

/// Completes when somebody asks the program to end.
pub(crate) async fn told_to_stop() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("could not wait for signals")?;
    tokio::select! {
        biased;
        _ = terminate.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => interrupted.context("could not wait for signals"),
    }
}

/// Refuses a directory that was used before and has lost its database: starting anew would
/// forget every machine there is.
fn miss_database(data_dir: &Path) -> anyhow::Result<()> {
    let used = data_dir.join(server::auth::TOKEN_FILE).exists();
    if !used || data_dir.join(store::FILE).exists() {
        return Ok(());
    }
    Err(Failure {
        what: format!(
            "the database {} is missing from {}",
            store::FILE,
            data_dir.display()
        ),
        code: "SERVE-004",
        hint: format!(
            "put it back from a backup; to start anew, move {} away too; if the database is on a \
             server, name it with --database",
            server::auth::TOKEN_FILE
        ),
    }
    .into())
}
