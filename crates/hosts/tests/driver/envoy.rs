//! Where the proxy of load balancers is found for tests.

use std::path::PathBuf;

/// A mirror that has it; where there is none, the test is skipped.
pub(crate) fn mirror(test: &str) -> Option<PathBuf> {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../tools/mirror");
    let named = std::env::var_os("SLIPWAY_MIRROR").map(PathBuf::from);
    let mirror = named.unwrap_or(target);
    if mirror.join("index.json").exists() || mirror.join("envoy").exists() {
        return Some(mirror.canonicalize().unwrap());
    }
    lab::skip(test, "there is no Envoy; `cargo xtask tools` fetches it");
    None
}
