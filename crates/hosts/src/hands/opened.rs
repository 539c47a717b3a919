//! The sandbox, opened when the first host is made or looked for: who has none needs no right to
//! make one.

use crate::error::{Error, Kind};
use crate::sandbox::{Means, Sandbox, Settings, means};
use tokio::sync::OnceCell;

/// A sandbox that is open, or will be when it is needed.
pub struct Opened {
    settings: Option<Settings>,
    sandbox: OnceCell<Sandbox>,
}

impl From<Settings> for Opened {
    fn from(settings: Settings) -> Self {
        Self {
            settings: Some(settings),
            sandbox: OnceCell::new(),
        }
    }
}

impl From<Sandbox> for Opened {
    fn from(sandbox: Sandbox) -> Self {
        Self {
            settings: None,
            sandbox: OnceCell::new_with(Some(sandbox)),
        }
    }
}

impl Opened {
    /// Whether there ever was a sandbox: where there was none nothing has to be opened to know
    /// that nothing is there.
    pub(super) fn was_there(&self) -> bool {
        let dir = self.settings.as_ref().map(|settings| &settings.dir);
        self.sandbox.initialized() || dir.is_some_and(|dir| dir.exists())
    }

    /// The sandbox; opens it where nobody has.
    pub(super) async fn get(&self) -> Result<&Sandbox, Error> {
        let open = || async {
            let refused = |what| Err(Error::new(Kind::NoSandbox, what));
            let Some(settings) = self.settings.clone() else {
                return refused("there is no place for a sandbox");
            };
            match means()? {
                Means::Here => Sandbox::open(settings).await,
                Means::ByEntering => {
                    refused("this process is not root and has not entered namespaces of its own")
                }
            }
        };
        self.sandbox.get_or_try_init(open).await
    }
}
