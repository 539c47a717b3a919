//! Reads a stream of server-sent events, in whatever pieces the network hands over.
//!
//! The parser holds one line and one message at most, and both are bounded: a peer that
//! never ends its line costs a fixed amount of memory. What is too long is dropped and
//! said to be, because whoever listens should then look for itself.

/// The longest line that is kept. Our own events are a few hundred bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The most data one message may carry over all its lines.
const DATA_BYTES_MAX: usize = 256 * 1024;

/// One message, or the knowledge that there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message {
        /// The id in force, to resume after.
        id: Option<String>,
        /// What it is called, where it is called anything.
        event: Option<String>,
        /// Its data; lines joined by newlines.
        data: String,
    },
    /// A message too long to keep.
    TooLong,
}

/// Puts messages together from pieces of the stream.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    line_too_long: bool,
    /// The last byte was a carriage return: a newline right after belongs to it.
    returned: bool,
    data: Option<String>,
    spoiled: bool,
    id: Option<String>,
    event: Option<String>,
}

impl Parser {
    /// Takes the next piece and returns the messages that it completes.
    pub fn push(&mut self, piece: &[u8]) -> Vec<Item> {
        let mut items = Vec::new();
        for byte in piece {
            match byte {
                b'\n' if self.returned => self.returned = false,
                b'\n' | b'\r' => {
                    self.returned = *byte == b'\r';
                    items.extend(self.end_line());
                }
                _ => {
                    self.returned = false;
                    self.take(*byte);
                }
            }
        }
        items
    }

    fn take(&mut self, byte: u8) {
        if self.line.len() < LINE_BYTES_MAX {
            self.line.push(byte);
        } else {
            self.line_too_long = true;
        }
    }

    fn end_line(&mut self) -> Option<Item> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.line_too_long) {
            self.spoiled = true;
            return None;
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.add(value),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "event" => self.event = Some(value.to_owned()),
            // Comments keep the connection alive; the rest is for other readers.
            _ => {}
        }
        None
    }

    fn add(&mut self, value: &str) {
        let data = self.data.get_or_insert_default();
        if data.len() + value.len() > DATA_BYTES_MAX {
            self.spoiled = true;
            return;
        }
        data.push_str(value);
        data.push('\n');
    }

    fn dispatch(&mut self) -> Option<Item> {
        let data = self.data.take();
        let event = self.event.take();
        if std::mem::take(&mut self.spoiled) {
            return Some(Item::TooLong);
        }
        let mut data = data?;
        data.truncate(data.len() - 1);
        Some(Item::Message {
            id: self.id.clone(),
            event,
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use std::fmt::Write;

    /// Feeds the stream in pieces of every size and expects the same picture each time.
    #[track_caller]
    fn check(stream: &str, expected: &Expect) {
        let picture = |size: usize| {
            let mut parser = Parser::default();
            let mut text = String::new();
            for item in stream
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| parser.push(piece))
            {
                match item {
                    Item::Message { id, event, data } => {
                        let id = id.as_deref().unwrap_or("-");
                        let event = event.map(|event| format!("{event} ")).unwrap_or_default();
                        writeln!(text, "{id} {event}{data:?}").unwrap();
                    }
                    Item::TooLong => text.push_str("too long\n"),
                }
            }
            text
        };
        let whole = picture(stream.len());
        for size in 1..stream.len().min(9) {
            assert_eq!(picture(size), whole, "in pieces of {size}");
        }
        expected.assert_eq(&whole);
    }

    #[test]
    fn messages_end_with_an_empty_line_of_any_kind() {
        check(
            "id: 1\ndata: a\n\nid:2\r\ndata: b\r\n\r\nid: 3\rdata:c\r\rdata: unfinished\n",
            &expect![[r#"
                1 "a"
                2 "b"
                3 "c"
            "#]],
        );
    }

    #[test]
    fn lines_of_data_are_joined_and_comments_are_nothing() {
        check(
            ": keep-alive\n\nevent: cluster\nid: 7\ndata: {\ndata:  \"a\": 1}\n\n:\n\ndata\n\n",
            &expect![[r#"
                7 cluster "{\n \"a\": 1}"
                7 ""
            "#]],
        );
    }

    #[test]
    fn letters_of_several_bytes_survive_being_cut() {
        check(
            "data: grün – 船\n\n",
            &expect![[r#"
            - "grün – 船"
        "#]],
        );
    }

    #[test]
    fn a_huge_line_is_dropped_and_said_to_be() {
        let stream = format!(
            "id: 1\ndata: {}\n\nid: 2\ndata: b\n\n",
            "x".repeat(LINE_BYTES_MAX)
        );
        check(
            &stream,
            &expect![[r#"
            too long
            2 "b"
        "#]],
        );
    }

    #[test]
    fn a_line_without_end_costs_no_more_than_a_line() {
        let mut parser = Parser::default();
        for _ in 0..100 {
            assert_eq!(parser.push(&vec![b'x'; LINE_BYTES_MAX]), []);
        }
        assert_eq!(parser.line.len(), LINE_BYTES_MAX);
    }

    #[test]
    fn many_lines_of_data_are_bounded_together() {
        let line = format!("data: {}\n", "x".repeat(LINE_BYTES_MAX - 6));
        let stream = format!("{}\n", line.repeat(5));
        assert_eq!(Parser::default().push(stream.as_bytes()), [Item::TooLong]);
    }
}
