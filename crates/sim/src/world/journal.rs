//! The world's memory on disk: one line per effect, so that it survives whoever works in it.
//!
//! The world stands for the outside: it does not forget when a server is killed, and it is
//! the same for every server and worker on the machine. Each of them has read the file up to
//! some point. Before a look or an effect it takes the lock and reads what others have added
//! since; an effect is then added with one call, and counts from that moment. Whole lines
//! never change, so that most of a long file can be read without the lock.
//!
//! The operating system keeps a line however the process ends. It is not synced to the disk:
//! when the machine loses its power, so does the simulated world. Half a line is what a
//! killed writer leaves; it never counted, and the next who adds to the file cuts it off.

use super::effect::Effect;
use super::error::Error;
use super::lock::{Held, Lock, Share};
use super::state::State;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From how many bytes of effects on a file is written anew when it is opened.
pub(crate) const COMPACT_FROM: u64 = 1 << 20;

/// How many bytes are read while the lock is held; more are read without it.
const NEAR: u64 = 16 << 10;

/// How many bytes are looked at in one go to find the end of the last whole line.
const CHUNK: usize = 4 << 10;

/// One line of the file, as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// Everything there was when the file was begun.
    State(Box<State>),
    /// One thing that happened.
    Effect(Timestamp, Effect),
}

/// One line of the file, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Written<'a> {
    State(&'a State),
    Effect(Timestamp, &'a Effect),
}

/// The open file, and how far it was read.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    lock: Lock,
    file: File,
    /// Which file it is: another one can take its place under the same path.
    identity: (u64, u64),
    /// How much of the file was read. It ends with a whole line.
    offset: u64,
    /// How many lines that are.
    lines: usize,
    /// How much of it is the state that the file was begun with.
    base: u64,
    /// The last change that took effect in our memory because its time had come, before
    /// anything later was read from the file.
    ahead: Option<Timestamp>,
}

/// What reading led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// Our memory is what the file says.
    Whole,
    /// Our memory was of no use, and has to be read anew from the beginning.
    Anew,
}

impl Journal {
    /// Reads the world as it is, and writes its file anew when that spares the next reader
    /// more than `compact_from` bytes.
    pub(crate) fn open(
        path: &Path,
        compact_from: u64,
        patience: Duration,
    ) -> Result<(Self, State), Error> {
        let lock = Lock::beside(path)?;
        let (file, identity) = opened(path, true)?;
        let mut journal = Self {
            path: path.to_owned(),
            lock,
            file,
            identity,
            offset: 0,
            lines: 0,
            base: 0,
            ahead: None,
        };
        let mut state = State::default();
        let held = journal.catch_up(&mut state, Share::Act, patience)?;
        if journal.offset - journal.base > compact_from.max(journal.base)
            && let Err(error) = journal.compact(&state)
        {
            // The old file is still there, and is only longer than it could be.
            tracing::warn!(%error, "could not shorten the simulated world: {error}");
        }
        drop(held);
        Ok((journal, state))
    }

    /// Takes the lock and reads what others have added.
    ///
    /// While it is held, whatever the file says happened before now, and whatever it will
    /// say happens after: the clock is to be read only then.
    pub(crate) fn catch_up(
        &mut self,
        state: &mut State,
        share: Share,
        patience: Duration,
    ) -> Result<Held, Error> {
        loop {
            let held = self.lock.take(share, patience)?;
            let there = std::fs::metadata(&self.path).map_err(|cause| self.unread(cause))?;
            let replaced = self.identity != identity(&there);
            if !replaced && there.len() == self.offset {
                return Ok(held);
            }
            if replaced {
                (self.file, self.identity) = opened(&self.path, false)?;
            }
            if replaced || there.len() < self.offset {
                self.forget(state);
            }
            let whole = self
                .whole(there.len())
                .map_err(|cause| self.unread(cause))?;
            if whole - self.offset > NEAR {
                drop(held);
                self.read(whole, state)?;
                continue;
            }
            if self.read(whole, state)? == Read::Anew {
                continue;
            }
            if share == Share::Act && whole < there.len() {
                let cut = self.file.set_len(whole);
                cut.map_err(|cause| self.unwritten(cause))?;
            }
            return Ok(held);
        }
    }

    /// Writes one effect; it counts when this has worked. The lock must be held to act.
    pub(crate) fn append(&mut self, at: Timestamp, effect: &Effect) -> Result<(), Error> {
        let text = encode(&Written::Effect(at, effect)).map_err(|cause| self.unwritten(cause))?;
        match self.file.write(&text) {
            Ok(len) if len == text.len() => {
                self.offset += size(len);
                self.lines += 1;
                self.ahead = None;
                Ok(())
            }
            Ok(_) => {
                // The disk is full: half a line must not stay in front of the next one.
                let cut = self.file.set_len(self.offset);
                let full = cut.err().unwrap_or(io::ErrorKind::StorageFull.into());
                Err(self.unwritten(full))
            }
            Err(cause) => Err(self.unwritten(cause)),
        }
    }

    /// Notes that changes took effect in our memory because their time had come.
    pub(crate) fn went_ahead(&mut self, until: Option<Timestamp>) {
        self.ahead = self.ahead.max(until);
    }

    /// The time at which something can happen: never before what has taken effect for us,
    /// even when somebody has set the clock back.
    pub(crate) fn not_before(&self, now: Timestamp) -> Timestamp {
        self.ahead.map_or(now, |ahead| ahead.max(now))
    }

    /// Begins the file anew with the state alone. The lock must be held to act, and the
    /// state must be what the file says.
    fn compact(&mut self, state: &State) -> io::Result<()> {
        // Whatever happens in between, either the old file or the new one is there, whole.
        // Others find a file with another identity, and read it from its beginning.
        let draft = self.path.with_extension("new");
        let text = encode(&Written::State(state))?;
        std::fs::write(&draft, &text)?;
        let file = options().open(&draft)?;
        let identity = identity(&file.metadata()?);
        std::fs::rename(&draft, &self.path)?;
        (self.file, self.identity) = (file, identity);
        self.offset = size(text.len());
        self.base = self.offset;
        self.lines = 1;
        Ok(())
    }

    /// Reads and applies the lines up to `end`, where a whole line must end.
    fn read(&mut self, end: u64, state: &mut State) -> Result<Read, Error> {
        let len = usize::try_from(end - self.offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        let got = self.file.read_exact_at(&mut bytes, self.offset);
        got.map_err(|cause| self.unread(cause))?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::State(known)) => {
                    *state = *known;
                    state.reindex();
                    self.base = size(line.len());
                }
                // We let something take effect that should have found this in its way:
                // only a clock that was set back does that.
                Ok(Line::Effect(at, _)) if self.ahead.is_some_and(|ahead| at < ahead) => {
                    self.forget(state);
                    return Ok(Read::Anew);
                }
                Ok(Line::Effect(at, effect)) => state.take(at, effect),
                Err(cause) => {
                    return Err(Error::Line {
                        path: self.path.clone(),
                        line: self.lines + 1,
                        cause,
                    });
                }
            }
            self.ahead = None;
            self.offset += size(line.len());
            self.lines += 1;
        }
        Ok(Read::Whole)
    }

    /// Where the last whole line ends that we have not read, among the first `len` bytes.
    fn whole(&self, len: u64) -> io::Result<u64> {
        let mut chunk = [0; CHUNK];
        let mut end = len;
        while end > self.offset {
            let start = end.saturating_sub(size(CHUNK)).max(self.offset);
            let wanted = usize::try_from(end - start).unwrap_or(CHUNK);
            let part = &mut chunk[..wanted];
            self.file.read_exact_at(part, start)?;
            if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
                return Ok(start + size(at) + 1);
            }
            end = start;
        }
        Ok(self.offset)
    }

    fn forget(&mut self, state: &mut State) {
        *state = State::default();
        (self.offset, self.lines, self.base) = (0, 0, 0);
        self.ahead = None;
    }

    fn unread(&self, cause: io::Error) -> Error {
        Error::Open {
            path: self.path.clone(),
            cause,
        }
    }

    fn unwritten(&self, cause: io::Error) -> Error {
        Error::Write {
            path: self.path.clone(),
            cause,
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    options
}

fn opened(path: &Path, create: bool) -> Result<(File, (u64, u64)), Error> {
    let file = options().create(create).open(path);
    let opened = file.and_then(|file| {
        let identity = identity(&file.metadata()?);
        Ok((file, identity))
    });
    opened.map_err(|cause| Error::Open {
        path: path.to_owned(),
        cause,
    })
}

/// Which file it is. A number is not given to another file as long as we have this one open.
fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn size(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

fn encode(line: &Written<'_>) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: &[u8]) -> Result<(), String> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = directory.path().join("world.jsonl");
        std::fs::write(&path, bytes).map_err(|error| error.to_string())?;
        match Journal::open(&path, COMPACT_FROM, Duration::ZERO) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.code().to_owned()),
        }
    }

    #[test]
    fn a_last_line_that_was_cut_off_never_counted_whatever_its_bytes() -> io::Result<()> {
        let whole = encode(&Written::State(&State::default()))?;
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
