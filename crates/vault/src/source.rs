//! Where master keys come from, as somebody configures it.

use std::path::PathBuf;

use crate::{Error, Hook, KeyFile, Master, Sealer};

/// The master keys of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyConfig {
    /// Wraps data keys.
    pub current: KeySource,
    /// Can still unwrap them: what the installation is moving away from.
    pub older: Vec<KeySource>,
}

/// Where one master key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In a file; [`KeyFile::NAME`] in the data directory, usually.
    File(PathBuf),
    /// Behind a program: its path and its arguments.
    Command(Vec<String>),
    /// Drawn for this one process: for what need not outlive it.
    Memory,
}

impl KeySource {
    /// A program with its arguments, as one line; no shell reads it, it is cut at white space.
    pub fn command(line: &str) -> Self {
        Self::Command(line.split_whitespace().map(str::to_owned).collect())
    }

    /// Reads what is there. Only when nothing is sealed yet, a key file is made.
    fn load(&self, sealed: bool) -> Result<Master, Error> {
        match self {
            Self::File(path) if sealed => KeyFile::load(path).map(Master::File),
            Self::File(path) => KeyFile::load_or_create(path).map(Master::File),
            Self::Command(words) => Hook::new(words.iter().cloned()).map(Master::Command),
            Self::Memory => KeyFile::drawn().map(Master::File),
        }
    }
}

impl KeyConfig {
    /// One master key, and none before it.
    pub const fn only(current: KeySource) -> Self {
        Self {
            current,
            older: Vec::new(),
        }
    }

    /// A sealer for an installation in which something is sealed already: no key is made.
    pub fn sealer(&self) -> Result<Sealer, Error> {
        self.load(true)
    }

    /// A sealer with these masters.
    ///
    /// An older one that cannot be read is missed only by the data keys that it wrapped, and
    /// they will say so.
    pub(crate) fn load(&self, sealed: bool) -> Result<Sealer, Error> {
        let current = self.current.load(sealed)?;
        let older = self
            .older
            .iter()
            .filter_map(|source| match source.load(true) {
                Ok(master) => Some(master),
                // Whoever never had one does not miss it.
                Err(Error::Missing { .. }) => None,
                Err(error) => {
                    tracing::warn!(
                        error.code = error.code(),
                        "an older master key cannot be used: {error}"
                    );
                    None
                }
            });
        Ok(Sealer::new(current, older.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_cut_at_white_space() {
        let words = ["kms", "--key", "a"].map(str::to_owned).to_vec();
        assert_eq!(
            KeySource::command(" kms  --key a\n"),
            KeySource::Command(words)
        );
        let refused = KeySource::command("  ").load(false).err();
        assert_eq!(refused.map(|error| error.code()), Some("SEAL-006"));
    }

    #[test]
    fn an_older_key_that_is_missing_keeps_nobody_waiting() {
        let config = KeyConfig {
            current: KeySource::Memory,
            older: vec![KeySource::File("/nowhere/slipway.key".into())],
        };
        assert!(config.load(true).is_ok());
    }
}
