//! Builds a real Kubernetes for the lab: programs and images, in the mirror that tests use.
//!
//! Nobody has to be asked for them: the Go modules that Kubernetes, etcd and `CoreDNS` publish are
//! enough. Building takes minutes, so what was built is kept in a cache for all clones of the
//! repository. There every version has a mirror of its own, and beside it the programs of a control
//! plane as they are. Both are built elsewhere and then renamed: what has an index is whole.
//! `docs/lab-kubernetes.md` is the page for people.

pub(crate) mod go;
pub(crate) mod images;
pub(crate) mod shelf;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lab::kubernetes::{VERSIONS, cache, platform};

use crate::hosts::{self, Got};
use crate::mirror::{self, Look};
use crate::{digest, workspace};
use go::{Go, OurFile, Source};
use images::{Image, Wanted};
use shelf::Shelf;

/// The mirror of a version, in its directory.
pub(crate) const MADE: &str = "mirror";
/// The programs of a version that tests run as they are, in its directory.
pub(crate) const LOOSE: &str = "programs";

/// Changes with what is built and how, so that what was built otherwise is not used.
const SHAPE: &str = "1";
/// The first process of every pod.
const PAUSE: &str = include_str!("kubernetes/pause.go");
/// What tests ask through clusters.
const ECHO: &str = include_str!("kubernetes/echo.go");

/// Tags of pause besides the one that kubeadm lists: container runtimes have defaults of their own.
const PAUSES: &[&str] = &["3.10", "3.10.1"];

/// Programs that hosts run.
const PROGRAMS: &[&str] = &["kubeadm", "kubectl", "kubelet"];
/// Programs that run in a container each.
const CONTAINED: &[&str] = &[
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
];

/// Programs that tests run without containers: a control plane on this machine.
const BARE: &[&str] = &[
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// Builds what is not there, and puts all of it into the mirror.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let versions: Vec<Version> = if arguments.is_empty() {
        let known = VERSIONS.iter().map(|version| Version::parse(version));
        known.collect::<Result<_>>()?
    } else {
        let named = arguments.iter().map(|version| Version::parse(version));
        named.collect::<Result<_>>()?
    };
    let place = mirror::place(&workspace::target_directory()?);
    for version in &versions {
        let shelf = shelf(version);
        shelf.fill(|work| build(version, work))?;
        shelf.put_into(&format!("kubernetes/{version}/"), &place)?;
        println!("{version} is in {}", place.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts into the mirror what was built before, and says what is not there; builds nothing.
pub(crate) fn cached(target: &Path) -> Result<Got> {
    let mut missing = Vec::new();
    for version in VERSIONS {
        let shelf = shelf(&Version::parse(version)?);
        if shelf.check(Look::Sizes).is_ok() {
            shelf.put_into(&format!("kubernetes/{version}/"), &mirror::place(target))?;
        } else {
            missing.push(*version);
        }
    }
    if missing.is_empty() {
        return Ok(Got::There);
    }
    let missing = missing.join(" and ");
    let how = format!("{missing} was not built; `cargo xtask kubernetes` does it, in minutes");
    Ok(Got::Missing(how))
}

/// A version of Kubernetes.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    minor: u32,
    patch: u32,
}

impl Version {
    /// Reads `v1.34.4`, with or without the letter.
    fn parse(text: &str) -> Result<Self> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let number = |part: Option<&str>| {
            // Nothing else than digits: `+1` is a number, too.
            let digits = part?.bytes().all(|byte| byte.is_ascii_digit());
            part?.parse().ok().filter(|_| digits)
        };
        let one = parts.next() == Some("1");
        match (number(parts.next()), number(parts.next()), parts.next()) {
            (Some(minor), Some(patch), None) if one => Ok(Self { minor, patch }),
            _ => anyhow::bail!("{text:?} is no version of Kubernetes such as v1.34.4"),
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("v1.{}.{}", self.minor, self.patch))
    }
}

/// Where a version is kept.
fn shelf(version: &Version) -> Shelf {
    Shelf::new(cache().join(version.to_string()), recipe())
}

/// What was built this way has this mark.
fn recipe() -> String {
    digest::sha256([SHAPE, PAUSE, ECHO].join("\0").as_bytes())
}

/// Builds a version in a directory, with all that this needs.
fn build(version: &Version, work: &Path) -> Result<()> {
    let began = Instant::now();
    let go = Go::find()?;
    if let Got::Missing(reason) = hosts::packages()? {
        println!("missing, packages for hosts: {reason}");
    }
    let go = &go;
    Build { go, version, work }.all()?;
    let took = began.elapsed().as_secs_f64();
    println!("{version} was built in {took:.0} s");
    Ok(())
}

/// One version that is being built.
struct Build<'a> {
    go: &'a Go,
    version: &'a Version,
    work: &'a Path,
}

impl Build<'_> {
    /// Makes everything, in directories that only need to be renamed.
    fn all(&self) -> Result<()> {
        let bin = self.work.join("bin");
        let made = self.work.join(MADE);
        let loose = self.work.join(LOOSE);
        let directory = made.join(format!("kubernetes/{}/{}", self.version, platform()));
        let lab = made.join(format!("lab/{}/images", platform()));
        for directory in [&bin, &directory.join("images"), &lab, &loose] {
            fs::create_dir_all(directory)
                .with_context(|| format!("could not make {}", directory.display()))?;
        }
        self.step("Kubernetes", || {
            self.go.build(&self.kubernetes(), self.work, &bin)
        })?;
        let wanted = self.wanted(&bin.join("kubeadm"))?;
        let (_, tag) = wanted.get("etcd")?;
        self.step(&format!("etcd {tag}"), || self.etcd(tag, &bin))?;
        let (_, tag) = wanted.get("coredns")?;
        self.step(&format!("CoreDNS {tag}"), || {
            self.go.build(&coredns(tag), self.work, &bin)
        })?;
        self.step("pause and echo", || {
            let (_, tag) = wanted.get("pause")?;
            for (name, text, version) in [("pause", PAUSE, tag), ("echo", ECHO, "1")] {
                let file = OurFile {
                    name,
                    text,
                    version,
                };
                self.go.build_file(&file, self.work, &bin)?;
            }
            Ok(())
        })?;
        self.step("images", || {
            pack(&bin, &wanted, &directory.join("images"))?;
            let echo = Image::new(&[(&bin.join("echo"), "echo")])?.user(65_532);
            write(
                &lab.join("echo.tar"),
                &echo.pack(&["slipway.lab/echo:1".to_owned()])?,
            )
        })?;
        let hosts = PROGRAMS.iter().map(|name| (name, &directory));
        for (name, place) in hosts.chain(BARE.iter().map(|name| (name, &loose))) {
            fs::rename(bin.join(name), place.join(name))
                .with_context(|| format!("could not keep {name}"))?;
        }
        Ok(())
    }

    /// Does a step and tells how long it took.
    fn step<T>(&self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("{}: {name} …", self.version);
        let began = Instant::now();
        let done = work().with_context(|| format!("could not build {name}"))?;
        println!(
            "{}: {name} {:.1} s",
            self.version,
            began.elapsed().as_secs_f64()
        );
        Ok(done)
    }

    /// Kubernetes itself, which must tell its version: kubeadm asks, and refuses others.
    fn kubernetes(&self) -> Source {
        let Version { minor, patch } = self.version;
        let set = |name: &str, value: &str| {
            let name = format!("k8s.io/component-base/version.{name}");
            (name, value.to_owned())
        };
        let version = self.version.to_string();
        let client = "k8s.io/client-go/pkg/version.gitVersion".to_owned();
        Source {
            name: "kubernetes",
            modules: vec!["k8s.io/kubernetes"],
            beside: format!("v0.{minor}.{patch}"),
            packages: [PROGRAMS, CONTAINED]
                .concat()
                .iter()
                .map(|program| format!("k8s.io/kubernetes/cmd/{program}"))
                .collect(),
            variables: vec![
                set("gitVersion", &version),
                set("gitMajor", "1"),
                set("gitMinor", &minor.to_string()),
                set("gitTreeState", "clean"),
                set("gitCommit", "unknown"),
                set("buildDate", "1970-01-01T00:00:00Z"),
                (client, version.clone()),
            ],
            version,
        }
    }

    /// Asks kubeadm which images it wants; it knows without a network when told the version.
    fn wanted(&self, kubeadm: &Path) -> Result<Wanted> {
        let version = self.version.to_string();
        let output = Command::new(kubeadm)
            .args(["config", "images", "list", "--kubernetes-version", &version])
            .output()
            .context("could not start the kubeadm that was built")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubeadm lists no images: {said}");
        Ok(Wanted::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// etcd and the programs that look after it, for an image with this tag.
    fn etcd(&self, tag: &str, bin: &Path) -> Result<()> {
        // The number after the dash counts images of one version.
        let version = tag.split('-').next().unwrap_or(tag);
        let of = |name: &'static str, modules: Vec<&'static str>, version: &str| Source {
            name,
            packages: modules.iter().map(|module| (*module).to_owned()).collect(),
            modules,
            beside: format!("v{version}"),
            version: format!("v{version}"),
            variables: Vec::new(),
        };
        let served = of("etcd", vec!["go.etcd.io/etcd/server/v3"], version);
        self.go.build(&served, self.work, bin)?;
        // Not every version of these is published everywhere, and the one needs the other; any of
        // the same minor will do.
        let clients = ["go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3"];
        let mut built = Ok(());
        for version in and_earlier(version) {
            let clients = of("etcdctl", clients.to_vec(), &version);
            built = self.go.build(&clients, self.work, bin);
            if built.is_ok() {
                break;
            }
        }
        built?;
        let named = fs::rename(bin.join("server"), bin.join("etcd"));
        named.context("could not name etcd")
    }
}

/// A version and a few that came before it, the newest first.
fn and_earlier(version: &str) -> Vec<String> {
    let split = version.rsplit_once('.');
    let patch = split.and_then(|(minor, patch)| Some((minor, patch.parse::<u32>().ok()?)));
    match patch {
        Some((minor, patch)) => (patch.saturating_sub(5)..=patch)
            .rev()
            .map(|patch| format!("{minor}.{patch}"))
            .collect(),
        None => vec![version.to_owned()],
    }
}

/// The name service of clusters, of a version that is also the tag.
fn coredns(tag: &str) -> Source {
    let module = "github.com/coredns/coredns";
    Source {
        name: "coredns",
        modules: vec![module],
        version: tag.to_owned(),
        beside: tag.to_owned(),
        packages: vec![module.to_owned()],
        variables: Vec::new(),
    }
}

/// Packs every image that kubeadm wants.
fn pack(bin: &Path, wanted: &Wanted, to: &Path) -> Result<()> {
    let one = |name: &str, image: Image| {
        let (reference, _) = wanted.get(name)?;
        let archive = image.pack(&[reference.to_owned()])?;
        write(&to.join(format!("{name}.tar")), &archive)
    };
    for name in CONTAINED {
        let image = Image::new(&[(&bin.join(name), &format!("usr/local/bin/{name}"))])?;
        let image = match *name {
            "kube-proxy" => image.with_packet_filter()?,
            _ => image,
        };
        one(name, image)?;
    }
    let programs = ["etcd", "etcdctl", "etcdutl"];
    let programs = programs.map(|name| (bin.join(name), format!("usr/local/bin/{name}")));
    let programs: Vec<(&Path, &str)> = programs
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    one("etcd", Image::new(&programs)?)?;
    one("coredns", Image::new(&[(&bin.join("coredns"), "coredns")])?)?;
    let pause = Image::new(&[(&bin.join("pause"), "pause")])?.user(65_535);
    let archive = pause.pack(&pauses(wanted.get("pause")?.0))?;
    write(&to.join("pause.tar"), &archive)
}

/// All names of pause, each once.
fn pauses(listed: &str) -> Vec<String> {
    let path = listed.rsplit_once(':').map_or(listed, |(path, _)| path);
    let mut names: Vec<String> = PAUSES.iter().map(|tag| format!("{path}:{tag}")).collect();
    if !names.iter().any(|name| name == listed) {
        names.push(listed.to_owned());
    }
    names
}

pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_nothing_else_is() {
        for text in ["v1.34.4", "1.34.4"] {
            assert_eq!(Version::parse(text).unwrap().to_string(), "v1.34.4");
        }
        for text in [
            "",
            "v1",
            "1.34",
            "2.34.4",
            "v1.34.4.1",
            "v1.34.4-rc.1",
            "v1.+3.4",
            "--help",
        ] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pause_has_every_name_once() {
        let host = "registry.k8s.io/pause";
        let usual = [format!("{host}:3.10"), format!("{host}:3.10.1")];
        assert_eq!(pauses(&usual[1]), usual);
        let newer = format!("{host}:3.11");
        let all = usual.iter().chain([&newer]).cloned();
        assert_eq!(pauses(&newer), all.collect::<Vec<_>>());
    }
}
