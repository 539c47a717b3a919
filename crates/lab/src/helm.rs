//! A real Helm for tests: where `cargo xtask helm` put what it built.

use std::path::PathBuf;

use crate::kubernetes;

/// The versions that tests need, the one that most of them use first.
pub const VERSIONS: &[&str] = &["v4.1.4", "v3.19.5"];

/// Names a program to be used instead of the first version.
const PROGRAM: &str = "SLIPWAY_TEST_HELM";

/// Where what was built is kept, a directory for each version.
pub fn cache() -> PathBuf {
    kubernetes::cache().with_file_name("helm")
}

/// The program of a version, such as `v4.1.4`, where it was built.
pub fn program(version: &str) -> Option<PathBuf> {
    let named = std::env::var_os(PROGRAM).filter(|_| Some(&version) == VERSIONS.first());
    let built = || cache().join(version).join("programs/helm");
    let program = named.map_or_else(built, PathBuf::from);
    Some(program).filter(|program| program.is_file())
}

/// A kubectl to test with: that of the first Kubernetes that was built.
pub fn kubectl() -> Option<PathBuf> {
    let version = kubernetes::VERSIONS.first()?;
    let kept = kubernetes::cache().join(version).join("mirror/kubernetes");
    let kept = kept.join(version).join(kubernetes::platform());
    Some(kept.join("kubectl")).filter(|program| program.is_file())
}

/// Why there is no Helm to test with, for [`crate::skip`].
pub fn missing() -> String {
    if kubernetes::has_go() {
        "there is no Helm; `cargo xtask helm` builds it".to_owned()
    } else {
        "not possible here: there is no Helm and no Go to build it with".to_owned()
    }
}
