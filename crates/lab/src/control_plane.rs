//! A control plane of Kubernetes of one's own: etcd and an API server, without any node.
//!
//! [`ControlPlane::start`] runs the real programs on ports of the loopback device, in a directory that
//! belongs to it alone. They are children of a small shell (`guard.sh`) that holds one end of a pipe
//! whose other end is here: when this process ends, by itself or by SIGKILL, they are killed and
//! the directory is removed.

mod papers;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub use papers::{Paper, Papers};

/// The program that owns the others.
const GUARD: &str = include_str!("control_plane/guard.sh");

/// How long it may take until an API server answers; the machine may have much else to do.
const START_MAX: Duration = Duration::from_mins(3);

/// How much of a program's log is read.
const WORDS_MAX: usize = 64 * 1024;

/// How often we look.
const LOOK: Duration = Duration::from_millis(50);

/// How often a start is tried where somebody takes our ports.
const TRIES: usize = 5;

/// Names the directory of the programs, where it is not the usual one.
const PROGRAMS: &str = "SLIPWAY_TEST_CONTROL_PLANE";

/// Why there is no control plane.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("could not {attempted}: {error}")]
    System {
        /// What was attempted.
        attempted: &'static str,
        /// What it said.
        error: std::io::Error,
    },
    /// A certificate could not be made.
    #[error("could not make a certificate: {0}")]
    Paper(#[from] rcgen::Error),
    /// A program ended, or did not answer in time.
    #[error("could not start {program}: {said}")]
    Refused {
        /// Which one.
        program: &'static str,
        /// The last that it said.
        said: String,
    },
    /// No port is free.
    #[error("could not find free ports")]
    NoPort,
}

/// Makes an [`Error::System`] of what the operating system says.
fn system(attempted: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |error| Error::System { attempted, error }
}

/// A control plane that lives no longer than this value, nor than this process.
pub struct ControlPlane {
    /// Removed by the guard, and by us should the guard have died.
    directory: TempDir,
    guard: Child,
    /// Taken when the guard shall end.
    wishes: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    papers: Papers,
    port: u16,
}

impl ControlPlane {
    /// Starts etcd, an API server and the named controllers from a directory of programs.
    pub fn start(programs: &Path, controllers: &[&str]) -> Result<Self, Error> {
        let mut last = Error::NoPort;
        for _ in 0..TRIES {
            match Self::try_start(programs, controllers) {
                Err(Error::Refused { program, said })
                    if said.contains("address already in use") =>
                {
                    last = Error::Refused { program, said };
                }
                other => return other,
            }
        }
        Err(last)
    }

    fn try_start(programs: &Path, controllers: &[&str]) -> Result<Self, Error> {
        let directory = tempfile::Builder::new()
            .prefix("lab-control-plane-")
            .tempdir()
            .map_err(system("make a directory"))?;
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(directory.path())
            .arg(programs)
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // Ctrl-C and the like are for whoever started us; their end is what the guard waits for.
            .process_group(0)
            .spawn()
            .map_err(system("start sh"))?;
        let (Some(wishes), Some(answers)) = (guard.stdin.take(), guard.stdout.take()) else {
            unreachable!("the guard was started with both pipes");
        };
        let mut ports = crate::postgres::ports();
        let mut port = || ports.next().ok_or(Error::NoPort);
        let (etcd, peer, api) = (port()?, port()?, port()?);
        let mut plane = Self {
            directory,
            guard,
            wishes: Some(wishes),
            answers: BufReader::new(answers),
            papers: Papers::new()?,
            port: api,
        };
        plane.begin("etcd", &etcd_arguments(etcd, peer))?;
        plane.wait("etcd", || answers_ok(etcd, "/health"))?;
        plane.write_papers()?;
        plane.begin("kube-apiserver", &api_arguments(etcd, api))?;
        // It opens its port long before it serves, and may give up in between.
        plane.wait("kube-apiserver", || {
            plane
                .last_words("kube-apiserver")
                .contains("Serving securely")
                && TcpStream::connect(("127.0.0.1", api)).is_ok()
        })?;
        if !controllers.is_empty() {
            plane.begin(
                "kube-controller-manager",
                &controller_arguments(controllers),
            )?;
        }
        Ok(plane)
    }

    /// Where the API server listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who signs for this control plane.
    pub fn papers(&self) -> &Papers {
        &self.papers
    }

    /// The kubeconfig of somebody who may do everything.
    pub fn kubeconfig(&self) -> Result<String, Error> {
        self.kubeconfig_of("admin", &["system:masters"])
    }

    /// The kubeconfig of a user in some groups.
    pub fn kubeconfig_of(&self, user: &str, groups: &[&str]) -> Result<String, Error> {
        let server = format!("https://127.0.0.1:{}", self.port);
        Ok(self
            .papers
            .kubeconfig(&server, &self.papers.client(user, groups)?))
    }

    /// Kills one of the programs, as a crash does.
    pub fn kill(&mut self, program: &str) -> Result<(), Error> {
        self.wish(&format!("stop {program}")).map(|_| ())
    }

    fn write_papers(&self) -> Result<(), Error> {
        let directory = self.directory.path();
        self.papers.write(directory)?;
        let server = self
            .papers
            .server(&["kubernetes", "localhost", "127.0.0.1"])?;
        papers::write(&directory.join("api.crt"), &server.certificate)?;
        papers::write(&directory.join("api.key"), &server.key)?;
        papers::write(&directory.join("kubeconfig"), &self.kubeconfig()?)
    }

    /// Runs a program with arguments.
    fn begin(&mut self, program: &'static str, arguments: &[String]) -> Result<(), Error> {
        let text: String = arguments.iter().map(|line| format!("{line}\n")).collect();
        let path = self.directory.path().join(format!("{program}.args"));
        fs::write(path, text).map_err(system("write arguments"))?;
        self.wish(&format!("start {program}")).map(|_| ())
    }

    /// Waits until a program is there, as long as it runs.
    fn wait(&self, program: &'static str, is_there: impl Fn() -> bool) -> Result<(), Error> {
        let deadline = Instant::now() + START_MAX;
        while !is_there() {
            if !self.is_alive(program) || Instant::now() > deadline {
                return Err(Error::Refused {
                    program,
                    said: self.last_words(program),
                });
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn is_alive(&self, program: &str) -> bool {
        let file = self.directory.path().join(format!("{program}.pid"));
        let process = fs::read_to_string(file).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    /// The end of a program's log.
    fn last_words(&self, program: &str) -> String {
        let log = fs::read(self.directory.path().join(format!("{program}.log")));
        let log = log.unwrap_or_default();
        let tail = log.len().saturating_sub(WORDS_MAX);
        String::from_utf8_lossy(log.get(tail..).unwrap_or_default()).into_owned()
    }

    fn wish(&mut self, wish: &str) -> Result<String, Error> {
        let Some(wishes) = &mut self.wishes else {
            unreachable!("the guard is let go only in drop");
        };
        writeln!(wishes, "{wish}").map_err(system("reach the guard"))?;
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(system("hear the guard"))?;
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Closing the pipe is the wish to end everything.
        drop(self.wishes.take());
        drop(self.guard.wait());
    }
}

/// Where the programs of a control plane are: etcd, kube-apiserver, kube-controller-manager.
pub fn programs() -> Option<PathBuf> {
    let directory = std::env::var_os(PROGRAMS).map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(home?.join(".cache")))?;
        Some(cache.join("slipway/kubernetes/v1.34.4/programs"))
    })?;
    ["etcd", "kube-apiserver", "kube-controller-manager"]
        .iter()
        .all(|program| directory.join(program).is_file())
        .then_some(directory)
}

/// The control plane of this process, started by whoever asks first; it ends with the process.
///
/// # Panics
///
/// When the programs are there and do not start.
#[expect(clippy::panic, reason = "only tests call this, and they fail by it")]
pub fn shared_or_skip(test: &str) -> Option<&'static ControlPlane> {
    static SHARED: OnceLock<Result<ControlPlane, Error>> = OnceLock::new();
    let Some(programs) = programs() else {
        crate::skip(test, "the programs of a control plane are not in the cache");
        return None;
    };
    let controllers = [
        "certificatesigningrequest-signing-controller",
        "disruption-controller",
    ];
    match SHARED.get_or_init(|| ControlPlane::start(&programs, &controllers)) {
        Ok(plane) => Some(plane),
        Err(error) => panic!("{error}"),
    }
}

/// Whether an HTTP server on loopback answers a question with 200.
fn answers_ok(port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(4096).read_to_string(&mut answer)?;
        Ok(answer.split(' ').nth(1) == Some("200"))
    };
    ask().unwrap_or(false)
}

fn etcd_arguments(client: u16, peer: u16) -> Vec<String> {
    vec![
        "--name=lab".to_owned(),
        "--data-dir=etcd".to_owned(),
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls=http://127.0.0.1:{client}"),
        format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-cluster=lab=http://127.0.0.1:{peer}"),
    ]
}

fn api_arguments(etcd: u16, port: u16) -> Vec<String> {
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        format!("--secure-port={port}"),
    ];
    arguments.extend(
        [
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=Node,RBAC",
            "--tls-cert-file=api.crt",
            "--tls-private-key-file=api.key",
            "--client-ca-file=ca.crt",
            "--service-account-key-file=api.crt",
            "--service-account-signing-key-file=api.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            // Nobody makes the accounts that pods would need.
            "--disable-admission-plugins=ServiceAccount",
        ]
        .map(str::to_owned),
    );
    arguments
}

fn controller_arguments(controllers: &[&str]) -> Vec<String> {
    vec![
        "--kubeconfig=kubeconfig".to_owned(),
        format!("--controllers={}", controllers.join(",")),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        "--cluster-signing-cert-file=ca.crt".to_owned(),
        "--cluster-signing-key-file=ca.key".to_owned(),
    ]
}
