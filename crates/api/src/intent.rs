//! Wishes outside the manifest, on the wire.

use crate::time::Time;
use model::intent::{Intent, Wish};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A wish to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentRequest {
    /// The cluster it is about.
    pub cluster: String,
    /// What is wished.
    pub wish: WishRequest,
    /// Why; others will read it.
    pub reason: String,
    /// How long it counts; absent means until it is fulfilled or withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u32>,
}

/// What is wished of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum WishRequest {
    /// Another size for a dynamic pool, until the manifest says another number itself; for one
    /// with an autoscaler within that, until somebody wishes otherwise.
    Scale {
        /// Which pool.
        pool: String,
        /// How many machines.
        count: u32,
    },
    /// A new machine in place of this one.
    Replace {
        /// Which machine, by its name or its id.
        machine: String,
    },
    /// This machine goes, and its pool, which has an autoscaler, becomes one smaller.
    Retire {
        /// Which machine, by its name or its id.
        machine: String,
    },
    /// Another attempt at a stuck or waiting task, now.
    Retry {
        /// Which task.
        task: String,
    },
    /// No further attempt at a task.
    Cancel {
        /// Which task.
        task: String,
    },
    /// Nothing new is begun on the cluster.
    Pause {},
    /// A snapshot of the cluster's etcd, now.
    Snapshot {},
    /// The cluster's etcd as it was when this snapshot was taken.
    Restore {
        /// Which snapshot.
        snapshot: String,
    },
    /// The machines of a pool are made from the newer modules that are offered, one after the other.
    Update {
        /// Which pool.
        pool: String,
    },
}

/// A wish that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentView {
    /// Which wish.
    pub id: String,
    /// Who owns what it is about.
    pub project: String,
    /// The cluster it is about.
    pub cluster: String,
    /// What is wished.
    pub wish: WishView,
    /// What it is about in the words that people use, where the wish names that by an id: the name of a
    /// machine, or what a task does to which machine. Absent where nobody knows any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Who wishes it.
    pub author: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub created_at: Time,
    /// Until when; null means until it is fulfilled or withdrawn.
    pub expires_at: Option<Time>,
}

/// What is wished of one object, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WishView {
    /// Another size for a dynamic pool.
    Scale {
        /// Which pool.
        pool: String,
        /// How many machines.
        count: u32,
        /// What the manifest declared then; another number there ends the wish. 0 where the pool
        /// has an autoscaler.
        was: u32,
    },
    /// A new machine in place of this one.
    Replace {
        /// Which machine, in which of its lives.
        machine: String,
    },
    /// This machine goes, and its pool becomes one smaller.
    Retire {
        /// Which machine, in which of its lives.
        machine: String,
    },
    /// Another attempt at a task, now.
    Retry {
        /// Which task.
        task: String,
    },
    /// No further attempt at what a task does to its machine.
    Cancel {
        /// Which task.
        task: String,
        /// The machine it touches.
        machine: String,
    },
    /// Nothing new is begun on the cluster.
    Pause {},
    /// A snapshot of the cluster's etcd, now.
    Snapshot {},
    /// The cluster's etcd as it was when this snapshot was taken.
    Restore {
        /// Which snapshot.
        snapshot: String,
    },
    /// The machines of a pool are made from newer modules.
    Update {
        /// Which pool.
        pool: String,
        /// The commit that was offered then.
        commit: String,
    },
}

impl From<&Wish> for WishView {
    fn from(wish: &Wish) -> Self {
        match wish {
            Wish::Scale { pool, count, was } => Self::Scale {
                pool: pool.to_string(),
                count: *count,
                was: *was,
            },
            Wish::Replace { machine } => Self::Replace {
                machine: machine.to_string(),
            },
            Wish::Retire { machine } => Self::Retire {
                machine: machine.to_string(),
            },
            Wish::Retry { task } => Self::Retry {
                task: task.to_string(),
            },
            Wish::Cancel {
                task,
                machine,
                kind: _,
            } => Self::Cancel {
                task: task.to_string(),
                machine: machine.to_string(),
            },
            Wish::Pause => Self::Pause {},
            Wish::Snapshot => Self::Snapshot {},
            Wish::Restore { snapshot } => Self::Restore {
                snapshot: snapshot.to_string(),
            },
            Wish::Update { pool, commit } => Self::Update {
                pool: pool.to_string(),
                commit: commit.as_ref().map(ToString::to_string).unwrap_or_default(),
            },
        }
    }
}

impl From<&Intent> for IntentView {
    fn from(intent: &Intent) -> Self {
        Self {
            id: intent.id.to_string(),
            project: intent.project.to_string(),
            cluster: intent.cluster.to_string(),
            wish: (&intent.wish).into(),
            about: None,
            author: intent.author.clone(),
            reason: intent.reason.clone(),
            created_at: intent.created_at.into(),
            expires_at: intent.expires_at.map(Into::into),
        }
    }
}

impl IntentView {
    /// What is wished, with names for ids where they are known.
    pub fn told(&self) -> String {
        let Some(about) = &self.about else {
            return self.wish.to_string();
        };
        match &self.wish {
            WishView::Replace { .. } => format!("replace {about}"),
            WishView::Retire { .. } => format!("retire {about}"),
            WishView::Retry { .. } => format!("retry {about}"),
            WishView::Cancel { .. } => format!("cancel {about}"),
            WishView::Scale { .. }
            | WishView::Pause {}
            | WishView::Snapshot {}
            | WishView::Restore { .. }
            | WishView::Update { .. } => self.wish.to_string(),
        }
    }
}

impl std::fmt::Display for WishView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scale {
                pool,
                count,
                was: 0,
            } => write!(f, "scale {pool} to {count}"),
            Self::Scale { pool, count, was } => write!(f, "scale {pool} from {was} to {count}"),
            Self::Replace { machine } => write!(f, "replace {machine}"),
            Self::Retire { machine } => write!(f, "retire {machine}"),
            Self::Retry { task } => write!(f, "retry {task}"),
            Self::Cancel { task, machine: _ } => write!(f, "cancel {task}"),
            Self::Pause {} => f.write_str("pause"),
            Self::Snapshot {} => f.write_str("snapshot of etcd"),
            Self::Restore { snapshot } => write!(f, "restore etcd from {snapshot}"),
            Self::Update { pool, commit } => write!(f, "update {pool} to {commit:.10}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(wish: &str) -> Result<IntentRequest, serde_json::Error> {
        serde_json::from_str(&format!(
            r#"{{"cluster":"edge","wish":{wish},"reason":"r"}}"#
        ))
    }

    #[test]
    fn every_wish_of_the_contract_is_read() {
        for wish in [
            r#"{"scale":{"pool":"compute","count":5}}"#,
            r#"{"replace":{"machine":"edge-compute-01"}}"#,
            r#"{"retire":{"machine":"edge-compute-01"}}"#,
            r#"{"retry":{"task":"task-1"}}"#,
            r#"{"cancel":{"task":"task-1"}}"#,
            r#"{"pause":{}}"#,
            r#"{"snapshot":{}}"#,
            r#"{"restore":{"snapshot":"20260307T020000Z-0a1b2c3d"}}"#,
            r#"{"update":{"pool":"compute"}}"#,
        ] {
            let request = read(wish).unwrap();
            assert_eq!(serde_json::to_string(&request.wish).unwrap(), wish);
        }
    }

    #[test]
    fn a_wish_is_told_by_names_where_they_are_known() {
        let told = |wish: &str, about: Option<&str>| {
            let view: IntentView = serde_json::from_str(&format!(
                r#"{{"id":"intent-1","project":"default","cluster":"edge","wish":{wish},"author":"ana",
                    "reason":"r","createdAt":"2026-11-17T00:00:00Z","expiresAt":null}}"#
            ))
            .unwrap();
            let about = about.map(str::to_owned);
            IntentView { about, ..view }.told()
        };
        let replace = r#"{"replace":{"machine":"machine-1"}}"#;
        assert_eq!(
            told(replace, Some("edge-compute-01")),
            "replace edge-compute-01"
        );
        assert_eq!(told(replace, None), "replace machine-1");
        let cancel = r#"{"cancel":{"task":"task-1","machine":"machine-1"}}"#;
        assert_eq!(
            told(cancel, Some("create edge-a-01")),
            "cancel create edge-a-01"
        );
        assert_eq!(told(r#"{"pause":{}}"#, None), "pause");
    }

    #[test]
    fn a_field_that_nobody_reads_is_refused() {
        assert!(read(r#"{"pause":{"for":"ever"}}"#).is_err());
        assert!(read(r#"{"scale":{"pool":"a","count":1,"was":2}}"#).is_err());
        assert!(read(r#"{"dance":{}}"#).is_err());
        assert!(
            serde_json::from_str::<IntentRequest>(
                r#"{"cluster":"edge","wish":{"pause":{}},"reason":"r","author":"me"}"#
            )
            .is_err()
        );
    }
}
