//! Where the master key is: in a file, or behind a program.

use model::sealed::{KeyId, Wrapped};
use model::secret::Secret;

use crate::hook::{Hook, Verb};
use crate::key_file::KeyFile;
use crate::{Error, text};

/// What a data key says it was wrapped by if a program did it. No fingerprint looks like it.
const COMMAND: &str = "command";

/// Who wraps data keys.
pub enum Master {
    /// A file with keys, read once.
    File(KeyFile),
    /// A program, asked each time; the key itself stays in its key service.
    Command(Hook),
}

impl Master {
    /// What data keys wrapped from now on will say they were wrapped by.
    pub fn label(&self) -> &str {
        match self {
            Self::File(file) => file.current(),
            Self::Command(_) => COMMAND,
        }
    }

    /// All that it can unwrap, for a message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::File(file) => {
                let keys: Vec<&str> = file.fingerprints().collect();
                format!("{} in {}", named(&keys.join(", ")), file.path().display())
            }
            Self::Command(hook) => format!("the key command `{}`", hook.program()),
        }
    }

    /// Wraps a data key, and makes sure that it can be unwrapped again: a key that
    /// cannot would take everything sealed under it along.
    pub(crate) async fn wrap(&self, id: KeyId, data_key: &Secret) -> Result<Wrapped, Error> {
        match self {
            Self::File(file) => file.wrap(id, data_key),
            Self::Command(hook) => {
                let bytes = hook.call(Verb::Wrap, data_key).await?;
                if repeats(bytes.expose(), data_key.expose()) {
                    return Err(hook.unusable(Verb::Wrap, "contains the data key as it is"));
                }
                let wrapped = Wrapped {
                    id,
                    by: COMMAND.to_owned(),
                    text: text::encode(bytes.expose()),
                };
                unwrap_with(hook, &wrapped).await?;
                Ok(wrapped)
            }
        }
    }

    /// Unwraps a data key; nothing if another master wrapped it.
    pub(crate) async fn unwrap(&self, wrapped: &Wrapped) -> Option<Result<Secret, Error>> {
        match self {
            Self::File(file) => file.unwrap(wrapped),
            Self::Command(hook) if wrapped.by == COMMAND => Some(unwrap_with(hook, wrapped).await),
            Self::Command(_) => None,
        }
    }
}

/// How a message speaks of whoever wrapped a data key.
pub(crate) fn named(by: &str) -> String {
    if by == COMMAND {
        "a key command".to_owned()
    } else {
        format!("master key {by}")
    }
}

/// Which data key it is: a digest, so that a master that gives back another is found out.
pub(crate) fn id_of(data_key: &Secret) -> KeyId {
    KeyId::from_digest(text::digest("slipway data key", data_key))
}

async fn unwrap_with(hook: &Hook, wrapped: &Wrapped) -> Result<Secret, Error> {
    let bytes =
        text::decode(wrapped.text.as_bytes()).ok_or(Error::DamagedKey { key: wrapped.id })?;
    let data_key = hook.call(Verb::Unwrap, &bytes).await?;
    if id_of(&data_key) != wrapped.id {
        return Err(hook.unusable(Verb::Unwrap, "is not the data key that was wrapped"));
    }
    Ok(data_key)
}

/// Whether `bytes` contain the key: a program that wraps nothing would put it into the store.
fn repeats(bytes: &[u8], key: &[u8]) -> bool {
    bytes.windows(key.len()).any(|part| part == key)
}
