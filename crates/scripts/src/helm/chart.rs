//! The chart of a project: where it is, and what it says of its values.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use model::environment::schema::Schema;
use model::environment::settings::Settings;
use serde_json::Value;

use super::cluster::{complaint, ran};
use super::error::{Error, Kind};
use super::values::Facts;
use crate::output::{BYTES_MAX, Redactor};
use crate::process::{Ended, How, Keep};

/// What says of a directory that it is a chart.
const CHART: &str = "Chart.yaml";

/// The file of the schema.
const SCHEMA: &str = "values.schema.json";

/// Where the charts are that a chart is made of.
const CHARTS: &str = "charts";

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
        let files = [CHART, "values.yaml", SCHEMA, CHARTS];
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
        let (schema, composed) = if self.archive {
            self.packed(settings, variables).await?
        } else {
            self.unpacked()?
        };
        Ok(Facts {
            defaults,
            schema,
            composed,
        })
    }

    /// The schema of a directory, which may say nothing, and whether there are other charts in it.
    fn unpacked(&self) -> Result<(Schema, bool), Error> {
        let path = Path::new(&self.path);
        let bytes = read(&path.join(SCHEMA)).map_err(|cause| {
            let what = format!("could not read {SCHEMA}: {cause}");
            self.bad(&what)
        })?;
        let schema = bytes.map_or_else(|| Ok(Schema::default()), |bytes| self.schema(&bytes))?;
        let composed = std::fs::read_dir(path.join(CHARTS));
        let composed = composed.is_ok_and(|mut charts| charts.next().is_some());
        Ok((schema, composed))
    }

    /// The same of an archive.
    async fn packed(
        &self,
        settings: &Settings,
        variables: &[(OsString, OsString)],
    ) -> Result<(Schema, bool), Error> {
        // The archive has one directory, and what is deeper belongs to other charts.
        let list = ["-tzf", &self.path].map(str::to_owned);
        let tar = Path::new("tar");
        let keep = Keep::First(BYTES_MAX);
        let listed = ran(tar, &list, variables, settings, keep).await?;
        self.good("list the archive", &listed)?;
        let names = String::from_utf8_lossy(&listed.out.bytes).into_owned();
        let names: Vec<_> = names
            .lines()
            .filter(|name| !name.starts_with('-'))
            .collect();
        let inside = |name: &str| {
            let file = name.strip_prefix("./").unwrap_or(name);
            file.split_once('/').map(|(_, file)| file.to_owned())
        };
        let in_charts = |file: String| file.starts_with(&format!("{CHARTS}/"));
        let composed = names.iter().any(|name| inside(name).is_some_and(in_charts));
        let is_it = |name: &&&str| inside(name).is_some_and(|file| file == SCHEMA);
        let Some(name) = names.iter().find(is_it) else {
            return Ok((Schema::default(), composed));
        };
        let one = ["-xzOf", &self.path, name].map(str::to_owned);
        let keep = Keep::First(BYTES_MAX + 1);
        let ended = ran(tar, &one, variables, settings, keep).await?;
        self.good(&format!("read {SCHEMA}"), &ended)?;
        Ok((self.schema(&ended.out.bytes)?, composed))
    }

    /// Reads a schema. What is no JSON is none for Helm either; one that is too much for us is
    /// Helm's alone to judge by.
    fn schema(&self, bytes: &[u8]) -> Result<Schema, Error> {
        if bytes.len() > BYTES_MAX {
            tracing::warn!(
                chart = self.path,
                "{SCHEMA} is too large; settings have no types"
            );
            return Ok(Schema::default());
        }
        let read = Schema::read(bytes);
        read.map_err(|cause| self.bad(&format!("could not read {SCHEMA}: {cause}")))
    }

    fn understood(&self, what: &str, ended: &Ended) -> Result<Value, Error> {
        self.good(&format!("read {what}"), ended)?;
        if ended.out.dropped > 0 {
            let most = BYTES_MAX / (1024 * 1024);
            return Err(self.bad(&format!("{what}: more than {most} MiB")));
        }
        let read = serde_json::from_slice(&ended.out.bytes);
        read.map_err(|cause| self.bad(&format!("could not read {what}: {cause}")))
    }

    /// Nothing, if a program ended well.
    fn good(&self, attempted: &str, ended: &Ended) -> Result<(), Error> {
        match ended.how {
            How::Exited(0) => Ok(()),
            How::Exited(_) | How::Signal(_) | How::TimedOut => Err(self.bad(&format!(
                "could not {attempted}: {}",
                complaint(ended, &Redactor::default())
            ))),
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
    // One more shows that it is larger.
    let most = u64::try_from(BYTES_MAX + 1).unwrap_or(u64::MAX);
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
    fn a_schema_is_read_as_far_as_it_can_be() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path(CHART), "name: shop").unwrap();
        let chart = || Chart::find(&place.path().display().to_string()).unwrap();
        let schema = |text: &str| {
            std::fs::write(path(SCHEMA), text).unwrap();
            chart().unpacked().map(|(schema, _)| schema)
        };
        assert_eq!(chart().unpacked().unwrap(), (Schema::default(), false));
        let some = Schema::from(serde_json::json!({"type": "object"}));
        assert_eq!(schema(r#"{"type": "object"}"#).unwrap(), some);
        // What is too large or too deep says nothing; what is no JSON is wrong.
        let large = format!("{{\"a\": \"{}\"}}", "x".repeat(10 * 1024 * 1024));
        assert_eq!(schema(&large).unwrap(), Schema::default());
        let deep = format!("{}{}", "[".repeat(9_000), "]".repeat(9_000));
        assert_eq!(schema(&deep).unwrap(), Schema::default());
        assert_eq!(schema("{").unwrap_err().kind, Kind::BadChart);
        // Other charts in it are noticed.
        std::fs::write(path(SCHEMA), "{}").unwrap();
        let before = chart();
        std::fs::create_dir_all(path(CHARTS).join("redis")).unwrap();
        assert_ne!(chart(), before);
        assert!(chart().unpacked().unwrap().1);
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
