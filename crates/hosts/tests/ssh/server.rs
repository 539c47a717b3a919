//! A real SSH server for one test, on loopback and in a mount namespace of its own.
//!
//! There it has its own users, its own sudoers and two small filesystems: one that is full and
//! one that cannot be written. It ends with the thread that started it.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hosts::error::Error;
use hosts::program::Program;
use hosts::ssh::{Door, Keys, Opening, new_key};
use model::secret::Secret;
use zeroize::Zeroizing;

pub(crate) struct Server {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) port: u16,
    child: Child,
}

/// Whether such servers can be had; says why not where they cannot.
pub(crate) fn possible(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    let missing = ["/usr/sbin/sshd", "/usr/bin/sudo"]
        .into_iter()
        .find(|tool| !Path::new(tool).exists());
    match missing {
        _ if !root => lab::skip(test, "not possible here: needs root"),
        Some(tool) => lab::skip(test, &format!("needs {tool}")),
        None => return true,
    }
    false
}

/// The private key that every server of the tests lets in.
pub(crate) fn private() -> &'static (String, String) {
    static KEY: std::sync::OnceLock<(String, String)> = std::sync::OnceLock::new();
    KEY.get_or_init(|| {
        let (private, public) = new_key("a test").unwrap();
        (private.expose_text().unwrap().to_owned(), public)
    })
}

const SUDOERS: &str = "ada ALL=(ALL) NOPASSWD: ALL\n\
    eve ALL=(ALL) NOPASSWD: ALL\nDefaults:eve use_pty\n";

const START: &str = r#"
set -e
mount --make-rprivate /
for file in passwd shadow sudoers; do mount --bind "$1/$file" "/etc/$file"; done
mount -t tmpfs -o size=64k none "$1/full"
dd if=/dev/zero of="$1/full/ballast" bs=4k 2>/dev/null || :
mount -t tmpfs -o ro none "$1/readonly"
exec /usr/sbin/sshd -D -e -f "$1/sshd_config" -p "$2" 2>>"$1/log"
"#;

fn host_key(directory: &Path) {
    fs::remove_file(directory.join("host_key")).unwrap_or_default();
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(directory.join("host_key"))
        .status();
    assert!(made.unwrap().success());
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// With more lines in its configuration.
    pub(crate) fn with(more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        fs::create_dir_all("/run/sshd").unwrap();
        for name in ["full", "readonly"] {
            fs::create_dir(at.join(name)).unwrap();
        }
        host_key(at);
        fs::write(at.join("authorized_keys"), &private().1).unwrap();
        // Whatever this machine's own root has in its profile stays out.
        let mut passwd =
            "root:x:0:0::/:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n".to_owned();
        let mut shadow = fs::read_to_string("/etc/shadow").unwrap();
        for (number, user) in ["ada", "bob", "eve"].into_iter().enumerate() {
            writeln!(passwd, "{user}:x:{0}:{0}::/:/bin/sh", 64_000 + number).unwrap();
            writeln!(shadow, "{user}:*:19000:0:99999:7:::").unwrap();
        }
        fs::write(at.join("passwd"), passwd).unwrap();
        fs::write(at.join("shadow"), shadow).unwrap();
        fs::write(at.join("sudoers"), SUDOERS).unwrap();
        let mode = |name, mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(at.join(name), mode).unwrap();
        };
        mode("", 0o755);
        mode("shadow", 0o600);
        mode("sudoers", 0o440);
        let text = format!(
            "{more}\nListenAddress 127.0.0.1\nHostKey {0}/host_key\nAuthorizedKeysFile {0}/authorized_keys\n\
             StrictModes no\nUsePAM no\nPidFile none\nLogLevel VERBOSE\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\nMaxStartups 200\n",
            at.display()
        );
        fs::write(at.join("sshd_config"), text).unwrap();
        let port = free_port();
        let child = begin(at, port);
        let mut server = Self {
            directory,
            port,
            child,
        };
        server.wait();
        server
    }

    /// Waits until it answers. Whoever of the one before it still ends holds its port, and it ends
    /// itself then: it is begun again.
    fn wait(&mut self) {
        for _ in 0..3000 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return;
            }
            if self.child.try_wait().unwrap().is_some() {
                self.child = begin(self.directory.path(), self.port);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        panic!("the SSH server does not answer within half a minute: {log}");
    }

    /// As after an installation: with another host key.
    pub(crate) fn reinstall(&mut self) {
        self.stop();
        host_key(self.directory.path());
        self.child = begin(self.directory.path(), self.port);
        self.wait();
    }

    fn stop(&mut self) {
        let space = |pid: u32| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let ours = space(std::process::id());
        let its = space(self.child.id()).filter(|its| Some(its) != ours.as_ref());
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
        // Also what a test that failed left running on its host.
        for pid in processes(|pid| its.is_some() && space(pid) == its) {
            kill(pid);
        }
    }

    pub(crate) fn door(&self, user: &str) -> Door {
        Door {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: self.port,
            user: user.to_owned(),
            jump: None,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What its host key is, for people.
    pub(crate) fn fingerprint(&self) -> String {
        let told = Command::new("ssh-keygen")
            .arg("-lf")
            .arg(self.path("host_key.pub"))
            .output()
            .unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        told.split(' ').nth(1).unwrap().to_owned()
    }

    /// How many times somebody was let in.
    pub(crate) fn entered(&self) -> usize {
        let log = fs::read_to_string(self.path("log")).unwrap();
        log.matches("Accepted publickey").count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn begin(at: &Path, port: u16) -> Child {
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare", "--mount", "/bin/sh", "-c"])
        .args([START, "sh"])
        .arg(at)
        .arg(port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A port on which nobody listens, below those that the kernel hands out by itself.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let start = usize::try_from(std::process::id()).unwrap() * 41;
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(15_000 + (start + next) % 17_000).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// The living processes of a kind.
pub(crate) fn processes(wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let read = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        if stat.rsplit_once(") ")?.1.starts_with('Z') {
            return None;
        }
        Some(pid)
    };
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| read(entry.ok()?))
        .filter(|pid| wanted(*pid))
        .collect()
}

pub(crate) fn lives(pid: u32) -> bool {
    !processes(|other| other == pid).is_empty()
}

pub(crate) fn kill(pid: u32) {
    Command::new("kill")
        .args(["-9", &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

/// Waits for something that must come, while the connections go on working.
pub(crate) async fn soon(what: &str, so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: not within half a minute");
}

/// The numbers in a file that a program on the host wrote, when it has so many lines.
pub(crate) async fn pids(file: &Path, count: usize) -> Vec<u32> {
    let read = || fs::read_to_string(file).unwrap_or_default();
    let name = file.display().to_string();
    soon(&name, || read().lines().count() >= count).await;
    read().lines().map(|line| line.parse().unwrap()).collect()
}

/// Keys that remember what was asked of them.
#[derive(Clone)]
pub(crate) struct Ring {
    pub(crate) scope: String,
    pub(crate) text: String,
    pub(crate) opened: Arc<Mutex<Vec<Door>>>,
    pub(crate) pins: Arc<Mutex<Vec<(Door, String)>>>,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self::of(&private().0)
    }

    pub(crate) fn of(text: &str) -> Self {
        Self {
            scope: "lab".to_owned(),
            text: text.to_owned(),
            opened: Arc::default(),
            pins: Arc::default(),
        }
    }

    pub(crate) fn opened(&self) -> usize {
        self.opened.lock().unwrap().len()
    }
}

impl Keys for Ring {
    fn scope(&self, _: &Door) -> String {
        self.scope.clone()
    }

    fn key<'a>(&'a self, door: &'a Door) -> Opening<'a> {
        self.opened.lock().unwrap().push(door.clone());
        let secret: Result<Secret, Error> = Ok(Secret::from_text(self.text.clone()));
        Box::pin(std::future::ready(secret))
    }

    fn pinned(&self, door: &Door) -> Option<String> {
        let pins = self.pins.lock().unwrap();
        let pin = pins.iter().find(|(of, _)| of == door);
        pin.map(|(_, line)| line.clone())
    }

    fn first_seen(&self, door: &Door, key: &str) {
        let mut pins = self.pins.lock().unwrap();
        pins.push((door.clone(), key.to_owned()));
    }
}

pub(crate) fn program(text: &str) -> Program {
    within(text, Duration::from_mins(5))
}

pub(crate) fn within(text: &str, limit: Duration) -> Program {
    Program {
        title: "try".to_owned(),
        text: Zeroizing::new(text.to_owned()),
        limit,
    }
}
