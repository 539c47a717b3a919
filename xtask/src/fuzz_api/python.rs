//! Python programs in environments of their own: each made once, below `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// The version of the fuzzer we have read the reports of. A newer one is a reviewed change of
/// this line.
pub(crate) const VERSION: &str = "4.32.5";

/// A program that pip installs.
pub(crate) struct Tool<'a> {
    /// Its directory below `target/tools`.
    pub(crate) directory: &'a str,
    /// What pip calls it.
    pub(crate) package: &'a str,
    /// The version that we have tried.
    pub(crate) version: &'a str,
    /// The oldest Python that this version runs on.
    pub(crate) python_min: (u32, u32),
}

/// Where a Python that is new enough may hide on systems whose default is older.
const PROGRAMS: &[&str] = &["python3", "python3.13", "python3.12", "python3.11"];

/// Whether a program can run.
pub(crate) enum Python {
    /// The interpreter that has it, and whether it was installed just now.
    Ready { python: PathBuf, fresh: bool },
    /// Why there is none.
    Missing(String),
}

/// Installs the fuzzer unless an earlier run did.
pub(crate) fn ensure(target: &Path) -> Result<Python> {
    let tool = Tool {
        directory: "schemathesis",
        package: "schemathesis",
        version: VERSION,
        python_min: (3, 11),
    };
    tool.ensure(target)
}

impl Tool<'_> {
    /// Where it is installed.
    pub(crate) fn directory(&self, target: &Path) -> PathBuf {
        target.join("tools").join(self.directory)
    }

    /// Installs it unless an earlier run did.
    pub(crate) fn ensure(&self, target: &Path) -> Result<Python> {
        let directory = self.directory(target);
        let python = directory.join("bin/python");
        // Written last and naming the place: neither half an environment nor a moved one passes.
        let marker = directory.join("complete");
        let Self {
            package, version, ..
        } = self;
        let complete = format!("{package}=={version} in {}\n", directory.display());
        if python.exists() && fs::read_to_string(&marker).is_ok_and(|text| text == complete) {
            return Ok(Python::Ready {
                python,
                fresh: false,
            });
        }
        let base = match self.find_base()? {
            Ok(base) => base,
            Err(reason) => return Ok(Python::Missing(reason)),
        };
        println!(
            "installing {package} {version} into {} (once)",
            directory.display()
        );
        if directory.exists() {
            fs::remove_dir_all(&directory)
                .with_context(|| format!("could not remove {}", directory.display()))?;
        }
        if let Some(reason) = self.install(base, &directory, &python)? {
            return Ok(Python::Missing(reason));
        }
        fs::write(&marker, complete)
            .with_context(|| format!("could not write {}", marker.display()))?;
        Ok(Python::Ready {
            python,
            fresh: true,
        })
    }

    /// Makes the environment and installs into it; answers why that did not work.
    fn install(&self, base: &str, directory: &Path, python: &Path) -> Result<Option<String>> {
        let venv = Command::new(base)
            .args(["-m", "venv"])
            .arg(directory)
            .output()
            .with_context(|| format!("could not start {base}"))?;
        if !venv.status.success() {
            return Ok(Some(format!(
                "not possible here: {base} makes no virtual environments, install python3-venv ({})",
                last_line(&venv)
            )));
        }
        let pip = Command::new(python)
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .arg("--disable-pip-version-check")
            .arg(format!("{}=={}", self.package, self.version))
            .output()
            .context("could not start pip")?;
        // No "not possible here": the network may be back in a minute, and CI should notice.
        Ok((!pip.status.success()).then(|| {
            format!(
                "could not install {} {} ({})",
                self.package,
                self.version,
                last_line(&pip)
            )
        }))
    }

    /// The first Python that is new enough, or why there is none.
    fn find_base(&self) -> Result<Result<&'static str, String>> {
        let mut oldest = None;
        for program in PROGRAMS {
            let output = match Command::new(program).arg("--version").output() {
                Ok(output) if output.status.success() => output,
                Ok(_) => continue,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => bail!("could not start {program}: {error}"),
            };
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if version(&text).is_some_and(|found| found >= self.python_min) {
                return Ok(Ok(program));
            }
            oldest.get_or_insert(text);
        }
        let (major, minor) = self.python_min;
        Ok(Err(match oldest {
            Some(text) => format!(
                "not possible here: {text} is too old, {} needs Python {major}.{minor}",
                self.package
            ),
            None => "not possible here: python3 is not installed".to_owned(),
        }))
    }
}

/// Major and minor of `Python 3.11.7`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("Python ")?.split('.');
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// The last line a program said, which with pip and venv is the reason.
fn last_line(output: &Output) -> String {
    let said = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines()
            .rfind(|line| !line.trim().is_empty())
            .map(str::to_owned)
    };
    said(&output.stderr)
        .or_else(|| said(&output.stdout))
        .unwrap_or_else(|| output.status.to_string())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(version("Python 3.11.7"), Some((3, 11)));
        assert!(version("Python 3.9.2").unwrap() < (3, 11));
        assert_eq!(version("pyenv: no such version"), None);
    }
}
