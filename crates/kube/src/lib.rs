//! Hands for Kubernetes: control planes and nodes on hosts, and what is asked of their API.
//!
//! [`api`] is the only code that speaks to an API server. It does so with the kubeconfig of the
//! cluster over streams that somebody else opens, because the API of a private cluster is reached
//! through its hosts. It waits for nothing without a limit, and asking twice changes nothing more.

pub mod addons;
pub mod api;
pub mod error;
pub mod hands;
pub mod kubeadm;
pub mod snapshot;

pub use hands::Kube;
