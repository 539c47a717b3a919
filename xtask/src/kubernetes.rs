//! Builds a real Kubernetes for the lab: programs and images, in the mirror that tests use.
//!
//! Nobody has to be asked for them: the Go modules that Kubernetes, etcd and `CoreDNS` publish are
//! enough. Building takes minutes, so what was built is kept in a cache for all clones of the
//! repository. There every version has a mirror of its own, and beside it the programs of a control
//! plane as they are. Both are built elsewhere and then renamed: what has an index is whole.
//! `docs/lab-kubernetes.md` is the page for people.

mod go;
mod images;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use lab::kubernetes::{VERSIONS, cache, platform};

use crate::hosts::{self, Got};
use crate::mirror::{self, Look};
use crate::{digest, workspace};
use go::{Go, OurFile, Source};
use images::{Image, Wanted};

/// The mirror of a version, in its directory.
const MADE: &str = "mirror";
/// The programs of a version that tests run as they are, in its directory.
const LOOSE: &str = "programs";
/// The file that tells how a directory was made.
const RECIPE: &str = ".recipe";

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
        let shelf = Shelf::new(version);
        shelf.fill(version)?;
        shelf.put_into(version, &place)?;
        println!("{version} is in {}", place.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts into the mirror what was built before, and says what is not there; builds nothing.
pub(crate) fn cached(target: &Path) -> Result<Got> {
    let mut missing = Vec::new();
    for version in VERSIONS {
        let parsed = Version::parse(version)?;
        let shelf = Shelf::new(&parsed);
        if shelf.check(Look::Sizes).is_ok() {
            shelf.put_into(&parsed, &mirror::place(target))?;
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

/// Where one version is kept: its directory in the cache, with its lock and what is being built
/// beside it.
struct Shelf(PathBuf);

impl Shelf {
    fn new(version: &Version) -> Self {
        Self(cache().join(version.to_string()))
    }

    /// A path beside it.
    fn beside(&self, end: &str) -> PathBuf {
        let name = self.0.file_name().unwrap_or_default();
        self.0
            .with_file_name(format!("{}.{end}", name.to_string_lossy()))
    }

    fn mirror(&self) -> PathBuf {
        self.0.join(MADE)
    }

    fn programs(&self) -> PathBuf {
        self.0.join(LOOSE)
    }

    /// What is there, when it is whole and was built as it would be now.
    fn check(&self, look: Look) -> Result<mirror::Index> {
        let index = mirror::check(&self.mirror(), look)?;
        let recipe = fs::read_to_string(self.mirror().join(RECIPE)).unwrap_or_default();
        ensure!(recipe == self::recipe(), "it was built in another way");
        if ours(&self.programs()) {
            mirror::check(&self.programs(), look)?;
        }
        Ok(index)
    }

    /// Builds what belongs there, unless it is there.
    fn fill(&self, version: &Version) -> Result<()> {
        let began = Instant::now();
        let _lock = mirror::locked(&self.beside("lock"))?;
        if self.mirror().exists() {
            match self.check(Look::Digests) {
                Ok(_) => return Ok(()),
                Err(why) => println!("{version} is in the cache and cannot be used: {why:#}"),
            }
        }
        let go = Go::find()?;
        if let Got::Missing(reason) = hosts::packages()? {
            println!("packages for hosts are missing: {reason}");
        }
        self.sweep()?;
        // A name of its own: whatever a killed run left behind writes elsewhere.
        let work = self.beside(&format!("part-{}", std::process::id()));
        let made = Build {
            go: &go,
            version,
            work: &work,
        }
        .all();
        let kept = made.and_then(|()| self.keep(&work));
        fs::remove_dir_all(&work).with_context(|| format!("could not clear {}", work.display()))?;
        kept?;
        println!(
            "{version} was built in {:.0} s",
            began.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// Removes what runs left that were killed.
    fn sweep(&self) -> Result<()> {
        let above = self.0.parent().context("the cache has no place")?;
        let prefix = self.beside("part-");
        let prefix = prefix.file_name().unwrap_or_default().to_string_lossy();
        for entry in fs::read_dir(above)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&*prefix) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Lists what was made, and has it take its place; the mirror last, which vouches for all.
    fn keep(&self, work: &Path) -> Result<()> {
        fs::create_dir_all(&self.0)
            .with_context(|| format!("could not make {}", self.0.display()))?;
        for (name, place) in [(LOOSE, self.programs()), (MADE, self.mirror())] {
            if !ours(&place) {
                println!("{} is not of our making and stays", place.display());
                continue;
            }
            let made = work.join(name);
            let index = mirror::list(&made)?;
            write(&made.join(RECIPE), recipe().as_bytes())?;
            mirror::write(&made, &index)?;
            if place.exists() {
                fs::remove_dir_all(&place)?;
            }
            fs::rename(&made, &place)
                .with_context(|| format!("could not make {}", place.display()))?;
        }
        self.check(Look::Sizes).map(drop)
    }

    /// Brings all of it into a mirror.
    fn put_into(&self, version: &Version, to: &Path) -> Result<()> {
        let index = mirror::read(&self.mirror())?;
        mirror::merge(
            &self.mirror(),
            &index,
            &format!("kubernetes/{version}/"),
            to,
        )
    }
}

/// Whether a directory was made here or is not there: others' are not replaced.
fn ours(directory: &Path) -> bool {
    !directory.exists() || directory.join(RECIPE).exists()
}

/// What was built this way has this mark.
fn recipe() -> String {
    digest::sha256([SHAPE, PAUSE, ECHO].join("\0").as_bytes())
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
        let version = format!("v{}", tag.split('-').next().unwrap_or(tag));
        let modules = vec![
            "go.etcd.io/etcd/server/v3",
            "go.etcd.io/etcd/etcdctl/v3",
            "go.etcd.io/etcd/etcdutl/v3",
        ];
        let source = Source {
            name: "etcd",
            packages: modules.iter().map(|module| (*module).to_owned()).collect(),
            modules,
            beside: version.clone(),
            version,
            variables: Vec::new(),
        };
        self.go.build(&source, self.work, bin)?;
        let named = fs::rename(bin.join("server"), bin.join("etcd"));
        named.context("could not name etcd")
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

fn write(path: &Path, content: &[u8]) -> Result<()> {
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

    #[test]
    fn what_was_built_in_another_way_or_was_damaged_is_refused() {
        let place = std::env::temp_dir().join(format!("xtask-shelf-{}", std::process::id()));
        let shelf = Shelf(place.join("v1.0.0"));
        let work = shelf.beside("part-1");
        let fill = || {
            for name in ["mirror", "programs"] {
                fs::create_dir_all(work.join(name)).unwrap();
                fs::write(work.join(name).join("a"), "content").unwrap();
            }
            shelf.keep(&work).unwrap();
        };
        fill();
        fill();
        assert_eq!(shelf.check(Look::Digests).unwrap().len(), 1);
        let spoilt = |name: &str, text: &str| {
            fs::write(shelf.0.join(name), text).unwrap();
            let why = shelf.check(Look::Digests).unwrap_err().to_string();
            fill();
            why
        };
        let damaged = ["mirror/a", "programs/a"].map(|name| spoilt(name, "contenT"));
        let older = spoilt("mirror/.recipe", "older");
        shelf.sweep().unwrap();
        let left = fs::read_dir(&place).unwrap().count();
        fs::remove_dir_all(&place).unwrap();
        for why in damaged {
            assert!(why.starts_with("a has the SHA-256"), "{why}");
        }
        assert_eq!(older, "it was built in another way");
        assert_eq!(left, 1, "what a killed run left is swept away");
    }

    #[test]
    fn what_others_put_there_stays() {
        let place = std::env::temp_dir().join(format!("xtask-others-{}", std::process::id()));
        let shelf = Shelf(place.join("v1.0.0"));
        let work = shelf.beside("part-1");
        for directory in [
            &work.join("mirror"),
            &work.join("programs"),
            &shelf.programs(),
        ] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(shelf.programs().join("etcd"), "theirs").unwrap();
        fs::write(work.join("programs/etcd"), "ours").unwrap();
        let kept = shelf.keep(&work);
        let etcd = fs::read_to_string(shelf.programs().join("etcd"));
        fs::remove_dir_all(&place).unwrap();
        kept.unwrap();
        assert_eq!(etcd.unwrap(), "theirs");
    }
}
