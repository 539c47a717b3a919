//! The server put together: what it is made of, its routes, and its life.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use metrics_exporter_prometheus::PrometheusHandle;
use model::cluster::Machine;
use model::task;
use model::time::Timestamp;
use plan::{Prices, Unable};
use store::Store;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use vault::Vault;

use crate::access::{self, Failures, Known};
use crate::advise::Advise;
use crate::credentials::Verdicts;
use crate::enter::Enter;
use crate::git;
use crate::problem::Problem;
use crate::rehearse::Rehearse;
use crate::streams::{Hub, Kind, Seat};
use crate::{connections, layers, metrics, openapi, page, routes};

/// How long a request may take to be answered. Clients give up at the same time.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// How long a journey, a rehearsal or the advice of scripts may take: clients wait for minutes.
const WORK_TIME_MAX: Duration = Duration::from_mins(2);

/// How long it may take to write a backup: as long as reading everything there is takes.
const BACKUP_TIME_MAX: Duration = Duration::from_hours(1);

/// How many rehearsals run at once: each keeps a core busy, and the loops need theirs.
const REHEARSALS_MAX: usize = 1;

/// How many backups are made at once: each keeps a reader of the store busy, and has a file as
/// large as the database.
const BACKUPS_MAX: usize = 1;

/// How many clients may follow events or logs at once; each costs a connection and a little
/// memory.
const STREAMS_MAX: u32 = 2_000;

/// Tells the time: that of the world, or that of a test.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a server is made of.
#[derive(Clone)]
pub struct Server {
    /// Where truth is, and who may speak: see [`crate::auth::enrol`].
    pub store: Store,
    /// What seals secrets.
    pub vault: Vault,
    /// What time it is.
    pub clock: Clock,
    /// Who rehearses manifests.
    pub rehearse: Arc<dyn Rehearse>,
    /// Who leads people into machines.
    pub enter: Arc<dyn Enter>,
    /// Who tells what environments would be configured with.
    pub advise: Arc<dyn Advise>,
    /// What plans say that machines cost.
    pub prices: Arc<Prices>,
    /// What nobody here can do to a machine, and what a person does about it.
    pub unable: fn(&Machine, task::Kind) -> Option<Unable>,
    /// What the recorder of the program has gathered.
    pub metrics: PrometheusHandle,
    /// A directory for files that go with the request that they are for.
    pub scratch: PathBuf,
}

/// What every handler can reach.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

struct Inner {
    server: Server,
    stop: CancellationToken,
    rehearsals: Arc<Semaphore>,
    backups: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// What goes on after its request was answered.
    beside: std::sync::Mutex<JoinSet<()>>,
    hub: Arc<Hub>,
    known: Known,
    failures: Failures,
    verdicts: Verdicts,
    git_keys: git::Keys,
    readiness: Mutex<Option<Readiness>>,
    document: String,
}

/// Whether the store could be written, and when that was found out.
pub(crate) struct Readiness {
    pub(crate) found_at: Instant,
    pub(crate) problem: Option<Problem>,
}

impl App {
    pub(crate) fn store(&self) -> &Store {
        &self.0.server.store
    }

    pub(crate) fn vault(&self) -> &Vault {
        &self.0.server.vault
    }

    /// Tokens and projects, as they were a moment ago.
    pub(crate) fn known(&self) -> &Known {
        &self.0.known
    }

    /// Who showed tokens that open nothing.
    pub(crate) fn failures(&self) -> &Failures {
        &self.0.failures
    }

    /// What was found of secrets.
    pub(crate) fn verdicts(&self) -> &Verdicts {
        &self.0.verdicts
    }

    /// What proves that git services are who they say.
    pub(crate) fn git_keys(&self) -> &git::Keys {
        &self.0.git_keys
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0.server.clock)()
    }

    pub(crate) fn rehearse(&self) -> &dyn Rehearse {
        &*self.0.server.rehearse
    }

    pub(crate) fn enter(&self) -> &dyn Enter {
        &*self.0.server.enter
    }

    pub(crate) fn advise(&self) -> &dyn Advise {
        &*self.0.server.advise
    }

    pub(crate) fn prices(&self) -> &Arc<Prices> {
        &self.0.server.prices
    }

    pub(crate) fn unable(&self) -> fn(&Machine, task::Kind) -> Option<Unable> {
        self.0.server.unable
    }

    /// Lets something go on after its request was answered; it ends when the server does.
    pub(crate) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        let beside = self.0.beside.lock();
        let mut beside = beside.unwrap_or_else(PoisonError::into_inner);
        while beside.try_join_next().is_some() {}
        beside.spawn(work);
    }

    pub(crate) fn metrics(&self) -> &PrometheusHandle {
        &self.0.server.metrics
    }

    /// Completes its waiters when the server is told to stop.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// One permit per rehearsal.
    pub(crate) fn rehearsals(&self) -> &Arc<Semaphore> {
        &self.0.rehearsals
    }

    /// Where files go that nobody shall find.
    pub(crate) fn scratch(&self) -> &Path {
        &self.0.server.scratch
    }

    /// The right to make a backup, unless another is being made.
    pub(crate) fn backup_turn(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let turn = Arc::clone(&self.0.backups).try_acquire_owned();
        turn.map_err(|_| Problem::another_backup())
    }

    /// The right to follow something, unless too many do.
    pub(crate) fn seat(&self, kind: Kind) -> Result<Seat, Problem> {
        let permit = Arc::clone(&self.0.streams).try_acquire_owned();
        let permit = permit.map_err(|_| Problem::too_many_streams(STREAMS_MAX))?;
        Ok(Seat::new(kind, permit))
    }

    /// Who reads events for all who follow them.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// Waits until nobody follows anything any more.
    async fn unfollowed(&self) {
        // The semaphore is never closed, so that all permits come back in the end.
        drop(self.0.streams.acquire_many(STREAMS_MAX).await);
    }

    /// What was last found out about the store.
    pub(crate) fn readiness(&self) -> &Mutex<Option<Readiness>> {
        &self.0.readiness
    }

    /// The document of the API.
    pub(crate) fn document(&self) -> &str {
        &self.0.document
    }
}

/// All routes of the server; streams end when `stop` is cancelled.
pub fn router(server: Server, stop: CancellationToken) -> Router {
    assemble(server, stop).0
}

fn assemble(server: Server, stop: CancellationToken) -> (Router, App) {
    let seats = usize::try_from(STREAMS_MAX).unwrap_or(Semaphore::MAX_PERMITS);
    let app = App(Arc::new(Inner {
        hub: Hub::new(server.store.clone(), stop.clone()),
        server,
        stop,
        rehearsals: Arc::new(Semaphore::new(REHEARSALS_MAX)),
        backups: Arc::new(Semaphore::new(BACKUPS_MAX)),
        streams: Arc::new(Semaphore::new(seats)),
        beside: std::sync::Mutex::default(),
        known: Known::default(),
        failures: Failures::default(),
        verdicts: Verdicts::default(),
        git_keys: git::Keys::default(),
        readiness: Mutex::new(None),
        document: openapi::text(&openapi::document()),
    }));
    let (quick, _) = routes::quick().into_inner().split_for_parts();
    let (slow, _) = routes::slow().into_inner().split_for_parts();
    let environments = routes::environments::routes();
    let (environments, _) = environments.into_inner().split_for_parts();
    let (long, _) = routes::long().into_inner().split_for_parts();
    let (open, _) = routes::open().into_inner().split_for_parts();
    let limited = |time| from_fn_with_state(time, layers::limit);
    let closed = quick
        .layer(limited(REQUEST_TIME_MAX))
        .merge(slow.layer(limited(WORK_TIME_MAX)))
        .merge(environments.layer(limited(WORK_TIME_MAX)))
        .merge(long.layer(limited(BACKUP_TIME_MAX)))
        .route_layer(from_fn_with_state(app.clone(), access::recognise));
    let pages = page::router(&app).layer(limited(REQUEST_TIME_MAX));
    let router = closed
        .merge(open.layer(limited(REQUEST_TIME_MAX)))
        .merge(pages)
        .fallback(layers::no_route)
        .method_not_allowed_fallback(layers::no_method)
        .layer(from_fn(layers::guard))
        .layer(from_fn(layers::observe))
        .with_state(app.clone());
    (router, app)
}

/// Serves until `stop` is cancelled; then streams end at once, and requests under way get
/// a moment to end.
pub async fn run(listener: TcpListener, server: Server, stop: CancellationToken) {
    let metrics = server.metrics.clone();
    // Moves values to a new data key; what it has not moved at the end, the next start moves.
    let mut background = JoinSet::new();
    let (vault, told) = (server.vault.clone(), stop.clone());
    background.spawn(async move { vault.run(told).await });
    let (router, app) = assemble(server, stop.clone());
    let serving = async {
        connections::serve(listener, router, &stop).await;
        // A WebSocket or a relay is no longer one of the connections, and ends by itself.
        app.unfollowed().await;
    };
    let upkeep = metrics::upkeep(metrics);
    tokio::select! {
        () = connections::drained(serving, &stop) => {}
        never = upkeep => match never {},
    }
}
