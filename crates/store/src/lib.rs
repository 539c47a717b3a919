//! One database for all that must outlive the program.
//!
//! Manifests and desired state by generation, intents, tasks with their queue and logs,
//! claims, the disruption ledger, observations, environments and events. Questions are asked of a
//! [`Store`]; each is one transaction, so an answer is always of one piece. The SQL is
//! written once, in portable words, against a small body (`body.rs`) that `SQLite` fills.
//!
//! **Invariant:** every change of desired state goes through `plan::expand`, `plan::retire`,
//! `plan::recovered` or `plan::give_back`, in the transaction that stores it, or through
//! `plan::advance`, whose step is stored only while what it was made from is current. Nothing
//! here decides what to do next and nothing here touches the world.

mod advance;
mod audit;
mod backlog;
mod blast;
mod body;
mod claims;
mod clusters;
mod commit;
mod desired;
mod dump;
mod environments;
mod error;
mod events;
mod given_back;
mod intents;
mod journeys;
mod keys;
mod lives;
mod logs;
mod look;
mod machines;
mod manifests;
mod migrations;
mod notes;
mod observations;
mod paces;
mod page;
mod postgres;
mod projects;
mod queue;
mod recover;
mod runner;
mod sealed;
mod sqlite;
mod stems;
mod submit;
mod sweep;
mod tasks;
mod tokens;
mod twin;
mod uses;
mod waits;
mod wish;

pub use advance::Advanced;
pub use audit::Actor;
pub use backlog::Backlog;
pub use blast::Allowed;
pub use clusters::{ClusterFilter, ClusterRow, ClusterView, Counts, LiveCluster, Unread};
pub use commit::CommitError;
pub use dump::{DumpError, Dumped};
pub use environments::{
    About, ActionBeat, ActionClaim, ActionDraft, ActionEnd, ActionEnded, ActionRow, Amendment, Ask,
    Begun, Busy, CalledOff, Cancelled, Checked, DeliveryClaim, DeliveryDraft, DeliveryEnd,
    DeliveryError, DeliveryFilter, DeliveryRow, DueCheck, DueChecks, Effective, EnvironmentAnswer,
    EnvironmentChange, EnvironmentDraft, EnvironmentError, EnvironmentFilter, EnvironmentOrder,
    EnvironmentRow, GitEnd, GitRequest, GitState, GitStep, InitRow, LookPlaces, LookRecord,
    LookRoom, LooksRecorded, OUTPUT_HEAD, OUTPUT_TAIL, Outlived, OutputLine, OutputStream, Printed,
    SettingsRow, TakeOutcome, TakenIn, TookOver, Undertaken,
};
pub use error::Error;
pub use events::Event;
pub use keys::Repeat;
pub use logs::LogLine;
pub use look::{Looked, LookedServer, connections, look, look_at};
pub use machines::{MachineFilter, MachineRow};
pub use manifests::{GenerationRow, ManifestRow};
pub use migrations::FORMAT;
pub use observations::Change;
pub use page::{Listed, Page};
pub use postgres::{Octopod, OctopodError};
pub use projects::{ProjectError, ProjectRow, Quota};
pub use queue::{Claim, Ended, RecordError, Recorded};
pub use recover::{Recovered, Recovery};
pub use sealed::{
    Change as SealedChange, SECRET_ENTRIES_MAX, SealError, SealKeyRow, SealedRow, SecretRow,
};
pub use sqlite::FILE;
pub use submit::{Clash, Preview, Previews, Submission, SubmitError, Submitted};
pub use sweep::Swept;
pub use tasks::{TaskFilter, TaskRow};
pub use tokens::{TokenDraft, TokenRow};
pub use uses::Use;
pub use wish::{Draft, WishError, Withdrawal};

pub use model::audit::{Audited, Verified, Walk};

use model::secret::Secret;
use runner::Runner;
use std::path::Path;
use std::sync::Arc;

/// The store; a clone is another handle on the same one.
///
/// When the last handle goes, the store waits until its threads have ended.
#[derive(Clone)]
pub struct Store {
    runner: Arc<Runner>,
}

impl Store {
    /// Opens the database in a data directory, which must exist, and brings it up to date.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        Runner::open(directory).map(|runner| Self {
            runner: Arc::new(runner),
        })
    }

    /// Connects to a PostgreSQL database, which several processes may share. An empty one gets
    /// its tables; one that an earlier version left is refused until it is migrated.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_as(url, None)
    }

    /// The same with a password that does not stand in the address.
    pub fn connect_as(url: &str, password: Option<&Secret>) -> Result<Self, Error> {
        Runner::connect(url, password).map(|runner| Self {
            runner: Arc::new(runner),
        })
    }

    /// Brings a PostgreSQL database up to date; answers its format before and now.
    pub fn migrate(url: &str, password: Option<&Secret>) -> Result<(u64, u64), Error> {
        let before = runner::aside(|| postgres::Server::migrate(url, password))?;
        Ok((before, migrations::FORMAT))
    }

    /// The address of a database as it may be shown, and whether it holds a password.
    pub fn shown(url: &str) -> Result<(String, bool), Error> {
        postgres::shown(url)
    }

    /// Host, port, database and user of an address, as files of passwords name them.
    pub fn parts(url: &str) -> Option<[String; 4]> {
        postgres::parts(url)
    }

    /// Whether other processes can work with the same database.
    pub fn is_shared(&self) -> bool {
        self.runner.is_shared()
    }

    /// An empty store in memory, without threads: questions run in the task that asks.
    pub fn in_memory() -> Result<Self, Error> {
        Runner::in_memory().map(|runner| Self {
            runner: Arc::new(runner),
        })
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
