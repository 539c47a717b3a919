//! A store, a shelf in it, and what stands in between.

use driver::{Clock, Context, Log, NoSecrets};
use kube::snapshot::Error;
use kube::snapshot::s3::{Keys, Limits, Store};
use kube::snapshot::shelf::Shelf;
use lab::s3::User;
use model::id::{ClusterId, Origin, TaskId};
use model::secret::{Secret, SecretRef};
use model::snapshot::{Bucket, SnapshotId};
use model::time::Timestamp;
use model::version::Version;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

/// The smallest part that stores take.
pub(crate) const PART: usize = 5 * 1024 * 1024;

/// A store and all that is said of it.
pub(crate) struct Site {
    pub(crate) store: lab::s3::Store,
    pub(crate) cluster: ClusterId,
    pub(crate) limits: Limits,
    pub(crate) user: User,
    pub(crate) bucket: Bucket,
    pub(crate) clock: Clock,
    pub(crate) cancel: CancellationToken,
    pub(crate) lines: Arc<Lines>,
    root: tempfile::TempDir,
}

#[derive(Default)]
pub(crate) struct Lines(pub(crate) Mutex<Vec<String>>);

impl Log for Lines {
    fn line(&self, _: Timestamp, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

impl Site {
    pub(crate) fn new(test: &str) -> Option<Self> {
        let tools = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools");
        let store = lab::s3::start_or_skip(test, &tools)?;
        let named = |key: &str| SecretRef {
            name: "store".parse().unwrap(),
            key: Some(key.parse().unwrap()),
        };
        Some(Self {
            cluster: cluster("edge"),
            limits: Limits {
                attempts: 2,
                pause: Duration::from_millis(1),
                part: PART,
                ..Limits::default()
            },
            user: store.friend.clone(),
            bucket: Bucket {
                endpoint: store.endpoint.clone(),
                bucket: store.bucket.clone(),
                region: "us-east-1".to_owned(),
                prefix: None,
                ca: None,
                access_key: named(Bucket::ACCESS_KEY),
                secret_key: named(Bucket::SECRET_KEY),
            },
            clock: Clock::System,
            cancel: CancellationToken::new(),
            lines: Arc::new(Lines::default()),
            root: tempfile::tempdir().unwrap(),
            store,
        })
    }

    /// Prepares to ask the store as things are now.
    pub(crate) fn client(&self) -> Result<Store, Error> {
        let context = Context::new(
            self.clock,
            self.lines.clone(),
            Arc::new(NoSecrets),
            self.cancel.clone(),
            0,
        );
        let keys = Keys {
            access: Secret::from_text(format!("{}\n", self.user.access_key)),
            secret: Secret::from_text(format!("{}\n", self.user.secret_key)),
        };
        Store::new(&self.bucket, keys, self.limits, &context)
    }

    /// The shelf of the cluster.
    pub(crate) fn shelf(&self, prefix: Option<&str>) -> Shelf {
        let store = self.client().unwrap();
        // It is made when there is one.
        let root = self.root.path().join("snapshots");
        Shelf::bucket(&root, store, prefix, self.cluster)
    }
}

fn origin(name: &str) -> Origin<'_> {
    Origin {
        parent: "test",
        name,
        ordinal: 0,
        incarnation: 0,
    }
}

pub(crate) fn cluster(name: &str) -> ClusterId {
    ClusterId::derive(origin(name))
}

pub(crate) fn task(second: i64) -> TaskId {
    TaskId::derive(origin(&second.to_string()))
}

pub(crate) fn id(second: i64) -> SnapshotId {
    let at = Timestamp::from_millis(1_767_225_600_000 + second * 1_000);
    SnapshotId::of(at, "0a1b2c3d").unwrap()
}

/// Bytes that are nowhere alike.
pub(crate) fn bytes(size: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..size).map(|_| next()).collect()
}

/// Keeps a snapshot of these bytes.
pub(crate) async fn put(
    shelf: &Shelf,
    second: i64,
    bytes: &[u8],
    before: Option<Version>,
) -> Result<(), Error> {
    let mut coming = shelf.begin(task(second)).await?;
    coming.file.write_all(bytes).await.unwrap();
    coming.file.flush().await.unwrap();
    let version = "v1.34.4".parse().unwrap();
    let told = (&id(second), version, before, task(second));
    shelf.keep(coming, told).await
}
