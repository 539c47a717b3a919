//! Checks what a person wrote in place of a name or an id, before anybody is asked.
//!
//! The rules are those of the server: what passes here is never refused there for its form.

use model::environment::EnvironmentName;
use model::environment::config::{Key, Value};
use model::id::{ActionId, DeliveryId, IntentId, JourneyId, TaskId, TokenId};
use model::name::Name;
use model::secret::EntryName;
use model::snapshot::SnapshotId;

/// A name of a project, manifest, cluster, pool or machine.
pub fn name(text: &str) -> Result<String, String> {
    checked::<Name>(text)
}

/// The name of an entry of a secret.
pub fn entry(text: &str) -> Result<String, String> {
    checked::<EntryName>(text)
}

/// The id of a task.
pub fn task(text: &str) -> Result<String, String> {
    checked::<TaskId>(text)
}

/// The id of an intent.
pub fn intent(text: &str) -> Result<String, String> {
    checked::<IntentId>(text)
}

/// The id of a snapshot.
pub fn snapshot(text: &str) -> Result<String, String> {
    checked::<SnapshotId>(text)
}

/// The id of a token.
pub fn token(text: &str) -> Result<String, String> {
    checked::<TokenId>(text)
}

/// The id of a journey that was shown.
pub fn plan(text: &str) -> Result<String, String> {
    checked::<JourneyId>(text)
}

/// The name of an environment.
pub fn environment(text: &str) -> Result<String, String> {
    checked::<EnvironmentName>(text)
}

/// The id of an action at an environment.
pub fn action(text: &str) -> Result<String, String> {
    checked::<ActionId>(text)
}

/// The id of a message to somebody outside.
pub fn delivery(text: &str) -> Result<String, String> {
    checked::<DeliveryId>(text)
}

/// The name of a setting of an environment.
pub fn key(text: &str) -> Result<String, String> {
    checked::<Key>(text)
}

/// A setting of an environment with its value: `KEY=VALUE`, where the value begins behind the
/// first `=`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write KEY=VALUE".to_owned());
    };
    checked::<Value>(value)?;
    Ok((key(name)?, value.to_owned()))
}

fn checked<T>(text: &str) -> Result<String, String>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    text.parse::<T>()
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_comes_back_and_what_is_wrong_is_explained() {
        assert_eq!(name("edge"), Ok("edge".to_owned()));
        assert_eq!(
            plan("plan-0000000000001"),
            Ok("plan-0000000000001".to_owned())
        );
        let wrong = [name("O!"), task("nope"), intent("task-0000000000001")];
        assert!(wrong.iter().all(Result::is_err), "{wrong:?}");
        let value = "b=\"c\"\n";
        assert_eq!(
            setting(&format!("a={value}")),
            Ok(("a".to_owned(), value.to_owned()))
        );
        let wrong = ["a", "=b", "a..b=c", "a=\0"].map(|text| setting(text).unwrap_err());
        assert_eq!(
            wrong.join("; "),
            "write KEY=VALUE; key is empty; key `a..b` has a dot or a blank too many; `a.b` would do; \
             value has a NUL at position 0, which no program can be given"
        );
    }
}
