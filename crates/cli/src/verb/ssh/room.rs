//! The directory with all that an SSH client needs for one visit: a key, whom to believe, and how
//! to get there.

use crate::error::Error;
use crate::global::Global;
use crate::verb::audit::unwritten;
use api::GuestView;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::process::Command;

/// The system's SSH client.
pub(super) const SSH: &str = "ssh";

/// What makes keys for it.
const KEYGEN: &str = "ssh-keygen";

/// A directory that nobody else can read.
pub(super) struct Room {
    path: PathBuf,
    /// Removes it, where it is not to be kept.
    passing: Option<TempDir>,
}

impl Room {
    /// One that is gone when it is dropped.
    pub(super) fn passing() -> Result<Self, Error> {
        let made = tempfile::Builder::new().prefix("slipway-ssh-").tempdir();
        let passing = made.map_err(unwritten(&std::env::temp_dir()))?;
        Ok(Self {
            path: passing.path().to_owned(),
            passing: Some(passing),
        })
    }

    /// One that stays; it must be a new one, so that nothing of somebody else's is in it.
    pub(super) fn kept(path: &Path) -> Result<Self, Error> {
        let made = DirBuilder::new().mode(0o700).create(path);
        let found = made.and_then(|()| path.canonicalize());
        let path = found.map_err(unwritten(path))?;
        Ok(Self {
            path,
            passing: None,
        })
    }

    /// Where it is, if it is to be kept.
    pub(super) fn stay(&self) -> Option<&Path> {
        self.passing.is_none().then_some(self.path.as_path())
    }

    /// The configuration for the client.
    pub(super) fn config(&self) -> PathBuf {
        self.path.join("config")
    }

    fn key(&self) -> PathBuf {
        self.path.join("key")
    }

    fn known_hosts(&self) -> PathBuf {
        self.path.join("known_hosts")
    }

    /// Makes a key for this visit; its public half, without a comment.
    pub(super) async fn new_key(&self) -> Result<String, Error> {
        let mut making = Command::new(KEYGEN);
        making.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]);
        let made = making.arg(self.key()).output().await;
        let made = made.map_err(missing(KEYGEN))?;
        let public = self.key().with_extension("pub");
        let file = self.key();
        let unmade = unwritten(&file);
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(unmade(io::Error::other(said)));
        }
        let line = std::fs::read_to_string(public).map_err(unmade)?;
        let words: Vec<&str> = line.split_whitespace().take(2).collect();
        Ok(words.join(" "))
    }

    /// Writes down whom to believe, and how to get there.
    pub(super) fn furnish(
        &self,
        guest: &GuestView,
        options: &[String],
        global: &Global,
    ) -> Result<(), Error> {
        let known = format!("{} {}\n", guest.machine, guest.host_key.trim());
        write(&self.known_hosts(), &known)?;
        let program = std::env::current_exe().unwrap_or_else(|_| "slipway".into());
        let proxy = proxy(&program, &guest.machine, global);
        write(&self.config(), &self.configured(guest, options, &proxy))
    }

    /// What the client is told. The first value of an option counts, so that those of the user
    /// come first, except where they would let in or believe somebody else.
    fn configured(&self, guest: &GuestView, options: &[String], proxy: &str) -> String {
        let GuestView { machine, user, .. } = guest;
        let (key, known) = (quoted(&self.key()), quoted(&self.known_hosts()));
        let mut lines = vec![
            format!("Host {machine}"),
            format!("ProxyCommand {proxy}"),
            format!("HostKeyAlias {machine}"),
            format!("UserKnownHostsFile {known}"),
            "GlobalKnownHostsFile /dev/null".to_owned(),
            "StrictHostKeyChecking yes".to_owned(),
            "UpdateHostKeys no".to_owned(),
        ];
        lines.extend(options.iter().cloned());
        lines.extend([
            format!("User {user}"),
            format!("IdentityFile {key}"),
            "IdentitiesOnly yes".to_owned(),
            "IdentityAgent none".to_owned(),
            "PreferredAuthentications publickey".to_owned(),
            // A relay that is lost is noticed on both sides.
            "ServerAliveInterval 15".to_owned(),
        ]);
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Writes a file that only we can read.
fn write(file: &Path, text: &str) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.map_err(unwritten(file))
}

/// What ssh runs to get there. Where the server is it learns from its environment, and the token
/// where every verb finds it.
fn proxy(program: &Path, machine: &str, global: &Global) -> String {
    let mut words = vec![
        "env".to_owned(),
        format!("SLIPWAY_SERVER={}", global.server),
    ];
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let data = global.data_dir.as_ref().map(absolute);
    words.extend(data.map(|path| format!("SLIPWAY_DATA={}", path.display())));
    words.push(program.display().to_string());
    words.extend(["--project".to_owned(), global.project().to_owned()]);
    let token = global.token_file.as_ref().map(absolute);
    words.extend(token.map(|path| format!("--token-file={}", path.display())));
    words.extend(["ssh", "--relay", machine].map(str::to_owned));
    let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
    // What begins with a per cent means something to ssh, before the shell sees it.
    words.join(" ").replace('%', "%%")
}

/// One word for a shell.
fn shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A path as a configuration of OpenSSH has it.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

/// A program that is not there, or cannot be run.
pub(super) fn missing(program: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |cause| Error::NoProgram { program, cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn global() -> Global {
        Global {
            server: "http://slipway.example:7077".to_owned(),
            token_file: Some("/home/ann/it's 100%".into()),
            data_dir: Some("/srv/slipway".into()),
            project: Some("shop".to_owned()),
            outputs: Vec::new(),
        }
    }

    #[test]
    fn ssh_is_told_all_of_it_and_no_secret() {
        let room = Room {
            path: "/tmp/way".into(),
            passing: None,
        };
        let guest = GuestView {
            machine: "edge-compute-02".to_owned(),
            user: "admin".to_owned(),
            port: 22,
            host_key: "ssh-ed25519 AAAA".to_owned(),
            until: "2026-01-01T00:05:00Z".parse().unwrap(),
        };
        let proxy = proxy(Path::new("/usr/bin/slipway"), "edge-compute-02", &global());
        let options = ["LocalForward 8080 localhost:80".to_owned()];
        expect![[r#"
            Host edge-compute-02
            ProxyCommand 'env' 'SLIPWAY_SERVER=http://slipway.example:7077' 'SLIPWAY_DATA=/srv/slipway' '/usr/bin/slipway' '--project' 'shop' '--token-file=/home/ann/it'\''s 100%%' 'ssh' '--relay' 'edge-compute-02'
            HostKeyAlias edge-compute-02
            UserKnownHostsFile "/tmp/way/known_hosts"
            GlobalKnownHostsFile /dev/null
            StrictHostKeyChecking yes
            UpdateHostKeys no
            LocalForward 8080 localhost:80
            User admin
            IdentityFile "/tmp/way/key"
            IdentitiesOnly yes
            IdentityAgent none
            PreferredAuthentications publickey
            ServerAliveInterval 15
        "#]]
        .assert_eq(&room.configured(&guest, &options, &proxy));
    }

    #[test]
    fn a_room_that_is_kept_is_new_and_for_us_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("way");
        let room = Room::kept(&path).unwrap();
        let mode = std::fs::metadata(room.stay().unwrap())
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
        assert!(matches!(Room::kept(&path), Err(Error::Unwritten { .. })));
    }
}
