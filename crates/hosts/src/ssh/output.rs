//! What a program says, line by line: marks are kept, the rest goes to people, all of it bounded.
//!
//! A program may write more than anybody wants to read or keep. It must not be stopped by that,
//! and we must not be filled by it: what is too much is counted and dropped, the end is kept.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::{Log, frame};
use crate::program::Mark;

/// The longest line; the rest of a longer one is dropped.
const LINE: usize = 8 * 1024;
/// The most marks of one program.
const MARKS: usize = 20_000;
/// How many bytes go to people as they come; then only the last lines do, at the end.
const LIVE: usize = 1024 * 1024;
/// How many of the last lines are kept.
const TAIL: usize = 40;

/// Takes what a program writes.
pub(crate) struct Output<'a> {
    log: Log<'a>,
    stdout: Line,
    stderr: Line,
    live: usize,
    tail: VecDeque<Told>,
    seen: Seen,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Whether the frame told that the text arrived.
    pub began: bool,
    /// Whether the program told that it reads.
    pub ready: bool,
    /// The marks, in order.
    pub marks: Vec<Mark>,
    /// The last lines for people.
    pub tail: Vec<String>,
    /// Bytes that were too many.
    pub dropped: u64,
}

/// A line for people.
struct Told {
    text: String,
    live: bool,
}

/// A line that is not complete yet.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    cut: u64,
}

/// A length as a number to be counted with.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

impl Line {
    fn add(&mut self, part: &[u8]) {
        let room = LINE - self.bytes.len();
        let (kept, cut) = part.split_at(part.len().min(room));
        self.bytes.extend_from_slice(kept);
        self.cut += count(cut.len());
    }

    /// The text with everything visible that is none, and how much of it was cut.
    fn take(&mut self) -> (String, u64) {
        let text = visible(&self.bytes);
        self.bytes.clear();
        (text, std::mem::take(&mut self.cut))
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.cut == 0
    }
}

/// A line as text: what is not UTF-8 and what would move a cursor is written out.
fn visible(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut text = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() && letter != '\t' {
                text.extend(letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a text cannot fail.
            write!(text, "\\x{byte:02x}").unwrap_or_default();
        }
    }
    text
}

impl<'a> Output<'a> {
    /// Takes the output of a program; lines for people go to the log.
    pub(crate) fn new(log: Log<'a>) -> Self {
        Self {
            log,
            stdout: Line::default(),
            stderr: Line::default(),
            live: 0,
            tail: VecDeque::with_capacity(TAIL),
            seen: Seen::default(),
        }
    }

    /// Whether the program told that it reads.
    pub(super) fn ready(&self) -> bool {
        self.seen.ready
    }

    /// Takes some bytes of standard output.
    pub(crate) fn stdout(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.stdout.add(&rest[..end]);
            self.told();
            rest = &rest[end + 1..];
        }
        self.stdout.add(rest);
    }

    /// Takes some bytes of standard error, which has no marks.
    pub(crate) fn stderr(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.stderr.add(&rest[..end]);
            let (text, cut) = self.stderr.take();
            self.people(text, cut);
            rest = &rest[end + 1..];
        }
        self.stderr.add(rest);
    }

    /// A line of standard output is complete.
    fn told(&mut self) {
        let (text, cut) = self.stdout.take();
        if text == frame::BEGAN {
            self.seen.began = true;
        } else if text == frame::READY {
            self.seen.ready = true;
        } else if let Some(mark) = Mark::parse(&text) {
            self.seen.dropped += cut;
            if self.seen.marks.len() < MARKS {
                self.seen.marks.push(mark);
            } else {
                self.seen.dropped += count(text.len());
            }
        } else {
            self.people(text, cut);
        }
    }

    fn people(&mut self, text: String, cut: u64) {
        self.seen.dropped += cut;
        let live = self.live < LIVE;
        if live {
            self.live += text.len() + 1;
            (self.log)(&text);
        }
        if self.tail.len() == TAIL
            && let Some(old) = self.tail.pop_front()
            && !old.live
        {
            self.seen.dropped += count(old.text.len());
        }
        self.tail.push_back(Told { text, live });
    }

    /// Nothing more comes.
    pub(crate) fn finish(mut self) -> Seen {
        if !self.stdout.is_empty() {
            self.told();
        }
        if !self.stderr.is_empty() {
            let (text, cut) = self.stderr.take();
            self.people(text, cut);
        }
        let late: Vec<&Told> = self.tail.iter().filter(|told| !told.live).collect();
        if !late.is_empty() {
            let dropped = self.seen.dropped;
            (self.log)(&format!(
                "({dropped} bytes of output left out; it ends with:)"
            ));
            for told in late {
                (self.log)(&told.text);
            }
        }
        self.seen.tail = self.tail.into_iter().map(|told| told.text).collect();
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn told(pieces: &[&[u8]]) -> (Seen, Vec<String>) {
        let lines = Mutex::new(Vec::new());
        let log = |line: &str| lines.lock().unwrap().push(line.to_owned());
        let mut output = Output::new(&log);
        for piece in pieces {
            output.stdout(piece);
        }
        let seen = output.finish();
        (seen, lines.into_inner().unwrap())
    }

    #[test]
    fn lines_are_put_together_from_whatever_pieces_come() {
        let (seen, lines) = told(&[
            b"::slip",
            b"way began\n::slipway changed a",
            b" b\nhe",
            b"llo",
        ]);
        assert!(seen.began);
        assert_eq!(seen.marks, [Mark::Changed("a b".to_owned())]);
        assert_eq!(lines, ["hello"]);
        assert_eq!(seen.tail, ["hello"]);
    }

    #[test]
    fn what_is_not_text_is_written_out() {
        let (_, lines) = told(&[b"a\xff\xc3\xa4\x1b[2J\tz\r\n"]);
        assert_eq!(lines, ["a\\xff\u{e4}\\u{1b}[2J\tz"]);
    }

    #[test]
    fn a_line_is_cut_and_the_rest_is_counted() {
        let long = vec![b'x'; LINE + 5];
        let (seen, lines) = told(&[&long[..100], &long[100..], b"\nnext\n"]);
        assert_eq!(lines, ["x".repeat(LINE), "next".to_owned()]);
        assert_eq!(seen.dropped, 5);
    }

    #[test]
    fn too_many_lines_are_counted_and_the_last_ones_are_kept() {
        let line = format!("{}\n", "y".repeat(1023));
        let block = line.repeat(1024);
        let (seen, lines) = told(&[block.as_bytes(), block.as_bytes(), b"last\n"]);
        assert_eq!(lines.last().map(String::as_str), Some("last"));
        assert_eq!(lines.len(), 1024 + 1 + TAIL);
        assert_eq!(seen.dropped, 1023 * (1024 - count(TAIL) + 1));
        assert_eq!(seen.tail.len(), TAIL);
    }

    #[test]
    fn too_many_marks_are_counted() {
        let marks = "::slipway changed x\n".repeat(MARKS + 2);
        let (seen, lines) = told(&[marks.as_bytes()]);
        assert_eq!(seen.marks.len(), MARKS);
        assert_eq!(seen.dropped, 2 * count("::slipway changed x".len()));
        assert!(lines.is_empty());
    }
}
