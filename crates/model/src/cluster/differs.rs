//! How two ways of making a machine differ, in the words of manifests.

use super::Origin;
use crate::hardware::MachineSpec;
use std::collections::BTreeMap;

/// A field of the manifest that says one thing in one way of making a machine and another in the
/// other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which field.
    pub field: &'static str,
    /// What it says here.
    pub here: String,
    /// What it says there.
    pub there: String,
}

impl Origin {
    /// The fields of the manifest that are other ones in `other`, where both are made. What opens
    /// the account is not among them: it may always change.
    pub fn differs(&self, other: &Self) -> Vec<Difference> {
        let fields = self.fields().into_iter().zip(other.fields());
        let differ = fields.filter(|((_, here), (_, there))| here != there);
        let differ = differ.map(|((field, here), (_, there))| Difference { field, here, there });
        differ.collect()
    }

    /// What a machine is made of, by the fields of the manifest that say something; of one that was
    /// given, where it stands.
    pub fn made_of(&self) -> BTreeMap<String, String> {
        if let Self::Given { endpoint, .. } = self {
            return BTreeMap::from([("endpoint".to_owned(), endpoint.to_string())]);
        }
        let silent = |value: &str| matches!(value, "none" | "0" | "false");
        let fields = self.fields().into_iter();
        let said = fields.filter(|(_, value)| !silent(value));
        said.map(|(field, value)| (field.to_owned(), value))
            .collect()
    }

    /// What a machine is made with, field by field.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let Self::Made {
            provider,
            via,
            region,
            zone,
            server_type,
            image,
            hardware,
            secret: _,
        } = self
        else {
            return Vec::new();
        };
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
        vec![
            ("providerSpec.name", provider.to_string()),
            ("providerType", via.as_str().to_owned()),
            ("providerSpec.region", region.clone()),
            ("providerSpec.zone", or_none(zone.clone())),
            ("serverType", server_type.clone()),
            ("image", image.clone()),
            ("storageDiskSize", hardware.disk.unwrap_or(0).to_string()),
            ("spot", hardware.spot.to_string()),
            (
                "providerSpec.externalNetworkName",
                or_none(hardware.external_network.clone()),
            ),
            ("machineSpec", or_none(hardware.machine.as_ref().map(said))),
            (
                "templates",
                or_none(hardware.templates.as_ref().map(ToString::to_string)),
            ),
        ]
    }
}

/// What a machine has, in the words of manifests.
fn said(spec: &MachineSpec) -> String {
    let MachineSpec {
        cpus,
        memory,
        gpus,
        gpu_type,
    } = spec;
    let number = |name: &str, value: Option<u32>| value.map(|value| format!("{name}: {value}"));
    let said = [
        number("cpuCount", *cpus),
        number("memory", *memory),
        number("nvidiaGpuCount", Some(*gpus).filter(|gpus| *gpus > 0)),
        gpu_type.as_ref().map(|of| format!("nvidiaGpuType: {of}")),
    ];
    let said: Vec<_> = said.into_iter().flatten().collect();
    format!("{{{}}}", said.join(", "))
}
