//! A PostgreSQL server of one's own.
//!
//! [`Postgres::start`] makes a cluster in a directory that belongs to it alone and serves it on a
//! free port of the loopback device. Every process it needs is a child of a small shell (`guard.sh`)
//! that holds one end of a pipe whose other end is here: when this process ends, by itself or by
//! SIGKILL, the kernel closes the pipe, and the guard stops the server and removes the directory.

mod find;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use find::Programs;

/// The program that owns the server.
const GUARD: &str = include_str!("postgres/guard.sh");

/// How long a server may take until it answers; after a crash it must first read its log.
const START_MAX: Duration = Duration::from_mins(1);

/// How often we look.
const LOOK: Duration = Duration::from_millis(10);

/// The ports that we choose from.
///
/// They lie below those that the kernel gives to outgoing connections. Among those, somebody could
/// take our port while the server restarts: even a client of ours that tries again and again, and
/// one day is connected to itself.
const PORTS: std::ops::Range<u16> = 15_000..32_000;

/// What a server should be like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether an answered commit survives the loss of power, as it does in production.
    ///
    /// Without it the server never waits for the disk. What it answered still survives
    /// [`Postgres::kill`], because the kernel keeps what was written.
    pub durable: bool,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There are no programs of a PostgreSQL server.
    #[error("no PostgreSQL server is installed")]
    Missing {
        /// Whether `cargo xtask tools` could change that.
        installable: bool,
    },
    /// Somebody has to run the server, and root must not.
    #[error("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")]
    NoServant,
    /// The operating system refused something.
    #[error("could not {attempted}: {error}")]
    System {
        /// What was attempted.
        attempted: &'static str,
        /// What it said.
        error: std::io::Error,
    },
    /// A program of PostgreSQL refused something.
    #[error("could not {attempted}: {said}")]
    Refused {
        /// What was attempted.
        attempted: &'static str,
        /// The last that it said.
        said: String,
    },
    /// No port is free.
    #[error("could not find a free port from {} to {}", PORTS.start, PORTS.end)]
    NoPort,
}

impl Error {
    /// Whether the server could not start because somebody else has its port.
    fn is_port_taken(&self) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains("could not bind"))
    }

    /// Whether sessions of a killed server still hold its memory. They end by themselves.
    fn is_too_early(&self) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains("shared memory block"))
    }
}

/// Makes an [`Error::System`] of what the operating system says.
fn system(attempted: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |error| Error::System { attempted, error }
}

/// A PostgreSQL server that lives no longer than this value, nor than this process.
#[derive(Debug)]
pub struct Postgres {
    programs: Programs,
    /// Removed by the guard, and by us should the guard have died.
    directory: TempDir,
    guard: Child,
    /// Taken when the guard shall end.
    wishes: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    port: u16,
    /// The process of the server while it runs.
    server: Option<u32>,
    databases: AtomicU32,
}

impl Postgres {
    /// Makes an empty cluster and starts its server.
    pub fn start(options: Options) -> Result<Self, Error> {
        let programs = Programs::find()?;
        let directory = tempfile::Builder::new()
            .prefix("lab-postgres-")
            .tempdir()
            .map_err(system("make a directory"))?;
        let mut guard = guard(&programs, directory.path(), options)?;
        let (Some(wishes), Some(answers)) = (guard.stdin.take(), guard.stdout.take()) else {
            unreachable!("the guard was started with both pipes");
        };
        let mut postgres = Self {
            programs,
            directory,
            guard,
            wishes: Some(wishes),
            answers: BufReader::new(answers),
            port: 0,
            server: None,
            databases: AtomicU32::new(0),
        };
        if postgres.answer()? != "made" {
            return Err(postgres.refused("make a cluster"));
        }
        for port in ports() {
            postgres.port = port;
            match postgres.begin() {
                Err(error) if error.is_port_taken() => {}
                other => return other.map(|()| postgres),
            }
        }
        Err(Error::NoPort)
    }

    /// Starts the server again, on the same port and data, and waits until it answers.
    ///
    /// Nothing happens when it runs already.
    pub fn begin(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + START_MAX;
        while self.server.is_none() {
            match self.try_begin(deadline) {
                Err(error) if error.is_too_early() && Instant::now() < deadline => {
                    std::thread::sleep(LOOK);
                }
                other => return other,
            }
        }
        Ok(())
    }

    fn try_begin(&mut self, deadline: Instant) -> Result<(), Error> {
        let log = self.log_size();
        self.wish(&format!("begin {}", self.port))?;
        let answer = self.answer()?;
        let Ok(server) = answer.parse() else {
            return Err(self.refused("start a server"));
        };
        self.server = Some(server);
        while !self.is_ready(server) {
            if !is_alive(server) || Instant::now() > deadline {
                let error = Error::Refused {
                    attempted: "start a server",
                    said: self.log_since(log),
                };
                self.halt("stop")?;
                return Err(error);
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends the server in good order: sessions are cut, all data are written.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.halt("stop")
    }

    /// Ends the server as a crash does, with all its sessions.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.halt("crash")
    }

    /// Stops the server and starts it again.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop()?;
        self.begin()
    }

    /// The process of the server; none while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.server
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Everything that belongs to the server; removed with it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What is running.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The address of a database, whether or not it exists. `postgres` always does.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database with a name of its own and gives its address.
    pub fn create_database(&self) -> Result<String, Error> {
        let name = format!("lab_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut command = self.command("createdb");
        command
            .arg(format!("--maintenance-db={}", self.url("postgres")))
            .arg(&name);
        run(&mut command, "make a database")?;
        Ok(self.url(&name))
    }

    /// Runs statements in the database at `url` and gives what they answer: a line per row, the
    /// columns parted by `|`.
    pub fn psql(&self, url: &str, statements: &str) -> Result<String, Error> {
        let mut command = self.command("psql");
        command
            .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"])
            .args(["--set", "ON_ERROR_STOP=1", "--dbname", url])
            .args(["--command", statements]);
        run(&mut command, "run statements")
    }

    /// A program that came with the server.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.directory.join(name));
        command.stdin(Stdio::null()).env("LC_ALL", "C");
        // What somebody's shell is set to must not lead to another server.
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE"] {
            command.env_remove(name);
        }
        command
    }

    fn halt(&mut self, wish: &str) -> Result<(), Error> {
        if self.server.is_some() {
            self.wish(wish)?;
            self.answer()?;
            self.server = None;
        }
        Ok(())
    }

    fn wish(&mut self, wish: &str) -> Result<(), Error> {
        let Some(wishes) = &mut self.wishes else {
            unreachable!("the guard is let go only in drop");
        };
        writeln!(wishes, "{wish}").map_err(system("reach the guard of the server"))
    }

    fn answer(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(system("hear the guard of the server"))?;
        Ok(line.trim_end().to_owned())
    }

    /// Whether the server says so itself: it writes its state into the file that locks its data.
    fn is_ready(&self, server: u32) -> bool {
        let lock = self.directory.path().join("data/postmaster.pid");
        let text = fs::read_to_string(lock).unwrap_or_default();
        let mut lines = text.lines().map(str::trim);
        lines.next() == Some(server.to_string().as_str()) && lines.nth(6) == Some("ready")
    }

    fn refused(&self, attempted: &'static str) -> Error {
        let said = self.log_since(0);
        Error::Refused { attempted, said }
    }

    fn log_size(&self) -> u64 {
        fs::metadata(self.directory.path().join("log")).map_or(0, |log| log.len())
    }

    /// What was written to the log after its first `size` bytes.
    fn log_since(&self, size: u64) -> String {
        let log = fs::read(self.directory.path().join("log")).unwrap_or_default();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let tail = log.get(size..).unwrap_or_default();
        String::from_utf8_lossy(tail).trim().to_owned()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Closing the pipe is the wish to end everything, and the guard sets itself a limit. Where it
        // died, there is nobody left to tell about it.
        drop(self.wishes.take());
        drop(self.guard.wait());
    }
}

/// The server of this process, started by whoever asks first.
///
/// It is shared by the tests of one program, each with a database of its own, and ends with the
/// process.
pub fn shared() -> Result<&'static Postgres, &'static Error> {
    static SHARED: OnceLock<Result<Postgres, Error>> = OnceLock::new();
    SHARED
        .get_or_init(|| Postgres::start(Options::default()))
        .as_ref()
}

/// The same for a test that is skipped where there is no PostgreSQL.
///
/// A server that is there and does not start is no reason to skip.
///
/// # Panics
///
/// When a server is installed and does not start.
#[expect(clippy::panic, reason = "only tests call this, and they fail by it")]
pub fn shared_or_skip(test: &str) -> Option<&'static Postgres> {
    match shared() {
        Ok(postgres) => Some(postgres),
        Err(Error::Missing { installable }) => {
            crate::skip(test, missing(*installable));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Why a test cannot run. Where it could be helped, CI must notice.
fn missing(installable: bool) -> &'static str {
    if installable {
        "PostgreSQL is not installed, `cargo xtask tools` installs it"
    } else {
        "not possible here: PostgreSQL is not installed, and only root could do it with apt-get"
    }
}

/// Starts the guard, as the user who shall run the server.
fn guard(programs: &Programs, directory: &Path, options: Options) -> Result<Child, Error> {
    let mut command = Command::new("sh");
    command
        .args(["-c", GUARD, "guard"])
        .arg(directory)
        .arg(&programs.directory)
        .args(settings(options))
        .current_dir(directory)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // Ctrl-C and the like are for whoever started us; their end is what the guard waits for.
        .process_group(0);
    let owner = fs::metadata(directory).map_err(system("look at the directory"))?;
    if owner.uid() == 0 {
        let passwd = fs::read_to_string("/etc/passwd").map_err(system("read /etc/passwd"))?;
        let (user, group) = find::servant(&passwd).ok_or(Error::NoServant)?;
        chown(directory, Some(user), Some(group)).map_err(system("give the directory away"))?;
        command.uid(user).gid(group);
    }
    command.spawn().map_err(system("start sh"))
}

/// The settings of the server, as its arguments.
fn settings(options: Options) -> Vec<String> {
    let always = [
        "listen_addresses=127.0.0.1",
        "max_connections=200",
        // In the directory instead of /dev/shm, where a killed server would leave it behind.
        "dynamic_shared_memory_type=mmap",
    ];
    // Commits stay synchronous: without fsync that costs one write, and else a killed server would
    // forget what it had answered.
    let hasty = ["fsync=off", "full_page_writes=off", "shared_buffers=32MB"];
    let hasty = if options.durable { &[][..] } else { &hasty };
    always
        .iter()
        .chain(hasty)
        .flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()])
        .collect()
}

/// Free ports, beginning at one that others are unlikely to begin at.
pub(crate) fn ports() -> impl Iterator<Item = u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = PORTS.end - PORTS.start;
    std::iter::repeat_with(|| {
        std::process::id().wrapping_mul(31) + NEXT.fetch_add(1, Ordering::Relaxed)
    })
    .take(usize::from(count))
    .filter_map(move |number| u16::try_from(number % u32::from(count)).ok())
    .map(|offset| PORTS.start + offset)
    .filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
}

/// Whether a process runs; one that has ended and was not waited for does not.
fn is_alive(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Runs a program to its end and gives what it printed.
fn run(command: &mut Command, attempted: &'static str) -> Result<String, Error> {
    let output = command.output().map_err(system(attempted))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        let said = text(&output.stderr);
        Err(Error::Refused { attempted, said })
    }
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn what_could_be_installed_is_no_excuse_in_ci() {
        assert!(missing(false).starts_with("not possible here: "));
        assert!(!missing(true).starts_with("not possible here:"));
    }
}
