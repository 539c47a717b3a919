//! Tokens: who may speak, as what, where and until when.

use crate::time::Time;
use model::access::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the holder of a token may do, each role all that the one before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenRole {
    /// Sees everything but secrets.
    Viewer,
    /// Declares: submits manifests, plans, rehearses, sets secrets.
    User,
    /// Interferes: scales, replaces, retries, cancels, pauses, deletes.
    Operator,
    /// Decides who may do what: projects, tokens, keys, audit, backups.
    Admin,
}

impl TokenRole {
    /// All roles, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::User, Self::Operator, Self::Admin];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        Role::from(self).as_str()
    }
}

impl std::fmt::Display for TokenRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<Role> for TokenRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Viewer => Self::Viewer,
            Role::User => Self::User,
            Role::Operator => Self::Operator,
            Role::Admin => Self::Admin,
        }
    }
}

impl From<TokenRole> for Role {
    fn from(role: TokenRole) -> Self {
        match role {
            TokenRole::Viewer => Self::Viewer,
            TokenRole::User => Self::User,
            TokenRole::Operator => Self::Operator,
            TokenRole::Admin => Self::Admin,
        }
    }
}

/// Whether a token is still good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenState {
    /// It opens what its role may.
    Active,
    /// Its time is over.
    Expired,
    /// Somebody ended it.
    Revoked,
}

impl std::fmt::Display for TokenState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        })
    }
}

/// A token as it is known; the token itself is known to its holder alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    /// Which; it names the token and opens nothing.
    pub id: String,
    /// What its holder is called, in audit and history.
    pub name: String,
    /// What its holder may do.
    pub role: TokenRole,
    /// The project it is good for; null means all of them.
    pub project: Option<String>,
    /// Whether it is still good.
    pub state: TokenState,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Time,
    /// When it ends; null means when it is revoked.
    pub expires_at: Option<Time>,
    /// When it was last used, to the minute; null means never.
    pub last_used_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}

/// A token that shall be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenRequest {
    /// What its holder is called: one line of at most 100 characters.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// What its holder may do; nobody can give more than they have.
    pub role: TokenRole,
    /// The project it is good for; absent or null means all of them.
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// How long it is good; absent means until it is revoked.
    #[schema(minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
}

/// A token that was made. This is the only time that it is told.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenMade {
    /// The token itself.
    pub token: String,
    /// What is known of it.
    #[serde(flatten)]
    pub view: TokenView,
}

impl std::fmt::Debug for TokenMade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenMade")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roles_of_the_wire_are_those_of_the_model() {
        for (wire, model) in TokenRole::ALL.into_iter().zip(Role::ALL) {
            assert_eq!((Role::from(wire), TokenRole::from(model)), (model, wire));
            let text = serde_json::to_string(&wire).unwrap();
            assert_eq!(text, format!("\"{model}\""));
        }
    }

    #[test]
    fn a_token_that_was_made_is_never_printed() {
        let text = r#"{"token":"slipway_s3cret","id":"token-1","name":"ci","role":"user",
            "project":null,"state":"active","createdBy":"admin","createdAt":"2026-03-01T12:00:00Z",
            "expiresAt":null,"lastUsedAt":null,"revokedAt":null}"#;
        let made: TokenMade = serde_json::from_str(text).unwrap();
        assert_eq!(made.token, "slipway_s3cret");
        let printed = format!("{made:?}");
        assert!(printed.contains("token-1") && !printed.contains("s3cret"));
    }
}
