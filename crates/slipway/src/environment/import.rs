//! `slipway env import --octopod`: the old database is read here, and handed over by the public
//! contract.

mod pgpass;

use crate::failure::Failure;
use crate::place;
use cli::{Left, Offer, Unread};
use driver::Clock;
use model::environment::octopod::{self, Entry};
use model::environment::taken::{Taken, TakenAction};
use model::secret::Secret;
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::ExitCode;
use store::{Octopod, OctopodError, Store};

/// Entries of logs that are read at once.
const ENTRIES_AT_ONCE: usize = 64;

/// Bytes of output in one piece. In the worst case their JSON is six times as long, and still fits
/// into one request.
const PIECE_BYTES_MAX: usize = 2 * TakenAction::OUTPUT_BYTES_MAX;

/// Entries in one piece.
const PIECE_ENTRIES_MAX: usize = 64;

/// Takes environments over.
pub(super) async fn run(
    arguments: cli::EnvImport,
    global: &cli::Global,
) -> anyhow::Result<ExitCode> {
    let url = arguments.octopod.clone();
    let (shown, secret) = Store::shown(&url).map_err(|cause| {
        let error = OctopodError::Unread { cause };
        Failure {
            what: format!("cannot use this database: {}", causes(&error)),
            code: error.code(),
            hint: error.hint().to_owned(),
        }
    })?;
    if secret {
        return Err(Failure {
            what: "a password stands on the command line, where every user of this machine can read it"
                .to_owned(),
            code: "IMPORT-005",
            hint: "leave it out of the address, and put it into a file (--password-file), PGPASSWORD or ~/.pgpass"
                .to_owned(),
        }
        .into());
    }
    let password = place::read(arguments.password_file.as_ref())?;
    let password = password.or_else(|| pgpass::find(&url));
    let source = Source {
        url,
        shown,
        password,
        now: Clock::System.now(),
        octopod: None,
        waiting: VecDeque::new(),
        read: BTreeMap::new(),
        left: Vec::new(),
    };
    Ok(cli::import(arguments, source, global).await)
}

/// The database of an Octopod, as far as it was read.
struct Source {
    url: String,
    shown: String,
    password: Option<Secret>,
    now: Timestamp,
    octopod: Option<Octopod>,
    /// Environments that were not handed over yet, with the numbers of entries of their logs.
    waiting: VecDeque<Waiting>,
    /// Entries that were read and not handed over yet.
    read: BTreeMap<i64, Entry>,
    left: Vec<Left>,
}

/// An environment on its way.
struct Waiting {
    taken: Taken,
    entries: VecDeque<i64>,
    /// Whether nothing of it was handed over yet.
    fresh: bool,
}

impl cli::Elsewhere for Source {
    async fn open(&mut self, password: Option<&Secret>) -> Result<Offer, Unread> {
        let password = password.or(self.password.as_ref());
        let opened = Octopod::open(&self.url, password).await;
        let octopod = opened.map_err(|error| unread(&self.shown, &error))?;
        let failed = |error: OctopodError| unread(&self.shown, &error);
        let rows = octopod.deployments().await.map_err(failed)?;
        let mut entries: BTreeMap<i64, VecDeque<i64>> = BTreeMap::new();
        for (deployment, entry) in octopod.entries().await.map_err(failed)? {
            entries.entry(deployment).or_default().push_back(entry);
        }
        let mut offer = Offer {
            from: self.shown.clone(),
            ..Offer::default()
        };
        for row in rows {
            let (taken, left) = octopod::environment(&row, self.now);
            offer.left.extend(left.into_iter().map(told));
            let Some(taken) = taken else { continue };
            let entries = entries.remove(&row.id).unwrap_or_default();
            offer.entries.insert(taken.name.to_string(), entries.len());
            offer.environments.push(taken.clone().into());
            self.waiting.push_back(Waiting {
                taken,
                entries,
                fresh: true,
            });
        }
        self.octopod = Some(octopod);
        Ok(offer)
    }

    async fn next(
        &mut self,
        wanted: &BTreeSet<String>,
    ) -> Result<Option<api::ImportEnvironment>, Unread> {
        while let Some(first) = self.waiting.front() {
            let handed_over = first.entries.is_empty() && !first.fresh;
            if handed_over || !wanted.contains(first.taken.name.as_str()) {
                self.waiting.pop_front();
                continue;
            }
            self.read_on().await?;
            return Ok(self.piece());
        }
        Ok(None)
    }

    fn left(&mut self) -> Vec<Left> {
        std::mem::take(&mut self.left)
    }
}

impl Source {
    /// Reads entries of the logs of those that are next, unless they were read.
    async fn read_on(&mut self) -> Result<(), Unread> {
        let missing = |one: &Waiting| {
            one.entries
                .front()
                .is_some_and(|id| !self.read.contains_key(id))
        };
        if !self.waiting.front().is_some_and(missing) {
            return Ok(());
        }
        let next = self.waiting.iter().flat_map(|one| one.entries.iter());
        let next: Vec<i64> = next.take(ENTRIES_AT_ONCE).copied().collect();
        let Some(octopod) = &self.octopod else {
            return Ok(());
        };
        let log = octopod.log(&next).await;
        let log = log.map_err(|error| unread(&self.shown, &error))?;
        self.read = log.into_iter().map(|entry| (entry.id, entry)).collect();
        // What is not there is not waited for.
        let there = |id: &i64| self.read.contains_key(id) || !next.contains(id);
        for one in self.waiting.iter_mut().take(ENTRIES_AT_ONCE) {
            one.entries.retain(there);
        }
        Ok(())
    }

    /// A piece of the first environment: as many entries as were read and fit.
    fn piece(&mut self) -> Option<api::ImportEnvironment> {
        let first = self.waiting.front_mut()?;
        first.fresh = false;
        let mut piece = first.taken.clone();
        let mut bytes = 0;
        while let Some(id) = first.entries.front()
            && piece.actions.len() < PIECE_ENTRIES_MAX
        {
            let Some(entry) = self.read.get(id) else {
                break;
            };
            // What is cut is no longer than this.
            let most = TakenAction::OUTPUT_BYTES_MAX;
            let more = entry.stdout.len().min(most) + entry.stderr.len().min(most);
            if bytes > 0 && bytes + more > PIECE_BYTES_MAX {
                break;
            }
            bytes += more.max(1);
            let Some(entry) = self.read.remove(id) else {
                break;
            };
            first.entries.pop_front();
            let (action, left) = octopod::action(piece.name.as_str(), entry, self.now);
            self.left.extend(left.into_iter().map(told));
            piece.actions.extend(action);
        }
        Some(piece.into())
    }
}

fn told(left: octopod::Left) -> Left {
    let octopod::Left { what, why } = left;
    Left { what, why }
}

fn unread(shown: &str, error: &OctopodError) -> Unread {
    Unread {
        what: format!("cannot take over from {shown}: {}", causes(error)),
        code: error.code(),
        hint: error.hint().to_owned(),
        denied: error.is_denied(),
    }
}

/// An error with all that caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut causes: Vec<_> = std::iter::successors(Some(error), |error| error.source())
        .map(ToString::to_string)
        .collect();
    causes.dedup();
    causes.join(": ")
}
