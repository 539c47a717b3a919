//! Reads a growing file line by line, from where somebody else left off.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use super::LINE_BYTES_MAX;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Reads one stream of a script.
pub(super) struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// How far it was read.
    offset: u64,
    /// What belongs to a line that has not ended.
    line: Vec<u8>,
    /// How many lines are still to be passed over.
    known: u64,
}

impl Tail {
    /// Of lines that are known already nobody is told.
    pub(super) const fn new(path: PathBuf, known: u64) -> Self {
        Self {
            path,
            file: None,
            offset: 0,
            line: Vec::new(),
            known,
        }
    }

    /// Tells of what has come, a piece of it; answers whether there was any.
    pub(super) fn read(&mut self, tell: &mut dyn FnMut(&str)) -> io::Result<bool> {
        let file = match &mut self.file {
            Some(file) => file,
            None => match File::open(&self.path) {
                Ok(file) => self.file.insert(file),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(cause) => return Err(cause),
            },
        };
        // Most looks find nothing, and are to cost nothing.
        if file.metadata()?.len() <= self.offset {
            return Ok(false);
        }
        let mut piece = vec![0; PIECE];
        let len = file.read(&mut piece)?;
        self.offset += u64::try_from(len).unwrap_or_default();
        let mut rest = &piece[..len];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            self.finish(tell);
            rest = &rest[end + 1..];
        }
        // The runner writes no longer lines; whoever else did is not to fill our memory.
        if self.line.len() <= 2 * LINE_BYTES_MAX {
            self.line.extend_from_slice(rest);
        }
        Ok(len > 0)
    }

    /// Tells of what is left of a line whose writer died.
    pub(super) fn close(&mut self, tell: &mut dyn FnMut(&str)) {
        if !self.line.is_empty() {
            self.finish(tell);
        }
    }

    fn finish(&mut self, tell: &mut dyn FnMut(&str)) {
        if self.known > 0 {
            self.known -= 1;
        } else {
            tell(&crate::output::legible(&self.line));
        }
        self.line.clear();
    }
}
