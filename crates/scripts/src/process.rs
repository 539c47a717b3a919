//! Runs a script that looks or tells something, here and now.
//!
//! It has a group of processes of its own, nothing to read, and so much time. When that has passed
//! its group is asked to end, and soon after ended; when nobody waits for the answer any more, at
//! once. What it prints is kept up to a bound, and the rest is read and dropped.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use model::environment::settings::Settings;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::Instant;

use crate::contract::Script;
use crate::error::{Error, Kind};
use crate::output::Redactor;

/// How long a script may take to end when it is asked to.
pub const GRACE: Duration = Duration::from_secs(3);

/// How long what a script started may keep what it printed to, after its own end.
const LINGER: Duration = Duration::from_millis(500);

/// How often a file that is being written is tried again, and when.
const BUSY_TRIES: usize = 20;
const BUSY_WAIT: Duration = Duration::from_millis(25);

/// How much is read at once: what most scripts print in all.
const PIECE: usize = 4096;

/// A script, and all it is given.
pub struct Call<'a> {
    /// The file.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// All its variables.
    pub variables: &'a [(OsString, OsString)],
    /// How long it may take.
    pub patience: Duration,
    /// How long it may take to end after that.
    pub grace: Duration,
    /// How much of either stream is kept.
    pub keep: Keep,
}

/// Which part of a stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning, with at most so many bytes.
    First(usize),
    /// The end, with at most so many bytes.
    Last(usize),
}

/// What was kept of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    keep: Keep,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many there were besides.
    pub dropped: u64,
}

impl Captured {
    const fn new(keep: Keep) -> Self {
        Self {
            keep,
            bytes: Vec::new(),
            dropped: 0,
        }
    }

    fn take(&mut self, piece: &[u8]) {
        let dropped = match self.keep {
            Keep::First(most) => {
                let room = most.saturating_sub(self.bytes.len()).min(piece.len());
                self.bytes.extend_from_slice(&piece[..room]);
                piece.len() - room
            }
            Keep::Last(most) => {
                self.bytes.extend_from_slice(piece);
                let surplus = self.bytes.len().saturating_sub(most);
                self.bytes.drain(..surplus);
                surplus
            }
        };
        self.dropped = self
            .dropped
            .saturating_add(u64::try_from(dropped).unwrap_or(u64::MAX));
    }

    /// What was kept as text, without what is secret.
    pub fn clean(&self, redactor: &Redactor) -> String {
        let text = crate::output::legible(&self.bytes);
        let clean = redactor.clean(&text);
        let left = match (self.dropped, self.keep) {
            (0, _) => &clean,
            (_, Keep::First(_)) => redactor.before_cut(&clean),
            (_, Keep::Last(_)) => redactor.after_cut(&clean),
        };
        left.to_owned()
    }

    /// The same for people, with a note where something was dropped.
    pub fn text(&self, redactor: &Redactor) -> String {
        let text = self.clean(redactor);
        let text = text.trim_end();
        match (self.dropped, self.keep) {
            (0, _) => text.to_owned(),
            (dropped, Keep::First(_)) => format!("{text}\n[{dropped} bytes more were dropped]"),
            (dropped, Keep::Last(_)) => {
                format!("[{dropped} bytes before this were dropped]\n{text}")
            }
        }
    }
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// It took too long, and was ended.
    TimedOut,
}

/// A script that ended, and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub how: How,
    /// What it printed.
    pub out: Captured,
    /// What it complained about.
    pub err: Captured,
}

impl Ended {
    /// All that it said without what is secret, what it complained about last.
    pub fn said(&self, redactor: &Redactor) -> String {
        let (out, err) = (self.out.text(redactor), self.err.text(redactor));
        let between = if out.is_empty() || err.is_empty() {
            ""
        } else {
            "\n"
        };
        format!("{out}{between}{err}")
    }
}

/// Finds the file of a script among those of a project.
pub fn find(settings: &Settings, script: Script) -> Result<PathBuf, Error> {
    find_in(Path::new(&settings.scripts), script)
}

/// What tells the file of a script from another one that was there before, or will be; none where there is none.
pub(crate) fn state(settings: &Settings, script: Script) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let file = find(settings, script).ok()?;
    let is = std::fs::metadata(&file).ok()?;
    let (name, node, size) = (file.display(), is.ino(), is.size());
    let changed = (is.mtime(), is.mtime_nsec());
    Some(format!("{name} {node} {size} {changed:?}"))
}

/// Finds the file of a script in a directory.
pub fn find_in(directory: &Path, script: Script) -> Result<PathBuf, Error> {
    let candidates = || script.names().iter().map(|name| directory.join(name));
    for file in candidates() {
        match std::fs::metadata(&file) {
            Ok(found) if found.is_file() => return executable(&found, file),
            Ok(_) => {
                let what = format!("script {} is not a file", file.display());
                return Err(Error::new(Kind::NotExecutable, what));
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => {
                let what = format!("could not look at script {}: {cause}", file.display());
                return Err(Error::new(Kind::NoDirectory, what));
            }
        }
    }
    if !directory.is_absolute() || !directory.is_dir() {
        let what = format!("there is no directory of scripts {}", directory.display());
        return Err(Error::new(Kind::NoDirectory, what));
    }
    let names = script.names().join(" or ");
    let what = format!("there is no script {names} in {}", directory.display());
    Err(Error::new(Kind::Missing, what))
}

/// Which scripts of a project cannot be run that have to be there: as one error for each reason.
pub(crate) fn lacking(settings: &Settings) -> Vec<Error> {
    let needed = Script::ALL.iter().filter(|script| !script.is_optional());
    let found = needed.filter_map(|script| {
        let error = find(settings, *script).err()?;
        Some((script.name(), error))
    });
    let mut missing = Vec::new();
    let mut errors: Vec<Error> = Vec::new();
    for (name, error) in found {
        if error.kind == Kind::NoDirectory {
            // It is the same for all of them.
            return vec![error];
        }
        if error.kind == Kind::Missing {
            missing.push(name);
        } else {
            errors.push(error);
        }
    }
    if !missing.is_empty() {
        let (several, names) = (missing.len() > 1, missing.join(", "));
        let (are, scripts) = if several {
            ("are", "scripts")
        } else {
            ("is", "script")
        };
        let what = format!("there {are} no {scripts} {names} in {}", settings.scripts);
        errors.insert(0, Error::new(Kind::Missing, what));
    }
    errors
}

/// The file, if anybody may run it.
fn executable(found: &std::fs::Metadata, file: PathBuf) -> Result<PathBuf, Error> {
    use std::os::unix::fs::PermissionsExt as _;
    if found.permissions().mode() & 0o111 != 0 {
        return Ok(file);
    }
    let what = format!("script {} is not executable", file.display());
    Err(Error::new(Kind::NotExecutable, what))
}

/// Why a script could not be started, from what the system said.
pub(crate) fn unstarted(program: &Path, cause: &io::Error) -> Error {
    // The file was there a moment ago: what is not found is its interpreter.
    let of_script = [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOEXEC,
    ];
    let said = Errno::from_io_error(cause);
    let kind = match said {
        Some(said) if of_script.contains(&said) => Kind::NotExecutable,
        Some(Errno::TOOBIG) => Kind::TooLong,
        Some(_) | None => Kind::OurSide,
    };
    let what = format!("could not start {}: {cause}", program.display());
    Error::new(kind, what)
}

/// Starts a program. One that somebody writes at this moment is tried again for a while: whoever
/// replaces scripts does not mean to stop them.
pub(crate) async fn started(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(cause) if cause.kind() == io::ErrorKind::ExecutableFileBusy => {
                tokio::time::sleep(BUSY_WAIT).await;
            }
            spawned => return spawned,
        }
    }
    command.spawn()
}

/// Runs a script to its end. If the returned future is dropped, it is ended with all it started.
pub async fn run(call: &Call<'_>) -> Result<Ended, Error> {
    let mut running = Running::start(call).await?;
    let broken = |cause: io::Error| {
        let what = format!("could not follow {}: {cause}", call.program.display());
        Error::new(Kind::OurSide, what)
    };
    let heard = tokio::time::timeout(call.patience, running.hear()).await;
    let how = if let Ok(status) = heard {
        how(status.map_err(broken)?)
    } else {
        running.end(call.grace).await.map_err(broken)?;
        How::TimedOut
    };
    let Running { out, err, .. } = &mut running;
    let keep = call.keep;
    Ok(Ended {
        how,
        out: std::mem::replace(out, Captured::new(keep)),
        err: std::mem::replace(err, Captured::new(keep)),
    })
}

/// How a program ended.
fn how(status: ExitStatus) -> How {
    match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited(code),
        (None, signal) => How::Signal(signal.unwrap_or_default()),
    }
}

/// A script that runs, and ends with all it started when this is dropped.
struct Running {
    child: Child,
    group: Option<Pid>,
    status: Option<ExitStatus>,
    /// When those are given up that still hold its streams.
    linger: Option<Instant>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Captured,
    err: Captured,
}

impl Running {
    async fn start(call: &Call<'_>) -> Result<Self, Error> {
        let variables = call.variables.iter().map(|(name, value)| (name, value));
        let mut command = Command::new(call.program);
        command
            .args(call.arguments)
            .env_clear()
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let spawned = started(&mut command).await;
        let mut child = spawned.map_err(|cause| unstarted(call.program, &cause))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            group: group.and_then(Pid::from_raw),
            status: None,
            linger: None,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            out: Captured::new(call.keep),
            err: Captured::new(call.keep),
        })
    }

    /// Takes what it prints until it has ended; may be dropped and asked again.
    async fn hear(&mut self) -> io::Result<ExitStatus> {
        let (mut of_out, mut of_err) = (vec![0; PIECE], vec![0; PIECE]);
        loop {
            let (out, err) = (self.stdout.is_some(), self.stderr.is_some());
            if let (Some(status), false, false) = (self.status, out, err) {
                return Ok(status);
            }
            tokio::select! {
                read = piece(&mut self.stdout, &mut of_out), if out => match read? {
                    0 => self.stdout = None,
                    len => self.out.take(&of_out[..len]),
                },
                read = piece(&mut self.stderr, &mut of_err), if err => match read? {
                    0 => self.stderr = None,
                    len => self.err.take(&of_err[..len]),
                },
                ended = self.child.wait(), if self.status.is_none() => {
                    self.status = Some(ended?);
                    self.linger = Some(Instant::now() + LINGER);
                }
                () = until(self.linger), if self.linger.is_some() => {
                    // Something that it started still holds what it printed to.
                    self.signal(Signal::KILL);
                    (self.stdout, self.stderr) = (None, None);
                }
            }
        }
    }

    /// Ends it, in two steps.
    async fn end(&mut self, grace: Duration) -> io::Result<()> {
        self.signal(Signal::TERM);
        let ended = tokio::time::timeout(grace, self.hear()).await;
        // What it started may have ignored what it heeded itself. The number of a group that was
        // there a moment ago is nobody else's yet.
        self.signal(Signal::KILL);
        match ended {
            Ok(ended) => ended.map(drop),
            Err(_) => self.hear().await.map(drop),
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(cause) = kill_process_group(group, signal)
            && cause != Errno::SRCH
        {
            tracing::warn!(%cause, "could not end a script");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has its number until it was waited for.
        if self.status.is_none() {
            self.signal(Signal::KILL);
        }
    }
}

/// One piece of what is printed; none where nothing is open.
pub(crate) async fn piece<R: AsyncRead + Unpin>(
    from: &mut Option<R>,
    to: &mut [u8],
) -> io::Result<usize> {
    match from {
        Some(from) => from.read(to).await,
        None => Ok(0),
    }
}

/// Completes then, or never.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}
