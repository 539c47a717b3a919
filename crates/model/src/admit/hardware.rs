//! What machines of a dynamic pool are made with: `storageDiskSize`, `machineSpec` and `spot`.

use super::fields::Fields;
use crate::fault::{Code, Faults};
use crate::hardware::{Hardware, MachineSpec};
use crate::provider::{Cloud, Provider};

/// The smallest and the largest data disk, in GB.
const DISK_MIN: u32 = 50;
pub(crate) const DISK_MAX: u32 = 65_536;

/// More processors, and more GB of memory, than any machine has.
pub(crate) const CPUS_MAX: u32 = 4_096;
pub(crate) const MEMORY_MAX: u32 = 131_072;
pub(crate) const GPUS_MAX: u32 = 64;

/// What a pool says of its machines besides their type and image; the external network stands
/// elsewhere.
pub(super) fn of_pool(
    fields: &mut Fields<'_>,
    via: Option<Provider>,
    faults: &mut Faults,
) -> Hardware {
    let disk = fields.optional_number("storageDiskSize", 0..=DISK_MAX, faults);
    if let Some(found) = disk.filter(|found| (1..DISK_MIN).contains(found)) {
        let message = format!("found {found}, allowed: 0 for no disk, or at least {DISK_MIN} (GB)");
        faults.note(fields.path("storageDiskSize"), Code::Range, message);
    }
    let machine = machine_of(fields, via, faults);
    let spot = fields.optional_flag("spot", faults).unwrap_or(false);
    if let Some(via) = via.filter(|via| spot && !via.lends_spot()) {
        let lending = Provider::all().filter(|other| other.lends_spot());
        let lending: Vec<_> = lending.map(Provider::as_str).collect();
        let message = format!(
            "found true on a provider of type {}, allowed: on those of type {}",
            via.as_str(),
            lending.join(", ")
        );
        faults.note(fields.path("spot"), Code::Unsupported, message);
    }
    Hardware {
        disk,
        spot,
        external_network: None,
        subnet: None,
        machine,
        templates: None,
    }
}

fn machine_of(
    fields: &mut Fields<'_>,
    via: Option<Provider>,
    faults: &mut Faults,
) -> Option<MachineSpec> {
    let mut spec = fields.mapping("machineSpec", faults)?;
    let cpus = spec.optional_number("cpuCount", 0..=CPUS_MAX, faults);
    let memory = spec.optional_number("memory", 0..=MEMORY_MAX, faults);
    let (cpus, memory) = (
        cpus.filter(|found| *found > 0),
        memory.filter(|found| *found > 0),
    );
    let alone = match (cpus, memory) {
        (Some(_), None) => Some(("memory", "cpuCount")),
        (None, Some(_)) => Some(("cpuCount", "memory")),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if let Some((missing, beside)) = alone {
        let message = format!("found nothing, allowed: a number beside {beside}");
        faults.note(spec.path(missing), Code::Required, message);
    }
    let count = spec.optional_number("nvidiaGpuCount", 0..=GPUS_MAX, faults);
    // What files from before called it.
    let older = spec.optional_number("nvidiaGpu", 0..=GPUS_MAX, faults);
    if let (Some(count), Some(older)) = (count, older)
        && count > 0
        && older > 0
        && count != older
    {
        let message =
            format!("found {older}, allowed: {count}, which nvidiaGpuCount says, or nothing");
        faults.note(spec.path("nvidiaGpu"), Code::Duplicate, message);
    }
    let gpus = count.filter(|found| *found > 0).or(older).unwrap_or(0);
    let gpu_type = spec.optional_text("nvidiaGpuType", faults);
    if gpus > 0 && gpu_type.is_none() && via == Some(Provider::Cloud(Cloud::Gcp)) {
        let message = "found nothing, allowed: which graphics processors; a provider of type gcp has to be told";
        faults.note(spec.path("nvidiaGpuType"), Code::Required, message);
    }
    spec.finish(faults);
    let said = MachineSpec {
        cpus,
        memory,
        gpus,
        gpu_type: gpu_type.map(str::to_owned),
    };
    Some(said).filter(|said| *said != MachineSpec::default())
}
