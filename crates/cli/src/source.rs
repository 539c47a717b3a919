//! Reads a manifest from a file or from standard input, and no more than a manifest.

use crate::error::Error;
use api::manifest::{API_VERSIONS, KIND, TEXT_BYTES_MAX};
use serde::Deserialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Where a manifest is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Source {
    /// The manifest; `-` reads standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) file: PathBuf,
}

impl Source {
    pub(crate) fn read(&self) -> Result<String, Error> {
        read(&self.file)
    }
}

/// Reads a manifest; one that the server would not read is refused here already.
pub(crate) fn read(file: &Path) -> Result<String, Error> {
    let unreadable = |cause: io::Error| {
        let file = file.to_owned();
        if cause.kind() == io::ErrorKind::NotFound {
            Error::NoFile { file }
        } else {
            Error::Unreadable { file, cause }
        }
    };
    let handle: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        if std::fs::metadata(file).map_err(unreadable)?.is_dir() {
            return Err(Error::Directory {
                file: file.to_owned(),
            });
        }
        Box::new(std::fs::File::open(file).map_err(unreadable)?)
    };
    let limit = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    handle
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > TEXT_BYTES_MAX {
        return Err(Error::TooLarge {
            file: file.to_owned(),
            max: TEXT_BYTES_MAX,
        });
    }
    String::from_utf8(bytes).map_err(|_| Error::NotText {
        file: file.to_owned(),
    })
}

/// The part of a document that says which one it is; the rest may be as wrong as it likes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// Documents that stand beside a manifest, which names them.
const BESIDE: &str = "TemplateGitReference";

/// The name of the manifest in `text`, which was read from `file`. A document of another kind is none,
/// whatever its name is.
pub(crate) fn name(text: &str, file: &Path) -> Result<String, Error> {
    let nameless = || Error::NoName {
        file: file.to_owned(),
    };
    let documents: Vec<Named> = serde_saphyr::from_multiple(text).map_err(|_| nameless())?;
    let mut manifests = documents.into_iter().filter(|of| of.kind != BESIDE);
    let (Some(named), None) = (manifests.next(), manifests.next()) else {
        return Err(nameless());
    };
    if named.kind == KIND && API_VERSIONS.contains(&&*named.api_version) {
        Ok(named.metadata.name)
    } else {
        Err(Error::NoManifest {
            file: file.to_owned(),
            kind: named.kind,
            version: named.api_version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        let error = read(path).unwrap_err();
        format!(
            "{} {}",
            error.code(),
            error.to_string().replace(path.to_str().unwrap(), "FILE")
        )
    }

    #[test]
    fn what_cannot_be_a_manifest_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.yaml");
        assert_eq!(refused(&file), "CLI-006 there is no file `FILE`");
        assert_eq!(refused(dir.path()), "CLI-006 `FILE` is a directory");
        std::fs::write(&file, vec![b'a'; 10 << 20]).unwrap();
        assert_eq!(
            refused(&file),
            "CLI-006 `FILE` is larger than 1048576 bytes"
        );
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(refused(&file), "CLI-006 `FILE` is not text in UTF-8");
        std::fs::write(&file, vec![b'a'; TEXT_BYTES_MAX]).unwrap();
        assert_eq!(read(&file).unwrap().len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn a_stream_without_end_is_read_no_further_than_the_limit() {
        assert_eq!(
            refused(Path::new("/dev/zero")),
            "CLI-006 `FILE` is larger than 1048576 bytes"
        );
    }

    #[test]
    fn the_name_is_found_in_a_manifest_with_faults() {
        let file = Path::new("a.yaml");
        let said =
            |kind: &str| format!("{kind}\nmetadata:\n  name: hello\n  colour: red\nspec: 3\n");
        let text = &said("apiVersion: slipway.dev/v1\nkind: InputManifest");
        assert_eq!(name(text, file).unwrap(), "hello");
        assert!(name("spec: {}", file).is_err());
        for kind in [
            "apiVersion: v1\nkind: Service",
            "kind: InputManifest",
            "apiVersion: slipway.dev/v1",
        ] {
            let refused = name(&said(kind), file).unwrap_err();
            assert_eq!(refused.code(), "CLI-006", "{refused}");
        }
        assert!(name("{{{", file).is_err());
        let beside = "kind: TemplateGitReference\nmetadata: {name: ours}\n";
        assert_eq!(
            name(&format!("{beside}---\n{text}"), file).unwrap(),
            "hello"
        );
        assert!(name(&format!("{text}---\n{text}"), file).is_err());
        assert!(name(beside, file).is_err());
    }
}
