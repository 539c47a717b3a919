//! Packs the program into an image that container engines load.

use anyhow::Result;
use serde_json::json;

use super::time::rfc3339;
use crate::oci::tar::Archive;
use crate::oci::{self, Layout};

/// Who the program is in the container: nobody in particular, as the images of others have it.
const USER: u32 = 65_532;

/// Who is known in the container.
const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\n\
    slipway:x:65532:65532:slipway:/data:/sbin/nologin\n";

/// Their groups.
const GROUP: &str = "root:x:0:\nslipway:x:65532:\n";

/// Where names are looked up; the program has nothing else built in.
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// What the image is made of.
pub(super) struct Image<'a> {
    /// The version of the program.
    pub(super) version: &'a str,
    /// The processor, as Rust calls it.
    pub(super) architecture: &'a str,
    /// The commit it was built from, when it is exactly that.
    pub(super) revision: Option<&'a str>,
    /// The time of everything in it, in seconds since 1970.
    pub(super) time: u64,
    /// The program.
    pub(super) program: &'a [u8],
}

impl Image<'_> {
    /// The archive.
    pub(super) fn pack(&self) -> Result<Vec<u8>> {
        let created = rfc3339(self.time);
        let layout = Layout {
            names: &[format!("slipway:{}", self.version)],
            architecture: oci::architecture(self.architecture),
            time: self.time,
            created: &created,
            by: "cargo xtask release",
            run: &self.run(&created),
        };
        layout.pack(self.layer()?)
    }

    /// The one layer: the program and the little that it needs around itself.
    fn layer(&self) -> Result<Vec<u8>> {
        let mut layer = Archive::new(self.time);
        layer.directory("data", 0o700, USER);
        layer.directory("etc", 0o755, 0);
        layer.directory("tmp", 0o1777, 0);
        layer.file("etc/group", 0o644, GROUP);
        layer.file("etc/nsswitch.conf", 0o644, NSSWITCH);
        layer.file("etc/passwd", 0o644, PASSWD);
        layer.file("slipway", 0o755, self.program);
        layer.finish()
    }

    /// How the image is run.
    fn run(&self, created: &str) -> serde_json::Value {
        let mut labels = json!({
            "org.opencontainers.image.created": created,
            "org.opencontainers.image.description": "Builds Kubernetes and looks after it for life",
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.title": "slipway",
            "org.opencontainers.image.version": self.version,
        });
        if let Some(revision) = self.revision {
            labels["org.opencontainers.image.revision"] = json!(revision);
        }
        json!({
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": { "7077/tcp": {} },
            "Env": ["SLIPWAY_DATA=/data"],
            "Entrypoint": ["/slipway"],
            "Cmd": ["serve", "--listen", "0.0.0.0:7077", "--data-dir", "/data"],
            "Volumes": { "/data": {} },
            "WorkingDir": "/data",
            "Labels": labels,
            "StopSignal": "SIGTERM",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Image;
    use crate::oci::reading::{entries, follow, read};
    use serde_json::json;

    fn pack(program: &[u8], time: u64) -> Vec<u8> {
        let image = Image {
            version: "1.2.3",
            architecture: "x86_64",
            revision: Some("abc"),
            time,
            program,
        };
        image.pack().unwrap()
    }

    #[test]
    fn every_digest_leads_to_its_bytes() {
        let archive = pack(b"program", 0);
        let top = entries(&archive);
        assert_eq!(
            read(&top["oci-layout"].2),
            json!({ "imageLayoutVersion": "1.0.0" })
        );
        let index = read(&top["index.json"].2);
        let manifest = read(&follow(&archive, &index["manifests"][0]));
        let config = read(&follow(&archive, &manifest["config"]));
        let layer = follow(&archive, &manifest["layers"][0]);
        assert_eq!(
            config["rootfs"]["diff_ids"],
            json!([manifest["layers"][0]["digest"]])
        );
        let older = read(&top["manifest.json"].2);
        assert_eq!(top[older[0]["Layers"][0].as_str().unwrap()].2, layer);
        assert!(top.contains_key(older[0]["Config"].as_str().unwrap()));
    }

    #[test]
    fn the_layer_is_the_program_and_a_place_for_its_data() {
        let archive = pack(b"program", 0);
        let index = read(&entries(&archive)["index.json"].2);
        let manifest = read(&follow(&archive, &index["manifests"][0]));
        let layer = entries(&follow(&archive, &manifest["layers"][0]));
        assert_eq!(layer["slipway"].2, b"program");
        let shown: Vec<String> = layer
            .iter()
            .map(|(path, (mode, owner, _))| format!("{path} {mode} {owner}"))
            .collect();
        assert_eq!(
            shown,
            [
                "data/ 0000700 65532",
                "etc/ 0000755 0",
                "etc/group 0000644 0",
                "etc/nsswitch.conf 0000644 0",
                "etc/passwd 0000644 0",
                "slipway 0000755 0",
                "tmp/ 0001777 0",
            ]
        );
    }

    #[test]
    fn it_serves_on_every_address_as_nobody_in_particular() {
        let archive = pack(b"program", 86_400);
        let index = read(&entries(&archive)["index.json"].2);
        let manifest = read(&follow(&archive, &index["manifests"][0]));
        let config = read(&follow(&archive, &manifest["config"]));
        assert_eq!(config["architecture"], "amd64");
        assert_eq!(config["created"], "1970-01-02T00:00:00Z");
        let run = &config["config"];
        assert_eq!(run["User"], "65532:65532");
        assert_eq!(run["Entrypoint"], json!(["/slipway"]));
        assert_eq!(
            run["Cmd"],
            json!(["serve", "--listen", "0.0.0.0:7077", "--data-dir", "/data"])
        );
        assert_eq!(run["Volumes"], json!({ "/data": {} }));
        assert_eq!(run["Labels"]["org.opencontainers.image.revision"], "abc");
    }

    #[test]
    fn the_same_program_gives_the_same_bytes_and_another_does_not() {
        assert_eq!(pack(b"program", 7), pack(b"program", 7));
        assert_ne!(pack(b"program", 7), pack(b"another", 7));
        assert_ne!(pack(b"program", 7), pack(b"program", 8));
    }
}
