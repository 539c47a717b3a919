//! What a host is told to do, and what it answers: one shell program, one report.
//!
//! A program is a text for `/bin/sh` (POSIX, run by root or through sudo). It must be
//! idempotent, must look before it changes, and tells on standard output what it did in lines
//! that begin with [`MARK`]; every other line is for people and goes to the log of the task.

use std::time::Duration;
use zeroize::Zeroizing;

/// What the lines of a report begin with.
pub const MARK: &str = "::slipway ";

/// One program for one host.
///
/// Its text may hold secrets: it is sent by standard input, is wiped when dropped, and has no
/// `Debug`.
pub struct Program {
    /// What to say of it in a log.
    pub title: String,
    /// The text for `/bin/sh -s`.
    pub text: Zeroizing<String>,
    /// How long it may take.
    pub limit: Duration,
}

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// `::slipway changed NAME`: an item was not as wished, and now is.
    Changed(String),
    /// `::slipway unchanged NAME`: an item was as wished.
    Unchanged(String),
    /// `::slipway fact KEY VALUE`: something that was seen; the value is the rest of the line.
    Fact(String, String),
    /// `::slipway failed CODE WHAT`: an item could not be brought about; CODE is one of
    /// [`crate::error::Error`]'s, such as `HOST-006`, WHAT one clause for people.
    Failed(String, String),
}

impl Mark {
    /// Reads a line; `None` where it is for people only.
    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.strip_prefix(MARK)?.split_once(' ')?;
        let two = || {
            let (first, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            (first.to_owned(), rest.to_owned())
        };
        match word {
            "changed" => Some(Self::Changed(rest.to_owned())),
            "unchanged" => Some(Self::Unchanged(rest.to_owned())),
            "fact" => Some(two()).map(|(key, value)| Self::Fact(key, value)),
            "failed" => Some(two()).map(|(code, what)| Self::Failed(code, what)),
            _ => None,
        }
    }
}

/// What a program reported and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Its exit status; `None` where a signal ended it.
    pub status: Option<u32>,
    /// Its marks, in order.
    pub marks: Vec<Mark>,
    /// The last lines that were for people, for an error message; bounded.
    pub tail: Vec<String>,
    /// Bytes of output that were too many to keep.
    pub dropped: u64,
}

impl Report {
    /// How many items were changed.
    pub fn changed(&self) -> usize {
        self.changes().count()
    }

    /// The items that were changed.
    pub fn changes(&self) -> impl Iterator<Item = &str> {
        self.marks.iter().filter_map(|mark| match mark {
            Mark::Changed(item) => Some(item.as_str()),
            Mark::Unchanged(_) | Mark::Fact(..) | Mark::Failed(..) => None,
        })
    }

    /// How many items were as wished.
    pub fn unchanged(&self) -> usize {
        let unchanged = |mark: &&Mark| matches!(mark, Mark::Unchanged(_));
        self.marks.iter().filter(unchanged).count()
    }

    /// The value of a fact, the last where it was told again.
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.marks.iter().rev().find_map(|mark| match mark {
            Mark::Fact(of, value) if of == key => Some(value.as_str()),
            Mark::Fact(..) | Mark::Changed(_) | Mark::Unchanged(_) | Mark::Failed(..) => None,
        })
    }

    /// The values of a fact that is told more than once, in order.
    pub fn facts(&self, key: &str) -> impl Iterator<Item = &str> {
        self.marks.iter().filter_map(move |mark| match mark {
            Mark::Fact(of, value) if of == key => Some(value.as_str()),
            Mark::Fact(..) | Mark::Changed(_) | Mark::Unchanged(_) | Mark::Failed(..) => None,
        })
    }

    /// The first failure that was told.
    pub fn failure(&self) -> Option<(&str, &str)> {
        self.marks.iter().find_map(|mark| match mark {
            Mark::Failed(code, what) => Some((code.as_str(), what.as_str())),
            Mark::Fact(..) | Mark::Changed(_) | Mark::Unchanged(_) => None,
        })
    }
}

/// Quotes a text so that a shell takes it as one word, whatever is in it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Program {
    /// The line of another program that runs this one and ends as it ends.
    pub fn piped(&self) -> String {
        format!("printf '%s\\n' {} | /bin/sh -s", quoted(&self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_line_by_line_and_the_rest_is_for_people() {
        let fact = Mark::Fact("kernel".to_owned(), "6.1 amd64".to_owned());
        assert_eq!(Mark::parse("::slipway fact kernel 6.1 amd64"), Some(fact));
        let failed = Mark::Failed("HOST-006".to_owned(), "no room on /var".to_owned());
        assert_eq!(
            Mark::parse("::slipway failed HOST-006 no room on /var"),
            Some(failed)
        );
        assert_eq!(Mark::parse("Reading package lists..."), None);
        assert_eq!(Mark::parse("::slipway sings x"), None);
    }

    #[test]
    fn a_quoted_text_is_one_word() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
