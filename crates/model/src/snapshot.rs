//! Snapshots of etcd: how often they are taken, where they are kept, and for how long.
//!
//! A snapshot is all that the API of a cluster knows, at one moment. It is written by a member of
//! etcd, leaves its host sealed, and can be put back on all members together.

use crate::cluster::{Machine, Role};
use crate::id::IntentId;
use crate::name::Name;
use crate::secret::SecretRef;
use crate::time::Timestamp;
use crate::version::Version;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often a cluster's etcd is saved where nobody says otherwise.
const EVERY: Duration = Duration::from_hours(24);

/// How the etcd of a cluster is saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdBackup {
    /// How long after one snapshot the next is due.
    pub every: Duration,
    /// Which are kept.
    pub keep: Keep,
    /// Where they are kept.
    pub to: Destination,
}

/// Which snapshots are kept: as many as this, and none that is older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// How many.
    pub count: u32,
    /// How old they get; absent means that only their number counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Duration>,
}

/// Where snapshots are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Destination {
    /// Below the directory that the server has for them.
    Directory {
        /// In which part of it; absent means at its top.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<Name>,
    },
    /// In a store that speaks S3.
    S3(Box<Bucket>),
}

impl Destination {
    /// The secrets that open it.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        let bucket = match self {
            Self::Directory { .. } => None,
            Self::S3(bucket) => Some(bucket),
        };
        let keys = bucket.map(|bucket| [&bucket.access_key, &bucket.secret_key]);
        keys.into_iter().flatten()
    }
}

/// A bucket of a store that speaks S3, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// Where the store answers: a scheme, a host, perhaps a port, and nothing behind them.
    pub endpoint: String,
    /// What the bucket is called.
    pub bucket: String,
    /// The region that requests are signed for.
    pub region: String,
    /// What the names of all objects begin with, without a slash at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The certificates of those who vouch for the store, in PEM; absent means those whom the
    /// machine trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// The entry that says who we are.
    pub access_key: SecretRef,
    /// The entry that requests are signed with.
    pub secret_key: SecretRef,
}

impl Bucket {
    /// The entry of a secret that says who we are.
    pub const ACCESS_KEY: &str = "accessKeyId";

    /// The entry of a secret that requests are signed with.
    pub const SECRET_KEY: &str = "secretAccessKey";
}

impl Default for EtcdBackup {
    /// What a cluster has whose manifest says nothing of it.
    fn default() -> Self {
        Self {
            every: EVERY,
            keep: Keep::default(),
            to: Destination::Directory { name: None },
        }
    }
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            count: 7,
            age: None,
        }
    }
}

/// Which snapshot: when it was begun, to the second, and the beginning of its digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SnapshotId(String);

/// Why a text is not a [`SnapshotId`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{found}` is not an id of the form 20260307T020000Z-0a1b2c3d")]
pub struct Error {
    /// What was given.
    pub found: String,
}

/// How the time of an id is written.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// How many digits of a digest an id has.
const DIGITS: usize = 8;

impl SnapshotId {
    /// The id of a snapshot that was begun then and has this SHA-256, in hexadecimal digits.
    pub fn of(at: Timestamp, sha256: &str) -> Result<Self, Error> {
        let digest: String = sha256.chars().take(DIGITS).collect();
        format!("{}-{digest}", at.moment().strftime(TIME)).try_into()
    }

    /// When it was begun.
    pub fn at(&self) -> Timestamp {
        let time = self.0.split('-').next().unwrap_or_default();
        moment(time).unwrap_or_default()
    }

    /// The checked text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The time of an id. Who plans asks again and again, and each part has its place.
fn moment(time: &str) -> Option<Timestamp> {
    let part = |from: usize| time.get(from..from + 2)?.parse::<i8>().ok();
    let year = time.get(..4)?.parse().ok()?;
    let (month, day) = (part(4)?, part(6)?);
    let (hour, minute, second) = (part(9)?, part(11)?, part(13)?);
    let civil = jiff::civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let millis = zoned.timestamp().as_millisecond();
    Some(Timestamp::from_millis(millis))
}

impl TryFrom<String> for SnapshotId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let usable = text.split_once('-').is_some_and(|(time, digest)| {
            let back = moment(time).map(|at| at.moment().strftime(TIME).to_string());
            back.as_deref() == Some(time) && digest.len() == DIGITS && digest.bytes().all(digit)
        });
        if usable {
            Ok(Self(text))
        } else {
            Err(Error { found: text })
        }
    }
}

impl std::str::FromStr for SnapshotId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.to_owned().try_into()
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> Self {
        id.0
    }
}

impl std::fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// One snapshot that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Which one.
    pub id: SnapshotId,
    /// How many bytes it has where it is kept.
    pub size: u64,
    /// Which Kubernetes the cluster ran.
    pub version: Version,
    /// To which version the cluster was upgraded next, where that is why it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Version>,
}

/// The snapshots of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotsFact {
    /// Since when there could be any: the first is due one interval later.
    pub since: Timestamp,
    /// Those that are kept, the oldest first.
    pub kept: Vec<Snapshot>,
    /// The wish that the last one was taken for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<IntentId>,
}

/// The least by which revisions are lifted.
const LIFT_LEAST: u64 = 1_000_000_000;

/// How long a snapshot counts that was taken before an upgrade, until that begins.
const FRESH: Duration = Duration::from_hours(24);

impl SnapshotsFact {
    /// A cluster that was started then and was never saved.
    pub const fn none_since(since: Timestamp) -> Self {
        Self {
            since,
            kept: Vec::new(),
            answered: None,
        }
    }

    /// When the next one is due.
    pub fn due(&self, every: Duration) -> Timestamp {
        let last = self.kept.last().map(|snapshot| snapshot.id.at());
        last.unwrap_or(self.since).plus(every)
    }

    /// Whether one was taken before an upgrade to this version, and not so long ago that it is of no
    /// use for that.
    pub fn before(&self, version: Version, now: Timestamp) -> bool {
        let mut kept = self
            .kept
            .iter()
            .filter(|kept| kept.id.at() >= now.minus(FRESH));
        kept.any(|snapshot| snapshot.before == Some(version))
    }
}

/// What somebody needs to know who takes a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taking {
    /// Which Kubernetes the cluster runs.
    pub version: Version,
    /// To which version it is upgraded next, where that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Version>,
    /// The wish that asks for it, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<IntentId>,
    /// Where it goes.
    pub to: Destination,
    /// Which of those that are there stay.
    pub keep: Keep,
    /// The version to which the cluster is on its way: what was taken before that stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Version>,
}

/// What somebody needs to know who puts a snapshot back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restoring {
    /// Which one.
    pub snapshot: SnapshotId,
    /// The wish that asks for it.
    pub wish: IntentId,
    /// Since when it does.
    #[serde(default)]
    pub asked_at: Timestamp,
    /// Where it is kept.
    pub from: Destination,
    /// All nodes of the cluster, members of etcd first.
    pub nodes: Vec<Machine>,
}

impl Restoring {
    /// By how much revisions are lifted: above all that anybody has seen since any moment to which
    /// the cluster went back before, so that nobody who watches waits for what was.
    pub fn lift(&self) -> u64 {
        let micros = self.asked_at.as_millis().saturating_mul(1000);
        u64::try_from(micros).unwrap_or(0).max(LIFT_LEAST)
    }

    /// The nodes that are members of etcd.
    pub fn members(&self) -> impl Iterator<Item = &Machine> {
        let member = |node: &&Machine| node.role == Role::Control;
        self.nodes.iter().filter(member)
    }
}

/// That a snapshot was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoredFact {
    /// Which one.
    pub snapshot: SnapshotId,
    /// The wish that asked for it.
    pub wish: IntentId,
}

impl Keep {
    /// Of snapshots, the oldest first, those that go when one was just taken. The newest stays, and
    /// so does what was taken before an upgrade to `guard`.
    pub fn outlived(
        &self,
        kept: &[Snapshot],
        guard: Option<Version>,
        now: Timestamp,
    ) -> Vec<SnapshotId> {
        let older = kept.iter().rev().enumerate().skip(1);
        let outlived = older.filter(|(place, snapshot)| {
            let many = u32::try_from(*place).map_or(true, |place| place >= self.count);
            let old = self
                .age
                .is_some_and(|age| now.since(snapshot.id.at()) > age);
            let guarded = guard.is_some() && snapshot.before == guard;
            (many || old) && !guarded
        });
        outlived.map(|(_, snapshot)| snapshot.id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: i64) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + hours * 3_600_000)
    }

    fn taken(at: i64, before: Option<&str>) -> Snapshot {
        Snapshot {
            id: SnapshotId::of(hours(at), "0a1b2c3d4e5f").unwrap(),
            size: 1,
            version: "v1.34.4".parse().unwrap(),
            before: before.map(|version| version.parse().unwrap()),
        }
    }

    fn outlived(keep: Keep, kept: &[Snapshot], guard: Option<&str>) -> Vec<i64> {
        let guard = guard.map(|version| version.parse().unwrap());
        let gone = keep.outlived(kept, guard, hours(100));
        let hour = |id: &SnapshotId| (id.at().as_millis() - hours(0).as_millis()) / 3_600_000;
        gone.iter().map(hour).collect()
    }

    #[test]
    fn an_id_says_when_and_is_read_strictly() {
        let id = SnapshotId::of(hours(0), "0a1b2c3d4e5f").unwrap();
        assert_eq!(id.to_string(), "20260101T000000Z-0a1b2c3d");
        assert_eq!((id.at(), id.to_string().parse()), (hours(0), Ok(id)));
        for wrong in [
            "",
            "20260101T000000Z",
            "20260101T000000Z-0A1B2C3D",
            "20260101T000000Z-0a1b2c3",
            "20261301T000000Z-0a1b2c3d",
            "../20260101T000000Z-0a1b2c3d",
            "2026-01-01T00:00:00Z-0a1b2c3d",
        ] {
            assert!(wrong.parse::<SnapshotId>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn as_many_are_kept_as_are_wished_and_none_that_is_too_old() {
        let kept = [
            taken(1, None),
            taken(2, None),
            taken(90, None),
            taken(99, None),
        ];
        let keep = |count, age: Option<u64>| Keep {
            count,
            age: age.map(Duration::from_hours),
        };
        assert_eq!(outlived(keep(4, None), &kept, None), [0; 0]);
        assert_eq!(outlived(keep(2, None), &kept, None), [2, 1]);
        assert_eq!(outlived(keep(4, Some(24)), &kept, None), [2, 1]);
        assert_eq!(outlived(keep(1, Some(24)), &kept, None), [90, 2, 1]);
    }

    #[test]
    fn the_newest_stays_and_what_was_taken_before_an_upgrade_that_goes_on() {
        let keep = Keep {
            count: 1,
            age: Some(Duration::from_hours(1)),
        };
        let kept = [taken(1, Some("v1.35.8")), taken(2, None), taken(3, None)];
        assert_eq!(outlived(keep, &kept, Some("v1.35.8")), [2]);
        assert_eq!(outlived(keep, &kept, None), [2, 1]);
        assert_eq!(outlived(keep, &kept[..1], None), [0; 0]);
    }

    #[test]
    fn the_next_is_due_after_the_last_or_after_the_start() {
        let mut fact = SnapshotsFact::none_since(hours(0));
        assert_eq!(fact.due(EVERY), hours(24));
        fact.kept = vec![taken(1, Some("v1.35.8")), taken(5, None)];
        assert_eq!(fact.due(EVERY), hours(29));
        let taken = fact.kept.iter().filter(|kept| kept.before.is_some());
        let taken = taken.map(|kept| kept.id.at()).max().unwrap();
        let before = |version: &str, hours| {
            let now = taken.plus(Duration::from_hours(hours));
            fact.before(version.parse().unwrap(), now)
        };
        assert!(before("v1.35.8", 0) && before("v1.35.8", 24));
        assert!(!before("v1.35.8", 25), "it is old");
        assert!(!before("v1.35.9", 0));
    }

    #[test]
    fn revisions_are_lifted_above_those_of_an_earlier_way_back() {
        let back = |asked_at| Restoring {
            snapshot: SnapshotId::of(hours(1), "0a1b2c3d").unwrap(),
            wish: IntentId::derive(crate::id::Origin {
                parent: "test",
                name: "restore",
                ordinal: 0,
                incarnation: 0,
            }),
            asked_at,
            from: Destination::Directory { name: None },
            nodes: Vec::new(),
        };
        let (then, now) = (back(hours(480_000)).lift(), back(hours(480_001)).lift());
        assert!(now > then + 1_000_000_000, "{then} {now}");
        assert_eq!(back(Timestamp::from_millis(0)).lift(), 1_000_000_000);
    }
}
