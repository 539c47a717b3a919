//! `slipway mirror create --addon`: a mirror with the objects of add-ons that others publish.

use hosts::artifacts::addons::UPSTREAM;
use hosts::artifacts::mirror::Lent;
use hosts::artifacts::{NotASource, Patience, Source, Tell};
use hosts::error::Error;
use model::addon::AddonName;

/// Which add-ons, and where they come from
#[derive(Debug, clap::Args)]
pub(crate) struct Addons {
    /// An add-on whose objects to fetch from where its makers publish them, such as flannel or
    /// flannel=v0.27.4; may be repeated. It takes curl on this machine [default version: the one
    /// that goes with the newest Kubernetes]
    #[arg(long = "addon", id = "addon", value_name = "NAME[=VERSION]", value_parser = addon)]
    addons: Vec<(AddonName, String)>,
    /// Below which address they are published, or a copy of that
    #[arg(long, value_name = "ADDRESS", requires = "addon", default_value = UPSTREAM, value_parser = upstream)]
    addon_upstream: Source,
}

/// Reads an add-on from the command line.
fn addon(text: &str) -> Result<(AddonName, String), String> {
    let (name, version) = text.split_once('=').unzip();
    let name = name.unwrap_or(text);
    let Ok(name) = name.parse::<AddonName>() else {
        let known = AddonName::ALL.map(AddonName::as_str).join(", ");
        return Err(format!("{name:?} is none of {known}"));
    };
    let newest = name.versions().last().map(|(_, version)| *version);
    let version = version.or(newest).unwrap_or_default();
    if hosts::artifacts::addons::published(name, version).is_none() {
        return Err(format!(
            "nobody publishes the objects of {name}; see docs/addons.md"
        ));
    }
    Ok((name, version.to_owned()))
}

/// Reads where they are published from the command line.
fn upstream(text: &str) -> Result<Source, NotASource> {
    Source::upstream_at(text)
}

impl Addons {
    /// Whether there is anything to fetch.
    pub(super) const fn is_wished(&self) -> bool {
        !self.addons.is_empty()
    }

    /// All of them, as a mirror to fetch from.
    pub(super) async fn lent(&self, tell: Tell<'_>) -> Result<Option<Lent>, Error> {
        if !self.is_wished() {
            return Ok(None);
        }
        let patience = Patience::default();
        let lent = Lent::objects(&self.addon_upstream, &self.addons, patience, tell);
        lent.await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_add_on_has_the_newest_version_or_the_one_that_is_named() {
        let calico = (AddonName::Calico, "v3.31.0".to_owned());
        assert_eq!(addon("calico"), Ok(calico));
        let older = (AddonName::Calico, "v3.29.0".to_owned());
        assert_eq!(addon("calico=v3.29.0"), Ok(older));
        for (bad, why) in [
            ("grafana", "is none of flannel, calico"),
            ("node-exporter", "nobody publishes"),
            ("cilium=v1.18.3", "nobody publishes"),
        ] {
            assert!(addon(bad).unwrap_err().contains(why), "{bad}");
        }
    }
}
