//! What add-ons are made of, as mirrors keep it and as their makers publish it.
//!
//! ```text
//! addons/node-exporter/v1.9.1.yaml                               its objects
//! addons/node-exporter/v1.9.1/linux-amd64/images/exporter.tar    an image archive
//! ```

use super::source::joined;
use super::trouble::Trouble;
use super::web::Web;
use super::{Name, Platform, Source};
use crate::error::{Error, Kind};
use model::addon::AddonName;

/// The first part of all names.
const FIRST: &str = "addons";

/// The largest text of objects; those with definitions of kinds have a megabyte or two.
const TEXT_MAX: usize = 16 * 1024 * 1024;

/// The name of the objects of an add-on in mirrors.
pub fn objects(name: AddonName, version: &str) -> Option<Name> {
    format!("{FIRST}/{name}/{version}.yaml").parse().ok()
}

/// The name below which mirrors have the image archives of an add-on.
pub fn images(name: AddonName, version: &str, platform: Platform) -> Option<Name> {
    let platform = platform.as_str();
    let name = format!("{FIRST}/{name}/{version}/{platform}/images");
    name.parse().ok()
}

/// Below which the makers of all of them publish.
pub const UPSTREAM: &str = "https://raw.githubusercontent.com";

/// Where, below that, the makers of an add-on publish its objects, where they do. What we write ourselves is
/// not fetched, and for Cilium they are made by a program of its makers.
pub fn published(name: AddonName, version: &str) -> Option<String> {
    let (owner, file) = match name {
        AddonName::Flannel => ("flannel-io/flannel", "Documentation/kube-flannel.yml"),
        AddonName::Calico => ("projectcalico/calico", "manifests/calico.yaml"),
        AddonName::Longhorn => ("longhorn/longhorn", "deploy/longhorn.yaml"),
        AddonName::Dashboard => ("kubernetes/dashboard", "aio/deploy/recommended.yaml"),
        AddonName::Cilium
        | AddonName::LocalPath
        | AddonName::MetricsServer
        | AddonName::KubeStateMetrics
        | AddonName::NodeExporter
        | AddonName::Prometheus => return None,
    };
    Some(format!("{owner}/{version}/{file}"))
}

/// The objects of an add-on, from where its makers publish them.
pub(super) async fn fetched(
    web: &Web,
    upstream: &Source,
    name: AddonName,
    version: &str,
) -> Result<String, Error> {
    let error = |kind: Kind, why: &str| {
        let what = format!("could not have the objects of {name} {version}: {why}");
        Error::new(kind, what)
    };
    let failed = |why: &str| error(Kind::NoAddon, why);
    let path = published(name, version);
    let path = path.ok_or_else(|| failed("no mirror has them, and nobody publishes them"))?;
    let Source::Upstream(base) = upstream else {
        return Err(failed(&format!("{upstream} is no address")));
    };
    let url = joined(base, path.split('/'));
    let text = web.small(&url, TEXT_MAX).await;
    let text = text.map_err(|trouble| {
        let kind = match trouble {
            Trouble::Away(_) => Kind::SourceAway,
            Trouble::Absent(_) | Trouble::Wrong(_) | Trouble::Garbage(_) | Trouble::Ours(_) => {
                Kind::NoAddon
            }
        };
        let why = trouble.why();
        error(kind, &format!("no mirror has them, and {url} says: {why}"))
    })?;
    String::from_utf8(text).map_err(|_| failed(&format!("{url} gives no text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_add_on_has_names_in_mirrors() {
        for name in AddonName::ALL {
            for (_, version) in name.versions() {
                assert!(objects(name, version).is_some(), "{name}");
                assert!(images(name, version, Platform::Arm64).is_some(), "{name}");
            }
        }
        let exporter = AddonName::NodeExporter;
        let below = images(exporter, "v1.9.1", Platform::Amd64).unwrap();
        assert_eq!(
            below.as_str(),
            "addons/node-exporter/v1.9.1/linux-amd64/images"
        );
        assert_eq!(published(exporter, "v1.9.1"), None);
        let flannel = published(AddonName::Flannel, "v0.27.4").unwrap();
        assert_eq!(
            flannel,
            "flannel-io/flannel/v0.27.4/Documentation/kube-flannel.yml"
        );
        assert!(Source::upstream_at(UPSTREAM).is_ok());
    }
}
