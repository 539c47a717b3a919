//! Environments that were made elsewhere and are taken over as they are: nothing is run for it.

use super::EnvironmentName;
use super::config::Edits;
use super::link::Link;
use super::status::{Deed, Status};
use crate::time::Timestamp;
use std::time::Duration;

/// An environment as another system knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// What it is called.
    pub name: EnvironmentName,
    /// Which one it is there, in words that no other has: who takes it again is told so.
    pub origin: String,
    /// How it is.
    pub status: Status,
    /// Since when.
    pub since: Timestamp,
    /// When it came.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Since when it rests.
    pub archived_at: Option<Timestamp>,
    /// What people made of the defaults.
    pub edits: Edits,
    /// Where it is reached.
    pub links: Vec<Link>,
    /// What was done to it, oldest first; all of it, or a part.
    pub actions: Vec<TakenAction>,
}

/// Something that was done to an environment elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenAction {
    /// Its number there.
    pub number: u64,
    /// What was done.
    pub deed: Deed,
    /// Who asked, as far as anybody wrote it down.
    pub author: String,
    /// The status of its script.
    pub exit: i32,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// What people had made of the defaults by then.
    pub edits: Edits,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Taken {
    /// The longest origin.
    pub const ORIGIN_LEN_MAX: usize = 128;

    /// The most links: more than anybody reads.
    pub const LINKS_MAX: usize = 256;

    /// The longest name or address of a link.
    pub const LINK_LEN_MAX: usize = 4096;
}

impl TakenAction {
    /// The most that is taken of either stream. In the worst case its JSON is six times as long,
    /// and both streams together still fit into one request.
    pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

    /// How much of that is from the beginning of a longer one; the rest is from its end.
    pub const OUTPUT_HEAD_BYTES: usize = 16 * 1024;
}

/// A text cut to what is taken of one stream: its beginning, a remark, and its end.
pub fn bounded(text: String) -> String {
    let (most, head) = (
        TakenAction::OUTPUT_BYTES_MAX,
        TakenAction::OUTPUT_HEAD_BYTES,
    );
    if text.len() <= most {
        return text;
    }
    // Room for the remark itself.
    let tail = most - head - 64;
    let begin = text.floor_char_boundary(head);
    let end = text.ceil_char_boundary(text.len() - tail);
    format!(
        "{}\n… the middle was left out here …\n{}",
        text.get(..begin).unwrap_or_default(),
        text.get(end..).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_output_the_beginning_and_the_end_are_taken() {
        assert_eq!(bounded("short".to_owned()), "short");
        let exact = "x".repeat(TakenAction::OUTPUT_BYTES_MAX);
        assert_eq!(bounded(exact.clone()), exact);
        for piece in ["x", "ü", "語"] {
            let long = format!("begin{}end", piece.repeat(200_000));
            let cut = bounded(long);
            assert!(cut.len() <= TakenAction::OUTPUT_BYTES_MAX, "{}", cut.len());
            assert!(cut.starts_with("begin") && cut.ends_with("end"));
            assert_eq!(cut.matches(" the middle was left out here …").count(), 1);
            assert_eq!(bounded(cut.clone()), cut);
        }
    }
}
