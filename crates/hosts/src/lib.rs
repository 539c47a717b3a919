//! Hands for hosts: machines that are reached by SSH, and those we make out of namespaces.
//!
//! Every change to a host is a [`program::Program`]: one POSIX shell program, sent by standard
//! input over a connection that stays open, which looks at each item first, changes only what
//! differs and reports item by item. Rendering programs and reading their reports is pure and is
//! done by [`recipe`], [`mesh`] and [`balancer`]; [`ssh`] alone talks to hosts, [`sandbox`] alone
//! makes them. Only what the user brings goes another way: playbooks are run by Ansible.

pub mod artifacts;
pub mod balancer;
pub mod error;
pub mod hands;
pub mod mesh;
mod playbook;
pub mod program;
pub mod recipe;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod ssh;
mod tool;

pub use hands::{Hosts, Parts};
