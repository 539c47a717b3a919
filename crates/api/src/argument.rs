//! Checks what a person wrote in place of a name or an id, before anybody is asked.
//!
//! The rules are those of the server: what passes here is never refused there for its form.

use model::id::{IntentId, JourneyId, TaskId, TokenId};
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
    }
}
