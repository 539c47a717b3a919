//! The images that a cluster runs, each a program or three in an archive.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::oci::tar::Archive;
use crate::oci::{self, Layout};

/// The time of everything, so that the same programs give the same bytes.
const TIME: u64 = 0;
/// The same time, for people.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// Where programs are looked for in a container.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What does the work behind all the names of iptables.
const IPTABLES: &str = "/usr/sbin/xtables-nft-multi";
/// The names that kube-proxy calls it by.
const CALLED: &[&str] = &[
    "ip6tables",
    "ip6tables-restore",
    "ip6tables-save",
    "iptables",
    "iptables-restore",
    "iptables-save",
];
/// What kube-proxy runs in its other mode.
const NFT: &str = "/usr/sbin/nft";

/// An image that is being put together.
pub(crate) struct Image {
    layer: Archive,
    run: Value,
}

impl Image {
    /// An image that begins with the first of these programs.
    ///
    /// They are at paths as upstream has them, because kubeadm's manifests name some.
    pub(crate) fn new(programs: &[(&Path, &str)]) -> Result<Self> {
        let (_, first) = programs.first().context("an image has a program")?;
        let mut image = Self {
            layer: Archive::new(TIME),
            run: json!({ "Entrypoint": [format!("/{first}")], "Env": [PATH] }),
        };
        image.layer.directory("tmp", 0o1777, 0);
        image.text("etc/passwd", "root:x:0:0:root:/:/sbin/nologin\n");
        image.text("etc/group", "root:x:0:\n");
        for (program, path) in programs {
            image.program(program, path)?;
        }
        Ok(image)
    }

    /// Says who runs it, by number.
    pub(crate) fn user(mut self, user: u32) -> Self {
        self.run["User"] = json!(format!("{user}:{user}"));
        self
    }

    /// Adds the programs that kube-proxy tells the kernel with, as this machine has them.
    pub(crate) fn with_packet_filter(mut self) -> Result<Self> {
        let (iptables, nft) = (Path::new(IPTABLES), Path::new(NFT));
        let mut files = BTreeSet::from([iptables.to_owned(), nft.to_owned()]);
        let libraries = libraries(&[iptables, nft])?;
        let extensions = extensions(&libraries)?;
        let paths: Vec<&Path> = extensions.iter().map(PathBuf::as_path).collect();
        files.extend(self::libraries(&paths)?);
        files.extend(libraries);
        files.extend(extensions);
        for file in &files {
            let place = file.to_string_lossy();
            self.program(file, place.trim_start_matches('/'))?;
        }
        for name in CALLED {
            self.layer
                .link(&format!("usr/sbin/{name}"), "xtables-nft-multi");
        }
        Ok(self)
    }

    /// The archive of the image under these names.
    pub(crate) fn pack(self, names: &[String]) -> Result<Vec<u8>> {
        let layout = Layout {
            names,
            architecture: oci::architecture(std::env::consts::ARCH),
            time: TIME,
            created: CREATED,
            by: "cargo xtask kubernetes",
            run: &self.run,
        };
        layout.pack(self.layer.finish()?)
    }

    fn program(&mut self, from: &Path, path: &str) -> Result<()> {
        let content =
            fs::read(from).with_context(|| format!("could not read {}", from.display()))?;
        self.above(path);
        self.layer.file(path, 0o755, content);
        Ok(())
    }

    fn text(&mut self, path: &str, text: &str) {
        self.above(path);
        self.layer.file(path, 0o644, text);
    }

    /// Adds the directories above a path.
    fn above(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            self.layer.directory(&path[..at], 0o755, 0);
        }
    }
}

/// The libraries that programs are linked with, as the machine's own linker finds them.
fn libraries(programs: &[&Path]) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("ldd").args(programs).output();
    let output = output.context("could not start ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && !text.contains("not found"),
        "iptables and nftables must be installed, with their libraries: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(linked(&text))
}

/// Reads what ldd prints; what the kernel brings has no path.
fn linked(text: &str) -> BTreeSet<PathBuf> {
    let path = |line: &str| {
        let line = line.strip_prefix('\t')?;
        let line = line.split_once("=> ").map_or(line, |(_, path)| path);
        let path = line.split_once(" (").map_or(line, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

/// The matches and targets of iptables, which it loads when a rule names them.
fn extensions(libraries: &BTreeSet<PathBuf>) -> Result<BTreeSet<PathBuf>> {
    let library = libraries
        .iter()
        .find(|path| path.to_string_lossy().contains("/libxtables.so"));
    let library = library.context("iptables is not linked with libxtables")?;
    let real = library
        .canonicalize()
        .context("could not follow libxtables")?;
    let directory = real.with_file_name("xtables");
    let unreadable = || format!("could not list {}", directory.display());
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(&directory).with_context(unreadable)? {
        found.insert(entry.with_context(unreadable)?.path());
    }
    ensure!(!found.is_empty(), "{} is empty", directory.display());
    Ok(found)
}

/// The images that kubeadm wants, by the last part of their name without the tag.
pub(crate) struct Wanted(Vec<String>);

impl Wanted {
    /// Reads what `kubeadm config images list` prints.
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text.lines().map(str::trim);
        Self(
            lines
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// The full reference of an image, and its tag.
    pub(crate) fn get(&self, name: &str) -> Result<(&str, &str)> {
        let parts = self.0.iter().filter_map(|reference| {
            let (path, tag) = reference.rsplit_once(':')?;
            path.ends_with(&format!("/{name}"))
                .then_some((reference.as_str(), tag))
        });
        let mut parts = parts;
        parts
            .next()
            .with_context(|| format!("kubeadm lists no image {name}: {:?}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::reading::{entries, follow, read};

    #[test]
    fn an_image_has_its_programs_where_upstream_has_them() {
        let program = std::env::current_exe().unwrap();
        let image = || {
            let programs = [
                (program.as_path(), "usr/local/bin/etcd"),
                (program.as_path(), "pause"),
            ];
            Image::new(&programs).unwrap().user(65_535)
        };
        let names = ["registry.k8s.io/etcd:3.6.5-0".to_owned()];
        let archive = image().pack(&names).unwrap();
        assert!(
            archive == image().pack(&names).unwrap(),
            "twice the same bytes"
        );
        let index = read(&entries(&archive)["index.json"].2);
        let manifest = read(&follow(&archive, &index["manifests"][0]));
        let run = read(&follow(&archive, &manifest["config"]));
        assert_eq!(run["config"]["Entrypoint"], json!(["/usr/local/bin/etcd"]));
        assert_eq!(run["config"]["User"], "65535:65535");
        let layer = entries(&follow(&archive, &manifest["layers"][0]));
        let paths: Vec<&str> = layer.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "etc/",
                "etc/group",
                "etc/passwd",
                "pause",
                "tmp/",
                "usr/",
                "usr/local/",
                "usr/local/bin/",
                "usr/local/bin/etcd",
            ]
        );
        assert_eq!(layer["pause"].0, "0000755");
    }

    #[test]
    fn what_the_linker_says_is_read() {
        let text = "/usr/sbin/nft:\n\tlinux-vdso.so.1 (0x00007f7be6895000)\n\
            \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f7be6585000)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f7be6897000)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(linked(text), expected.map(PathBuf::from).into());
    }

    #[test]
    fn images_are_found_by_the_end_of_their_names() {
        let wanted = Wanted::parse(
            "registry.k8s.io/coredns/coredns:v1.12.1\nregistry.k8s.io/etcd:3.6.5-0\n",
        );
        let etcd = ("registry.k8s.io/etcd:3.6.5-0", "3.6.5-0");
        assert_eq!(wanted.get("etcd").unwrap(), etcd);
        assert_eq!(wanted.get("coredns").unwrap().1, "v1.12.1");
        assert!(wanted.get("pause").is_err());
    }
}
