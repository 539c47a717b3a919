//! Who may speak: digests of tokens, their roles and their ends.
//!
//! A token itself is never here. Whoever has a copy of the database can name its holders
//! and cannot speak for any of them.

use crate::Store;
use crate::audit::{self, Actor, Entry};
use crate::body::{Row, Scope, Tx, first};
use crate::error::Error;
use crate::page::{Listed, Page, cursor};
use model::access::{Role, TokenId};
use model::name::Name;
use model::time::Timestamp;
use std::time::Duration;

/// How exactly the last use is known: a write per request would cost more than it tells.
const USE_KNOWN_TO: Duration = Duration::from_mins(1);

/// A token on its way in.
#[derive(Debug, Clone)]
pub struct TokenDraft {
    /// Which.
    pub id: TokenId,
    /// What its holder is called, in audit and history.
    pub name: String,
    /// The project it is good for; none means all of them.
    pub project: Option<Name>,
    /// What its holder may do there.
    pub role: Role,
    /// The SHA-256 of the token, in hex.
    pub digest: String,
    /// When it ends; none means when it is revoked.
    pub expires_at: Option<Timestamp>,
}

/// A token as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Which.
    pub id: TokenId,
    /// What its holder is called.
    pub name: String,
    /// The project it is good for; none means all of them.
    pub project: Option<Name>,
    /// What its holder may do there.
    pub role: Role,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl Store {
    /// Stores a token; the same digest again changes nothing.
    pub async fn add_token(
        &self,
        draft: TokenDraft,
        actor: Actor,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.runner
            .write(Scope::Rows, move |tx| add(tx, &draft, &actor, now))
            .await
    }

    /// The token with that digest, whatever its state, and remembers that it was used.
    pub async fn token_by_digest(
        &self,
        digest: &str,
        now: Timestamp,
    ) -> Result<Option<TokenRow>, Error> {
        let digest = digest.to_owned();
        let question = move |tx: &mut dyn Tx| {
            let sql = format!("{COLUMNS} WHERE digest = $1");
            first(tx, &sql, &[(&digest).into()])?.map(read).transpose()
        };
        let found: Option<TokenRow> = self.runner.read(question).await?;
        if let Some(token) = &found
            && token
                .last_used_at
                .is_none_or(|at| now.since(at) >= USE_KNOWN_TO)
        {
            let id = token.id;
            let used = move |tx: &mut dyn Tx| {
                tx.execute(
                    "UPDATE tokens SET last_used_at = $2 WHERE id = $1",
                    &[id.into(), now.into()],
                )
            };
            // Reading goes on where nothing can be written: a full disk locks nobody out.
            if let Err(error) = self.runner.write(Scope::Rows, used).await {
                tracing::warn!(
                    error.code = error.code(),
                    "could not note the use of a token: {error}"
                );
            }
        }
        Ok(found)
    }

    /// Tokens by name, of one project or of all.
    pub async fn tokens(
        &self,
        project: Option<&Name>,
        page: Page,
    ) -> Result<Listed<TokenRow>, Error> {
        let project = project.cloned();
        self.runner
            .read(move |tx| list(tx, project.as_ref(), &page))
            .await
    }

    /// Ends a token for good; answers it as it was, when there is such a token in that
    /// project, or in any when none is named.
    pub async fn revoke_token(
        &self,
        id: TokenId,
        project: Option<&Name>,
        actor: Actor,
        now: Timestamp,
    ) -> Result<Option<TokenRow>, Error> {
        let project = project.cloned();
        self.runner
            .write(Scope::Rows, move |tx| {
                revoke(tx, id, project.as_ref(), &actor, now)
            })
            .await
    }
}

const COLUMNS: &str =
    "SELECT id, name, project, role, created_by, created_at, expires_at, last_used_at, revoked_at
     FROM tokens";

fn read(mut row: Row) -> Result<TokenRow, Error> {
    Ok(TokenRow {
        id: row.take()?,
        name: row.take()?,
        project: row.take()?,
        role: row.take()?,
        created_by: row.take()?,
        created_at: row.take()?,
        expires_at: row.take()?,
        last_used_at: row.take()?,
        revoked_at: row.take()?,
    })
}

fn add(tx: &mut dyn Tx, draft: &TokenDraft, actor: &Actor, now: Timestamp) -> Result<(), Error> {
    let added = tx.execute(
        "INSERT INTO tokens (id, name, project, role, digest, created_by, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
        &[
            draft.id.into(),
            (&draft.name).into(),
            draft.project.as_ref().into(),
            draft.role.as_str().into(),
            (&draft.digest).into(),
            (&actor.name).into(),
            now.into(),
            draft.expires_at.into(),
        ],
    )?;
    if added > 0 {
        audit::enter(
            tx,
            Entry {
                at: now,
                project: draft.project.clone(),
                actor: actor.clone(),
                action: "token.create",
                object: format!("token/{}", draft.id),
                generations: (None, None),
                detail: format!("{}, {}", draft.name, draft.role),
            },
        );
    }
    Ok(())
}

fn list(tx: &mut dyn Tx, project: Option<&Name>, page: &Page) -> Result<Listed<TokenRow>, Error> {
    let [id] = page.after("tokens", [""])?;
    let rows = match project {
        Some(project) => tx.query(
            &format!("{COLUMNS} WHERE project = $1 AND id > $2 ORDER BY id LIMIT $3"),
            &[project.into(), id.into(), page.rows().into()],
        )?,
        None => tx.query(
            &format!("{COLUMNS} WHERE id > $1 ORDER BY id LIMIT $2"),
            &[id.into(), page.rows().into()],
        )?,
    };
    let rows = rows.into_iter().map(read).collect::<Result<_, _>>()?;
    Ok(page.cut(rows, |row| cursor("tokens", &[&row.id])))
}

fn revoke(
    tx: &mut dyn Tx,
    id: TokenId,
    project: Option<&Name>,
    actor: &Actor,
    now: Timestamp,
) -> Result<Option<TokenRow>, Error> {
    let row = first(tx, &format!("{COLUMNS} WHERE id = $1"), &[id.into()])?;
    let Some(token) = row.map(read).transpose()? else {
        return Ok(None);
    };
    if project.is_some() && token.project.as_ref() != project {
        return Ok(None);
    }
    let ended = tx.execute(
        "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
        &[id.into(), now.into()],
    )?;
    if ended > 0 {
        audit::enter(
            tx,
            Entry {
                at: now,
                project: token.project.clone(),
                actor: actor.clone(),
                action: "token.revoke",
                object: format!("token/{id}"),
                generations: (None, None),
                detail: token.name.clone(),
            },
        );
    }
    Ok(Some(token))
}
