//! The world's memory on disk: one line per effect, so that it survives the server.
//!
//! The world stands for the outside, which does not forget when the server is killed.
//! A line is written with one call before the effect counts; the operating system keeps
//! it however the process ends. It is not synced to the disk: when the machine loses its
//! power, so does the simulated world. A last line that was cut off never counted.

use super::effect::Effect;
use super::state::State;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the journal of the world cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("could not open the simulated world at {path}")]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        cause: io::Error,
    },
    /// A line in the middle is not one of ours.
    #[error("the simulated world at {path} cannot be read: line {line}")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: usize,
        /// What the reader tripped over.
        #[source]
        cause: serde_json::Error,
    },
}

impl Error {
    /// The stable code of this error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } => "SIM-001",
            Self::Line { .. } => "SIM-002",
        }
    }

    /// What would help.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Open { .. } => "make the data directory writable, or free space on its disk",
            Self::Line { .. } => {
                "it was written by another version or damaged: use that version, or remove the \
                 file and the simulated machines with it"
            }
        }
    }
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// Everything there was when the file was begun.
    State(Box<State>),
    /// One thing that happened.
    Effect(Timestamp, Effect),
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// How much of the file counts.
    len: u64,
}

impl Journal {
    /// Reads the world as it was left, and begins the file anew with it.
    pub(crate) fn open(path: &Path) -> Result<(Self, State), Error> {
        let failed = |cause| Error::Open {
            path: path.to_owned(),
            cause,
        };
        let state = match std::fs::read(path) {
            Ok(bytes) => replay(path, &bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(failed(error)),
        };
        // Whatever happens in between, either the old file or the new one is there, whole.
        let draft = path.with_extension("new");
        let text = encode(&Line::State(Box::new(state.clone()))).map_err(failed)?;
        std::fs::write(&draft, &text).map_err(failed)?;
        std::fs::rename(&draft, path).map_err(failed)?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        Ok((Self { file, len }, state))
    }

    /// A journal on a file that somebody else opened.
    #[cfg(test)]
    pub(crate) const fn on(file: File) -> Self {
        Self { file, len: 0 }
    }

    /// Writes one effect; it counts when this has worked.
    pub(crate) fn append(&mut self, at: Timestamp, effect: &Effect) -> io::Result<()> {
        let text = encode(&Line::Effect(at, effect.clone()))?;
        let written = self.file.write(&text);
        let whole = u64::try_from(text.len()).unwrap_or(u64::MAX);
        match written {
            Ok(len) if len == text.len() => {
                self.len += whole;
                Ok(())
            }
            Ok(_) => {
                // The disk is full: half a line must not stay in front of the next one.
                self.file.set_len(self.len)?;
                Err(io::ErrorKind::StorageFull.into())
            }
            Err(error) => Err(error),
        }
    }
}

fn encode(line: &Line) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

fn replay(path: &Path, bytes: &[u8]) -> Result<State, Error> {
    let mut state = State::default();
    // Bytes, because a line that was cut off can end in the middle of a character.
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| line.ends_with(b"\n")) {
        match serde_json::from_slice(line) {
            Ok(Line::State(known)) => {
                state = *known;
                state.reindex();
            }
            Ok(Line::Effect(at, effect)) => state.take(at, effect),
            Err(cause) => {
                return Err(Error::Line {
                    path: path.to_owned(),
                    line: at + 1,
                    cause,
                });
            }
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: &[u8]) -> Result<(), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = directory.path().join("world.jsonl");
        std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
        match Journal::open(&path) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.code().to_owned()),
        }
    }

    #[test]
    fn a_last_line_that_was_cut_off_never_counted_whatever_its_bytes() -> io::Result<()> {
        let whole = encode(&Line::State(Box::default()))?;
        assert_eq!(opened(&whole), Ok(()));
        assert_eq!(
            opened(&[&whole[..], b"{\"effect\":[17,\xc3"].concat()),
            Ok(())
        );
        assert_eq!(opened(b"\xff\xfe\x00"), Ok(()));
        Ok(())
    }

    #[test]
    fn a_whole_line_that_is_not_ours_stops_the_world() {
        assert_eq!(opened(b"\xff\xfe\n"), Err("SIM-002".to_owned()));
    }
}
