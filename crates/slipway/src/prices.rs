//! Prices of one's own, read once at the start from the file that `slipway serve --prices` names.

use crate::failure::Failure;
use anyhow::Context as _;
use model::source::{self, BYTES_MAX};
use server::Prices;
use std::io::Read as _;
use std::path::Path;

/// Those that everybody has, and before them those of the file.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Prices> {
    let usual = Prices::usual();
    let Some(file) = file else { return Ok(usual) };
    let refused = |why: &str| Failure {
        what: format!("cannot use the prices in {}{why}", file.display()),
        code: "SERVE-011",
        hint: "name a file in YAML or JSON with `asOf` and lists of `machines` and `disks`; \
               docs/plans.md shows one"
            .to_owned(),
    };
    let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX);
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_string(&mut text))
        .with_context(|| refused(""))?;
    let document = source::parse(&text).map_err(|error| refused(&format!(": {error}")))?;
    let own = Prices::admit(&document);
    let own = own.map_err(|faults| refused(&format!(": {}", faults.join("; "))))?;
    Ok(usual.extended(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a file with this in it.
    fn said(text: &str) -> String {
        let file = tempfile::NamedTempFile::new();
        let read = file.map_err(anyhow::Error::from).and_then(|file| {
            std::fs::write(file.path(), text)?;
            let prices = read(Some(file.path()));
            let said = prices.map(|prices| prices.as_of).map_err(|error| {
                let said = format!("{error:#}");
                anyhow::anyhow!(said.replace(&file.path().display().to_string(), "FILE"))
            });
            Ok(said.unwrap_or_else(|error| error.to_string()))
        });
        read.unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn a_file_counts_before_what_everybody_has_and_a_wrong_one_is_refused_whole() {
        assert_eq!(said("asOf: spring"), "spring");
        assert_eq!(said(r#"{"asOf": "spring", "machines": []}"#), "spring");
        assert_eq!(
            said("machines: [{provider: aws, serverType: t3.large, cents: 1}]"),
            "cannot use the prices in FILE: asOf: found nothing, allowed: a text of 1 to 100 characters"
        );
        assert!(said("a: [").starts_with("cannot use the prices in FILE: document cannot be read"));
        let missing = read(Some(Path::new("/no/such/file")));
        let missing = missing.map_or_else(|error| format!("{error:#}"), |_| String::new());
        assert_eq!(
            missing,
            "cannot use the prices in /no/such/file: No such file or directory (os error 2)"
        );
    }
}
