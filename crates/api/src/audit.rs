//! The audit chain: who did what, from where, and whether the record is as it was written.

use crate::time::Time;
use model::audit::{Audited, Verified, Walk};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of an export: one entry of JSON per line, oldest first.
pub const EXPORT_MEDIA_TYPE: &str = "application/x-ndjson";

/// One entry of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditView {
    /// Its place in the chain, counted from 1 without gaps.
    pub seq: u64,
    /// When.
    pub at: Time,
    /// In which project; null for what belongs to all.
    pub project: Option<String>,
    /// Who: the name of a token, a worker.
    pub actor: String,
    /// From where: an address and the token that was shown, or a task.
    pub origin: String,
    /// What was done: `manifest.submit`, `secret.open`.
    pub action: String,
    /// To what: `manifest/hello`.
    pub object: String,
    /// The object's generation before; null when there was none.
    pub was: Option<u64>,
    /// The object's generation after; null when there is none.
    pub became: Option<u64>,
    /// What else is worth knowing; never a secret.
    pub detail: String,
    /// The digest of the entry before.
    pub previous: String,
    /// The SHA-256 of this one and of the digest before it, in hex.
    pub digest: String,
}

impl From<Audited> for AuditView {
    fn from(entry: Audited) -> Self {
        let Audited {
            seq,
            at,
            project,
            actor,
            origin,
            action,
            object,
            was,
            became,
            detail,
            previous,
            digest,
        } = entry;
        Self {
            seq,
            at: at.into(),
            project,
            actor,
            origin,
            action,
            object,
            was,
            became,
            detail,
            previous,
            digest,
        }
    }
}

impl From<AuditView> for Audited {
    fn from(view: AuditView) -> Self {
        let AuditView {
            seq,
            at,
            project,
            actor,
            origin,
            action,
            object,
            was,
            became,
            detail,
            previous,
            digest,
        } = view;
        Self {
            seq,
            at: at.timestamp(),
            project,
            actor,
            origin,
            action,
            object,
            was,
            became,
            detail,
            previous,
            digest,
        }
    }
}

/// What a walk along the chain found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Whether every entry is as it was written.
    pub intact: bool,
    /// How many entries are good, from the first on.
    pub entries: u64,
    /// The digest of the last good one. Kept elsewhere, it proves later that nothing before
    /// it was changed, not even by somebody who can write the whole chain anew.
    pub head: String,
    /// The first entry that is not as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<Broken>,
}

/// An entry that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Broken {
    /// Its place in the chain.
    pub seq: u64,
    /// In what way.
    pub reason: String,
}

impl From<Verified> for Verification {
    fn from(verified: Verified) -> Self {
        let Verified {
            entries,
            head,
            broken,
        } = verified;
        Self {
            intact: broken.is_none(),
            entries,
            head,
            broken: broken.map(|(seq, reason)| Broken {
                seq,
                reason: reason.to_owned(),
            }),
        }
    }
}

/// Verifies an export line by line, by the rule of the server and without one.
#[derive(Debug, Default)]
pub struct Verifier {
    walk: Walk,
}

impl Verifier {
    /// Looks at the next line; false when the chain is broken here.
    pub fn line(&mut self, line: &str) -> bool {
        let Some(entry) = entry(line) else {
            let seq = self.walk.next();
            self.walk.refuse(seq, "its line is not an entry");
            return false;
        };
        self.walk.step(&entry.into())
    }

    /// What was found.
    pub fn end(self) -> Verification {
        self.walk.end().into()
    }
}

/// The entry in a line that says that and nothing else: what reading leaves out, such as a
/// field of another name, would be covered by no digest.
fn entry(line: &str) -> Option<AuditView> {
    let said: serde_json::Value = serde_json::from_str(line).ok()?;
    let view: AuditView = serde_json::from_str(line).ok()?;
    let meant = serde_json::to_value(&view).ok()?;
    (said == meant).then_some(view)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::audit::BEGINNING;
    use model::time::Timestamp;

    fn export() -> Vec<String> {
        let mut previous = BEGINNING.to_owned();
        let line = |seq| {
            let mut entry = Audited {
                seq,
                at: Timestamp::from_millis(1_767_225_600_123),
                project: (seq > 1).then(|| "default".to_owned()),
                actor: "admin \"☃\"".to_owned(),
                origin: "127.0.0.1".to_owned(),
                action: "manifest.submit".to_owned(),
                object: "manifest/hello".to_owned(),
                was: seq.checked_sub(2),
                became: Some(seq),
                detail: "1 cluster".to_owned(),
                previous: previous.clone(),
                digest: String::new(),
            };
            entry.digest = entry.computed();
            previous.clone_from(&entry.digest);
            serde_json::to_string(&AuditView::from(entry)).unwrap()
        };
        (1..=3).map(line).collect()
    }

    fn verified<'a>(lines: impl IntoIterator<Item = &'a String>) -> Verification {
        let mut verifier = Verifier::default();
        let _ = lines.into_iter().all(|line| verifier.line(line));
        verifier.end()
    }

    #[test]
    fn what_goes_over_the_wire_is_still_a_chain() {
        let found = verified(&export());
        assert!(found.intact, "{found:?}");
        assert_eq!(found.entries, 3);
    }

    #[test]
    fn no_byte_with_a_meaning_can_be_changed_unnoticed() {
        let lines = export();
        for (number, line) in lines.iter().enumerate() {
            for at in 0..line.len() {
                let mut changed = line.clone().into_bytes();
                changed[at] = if changed[at] == b'7' { b'8' } else { b'7' };
                let mut lines = lines.clone();
                lines[number] = String::from_utf8_lossy(&changed).into_owned();
                let found = verified(&lines);
                let place = found.broken.map(|broken| broken.seq);
                assert!(!found.intact && place.is_some(), "{}", lines[number]);
                assert_eq!(found.entries, u64::try_from(number).unwrap());
            }
        }
    }

    #[test]
    fn a_line_that_is_cut_off_is_named() {
        let mut lines = export();
        lines[2].truncate(40);
        let found = verified(&lines);
        assert_eq!((found.intact, found.entries), (false, 2));
        let broken = found.broken.unwrap();
        assert_eq!(
            (broken.seq, broken.reason.as_str()),
            (3, "its line is not an entry")
        );
    }
}
