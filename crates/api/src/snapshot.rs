//! Snapshots of a cluster's etcd on the wire.

use crate::time::{Time, brief, left};
use model::cluster::Desired;
use model::observed::Observed;
use model::snapshot::{Destination, EtcdBackup, RestoredFact, Snapshot};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the etcd of a cluster is saved, and what is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotsView {
    /// How many seconds after one snapshot the next is due; null where none are taken by schedule.
    pub every_seconds: Option<u64>,
    /// Where they are kept; null where none are taken by schedule.
    pub to: Option<String>,
    /// When the next one is due; null where none are taken by schedule.
    pub next_at: Option<Time>,
    /// Those that are kept, the oldest first.
    pub kept: Vec<SnapshotView>,
    /// The one that was last put back; null where none was.
    pub restored: Option<RestoredView>,
}

/// One snapshot that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotView {
    /// Which one.
    pub id: String,
    /// When it was begun.
    pub taken_at: Time,
    /// How many bytes it has where it is kept.
    pub bytes: u64,
    /// Which Kubernetes the cluster ran.
    pub version: String,
    /// To which version the cluster was upgraded next, where that is why it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// That a snapshot was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredView {
    /// Which one.
    pub snapshot: String,
    /// When that was seen.
    pub observed_at: Time,
}

impl SnapshotsView {
    /// Puts together what should be and what was seen; nothing before there is a control plane.
    pub fn new(desired: &Desired, observed: &Observed) -> Option<Self> {
        let known = observed.snapshots.as_ref().map(|(known, _)| known);
        let backup = desired.etcd_backup.as_ref();
        let next = |backup: &EtcdBackup| known.map(|known| known.due(backup.every).into());
        let kept = known.map(|known| known.kept.iter().map(Into::into).collect());
        let restored = observed.restored.as_ref();
        observed.initialised.then(|| Self {
            every_seconds: backup.map(|backup| backup.every.as_secs()),
            to: backup.map(|backup| told(&backup.to)),
            next_at: backup.and_then(next),
            kept: kept.unwrap_or_default(),
            restored: restored.map(|(fact, at)| RestoredView::new(fact, *at)),
        })
    }

    /// What people are told of them.
    pub fn told(&self, now: Time) -> String {
        let last = match self.kept.last() {
            Some(last) => {
                let ago = brief(last.taken_at.age(now));
                format!("last {ago} ago ({}), {} kept", last.id, self.kept.len())
            }
            None => "none yet".to_owned(),
        };
        let next = match self.next_at {
            Some(next) if next > now => format!("next in {}", left(now.age(next))),
            Some(_) => "next is due".to_owned(),
            None if self.every_seconds.is_some() => "next is due".to_owned(),
            None => "none by schedule".to_owned(),
        };
        let restored = self.restored.as_ref().map_or_else(String::new, |restored| {
            let ago = brief(restored.observed_at.age(now));
            format!("; restored from {} {ago} ago", restored.snapshot)
        });
        format!("{last}, {next}{restored}")
    }
}

impl From<&Snapshot> for SnapshotView {
    fn from(snapshot: &Snapshot) -> Self {
        let Snapshot {
            id,
            size,
            version,
            before,
        } = snapshot;
        Self {
            id: id.to_string(),
            taken_at: id.at().into(),
            bytes: *size,
            version: version.to_string(),
            before: before.map(|before| before.to_string()),
        }
    }
}

impl RestoredView {
    fn new(fact: &RestoredFact, at: Timestamp) -> Self {
        Self {
            snapshot: fact.snapshot.to_string(),
            observed_at: at.into(),
        }
    }
}

/// Where snapshots are kept, in words.
fn told(to: &Destination) -> String {
    match to {
        Destination::Directory { name: None } => "the server's directory of snapshots".to_owned(),
        Destination::Directory { name: Some(name) } => format!("directory {name}"),
        Destination::S3(bucket) => format!("bucket {} at {}", bucket.bucket, bucket.endpoint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(kept: &[&str], next: Option<&str>) -> SnapshotsView {
        let kept = kept.iter().map(|id| SnapshotView {
            id: (*id).to_owned(),
            taken_at: id
                .parse::<model::snapshot::SnapshotId>()
                .unwrap()
                .at()
                .into(),
            bytes: 1,
            version: "v1.34.4".to_owned(),
            before: None,
        });
        SnapshotsView {
            every_seconds: next.map(|_| 3_600),
            to: next.map(|_| "directory vault".to_owned()),
            next_at: next.map(|next| next.parse().unwrap()),
            kept: kept.collect(),
            restored: None,
        }
    }

    #[test]
    fn people_are_told_of_the_last_and_the_next() {
        let now: Time = "2026-03-07T12:00:00Z".parse().unwrap();
        let one = ["20260307T110000Z-0a1b2c3d"];
        let told = |kept: &[&str], next| view(kept, next).told(now);
        assert_eq!(
            told(&one, Some("2026-03-07T14:00:00Z")),
            "last 1h ago (20260307T110000Z-0a1b2c3d), 1 kept, next in 2h"
        );
        assert_eq!(
            told(&[], Some("2026-03-07T11:00:00Z")),
            "none yet, next is due"
        );
        assert_eq!(told(&[], None), "none yet, none by schedule");
        let mut restored = view(&one, None);
        restored.restored = Some(RestoredView {
            snapshot: one[0].to_owned(),
            observed_at: "2026-03-07T11:58:00Z".parse().unwrap(),
        });
        assert_eq!(
            restored.told(now),
            "last 1h ago (20260307T110000Z-0a1b2c3d), 1 kept, none by schedule; \
             restored from 20260307T110000Z-0a1b2c3d 2m ago"
        );
    }
}
