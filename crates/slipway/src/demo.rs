//! `slipway demo`: the whole flow on this machine, from nothing to ready clusters.

#[cfg(feature = "sandbox")]
mod choice;
#[cfg(feature = "sandbox")]
mod pods;
#[cfg(feature = "sandbox")]
mod traffic;
mod world;

use crate::failure::Failure;
use crate::roles::{self, Installation, Options};
use crate::{Command, Program, logging, serve};
use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, Parser as _};
use hosts::artifacts::Source;
#[cfg(feature = "sandbox")]
use hosts::sandbox::Means;
use server::Prices;
use std::io::Write as _;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use world::World;

/// How long clusters may take until they are as declared, or gone: far more than they need.
const READY_MAX: &str = "30m";

/// How much later than a verb we may hear that somebody ends the demo.
const HEARD: Duration = Duration::from_millis(200);

/// Show the whole flow on this machine: start a server, build the example's clusters, watch
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway demo                  stays up until Ctrl-C, with the page open to look at
  slipway demo --once           ends when all is ready, and cleans up
  slipway demo --mirror DIR     with real hosts, made of this machine's namespaces
  slipway demo --mirror DIR --simulated-kubernetes
                                the same in seconds: Kubernetes on them is simulated

Real hosts need root, or uidmap and lines in /etc/subuid and /etc/subgid; and a mirror that has
Envoy. With root, systemd-nspawn, a mirror that has Kubernetes, too, and room they run a real one: three
control machines, two compute machines and a load balancer, which takes minutes. Whatever is
missing is simulated, and the demo says why and how to have it. `make demo` makes the mirror, and
`make demo KUBERNETES=1` builds Kubernetes first. Everything lives in a temporary directory and is
gone afterwards.")]
pub(crate) struct Arguments {
    /// End when everything is ready, and clean up
    #[arg(long)]
    once: bool,
    /// Where hosts get what their distribution does not have: a directory or a URL
    #[arg(
        long,
        value_name = "SOURCE",
        env = "SLIPWAY_MIRROR",
        hide_env_values = true
    )]
    mirror: Option<Source>,
    /// Stay in the simulated world, also where this machine could have real hosts
    #[arg(long)]
    simulated: bool,
    /// Have Kubernetes simulated on real hosts, also where it could be real
    #[cfg(feature = "sandbox")]
    #[arg(long, conflicts_with = "simulated")]
    simulated_kubernetes: bool,
}

/// Runs the demo from nothing to ready, and cleans up.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    // What is tried again by itself is no news here.
    logging::start(logging::Format::Text, "error");
    let options = Options {
        mirror: arguments.mirror.clone().into_iter().collect(),
        #[cfg(feature = "sandbox")]
        sandbox_ends: true,
        ..Options::default()
    };
    let world = world(&arguments, &options).await?;
    #[cfg(feature = "sandbox")]
    if matches!(world, World::Hosts(Means::ByEntering, _)) {
        return world::enter(say).await;
    }
    let home = tempfile::Builder::new()
        .prefix("slipway-demo-")
        .tempdir()
        .context("could not make a directory")?;
    let ended = shown(home.path(), &arguments, &options, &world).await;
    // A directory that could not be removed says so; the demo's own end counts more.
    if let Err(error) = home.close() {
        say(&format!("could not remove the demo's directory: {error}"));
    }
    ended
}

/// What there is to see.
#[cfg_attr(
    not(feature = "sandbox"),
    expect(
        clippy::unused_async,
        unused_variables,
        reason = "a sandbox is looked at first"
    )
)]
async fn world(arguments: &Arguments, options: &Options) -> anyhow::Result<World> {
    if arguments.simulated {
        return Ok(World::Simulated("it was asked for".to_owned()));
    }
    #[cfg(feature = "sandbox")]
    return choice::find(options, arguments.simulated_kubernetes).await;
    #[cfg(not(feature = "sandbox"))]
    return Ok(World::Simulated("this build has no sandbox".to_owned()));
}

/// The demo in a directory of its own.
async fn shown(
    home: &Path,
    arguments: &Arguments,
    options: &Options,
    world: &World,
) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let stop = CancellationToken::new();
    let ears = match world {
        #[cfg(feature = "sandbox")]
        World::Kubernetes | World::Hosts(..) => world::ears().await?,
        World::Simulated(_) => world::here().await?,
    };
    let (installation, running) =
        serve::start(home, options, Prices::usual(), ears.listeners, &stop).await?;
    let manifest = home.join("demo.yaml");
    std::fs::write(&manifest, world.manifest()).context("could not write the example")?;
    let token = std::fs::read_to_string(home.join(server::auth::TOKEN_FILE))
        .context("could not read the token")?;
    let page = format!("http://{}", ears.page);
    let own = format!("http://{}", ears.own);
    say(&format!(
        "Slipway runs on {page}.\n{}\n\n  page   {page}/\n  token  {}\n\n\
         First the whole journey, then the work itself:\n",
        introduced(world),
        token.trim()
    ));
    let stage = Stage {
        url: &own,
        home,
        manifest: &manifest,
        began,
    };
    let mut stopped = pin!(roles::told_to_stop());
    let told = tokio::select! {
        biased;
        stopped = &mut stopped => stopped.map(|()| None),
        shown = stage.show(world, &installation, arguments.once) => shown.map(Some),
    };
    let told = match told {
        // Verbs hear Ctrl-C, too, and may be the first to do so: then it is no failure.
        Err(error) => match tokio::time::timeout(HEARD, stopped).await {
            Ok(stopped) => stopped.map(|()| None),
            Err(_) => Err(error),
        },
        Ok(Some(())) if !arguments.once => {
            say(&format!(
                "\nEverything is ready. Look at {page}/ or try, in another terminal:\n\n  \
                 export SLIPWAY_SERVER={page} SLIPWAY_DATA={}\n  slipway get machines\n  \
                 slipway why cluster NAME\n{}\nCtrl-C ends the demo and cleans up.",
                home.display(),
                world.more()
            ));
            roles::told_to_stop().await.map(|()| Some(()))
        }
        other => other,
    };
    stop.cancel();
    running.ended().await?;
    #[cfg(feature = "sandbox")]
    if matches!(world, World::Kubernetes | World::Hosts(..)) {
        installation.hosts.clear().await?;
    }
    told.map(|_| ExitCode::SUCCESS)
}

/// What is real of the demo, and what is not.
fn introduced(world: &World) -> String {
    match world {
        #[cfg(feature = "sandbox")]
        World::Kubernetes => {
            "Its machines are real hosts, made of namespaces of this one, with SSH, a \
                              WireGuard mesh, an Envoy load balancer and a real Kubernetes."
                .to_owned()
        }
        #[cfg(feature = "sandbox")]
        World::Hosts(_, why) => format!(
            "Its machines are real hosts, made of namespaces of this one, with SSH, a WireGuard mesh and \
             an Envoy load balancer; Kubernetes on them is simulated, because {why}."
        ),
        World::Simulated(why) => {
            format!("Its machines are of the simulated world, because {why}.")
        }
    }
}

/// Where the demo's verbs go.
struct Stage<'a> {
    url: &'a str,
    home: &'a Path,
    manifest: &'a Path,
    began: Instant,
}

impl Stage<'_> {
    /// Plans, applies, looks and, when asked to, deletes again, as a person would.
    #[cfg_attr(
        not(feature = "sandbox"),
        expect(unused_variables, reason = "only real hosts are visited")
    )]
    async fn show(
        &self,
        world: &World,
        installation: &Installation,
        once: bool,
    ) -> anyhow::Result<()> {
        let file = self.manifest.to_str();
        let file = file.context("the temporary directory has a strange name")?;
        self.verb(&["plan", "-f", file]).await?;
        self.mark("that is the plan; now it is carried out");
        let wait = ["--wait", "--timeout", READY_MAX];
        self.verb(&[&["apply", "-f", file], &wait[..]].concat())
            .await?;
        self.mark("all is as declared");
        self.verb(&["get", "clusters"]).await?;
        match world {
            #[cfg(feature = "sandbox")]
            World::Kubernetes => self.show_pods(installation).await?,
            #[cfg(feature = "sandbox")]
            World::Hosts(..) => self.show_pages(installation).await?,
            World::Simulated(_) => {}
        }
        if once {
            say("");
            self.verb(&[&["delete", "--yes", "-f", file], &wait[..]].concat())
                .await?;
            self.mark("all is gone");
        }
        Ok(())
    }

    /// Shows hosts, and pages on them that answer through the load balancer.
    #[cfg(feature = "sandbox")]
    async fn show_pages(&self, installation: &Installation) -> anyhow::Result<()> {
        say("");
        self.verb(&["get", "machines"]).await?;
        say("");
        let example = traffic::Example::of(installation).await?;
        let (balancer, _) = example.balancer()?;
        self.verb(&["describe", "machine", balancer.name.as_str()])
            .await?;
        say("\nNothing answers on the targets yet: each gets a page with its name on it.");
        self.mark(&traffic::show(installation).await?);
        Ok(())
    }

    /// Shows nodes, and pods on them that answer through the load balancer.
    #[cfg(feature = "sandbox")]
    async fn show_pods(&self, installation: &Installation) -> anyhow::Result<()> {
        let cluster = pods::Cluster::enter(installation).await?;
        self.mark(&cluster.nodes().await?);
        say("");
        self.verb(&["describe", "cluster", world::CLUSTER]).await?;
        say("\nNothing runs in the cluster yet: it gets pods that answer with their names.");
        self.mark(&cluster.deploy().await?);
        self.mark(&cluster.asked().await?);
        Ok(())
    }

    /// Says how far it has come, and how long after the start.
    fn mark(&self, what: &str) {
        say(&format!(
            "\n[{:>4} s] {what}",
            self.began.elapsed().as_secs()
        ));
    }

    /// Runs a client verb against the demo's own server.
    async fn verb(&self, words: &[&str]) -> anyhow::Result<()> {
        let home = self.home.to_str();
        let home = home.context("the temporary directory has a strange name")?;
        let line = ["slipway", "--server", self.url, "--data-dir", home]
            .into_iter()
            .chain(words.iter().copied());
        let Program { global, command } =
            Program::try_parse_from(line).context("the demo spoke badly")?;
        let Command::Client(verb) = command else {
            bail!("the demo may use client verbs only")
        };
        if cli::run(verb, &global, Program::command).await == ExitCode::SUCCESS {
            return Ok(());
        }
        Err(Failure {
            what: format!("the demo stopped at `slipway {}`", words.join(" ")),
            code: "DEMO-001",
            hint: "the lines above say why".to_owned(),
        }
        .into())
    }
}

fn say(text: &str) {
    // A closed standard error is no reason to stop the demo.
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
