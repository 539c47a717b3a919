//! The modules that a machine is made with, as a part of where it comes from.

use super::Origin;
use crate::templates::{Commit, Reference, Templates};

impl Origin {
    /// Whose modules it is made with, where not the built-in ones.
    pub const fn templates(&self) -> Option<&Templates> {
        match self {
            Self::Made { hardware, .. } => hardware.templates.as_ref(),
            Self::Given { .. } => None,
        }
    }

    /// The tag or the branch that has to be looked up before it is made.
    pub fn reference(&self) -> Option<Reference> {
        self.templates().and_then(Templates::reference)
    }

    /// Whether nobody knows yet what it would be made from.
    pub fn lacks_commit(&self) -> bool {
        self.templates().is_some_and(Templates::lacks_commit)
    }

    /// The commit that a tag or a branch led to when it was decided to make it.
    pub fn pinned(&self) -> Option<Commit> {
        let templates = self.templates()?;
        templates.reference()?;
        templates.leads_to()
    }

    /// The same, made from this commit where a tag or a branch is named.
    #[must_use]
    pub fn at(mut self, commit: Option<Commit>) -> Self {
        self.change_templates(|templates| templates.at(commit));
        self
    }

    /// Whether both make machines alike, whatever their branch led to and whatever opens it.
    pub fn declared_like(&self, other: &Self) -> bool {
        self.clone().at(None).made_like(&other.clone().at(None))
    }

    /// The same, opened by what opens the other.
    #[must_use]
    pub fn opened_like(self, other: &Self) -> Self {
        let mut opened = self.with_secret(other.secret().cloned());
        if let Some(there) = other.templates() {
            opened.change_templates(|templates| templates.opened_like(there));
        }
        opened
    }

    /// Says of its modules what the other says, where these are the same ones: who writes down the
    /// hash of what a branch led to changes nothing.
    pub fn take_modules(&mut self, other: &Self) {
        if let Some(there) = other.templates() {
            self.change_templates(|here| {
                if here.same_modules(there) {
                    there.clone()
                } else {
                    here
                }
            });
        }
    }

    fn change_templates(&mut self, change: impl FnOnce(Templates) -> Templates) {
        if let Self::Made { hardware, .. } = self {
            hardware.templates = hardware.templates.take().map(change);
        }
    }
}
