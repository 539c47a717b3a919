//! The sandbox, opened when the first host is made or looked for: who has none needs no right to
//! make one.

use crate::error::{Error, Kind};
use crate::sandbox::{Means, Sandbox, Settings, means};
use tokio::sync::OnceCell;

/// A sandbox that is open, will be when it is needed, or must not be.
pub struct Opened {
    place: Place,
    sandbox: OnceCell<Sandbox>,
}

/// Where a sandbox is.
enum Place {
    /// Here, once it is needed.
    Here(Settings),
    /// Whoever gave it has opened it.
    Given,
    /// Several servers may work, and each would have its own.
    Nowhere,
}

impl From<Settings> for Opened {
    fn from(settings: Settings) -> Self {
        Self {
            place: Place::Here(settings),
            sandbox: OnceCell::new(),
        }
    }
}

impl From<Sandbox> for Opened {
    fn from(sandbox: Sandbox) -> Self {
        Self {
            place: Place::Given,
            sandbox: OnceCell::new_with(Some(sandbox)),
        }
    }
}

impl Opened {
    /// None at all: for servers that share their database with others. A machine that is not in
    /// this one's sandbox may be in another's, so nothing is made, and nothing said to be gone.
    pub const fn refused() -> Self {
        Self {
            place: Place::Nowhere,
            sandbox: OnceCell::const_new(),
        }
    }

    /// Whether nobody of this database makes machines in a sandbox.
    pub(super) const fn is_refused(&self) -> bool {
        matches!(self.place, Place::Nowhere)
    }

    /// The sandbox, if there ever was one: where there was none nothing has to be opened to know
    /// that nothing is there.
    pub(super) async fn there(&self) -> Result<Option<&Sandbox>, Error> {
        let never = match &self.place {
            Place::Here(settings) => !self.sandbox.initialized() && !settings.dir.exists(),
            Place::Given | Place::Nowhere => false,
        };
        if never {
            return Ok(None);
        }
        self.get().await.map(Some)
    }

    /// The sandbox; opens it where nobody has.
    pub(super) async fn get(&self) -> Result<&Sandbox, Error> {
        let open = || async {
            let refused = |kind, what| Err(Error::new(kind, what));
            let settings = match &self.place {
                Place::Here(settings) => settings.clone(),
                Place::Given => return refused(Kind::NoSandbox, "there is no place for a sandbox"),
                Place::Nowhere => {
                    let what = "machines of a sandbox live on the machine of the one server that \
                                made them; others share the database of this one";
                    return refused(Kind::SharedSandbox, what);
                }
            };
            match means()? {
                Means::Here => Sandbox::open(settings).await,
                Means::ByEntering => {
                    let what = "this process is not root and has not entered namespaces of its own";
                    refused(Kind::NoSandbox, what)
                }
            }
        };
        self.sandbox.get_or_try_init(open).await
    }
}
