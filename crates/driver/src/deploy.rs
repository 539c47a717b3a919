//! The contract of those who deploy environments.
//!
//! Unlike [`crate::Driver::apply`], what is done here need not be idempotent: it is somebody's
//! script. It is therefore begun once, in a way that outlives this program, and found again.

use crate::{Context, Error};
use model::environment::EnvironmentName;
use model::environment::config::{Defaults, Setting};
use model::environment::link::Link;
use model::environment::schema::KnownKey;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Look, Seen};
use model::fault::Fault;
use model::id::{ActionId, EnvironmentId};
use model::name::Name;
use model::time::Timestamp;
use tokio_util::sync::CancellationToken;

/// Changes environments, and looks at them.
pub trait Deployer: Send + Sync + 'static {
    /// Which place this is: what was begun here is found here alone.
    fn place(&self) -> &str;

    /// Runs what a project wants to be run before anything else here, where it has such a thing.
    fn init(
        &self,
        cx: &Context,
        settings: &Settings,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Begins what is to be done, or finds what was begun, and follows it to its end.
    ///
    /// Dropping the answer, and [`Context::cancelled`], leave alone what was begun: whoever asks
    /// again finds it. [`Following::end`] ends it.
    fn act(
        &self,
        cx: &Context,
        work: &Work,
        following: &Following<'_>,
    ) -> impl Future<Output = Acted> + Send;

    /// Actions of which something is left here.
    fn left(&self) -> impl Future<Output = Vec<ActionId>> + Send;

    /// Forgets what is left here of an action whose end is recorded; what still goes on is ended.
    fn forget(&self, action: ActionId) -> impl Future<Output = ()> + Send;

    /// Looks at an environment without changing it. An error says that nobody could look, and nothing
    /// of the environment.
    fn look(
        &self,
        cx: &Context,
        subject: &Subject,
        look: Look,
    ) -> impl Future<Output = Result<Looked, Error>> + Send;

    /// What the application or its deployment would be configured with if nobody edited anything.
    /// For the application that depends on how it is deployed.
    fn defaults(
        &self,
        cx: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> impl Future<Output = Result<Defaults, Error>> + Send;

    /// Settings that may be edited, whether or not they have defaults, with what is known of them:
    /// scripts tell only their names.
    fn keys(
        &self,
        cx: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> impl Future<Output = Result<Vec<KnownKey>, Error>> + Send;

    /// What is not there that environments of these settings need, as far as that can be seen
    /// without running anything of the project's.
    fn lacking(&self, settings: &Settings) -> impl Future<Output = Vec<Error>> + Send;

    /// Whether a configuration makes sense.
    fn judge(
        &self,
        cx: &Context,
        subject: &Subject,
    ) -> impl Future<Output = Result<Judged, Error>> + Send;
}

/// Which configuration is asked about.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// How environments are deployed.
    Deployment,
    /// What the application is given where it is deployed so.
    Application(&'a [Setting]),
}

/// What a look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Whether it is as it was asked about.
    pub seen: Seen,
    /// The end of what the look printed, without anything secret.
    pub said: String,
}

/// What a judge of configurations said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It makes sense.
    Good,
    /// It does not, and this is why.
    Bad(String),
    /// These settings have values that they cannot have; nobody else was asked.
    Wrong(Vec<Fault>),
}

/// An environment as it is to be, or to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Which; none where there is no such environment yet.
    pub id: Option<EnvironmentId>,
    /// Who owns it.
    pub project: Name,
    /// What it is called.
    pub name: EnvironmentName,
    /// What its project says.
    pub settings: Settings,
    /// What the application is given.
    pub application: Vec<Setting>,
    /// How it is deployed.
    pub deployment: Vec<Setting>,
}

/// Something to be done to an environment, with every choice made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Which action it is: what was begun for it is found by this.
    pub action: ActionId,
    /// What is done.
    pub deed: Deed,
    /// To what.
    pub subject: Subject,
    /// Where it may have been begun before.
    pub begun_at: Option<String>,
    /// When it is ended, whether or not it is done.
    pub deadline: Timestamp,
}

/// Which of the two streams of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// What it prints.
    Out,
    /// What it complains about.
    Err,
}

/// Takes what scripts print.
pub trait Output: Send + Sync {
    /// How many lines of a stream were taken before, perhaps by somebody else.
    fn known(&self, stream: Stream) -> u64;

    /// One line more, without anything secret.
    fn line(&self, stream: Stream, text: &str);

    /// Where the environment is reached; told as soon as that is known, and again by whoever comes back.
    fn links(&self, links: &[Link]);
}

/// How what was begun is followed.
pub struct Following<'a> {
    /// Takes what is printed.
    pub output: &'a dyn Output,
    /// Completes when what was begun is to be ended: somebody cancelled it.
    pub end: CancellationToken,
    /// Completes when something may be begun here that was not: what was is found and followed before.
    pub may_begin: CancellationToken,
}

/// What became of something that was done to an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acted {
    /// It ended by itself, with this status.
    Exited {
        /// The status; zero is good.
        status: i32,
    },
    /// It was ended, and this is why.
    Killed {
        /// By whom or what.
        because: Because,
    },
    /// Nobody knows what became of it, and it does not run any more.
    Lost,
    /// It could not be begun, and was not.
    Unbegun(Error),
    /// It was to be ended before it was begun, and never was begun.
    Withdrawn {
        /// By whom or what.
        because: Because,
    },
    /// It goes on, and nobody here follows it now.
    Left,
}

/// Why something was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Because {
    /// It took too long.
    TimedOut,
    /// Somebody cancelled it.
    Cancelled,
    /// A signal that was not ours.
    Signal(i32),
}
