//! A whole installation in one file, as the server hands it out.
//!
//! The file is lines of JSON and ends with one that counts its rows and has a digest of all
//! that went before. A file without that line was cut off, whatever else it holds.

use serde::Deserialize;

/// The content type of a backup: one JSON value per line.
pub const MEDIA_TYPE: &str = "application/x-ndjson";

/// More than the last line has: a number and a digest.
const TAIL_BYTES: usize = 256;

/// Watches a backup go by, and knows whether its last line was there.
#[derive(Debug, Default)]
pub struct Ending {
    tail: Vec<u8>,
}

/// The last line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Last {
    rows: u64,
    sha256: String,
}

impl Ending {
    /// Sees the next bytes.
    pub fn see(&mut self, piece: &[u8]) {
        let new = piece.len().saturating_sub(TAIL_BYTES);
        self.tail
            .extend_from_slice(piece.get(new..).unwrap_or_default());
        let old = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..old);
    }

    /// How many rows the backup has, if what was seen is whole.
    pub fn rows(&self) -> Option<u64> {
        let lines = self.tail.strip_suffix(b"\n")?;
        let last = lines.rsplit(|byte| *byte == b'\n').next()?;
        let Last { rows, sha256 } = serde_json::from_slice(last).ok()?;
        (sha256.len() == 64).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pieces: &[&str]) -> Option<u64> {
        let mut ending = Ending::default();
        for piece in pieces {
            ending.see(piece.as_bytes());
        }
        ending.rows()
    }

    #[test]
    fn only_a_whole_file_has_an_ending() {
        let digest = "0".repeat(64);
        let end = format!("{{\"rows\":7,\"sha256\":\"{digest}\"}}\n");
        let long = "x".repeat(1_000);
        assert_eq!(rows(&["[1]\n", &end]), Some(7));
        assert_eq!(rows(&[&long, "\n", &end[..10], &end[10..]]), Some(7));
        assert_eq!(rows(&[&format!("{long}\n{end}")]), Some(7));
        for cut in [0, 1, 10, end.len() - 1] {
            assert_eq!(rows(&["[1]\n", &end[..cut]]), None, "{cut}");
        }
        assert_eq!(rows(&[&end, "[1]\n"]), None);
    }
}
