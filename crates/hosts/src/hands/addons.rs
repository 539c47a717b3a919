//! What add-ons are made of is found for them, and their images are brought to nodes.

use super::Hosts;
use crate::artifacts::{addons, quiet};
use crate::error::{Error, Kind};
use driver::Context;
use model::addon::{Addon, AddonName};
use model::cluster::Machine;
use model::id::ClusterId;

impl Hosts {
    /// The objects of an add-on as the first mirror has them that lists them.
    pub async fn addon_listed(
        &self,
        cx: &Context,
        name: AddonName,
        version: &str,
    ) -> Result<Option<String>, Error> {
        let named = addons::objects(name, version).ok_or_else(|| nameless(name, version))?;
        let cache = self.cache().await?;
        let fetching = cache.fetch_listed(&self.inner.sources, named.clone(), &quiet);
        let Some(handle) = Self::unless_told(cx, fetching).await? else {
            return Ok(None);
        };
        let text = tokio::fs::read_to_string(handle.path()).await;
        let text = text.map_err(|error| {
            let what = format!("{named} of a mirror is no text: {error}");
            Error::new(Kind::Garbage, what)
        })?;
        cx.log(&format!("{name}: objects as a mirror has them, {named}"));
        Ok(Some(text))
    }

    /// The objects of an add-on as its makers publish them.
    pub async fn addon_published(
        &self,
        cx: &Context,
        name: AddonName,
        version: &str,
    ) -> Result<String, Error> {
        let cache = self.cache().await?;
        let text = Self::unless_told(cx, cache.published(name, version)).await?;
        cx.log(&format!("{name}: objects as they are published"));
        Ok(text)
    }

    /// Brings the images of an add-on to a machine, where a mirror has any; all others are left to
    /// the container runtime.
    pub async fn stage_addon(
        &self,
        cx: &Context,
        cluster: ClusterId,
        machine: &Machine,
        addon: &Addon,
    ) -> Result<(), Error> {
        let (name, version) = (addon.name, addon.version.as_str());
        let entry = self.entry(cx, cluster, machine).await?;
        let platform = self.platform(cx, &entry).await?;
        let below = addons::images(name, version, platform);
        let below = below.ok_or_else(|| nameless(name, version))?;
        let of = format!("addons/{name}/{version}");
        self.stage_below(cx, &entry, &of, &below).await
    }
}

fn nameless(name: AddonName, version: &str) -> Error {
    let what = format!("{name} {version} can have no name in a mirror");
    Error::new(Kind::NoArtifact, what)
}
