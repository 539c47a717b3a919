//! Begins a script under a runner, or finds one that was begun, and follows it to its end.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use driver::Context;
use driver::deploy::{Acted, Because, Following, Stream};
use model::environment::link::Link;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::error::{Error, Kind};
use crate::output::Redactor;
use crate::secrets::{Opened, private};

use super::LOCK_WAIT;
use super::directory::{Began, Directory, End, Lock, Order, Run};
use super::session;
use super::tail::Tail;

/// Between two looks at what has come.
const TICK: Duration = Duration::from_millis(100);

/// How many of them pass between two looks at whether a runner lives.
const TICKS_OF_LOCK: u32 = 10;

/// How many pieces of output are passed on before anything else is looked at.
const PIECES_MAX: usize = 16;

/// How long a runner may take, besides what its script is given to end, to end it when it should.
const HEED_WITHIN: Duration = Duration::from_secs(10);

/// How often that passes before it is ended though its script has ended: longer than it tries to write
/// that down.
const REMINDERS_MAX: u32 = 6;

/// How long processes may take to be gone that were killed.
const KILLED_WAIT: Duration = Duration::from_secs(5);

/// How runners are started: a program and its first arguments; the directory is the last one.
#[derive(Debug, Clone)]
pub(crate) struct Runner(pub(crate) Vec<OsString>);

/// A script with all it is given.
pub(crate) struct Prepared {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) opened: Opened,
    pub(crate) patience: Duration,
    pub(crate) grace: Duration,
    /// Where the environment is reached, or why nobody knows.
    pub(crate) links: Option<Result<Vec<Link>, String>>,
}

/// What is in a directory.
pub(crate) enum Found {
    /// How a script ended.
    Ended(End),
    /// Somebody works there: a runner, or one who prepares.
    Held,
    /// A runner was there, and died.
    Died(Began),
    /// Nothing was begun.
    Free(Lock),
}

/// Follows what is done in one directory.
pub(crate) struct Follower<'a> {
    directory: Directory,
    following: &'a Following<'a>,
    out: Tail,
    err: Tail,
    child: Option<Child>,
    /// For which attempt a runner was started here.
    attempt: Option<u64>,
    /// Whether the runner that was started here is gone.
    exited: bool,
    began: bool,
}

impl<'a> Follower<'a> {
    pub(crate) fn new(path: PathBuf, following: &'a Following<'a>) -> io::Result<Self> {
        let directory = Directory::at(path);
        directory.make()?;
        let tail = |stream| Tail::new(directory.stream(stream), following.output.known(stream));
        Ok(Self {
            out: tail(Stream::Out),
            err: tail(Stream::Err),
            directory,
            following,
            child: None,
            attempt: None,
            exited: false,
            began: false,
        })
    }

    /// Looks what is there. The end counts whoever holds the lock, and nobody else writes it once
    /// the lock is ours.
    pub(crate) fn find(&self) -> io::Result<Found> {
        if let Some(end) = self.directory.end()? {
            return Ok(Found::Ended(end));
        }
        let Some(lock) = self.directory.try_lock()? else {
            return Ok(Found::Held);
        };
        if let Some(end) = self.directory.end()? {
            return Ok(Found::Ended(end));
        }
        let began = self.directory.began()?;
        Ok(began.map_or(Found::Free(lock), Found::Died))
    }

    /// Sees to it that nothing that was prepared begins any more.
    pub(crate) fn void(&self, lock: &Lock) -> io::Result<()> {
        self.directory.burn();
        match self.directory.run()? {
            Some(run) => self.directory.set_run(lock, &Run { void: true, ..run }),
            None => Ok(()),
        }
    }

    /// Whether nobody else has prepared it since our runner was started.
    fn is_newest(&self) -> io::Result<bool> {
        let run = self.directory.run()?;
        Ok(run.map(|run| run.attempt) == self.attempt)
    }

    /// Starts a runner; what it is told is written down as far as it is not secret.
    pub(crate) async fn begin(
        &mut self,
        lock: Lock,
        prepared: &Prepared,
        runner: &Runner,
    ) -> Result<(), Error> {
        let attempt = self.prepare(&lock, prepared).map_err(|cause| {
            let what = format!(
                "could not prepare {}: {cause}",
                self.directory.path().display()
            );
            Error::new(Kind::OurSide, what)
        })?;
        let order = Order {
            attempt,
            program: prepared.program.clone(),
            arguments: prepared.arguments.clone(),
            secrets: prepared.opened.texts().collect(),
            patience_ms: u64::try_from(prepared.patience.as_millis()).unwrap_or(u64::MAX),
            grace_ms: u64::try_from(prepared.grace.as_millis()).unwrap_or(u64::MAX),
        };
        drop(lock);
        self.attempt = Some(attempt);
        let started = self.start(prepared, &order, runner).await;
        started.map_err(|cause| {
            let what = format!(
                "could not start the runner of {}: {cause}",
                prepared.program.display()
            );
            Error::new(Kind::OurSide, what)
        })
    }

    /// Writes all that the runner and those who come back need; answers which attempt it is.
    fn prepare(&self, lock: &Lock, prepared: &Prepared) -> io::Result<u64> {
        let directory = &self.directory;
        directory.clear(lock)?;
        let attempt = directory.run()?.map_or(1, |run| run.attempt + 1);
        match &prepared.links {
            Some(Ok(links)) => directory.set_links(lock, links)?,
            Some(Err(why)) => {
                let mut stderr = directory.append(Stream::Err)?;
                let why = why.lines().map(|line| format!("slipway: info: {line}\n"));
                stderr.write_all(why.collect::<String>().as_bytes())?;
            }
            None => {}
        }
        if prepared.opened.wants_files() {
            prepared.opened.write(&directory.secrets())?;
        }
        let redactor = Redactor::new(prepared.opened.texts());
        let shown = prepared.arguments.iter();
        let shown = shown.map(|word| redactor.clean(word).into_owned());
        let run = Run {
            attempt,
            void: false,
            program: prepared.program.clone(),
            arguments: shown.collect(),
        };
        directory.set_run(lock, &run)?;
        Ok(attempt)
    }

    async fn start(
        &mut self,
        prepared: &Prepared,
        order: &Order,
        runner: &Runner,
    ) -> io::Result<()> {
        let [program, first @ ..] = runner.0.as_slice() else {
            return Err(io::Error::other("there is no runner"));
        };
        let secrets = prepared.opened.leading(&self.directory.secrets());
        let mut child = Command::new(program)
            .args(first)
            .arg(self.directory.path())
            .env_clear()
            .envs(prepared.variables.iter().cloned())
            .envs(secrets)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(private(&self.directory.complaints())?)
            .spawn()?;
        let stdin = child.stdin.take();
        (self.child, self.exited) = (Some(child), false);
        if let Some(mut stdin) = stdin {
            let order = zeroize::Zeroizing::new(serde_json::to_vec(order)?);
            // One that ends before it has read all says why elsewhere.
            drop(stdin.write_all(&order).await);
        }
        Ok(())
    }

    /// Follows it until it has ended or nobody wants to know; nothing if it must be looked for
    /// again. Its runner ends it when its time is `over`; one that does not even do that is ended itself.
    pub(crate) async fn follow(
        &mut self,
        cx: &Context,
        over: Duration,
        grace: Duration,
    ) -> io::Result<Option<Acted>> {
        let heeds_within = grace * 2 + HEED_WITHIN;
        let mut overdue = Instant::now() + over + heeds_within;
        let (mut asked, mut reminders) = (false, 0);
        let mut ticks = 1;
        loop {
            // What was printed is written before the end is: in this order nothing is missed.
            let end = self.directory.end()?;
            let more = self.pass_on()?;
            if let Some(end) = end {
                return Ok(Some(self.conclude(end).await?));
            }
            if let Some(child) = &mut self.child
                && child.try_wait()?.is_some()
            {
                (self.child, self.exited, ticks) = (None, true, 0);
            }
            if self.child.is_none() && ticks % TICKS_OF_LOCK == 0 {
                match self.find()? {
                    // Another runner; or nobody, who is only about to let the lock go.
                    Found::Held | Found::Ended(_) => {}
                    Found::Died(began) => return Ok(Some(self.lose(&began).await?)),
                    Found::Free(lock) if self.exited => {
                        if self.is_newest()? {
                            return Ok(Some(self.unbegun(&lock)?));
                        }
                        // Somebody has prepared it anew meanwhile, whose runner may be about to begin.
                        self.exited = false;
                    }
                    Found::Free(_) => return Ok(None),
                }
            }
            if Instant::now() > overdue {
                overdue = Instant::now() + HEED_WITHIN;
                reminders += 1;
                // One whose script has ended may wait for room on the disk to write that down.
                if reminders > REMINDERS_MAX || self.script_lives()? {
                    self.end_runner()?;
                }
            }
            ticks += 1;
            let pause = if more { Duration::ZERO } else { TICK };
            tokio::select! {
                biased;
                () = cx.cancelled() => return Ok(Some(Acted::Left)),
                () = self.following.end.cancelled(), if !asked => {
                    asked = true;
                    overdue = overdue.min(Instant::now() + heeds_within);
                    self.directory.cancel()?;
                }
                () = sleep(pause) => {}
            }
        }
    }

    /// What became of it, when all of its output was passed on.
    pub(crate) async fn conclude(&mut self, end: End) -> io::Result<Acted> {
        self.pass_on_all().await?;
        // It ends right after that, and is not to be left unattended.
        if let Some(mut child) = self.child.take() {
            child.wait().await?;
        }
        Ok(match end {
            End::Exited(status) => Acted::Exited { status },
            End::Signal(signal) => Acted::Killed {
                because: Because::Signal(signal),
            },
            End::TimedOut => Acted::Killed {
                because: Because::TimedOut,
            },
            End::Cancelled => {
                let because = Because::Cancelled;
                if self.directory.began()?.is_some() {
                    Acted::Killed { because }
                } else {
                    Acted::Withdrawn { because }
                }
            }
            End::Unstarted { code, what } => {
                let kind = Kind::of_code(&code).unwrap_or(Kind::OurSide);
                Acted::Unbegun(Error::new(kind, what).into())
            }
        })
    }

    /// Whether anything lives that its runner should have ended.
    fn script_lives(&self) -> io::Result<bool> {
        let Some(began) = self.directory.began()? else {
            return Ok(false);
        };
        let members = session::members(began.session)?;
        let others = members.iter().any(|pid| pid.as_raw_pid() != began.session);
        Ok(began.boot == session::boot()? && others)
    }

    /// Ends a runner that neither ends its script nor itself; what it leaves is found as of one that died.
    fn end_runner(&mut self) -> io::Result<()> {
        tracing::warn!(directory = %self.directory.path().display(), "a runner does not heed, and is ended");
        if let Some(child) = &mut self.child {
            child.start_kill()?;
        } else if let Some(began) = self.directory.began()?
            && began.boot == session::boot()?
        {
            session::end_leader(began.session);
        }
        Ok(())
    }

    fn tell_links(&self) -> io::Result<()> {
        if let Some(links) = self.directory.links()? {
            self.following.output.links(&links);
        }
        Ok(())
    }

    /// The runner died: whatever it has left is ended, and what it wrote is passed on.
    pub(crate) async fn lose(&mut self, began: &Began) -> io::Result<Acted> {
        self.directory.burn();
        clear(began).await?;
        self.pass_on_all().await?;
        Ok(Acted::Lost)
    }

    /// It could not be begun, and nothing of it is to begin later.
    pub(crate) async fn give_up(&mut self, error: Error) -> io::Result<Acted> {
        let lock = self.directory.lock_within(LOCK_WAIT).await?;
        match lock {
            Some(lock) if self.directory.began()?.is_none() => {
                self.void(&lock)?;
                Ok(Acted::Unbegun(error.into()))
            }
            Some(_) | None => Ok(Acted::Left),
        }
    }

    /// The runner ended without having begun.
    fn unbegun(&mut self, lock: &Lock) -> io::Result<Acted> {
        self.void(lock)?;
        let said = std::fs::read(self.directory.complaints()).unwrap_or_default();
        let said = crate::output::legible(&said).into_owned();
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let what = format!(
            "the runner did not begin: {}",
            last.unwrap_or("it said nothing")
        );
        Ok(Acted::Unbegun(Error::new(Kind::OurSide, what).into()))
    }

    /// Passes on what has come; answers whether there may be more.
    fn pass_on(&mut self) -> io::Result<bool> {
        // What is there before it began is rewritten if it is prepared again.
        if !self.began {
            if self.directory.began()?.is_none() {
                return Ok(false);
            }
            self.began = true;
            self.tell_links()?;
        }
        let output = self.following.output;
        let tails = [(&mut self.out, Stream::Out), (&mut self.err, Stream::Err)];
        let mut more = false;
        for (tail, stream) in tails {
            let mut tell = |line: &str| output.line(stream, line);
            let mut pieces = 0;
            while pieces < PIECES_MAX && tail.read(&mut tell)? {
                pieces += 1;
            }
            more |= pieces == PIECES_MAX;
        }
        Ok(more)
    }

    /// Passes on all there is, and what is left of lines without an end.
    async fn pass_on_all(&mut self) -> io::Result<()> {
        while self.pass_on()? {
            tokio::task::yield_now().await;
        }
        let output = self.following.output;
        let tails = [(&mut self.out, Stream::Out), (&mut self.err, Stream::Err)];
        for (tail, stream) in tails {
            tail.close(&mut |line: &str| output.line(stream, line));
        }
        Ok(())
    }
}

/// Where what is secret is in a directory, while there is any.
pub(crate) fn secrets(path: PathBuf) -> PathBuf {
    Directory::at(path).secrets()
}

/// Removes a directory of which nobody wants to know anything more. Whoever works in it is asked to
/// end; what a runner that died left running is ended.
pub(crate) async fn forget(path: PathBuf) -> io::Result<()> {
    let directory = Directory::at(path);
    if !directory.path().exists() {
        return Ok(());
    }
    let Some(_lock) = directory.lock_within(LOCK_WAIT).await? else {
        directory.cancel()?;
        return Err(io::Error::other("it is still worked on, and asked to end"));
    };
    if directory.end()?.is_none()
        && let Some(began) = directory.began()?
    {
        clear(&began).await?;
    }
    std::fs::remove_dir_all(directory.path())
}

/// Ends whatever a runner has left that died.
async fn clear(began: &Began) -> io::Result<()> {
    if began.boot == session::boot()? {
        let until = Instant::now() + KILLED_WAIT;
        while session::clear(began.session, &began.mark) && Instant::now() < until {
            sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}
