//! Builds programs from published Go modules, without their source trees.
//!
//! A module of our own requires the one that is wanted. What that one takes from directories
//! beside it (Kubernetes' staging modules, etcd's parts) is published, too, and comes from there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The oldest Go that builds what we want, by what the newest of the modules asks for.
const OLDEST: (u32, u32) = (1, 25);

/// How long one call may take: everything is compiled, on a slow machine that is busy.
const PATIENCE: Duration = Duration::from_hours(2);

/// How often a call is looked after.
const GLANCE: Duration = Duration::from_millis(100);

/// Programs of one module, or of several with one version.
pub(crate) struct Source {
    /// What it is called here.
    pub(crate) name: &'static str,
    /// The modules; the first one tells what comes from beside it.
    pub(crate) modules: Vec<&'static str>,
    /// Their version.
    pub(crate) version: String,
    /// The version of what comes from beside them.
    pub(crate) beside: String,
    /// The packages that are programs.
    pub(crate) packages: Vec<String>,
    /// Variables that the linker sets.
    pub(crate) variables: Vec<(String, String)>,
}

/// A program of ours that is one file.
pub(crate) struct OurFile<'a> {
    /// What it is called.
    pub(crate) name: &'a str,
    /// What is in the file.
    pub(crate) text: &'a str,
    /// What it says when it is asked for its version.
    pub(crate) version: &'a str,
}

/// A Go that can build what we want.
pub(crate) struct Go {
    /// What it says of itself.
    version: String,
}

impl Go {
    /// Looks for it.
    pub(crate) fn find() -> Result<Self> {
        let (major, minor) = OLDEST;
        let wanted = format!(
            "Kubernetes is built from its modules, which needs Go {major}.{minor} or newer in PATH \
             (https://go.dev/dl has it; packages of distributions are often older)"
        );
        let version = match Command::new("go").args(["env", "GOVERSION"]).output() {
            Ok(told) => String::from_utf8_lossy(&told.stdout).trim().to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                bail!("there is no Go: {wanted}")
            }
            Err(error) => return Err(error).context("could not start go"),
        };
        ensure!(
            new_enough(&version),
            "this Go is too old ({version}): {wanted}"
        );
        Ok(Self { version })
    }

    /// Compiles the programs of a source into a directory, which may be there.
    pub(crate) fn build(&self, source: &Source, work: &Path, to: &Path) -> Result<()> {
        let directory = work.join(source.name);
        let failed = || format!("could not prepare {}", source.name);
        fs::create_dir_all(&directory).with_context(failed)?;
        let module = go_mod(source, &self.upstream(source, &directory)?)?;
        fs::write(directory.join("go.mod"), module).with_context(failed)?;
        fs::write(directory.join("tools.go"), tools(&source.packages)).with_context(failed)?;
        self.run(&directory, &["mod", "tidy"])?;
        self.compile(&directory, &source.variables, &source.packages, to)
    }

    /// Compiles one program that is a single file of ours, and tells it its version.
    pub(crate) fn build_file(&self, file: &OurFile<'_>, work: &Path, to: &Path) -> Result<()> {
        let OurFile {
            name,
            text,
            version,
        } = file;
        let directory = work.join(name);
        let (major, minor) = OLDEST;
        let module = format!("module slipway.lab/{name}\n\ngo {major}.{minor}\n");
        fs::create_dir_all(&directory)
            .and_then(|()| fs::write(directory.join("go.mod"), module))
            .and_then(|()| fs::write(directory.join("main.go"), text))
            .with_context(|| format!("could not prepare {name}"))?;
        let variables = [("main.version".to_owned(), (*version).to_owned())];
        self.compile(&directory, &variables, &[".".to_owned()], to)
    }

    fn compile(
        &self,
        directory: &Path,
        variables: &[(String, String)],
        packages: &[String],
        to: &Path,
    ) -> Result<()> {
        let set = variables
            .iter()
            .map(|(name, value)| format!(" -X {name}={value}"));
        let flags = format!("-ldflags=-s -w{}", set.collect::<String>());
        // Only a name that ends so is a directory to Go, however many programs there are.
        let output = format!("{}/", to.display());
        let mut words = vec!["build", "-trimpath", &flags, "-o", &output];
        words.extend(packages.iter().map(String::as_str));
        self.run(directory, &words).map(drop)
    }

    /// The `go.mod` of the first module.
    fn upstream(&self, source: &Source, directory: &Path) -> Result<String> {
        let module = source.modules.first().context("there is no module")?;
        let wanted = format!("{module}@{}", source.version);
        let told = self.run(directory, &["mod", "download", "-json", &wanted])?;
        let told: Value = serde_json::from_str(&told).context("could not read what go answered")?;
        let path = told["GoMod"].as_str().map(PathBuf::from);
        let path = path.with_context(|| format!("there is no {wanted}: {}", told["Error"]))?;
        fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))
    }

    /// Runs Go; answers what it prints. The last words of a failure are passed on.
    fn run(&self, directory: &Path, words: &[&str]) -> Result<String> {
        let called = format!("go {}", words.first().copied().unwrap_or_default());
        let (out, err) = (directory.join(".stdout"), directory.join(".stderr"));
        let mut child = Command::new("go")
            .args(words)
            .current_dir(directory)
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-mod=mod -buildvcs=false")
            .env("GOWORK", "off")
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .spawn()
            .with_context(|| format!("could not start {called}"))?;
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if began.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                bail!(
                    "{called} took longer than {} minutes",
                    PATIENCE.as_secs() / 60
                );
            }
            std::thread::sleep(GLANCE);
        };
        let said = fs::read(&err)?;
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| !line.contains(": downloading "))
            .collect();
        let last = lines
            .get(lines.len().saturating_sub(8)..)
            .unwrap_or_default();
        ensure!(
            status.success(),
            "{called} failed ({status}, {}): {}",
            self.version,
            last.join("\n")
        );
        fs::read_to_string(&out).with_context(|| format!("{called} prints no text"))
    }
}

/// Whether a version such as `go1.26.8` will do.
fn new_enough(version: &str) -> bool {
    let mut numbers = version
        .trim_start_matches("go")
        .split(['.', 'r', 'b', '-', ' ']);
    let mut number = || numbers.next()?.parse::<u32>().ok();
    matches!((number(), number()), (Some(major), Some(minor)) if (major, minor) >= OLDEST)
}

/// Our module around the ones that are wanted.
fn go_mod(source: &Source, upstream: &str) -> Result<String> {
    let line = |word: &str| {
        let mut lines = upstream.lines().map(str::trim);
        lines.find(|line| line.starts_with(word)).map(str::to_owned)
    };
    let go = line("go ").with_context(|| format!("{} names no Go", source.name))?;
    let mut lines = vec![format!("module slipway.lab/{}", source.name), go];
    // Programs take their defaults from the main module, and that is ours.
    lines.extend(line("godebug "));
    let version = &source.version;
    lines.extend(
        source
            .modules
            .iter()
            .map(|module| format!("require {module} {version}")),
    );
    let mut beside: Vec<&str> = upstream.lines().filter_map(from_beside).collect();
    beside.sort_unstable();
    beside.dedup();
    lines.extend(beside.iter().map(|module| {
        let version = older(module, &source.beside);
        format!("replace {module} => {module} {version}")
    }));
    Ok(lines.join("\n") + "\n")
}

/// The version that a module beside has: the older client that comes with etcd 3.5.24 is called
/// 2.305.24.
fn older(module: &str, version: &str) -> String {
    let rest = version
        .strip_prefix("v3.")
        .filter(|_| module.ends_with("/v2"));
    match rest.and_then(|rest| rest.split_once('.')) {
        Some((minor, patch)) => format!("v2.3{minor:0>2}.{patch}"),
        None => version.to_owned(),
    }
}

/// The module that a line replaces by a directory of the same source tree.
///
/// Other directories are none: etcd forbids a module by replacing it with what is not there.
fn from_beside(line: &str) -> Option<&str> {
    let (module, place) = line.split_once("=>")?;
    let module = module
        .trim()
        .trim_start_matches("replace ")
        .split(' ')
        .next()?;
    let place = place.trim();
    let there = place.starts_with("../") || place.starts_with("./staging/");
    there.then_some(module)
}

/// Names the packages, so that Go fetches what they need.
fn tools(packages: &[String]) -> String {
    let imports: String = packages
        .iter()
        .map(|package| format!("\t_ \"{package}\"\n"))
        .collect();
    format!("//go:build tools\n\npackage tools\n\nimport (\n{imports})\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source {
            name: "kubernetes",
            modules: vec!["k8s.io/kubernetes"],
            version: "v1.34.4".to_owned(),
            beside: "v0.34.4".to_owned(),
            packages: vec!["k8s.io/kubernetes/cmd/kubeadm".to_owned()],
            variables: Vec::new(),
        }
    }

    #[test]
    fn our_module_takes_from_upstream_what_its_own_directories_cannot_give() {
        let upstream = "module k8s.io/kubernetes\n\ngo 1.24.0\n\ngodebug default=go1.24\n\n\
            require (\n\tk8s.io/api v0.0.0\n\tgopkg.in/yaml.v3 v3.0.1\n)\n\n\
            replace k8s.io/kubelet => ./staging/src/k8s.io/kubelet\n\
            replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\
            \texample.com/fork => example.com/other v1.0.0\n)\n";
        assert_eq!(
            go_mod(&source(), upstream).unwrap(),
            "module slipway.lab/kubernetes\ngo 1.24.0\ngodebug default=go1.24\n\
             require k8s.io/kubernetes v1.34.4\n\
             replace k8s.io/api => k8s.io/api v0.34.4\n\
             replace k8s.io/kubelet => k8s.io/kubelet v0.34.4\n"
        );
        assert!(go_mod(&source(), "module k8s.io/kubernetes\n").is_err());
    }

    #[test]
    fn several_modules_of_one_version_are_required_together() {
        let etcd = Source {
            name: "etcd",
            modules: vec!["go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdctl/v3"],
            version: "v3.6.5".to_owned(),
            beside: "v3.6.5".to_owned(),
            ..source()
        };
        let upstream = "go 1.24\n\nreplace (\n\tgo.etcd.io/etcd/api/v3 => ../api\n\
            \tgo.etcd.io/etcd => ./FORBIDDEN_DEPENDENCY\n)\n";
        assert_eq!(
            go_mod(&etcd, upstream).unwrap(),
            "module slipway.lab/etcd\ngo 1.24\n\
             require go.etcd.io/etcd/server/v3 v3.6.5\n\
             require go.etcd.io/etcd/etcdctl/v3 v3.6.5\n\
             replace go.etcd.io/etcd/api/v3 => go.etcd.io/etcd/api/v3 v3.6.5\n"
        );
    }

    #[test]
    fn the_older_client_of_etcd_has_a_version_of_its_own() {
        assert_eq!(older("go.etcd.io/etcd/client/v2", "v3.5.24"), "v2.305.24");
        assert_eq!(older("go.etcd.io/etcd/client/v3", "v3.5.24"), "v3.5.24");
        assert_eq!(older("example.org/some/v2", "v2.1.0"), "v2.1.0");
    }

    #[test]
    fn the_packages_are_imported_where_nothing_compiles_them() {
        assert_eq!(
            tools(&source().packages),
            "//go:build tools\n\npackage tools\n\nimport (\n\t_ \"k8s.io/kubernetes/cmd/kubeadm\"\n)\n"
        );
    }

    #[test]
    fn an_old_go_is_told_from_a_new_one() {
        for good in ["go1.25", "go1.26.8", "go1.25rc1", "go2.0"] {
            assert!(new_enough(good), "{good}");
        }
        for bad in ["go1.19.8", "go1.24.13", "", "devel"] {
            assert!(!new_enough(bad), "{bad}");
        }
    }
}
