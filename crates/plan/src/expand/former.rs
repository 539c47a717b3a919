//! What load balancers were before, for as long as something of that may be left.

use super::Known;
use model::cluster::{Balancer, Desired, Forward, Machine};
use model::name::Name;

/// Load balancers that are declared no more and whose machines are still to leave, as they were;
/// and of those that stay, by what they passed the API on and should no more.
///
/// A load balancer with another name is another one. Until that serves, this one does, and whom it
/// sends to may change meanwhile: nobody could tell it who only knew what it is called.
pub(super) fn former(start: &Desired, before: Option<Known<'_>>, grown: &Desired) -> Vec<Balancer> {
    let mut former = Vec::new();
    for was in start.balancers.iter().chain(&start.former) {
        let known = |of: &Balancer| of.name == was.name;
        if former.iter().any(known) {
            continue;
        }
        let roles = match grown.balancers.iter().find(|of| known(of)) {
            None if has_machines(grown, &was.name) => roles(start, &was.name),
            None => continue,
            Some(now) if now.roles.iter().any(Forward::is_api_door) => continue,
            Some(_) => passed(start, before, &was.name),
        };
        if !roles.is_empty() {
            former.push(Balancer {
                name: was.name.clone(),
                roles,
                dns: None,
            });
        }
    }
    former
}

/// Whether a machine of a load balancer is to leave.
fn has_machines(grown: &Desired, balancer: &Name) -> bool {
    let mut leaving = grown.leaving.iter();
    leaving.any(|machine| machine.balancer.as_ref() == Some(balancer))
}

/// All that a load balancer listened to, in the order of ports.
fn roles(start: &Desired, balancer: &Name) -> Vec<Forward> {
    let was = start.balancers.iter().chain(&start.former);
    let of_this = was.filter(|of| of.name == *balancer);
    let mut roles: Vec<Forward> = Vec::new();
    for role in of_this.flat_map(|of| &of.roles) {
        let door = |of: &Forward| (of.protocol, of.port);
        if !roles.iter().any(|known| door(known) == door(role)) {
            roles.push(role.clone());
        }
    }
    roles.sort_by_key(|role| role.port);
    roles
}

/// By what a load balancer passed the API on, where one of its machines was seen to: nodes are led
/// to no other.
fn passed(start: &Desired, before: Option<Known<'_>>, balancer: &Name) -> Vec<Forward> {
    let passes = |machine: &Machine, role: &Name| {
        let seen = before.and_then(|known| known.observed.machines.get(&machine.id));
        let told = seen.and_then(|seen| seen.host.as_ref()?.0.balance.as_ref());
        told.is_some_and(|told| told.healthy.contains_key(role))
    };
    let still = |role: &Forward| {
        let of_this = |machine: &&Machine| machine.balancer.as_ref() == Some(balancer);
        let mut machines = start.all().filter(of_this);
        machines.any(|machine| passes(machine, &role.name))
    };
    let mut roles = roles(start, balancer);
    roles.retain(|role| role.is_api_door() && still(role));
    roles
}
