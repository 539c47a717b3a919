//! The runner: a program that runs one script to its end, whoever else dies.

use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use driver::deploy;
use rustix::process::{Pid, Signal, kill_process_group, setsid};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use crate::output::Redactor;
use crate::process::{piece, started, unstarted};

use super::LOCK_WAIT;
use super::directory::{Began, Directory, End, Lock, Order};
use super::session;
use super::stream::Stream;

/// Between two looks at whether somebody wants the script to end, or all of it is gone.
const TICK: Duration = Duration::from_millis(100);

/// How long what a script started may keep what it printed to, after its own end.
const LINGER: Duration = Duration::from_secs(1);

/// How often the end is tried to be written, once a second: a full disk may have room again.
const END_TRIES: usize = 60;

/// More than all arguments of a program can have.
const ORDER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// What a runner did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// It ran the script, and wrote down how that ended.
    Out,
    /// Nothing: another one did, or it was not to begin any more.
    Nothing,
}

/// Runs the script of a directory, as the order on standard input says.
///
/// For a program of its own, which nobody else is part of: it leaves its session.
pub async fn carry(path: &Path) -> io::Result<Carried> {
    let session = setsid()?.as_raw_nonzero().get();
    let directory = Directory::at(path.to_owned());
    let order = ordered()?;
    let Some(lock) = directory.lock_within(LOCK_WAIT).await? else {
        return Ok(Carried::Nothing);
    };
    let run = directory.run()?;
    let wanted = run.is_some_and(|run| run.attempt == order.attempt && !run.void);
    if !wanted || directory.began()?.is_some() || directory.end()?.is_some() {
        return Ok(Carried::Nothing);
    }
    if directory.is_cancelled() {
        directory.burn();
        concluded(&directory, &lock, &End::Cancelled).await?;
        return Ok(Carried::Nothing);
    }
    // Whoever wants it to end from here on is heard.
    let mut asked = signal(SignalKind::terminate())?;
    let action = path.file_name().unwrap_or_default().to_string_lossy();
    let began = Began {
        session,
        boot: session::boot()?,
        mark: format!("{MARK}={action}"),
    };
    directory.set_began(&lock, &began)?;
    let redactor = Redactor::new(order.secrets.iter().cloned());
    let end = match Carrying::start(&directory, &began, &order, &redactor).await {
        Ok(mut carrying) => carrying.follow(&mut asked).await?,
        Err(end) => end,
    };
    directory.burn();
    concluded(&directory, &lock, &end).await?;
    Ok(Carried::Out)
}

/// What a script finds in its environment, and nobody else does.
const MARK: &str = "SLIPWAY_ACTION";

/// Reads what is to be done. Who was to tell it may have died in the middle.
fn ordered() -> io::Result<Order> {
    let mut bytes = zeroize::Zeroizing::new(Vec::new());
    let stdin = io::stdin().lock();
    stdin.take(ORDER_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Writes down how it ended.
async fn concluded(directory: &Directory, lock: &Lock, end: &End) -> io::Result<()> {
    for _ in 1..END_TRIES {
        if directory.set_end(lock, end).is_ok() {
            return Ok(());
        }
        sleep(Duration::from_secs(1)).await;
    }
    directory.set_end(lock, end)
}

/// Why and until when a script is asked to end.
struct Ending {
    because: End,
    kill_at: Instant,
    killed: bool,
}

/// A script that runs.
struct Carrying<'a> {
    directory: &'a Directory,
    session: i32,
    child: Child,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Stream<'a>,
    err: Stream<'a>,
    status: Option<ExitStatus>,
    linger: Option<Instant>,
    patience: Duration,
    grace: Duration,
    deadline: Instant,
    ending: Option<Ending>,
}

impl<'a> Carrying<'a> {
    /// Starts the script, or says why not.
    async fn start(
        directory: &'a Directory,
        began: &Began,
        order: &Order,
        redactor: &'a Redactor,
    ) -> Result<Self, End> {
        let failed = |cause: &io::Error| {
            let error = unstarted(&order.program, cause);
            End::Unstarted {
                code: error.kind.code().to_owned(),
                what: error.what,
            }
        };
        let open = |stream| directory.append(stream).map_err(|cause| failed(&cause));
        let (out, err) = (open(deploy::Stream::Out)?, open(deploy::Stream::Err)?);
        let (name, value) = began.mark.split_once('=').unwrap_or_default();
        let mut command = Command::new(&order.program);
        command
            .args(&order.arguments)
            .env(name, value)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let spawned = started(&mut command).await;
        let mut child = spawned.map_err(|cause| failed(&cause))?;
        let patience = Duration::from_millis(order.patience_ms);
        Ok(Self {
            directory,
            session: began.session,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            out: Stream::new(out, redactor),
            err: Stream::new(err, redactor),
            status: None,
            linger: None,
            patience,
            grace: Duration::from_millis(order.grace_ms),
            deadline: Instant::now() + patience,
            ending: None,
        })
    }

    /// Follows it until it has ended, by itself or not.
    async fn follow(&mut self, asked: &mut tokio::signal::unix::Signal) -> io::Result<End> {
        let (mut of_out, mut of_err) = (vec![0; PIECE], vec![0; PIECE]);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.is_over() {
            let (out, err) = (self.stdout.is_some(), self.stderr.is_some());
            let next = self.next();
            tokio::select! {
                read = piece(&mut self.stdout, &mut of_out), if out => match read {
                    // What cannot be kept, because the disk is full, does not stop the script.
                    Ok(len) if len > 0 => drop(self.out.take(&of_out[..len])),
                    Ok(_) | Err(_) => self.stdout = None,
                },
                read = piece(&mut self.stderr, &mut of_err), if err => match read {
                    Ok(len) if len > 0 => drop(self.err.take(&of_err[..len])),
                    Ok(_) | Err(_) => self.stderr = None,
                },
                ended = self.child.wait(), if self.status.is_none() => {
                    self.status = Some(ended?);
                    self.linger = Some(Instant::now() + LINGER);
                }
                Some(()) = asked.recv() => {
                    let cancelled = self.directory.is_cancelled();
                    let by_signal = End::Signal(Signal::TERM.as_raw());
                    self.ask(if cancelled { End::Cancelled } else { by_signal });
                }
                _ = tick.tick() => self.look(),
                () = sleep_until(next) => self.press(),
            }
        }
        Ok(self.close())
    }

    /// Whether nothing more is to be waited for.
    fn is_over(&self) -> bool {
        let silent = self.stdout.is_none() && self.stderr.is_none();
        match (&self.ending, self.status) {
            (_, None) => false,
            (None, Some(_)) => silent,
            // Whatever does not even heed a KILL is waited for no longer than anything else.
            (Some(ending), Some(_)) => {
                let late = ending.killed && Instant::now() > ending.kill_at + self.grace;
                let members = session::members(self.session);
                let gone = members.is_ok_and(|members| members.is_empty());
                // What it printed last is still on its way; whoever left its session may keep that open.
                let silent = silent || self.linger.is_some_and(|linger| linger <= Instant::now());
                late || gone && silent
            }
        }
    }

    /// When something must be done.
    fn next(&self) -> Instant {
        match (&self.ending, self.linger) {
            (Some(ending), _) if ending.killed => Instant::now() + self.grace,
            (Some(ending), _) => ending.kill_at,
            (None, Some(linger)) => linger,
            (None, None) => self.deadline,
        }
    }

    /// Does it.
    fn press(&mut self) {
        match &mut self.ending {
            Some(ending) if !ending.killed => {
                ending.killed = true;
                session::signal(self.session, Signal::KILL);
            }
            Some(_) => {}
            None if self.linger.is_some() => (self.stdout, self.stderr) = (None, None),
            None => self.ask(End::TimedOut),
        }
    }

    /// Looks whether somebody wants it to end; a signal may be lost, the file is not.
    fn look(&mut self) {
        if self.ending.is_none() && self.directory.is_cancelled() {
            self.ask(End::Cancelled);
        }
    }

    /// Asks it to end.
    fn ask(&mut self, because: End) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some(Ending {
            because,
            kill_at: Instant::now() + self.grace,
            killed: false,
        });
        // It has its number until it was waited for; what it left behind is told one by one.
        let group = self.child.id().and_then(|id| i32::try_from(id).ok());
        match group.and_then(Pid::from_raw) {
            Some(group) => drop(kill_process_group(group, Signal::TERM)),
            None => session::signal(self.session, Signal::TERM),
        }
    }

    /// How it ended, with what was left to write.
    fn close(&mut self) -> End {
        drop(self.out.close());
        drop(self.err.close());
        let Some(ending) = self.ending.take() else {
            return match self.status.map(|status| (status.code(), status.signal())) {
                Some((Some(code), _)) => End::Exited(code),
                Some((None, signal)) => End::Signal(signal.unwrap_or_default()),
                None => End::Signal(0),
            };
        };
        let why = match &ending.because {
            End::TimedOut => {
                // What is left of it when it begins is a little less than what people said.
                let seconds = self.patience.as_secs_f64().ceil();
                format!("it took longer than {seconds} s")
            }
            End::Cancelled => "it was cancelled".to_owned(),
            End::Signal(_) | End::Exited(_) | End::Unstarted { .. } => {
                "the machine wanted it to end".to_owned()
            }
        };
        let how = if ending.killed { "killed" } else { "ended" };
        drop(self.err.note(&format!("{why}, and was {how}")));
        ending.because
    }
}
