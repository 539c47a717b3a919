//! What a host can be told to have: pure data, one item for each thing that is looked at.

use crate::recipe::services::Definition;
use model::host::{Fingerprint, Purpose};
use zeroize::Zeroizing;

/// One thing that a host should have, be, or be rid of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A file of ours.
    File {
        /// Where it is.
        path: String,
        /// Its permission bits.
        mode: u32,
        /// Its owner, as `user:group`.
        owner: String,
        /// What is in it.
        content: Content,
        /// Whether it must not be seen: it then travels encoded, so that no message of a shell
        /// can quote it.
        secret: bool,
    },
    /// A program that was pushed to the host before, put in its place.
    Placed {
        /// Where it is to be.
        path: String,
        /// Its permission bits.
        mode: u32,
        /// What it must be.
        sha256: String,
        /// How long it is, in bytes.
        size: u64,
        /// Where it was pushed to.
        from: String,
    },
    /// A directory.
    Directory {
        /// Where it is.
        path: String,
        /// Its permission bits.
        mode: u32,
        /// Its owner, as `user:group`.
        owner: String,
    },
    /// A file or a directory that is not to be there; directories that we made for it go, too.
    Absent {
        /// Where it was.
        path: String,
    },
    /// A path at which we wrote has again what it had before, if only nothing.
    Returned {
        /// Where it is.
        path: String,
    },
    /// Our lines in a file of somebody else's.
    Block {
        /// Which file.
        path: String,
        /// What tells our block from others.
        marker: String,
        /// The lines; without any the block goes.
        lines: Vec<String>,
    },
    /// Packages that are to be installed.
    Packages {
        /// Their names, each alone or as `NAME=VERSION`, where the version may be a pattern.
        names: Vec<String>,
        /// Where they come from.
        source: Source,
        /// Whether they change only when we say so.
        held: bool,
    },
    /// Packages that are only looked for: which of them are not installed is told as facts
    /// `missing`, one each.
    Foreseen {
        /// Their names, as above.
        names: Vec<String>,
        /// A directory with the index of a repository, if only that: then it is told instead
        /// what apt would install of it for those that are missing, as facts `needs`, each with
        /// name, version and architecture.
        index: Option<String>,
    },
    /// Packages that are to go, if it was us who installed them; what others need stays.
    Removed {
        /// Which; `None` means all that we installed.
        names: Option<Vec<String>>,
    },
    /// A setting of the kernel, live and at each boot.
    Sysctl {
        /// Its dotted name.
        key: String,
        /// Its value.
        value: String,
        /// Whether a larger number that is there already is left alone.
        at_least: bool,
    },
    /// Every setting of the kernel is again what it was before us.
    Restored,
    /// A kernel module, now and at each boot.
    Module {
        /// Its name.
        name: String,
    },
    /// A service.
    Service {
        /// Its name, without `.service`.
        name: String,
        /// Who says what it runs.
        unit: Unit,
        /// What it should be doing.
        state: State,
        /// Names ([`Item::name`]) of items whose change restarts it.
        restart_when: Vec<String>,
    },
    /// A change that only a shell can say.
    Command {
        /// What to call it.
        name: String,
        /// A condition that holds when there is nothing to do.
        unless: String,
        /// What to do.
        run: String,
    },
    /// Something that is seen and told as a fact.
    Told {
        /// The key of the fact.
        key: String,
        /// What prints its value, in one line.
        print: String,
    },
    /// Items for hosts on which a condition holds.
    When {
        /// The condition.
        condition: String,
        /// The items.
        items: Vec<Self>,
    },
    /// The host is of a system that we know, else it is refused; where a prepared marker is
    /// there, what it promises is verified and [`Item::Unprepared`] is left out.
    Supported {
        /// What the host is made ready for.
        purpose: Purpose,
    },
    /// Items for hosts that no image prepared.
    Unprepared {
        /// The items.
        items: Vec<Self>,
    },
    /// The last item of a recipe: the host followed it, and all of it is on the disk.
    Stamp {
        /// Which recipe.
        fingerprint: Fingerprint,
    },
}

/// The bytes of a file; wiped when dropped, and not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Zeroizing<Vec<u8>>);

impl Content {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl<T: Into<Vec<u8>>> From<T> for Content {
    fn from(bytes: T) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }
}

/// Where packages come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// What the host's distribution is set to.
    Distribution,
    /// A directory on the host that is a repository by itself: every package that is needed,
    /// and the index `Packages`. Nothing else is asked.
    Directory(String),
    /// A repository of ours.
    Mirror(Mirror),
}

/// A package repository that a host is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// What its files on the host are called.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Its suite; `./` for a directory with an index.
    pub suite: String,
    /// Its components; none for a directory with an index.
    pub components: Vec<String>,
    /// The key its index is signed with. Without one the packages are trusted as they come, which
    /// is right only where the way to the mirror is.
    pub key: Option<String>,
}

/// Who says what a service runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    /// We do.
    Ours(Definition),
    /// A package that is installed. Without systemd nothing can run it, which is told as a fact.
    Packaged,
}

/// What a service should be doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs, now and after each boot.
    Running,
    /// It does whatever it does, but not with old settings.
    Kept,
    /// It does not run.
    Stopped,
    /// It does not run, and what we wrote for it is gone.
    Absent,
}

impl Item {
    /// A file of root's that everybody may read.
    pub fn file(path: impl Into<String>, content: impl Into<Content>) -> Self {
        Self::File {
            path: path.into(),
            mode: 0o644,
            owner: "root:root".to_owned(),
            content: content.into(),
            secret: false,
        }
    }

    /// A path that is not to be there.
    pub fn absent(path: impl Into<String>) -> Self {
        Self::Absent { path: path.into() }
    }

    /// Packages of the distribution.
    pub fn packages(names: &[&str]) -> Self {
        Self::Packages {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            source: Source::Distribution,
            held: false,
        }
    }

    /// What reports call it, and what [`Item::Service`] names.
    pub fn name(&self) -> String {
        match self {
            Self::File { path, .. } => format!("file {path}"),
            Self::Placed { path, .. } => format!("placed {path}"),
            Self::Directory { path, .. } => format!("directory {path}"),
            Self::Absent { path } => format!("absent {path}"),
            Self::Returned { path } => format!("returned {path}"),
            Self::Block { path, marker, .. } => format!("block {marker} in {path}"),
            Self::Packages { names, .. } => format!("packages {}", names.join(" ")),
            Self::Foreseen { names, .. } => format!("foreseen {}", names.join(" ")),
            Self::Removed { names: Some(names) } => format!("removed {}", names.join(" ")),
            Self::Removed { names: None } => "removed packages".to_owned(),
            Self::Sysctl { key, .. } => format!("sysctl {key}"),
            Self::Restored => "sysctls restored".to_owned(),
            Self::Module { name } => format!("module {name}"),
            Self::Service { name, .. } => format!("service {name}"),
            Self::Command { name, .. } => format!("command {name}"),
            Self::Told { key, .. } => key.clone(),
            Self::When { condition, .. } => format!("when {condition}"),
            Self::Supported { .. } => "supported".to_owned(),
            Self::Unprepared { .. } => "unprepared".to_owned(),
            Self::Stamp { .. } => "prepared".to_owned(),
        }
    }

    /// The items within it.
    pub fn inner(&self) -> &[Self] {
        match self {
            Self::When { items, .. } | Self::Unprepared { items } => items,
            Self::File { .. }
            | Self::Placed { .. }
            | Self::Directory { .. }
            | Self::Absent { .. }
            | Self::Block { .. }
            | Self::Packages { .. }
            | Self::Foreseen { .. }
            | Self::Removed { .. }
            | Self::Sysctl { .. }
            | Self::Restored
            | Self::Module { .. }
            | Self::Service { .. }
            | Self::Command { .. }
            | Self::Told { .. }
            | Self::Returned { .. }
            | Self::Supported { .. }
            | Self::Stamp { .. } => &[],
        }
    }

    /// The same, to be changed: whatever [`Item::inner`] shows.
    pub fn inner_mut(&mut self) -> &mut [Self] {
        if let Self::When { items, .. } | Self::Unprepared { items } = self {
            items
        } else {
            &mut []
        }
    }
}
