//! People who enter a machine themselves, on the wire.

use crate::time::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the bytes of a relay are called where a connection becomes one.
pub const PROTOCOL: &str = "slipway-ssh";

/// Somebody who wants to enter a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuestRequest {
    /// The public half of an ed25519 key, as OpenSSH writes it, without a comment.
    pub public_key: String,
}

/// What somebody needs to know who was let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestView {
    /// The machine.
    pub machine: String,
    /// As whom they enter it.
    pub user: String,
    /// The port of its SSH server, as the server of the cluster sees it.
    pub port: u16,
    /// By which host key it is recognised, as a line of OpenSSH's.
    pub host_key: String,
    /// Until when the key is let in; whoever is inside then may stay.
    pub until: Time,
}
