//! Projects, tokens and audit as people see them.

use super::ago;
use crate::table::Table;
use api::{AuditView, ProjectView, Time, TokenView};

/// How much of a limit is used: `3/5`, or `3` where there is none.
fn of(used: u32, limit: Option<u32>) -> String {
    limit.map_or_else(|| used.to_string(), |limit| format!("{used}/{limit}"))
}

pub(crate) fn projects(projects: &[ProjectView], now: Time) -> String {
    let mut table = Table::new([
        "NAME",
        "CLUSTERS",
        "MACHINES DECLARED",
        "ENVIRONMENTS",
        "MADE",
    ]);
    for view in projects {
        let environments = view.quota.environments;
        table.row([
            view.name.clone(),
            of(view.used.clusters, view.quota.clusters),
            of(view.used.machines, view.quota.machines),
            environments.map_or_else(|| "-".to_owned(), |limit| format!("at most {limit}")),
            made(view.created_at, now),
        ]);
    }
    table.render()
}

/// When a project was made; the first one has no birthday.
fn made(at: Time, now: Time) -> String {
    if at.timestamp().as_millis() > 0 {
        ago(at, now)
    } else {
        "at the start".to_owned()
    }
}

pub(crate) fn tokens(tokens: &[TokenView], now: Time) -> String {
    let mut table = Table::new([
        "ID",
        "NAME",
        "ROLE",
        "PROJECT",
        "STATE",
        "MADE BY",
        "MADE",
        "ENDS",
        "LAST USED",
    ]);
    let when = |time: Option<Time>, otherwise: &str| {
        time.map_or_else(|| otherwise.to_owned(), |time| ago(time, now))
    };
    for view in tokens {
        let state = match view.revoked_at {
            Some(at) => format!("{} {}", view.state, ago(at, now)),
            None => view.state.to_string(),
        };
        table.row([
            view.id.clone(),
            view.name.clone(),
            view.role.to_string(),
            view.project.clone().unwrap_or_else(|| "all".to_owned()),
            state,
            view.created_by.clone(),
            ago(view.created_at, now),
            when(view.expires_at, "when revoked"),
            when(view.last_used_at, "never"),
        ]);
    }
    table.render()
}

pub(crate) fn audit(entries: &[AuditView], now: Time) -> String {
    let mut table = Table::new([
        "ENTRY",
        "WHEN",
        "PROJECT",
        "WHO",
        "FROM",
        "WHAT",
        "OBJECT",
        "GENERATION",
        "DETAIL",
    ]);
    for view in entries {
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |n| n.to_string());
        let generation = match (view.was, view.became) {
            (None, None) => String::new(),
            (was, became) => format!("{} → {}", number(was), number(became)),
        };
        table.row([
            view.seq.to_string(),
            ago(view.at, now),
            view.project.clone().unwrap_or_else(|| "-".to_owned()),
            view.actor.clone(),
            view.origin.clone(),
            view.action.clone(),
            view.object.clone(),
            generation,
            view.detail.clone(),
        ]);
    }
    table.render()
}
