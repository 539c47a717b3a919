//! Where the demo has its machines: on this machine as real hosts where it can, else in the
//! simulated world, with the reason.

use crate::roles::{Options, listening};
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// The example with hosts made of this machine.
#[cfg(feature = "sandbox")]
pub(super) const HOSTS: &str = include_str!("../../../../examples/sandbox.yaml");

/// The example on the simulated world.
pub(super) const SIMULATED: &str = include_str!("../../../../examples/hello.yaml");

/// Where the machines of the demo are.
pub(super) enum World {
    /// Real hosts, made of this machine by these means.
    #[cfg(feature = "sandbox")]
    Hosts(hosts::sandbox::Means),
    /// Nowhere but in memory, for this reason.
    Simulated(String),
}

/// Where the demo listens: what people open, and what it asks itself.
pub(super) struct Ears {
    pub(super) listeners: Vec<TcpListener>,
    /// For people.
    pub(super) page: SocketAddr,
    /// For the demo's own verbs: in namespaces of its own it cannot reach the other.
    pub(super) own: SocketAddr,
}

impl World {
    /// The manifest that it shows.
    pub(super) const fn manifest(&self) -> &'static str {
        match self {
            #[cfg(feature = "sandbox")]
            Self::Hosts(_) => HOSTS,
            Self::Simulated(_) => SIMULATED,
        }
    }
}

/// Listens on the usual port, or on any where that one is taken.
async fn usual() -> anyhow::Result<(TcpListener, SocketAddr)> {
    let usual = SocketAddr::from(([127, 0, 0, 1], 7077));
    match listening(usual).await {
        Ok(ears) => Ok(ears),
        Err(_) => listening(SocketAddr::from(([127, 0, 0, 1], 0))).await,
    }
}

/// Listens where the program runs.
pub(super) async fn here() -> anyhow::Result<Ears> {
    let (listener, page) = usual().await?;
    Ok(Ears {
        listeners: vec![listener],
        page,
        own: page,
    })
}

#[cfg(not(feature = "sandbox"))]
#[expect(clippy::unused_async, reason = "with a sandbox it asks mirrors")]
pub(super) async fn find(_: &Options) -> World {
    World::Simulated("this build has no sandbox".to_owned())
}

#[cfg(feature = "sandbox")]
pub(super) use with_sandbox::{ears, enter, find};

#[cfg(feature = "sandbox")]
mod with_sandbox {
    use super::{Ears, Options, SocketAddr, TcpListener, World, listening, usual};
    use anyhow::Context as _;
    use hosts::artifacts::{Name, Patience, Platform, Source, envoy, mirror};
    use hosts::sandbox::{self, Level};
    use std::os::fd::AsFd as _;
    use std::process::ExitCode;

    /// Whether this machine can have the hosts of the demo.
    pub(in crate::demo) async fn find(options: &Options) -> World {
        if !has_envoy(&options.mirror).await {
            let why =
                "no mirror is named that has Envoy for the load balancer; `make demo` makes one";
            return World::Simulated(why.to_owned());
        }
        match sandbox::means() {
            Ok(means) => World::Hosts(means),
            Err(error) => World::Simulated(error.to_string()),
        }
    }

    /// Whether one of these has what runs on load balancer machines like this one.
    async fn has_envoy(sources: &[Source]) -> bool {
        let platform = Platform::of_machine(std::env::consts::ARCH);
        let name = platform.and_then(|platform| envoy(platform).parse::<Name>().ok());
        let Some(name) = name else { return false };
        for source in sources {
            let listed = mirror::list(source, Patience::default()).await;
            if listed.is_ok_and(|index| index.get(&name).is_some()) {
                return true;
            }
        }
        false
    }

    /// Runs the whole demo again in namespaces of its own; answers how that ended.
    pub(in crate::demo) async fn enter(say: fn(&str)) -> anyhow::Result<ExitCode> {
        // Inside there is no network to fetch packages from.
        sandbox::ensure_rootfs(Level::Lite, &sandbox::default_cache(), &say).await?;
        let (listener, _) = usual().await?;
        let listener = listener
            .into_std()
            .context("could not hand the port over")?;
        let program = std::env::current_exe().context("could not find this program")?;
        let arguments = std::env::args_os().skip(1);
        let command = sandbox::entering(None, &program, arguments, &[listener.as_fd()])?;
        let mut inside = tokio::process::Command::from(command)
            .spawn()
            .context("could not enter namespaces")?;
        // Ctrl-C reaches it too, and it cleans up.
        let ended = loop {
            tokio::select! {
                ended = inside.wait() => break ended.context("could not wait for the demo")?,
                stopped = crate::roles::told_to_stop() => stopped?,
            }
        };
        let code = ended.code().and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::from(code.unwrap_or(1)))
    }

    /// Listens inside and, where the program was entered, on what was handed over.
    pub(in crate::demo) async fn ears() -> anyhow::Result<Ears> {
        let handed = sandbox::inherited().context("could not take the port over")?;
        let Some(outer) = handed.into_iter().next() else {
            return super::here().await;
        };
        let outer = std::net::TcpListener::from(outer);
        let outer = TcpListener::from_std(outer).context("could not listen")?;
        let page = outer
            .local_addr()
            .context("could not read the listening address")?;
        let (inner, own) = listening(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        Ok(Ears {
            listeners: vec![outer, inner],
            page,
            own,
        })
    }
}
