//! Repositories of modules in the simulated world, and where their tags and branches lead.
//!
//! Every repository that somebody names is there, and has every tag and branch: a manifest that works
//! elsewhere can be rehearsed. Where they lead is made up, until somebody moves them.

use super::state::State;
use model::cluster::{Machine, Origin};
use model::observed::{CommitFact, Fact, Observed, UnresolvedFact};
use model::templates::{Commit, Reference};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What was said of repositories; all others answer, and lead where nobody has moved them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Modules {
    /// Tags and branches that somebody moved.
    moved: Vec<(Reference, Commit)>,
    /// Repositories that do not answer.
    silent: BTreeSet<String>,
}

impl Modules {
    /// Lets a tag or a branch lead to a commit.
    pub(super) fn lead(&mut self, reference: Reference, commit: Commit) {
        self.moved.retain(|(of, _)| *of != reference);
        self.moved.push((reference, commit));
    }

    /// Lets a repository answer, or not.
    pub(super) fn answer(&mut self, repository: String, answers: bool) {
        if answers {
            self.silent.remove(&repository);
        } else {
            self.silent.insert(repository);
        }
    }

    /// Begins with what was observed elsewhere.
    pub(super) fn furnish(&mut self, observed: &Observed) {
        for (reference, followed) in &observed.followed {
            if let Some((commit, _)) = &followed.commit {
                self.lead(reference.clone(), commit.clone());
            }
            let answers = followed.trouble().is_none();
            self.answer(reference.repository.clone(), answers);
        }
    }

    fn look(&self, reference: Reference) -> Option<Fact> {
        if self.silent.contains(&reference.repository) {
            let trouble = UnresolvedFact {
                because: "the repository does not answer".to_owned(),
                lasting: false,
            };
            return Some(Fact::Unresolved(reference, trouble));
        }
        let moved = self.moved.iter().find(|(of, _)| *of == reference);
        let moved = moved.map(|(_, commit)| commit.clone());
        let commit = moved.or_else(|| made_up(&reference))?;
        Some(Fact::Commit(reference, CommitFact { commit }))
    }
}

impl State {
    /// Where the tags and branches lead that machines are made from.
    pub(super) fn modules_facts(&self, machines: &[Machine]) -> Vec<Fact> {
        let origins = machines.iter().map(|machine| &machine.origin);
        let references: BTreeSet<_> = origins.filter_map(Origin::reference).collect();
        let facts = references.into_iter();
        facts.filter_map(|of| self.modules.look(of)).collect()
    }
}

/// A commit that is always the same for a name, and hardly ever for two.
fn made_up(reference: &Reference) -> Option<Commit> {
    // FNV-1a: small, and the same on every machine.
    let hash = reference
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let digits = format!("{hash:016x}");
    format!("{digits}{digits}{}", &digits[..8]).parse().ok()
}
