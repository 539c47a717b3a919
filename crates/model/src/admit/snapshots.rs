//! How the etcd of a cluster is saved: `etcdBackup`.

use super::bucket;
use super::fields::{Fields, span};
use crate::fault::{Code, Faults};
use crate::manifest::Named;
use crate::name::Name;
use crate::snapshot::{Destination, EtcdBackup, Keep};
use crate::source::Value;
use std::str::FromStr;
use std::time::Duration;

/// The most snapshots of one cluster that are kept.
pub(crate) const COUNT_MAX: u32 = 1_000;

/// What a cluster says of its snapshots, or what all have that say nothing, and the secret that it
/// names for them; none where they are switched off.
pub(super) fn of_cluster(
    fields: &mut Fields<'_>,
    faults: &mut Faults,
) -> (Option<EtcdBackup>, Option<Named>) {
    let usual = EtcdBackup::default();
    let Some(mut backup) = fields.mapping("etcdBackup", faults) else {
        return (Some(usual), None);
    };
    let on = match backup.optional_text("mode", faults) {
        Some("on") | None => true,
        Some("off") => false,
        Some(other) => {
            let found = Value::Text(other.to_owned());
            let message = format!("found {found}, allowed: on or off");
            faults.note(backup.path("mode"), Code::Format, message);
            false
        }
    };
    let every: Option<Often> = backup.optional_parsed("every", faults);
    let keep = keep_of(&mut backup, faults);
    let (to, named) = destination_of(&mut backup, faults).unzip();
    backup.finish(faults);
    let whole = on.then(|| EtcdBackup {
        every: every.map_or(usual.every, |every| every.0),
        keep,
        to: to.unwrap_or(usual.to),
    });
    (whole, named.flatten())
}

/// Which snapshots are kept. Who says only how old they get keeps all that are not older.
fn keep_of(backup: &mut Fields<'_>, faults: &mut Faults) -> Keep {
    let usual = Keep::default();
    let Some(mut keep) = backup.mapping("keep", faults) else {
        return usual;
    };
    let count = keep.optional_number("count", 1..=COUNT_MAX, faults);
    let age: Option<Age> = keep.optional_parsed("age", faults);
    keep.finish(faults);
    let all = if age.is_some() {
        COUNT_MAX
    } else {
        usual.count
    };
    Keep {
        count: count.unwrap_or(all),
        age: age.map(|age| age.0),
    }
}

/// Where snapshots are kept: in a directory or in a bucket.
fn destination_of(
    backup: &mut Fields<'_>,
    faults: &mut Faults,
) -> Option<(Destination, Option<Named>)> {
    let mut to = backup.mapping("to", faults)?;
    let (whole, path) = (backup.path("to"), to.path("directory"));
    let (directory, s3) = (to.has("directory"), to.has("s3"));
    let bucket = bucket::of_destination(&mut to, faults);
    let name = to.optional_text("directory", faults);
    let name = name.and_then(|text| match Name::checked(text, Name::LEN_MAX) {
        Ok(name) => Some(name),
        Err(error) => {
            let found = Value::Text(text.to_owned());
            faults.note(
                path.clone(),
                Code::Format,
                format!("found {found}: {error}"),
            );
            None
        }
    });
    to.finish(faults);
    match (directory, s3) {
        (true, false) => {
            let to = Destination::Directory { name: Some(name?) };
            Some((to, None))
        }
        (false, true) => {
            let (bucket, named) = bucket?;
            Some((Destination::S3(Box::new(bucket)), Some(named)))
        }
        (true, true) => {
            let message = "found a directory and a bucket, allowed: one of them";
            faults.note(path, Code::Format, message);
            None
        }
        (false, false) => {
            let message = "found nothing, allowed: directory or s3";
            faults.note(whole, Code::Required, message);
            None
        }
    }
}

/// Why a text is none of these.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("a time is a whole number of minutes, hours or days, such as 30m, 6h or 14d")]
    Form,
    #[error("etcd is saved every 1m to 30d")]
    Often,
    #[error("snapshots are kept for 1h to 3650d")]
    Age,
}

/// How often etcd is saved.
struct Often(Duration);

impl FromStr for Often {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let allowed = Duration::from_mins(1)..=Duration::from_hours(30 * 24);
        let span = span(text).ok_or(Error::Form)?;
        let span = Some(span).filter(|span| allowed.contains(span));
        span.map(Self).ok_or(Error::Often)
    }
}

/// How long a snapshot is kept.
struct Age(Duration);

impl FromStr for Age {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let allowed = Duration::from_hours(1)..=Duration::from_hours(3_650 * 24);
        let span = span(text).ok_or(Error::Form)?;
        let span = Some(span).filter(|span| allowed.contains(span));
        span.map(Self).ok_or(Error::Age)
    }
}
