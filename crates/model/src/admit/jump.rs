//! The host through which the machines of a static pool are reached: `jumpHost`.

use super::fields::Fields;
use super::parts::Parts;
use super::pools::{Endpoint, Kind, Standing, Stock, enterable, port_of, username_of};
use super::secrets;
use crate::fault::{Code, Faults};
use crate::manifest::JumpHost;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A jump host as read.
pub(super) struct Jump {
    /// Where it stands, where that could be read.
    pub(super) endpoint: Option<Ipv4Addr>,
    pub(super) whole: Option<JumpHost>,
}

/// What a static pool says of its jump host, where it has one.
pub(super) fn of_pool(pool: &mut Fields<'_>, faults: &mut Faults) -> Option<Jump> {
    let said = pool.has("jumpHost");
    let fields = pool.mapping("jumpHost", faults);
    let nothing = said.then_some(Jump {
        endpoint: None,
        whole: None,
    });
    fields.map(|fields| jump_of(fields, faults)).or(nothing)
}

fn jump_of(mut fields: Fields<'_>, faults: &mut Faults) -> Jump {
    let endpoint = fields.parsed("endpoint", faults);
    let endpoint = endpoint.map(|Endpoint(address)| address);
    let ssh_port = port_of(&mut fields, faults);
    let username = username_of(&mut fields, faults);
    let secret = secrets::named(&mut fields, Some(secrets::SSH_KEY), faults);
    if let Some(endpoint) = endpoint {
        enterable(endpoint, secret.is_some(), &fields, faults);
    }
    fields.finish(faults);
    let whole = || {
        Some(JumpHost {
            endpoint: endpoint?,
            ssh_port: ssh_port?,
            username: username?,
            secret,
        })
    };
    Jump {
        endpoint,
        whole: whole(),
    }
}

/// Jump hosts that cannot be one: those that are reached through a jump host themselves, also
/// through themselves, and those of the simulated world in front of real machines.
pub(super) fn check(pools: &Parts<Stock>, faults: &mut Faults) {
    let fixed = pools.all.iter().filter_map(|pool| match &pool.value.kind {
        Kind::Static(fixed) => Some((pool, fixed)),
        Kind::Dynamic(_) | Kind::Metal => None,
    });
    let behind = fixed.clone().filter(|(_, fixed)| fixed.jump.is_some());
    let behind = behind.flat_map(|(_, fixed)| &fixed.hosts);
    let behind: BTreeMap<_, _> = behind.map(|host| (host.endpoint, &host.node)).collect();
    for (pool, fixed) in fixed {
        let jump = fixed.jump.as_ref();
        let Some(endpoint) = jump.and_then(|jump| jump.endpoint) else {
            continue;
        };
        let path = || format!("{}.jumpHost.endpoint", pool.path);
        let real = |host: &Standing| !host.endpoint.is_documentation();
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
