//! Scripts that outlive this program, and are found again.
//!
//! Each action has a directory. Whoever follows it (`follow`) prepares the directory and starts a
//! small program, the runner (`carry`), which takes the lock of the directory for as long as it
//! lives, notes that it began, runs the script, and notes how that ended:
//!
//! | File | Written by | Says |
//! |---|---|---|
//! | `lock` | – | who holds its lock works here: the runner while it lives, or one who prepares |
//! | `run.json` | follower | what is run, without anything secret; which attempt; whether it is void |
//! | `links.json` | follower | what `info` told |
//! | `secrets/` | follower | what is secret, where that is delivered as files; the runner removes it |
//! | `began` | runner | who it is, before anything was started |
//! | `stdout`, `stderr` | runner | what the script printed: whole lines, without anything secret |
//! | `cancel` | follower | that somebody wants it to end |
//! | `end.json` | runner | how it ended, when all was written |
//!
//! Without the lock nobody writes `began` or voids an attempt, and `began` is written once: so the
//! script is begun at most once. The lock free and `began` without `end.json` mean that the runner
//! died; neither of them, that nothing was begun. The runner minds the deadline itself, so that
//! nothing goes on for longer, even if nobody comes back.

mod carry;
mod directory;
mod follow;
pub(crate) mod session;
mod stream;
mod tail;

pub use carry::{Carried, carry};
pub(crate) use follow::{Follower, Found, Prepared, Runner, forget, secrets};

use std::time::Duration;

/// How long a script may take to end when it is asked to.
pub const GRACE: Duration = Duration::from_secs(10);

/// How long whoever prepares, or is being started, may hold a lock that is about to be free.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How much is kept of either stream.
const STREAM_BYTES_MAX: u64 = 100_000_000;

/// How much is kept of one line.
const LINE_BYTES_MAX: usize = 64 * 1024;
