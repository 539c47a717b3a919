//! What a doctor has seen: plain data, for the judgement to be made from.

use model::time::Timestamp;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use store::{Looked, LookedServer};

/// Everything that was looked at.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Who looks.
    pub(super) user: u32,
    /// How long a worker may stay silent: clocks must agree far better than that.
    pub(super) lease: Duration,
    /// How many connections to a database server one process takes.
    pub(super) connections: u32,
    /// What this machine's clock says.
    pub(super) now: Timestamp,
    /// The data directory.
    pub(super) directory: Entry,
    /// Why it cannot be made, when it is not there.
    pub(super) barred: Option<String>,
    /// The room where it is.
    pub(super) space: Option<Space>,
    /// The administrator's token.
    pub(super) token: Token,
    /// The master key.
    pub(super) key: Key,
    /// The database.
    pub(super) database: Database,
    /// Where a server would listen.
    pub(super) listen: SocketAddr,
    /// Whether it could.
    pub(super) port: Port,
    /// Where a server was asked.
    pub(super) url: String,
    /// What it said.
    pub(super) server: Server,
    /// Clusters of which it cannot read what is stored, as far as it lets this user ask.
    pub(super) unread: Vec<Trouble>,
    /// How many files a process of this user may have open.
    pub(super) files_max: Option<u64>,
    /// Programs that may be needed, and where each was found.
    pub(super) tools: Vec<(Tool, Option<PathBuf>)>,
}

/// Something in the file system.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) is: Is,
}

/// What it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Is {
    /// Nothing.
    Missing,
    /// It cannot be looked at; what the system said.
    Hidden(String),
    /// Something.
    There {
        directory: bool,
        owner: u32,
        mode: u32,
        /// Whether who looks may write it.
        writable: bool,
    },
}

/// The administrator's token.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) file: Entry,
    /// Why no server starts with what the file holds.
    pub(super) useless: Option<Trouble>,
}

/// Room on a file system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space {
    /// Bytes that this user may still use.
    pub(super) free: u64,
    /// Files that may still be made.
    pub(super) files_free: u64,
}

/// The master key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) place: KeyPlace,
    pub(super) opens: Opens,
}

/// Where the master key is.
#[derive(Debug, Clone)]
pub(super) enum KeyPlace {
    /// In a file.
    File(Entry),
    /// Behind a program.
    Command(String),
}

/// Whether the master key opens what is stored.
#[derive(Debug, Clone)]
pub(super) enum Opens {
    /// Nothing is sealed yet.
    Nothing,
    /// It opens the data key that is in use.
    Yes,
    /// It does not.
    No(Trouble),
    /// Nobody could find out.
    Unknown,
}

/// Something that does not work, as its error tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) what: String,
    pub(super) hint: String,
}

/// What was seen of the database.
#[derive(Debug, Clone)]
pub(super) enum Database {
    /// There is none yet.
    None,
    /// There was one, because there is a token, and its file is gone.
    Lost,
    /// A process works with the data directory.
    Held,
    /// In the data directory.
    File(Looked),
    /// On a server, and what our clock said when it told us its own.
    Server(Box<LookedServer>, Timestamp),
    /// It cannot be used.
    Unusable(Trouble),
}

/// Whether a server could listen.
#[derive(Debug, Clone)]
pub(super) enum Port {
    /// It could.
    Free,
    /// A server of ours listens there.
    Ours,
    /// Another program does.
    Taken,
    /// It may not, or the address is not of this machine.
    Refused(String),
}

/// What a server said.
#[derive(Debug, Clone)]
pub(super) enum Server {
    /// Nothing.
    Silent,
    /// Something that no server of ours says.
    Foreign(String),
    /// It is there.
    Alive {
        /// Its clock, and ours when it was asked.
        clocks: Option<(Timestamp, Timestamp)>,
        /// Why it cannot take on work.
        unready: Option<Trouble>,
    },
}

/// A program that may be needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tool {
    /// What it may be called; any of these will do.
    pub(super) names: &'static [&'static str],
    /// What it is for.
    pub(super) purpose: &'static str,
}

/// All of them.
pub(super) const TOOLS: [Tool; 4] = [
    Tool {
        names: &["ssh"],
        purpose: "to reach machines",
    },
    Tool {
        names: &["tofu", "terraform"],
        purpose: "to make machines in clouds",
    },
    Tool {
        names: &["git"],
        purpose: "to follow repositories",
    },
    Tool {
        names: &["wg"],
        purpose: "to connect machines across clouds",
    },
];
