//! What whoever applies or plans a manifest should know, and its journey does not show.

use crate::body::Tx;
use crate::error::Error;
use crate::lives;
use crate::submit::Preview;
use model::cluster::Machine;
use model::manifest::{Manifest, Pool};
use model::name::Name;
use model::observed::MachineFact;
use model::time::Timestamp;
use plan::Change;

/// Pools that wishes hold at another size, secrets that are not set, pods that have to go, and clusters of the same names that
/// are still on their way out.
pub(crate) fn of(
    tx: &mut dyn Tx,
    (project, manifest): (&Name, &Manifest),
    previews: &[Preview],
    now: Timestamp,
) -> Result<Vec<String>, Error> {
    let mut notes: Vec<_> = previews
        .iter()
        .flat_map(|preview| {
            let wished = wished(preview, manifest, now).into_iter();
            wished.chain(unset(preview)).chain(evicted(preview))
        })
        .collect();
    for life in lives::leaving(tx, project)? {
        let successor = |preview: &&Preview| {
            let Preview { desired, .. } = preview;
            desired.name == life.name && desired.cluster != life.id && !desired.tombstone
        };
        if previews.iter().any(|preview| successor(&preview)) {
            let (fact, next) = life.still_leaving();
            notes.push(format!("{fact}; {next}"));
        }
    }
    Ok(notes)
}

fn wished(
    Preview { desired, known, .. }: &Preview,
    manifest: &Manifest,
    now: Timestamp,
) -> Vec<String> {
    let named = |pool: &Name| match manifest.pools.get(pool) {
        Some(Pool::Dynamic(pool)) => Some(pool.declared()),
        Some(Pool::Static(_) | Pool::Metal(_)) | None => None,
    };
    let wished = plan::wished(desired, &known.intents, now).into_iter();
    // Another number than at the time of the wish ends it.
    let wished = wished.filter(|of| named(of.pool) == Some(of.declared));
    wished
        .map(|of| format!("cluster {}: {of}; {}", desired.name, of.next_action()))
        .collect()
}

fn evicted(Preview { desired, known, .. }: &Preview) -> Vec<String> {
    let told = plan::evicted(&known.desired, desired, &known.observed).into_iter();
    told.map(|of| format!("cluster {}: {of}", desired.name))
        .collect()
}

/// Secrets without which machines that are there could not be removed any more.
fn unset(
    Preview {
        desired,
        known,
        change,
    }: &Preview,
) -> Vec<String> {
    if *change == Change::New {
        return Vec::new();
    }
    let there = |machine: &&Machine| {
        let seen = known.observed.machines.get(&machine.id);
        let fact = seen.and_then(|seen| seen.machine.as_ref());
        fact.is_some_and(|(fact, _)| !matches!(fact, MachineFact::Absent))
    };
    let there: Vec<_> = desired.all().filter(there).collect();
    let told = known.missing().iter().filter_map(|secret| {
        let needs = |machine: &&&Machine| machine.origin.secrets().any(|of| of == *secret);
        let machines = match there.iter().filter(needs).count() {
            0 => return None,
            1 => "1 machine that is there".to_owned(),
            many => format!("{many} machines that are there"),
        };
        Some(format!(
            "cluster {}: secret {secret} is not set, and {machines} can neither be changed nor removed \
             until it is",
            desired.name
        ))
    });
    told.collect()
}
