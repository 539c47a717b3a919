//! Seals what must not be read: secrets of people, and what tasks produce for the few.
//!
//! Two layers. A value is sealed under a *data key* with XChaCha20-Poly1305, bound to the
//! place where it belongs. The data key is wrapped by the *master key*, which never
//! enters the database: it is in a key file, or behind a program that speaks to a key
//! service ([`Master`]). So a copy of the database reveals nothing, the values can be
//! moved to a new data key while the server runs, and the master key can be changed
//! without touching a value (`docs/decisions/0005-sealing.md`).
//!
//! A [`Sealer`] seals and opens with keys that it was given, and knows no store. A [`Vault`]
//! is what others hold: it brings the sealer and the store together, finds out when another
//! process has drawn a new key, and moves values from one key to the next.
//!
//! **Invariant:** neither keys nor values appear in an error, a log line, an argument or
//! an environment variable, and all of them are wiped from memory when they are dropped.

mod error;
mod hook;
mod key_file;
mod master;
mod rotation;
mod seal;
mod sealer;
mod source;
mod text;
mod vault;

pub use error::Error;
pub use hook::Hook;
pub use key_file::KeyFile;
pub use master::Master;
pub use rotation::Moved;
pub use seal::VALUE_BYTES_MAX;
pub use sealer::Sealer;
pub use source::{KeyConfig, KeySource};
pub use vault::{Changes, Clock, OnlyEntry, Vault, open};
