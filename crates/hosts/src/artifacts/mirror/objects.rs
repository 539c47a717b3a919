//! Objects of add-ons, fetched from where they are published and seen as a mirror.

use super::super::addons::{fetched, objects};
use super::super::{Artifact, Source, blocking, fill::Tell, web::Web};
use super::{Lent, Wish, index};
use crate::artifacts::Patience;
use crate::error::{Error, Kind};
use model::addon::AddonName;
use tempfile::TempDir;

impl Lent {
    /// The objects of add-ons in these versions, from below an address where they are published.
    pub async fn objects(
        upstream: &Source,
        addons: &[(AddonName, String)],
        patience: Patience,
        tell: Tell<'_>,
    ) -> Result<Self, Error> {
        let web = Web::new(patience)?;
        let failed = |error: std::io::Error| {
            let what = format!("could not keep objects of add-ons: {error}");
            Error::new(Kind::CacheBroken, what)
        };
        let directory = TempDir::new().map_err(failed)?;
        let mut wishes = Vec::new();
        for (name, version) in addons {
            let text = fetched(&web, upstream, *name, version).await?;
            let named = objects(*name, version).ok_or_else(|| {
                let what = format!("{name} {version} can have no name in a mirror");
                Error::new(Kind::NoArtifact, what)
            })?;
            let to = directory.path().join(named.as_str());
            let written = blocking(move || {
                let above = to.parent().unwrap_or(&to);
                std::fs::create_dir_all(above).and_then(|()| std::fs::write(&to, text))
            });
            written.await?.map_err(failed)?;
            wishes.push(Wish::Named(Artifact::named(named)));
        }
        index(directory.path(), tell).await?;
        Ok(Self { directory, wishes })
    }
}
