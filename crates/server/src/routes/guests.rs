//! People who enter machines themselves: their key is let in, and their bytes are carried there.
//!
//! The server opens nothing for them that it does not open for tasks, and sees nothing of what
//! they say: whoever is let in speaks SSH with the machine, from end to end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::guest::PROTOCOL;
use api::{GuestRequest, GuestView};
use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use model::access::GuestKey;
use model::name::Name;
use model::observed::MachineFact;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::access::Caller;
use crate::app::App;
use crate::enter::{Visit, Wire};
use crate::extract::{self, Within};
use crate::problem::Problem;
use crate::routes::machines;
use crate::streams::{Kind, Seat};

/// How long a key is let in: long enough to type a passphrase somewhere, and to copy a few files
/// one after the other.
const TIME: Duration = Duration::from_mins(5);

/// How long both sides of a relay may be silent. SSH clients that are told to say now and then that
/// they live, as ours are, are never silent for so long.
const SILENCE_MAX: Duration = Duration::from_mins(10);

/// How much is carried at once.
const PIECE: usize = 32 << 10;

/// Lets a key into a machine for some minutes, as the user as whom Slipway enters it.
///
/// That somebody was let in is audited, before it is done. Lines of keys whose time has passed are
/// taken out of the machine's file when the next one comes.
#[utoipa::path(
    post, path = "/machines/{name}/guests", operation_id = "letIn", tag = "machines", request_body = GuestRequest,
    responses(
        (status = 201, description = "let in", body = GuestView),
        (status = 409, description = "there is nothing to enter: it is simulated, or was not seen yet", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the machine could not be entered", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn let_in(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<Name>,
    extract::Json(request): extract::Json<GuestRequest>,
) -> Result<(StatusCode, Json<GuestView>), Problem> {
    let GuestRequest { public_key } = request;
    let key: GuestKey = public_key
        .parse()
        .map_err(|wrong| Problem::parameter("publicKey", wrong))?;
    let visit = visit(&app, &caller, project.clone(), &name).await?;
    let (object, detail) = (
        format!("machine/{name}"),
        format!("for {} seconds with {}", TIME.as_secs(), key.as_str()),
    );
    let told = (object.as_str(), detail.as_str());
    let entered = app.store().enter_audit(
        Some(project),
        caller.actor,
        "machine.enter",
        told,
        app.now(),
    );
    entered.await?;
    let welcome = app.enter().let_in(visit, key, TIME).await;
    let welcome = welcome.map_err(|shut| Problem::shut(&name, &shut))?;
    let view = GuestView {
        machine: name.to_string(),
        user: welcome.user,
        port: welcome.port,
        host_key: welcome.host_key,
        until: welcome.until.into(),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Carries bytes to the SSH server of a machine and back.
///
/// The request says `Upgrade: slipway-ssh`; after the answer the connection is the relay. It is
/// good as long as the token is, and ends when both sides are silent for ten minutes.
#[utoipa::path(
    post, path = "/machines/{name}/relay", operation_id = "relay", tag = "machines",
    params(("Upgrade" = Option<String>, Header, description = "`slipway-ssh`")),
    responses(
        (status = 101, description = "the connection is the relay"),
        (status = 409, description = "there is nothing to enter: it is simulated, or was not seen yet", body = api::Problem, content_type = "application/problem+json"),
        (status = 502, description = "the machine could not be reached", body = api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn relay(
    State(app): State<App>,
    caller: Caller,
    Within(project, name): Within<Name>,
    mut request: Request,
) -> Result<Response, Problem> {
    let visit = visit(&app, &caller, project, &name).await?;
    if !wanted(request.headers()) {
        let allowed = format!("allowed: `{PROTOCOL}`");
        return Err(Problem::parameter("Upgrade", allowed));
    }
    let upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let upgrade = upgrade.ok_or_else(|| {
        Problem::parameter("Upgrade", "this connection cannot become another one")
    })?;
    let seat = app.seat(Kind::Relay)?;
    let reached = app.enter().reach(visit).await;
    let wire = reached.map_err(|shut| Problem::shut(&name, &shut))?;
    app.beside(carried(app.clone(), caller, upgrade, wire, seat));
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    Ok(answer)
}

/// Who wants to enter which machine, if it can be entered at all.
async fn visit(app: &App, caller: &Caller, project: Name, name: &Name) -> Result<Visit, Problem> {
    let row = machines::named(app, &project, name).await?;
    if !row.machine.origin.is_host() {
        return Err(Problem::nothing_to_enter(name));
    }
    match row.seen.machine.as_ref().map(|(fact, _)| fact) {
        // One that was not seen to answer may answer again, and to find out is why people enter it.
        Some(MachineFact::Running { .. } | MachineFact::Unreachable { .. }) => {}
        Some(MachineFact::Booting { .. } | MachineFact::Absent) | None => {
            return Err(Problem::not_seen_yet(name));
        }
    }
    Ok(Visit {
        project,
        cluster: row.cluster_id,
        machine: row.machine,
        actor: caller.actor.clone(),
    })
}

/// Whether a relay is asked for.
fn wanted(headers: &HeaderMap) -> bool {
    let value = headers.get(header::UPGRADE);
    value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()))
}

/// Carries bytes until one side ends, the token is good no longer, or the server stops.
async fn carried(app: App, caller: Caller, upgrade: OnUpgrade, wire: Box<dyn Wire>, seat: Seat) {
    let stop = app.stop().clone();
    let carrying = async {
        match upgrade.await {
            Ok(upgraded) => both_ways(TokioIo::new(upgraded), wire).await,
            Err(error) => tracing::debug!(%error, "a relay did not come about"),
        }
    };
    tokio::select! {
        () = carrying => {}
        () = caller.turned_out(app) => {}
        () = stop.cancelled() => {}
    }
    drop(seat);
}

/// Carries bytes both ways. When somebody ends their side that is passed on; when the machine has
/// said all, or nobody says anything for long, the relay ends.
async fn both_ways(client: impl Wire, machine: Box<dyn Wire>) {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_machine, to_machine) = tokio::io::split(machine);
    let alive = AtomicBool::new(true);
    let there = async {
        told(carry(from_client, to_machine, &alive).await);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = there => {}
        ended = carry(from_machine, to_client, &alive) => told(ended),
        () = silence(&alive) => {}
    }
}

/// Carries bytes one way, and passes their end on.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    alive: &AtomicBool,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let some = from.read(&mut piece).await?;
        if some == 0 {
            return to.shutdown().await;
        }
        alive.store(true, Ordering::Relaxed);
        to.write_all(piece.get(..some).unwrap_or_default()).await?;
        to.flush().await?;
    }
}

/// Completes when nobody has said anything for long.
async fn silence(alive: &AtomicBool) {
    while alive.swap(false, Ordering::Relaxed) {
        tokio::time::sleep(SILENCE_MAX).await;
    }
}

fn told(ended: io::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a relay ended before its time");
    }
}
