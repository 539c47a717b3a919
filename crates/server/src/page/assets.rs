//! Style, scripts and icon: part of the program, named after what they hold.
//!
//! The name of an asset has a digest of its contents, so browsers may keep it for ever
//! and a new version of the program still shows its own.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use crate::problem::Problem;

/// A year: what is named after its contents never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Digits of the digest in a name: enough to tell one version from the next.
const DIGEST_BYTES: usize = 6;

struct Asset {
    path: String,
    kind: &'static str,
    text: &'static str,
}

impl Asset {
    fn new(stem: &str, ending: &str, kind: &'static str, text: &'static str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let digest = crate::hex(digest.get(..DIGEST_BYTES).unwrap_or_default());
        Self {
            path: format!("/assets/{stem}-{digest}.{ending}"),
            kind,
            text,
        }
    }
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "page",
        "css",
        "text/css; charset=utf-8",
        include_str!("../../assets/page.css"),
    )
});

static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "page",
        "js",
        "text/javascript; charset=utf-8",
        include_str!("../../assets/page.js"),
    )
});

static LOG_SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "log",
        "js",
        "text/javascript; charset=utf-8",
        include_str!("../../assets/log.js"),
    )
});

static ICON: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "icon",
        "svg",
        "image/svg+xml",
        include_str!("../../assets/icon.svg"),
    )
});

/// Where the style is.
pub(super) fn style() -> &'static str {
    &STYLE.path
}

/// Where the script is.
pub(super) fn script() -> &'static str {
    &SCRIPT.path
}

/// Where the script of a page with a log is.
pub(super) fn log_script() -> &'static str {
    &LOG_SCRIPT.path
}

/// Where the icon is.
pub(super) fn icon() -> &'static str {
    &ICON.path
}

/// Serves an asset by its full name; an old name is gone.
pub(super) async fn serve(Path(name): Path<String>) -> Result<Response, Problem> {
    let path = format!("/assets/{name}");
    let asset = [&STYLE, &SCRIPT, &LOG_SCRIPT, &ICON]
        .into_iter()
        .find(|asset| asset.path == path);
    let asset = asset.ok_or_else(|| Problem::no_route(&path))?;
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, FOR_EVER),
    ];
    Ok((headers, asset.text).into_response())
}
