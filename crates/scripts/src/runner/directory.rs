//! The directory of one action: who may write what, and what it means that it is there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::deploy::Stream;
use model::environment::link::Link;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::secrets::private;

/// More than any of our own notes has.
const NOTE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What is run, for people and for the runner; nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Which time it is prepared: a runner of an earlier one does nothing.
    pub(crate) attempt: u64,
    /// Whether this attempt must not begin any more.
    pub(crate) void: bool,
    /// The script.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
}

/// What the runner is told on its standard input, which nobody else can read.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    /// Which attempt it is of.
    pub(crate) attempt: u64,
    /// The script.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// What must not be repeated.
    pub(crate) secrets: Vec<String>,
    /// How long the script may take.
    pub(crate) patience_ms: u64,
    /// How long it may take to end after that.
    pub(crate) grace_ms: u64,
}

/// That a script was begun, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Began {
    /// The runner, which leads a session of its own.
    pub(crate) session: i32,
    /// Since which start of the machine.
    pub(crate) boot: String,
    /// What only processes of this action have in their environment.
    pub(crate) mark: String,
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal.
    Signal(i32),
    /// It took too long.
    TimedOut,
    /// Somebody cancelled it.
    Cancelled,
    /// It could not be started: the code of the error, and what was attempted.
    Unstarted {
        /// Which error.
        code: String,
        /// What was attempted.
        what: String,
    },
}

/// The right to prepare or to run, until it is dropped.
pub(crate) struct Lock {
    _file: File,
}

/// The directory of one action.
#[derive(Debug, Clone)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// One that is there already, or not at all.
    pub(crate) const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Makes it, where it is not there.
    pub(crate) fn make(&self) -> io::Result<()> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.0)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Where what is secret is.
    pub(crate) fn secrets(&self) -> PathBuf {
        self.0.join("secrets")
    }

    /// Where a stream is.
    pub(crate) fn stream(&self, stream: Stream) -> PathBuf {
        self.0.join(match stream {
            Stream::Out => "stdout",
            Stream::Err => "stderr",
        })
    }

    /// A stream to be added to.
    pub(crate) fn append(&self, stream: Stream) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        options.open(self.stream(stream))
    }

    /// Where the runner complains.
    pub(crate) fn complaints(&self) -> PathBuf {
        self.0.join("runner.err")
    }

    /// The lock, unless somebody else has it.
    pub(crate) fn try_lock(&self) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.0.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(cause)) => Err(cause),
        }
    }

    /// The lock, if whoever has it lets it go soon. Even one that was let go may seem to be held
    /// for a moment: a process that is being started has all that its parent had open.
    pub(crate) async fn lock_within(&self, patience: Duration) -> io::Result<Option<Lock>> {
        let until = Instant::now() + patience;
        loop {
            let lock = self.try_lock()?;
            if lock.is_some() || Instant::now() > until {
                return Ok(lock);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What is run, where that was prepared.
    pub(crate) fn run(&self) -> io::Result<Option<Run>> {
        self.read("run.json")
    }

    /// Says what is run.
    pub(crate) fn set_run(&self, _: &Lock, run: &Run) -> io::Result<()> {
        self.write("run.json", run)
    }

    /// That a script was begun.
    pub(crate) fn began(&self) -> io::Result<Option<Began>> {
        self.read("began")
    }

    /// Says that a script is begun now.
    pub(crate) fn set_began(&self, _: &Lock, began: &Began) -> io::Result<()> {
        self.write("began", began)
    }

    /// How it ended.
    pub(crate) fn end(&self) -> io::Result<Option<End>> {
        self.read("end.json")
    }

    /// Says how it ended.
    pub(crate) fn set_end(&self, _: &Lock, end: &End) -> io::Result<()> {
        self.write("end.json", end)
    }

    /// Where the environment is reached, where that was told.
    pub(crate) fn links(&self) -> io::Result<Option<Vec<Link>>> {
        self.read("links.json")
    }

    /// Says where it is reached.
    pub(crate) fn set_links(&self, _: &Lock, links: &[Link]) -> io::Result<()> {
        self.write("links.json", &links)
    }

    /// Whether somebody wants it to end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.join("cancel").exists()
    }

    /// Says that somebody wants it to end.
    pub(crate) fn cancel(&self) -> io::Result<()> {
        private(&self.0.join("cancel")).map(drop)
    }

    /// Takes away what is secret.
    pub(crate) fn burn(&self) {
        match std::fs::remove_dir_all(self.secrets()) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%cause, directory = %self.0.display(), "could not remove secrets");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Takes away all that an earlier attempt left, which nobody began.
    pub(crate) fn clear(&self, _: &Lock) -> io::Result<()> {
        self.burn();
        for name in ["stdout", "stderr", "links.json", "runner.err"] {
            match std::fs::remove_file(self.0.join(name)) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// A note of ours; none where it was not written.
    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let file = match File::open(self.0.join(name)) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let mut bytes = Vec::new();
        file.take(NOTE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// Writes a note whole or not at all, and has the disk keep it.
    fn write<T: Serialize>(&self, name: &str, note: &T) -> io::Result<()> {
        let draft = self.0.join(format!("{name}.new"));
        let mut file = private(&draft)?;
        file.write_all(&serde_json::to_vec(note)?)?;
        file.sync_all()?;
        std::fs::rename(&draft, self.0.join(name))?;
        File::open(&self.0)?.sync_all()
    }
}
