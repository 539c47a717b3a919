//! A server of the program under test, killed when dropped.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// The program under test; measurements name another build of it.
pub(crate) fn slipway() -> Command {
    let named = std::env::var_os("SLIPWAY_PROGRAM");
    Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_slipway").into()))
}

/// A running `slipway serve`.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// Where the test keeps its files.
    pub(crate) directory: PathBuf,
    /// What the server said.
    pub(crate) log: PathBuf,
    data: PathBuf,
}

impl Server {
    /// Starts a server on `data` below the directory and any free port.
    pub(crate) fn start(directory: &Path) -> Self {
        let mut command = slipway();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(directory.join("data"));
        Self::run(command, directory, directory.join("data"))
    }

    /// Runs a command that becomes a server; `data` is where its token is found.
    pub(crate) fn run(mut command: Command, directory: &Path, data: PathBuf) -> Self {
        let log = directory.join("server.log");
        let errors = File::create(&log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap();
        Self {
            child,
            directory: directory.to_owned(),
            log,
            data,
        }
    }

    /// Waits until the server listens, and says where.
    pub(crate) fn address(&mut self) -> String {
        let began = Instant::now();
        loop {
            if let Some(address) = self.listens() {
                return address;
            }
            let log = std::fs::read_to_string(&self.log).unwrap();
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "the server ended by itself: {log}"
            );
            assert!(
                began.elapsed() < Duration::from_mins(1),
                "the server does not listen: {log}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Where the server listens, if it does yet.
    pub(crate) fn listens(&self) -> Option<String> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let (_, rest) = log.split_once("listening on ")?;
        let (address, _) = rest.split_once('\n')?;
        Some(address.trim().to_owned())
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the server has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            let log = || std::fs::read_to_string(&self.log).unwrap();
            assert!(
                began.elapsed() < Duration::from_mins(1),
                "the server does not end: {}",
                log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Looks for the token somewhere else than where the server was told to write it.
    pub(crate) fn look_in(&mut self, data: PathBuf) {
        self.data = data;
    }

    /// Runs a client verb against the server.
    pub(crate) fn client(&mut self, words: &[&str]) -> Output {
        let address = self.address();
        self.client_at(&address, words)
    }

    /// The same when it is known where the server listens.
    pub(crate) fn client_at(&self, address: &str, words: &[&str]) -> Output {
        slipway()
            .args(["--server", address, "--data-dir"])
            .arg(&self.data)
            .args(words)
            .output()
            .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGKILL: the process gets no chance to tidy up.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
