//! What a script prints, on its way to a file: whole lines, without anything secret, and not
//! without end.

use std::fs::File;
use std::io::{self, Write as _};

use crate::output::{Redactor, legible};

use super::{LINE_BYTES_MAX, STREAM_BYTES_MAX};

/// Writes one stream of a script to its file.
pub(super) struct Stream<'a> {
    redactor: &'a Redactor,
    file: File,
    /// What belongs to a line that has not ended.
    line: Vec<u8>,
    /// How much there was of this line besides.
    cut: bool,
    written: u64,
    most: u64,
    full: bool,
}

impl<'a> Stream<'a> {
    pub(super) const fn new(file: File, redactor: &'a Redactor) -> Self {
        Self {
            redactor,
            file,
            line: Vec::new(),
            cut: false,
            written: 0,
            most: STREAM_BYTES_MAX,
            full: false,
        }
    }

    /// Takes what was printed.
    pub(super) fn take(&mut self, mut piece: &[u8]) -> io::Result<()> {
        let mut clean = Vec::new();
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            self.grow(&piece[..end]);
            self.finish(&mut clean);
            piece = &piece[end + 1..];
        }
        self.grow(piece);
        self.write(&clean)
    }

    /// Writes what is left of a line without an end.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let mut clean = Vec::new();
        if !self.line.is_empty() {
            self.finish(&mut clean);
        }
        self.write(&clean)
    }

    /// Says something of our own.
    pub(super) fn note(&mut self, text: &str) -> io::Result<()> {
        self.close()?;
        self.file.write_all(format!("slipway: {text}\n").as_bytes())
    }

    /// Adds to the line, as far as it is kept. What is secret may lie across the end of that, so
    /// there is room for one more.
    fn grow(&mut self, piece: &[u8]) {
        let most = LINE_BYTES_MAX + self.redactor.longest();
        let room = most.saturating_sub(self.line.len()).min(piece.len());
        self.line.extend_from_slice(&piece[..room]);
        self.cut |= room < piece.len();
    }

    /// The line is whole.
    fn finish(&mut self, clean: &mut Vec<u8>) {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let text = legible(line);
        let text = self.redactor.clean(&text);
        if text.len() > LINE_BYTES_MAX || self.cut {
            let text = if self.cut {
                self.redactor.before_cut(&text)
            } else {
                &text
            };
            let end = text.floor_char_boundary(LINE_BYTES_MAX.min(text.len()));
            clean.extend_from_slice(&text.as_bytes()[..end]);
            clean.extend_from_slice(" […]".as_bytes());
        } else {
            clean.extend_from_slice(text.as_bytes());
        }
        clean.push(b'\n');
        self.line.clear();
        self.cut = false;
    }

    fn write(&mut self, clean: &[u8]) -> io::Result<()> {
        if self.full || clean.is_empty() {
            return Ok(());
        }
        let room = usize::try_from(self.most - self.written).unwrap_or(usize::MAX);
        // Only whole lines are kept.
        let kept = if clean.len() <= room {
            clean
        } else {
            let end = clean[..room].iter().rposition(|byte| *byte == b'\n');
            &clean[..end.map_or(0, |end| end + 1)]
        };
        self.file.write_all(kept)?;
        self.written += u64::try_from(kept.len()).unwrap_or(u64::MAX);
        if kept.len() < clean.len() {
            self.full = true;
            let most = self.most / 1_000_000;
            self.note(&format!(
                "more than {most} MB were printed; the rest is dropped"
            ))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(secrets: &[&str], most: u64, pieces: &[&[u8]]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let redactor = Redactor::new(secrets.iter().map(|text| (*text).to_owned()));
        let mut stream = Stream::new(file.reopen().unwrap(), &redactor);
        stream.most = most;
        for piece in pieces {
            stream.take(piece).unwrap();
        }
        stream.close().unwrap();
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn lines_are_put_together_and_made_legible() {
        let pieces: [&[u8]; 3] = [b"a", b"b\r\nc\0\xff\n\nno", b" end"];
        assert_eq!(
            printed(&[], 100, &pieces),
            "ab\nc\u{fffd}\u{fffd}\n\nno end\n"
        );
    }

    #[test]
    fn a_secret_is_found_across_pieces_and_across_the_end_of_a_long_line() {
        let pieces: [&[u8]; 2] = [b"a sword", b"fish!\n"];
        assert_eq!(printed(&["swordfish"], 100, &pieces), "a ***!\n");
        let mut long = vec![b'x'; LINE_BYTES_MAX - 4];
        long.extend_from_slice(b"swordfish and more\nnext\n");
        let text = printed(&["swordfish"], 1_000_000, &[&long]);
        assert!(!text.contains("sword"), "{}", &text[LINE_BYTES_MAX - 10..]);
        assert!(text.ends_with(" […]\nnext\n"));
        // What was taken out before leaves room for a part of it.
        let mut long = b"swordfish".repeat(LINE_BYTES_MAX / 9 + 1);
        long.extend_from_slice(b"swordfish");
        let text = printed(&["swordfish"], 1_000_000, &[&long]);
        assert!(!text.contains('s'), "{}", &text[text.len() - 30..]);
    }

    #[test]
    fn what_is_too_much_is_dropped_and_told_once() {
        let pieces: [&[u8]; 3] = [b"one\ntwo\nthree\n", b"four\n", b"five"];
        let told = "slipway: more than 0 MB were printed; the rest is dropped\n";
        assert_eq!(printed(&[], 10, &pieces), format!("one\ntwo\n{told}"));
    }
}
