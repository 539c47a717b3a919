//! What a host finds on its disk when it is first started.

use super::Level;
use super::network::{Lan, digest};
use super::record::{Record, unwritten};
use crate::error::{Error, Kind};
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use zeroize::Zeroizing;

/// Device nodes of the machine that a host is given.
pub(super) const DEVICES: [&str; 7] = [
    "null", "zero", "full", "random", "urandom", "tty", "net/tun",
];

/// What hosts do not see of a machine on whose files they stand, but have for themselves: keys,
/// homes, and other people's work.
pub(super) const HIDDEN: [&str; 7] = ["home", "media", "mnt", "opt", "root", "srv", "tmp"];
/// Where a disk has those.
pub(super) const OWN: &str = "own";

/// The key of a new host's sshd, and its public half as one line.
pub(super) fn host_key() -> Result<(Zeroizing<String>, String), Error> {
    let unmade = |error: &dyn std::fmt::Display| {
        Error::new(Kind::NotStarted, format!("making a host key: {error}"))
    };
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|error| unmade(&error))?;
    let key = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
    let private = key
        .to_openssh(LineEnding::LF)
        .map_err(|error| unmade(&error))?;
    let public = key
        .public_key()
        .to_openssh()
        .map_err(|error| unmade(&error))?;
    Ok((private, public))
}

/// Writes what is a host's own into the upper layer of its disk.
pub(super) fn furnish(disk: &Path, record: &Record, lan: &Lan, private: &str) -> Result<(), Error> {
    let upper = disk.join("upper");
    let made = || {
        for name in ["upper", "work", "containerd", OWN] {
            directory(disk, name)?;
        }
        for name in HIDDEN.iter().filter(|_| shows_machine(record)) {
            directory(disk, &format!("{OWN}/{name}"))?;
            let bits = if *name == "tmp" { 0o1777 } else { 0o755 };
            mode(&disk.join(OWN).join(name), bits)?;
        }
        identity(&upper, record, lan)?;
        sshd(&upper, record, private)?;
        match record.level {
            Level::Lite => devices(&upper),
            Level::Systemd => quiet(&upper),
        }
    };
    made().map_err(|error| unwritten(disk, &error))?;
    authorize(disk, record)
}

/// Says who may log in, on the disk of a host that is off.
pub(super) fn authorize(disk: &Path, record: &Record) -> Result<(), Error> {
    let may = format!("{}\n", record.authorized_key.trim());
    let layer = disk.join(if shows_machine(record) { OWN } else { "upper" });
    let written = || {
        file(&layer, "root/.ssh/authorized_keys", &may, 0o600)?;
        mode(&layer.join("root"), 0o700)?;
        mode(&layer.join("root/.ssh"), 0o700)
    };
    written().map_err(|error| unwritten(disk, &error))
}

/// Whether a host stands on the files of this machine.
pub(super) fn shows_machine(record: &Record) -> bool {
    record.lower == Path::new("/")
}

/// Writes the program that is the host's first.
pub(super) fn first_program(disk: &Path, level: Level) -> Result<(), Error> {
    let text = match level {
        Level::Lite => include_str!("lite-init.sh"),
        Level::Systemd => include_str!("systemd-init.sh"),
    };
    let upper = disk.join("upper");
    file(&upper, "usr/lib/slipway/init", text, 0o644).map_err(|error| unwritten(disk, &error))
}

fn identity(upper: &Path, record: &Record, lan: &Lan) -> io::Result<()> {
    let (name, address) = (&record.name, record.address);
    let hosts = format!("127.0.0.1 localhost\n::1 localhost ip6-localhost\n{address} {name}\n");
    file(upper, "etc/hostname", &format!("{name}\n"), 0o644)?;
    file(upper, "etc/hosts", &hosts, 0o644)?;
    let resolver = format!("nameserver {}\n", lan.gateway);
    file(upper, "etc/resolv.conf", &resolver, 0o644)?;
    let machine_id = digest(&[record.id.as_bytes(), record.host_key.as_bytes()], 32);
    file(upper, "etc/machine-id", &format!("{machine_id}\n"), 0o444)
}

fn sshd(upper: &Path, record: &Record, private: &str) -> io::Result<()> {
    let more = match record.level {
        // Its words go to a file that nobody shortens.
        Level::Lite => "LogLevel ERROR\n",
        Level::Systemd => "",
    };
    let settings = format!(
        "HostKey /etc/ssh/ssh_host_ed25519_key\nPermitRootLogin prohibit-password\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nUseDNS no\n\
         MaxStartups 100\nMaxSessions 100\n{more}"
    );
    file(
        upper,
        "etc/ssh/sshd_config.d/00-slipway.conf",
        &settings,
        0o644,
    )?;
    file(upper, "etc/ssh/ssh_host_ed25519_key", private, 0o600)?;
    let public = format!("{}\n", record.host_key);
    file(upper, "etc/ssh/ssh_host_ed25519_key.pub", &public, 0o644)
}

/// Places to bind the machine's devices on: nodes of its own a host in a user namespace cannot have.
fn devices(upper: &Path) -> io::Result<()> {
    let dev = upper.join("dev");
    for name in ["pts", "shm", "net"] {
        directory(upper, &format!("dev/{name}"))?;
    }
    for name in DEVICES {
        file(upper, &format!("dev/{name}"), "", 0o666)?;
    }
    let links = [
        ("/proc/self/fd", "fd"),
        ("/proc/self/fd/0", "stdin"),
        ("/proc/self/fd/1", "stdout"),
        ("/proc/self/fd/2", "stderr"),
        ("pts/ptmx", "ptmx"),
    ];
    for (to, name) in links {
        link(to, &dev.join(name))?;
    }
    Ok(())
}

/// Keeps systemd from what makes no sense in a host without a console, a disk or the internet.
fn quiet(upper: &Path) -> io::Result<()> {
    directory(upper, "etc/systemd/system")?;
    let units = upper.join("etc/systemd/system");
    let masked = [
        "apt-daily-upgrade.timer",
        "apt-daily.timer",
        "console-getty.service",
        "e2scrub_all.timer",
        "fstrim.timer",
        "getty.target",
        "run-rpc_pipefs.mount",
    ];
    for unit in masked {
        link("/dev/null", &units.join(unit))?;
    }
    Ok(())
}

fn link(to: &str, at: &Path) -> io::Result<()> {
    match symlink(to, at) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Makes a directory and those above it as a host needs them, whatever this process masks.
fn directory(upper: &Path, name: &str) -> io::Result<()> {
    let mut path = upper.to_owned();
    for part in name.split('/') {
        path.push(part);
        match std::fs::create_dir(&path) {
            Ok(()) => mode(&path, 0o755)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn file(upper: &Path, name: &str, content: &str, bits: u32) -> io::Result<()> {
    if let Some((above, _)) = name.rsplit_once('/') {
        directory(upper, above)?;
    }
    let path = upper.join(name);
    // A file that may not be read by others must never have been.
    let beside = path.with_extension("new");
    std::fs::write(&beside, "")?;
    mode(&beside, bits)?;
    std::fs::write(&beside, content)?;
    std::fs::rename(&beside, &path)
}
