//! How two ways of making a machine differ, in the words of manifests.

use super::Origin;

impl Origin {
    /// The fields of the manifest that are other ones in `other`, where both are made. What opens
    /// the account is not among them: it may always change.
    pub fn differs(&self, other: &Self) -> Vec<&'static str> {
        let (
            Self::Made {
                provider,
                via,
                region,
                zone,
                server_type,
                image,
                hardware,
                secret: _,
            },
            Self::Made {
                provider: provider_there,
                via: via_there,
                region: region_there,
                zone: zone_there,
                server_type: server_type_there,
                image: image_there,
                hardware: there,
                secret: _,
            },
        ) = (self, other)
        else {
            return Vec::new();
        };
        let fields = [
            ("providerSpec.name", provider != provider_there),
            ("providerType", via != via_there),
            ("providerSpec.region", region != region_there),
            ("providerSpec.zone", zone != zone_there),
            ("serverType", server_type != server_type_there),
            ("image", image != image_there),
            ("storageDiskSize", hardware.disk != there.disk),
            ("spot", hardware.spot != there.spot),
            (
                "providerSpec.externalNetworkName",
                hardware.external_network != there.external_network,
            ),
            ("machineSpec", hardware.machine != there.machine),
            ("templates", hardware.templates != there.templates),
        ];
        let other = fields.into_iter().filter(|(_, differs)| *differs);
        other.map(|(field, _)| field).collect()
    }
}
