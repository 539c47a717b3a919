//! The smallest world a server lives in: a store in memory, a clock that is told, and hands
//! that do at once what is planned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode, header};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusRecorder;
use model::access::{Role, TokenId};
use model::admit::admit;
use model::care::Care;
use model::cluster::Origin;
use model::id::MachineId;
use model::name::Name;
use model::observed::{ControlPlaneFact, Fact, MachineFact, NodeFact, Observation};
use model::provider::Provider;
use model::snapshot::{RestoredFact, Snapshot, SnapshotId, SnapshotsFact, Taking};
use model::source;
use model::task::{Action, Kind, Task};
use model::time::Timestamp;
use serde_json::{Value, json};
use server::auth::{Admin, enrol};
use server::{Rehearsal, Rehearse, Server, SimulationView, Unable};
use sha2::{Digest as _, Sha256};
use store::{Claim, CommitError, Ended, Recorded, SealedRow, Store, Submission};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use vault::Vault;

/// The token of this world.
pub(crate) const TOKEN: &str = "slipway_0123456789abcdef0123456789abcdef";

/// Where the routes of the project are.
pub(crate) const PROJECT: &str = "/api/v1/projects/default";

/// A good manifest with one cluster of three control and two compute machines.
pub(crate) const HELLO: &str = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: hello}
spec:
  providers:
    - {name: lab, providerType: simulated}
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: north}, count: 3, serverType: small, image: debian-12}
      - {name: muscle, providerSpec: {name: lab, region: north}, count: 2, serverType: large, image: debian-12}
  kubernetes:
    clusters:
      - name: first
        version: v1.34.1
        network: 10.8.0.0/24
        pools: {control: [brain], compute: [muscle]}
";

/// A server over a store of its own.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) server: Server,
    pub(crate) router: Router,
    pub(crate) stop: CancellationToken,
    pub(crate) recorder: PrometheusRecorder,
    clock: Arc<AtomicI64>,
}

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: axum::http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// A problem in three lines; anything else by its status and type.
    #[track_caller]
    pub(crate) fn picture(&self) -> String {
        let kind = self.header("content-type");
        if kind != "application/problem+json" {
            return format!("{} {kind}\n", self.status);
        }
        let problem: api::Problem = serde_json::from_str(&self.text).unwrap();
        assert_eq!(problem.status, self.status.as_u16());
        let mut lines = vec![format!(
            "{} {}: {}\n",
            self.status.as_u16(),
            problem.code,
            problem.detail
        )];
        lines.extend(
            problem
                .faults
                .iter()
                .map(|fault| format!("  {} [{}] {}\n", fault.path, fault.code, fault.message)),
        );
        lines.push(format!("  hint: {}\n", problem.hint.unwrap_or_default()));
        lines.concat()
    }
}

impl World {
    /// An empty world whose simulator tells the same of every manifest.
    pub(crate) fn new() -> Self {
        Self::rehearsing(Arc::new(Parrot))
    }

    /// An empty world with another simulator.
    pub(crate) fn rehearsing(rehearse: Arc<dyn Rehearse>) -> Self {
        let world = Self::over(Store::in_memory().unwrap(), rehearse);
        // A store in memory answers at once.
        world.now_or_never().unwrap()
    }

    /// An empty world over a store that answers when it can, as a real one does.
    pub(crate) async fn over(store: Store, rehearse: Arc<dyn Rehearse>) -> Self {
        let clock = Arc::new(AtomicI64::new(1_767_225_600_000));
        let recorder = server::metrics::builder().unwrap().build_recorder();
        let now = Arc::clone(&clock);
        let now: server::Clock =
            Arc::new(move || Timestamp::from_millis(now.load(Ordering::Relaxed)));
        let vault = Vault::in_memory(store.clone(), Arc::clone(&now));
        let server = Server {
            store: store.clone(),
            vault: vault.await,
            clock: now,
            rehearse,
            enter: Arc::new(crate::guests::Doorman),
            advise: Arc::new(crate::environments::Oracle),
            prices: Arc::new(plan::Prices::usual()),
            unable: |machine, kind| {
                let Origin::Made { via, image, .. } = &machine.origin else {
                    return None;
                };
                let because = match via {
                    _ if kind != Kind::Create => return None,
                    Provider::Simulated | Provider::Sandbox if image == "beos" => {
                        "found image `beos`, allowed: others".to_owned()
                    }
                    Provider::Simulated | Provider::Sandbox => return None,
                    Provider::Cloud(cloud) => {
                        format!("nobody here makes machines of {}", cloud.as_str())
                    }
                };
                let next = "make them yourself".to_owned();
                Some(Unable { because, next })
            },
            metrics: recorder.handle(),
            scratch: std::env::temp_dir(),
        };
        let admin = Admin::of(TOKEN);
        let enrolled = enrol(&store, &admin, (server.clock)());
        enrolled.await.unwrap();
        let stop = CancellationToken::new();
        let router = server::router(server.clone(), stop.clone());
        Self {
            store,
            server,
            router,
            stop,
            recorder,
            clock,
        }
    }

    /// A world that has accepted [`HELLO`].
    pub(crate) async fn with_hello() -> Self {
        let world = Self::new();
        let answer = world.submit(HELLO).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
        world
    }

    /// What time it is.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.load(Ordering::Relaxed))
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, span: Duration) {
        self.clock
            .fetch_add(i64::try_from(span.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.open(request).await;
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 16 << 20).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Sends a request and leaves the body of the answer unread.
    pub(crate) async fn open(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Reads something of the project, with the token.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, &format!("{PROJECT}{path}")))
            .await
    }

    /// Looks at a page, signed in.
    pub(crate) async fn look(&self, path: &str) -> Answer {
        self.send(signed_in(path, TOKEN)).await
    }

    /// Sends YAML to a route of the project, with the token.
    pub(crate) async fn post(&self, path: &str, text: &str) -> Answer {
        let request = Request::post(format!("{PROJECT}{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(header::CONTENT_TYPE, "application/yaml")
            .body(Body::from(text.to_owned()))
            .unwrap();
        self.send(request).await
    }

    /// Sends JSON to a route of the project, with the token.
    pub(crate) async fn post_json(&self, path: &str, value: &serde_json::Value) -> Answer {
        let request = Request::post(format!("{PROJECT}{path}"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(value.to_string()))
            .unwrap();
        self.send(request).await
    }

    /// Declares a manifest.
    pub(crate) async fn submit(&self, text: &str) -> Answer {
        self.post("/manifests", text).await
    }

    /// Declares a manifest with a doubt about it, as it was accepted before there was a rule.
    pub(crate) async fn submit_as_before(&self, text: &str) {
        let mut manifest = admit(&source::parse(text).unwrap()).unwrap();
        assert_eq!(manifest.doubts.len(), 1);
        manifest.doubts.clear();
        let submission = Submission {
            project: Name::default_project(),
            manifest,
            text: text.to_owned(),
            author: "ann".into(),
            parent: None,
            allow: store::Allowed::default(),
            key: None,
        };
        self.store.submit(submission, self.now()).await.unwrap();
    }

    /// Sends a request with another token.
    pub(crate) async fn ask(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: serde_json::Value,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        let request = if body.is_null() {
            request.body(Body::empty())
        } else {
            let request = request.header(header::CONTENT_TYPE, "application/json");
            request.body(Body::from(body.to_string()))
        };
        self.send(request.unwrap()).await
    }

    /// Makes a token that does not end, and answers it.
    pub(crate) async fn give(&self, name: &str, role: Role, project: Option<&str>) -> String {
        let body = json!({"name": name, "role": role.as_str(), "project": project});
        let made = self.ask(TOKEN, Method::POST, "/api/v1/tokens", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        made.json()["token"].as_str().unwrap().to_owned()
    }

    /// Revokes a token.
    pub(crate) async fn revoke(&self, token: &str) {
        let path = format!("/api/v1/tokens/{}", token_id(token));
        let revoked = self.ask(TOKEN, Method::DELETE, &path, Value::Null).await;
        assert_eq!(revoked.status, StatusCode::OK, "{}", revoked.text);
    }

    /// Makes a project without limits.
    pub(crate) async fn make_project(&self, name: &str) {
        let path = format!("/api/v1/projects/{name}");
        let body = json!({"quota": {}});
        let made = self.ask(TOKEN, Method::PUT, &path, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    }

    /// Plans every cluster and commits the plans.
    pub(crate) async fn plan(&self) {
        for live in self.store.live_clusters().await.unwrap() {
            if let Some(seen) = self.store.cluster_view(live.id).await.unwrap() {
                let mut plan = plan::plan(&seen.view(self.now()));
                while let Err(error) = self.store.commit(plan.clone(), self.now()).await {
                    let CommitError::Refused { machine, reason } = error else {
                        panic!("{error}");
                    };
                    plan.hold_back(machine, &reason);
                }
            }
        }
    }

    /// Claims what is due.
    pub(crate) async fn claim(&self, limit: u32) -> Vec<Claim> {
        self.store
            .claim("worker-1", limit, 100, Duration::from_mins(1), self.now())
            .await
            .unwrap()
    }

    /// Ends an attempt.
    pub(crate) async fn end(&self, claim: Claim, ended: Ended) {
        self.end_with(claim, ended, Vec::new()).await;
    }

    /// Ends an attempt of which something came.
    pub(crate) async fn end_with(&self, claim: Claim, ended: Ended, outputs: Vec<SealedRow>) {
        let seen = if ended == Ended::Done {
            seen(&claim.task, self.now())
        } else {
            Vec::new()
        };
        let said = vec![(
            self.now(),
            format!("{} <{}>", claim.task.action.kind(), claim.task.machine.name),
        )];
        let recorded = self
            .store
            .record(claim, ended, seen, outputs, said, self.now())
            .await
            .unwrap();
        assert_eq!(recorded, Recorded::Yes);
    }

    /// Plans and works until nothing is left.
    pub(crate) async fn settle(&self) {
        for _ in 0..100 {
            self.plan().await;
            let claims = self.claim(100).await;
            if claims.is_empty() {
                return;
            }
            for claim in claims {
                self.end(claim, Ended::Done).await;
            }
        }
        panic!("the world does not come to rest");
    }
}

/// A request with the token and no body.
pub(crate) fn request(method: Method, path: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(Body::empty())
        .unwrap()
}

/// A request for a page by somebody who is signed in with a token.
pub(crate) fn signed_in(path: &str, token: &str) -> Request<Body> {
    Request::get(path)
        .header(header::COOKIE, format!("slipway={token}"))
        .body(Body::empty())
        .unwrap()
}

/// Which one a token is: the store has a digest of it, and nothing else.
pub(crate) fn token_id(token: &str) -> TokenId {
    let digest = Sha256::digest(token.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    TokenId::of(&digest)
}

/// What is seen after a task went well.
fn seen(task: &Task, at: Timestamp) -> Vec<Observation> {
    let Task {
        cluster,
        machine,
        action,
        ..
    } = task;
    let id: MachineId = machine.id;
    let node = |cordoned, version, care: Option<&Care>| {
        let node = NodeFact::Joined {
            ready: true,
            cordoned,
            version,
            care: care.map(Care::fingerprint),
            asks: false,
            gated: false,
        };
        Fact::Node(id, node)
    };
    let facts = match action {
        Action::Create | Action::CreateExposed | Action::Prepare => {
            let (reference, address) = (format!("vm-{}", machine.name), machine.address.into());
            let running = MachineFact::Running { reference, address };
            vec![Fact::Machine(id, running)]
        }
        Action::Init { version, care, .. } => {
            vec![
                Fact::ControlPlane(ControlPlaneFact::started()),
                Fact::Snapshots(SnapshotsFact::none_since(at)),
                node(false, *version, Some(care)),
            ]
        }
        Action::Join { version, care, .. } => vec![node(false, *version, Some(care))],
        Action::Upgrade { version } => vec![node(true, *version, None)],
        Action::Leave => vec![Fact::Node(id, NodeFact::Absent)],
        Action::Clear { leftovers } => {
            let gone = leftovers.iter();
            gone.map(|left| Fact::Node(left.machine, NodeFact::Absent))
                .collect()
        }
        Action::Delete | Action::Release => {
            vec![
                Fact::Machine(id, MachineFact::Absent),
                Fact::Node(id, NodeFact::Absent),
            ]
        }
        Action::Snapshot { taking } => vec![saved(taking, at)],
        Action::Restore { restoring } => vec![Fact::Restored(RestoredFact {
            snapshot: restoring.snapshot.clone(),
            wish: restoring.wish,
        })],
        Action::Tend { .. }
        | Action::Drain
        | Action::Renew { .. }
        | Action::Uncordon
        | Action::Readmit { .. }
        | Action::Key
        | Action::Equip { .. }
        | Action::Mesh { .. }
        | Action::Balance { .. }
        | Action::Name { .. }
        | Action::Expose
        | Action::Shut
        | Action::Install { .. } => Vec::new(),
    };
    let cluster = *cluster;
    let facts = facts.into_iter();
    facts
        .map(|fact| Observation { cluster, fact, at })
        .collect()
}

/// That a snapshot was taken, the only one.
fn saved(taking: &Taking, at: Timestamp) -> Fact {
    let snapshot = Snapshot {
        id: SnapshotId::of(at, "0a1b2c3d").unwrap(),
        size: 20 * 1024 * 1024,
        version: taking.version,
        before: taking.before,
    };
    Fact::Snapshots(SnapshotsFact {
        since: at,
        kept: vec![snapshot],
        answered: taking.wish,
    })
}

/// A simulator that repeats what it was asked.
pub(crate) struct Parrot;

impl Rehearse for Parrot {
    fn rehearse(&self, request: Rehearsal) -> BoxFuture<'_, Result<SimulationView, String>> {
        Box::pin(async move {
            if request.faults == "nonsense" {
                return Err("there is no fault profile `nonsense`".to_owned());
            }
            Ok(SimulationView {
                text: format!(
                    "{} with seed {} and faults {}\n",
                    request.manifest.name, request.seed, request.faults
                ),
                seed: request.seed,
                faults: request.faults,
                converged: true,
                seconds: 60,
                clusters: 1,
                machines: 5,
                tasks: 10,
                attempts: 10,
                failures: 0,
            })
        })
    }
}

/// Every operation of the document: path, method, whether it needs the token.
pub(crate) fn operations() -> Vec<(String, Method, bool)> {
    let document: BTreeMap<String, serde_json::Value> =
        serde_json::from_value(serde_json::to_value(server::document()).unwrap()["paths"].clone())
            .unwrap();
    let mut operations = Vec::new();
    for (path, item) in document {
        for (method, operation) in item.as_object().unwrap() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let open = operation["security"] == serde_json::json!([{}]);
            operations.push((path.clone(), method, !open));
        }
    }
    operations
}

/// A path with something of the right form in each of its places.
pub(crate) fn filled(path: &str) -> String {
    let id = match path {
        path if path.contains("/tasks/") => "task-0000000000000",
        path if path.contains("/intents/") => "intent-0000000000000",
        path if path.contains("/tokens/") => "token-0000000000000",
        path if path.contains("/actions/") => "action-0000000000000",
        _ => "plan-0000000000000",
    };
    path.replace("{project}", "default")
        .replace("{name}", "nobody")
        .replace("{source}", "nobody")
        .replace("{generation}", "7")
        .replace("{id}", id)
}
