//! A real Kubernetes for tests: where `cargo xtask kubernetes` put what it built.

use std::path::{Path, PathBuf};

/// The versions that the long proofs need, the one they begin with first.
pub const VERSIONS: &[&str] = &["v1.34.4", "v1.35.8"];

/// The oldest that is admitted.
pub const OLDEST: &str = "v1.33.13";

/// The newest that is admitted.
pub const NEWEST: &str = "v1.36.3";

/// The versions of the node exporter that stories install, one after the other.
pub const EXPORTERS: &[&str] = &["v1.9.1", "v1.10.2"];

/// Names a mirror to be used instead of that of the build directory.
const MIRROR: &str = "SLIPWAY_MIRROR";

/// What the image archive of the node exporter is called in mirrors.
pub const EXPORTER: &str = "node-exporter";

/// Where the mirror is, below the build directory.
const BUILT: &str = "tools/mirror";

/// The programs of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// Makes and changes clusters.
    pub kubeadm: PathBuf,
    /// Runs on every node.
    pub kubelet: PathBuf,
    /// Asks the API.
    pub kubectl: PathBuf,
}

/// The mirror that has Kubernetes, where there is one; its index lists what it has.
pub fn mirror() -> Option<PathBuf> {
    let lists = |mirror: &PathBuf| {
        let index = std::fs::read_to_string(mirror.join("index.json"));
        index.is_ok_and(|text| text.contains("\"name\":\"kubernetes/v"))
    };
    if let Some(named) = set(MIRROR) {
        return Some(named).filter(lists);
    }
    // Test programs are somewhere below the build directory.
    let program = std::env::current_exe().ok()?;
    let mut places = program.ancestors().map(|above| above.join(BUILT));
    places.find(lists)
}

/// The programs of a version, such as `v1.34.4`, where the mirror has it.
pub fn programs(version: &str) -> Option<Programs> {
    let directory = mirror()?.join("kubernetes").join(version).join(platform());
    let program = |name: &str| Some(directory.join(name)).filter(|path| path.is_file());
    Some(Programs {
        kubeadm: program("kubeadm")?,
        kubelet: program("kubelet")?,
        kubectl: program("kubectl")?,
    })
}

/// Whether the mirror has the image of a version of the node exporter.
pub fn exporter(version: &str) -> bool {
    let archive = format!(
        "addons/node-exporter/{version}/{}/images/{EXPORTER}.tar",
        platform()
    );
    mirror().is_some_and(|mirror| mirror.join(archive).is_file())
}

/// Why there is no Kubernetes to test with, for [`crate::skip`].
pub fn missing() -> String {
    if has_go() {
        "there is no Kubernetes; `cargo xtask kubernetes` builds it".to_owned()
    } else {
        "not possible here: there is no Kubernetes and no Go to build it with".to_owned()
    }
}

/// Whether what is missing could be built here.
pub(crate) fn has_go() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.join("go").is_file())
}

/// What mirrors call the machines that this one can run programs of.
pub fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "linux-arm64",
        "x86_64" => "linux-amd64",
        other => other,
    }
}

/// Where what takes long to make is kept for all clones of the repository.
pub fn cache() -> PathBuf {
    let cache = set("XDG_CACHE_HOME");
    let home = || set("HOME").map(|home| home.join(".cache"));
    let fallback = || Path::new("/var/cache").to_owned();
    let cache = cache.or_else(home).unwrap_or_else(fallback);
    cache.join("slipway/kubernetes")
}

/// A path that the environment names.
fn set(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
