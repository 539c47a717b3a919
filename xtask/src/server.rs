//! A server that lives exactly as long as we want it to.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(30);

/// What the server writes when it is ready, before its address.
const LISTENING: &str = "listening on http://";

/// Kills the server when its standard input closes: that is, when we die without having done so.
///
/// A closed terminal or Ctrl-C reaches the watchdog too and must not end it first.
const WATCHDOG: &str = r#"trap '' INT HUP; read -r _; kill -9 "$1""#;

/// A running server, killed when dropped, and also when this process is.
pub(crate) struct Server {
    child: Child,
    watchdog: Child,
    address: String,
    data: PathBuf,
}

impl Server {
    /// Starts `program` on an empty data directory and a free port, and waits until it listens.
    pub(crate) fn start(program: &Path, directory: &Path) -> Result<Self> {
        Self::start_on(program, directory, None)
    }

    /// The same on a database of its own, instead of the one in the data directory.
    pub(crate) fn start_on(
        program: &Path,
        directory: &Path,
        database: Option<&str>,
    ) -> Result<Self> {
        let data = directory.join("data");
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data)
            .env("NO_COLOR", "1");
        if let Some(database) = database {
            command.args(["--database", database]);
        }
        Self::spawn(command, directory, data)
    }

    /// Starts the command under a watchdog.
    fn spawn(mut command: Command, directory: &Path, data: PathBuf) -> Result<Self> {
        let log = directory.join("server.log");
        let errors =
            File::create(&log).with_context(|| format!("could not create {}", log.display()))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("could not start {}", command.get_program().display()))?;
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog", &child.id().to_string()])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let watchdog = match watchdog {
            Ok(watchdog) => watchdog,
            Err(error) => {
                end(&mut child);
                return Err(error).context("could not start sh");
            }
        };
        let mut server = Self {
            child,
            watchdog,
            address: String::new(),
            data,
        };
        server.address = server.wait_until_listening(&log)?;
        Ok(server)
    }

    /// Where the server listens, as the start of a URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Where it keeps its data.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The administrator's token, which the server wrote at its first start.
    pub(crate) fn token(&self) -> Result<String> {
        let path = self.data.join("admin.token");
        let token = fs::read_to_string(&path)
            .with_context(|| format!("could not read {}", path.display()))?;
        Ok(token.trim().to_owned())
    }

    /// Waits for the line that tells the address.
    fn wait_until_listening(&mut self, log: &Path) -> Result<String> {
        let started = Instant::now();
        loop {
            let text = fs::read_to_string(log)
                .with_context(|| format!("could not read {}", log.display()))?;
            if let Some(address) = address_in(&text) {
                return Ok(address);
            }
            if let Some(status) = self
                .child
                .try_wait()
                .context("could not wait for the server")?
            {
                bail!("the server ended with {status}: {}", text.trim());
            }
            if started.elapsed() > START_MAX {
                bail!(
                    "the server did not listen within {} s: {}",
                    START_MAX.as_secs(),
                    text.trim()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The watchdog first: later it might kill somebody who got the same number.
        end(&mut self.watchdog);
        end(&mut self.child);
    }
}

/// Kills a child and waits for its end; one that has already ended is fine.
fn end(child: &mut Child) {
    let killed = child.kill();
    let waited = child.wait();
    if let Err(error) = killed.and(waited) {
        eprintln!("could not stop process {}: {error}", child.id());
    }
}

/// The address in the first whole line that tells it.
fn address_in(log: &str) -> Option<String> {
    let (_, rest) = log.split_once(LISTENING)?;
    let (line, _) = rest.split_once('\n')?;
    let host = line.split_whitespace().next()?.trim_end_matches('/');
    Some(format!("http://{host}"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::{Server, address_in};

    /// A directory of its own for one test, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn start(script: &str, directory: &Path) -> anyhow::Result<Server> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Server::spawn(command, directory, directory.to_owned())
    }

    fn is_alive(process: u32) -> bool {
        let status = Command::new("kill")
            .args(["-0", &process.to_string()])
            .output();
        status.unwrap().status.success()
    }

    #[test]
    fn the_address_is_read_from_a_whole_line() {
        assert_eq!(
            address_in("INFO listening on http://127.0.0.1:4711/ role=all\n"),
            Some("http://127.0.0.1:4711".to_owned())
        );
        assert_eq!(address_in("listening on http://127.0.0.1:47"), None);
    }

    #[test]
    fn a_dropped_server_is_dead_and_so_is_its_watchdog() {
        let scratch = Scratch::new("drop");
        let script = "echo 'listening on http://127.0.0.1:9' >&2; exec sleep 600";
        let server = start(script, &scratch.0).unwrap();
        let processes = [server.child.id(), server.watchdog.id()];
        assert_eq!(server.address(), "http://127.0.0.1:9");
        assert!(processes.into_iter().all(is_alive));
        drop(server);
        assert!(!processes.into_iter().any(is_alive));
    }

    #[test]
    fn the_watchdog_kills_a_server_that_outlives_us() {
        let scratch = Scratch::new("watchdog");
        let script = "echo 'listening on http://127.0.0.1:9' >&2; exec sleep 600";
        let mut server = start(script, &scratch.0).unwrap();
        drop(server.watchdog.stdin.take()); // what the kernel does when we die
        let status = server.child.wait().unwrap();
        assert!(!status.success());
    }

    #[test]
    fn a_server_that_does_not_start_tells_why() {
        let scratch = Scratch::new("dead");
        let error = start("echo 'port in use' >&2; exit 7", &scratch.0)
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "the server ended with exit status: 7: port in use"
        );
    }
}
