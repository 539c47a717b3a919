//! The known ways to fail of a driver: each has a code with a page, a hint, and who must act.

/// Who has to do something so that it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Nobody: it is tried again.
    Slipway,
    /// A person: the hint says what.
    Person,
}

/// Declares the ways to fail of a driver as `Kind`, each with its code, who must act and what helps,
/// and an `Error` that is one of them.
#[macro_export]
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $owner:ident, $hint:literal;)*) => {
        /// Why something could not be done.
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[error("{what} ({code}); {hint}", code = .kind.code(), hint = .kind.hint())]
        pub struct Error {
            /// Which of the known ways to fail it is.
            pub kind: Kind,
            /// What was attempted, where, and how it ended, as one clause.
            pub what: String,
        }

        impl Error {
            /// An error of a known kind.
            pub fn new(kind: Kind, what: impl Into<String>) -> Self {
                Self {
                    kind,
                    what: what.into(),
                }
            }
        }

        /// The known ways to fail; each has a page in `docs/errors`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code of its page.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// Who must act.
            pub const fn owner(self) -> $crate::kinds::Owner {
                match self { $(Self::$name => $crate::kinds::Owner::$owner,)* }
            }

            /// What would help.
            pub const fn hint(self) -> &'static str {
                match self { $(Self::$name => $hint,)* }
            }

            /// The kind of a code.
            pub fn of_code(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.code() == code)
            }
        }

        impl From<Error> for $crate::Outcome {
            fn from(error: Error) -> Self {
                let told = $crate::Error {
                    attempted: format!("{} ({})", error.what, error.kind.code()),
                    hint: error.kind.hint().to_owned(),
                };
                match error.kind.owner() {
                    $crate::kinds::Owner::Slipway => Self::Retry(told),
                    $crate::kinds::Owner::Person => Self::Stuck(told),
                }
            }
        }
    };
}
