//! One run of Ansible as a process, kept by a shell that ends all of it.

use super::Pair;
use super::texts::Dir;
use crate::error::{Error, Kind};
use crate::ssh::{Log, Output};
use model::secret::Secret;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

const KEEPER: &str = include_str!("keeper.sh");

/// How long the agent may take to listen and to take the key, on a machine that is very busy.
const AGENT_MAX: Duration = Duration::from_secs(30);

/// How often it is looked whether the agent listens.
const AGENT_TICK: Duration = Duration::from_millis(10);

/// How long the keeper may take to end what was started.
const ENDING: Duration = Duration::from_secs(10);

/// How long to wait for more output when the keeper has ended: what hid from it may hold the
/// output open for ever.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// What `ssh-add` says when there is nobody to talk to.
const NO_AGENT: i32 = 2;

/// What is run.
pub(super) struct Order<'a> {
    pub(super) dir: Dir<'a>,
    /// Where programs are searched.
    pub(super) path: &'a OsStr,
    /// The program and its arguments.
    pub(super) words: &'a [OsString],
}

impl Order<'_> {
    /// A program that has nothing of our own environment.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", self.path)
            .env("HOME", self.dir.0)
            .env("LC_ALL", "C.UTF-8")
            .env("SSH_AUTH_SOCK", self.dir.agent())
            .current_dir(self.dir.0);
        command
    }
}

/// A run and its keeper. When dropped, the keeper ends all of it, and nobody waits for that.
pub(super) struct Keeper {
    child: Child,
    /// While it is open somebody waits for the run.
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

impl Keeper {
    /// Starts the keeper, and the agent with it; the run itself waits for the key.
    pub(super) fn start(order: &Order<'_>) -> io::Result<Self> {
        let dir = order.dir;
        // The shell's own session, so that no terminal can speak to it or stop it. It must
        // outlive us for a moment, and so is not killed when it is dropped.
        let mut child = order
            .command("setsid")
            .args(["/bin/sh", "-c", KEEPER, "slipway-playbook"])
            .arg(dir.0)
            .args(order.words)
            .env("ANSIBLE_CONFIG", dir.settings())
            .env("ANSIBLE_HOME", dir.0.join("ansible"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONUNBUFFERED", "1")
            .env("TMPDIR", dir.scratch())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
        })
    }

    /// Gives the keys to the agent and has the run go to its end; tells its status.
    pub(super) async fn drive(
        &mut self,
        order: &Order<'_>,
        keys: &[Pair],
        life: Duration,
        log: Log<'_>,
    ) -> Result<Option<i32>, Error> {
        for key in keys {
            hand_over(order, &key.private, life).await?;
        }
        if let Some(stdin) = &mut self.stdin {
            // A keeper that has ended tells why by its status.
            drop(stdin.write_all(b"go\n").await);
        }
        let status = self.listen(log).await;
        let status = status.map_err(|error| {
            let what = format!("could not wait for ansible-playbook: {error}");
            Error::new(Kind::Failed, what)
        })?;
        Ok(status.code())
    }

    /// Reads what is said until the keeper has ended.
    async fn listen(&mut self, log: Log<'_>) -> io::Result<ExitStatus> {
        let mut output = Output::new(log);
        let (mut said, mut complained) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
        let mut ended = None;
        loop {
            if self.stdout.is_none() && self.stderr.is_none() && ended.is_some() {
                break;
            }
            let more = async {
                tokio::select! {
                    read = next(&mut self.stdout, &mut said) => (true, read),
                    read = next(&mut self.stderr, &mut complained) => (false, read),
                }
            };
            tokio::select! {
                biased;
                (first, read) = more => match read {
                    0 if first => self.stdout = None,
                    0 => self.stderr = None,
                    read if first => output.stdout(&said[..read]),
                    read => output.stderr(&complained[..read]),
                },
                status = self.child.wait(), if ended.is_none() => ended = Some(status?),
                () = sleep(AFTERWARDS), if ended.is_some() => break,
            }
        }
        drop(output.finish());
        match ended {
            Some(ended) => Ok(ended),
            None => self.child.wait().await,
        }
    }

    /// Tells the keeper that nobody waits any more, and whether it was seen to obey.
    pub(super) async fn end(mut self) -> bool {
        drop(self.stdin.take());
        let gone = timeout(ENDING, self.child.wait()).await;
        if gone.is_ok() {
            return true;
        }
        // It has an id until it was waited for, so the number cannot be somebody else's.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw)
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            tracing::warn!(%error, "could not end the keeper of a playbook");
        }
        false
    }
}

/// The next bytes; waits for ever where none can come, and tells the end as nothing.
async fn next(from: &mut Option<impl AsyncRead + Unpin>, into: &mut [u8]) -> usize {
    match from {
        Some(from) => from.read(into).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

/// Gives the key to the agent, by a pipe; the agent forgets it by itself after a while.
async fn hand_over(order: &Order<'_>, key: &Secret, life: Duration) -> Result<(), Error> {
    let failed = |why: &str| {
        let what = format!("could not give the key to an ssh-agent: {why}");
        Error::new(Kind::Failed, what)
    };
    let until = Instant::now() + AGENT_MAX;
    while Instant::now() < until {
        if !order.dir.agent().exists() {
            sleep(AGENT_TICK).await;
            continue;
        }
        let given = timeout(AGENT_MAX, add(order, key, life)).await;
        let output = given
            .map_err(|_| failed("it takes too long"))?
            .map_err(|error| failed(&error.to_string()))?;
        match output.status.code() {
            Some(0) => return Ok(()),
            // Its socket is there a moment before it listens.
            Some(NO_AGENT) => sleep(AGENT_TICK).await,
            Some(_) | None => {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(failed(
                    said.trim().lines().last().unwrap_or("nobody knows why"),
                ));
            }
        }
    }
    Err(failed("it does not listen"))
}

async fn add(order: &Order<'_>, key: &Secret, life: Duration) -> io::Result<std::process::Output> {
    let mut child = order
        .command("ssh-add")
        .args(["-q", "-t", &life.as_secs().to_string(), "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends without reading tells why by its status.
        drop(stdin.write_all(key.expose()).await);
    }
    child.wait_with_output().await
}
