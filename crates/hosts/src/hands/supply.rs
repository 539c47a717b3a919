//! Where the packages of a host come from is decided here and nowhere else: from a mirror that
//! has packages for its system, else from what the host's distribution is set to.
//!
//! A host that lacks nothing is asked for no more than that. One that lacks something is shown
//! the index of the mirror, says what apt would install of it, is brought that and nothing else,
//! and installs it without asking its own sources.

use super::Hosts;
use super::entry::Entry;
use crate::artifacts::packages::{INDEX, Package, Packages, Shelf};
use crate::artifacts::{Artifact, Handle, Platform, quiet};
use crate::error::{Error, Kind};
use crate::program::Report;
use crate::recipe::item::Item;
use crate::recipe::{self, Looked, PUSHED};
use driver::Context;

impl Hosts {
    /// The items of a recipe, with their packages from where this host gets them.
    pub(super) async fn supplied(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        looked: &Looked,
        items: Vec<Item>,
    ) -> Result<Vec<Item>, Error> {
        if self.inner.sources.is_empty() {
            cx.log("packages: what is missing comes from the host's own sources");
            return Ok(items);
        }
        let told = self.run(cx, entry, &recipe::missing(&items)).await?;
        recipe::done(&told)?;
        let missing: Vec<String> = told.facts("missing").map(str::to_owned).collect();
        if missing.is_empty() {
            cx.log("packages: none is missing");
            return Ok(items);
        }
        let lacking = missing.join(" ");
        let Some((shelf, index)) = self.shelf(cx, looked).await? else {
            cx.log(&format!(
                "packages: {lacking} missing; from the host's own sources, for no mirror has \
                 packages for {}",
                looked.system
            ));
            return Ok(items);
        };
        cx.log(&format!(
            "packages: {lacking} missing; from the mirror, {shelf}"
        ));
        let packages = read(&shelf, &index).await?;
        let at = format!("{PUSHED}/{INDEX}");
        self.bring(cx, entry, &index, &at, 0o644).await?;
        let told = self.run(cx, entry, &recipe::needed(&missing)).await?;
        recipe::done(&told)?;
        self.stock(cx, entry, &packages, &told).await?;
        Ok(recipe::from_pushed(items))
    }

    /// The packages that a mirror has for a host's system, where one has any.
    async fn shelf(&self, cx: &Context, looked: &Looked) -> Result<Option<(Shelf, Handle)>, Error> {
        let machine = looked.facts.get("machine").map_or("", String::as_str);
        let platform = Platform::of_machine(machine).map(Platform::architecture);
        let shelf = platform.and_then(|platform| Shelf::of(&looked.system, platform));
        let Some((shelf, name)) = shelf.and_then(|shelf| Some((shelf.clone(), shelf.file(INDEX)?)))
        else {
            return Ok(None);
        };
        let fetching = async {
            let cache = self.cache().await?;
            cache.fetch_listed(&self.inner.sources, name, &quiet).await
        };
        let index = Self::unless_told(cx, fetching).await?;
        Ok(index.map(|index| (shelf, index)))
    }

    /// Brings to a host the packages that it said it needs.
    async fn stock(
        &self,
        cx: &Context,
        entry: &Entry<'_>,
        packages: &Packages,
        told: &Report,
    ) -> Result<(), Error> {
        let (mut brought, mut there, mut bytes) = (0_usize, 0_usize, 0_u64);
        for need in told.facts("needs") {
            let (name, content) = package(need)
                .and_then(|package| packages.get(&package))
                .ok_or_else(|| {
                    let what = format!("{} asks for {need:?}, which no index lists", entry.door);
                    Error::new(Kind::Garbage, what)
                })?;
            let artifact = Artifact {
                name: name.clone(),
                sha256: Some(content.sha256),
                size: Some(content.size),
            };
            let cache = self.cache().await?;
            let fetching = cache.fetch(&self.inner.sources, &artifact, &quiet);
            let handle = Self::unless_told(cx, fetching).await?;
            let file = name.parts().last().unwrap_or_default();
            let at = format!("{PUSHED}/{file}");
            let report = self.bring(cx, entry, &handle, &at, 0o644).await?;
            if report.changed() > 0 {
                cx.log(&format!("packages: brought {file}"));
                brought += 1;
                bytes = bytes.saturating_add(content.size);
            } else {
                there += 1;
            }
        }
        cx.log(&format!(
            "packages: {brought} brought, {bytes} bytes; {there} were there"
        ));
        Ok(())
    }
}

/// A package as a host tells it.
fn package(told: &str) -> Option<Package> {
    let mut words = told.split(' ').map(str::to_owned);
    Some((words.next()?, words.next()?, words.next()?))
}

/// What an index lists, read where it disturbs nobody.
async fn read(shelf: &Shelf, index: &Handle) -> Result<Packages, Error> {
    let text = tokio::fs::read_to_string(index.path()).await;
    let text = text.map_err(|error| {
        let what = format!("cannot use {shelf}/{INDEX}: {error}");
        Error::new(Kind::BadIndex, what)
    })?;
    Packages::parse(shelf, &text)
}
