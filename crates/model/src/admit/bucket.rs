//! A bucket that snapshots are kept in: `etcdBackup.to.s3`.

use super::fields::{Fields, wrong};
use super::proxy::is_url;
use super::secrets;
use crate::fault::{Code, Faults};
use crate::manifest::Named;
use crate::secret::SecretRef;
use crate::snapshot::Bucket;
use crate::source::Value;
use std::str::FromStr;

/// The region that most stores take which have none.
const REGION: &str = "us-east-1";

/// The longest list of certificates: as in a manifest of Kubernetes, room for a dozen.
const CA_MAX: usize = 32 * 1024;

/// What a certificate begins with.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// What a key has in its first line.
const KEY: &str = "PRIVATE KEY-----";

/// The bucket of a destination, and the secret that opens it as it is named.
pub(super) fn of_destination(to: &mut Fields<'_>, faults: &mut Faults) -> Option<(Bucket, Named)> {
    let mut s3 = to.mapping("s3", faults)?;
    let endpoint = endpoint_of(&mut s3, faults);
    let bucket: Option<BucketName> = s3.parsed("bucket", faults);
    let region: Option<Region> = s3.optional_parsed("region", faults);
    let prefix: Option<Prefix> = s3.optional_parsed("prefix", faults);
    let ca = ca_of(&mut s3, faults);
    let path = s3.path("secretRef");
    let named = secrets::named_whole(&mut s3, faults);
    if named.is_none() && !s3.has("secretRef") {
        let message = "found nothing; this field is required";
        faults.note(path, Code::Required, message);
    }
    s3.finish(faults);
    let named = named?;
    let entry = |key: &str| {
        Some(SecretRef {
            name: named.secret.name.clone(),
            key: Some(key.parse().ok()?),
        })
    };
    let bucket = Bucket {
        endpoint: endpoint?,
        bucket: bucket?.0,
        region: region.map_or_else(|| REGION.to_owned(), |region| region.0),
        prefix: prefix.map(|prefix| prefix.0),
        ca,
        access_key: entry(Bucket::ACCESS_KEY)?,
        secret_key: entry(Bucket::SECRET_KEY)?,
    };
    Some((bucket, named))
}

/// Where the store answers.
fn endpoint_of(s3: &mut Fields<'_>, faults: &mut Faults) -> Option<String> {
    /// What is allowed, by example.
    const FOR_EXAMPLE: &str = "allowed: http:// or https://, a host, perhaps a port, and nothing \
        behind them, such as https://s3.example.org:9000";
    let text = s3.text("endpoint", faults)?;
    let whole = text.strip_suffix('/').unwrap_or(text);
    if is_url(whole) && !whole.ends_with('/') {
        return Some(whole.to_owned());
    }
    // What stands before an `@` may be a password: it is not repeated.
    let found = if text.contains('@') {
        "a user or a password, which a manifest must not hold".to_owned()
    } else {
        Value::Text(text.to_owned()).to_string()
    };
    let message = format!("found {found}, {FOR_EXAMPLE}");
    faults.note(s3.path("endpoint"), Code::Format, message);
    None
}

/// The certificates of those who vouch for the store.
fn ca_of(s3: &mut Fields<'_>, faults: &mut Faults) -> Option<String> {
    let allowed = "certificates in PEM";
    let path = s3.path("ca");
    match s3.optional("ca")? {
        Value::Text(text) if text.len() > CA_MAX => {
            let found = text.chars().count();
            let message = format!("found {found} characters, allowed: at most {CA_MAX}");
            faults.note(path, Code::Range, message);
            None
        }
        Value::Text(text) if text.contains(CERTIFICATE) && !text.contains(KEY) => {
            Some(text.clone())
        }
        // Whatever it is, it may be secret: it is not repeated.
        Value::Text(text) => {
            let key = text.contains(KEY);
            let found = if key {
                "a private key"
            } else {
                "no certificate"
            };
            let message = format!("found {found}, allowed: {allowed}");
            faults.note(path, Code::Format, message);
            None
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::List(_)
        | Value::Map(_)) => {
            wrong(faults, path, other, allowed);
            None
        }
    }
}

/// Why a text is none of these.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "the name of a bucket has 3 to 63 of a-z, 0-9, `-` and `.`, begins and ends with a letter \
         or digit, and has no two dots in a row"
    )]
    Bucket,
    #[error("the name of a region has 1 to 63 of a-z, 0-9 and `-`")]
    Region,
    #[error(
        "a prefix has 1 to 200 of a-z, A-Z, 0-9, `-`, `_`, `.` and, inside, `/`, and no part of it \
         is empty, `.` or `..`"
    )]
    Prefix,
}

struct BucketName(String);

impl FromStr for BucketName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let inner = |byte: u8| plain(byte) || matches!(byte, b'-' | b'.');
        let edges = [text.bytes().next(), text.bytes().last()];
        let edges = edges.into_iter().all(|edge| edge.is_some_and(plain));
        let whole = (3..=63).contains(&text.len()) && edges && text.bytes().all(inner);
        let usable = whole && !text.contains("..");
        usable.then(|| Self(text.to_owned())).ok_or(Error::Bucket)
    }
}

struct Region(String);

impl FromStr for Region {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let usable = (1..=63).contains(&text.len()) && text.bytes().all(plain);
        usable.then(|| Self(text.to_owned())).ok_or(Error::Region)
    }
}

struct Prefix(String);

impl FromStr for Prefix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(plain);
        let usable = (1..=200).contains(&text.len()) && text.split('/').all(part);
        usable.then(|| Self(text.to_owned())).ok_or(Error::Prefix)
    }
}
