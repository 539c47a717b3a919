//! The root filesystems of sandbox hosts: built once, kept in a cache, shared by all hosts.

use super::network::digest;
use super::{Level, enter, sources};
use crate::error::{Error, Kind};
use crate::tool;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// Told what goes on, in lines for people.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// How long a root filesystem may take: all its packages over a slow line.
const BUILDING: Duration = Duration::from_mins(30);
/// How long unpacking one may take, on a slow disk.
const UNPACKING: Duration = Duration::from_mins(10);

/// What every host has.
const LITE: &str = "ca-certificates,curl,iproute2,iptables,iputils-ping,nftables,openssh-server,\
                    procps,python3,sudo,wireguard-go,wireguard-tools";
/// What a host has besides where systemd runs, so that Kubernetes can: hosts of the sandbox reach no
/// package sources, so everything that equipping them asks for is there.
const SYSTEMD: &str = "conntrack,containerd,containernetworking-plugins,dbus,ebtables,ethtool,kmod,\
                       mount,nfs-common,open-iscsi,socat,systemd,systemd-sysv";

/// Where hosts' files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// An archive that is to be unpacked.
    Archive(PathBuf),
    /// A directory as it is.
    Tree(PathBuf),
}

/// Where root filesystems are kept unless told otherwise.
pub fn default_cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || set("HOME").map(|home| Path::new(&home).join(".cache"));
    let fallback = || PathBuf::from("/var/cache");
    cache.or_else(home).unwrap_or_else(fallback).join("slipway")
}

/// Has the archive of a level's root filesystem in the cache, and gives its path.
///
/// It is built from the package sources of this machine, which takes a minute and needs the
/// network: who enters namespaces calls this before. Two processes build it once.
pub async fn ensure_rootfs(
    level: Level,
    cache: &Path,
    progress: Progress<'_>,
) -> Result<PathBuf, Error> {
    let packages = match level {
        Level::Lite => LITE.to_owned(),
        Level::Systemd => format!("{LITE},{SYSTEMD}"),
    };
    let (suite, sources) = sources::here();
    let recipe = [packages.as_str(), &suite, HOOK, SHAPE];
    let mark = digest(&recipe.map(str::as_bytes), 16);
    let name = format!("{}-{mark}", level.as_str());
    let directory = cache.join("rootfs");
    let archive = directory.join(format!("{name}.tar"));
    if archive.is_file() {
        return Ok(archive);
    }
    if !tool::installed("mmdebstrap") {
        return Err(no_rootfs("the program mmdebstrap is missing"));
    }
    std::fs::create_dir_all(&directory).map_err(|error| no_rootfs(&error.to_string()))?;
    let lock = locked(&directory.join(format!("{name}.lock")), progress).await?;
    if !archive.is_file() {
        progress(&format!(
            "building the root filesystem of {} hosts; this is done once",
            level.as_str()
        ));
        let partial = directory.join(format!("{name}.partial"));
        build(
            &directory.join(format!("{name}.tmp")),
            &partial,
            &packages,
            &suite,
            &sources,
            progress,
        )
        .await?;
        std::fs::rename(&partial, &archive).map_err(|error| no_rootfs(&error.to_string()))?;
    }
    drop(lock);
    Ok(archive)
}

/// Changes with what is done besides installing packages.
const SHAPE: &str = "1";
/// A key that hosts share would be no key, and each has its own identity.
const HOOK: &str = r#"rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/machine-id "$1"/etc/hostname "$1"/etc/resolv.conf "$1"/etc/apt/apt.conf.d/99mmdebstrap"#;

async fn build(
    scratch: &Path,
    target: &Path,
    packages: &str,
    suite: &str,
    sources: &str,
    progress: Progress<'_>,
) -> Result<(), Error> {
    let mut command = tool::command("mmdebstrap");
    command
        .args(["--variant=minbase", "--format=tar", "--skip=output/dev"])
        .arg(format!("--include={packages}"))
        .arg(format!("--customize-hook={HOOK}"));
    for option in sources::options().await {
        command.arg(format!("--aptopt={option}"));
    }
    if enter::is_root() {
        // What a killed attempt left would stay for ever in a directory with a random name.
        drop(std::fs::remove_dir_all(scratch));
        std::fs::create_dir_all(scratch).map_err(|error| no_rootfs(&error.to_string()))?;
        command.arg("--mode=root").env("TMPDIR", scratch);
    } else {
        command.arg("--mode=unshare");
    }
    command.arg(suite).arg(target);
    if !sources.is_empty() {
        command.arg("-");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let built = tokio::time::timeout(BUILDING, watched(&mut command, sources, progress)).await;
    drop(std::fs::remove_dir_all(scratch));
    built
        .unwrap_or_else(|_| Err("mmdebstrap took too long".to_owned()))
        .map_err(|said| no_rootfs(&said))
}

/// Runs the builder, passes its words on, and gives its last complaint where it fails.
async fn watched(
    command: &mut tokio::process::Command,
    input: &str,
    progress: Progress<'_>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| tool::unstarted("mmdebstrap", &error);
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        drop(stdin.write_all(input.as_bytes()).await);
    }
    let mut complaint = String::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(said) = line.strip_prefix("I: ") {
                progress(said);
            } else if line.starts_with("E: ") || complaint.is_empty() {
                complaint = line;
            }
        }
    }
    let status = child.wait().await.map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    Err(format!("mmdebstrap ended with {status}: {complaint}"))
}

/// The directory that hosts of a level share, unpacked and made where it is not there yet.
pub(super) async fn tree(
    source: &Source,
    cache: &Path,
    progress: Progress<'_>,
) -> Result<PathBuf, Error> {
    let archive = match source {
        Source::Tree(tree) => return Ok(tree.clone()),
        Source::Archive(archive) => archive,
    };
    let unread = |error: std::io::Error| no_rootfs(&format!("{}: {error}", archive.display()));
    let about = std::fs::metadata(archive).map_err(unread)?;
    // Who unpacks as root of another user namespace gets files of other owners.
    let map = std::fs::read("/proc/self/uid_map").unwrap_or_default();
    let stamp = about
        .modified()
        .map(|at| format!("{at:?} {}", about.len()))
        .map_err(unread)?;
    let path = archive.as_os_str().as_encoded_bytes();
    let name = format!("tree-{}", digest(&[path, stamp.as_bytes(), &map], 16));
    let directory = cache.join("rootfs");
    let tree = directory.join(&name);
    if tree.is_dir() {
        return Ok(tree);
    }
    std::fs::create_dir_all(&directory).map_err(unread)?;
    let lock = locked(&directory.join(format!("{name}.lock")), progress).await?;
    if !tree.is_dir() {
        progress("unpacking the root filesystem");
        let partial = directory.join(format!("{name}.partial"));
        let script = "rm -rf \"$1\" && mkdir -m 755 \"$1\" && \
                      tar --extract --file \"$2\" --directory \"$1\" --numeric-owner --preserve-permissions \
                      --exclude './dev/*' && mv -T \"$1\" \"$3\"";
        let mut command = tool::command("sh");
        command
            .args(["-c", script, "sh"])
            .arg(&partial)
            .arg(archive)
            .arg(&tree);
        let unpacked = tool::run(&mut command, "", UNPACKING).await;
        if let Err(said) = unpacked {
            // Nobody may ever come back for this archive.
            drop(std::fs::remove_dir_all(&partial));
            let what = format!("unpacking {}: {said}", archive.display());
            return Err(no_rootfs(&what));
        }
    }
    drop(lock);
    Ok(tree)
}

/// Waits for a lock that is given back when its file is closed, however that happens.
async fn locked(path: &Path, progress: Progress<'_>) -> Result<File, Error> {
    let unlocked = |error: std::io::Error| no_rootfs(&format!("{}: {error}", path.display()));
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .map_err(unlocked)?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(error)) => return Err(unlocked(error)),
            Err(std::fs::TryLockError::WouldBlock) => {}
        }
        if !told {
            progress("waiting for another process that makes the root filesystem");
            told = true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Where hosts of a level get their files from: what was given, else the cache, else this machine.
pub(super) async fn source(
    given: Option<&Path>,
    level: Level,
    cache: &Path,
    progress: Progress<'_>,
) -> Result<Source, Error> {
    if let Some(given) = given {
        let about = std::fs::metadata(given);
        return match about {
            Ok(about) if about.is_dir() => Ok(Source::Tree(given.to_owned())),
            Ok(_) => Ok(Source::Archive(given.to_owned())),
            Err(error) => Err(no_rootfs(&format!("{}: {error}", given.display()))),
        };
    }
    match ensure_rootfs(level, cache, progress).await {
        Ok(archive) => Ok(Source::Archive(archive)),
        Err(error) if level == Level::Lite && enter::is_real_root() && tool::installed("sshd") => {
            progress(&format!(
                "{}; hosts see the files of this machine instead",
                error.what
            ));
            Ok(Source::Tree(PathBuf::from("/")))
        }
        Err(error) => Err(error),
    }
}

fn no_rootfs(why: &str) -> Error {
    Error::new(
        Kind::NoRootfs,
        format!("making a root filesystem for sandbox hosts: {why}"),
    )
}
