//! Recipes: what a host should have, rendered into one program, and its report read.
//!
//! [`item::Item`] is pure data. [`render`] makes one program of many items; each is looked at
//! first, changed only if it differs, and reported. Nothing on a host is ever half there: files
//! are written beside, verified and renamed, restarts that are owed are remembered before the
//! change, and what was there before us is kept so that it can be given back.
//!
//! On the host, `/etc/slipway/prepared` has the fingerprint of the recipe it followed, and
//! `/var/lib/slipway` what we must remember. An image may carry `/etc/slipway/prepared.d/image`:
//!
//! ```text
//! slipway-prepared-1
//! purpose node
//! program containerd
//! file /etc/containerd/config.toml
//! sysctl net.ipv4.ip_forward 1
//! module overlay
//! ```
//!
//! Each line is a promise that is verified. A `node` must promise the programs `containerd`, `ip`
//! and `wg`, a `balancer` `ip` and `wg`.

pub mod item;
pub mod services;

mod images;
mod kubeadm;
mod look;
mod network;
mod node;
mod removal;
mod render;
mod supply;

pub use images::{Archive, import, staged, unimported};
pub use kubeadm::kubeadm_requirements;
pub use look::{Looked, look};
pub use network::{api_at, mesh_tools, proxy};
pub use node::{
    Kubernetes, PAUSE, balancer_requirements, container_runtime, kubeadm, kubelet,
    kubernetes_packages, node_requirements, storage,
};
pub use removal::removal;
pub use render::render;
pub use supply::{PUSHED, from_pushed, missing, needed, package_names};

use crate::error::{Error, Kind};
use crate::program::Report;
use item::Item;
use model::host::{Purpose, Recipe};

/// What runs a host's services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// systemd is PID 1.
    Systemd,
    /// Something else is: a host of the sandbox, which is too little for Kubernetes.
    Lite,
}

/// Everything that makes a host ready for its purpose, ending with its stamp.
///
/// A `lite` host is no place for containers and disks over the network: it gets neither.
pub fn prepare(recipe: &Recipe, level: Level) -> Vec<Item> {
    let proxied = network::proxy_files(recipe.proxy.as_ref(), level);
    let read: Vec<String> = proxied.iter().map(Item::name).collect();
    let mut items = match recipe.purpose {
        Purpose::Node => node_requirements(level),
        Purpose::Balancer => balancer_requirements(level),
    };
    items.extend(mesh_tools());
    match (recipe.purpose, level) {
        (Purpose::Node, Level::Systemd) => {
            items.extend(kubeadm_requirements());
            items.extend(container_runtime(level, &read));
            items.extend(storage());
        }
        (Purpose::Node, Level::Lite) | (Purpose::Balancer, Level::Systemd | Level::Lite) => {}
    }
    let mut all = vec![Item::Supported {
        purpose: recipe.purpose,
    }];
    // The proxy comes first: packages are fetched through it.
    all.extend(proxied);
    all.push(Item::Unprepared { items });
    match level {
        Level::Systemd => {
            all.extend(["containerd", "kubelet"].map(|name| network::kept(name, &read)));
        }
        Level::Lite => {}
    }
    // Packages that were pushed have served, also where an attempt died before it said so.
    all.push(Item::absent(PUSHED));
    all.push(Item::Stamp {
        fingerprint: recipe.fingerprint(),
    });
    all
}

/// Whether a program did all it had to, else why not.
pub fn done(report: &Report) -> Result<(), Error> {
    if let Some((code, what)) = report.failure() {
        let kind = Kind::of_code(code).unwrap_or(Kind::Garbage);
        return Err(Error::new(kind, what));
    }
    let last = report.tail.last().map_or("nothing", String::as_str);
    match report.status {
        Some(0) if report.fact("finished").is_some() => Ok(()),
        Some(0) => Err(Error::new(
            Kind::Lost,
            "the program did not arrive whole at the host",
        )),
        Some(status) => Err(Error::new(
            Kind::Failed,
            format!("the program ended with status {status} and said {last:?} last"),
        )),
        None => Err(Error::new(
            Kind::Lost,
            format!("the program was killed and said {last:?} last"),
        )),
    }
}
