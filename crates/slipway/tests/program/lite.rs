//! What tests need that have hosts of the sandbox: Envoy, root, and a root filesystem.

use hosts::sandbox::{Level, Means, default_cache, ensure_rootfs, means};
use std::path::PathBuf;

/// A mirror that has Envoy, where there is one.
pub(crate) fn mirror() -> Option<PathBuf> {
    let mirror = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools/mirror");
    mirror.join("index.json").exists().then_some(mirror)
}

/// Whether a test with hosts can run, else it is skipped; answers the hosts' root filesystem.
pub(crate) fn possible(test: &str) -> Option<PathBuf> {
    if mirror().is_none() {
        lab::skip(test, "there is no Envoy; `cargo xtask tools` fetches it");
        return None;
    }
    let means = means();
    if !matches!(means, Ok(Means::Here)) {
        lab::skip(test, "not possible here: hosts need root");
        return None;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // Where tests have their hosts there is no network to build it from.
    let told = |line: &str| println!("{line}");
    let built = runtime.block_on(ensure_rootfs(Level::Lite, &default_cache(), &told));
    Some(built.unwrap())
}
