//! Entries of the audit chain, and the one rule by which they are linked and verified.
//!
//! Each entry's digest covers its own fields and the digest before it, so that changing or
//! removing one breaks the chain at that place. The rule is here, without I/O, because the
//! database and a file that was exported from it must be judged by the same one.

use crate::time::Timestamp;
use sha2::{Digest as _, Sha256};

/// What the first entry has in the place of the digest before it.
pub const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One entry of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    /// Its place, counted from 1 without gaps.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// In which project; none for what belongs to all. A text and not a name, because an
    /// entry that somebody changed must still be read to be judged.
    pub project: Option<String>,
    /// Who.
    pub actor: String,
    /// From where.
    pub origin: String,
    /// What was done: `manifest.submit`, `secret.open`.
    pub action: String,
    /// To what: `manifest/hello`.
    pub object: String,
    /// The object's generation before.
    pub was: Option<u64>,
    /// The object's generation after.
    pub became: Option<u64>,
    /// What else is worth knowing; never a secret.
    pub detail: String,
    /// The digest of the entry before.
    pub previous: String,
    /// The digest of this one.
    pub digest: String,
}

impl Audited {
    /// The digest that an entry with these fields has.
    pub fn computed(&self) -> String {
        let mut hash = Sha256::new();
        let mut cover = |field: Option<&str>| {
            // A length before each field, and another mark for none: no two entries that
            // differ are covered by the same bytes.
            let (mark, text) = field.map_or(("-", ""), |text| ("+", text));
            hash.update(format!("{mark}{}:", text.len()));
            hash.update(text);
        };
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        cover(Some(&self.previous));
        cover(Some(&self.seq.to_string()));
        cover(Some(&self.at.as_millis().to_string()));
        cover(self.project.as_deref());
        cover(Some(&self.actor));
        cover(Some(&self.origin));
        cover(Some(&self.action));
        cover(Some(&self.object));
        cover(number(self.was).as_deref());
        cover(number(self.became).as_deref());
        cover(Some(&self.detail));
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// What a walk along the chain found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Entries that are as they were written.
    pub entries: u64,
    /// The digest of the last good one, to be kept elsewhere.
    pub head: String,
    /// The first entry that is not as it was written, and in what way.
    pub broken: Option<(u64, &'static str)>,
}

/// Walks along a chain, entry by entry.
#[derive(Debug, Clone)]
pub struct Walk {
    verified: Verified,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            verified: Verified {
                entries: 0,
                head: BEGINNING.to_owned(),
                broken: None,
            },
        }
    }
}

impl Walk {
    /// Looks at the next entry; false when the chain is broken here.
    pub fn step(&mut self, entry: &Audited) -> bool {
        let known = &self.verified;
        let wrong = if entry.seq != known.entries + 1 {
            Some("an entry before it is missing")
        } else if entry.previous != known.head {
            Some("it does not follow the entry before it")
        } else if entry.digest != entry.computed() {
            Some("it was changed after it was written")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.refuse(entry.seq, wrong);
            return false;
        }
        self.verified.entries = entry.seq;
        self.verified.head.clone_from(&entry.digest);
        true
    }

    /// Ends the walk at an entry that cannot even be one.
    pub const fn refuse(&mut self, seq: u64, wrong: &'static str) {
        self.verified.broken = Some((seq, wrong));
    }

    /// Where the next entry belongs.
    pub const fn next(&self) -> u64 {
        self.verified.entries + 1
    }

    /// What was found.
    pub fn end(self) -> Verified {
        self.verified
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(length: u64) -> Vec<Audited> {
        let mut previous = BEGINNING.to_owned();
        let entry = |seq| {
            let mut entry = Audited {
                seq,
                at: Timestamp::from_millis(1_767_225_600_000),
                project: Some("default".to_owned()),
                actor: "admin".to_owned(),
                origin: "127.0.0.1".to_owned(),
                action: "manifest.submit".to_owned(),
                object: "manifest/hello".to_owned(),
                was: seq.checked_sub(1),
                became: Some(seq),
                detail: String::new(),
                previous: previous.clone(),
                digest: String::new(),
            };
            entry.digest = entry.computed();
            previous.clone_from(&entry.digest);
            entry
        };
        (1..=length).map(entry).collect()
    }

    fn found(chain: &[Audited]) -> Verified {
        let mut walk = Walk::default();
        let _ = chain.iter().all(|entry| walk.step(entry));
        walk.end()
    }

    #[test]
    fn a_chain_as_it_was_written_is_whole() {
        let chain = chain(3);
        let whole = found(&chain);
        assert_eq!((whole.entries, whole.broken), (3, None));
        assert_eq!(whole.head, chain[2].digest);
        // Whoever keeps the chain elsewhere relies on this rule for ever.
        assert_eq!(
            chain[0].digest,
            "5ed015cbb9e259afe5f28a40cf4a72723257df69f6f1251636cd22c9dda3b2c6"
        );
    }

    #[test]
    fn every_field_that_is_changed_is_noticed() {
        type Change = fn(&mut Audited);
        let changes: [Change; 10] = [
            |entry| entry.at = Timestamp::from_millis(entry.at.as_millis() + 1),
            |entry| entry.project = None,
            |entry| entry.actor.push('!'),
            |entry| entry.origin.clear(),
            |entry| entry.action = "secret.open".to_owned(),
            |entry| entry.object.push('2'),
            |entry| entry.was = None,
            |entry| entry.became = Some(7),
            |entry| entry.detail = " ".to_owned(),
            |entry| entry.digest.replace_range(..1, "x"),
        ];
        for change in changes {
            let mut chain = chain(3);
            change(&mut chain[1]);
            let broken = found(&chain).broken;
            assert_eq!(broken, Some((2, "it was changed after it was written")));
        }
    }

    #[test]
    fn an_entry_that_is_missing_or_made_up_is_noticed() {
        let mut gap = chain(4);
        gap.remove(1);
        assert_eq!(
            found(&gap).broken,
            Some((3, "an entry before it is missing"))
        );
        let mut forged = chain(3);
        forged[1].detail = "forged".to_owned();
        forged[1].digest = forged[1].computed();
        assert_eq!(
            found(&forged).broken,
            Some((3, "it does not follow the entry before it"))
        );
    }
}
