//! The chart of a project: where it is, and what it says of its values.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use model::environment::settings::Settings;
use serde_json::Value;

use super::cluster::{complaint, ran};
use super::error::{Error, Kind};
use super::schema::Schema;
use super::values::Facts;
use crate::output::BYTES_MAX;
use crate::process::{Ended, How, Keep};

/// What says of a directory that it is a chart.
const CHART: &str = "Chart.yaml";

/// The file of the schema.
const SCHEMA: &str = "values.schema.json";

/// A chart that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chart {
    pub(super) path: String,
    archive: bool,
    /// Changes with its files.
    pub(super) fingerprint: String,
}

impl Chart {
    /// Looks for it.
    pub(super) fn find(text: &str) -> Result<Self, Error> {
        let path = Path::new(text);
        let wrong = |why: String| Error::new(Kind::NoChart, format!("{}: {why}", path.display()));
        if !path.is_absolute() {
            return Err(wrong("the chart is no absolute path".to_owned()));
        }
        let found = std::fs::metadata(path);
        let found =
            found.map_err(|cause| wrong(format!("could not look at the chart: {cause}")))?;
        if found.is_file() {
            let packed = path
                .extension()
                .is_some_and(|end| end == "tgz" || end == "gz");
            if !packed {
                return Err(wrong(
                    "the chart is neither a directory nor a .tgz".to_owned(),
                ));
            }
            return Ok(Self {
                path: text.to_owned(),
                archive: true,
                fingerprint: mark(Some(&found)),
            });
        }
        if !path.join(CHART).is_file() {
            return Err(wrong(format!("there is no {CHART}, so it is no chart")));
        }
        let files = [CHART, "values.yaml", SCHEMA];
        let marks = files.map(|file| mark(std::fs::metadata(path.join(file)).ok().as_ref()));
        Ok(Self {
            path: text.to_owned(),
            archive: false,
            fingerprint: marks.join(" "),
        })
    }

    /// What it says of its values.
    pub(super) async fn facts(
        &self,
        helm: &Path,
        settings: &Settings,
        variables: &[(OsString, OsString)],
    ) -> Result<Facts, Error> {
        let words = ["show", "values", "--jsonpath", "{$}", &self.path];
        let arguments = words.map(str::to_owned);
        let keep = Keep::First(BYTES_MAX);
        let ended = ran(helm, &arguments, variables, settings, keep).await?;
        let defaults = self.understood("its values", &ended)?;
        let schema = self.schema(settings, variables).await?;
        Ok(Facts {
            defaults,
            schema: Schema(schema),
        })
    }

    /// Its schema; nothing where it has none.
    async fn schema(
        &self,
        settings: &Settings,
        variables: &[(OsString, OsString)],
    ) -> Result<Value, Error> {
        if !self.archive {
            let bytes = read(&Path::new(&self.path).join(SCHEMA)).map_err(|cause| {
                let what = format!("could not read {SCHEMA}: {cause}");
                self.bad(&what)
            })?;
            return bytes.map_or(Ok(Value::Null), |bytes| self.parsed(SCHEMA, &bytes));
        }
        // The archive has one directory, and what is deeper belongs to other charts.
        let list = ["-tzf", &self.path].map(str::to_owned);
        let tar = Path::new("tar");
        let keep = Keep::First(BYTES_MAX);
        let listed = ran(tar, &list, variables, settings, keep).await?;
        self.good("list the archive", &listed)?;
        let names = String::from_utf8_lossy(&listed.out.bytes).into_owned();
        let mut names = names.lines().filter(|name| !name.starts_with('-'));
        let is_it = |name: &&str| {
            let file = name.strip_prefix("./").unwrap_or(name);
            file.split_once('/').is_some_and(|(_, file)| file == SCHEMA)
        };
        let Some(name) = names.find(is_it) else {
            return Ok(Value::Null);
        };
        let one = ["-xzOf", &self.path, name].map(str::to_owned);
        let ended = ran(tar, &one, variables, settings, keep).await?;
        self.understood(SCHEMA, &ended)
    }

    fn understood(&self, what: &str, ended: &Ended) -> Result<Value, Error> {
        self.good(&format!("read {what}"), ended)?;
        if ended.out.dropped > 0 {
            let most = BYTES_MAX / (1024 * 1024);
            return Err(self.bad(&format!("{what}: more than {most} MiB")));
        }
        self.parsed(what, &ended.out.bytes)
    }

    fn parsed(&self, what: &str, bytes: &[u8]) -> Result<Value, Error> {
        let read = serde_json::from_slice(bytes);
        read.map_err(|cause| self.bad(&format!("could not read {what}: {cause}")))
    }

    /// Nothing, if a program ended well.
    fn good(&self, attempted: &str, ended: &Ended) -> Result<(), Error> {
        match ended.how {
            How::Exited(0) => Ok(()),
            How::Exited(_) | How::Signal(_) | How::TimedOut => {
                Err(self.bad(&format!("could not {attempted}: {}", complaint(ended))))
            }
        }
    }

    fn bad(&self, why: &str) -> Error {
        Error::new(Kind::BadChart, format!("chart {}: {why}", self.path))
    }
}

/// What changes when a file does.
fn mark(file: Option<&Metadata>) -> String {
    file.map_or_else(
        || "-".to_owned(),
        |file| {
            let (len, inode) = (file.len(), file.ino());
            format!("{len}.{inode}.{}.{}", file.mtime(), file.mtime_nsec())
        },
    )
}

/// A file, up to the size that anybody reads; none where it is not there.
fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(cause),
    };
    let most = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_chart_is_told_apart() {
        let place = tempfile::tempdir().unwrap();
        let text = |name: &str| place.path().join(name).display().to_string();
        std::fs::create_dir(place.path().join("empty")).unwrap();
        std::fs::write(place.path().join("file.txt"), "").unwrap();
        std::fs::write(place.path().join("shop.tgz"), "").unwrap();
        for (chart, why) in [
            ("relative/chart", "the chart is no absolute path"),
            (&text("missing"), "could not look at the chart"),
            (&text("empty"), "there is no Chart.yaml"),
            (&text("file.txt"), "neither a directory nor a .tgz"),
        ] {
            let error = Chart::find(chart).unwrap_err();
            assert_eq!(error.kind, Kind::NoChart);
            assert!(error.what.contains(why), "{}", error.what);
        }
        assert!(Chart::find(&text("shop.tgz")).unwrap().archive);
    }

    #[test]
    fn a_chart_that_changed_is_another() {
        let place = tempfile::tempdir().unwrap();
        let chart = || Chart::find(&place.path().display().to_string()).unwrap();
        std::fs::write(place.path().join(CHART), "name: shop").unwrap();
        let before = chart();
        assert_eq!(chart(), before);
        std::fs::write(place.path().join("values.yaml"), "a: 1").unwrap();
        assert_ne!(chart(), before);
    }
}
