//! The host through which the machines of a static pool are reached: `jumpHost`.

use super::fields::Fields;
use super::manifest::Read;
use super::pools::{Endpoint, enterable, port_of, username_of};
use super::secrets;
use crate::fault::{Code, Faults};
use crate::manifest::{JumpHost, Pool};
use std::collections::BTreeMap;

/// What a static pool says of its jump host; `Err` where that has faults.
pub(super) fn of_pool(
    pool: &mut Fields<'_>,
    faults: &mut Faults,
) -> Result<Option<JumpHost>, Faulty> {
    let said = pool.has("jumpHost");
    match pool.mapping("jumpHost", faults) {
        Some(fields) => jump_of(fields, faults).map(Some).ok_or(Faulty),
        None if said => Err(Faulty),
        None => Ok(None),
    }
}

/// Its faults are told.
pub(super) struct Faulty;

fn jump_of(mut fields: Fields<'_>, faults: &mut Faults) -> Option<JumpHost> {
    let endpoint = fields.parsed("endpoint", faults);
    let endpoint = endpoint.map(|Endpoint(address)| address);
    let ssh_port = port_of(&mut fields, faults);
    let username = username_of(&mut fields, faults);
    let secret = secrets::named(&mut fields, Some(secrets::SSH_KEY), faults);
    if let Some(endpoint) = endpoint {
        enterable(endpoint, secret.is_some(), &fields, faults);
    }
    fields.finish(faults);
    Some(JumpHost {
        endpoint: endpoint?,
        ssh_port,
        username: username?,
        secret,
    })
}

/// Jump hosts that cannot be one: those that are reached through a jump host themselves, also
/// through themselves, and those of the simulated world in front of real machines.
pub(super) fn check(pools: &[Read<Pool>], faults: &mut Faults) {
    let fixed = pools.iter().filter_map(|pool| match &pool.value {
        Some(Pool::Static(fixed)) => Some((pool, fixed)),
        Some(Pool::Dynamic(_) | Pool::Metal(_)) | None => None,
    });
    let behind = fixed.clone().filter(|(_, fixed)| fixed.jump.is_some());
    let behind = behind.flat_map(|(pool, fixed)| {
        let nodes = fixed.hosts.iter().enumerate();
        nodes.map(|(at, host)| (host.endpoint, format!("{}.nodes[{at}]", pool.path)))
    });
    let behind: BTreeMap<_, _> = behind.collect();
    for (pool, fixed) in fixed {
        let Some(jump) = &fixed.jump else { continue };
        let path = || format!("{}.jumpHost.endpoint", pool.path);
        let endpoint = jump.endpoint;
        let real = |host: &crate::manifest::Host| !host.endpoint.is_documentation();
        if let Some(node) = behind.get(&endpoint) {
            let message = format!(
                "found {endpoint}, the machine at {node}, which is reached through a jump host itself; \
                 allowed: a host that is reached directly"
            );
            faults.note(path(), Code::Reference, message);
        } else if endpoint.is_documentation() && fixed.hosts.iter().any(real) {
            let message = format!(
                "found {endpoint}, an address of the simulated world, allowed: where a machine answers, \
                 because machines of this pool are real"
            );
            faults.note(path(), Code::Range, message);
        }
    }
}
