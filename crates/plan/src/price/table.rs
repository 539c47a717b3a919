//! Rough figures that everybody has: common types, on demand. They were compared with no price list.
//!
//! Nobody bills by this table. It lets people see whether a change costs ten dollars or a thousand,
//! and whoever has prices of their own brings them.

use super::{DiskPrice, MachinePrice, Prices};
use model::provider::{Cloud, Provider};

/// The time that they are about.
const AS_OF: &str = "about 2025";

/// Cents a month, by provider and type.
const MACHINES: &[(Cloud, &str, u64)] = &[
    (Cloud::Hetzner, "cx22", 450),
    (Cloud::Hetzner, "cx32", 760),
    (Cloud::Hetzner, "cx42", 1_800),
    (Cloud::Hetzner, "cx52", 3_600),
    (Cloud::Hetzner, "cpx11", 500),
    (Cloud::Hetzner, "cpx21", 850),
    (Cloud::Hetzner, "cpx31", 1_600),
    (Cloud::Hetzner, "cpx41", 3_000),
    (Cloud::Hetzner, "cpx51", 6_500),
    (Cloud::Hetzner, "cax11", 450),
    (Cloud::Hetzner, "cax21", 750),
    (Cloud::Hetzner, "cax31", 1_400),
    (Cloud::Hetzner, "ccx13", 1_450),
    (Cloud::Hetzner, "ccx23", 2_800),
    (Cloud::Gcp, "e2-small", 1_220),
    (Cloud::Gcp, "e2-medium", 2_450),
    (Cloud::Gcp, "e2-standard-2", 4_890),
    (Cloud::Gcp, "e2-standard-4", 9_780),
    (Cloud::Gcp, "e2-standard-8", 19_570),
    (Cloud::Gcp, "n2-standard-2", 7_090),
    (Cloud::Gcp, "n2-standard-4", 14_180),
    (Cloud::Aws, "t3.small", 1_520),
    (Cloud::Aws, "t3.medium", 3_040),
    (Cloud::Aws, "t3.large", 6_070),
    (Cloud::Aws, "t3.xlarge", 12_150),
    (Cloud::Aws, "m5.large", 7_010),
    (Cloud::Aws, "m5.xlarge", 14_020),
    (Cloud::Azure, "Standard_B2s", 3_040),
    (Cloud::Azure, "Standard_B2ms", 6_070),
    (Cloud::Azure, "Standard_D2s_v3", 7_010),
    (Cloud::Azure, "Standard_D4s_v3", 14_020),
    (Cloud::Exoscale, "standard.small", 1_900),
    (Cloud::Exoscale, "standard.medium", 3_700),
    (Cloud::Exoscale, "standard.large", 7_400),
    (Cloud::Ovh, "b2-7", 3_000),
    (Cloud::Ovh, "b3-8", 4_000),
    (Cloud::Ovh, "b3-16", 8_000),
];

/// Cents for a hundred gigabytes and a month.
const DISKS: &[(Cloud, u64)] = &[
    (Cloud::Hetzner, 500),
    (Cloud::Gcp, 1_000),
    (Cloud::Aws, 800),
    (Cloud::Azure, 1_000),
    (Cloud::Exoscale, 1_000),
    (Cloud::Ovh, 450),
];

pub(super) fn usual() -> Prices {
    let machine = |(cloud, kind, cents): &(Cloud, &str, u64)| MachinePrice {
        provider: Provider::Cloud(*cloud),
        server_type: (*kind).to_owned(),
        region: None,
        spot: false,
        cents: *cents,
    };
    let disk = |(cloud, cents): &(Cloud, u64)| DiskPrice {
        provider: Provider::Cloud(*cloud),
        region: None,
        cents_per_100_gb: *cents,
    };
    Prices {
        as_of: AS_OF.to_owned(),
        machines: MACHINES.iter().map(machine).collect(),
        disks: DISKS.iter().map(disk).collect(),
    }
}
