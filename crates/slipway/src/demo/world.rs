//! Where the demo has its machines: on this machine as real hosts, or in the simulated world.

use crate::roles::listening;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// The example with hosts made of this machine.
#[cfg(feature = "sandbox")]
pub(super) const HOSTS: &str = include_str!("../../../../examples/sandbox.yaml");

/// The example with a real Kubernetes on such hosts.
#[cfg(feature = "sandbox")]
pub(super) const KUBERNETES: &str = include_str!("../../../../examples/kubernetes.yaml");

/// What its cluster is called.
#[cfg(feature = "sandbox")]
pub(super) const CLUSTER: &str = "shed";

/// The example on the simulated world.
pub(super) const SIMULATED: &str = include_str!("../../../../examples/hello.yaml");

/// Where the machines of the demo are.
pub(super) enum World {
    /// Real hosts that run a real Kubernetes.
    #[cfg(feature = "sandbox")]
    Kubernetes,
    /// Real hosts, made of this machine by these means. Kubernetes on them is simulated, for this
    /// reason.
    #[cfg(feature = "sandbox")]
    Hosts(hosts::sandbox::Means, String),
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
            Self::Kubernetes => KUBERNETES,
            #[cfg(feature = "sandbox")]
            Self::Hosts(..) => HOSTS,
            Self::Simulated(_) => SIMULATED,
        }
    }

    /// What people can try besides, a line each.
    pub(super) fn more(&self) -> String {
        match self {
            #[cfg(feature = "sandbox")]
            Self::Kubernetes => format!("  slipway kubeconfig {CLUSTER} --to {CLUSTER}.conf\n"),
            #[cfg(feature = "sandbox")]
            Self::Hosts(..) => String::new(),
            Self::Simulated(_) => String::new(),
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

#[cfg(feature = "sandbox")]
pub(super) use with_sandbox::{ears, enter};

#[cfg(feature = "sandbox")]
mod with_sandbox {
    use super::{Ears, SocketAddr, TcpListener, listening, usual};
    use anyhow::Context as _;
    use hosts::sandbox::{self, Level};
    use std::os::fd::AsFd as _;
    use std::process::ExitCode;

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
