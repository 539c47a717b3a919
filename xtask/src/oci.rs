//! Packs images that container engines load, without one of them.
//!
//! The archive holds an OCI image layout: every part is named after the SHA-256 of its bytes, and
//! `index.json` leads from part to part. A `manifest.json` beside it says the same to engines from
//! before the layout was common. Nothing is compressed: the parts are then the same bytes wherever
//! they are made, and registries compress what they are sent.

use anyhow::Result;
use serde_json::{Value, json};

use crate::digest::sha256;
use tar::Archive;

pub(crate) mod tar;

/// What is said of an image with one layer.
pub(crate) struct Layout<'a> {
    /// What engines call it, each with a tag.
    pub(crate) names: &'a [String],
    /// The processor, as images call it.
    pub(crate) architecture: &'a str,
    /// The time of everything in it, in seconds since 1970.
    pub(crate) time: u64,
    /// The same time, for people.
    pub(crate) created: &'a str,
    /// What made it.
    pub(crate) by: &'a str,
    /// How it is run.
    pub(crate) run: &'a Value,
}

impl Layout<'_> {
    /// The archive of the image.
    pub(crate) fn pack(&self, layer: Vec<u8>) -> Result<Vec<u8>> {
        let config = text(&json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": self.created,
            "config": self.run,
            "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
            "history": [{ "created": self.created, "created_by": self.by }],
        }));
        let manifest = text(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", &layer)],
        }));
        let named: Vec<Value> = self
            .names
            .iter()
            .map(|name| self.named(name, &manifest))
            .collect();
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": named,
        });
        let older = json!([{
            "Config": blob(&config),
            "RepoTags": self.names,
            "Layers": [blob(&layer)],
        }]);
        let mut archive = Archive::new(self.time);
        archive.directory("blobs", 0o755, 0);
        archive.directory("blobs/sha256", 0o755, 0);
        for part in [config, manifest, layer] {
            archive.file(&blob(&part), 0o644, part);
        }
        archive.file("index.json", 0o644, text(&index));
        archive.file("manifest.json", 0o644, text(&older));
        archive.file("oci-layout", 0o644, r#"{"imageLayoutVersion":"1.0.0"}"#);
        archive.finish()
    }

    /// How the index tells one name of the image.
    fn named(&self, name: &str, manifest: &[u8]) -> Value {
        let (path, tag) = name.rsplit_once(':').unwrap_or((name, "latest"));
        let registry = path
            .split_once('/')
            .is_some_and(|(host, _)| host.contains('.'));
        let library = if registry { "" } else { "docker.io/library/" };
        let mut named = descriptor("application/vnd.oci.image.manifest.v1+json", manifest);
        named["platform"] = json!({ "architecture": self.architecture, "os": "linux" });
        named["annotations"] = json!({
            "org.opencontainers.image.ref.name": tag,
            "io.containerd.image.name": format!("{library}{name}"),
        });
        named
    }
}

/// A processor that Rust names so, as images call it.
pub(crate) fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// How one part names another.
fn descriptor(kind: &str, part: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": digest(part), "size": part.len() })
}

fn digest(part: &[u8]) -> String {
    format!("sha256:{}", sha256(part))
}

/// Where a part lies in the archive.
fn blob(part: &[u8]) -> String {
    format!("blobs/sha256/{}", sha256(part))
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Reads archives again, for tests.
#[cfg(test)]
pub(crate) mod reading {
    use crate::digest::sha256;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    /// The entries of an archive: path, mode, owner and content.
    pub(crate) fn entries(archive: &[u8]) -> BTreeMap<String, (String, u64, Vec<u8>)> {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.trim_end_matches('\0').to_owned()
        };
        let number = |bytes: &[u8]| u64::from_str_radix(&text(bytes), 8).unwrap();
        let mut found = BTreeMap::new();
        let mut rest = archive;
        while rest[0] != 0 {
            let size = usize::try_from(number(&rest[124..136])).unwrap();
            let entry = (
                text(&rest[100..108]),
                number(&rest[108..116]),
                rest[512..512 + size].to_vec(),
            );
            found.insert(text(&rest[..100]), entry);
            rest = &rest[512 + size.next_multiple_of(512)..];
        }
        found
    }

    /// Follows a descriptor, and checks that it tells the truth.
    pub(crate) fn follow(archive: &[u8], descriptor: &Value) -> Vec<u8> {
        let digest = descriptor["digest"].as_str().unwrap();
        let path = format!("blobs/{}", digest.replace(':', "/"));
        let (_, _, content) = &entries(archive)[&path];
        assert_eq!(format!("sha256:{}", sha256(content)), digest);
        assert_eq!(descriptor["size"], json!(content.len()));
        content.clone()
    }

    pub(crate) fn read(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;
    use super::reading::{entries, follow, read};
    use serde_json::{Value, json};

    fn pack(names: &[&str], layer: &[u8]) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let layout = Layout {
            names: &names,
            architecture: "amd64",
            time: 0,
            created: "1970-01-01T00:00:00Z",
            by: "a test",
            run: &json!({ "Entrypoint": ["/pause"] }),
        };
        layout.pack(layer.to_vec()).unwrap()
    }

    #[test]
    fn every_name_leads_to_the_same_image() {
        let archive = pack(&["registry.k8s.io/pause:3.10", "echo:1"], b"layer");
        let index = read(&entries(&archive)["index.json"].2);
        let manifests = index["manifests"].as_array().unwrap();
        let told = |key: &str| -> Vec<Value> {
            let annotations = manifests.iter().map(|named| &named["annotations"][key]);
            annotations.cloned().collect()
        };
        assert_eq!(
            told("io.containerd.image.name"),
            ["registry.k8s.io/pause:3.10", "docker.io/library/echo:1"]
        );
        assert_eq!(told("org.opencontainers.image.ref.name"), ["3.10", "1"]);
        for named in manifests {
            let manifest = read(&follow(&archive, named));
            let config = read(&follow(&archive, &manifest["config"]));
            assert_eq!(config["config"]["Entrypoint"], json!(["/pause"]));
            assert_eq!(follow(&archive, &manifest["layers"][0]), b"layer");
        }
    }

    #[test]
    fn the_same_layer_gives_the_same_bytes_and_another_does_not() {
        assert_eq!(pack(&["a:1"], b"layer"), pack(&["a:1"], b"layer"));
        assert_ne!(pack(&["a:1"], b"layer"), pack(&["a:1"], b"other"));
        assert_ne!(pack(&["a:1"], b"layer"), pack(&["a:2"], b"layer"));
    }
}
