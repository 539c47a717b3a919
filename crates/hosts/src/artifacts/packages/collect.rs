//! Collects packages with all that they need into a mirror, by this machine's own apt.
//!
//! apt resolves and downloads as if nothing were installed, from the sources that this machine
//! has, with its signatures; it takes no root and touches nothing of the machine. What it has
//! fetched waits in a hidden directory of the mirror, so that whoever was interrupted goes on.

use super::{INDEX, Shelf};
use crate::artifacts::fill::{Progress, Tell};
use crate::artifacts::index::Entry;
use crate::artifacts::mirror::{Made, replace_below};
use crate::artifacts::name::{Digest, Name};
use crate::artifacts::trouble::unwritable;
use crate::artifacts::{blocking, part};
use crate::error::{Error, Kind};
use crate::tool::{self, SHORT};
use reqwest::Url;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// How long apt may take: all packages over a slow line.
const APT_MAX: Duration = Duration::from_hours(2);

/// Where apt works, in a mirror; no artifact has such a name.
const WORK: &str = ".packages";

/// Hooks that this machine's administrator has set are not for what we do.
const CONFIG: &str = "#clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n\
                      #clear APT::Update::Post-Invoke-Success;\n#clear DPkg::Pre-Install-Pkgs;\n\
                      #clear DPkg::Pre-Invoke;\n#clear DPkg::Post-Invoke;\n";

/// Collects these packages and all that they need, for the system of this machine; answers what
/// became of each file.
///
/// May be dropped at any time, and called again to go on. Files that were there before stay, so
/// that packages of other origin can be put beside them.
pub async fn collect(to: &Path, names: &BTreeSet<String>, tell: Tell<'_>) -> Result<Made, Error> {
    let shelf = here().await?;
    let directory = to.join(shelf.as_str());
    let work = Work::begin(to, &shelf).await?;
    work.apt(&["update"], tell).await?;
    let (mut kept, mut absent) = (Vec::new(), Vec::new());
    for deb in work.foresee(names).await? {
        if work.have(deb.clone(), directory.join(&deb.file)).await? {
            kept.push(deb);
        } else {
            absent.push(deb);
        }
    }
    if !absent.is_empty() {
        let words = ["--download-only", "install"].into_iter();
        let words: Vec<&str> = words.chain(names.iter().map(String::as_str)).collect();
        work.apt(&words, tell).await?;
    }
    for deb in &absent {
        work.place(deb.clone(), directory.join(&deb.file)).await?;
    }
    let listed = list(&directory, &shelf, tell).await?;
    let (mirror, above) = (to.to_owned(), shelf.0.clone());
    blocking(move || replace_below(&mirror, &above, listed)).await??;
    work.end().await?;
    let named = |debs: Vec<Deb>| {
        let one = |deb: Deb| shelf.file(&deb.file).map(|name| (name, deb.entry));
        debs.into_iter().filter_map(one).collect()
    };
    Ok(Made {
        added: named(absent),
        kept: named(kept),
        failed: Vec::new(),
    })
}

/// Where the packages of this machine's system belong.
async fn here() -> Result<Shelf, Error> {
    for program in ["apt-get", "dpkg", "dpkg-deb"] {
        if !tool::installed(program) {
            return Err(failed(&format!("the program {program} is missing")));
        }
    }
    let mut dpkg = tool::command("dpkg");
    let told = tool::run(dpkg.arg("--print-architecture"), "", SHORT).await;
    let architecture = told.map_err(|said| failed(&said))?;
    let value = |key| tool::release(key).unwrap_or_default();
    let system = format!("{} {}", value("ID"), value("VERSION_ID"));
    Shelf::of(&system, architecture.trim()).ok_or_else(|| {
        failed(&format!(
            "this machine calls its system {system:?}, which names no release"
        ))
    })
}

fn failed(why: &str) -> Error {
    let what = format!("could not collect packages: {why}");
    Error::new(Kind::NoPackages, what)
}

/// A package file that belongs into the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Deb {
    /// Where apt gets it from.
    from: Url,
    /// What apt calls it.
    fetched: String,
    /// What the mirror calls it: the same without its epoch, as in the pools of distributions.
    file: String,
    entry: Entry,
}

/// Where apt works.
struct Work(PathBuf);

impl Work {
    async fn begin(to: &Path, shelf: &Shelf) -> Result<Self, Error> {
        let work = std::path::absolute(to.join(WORK).join(shelf.as_str()));
        let work = work.map_err(|error| unwritable("make", to, &error))?;
        blocking(move || {
            let made = ["lists/partial", "fetched/partial", "none/partial"]
                .iter()
                .try_for_each(|part| std::fs::create_dir_all(work.join(part)))
                .and_then(|()| std::fs::write(work.join("status"), ""))
                .and_then(|()| std::fs::write(work.join("apt.conf"), CONFIG));
            made.map_err(|error| unwritable("write", &work, &error))?;
            Ok(Self(work))
        })
        .await?
    }

    /// Is not needed any more.
    async fn end(self) -> Result<(), Error> {
        blocking(move || {
            // What stays is in nobody's way.
            drop(std::fs::remove_dir_all(&self.0));
            for above in self.0.ancestors().skip(1).take(3) {
                drop(std::fs::remove_dir(above));
            }
        })
        .await
    }

    fn fetched(&self) -> PathBuf {
        self.0.join("fetched")
    }

    /// apt-get, as if nothing were installed and with its files at a place of ours.
    fn command(&self, archives: &Path) -> tokio::process::Command {
        let mut command = tool::command("apt-get");
        let config = self.0.join("apt.conf");
        command.args(["-q", "-y", "-c"]).arg(config);
        for (key, place) in [
            ("Dir::State", &*self.0),
            ("Dir::State::status", &self.0.join("status")),
            ("Dir::State::lists", &self.0.join("lists")),
            ("Dir::Cache", &self.0),
            ("Dir::Cache::archives", archives),
        ] {
            let mut option = OsString::from(format!("{key}="));
            option.push(place);
            command.arg("-o").arg(option);
        }
        for option in [
            "APT::Install-Recommends=false",
            // Another user could not write below a directory that is ours alone.
            "APT::Sandbox::User=root",
            "APT::Update::Error-Mode=any",
            "Acquire::ForceHash=sha256",
            "Acquire::Languages=none",
            "Acquire::Retries=3",
            "Acquire::http::Timeout=30",
        ] {
            command.args(["-o", option]);
        }
        command
    }

    /// Runs apt, and passes on what it says.
    async fn apt(&self, words: &[&str], tell: Tell<'_>) -> Result<(), Error> {
        let mut command = self.command(&self.fetched());
        command.args(words);
        let watched = tokio::time::timeout(APT_MAX, watched(&mut command, tell)).await;
        let watched = watched.unwrap_or_else(|_| Err("apt-get took too long".to_owned()));
        watched.map_err(|said| failed(&said))
    }

    /// The files that these packages take.
    async fn foresee(&self, names: &BTreeSet<String>) -> Result<Vec<Deb>, Error> {
        // Where nothing was fetched yet, so that apt names all of them.
        let mut command = self.command(&self.0.join("none"));
        command.args(["--print-uris", "install"]).args(names);
        let said = tool::run(&mut command, "", APT_MAX).await;
        let said = said.map_err(|said| failed(&said))?;
        let lines = said.lines().filter(|line| line.starts_with('\''));
        lines
            .map(|line| foreseen(line).ok_or_else(|| failed(&format!("apt-get said {line:?}"))))
            .collect()
    }

    /// Whether the mirror has it already; apt is then shown that it need not fetch it.
    async fn have(&self, deb: Deb, place: PathBuf) -> Result<bool, Error> {
        let fetched = self.fetched().join(&deb.fetched);
        blocking(move || {
            if !is(&place, deb.entry)? {
                return Ok(false);
            }
            let shown = match std::fs::hard_link(&place, &fetched) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                // Not every filesystem has links.
                Err(_) => std::fs::copy(&place, &fetched).map(drop),
                Ok(()) => Ok(()),
            };
            shown.map_err(|error| unwritable("write", &fetched, &error))?;
            Ok(true)
        })
        .await?
    }

    /// Moves what apt has fetched to its place.
    async fn place(&self, deb: Deb, place: PathBuf) -> Result<(), Error> {
        let fetched = self.fetched().join(&deb.fetched);
        blocking(move || {
            if !fetched.exists() {
                // What lies on this machine apt reads where it lies.
                let local = deb.from.to_file_path().unwrap_or_default();
                let copied = std::fs::copy(&local, &fetched);
                copied.map_err(|error| {
                    failed(&format!("apt-get did not bring {}: {error}", deb.file))
                })?;
            }
            if !is(&fetched, deb.entry)? {
                drop(std::fs::remove_file(&fetched));
                let what = format!("{} is not what the package sources promise", deb.from);
                return Err(Error::new(Kind::WrongChecksum, what));
            }
            let placed = (|| {
                std::fs::create_dir_all(place.parent().unwrap_or(&place))?;
                File::open(&fetched)?.sync_all()?;
                std::fs::rename(&fetched, &place)
            })();
            placed.map_err(|error| unwritable("write", &place, &error))
        })
        .await?
    }
}

/// Whether a file is there and has this in it.
fn is(path: &Path, entry: Entry) -> Result<bool, Error> {
    let read = |error| unwritable("read", path, &error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(read(error)),
    };
    if file.metadata().map_err(read)?.len() != entry.size {
        return Ok(false);
    }
    let whole = part::digest_of(&mut file).map_err(read)?;
    Ok(whole == (entry.sha256, entry.size))
}

/// Reads one line of what apt would fetch: `'URI' FILE SIZE SHA256:DIGEST`.
fn foreseen(line: &str) -> Option<Deb> {
    let (from, rest) = line.strip_prefix('\'')?.split_once("' ")?;
    let mut words = rest.split(' ');
    let (fetched, size, hash) = (words.next()?, words.next()?, words.next()?);
    let (name, rest) = fetched.split_once('_')?;
    let rest = rest.split_once("%3a").map_or(rest, |(_epoch, rest)| rest);
    let file = format!("{name}_{rest}");
    // What a mirror cannot name cannot be collected, nor can what leads elsewhere.
    file.parse::<Name>().ok().filter(|_| !file.contains('/'))?;
    Some(Deb {
        from: from.parse().ok()?,
        fetched: fetched.to_owned(),
        file,
        entry: Entry {
            sha256: hash.strip_prefix("SHA256:")?.parse::<Digest>().ok()?,
            size: size.parse().ok()?,
        },
    })
}

/// Writes down which packages there are; answers all files of the directory.
async fn list(
    directory: &Path,
    shelf: &Shelf,
    tell: Tell<'_>,
) -> Result<Vec<(Name, Entry)>, Error> {
    let mut files = BTreeSet::new();
    let read = |error| unwritable("read", directory, &error);
    for entry in std::fs::read_dir(directory).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.extension().is_some_and(|end| end == "deb") {
            let file = path.file_name().and_then(|file| file.to_str());
            files.extend(file.map(str::to_owned));
        }
    }
    let (mut text, mut listed) = (String::new(), Vec::new());
    for file in files {
        let Some(name) = shelf.file(&file) else {
            continue;
        };
        let path = directory.join(&file);
        let mut dpkg = tool::command("dpkg-deb");
        let control = tool::run(dpkg.arg("--field").arg(&path), "", SHORT).await;
        let control = control.map_err(|said| failed(&format!("{file}: {said}")))?;
        let entry = measured(path).await?;
        text.push_str(control.trim_end());
        text.push_str(&format!(
            "\nFilename: ./{file}\nSize: {}\nSHA256: {}\n\n",
            entry.size, entry.sha256
        ));
        tell(Progress::Whole(&name, entry.size));
        listed.push((name, entry));
    }
    let (index, beside) = (directory.join(INDEX), directory.join(format!(".{INDEX}")));
    let at = index.clone();
    blocking(move || part::write_small(&beside, &at, &text)).await??;
    if let Some(name) = shelf.file(INDEX) {
        listed.push((name, measured(index).await?));
    }
    Ok(listed)
}

async fn measured(path: PathBuf) -> Result<Entry, Error> {
    blocking(move || {
        let read = File::open(&path).and_then(|mut file| part::digest_of(&mut file));
        let (sha256, size) = read.map_err(|error| unwritable("read", &path, &error))?;
        Ok(Entry { sha256, size })
    })
    .await?
}

/// Runs a program, passes its lines on, and gives its first complaint where it fails.
async fn watched(command: &mut tokio::process::Command, tell: Tell<'_>) -> Result<(), String> {
    let failed = |error: std::io::Error| tool::unstarted("apt-get", &error);
    let mut child = command.spawn().map_err(failed)?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("apt-get says nothing".to_owned());
    };
    let says = async {
        let mut lines = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            tell(Progress::Said(&line));
        }
    };
    let complains = async {
        let mut complaint = String::new();
        let mut lines = BufReader::new(stderr).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if complaint.is_empty() || (line.starts_with("E: ") && !complaint.starts_with("E: ")) {
                complaint = line;
            }
        }
        complaint
    };
    let ((), complaint) = tokio::join!(says, complains);
    let status = child.wait().await.map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    Err(format!("apt-get ended with {status}: {complaint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_fetch_is_read() {
        let digest = Digest::of(b"x");
        let line = format!(
            "'http://deb.example/pool/dmsetup_1.02.185-2_amd64.deb' \
             dmsetup_2%3a1.02.185-2_amd64.deb 7 SHA256:{digest}"
        );
        let deb = foreseen(&line).unwrap();
        assert_eq!(deb.file, "dmsetup_1.02.185-2_amd64.deb");
        assert_eq!(deb.fetched, "dmsetup_2%3a1.02.185-2_amd64.deb");
        assert_eq!((deb.entry.sha256, deb.entry.size), (digest, 7));
        for bad in [
            "'http://deb.example/a' a_1_all.deb 7 MD5Sum:00".to_owned(),
            format!("'http://deb.example/a' ../a_1_all.deb 7 SHA256:{digest}"),
            format!("'http://deb.example/a' a_1_all.deb many SHA256:{digest}"),
            "'http://deb.example/a'".to_owned(),
        ] {
            assert_eq!(foreseen(&bad), None, "{bad}");
        }
    }
}
