//! Where the tags and branches lead that machines are made from.
//!
//! A repository is asked now and then, not with every look at every cluster: one answer serves all
//! clusters for a while, and one that does not answer is left alone for longer each time.

use crate::git::{Pass, lead};
use driver::kinds::Owner;
use driver::{Context, Target, Unopened};
use futures_util::future::join_all;
use model::name::Name;
use model::observed::{CommitFact, Fact, Observation, UnresolvedFact};
use model::secret::{EntryName, SecretRef};
use model::templates::{Commit, Reference, TOKEN, Templates, USERNAME, USERNAME_USUAL};
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long an answer is believed before the repository is asked again. A branch that moved is
/// news that can wait, and whoever opens a secret is written down each time.
const BELIEVED: Duration = Duration::from_mins(5);

/// The first pause after a repository did not answer; it doubles each time, up to [`BELIEVED`].
const PAUSE_MIN: Duration = Duration::from_secs(30);

/// What is asked for: a tag or a branch, and with which secret of which cluster, as two may open
/// one repository by two.
type Asked = (Reference, Option<(model::id::ClusterId, Name)>);

/// What was last answered.
#[derive(Clone)]
struct Answer {
    at: Timestamp,
    said: Result<Commit, UnresolvedFact>,
    /// How often in a row there was none.
    failures: u32,
}

impl Answer {
    fn is_fresh(&self, now: Timestamp) -> bool {
        let doublings = self.failures.saturating_sub(1).min(16);
        let pause = match self.failures {
            0 => BELIEVED,
            _ => PAUSE_MIN.saturating_mul(1 << doublings).min(BELIEVED),
        };
        now.since(self.at) < pause
    }
}

/// Looks where tags and branches of repositories lead.
pub struct Repositories {
    /// What stands before the name of a repository.
    base: String,
    answers: Mutex<BTreeMap<Asked, Answer>>,
}

impl Default for Repositories {
    fn default() -> Self {
        Self::at("https://")
    }
}

impl Repositories {
    /// Repositories whose names follow this, which is `https://` unless somebody tries it out.
    pub fn at(base: impl Into<String>) -> Self {
        Self {
            base: base.into(),
            answers: Mutex::default(),
        }
    }

    /// Looks up every tag and branch that machines of a cluster are made from.
    pub async fn look(&self, cx: &Context, target: &Target) -> Vec<Observation> {
        let origins = target.machines.iter().map(|machine| &machine.origin);
        let templates = origins.filter_map(model::cluster::Origin::templates);
        let asked: BTreeSet<Asked> = templates
            .filter_map(|templates| asked(target, templates))
            .collect();
        let seen = join_all(asked.into_iter().map(|of| self.answered(cx, of))).await;
        let cluster = target.cluster;
        let seen = seen.into_iter().flatten();
        seen.map(|(fact, at)| Observation { cluster, fact, at })
            .collect()
    }

    /// What is known of one; nothing where the look was called off.
    async fn answered(&self, cx: &Context, asked: Asked) -> Option<(Fact, Timestamp)> {
        let known = self.known().get(&asked).cloned();
        let answer = match known {
            Some(known) if known.is_fresh(cx.now()) => known,
            known => {
                let at = cx.now();
                let said = self.ask(cx, &asked).await;
                if cx.is_cancelled() {
                    return None;
                }
                let before = known.map_or(0, |known| known.failures);
                let failures = if said.is_ok() { 0 } else { before + 1 };
                let answer = Answer { at, said, failures };
                self.known().insert(asked.clone(), answer.clone());
                answer
            }
        };
        let (reference, _) = asked;
        let fact = match answer.said {
            Ok(commit) => Fact::Commit(reference, CommitFact { commit }),
            Err(trouble) => Fact::Unresolved(reference, trouble),
        };
        Some((fact, answer.at))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<Asked, Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(
        &self,
        cx: &Context,
        (reference, secret): &Asked,
    ) -> Result<Commit, UnresolvedFact> {
        let pass = match secret {
            Some((_, name)) => Some(pass(cx, name).await?),
            None => None,
        };
        let led = lead(cx, &self.base, reference, pass.as_ref()).await;
        led.map_err(|error| UnresolvedFact {
            because: error.to_string(),
            lasting: error.kind.owner() == Owner::Person,
        })
    }
}

/// What has to be asked for these modules.
fn asked(target: &Target, templates: &Templates) -> Option<Asked> {
    let secret = templates.secret();
    let secret = secret.map(|secret| (target.cluster, secret.name));
    Some((templates.reference()?, secret))
}

/// Opens what opens a repository.
async fn pass(cx: &Context, name: &Name) -> Result<Pass, UnresolvedFact> {
    let entry = |key: &str| SecretRef {
        name: name.clone(),
        key: EntryName::try_from(key.to_owned()).ok(),
    };
    let token = cx.secret(&entry(TOKEN)).await.map_err(|unopened| {
        let (error, lasting) = match unopened {
            Unopened::Retry(error) => (error, false),
            Unopened::Stuck(error) => (error, true),
        };
        UnresolvedFact {
            because: error.to_string(),
            lasting,
        }
    })?;
    // It need not be there.
    let username = cx.secret(&entry(USERNAME)).await.ok();
    let username = username.map(|name| String::from_utf8_lossy(name.expose()).trim().to_owned());
    Ok(Pass {
        username: username.unwrap_or_else(|| USERNAME_USUAL.to_owned()),
        token,
    })
}
