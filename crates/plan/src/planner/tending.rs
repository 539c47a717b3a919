//! What nodes carry, and where they find the API.
//!
//! The API has one name, and every node knows for itself where that leads: nodes follow when it
//! moves, in any order and all at once. Nobody is led to a load balancer before that passes the API
//! on, and what they were led to stays until they are led away.

use super::draft::Draft;
use super::hosts::balancers;
use super::ports;
use super::rules::{cannot_join, joinable};
use super::survey::{Life, Place};
use crate::care::care;
use crate::held::Reason;
use model::care::Care;
use model::cluster::{Desired, Machine, Origin, Role};
use model::host::Fingerprint;
use model::name::Name;
use model::task::{Action, Kind};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;

/// What nodes may have been told, for each role.
type Told<'a> = BTreeMap<Role, BTreeMap<Kin<'a>, Lore<'a>>>;

/// Machines of which nodes carry the same: those of a pool that stand in one place. A pool that moves has
/// some in each.
type Kin<'a> = (&'a Name, Option<Spot<'a>>);

/// Where a machine that we make stands: its provider and the type of that, its region and its zone.
type Spot<'a> = (&'a Name, &'static str, &'a str, Option<&'a str>);

fn kin(machine: &Machine) -> Kin<'_> {
    let spot = match &machine.origin {
        Origin::Made {
            provider,
            via,
            region,
            zone,
            ..
        } => Some((provider, via.as_str(), region.as_str(), zone.as_deref())),
        Origin::Given { .. } => None,
    };
    (&machine.pool, spot)
}

/// What the nodes of a pool in one place may have been told: the first is what others are told.
struct Lore<'a> {
    desired: &'a Desired,
    /// One of them: what they carry is the same.
    machine: &'a Machine,
    /// Each by itself. Mostly all were told the first, and nobody asks for the others.
    known: Vec<Way>,
}

/// Where a node finds the API, and what it is told then, once somebody has asked.
type Way = (Rc<[Ipv4Addr]>, OnceCell<(Care, Fingerprint)>);

impl Lore<'_> {
    /// All of it, worked out as far as somebody asks.
    fn known(&self) -> impl Iterator<Item = &(Care, Fingerprint)> + Clone {
        self.known.iter().map(|(api, known)| {
            known.get_or_init(|| {
                let care = care(self.desired, self.machine, api);
                let print = care.fingerprint();
                (care, print)
            })
        })
    }
}

/// What nodes should be told.
pub(super) struct Cares<'a> {
    told: Told<'a>,
    /// Whether the load balancer that should pass the API on does so.
    passes: bool,
    /// The member whose port opens before anybody can be led anywhere, where that is so.
    shut: Option<Name>,
}

impl<'a> Cares<'a> {
    pub(super) fn of(draft: &Draft<'a>) -> Self {
        let Ways { all, passes, shut } = ways(draft);
        let all: Vec<Rc<[Ipv4Addr]>> = all.into_iter().map(Rc::from).collect();
        let own: Vec<Rc<[Ipv4Addr]>> = vec![Rc::from([])];
        let mut told = Told::new();
        for place in &draft.survey.places {
            let machine = place.machine;
            let ways = match machine.role {
                Role::Control => &own,
                Role::Compute => &all,
                Role::Balancer => continue,
            };
            let lore = told.entry(machine.role).or_default().entry(kin(machine));
            lore.or_insert_with(|| Lore {
                desired: draft.view.desired,
                machine,
                known: ways
                    .iter()
                    .map(|api| (api.clone(), OnceCell::new()))
                    .collect(),
            });
        }
        Self { told, passes, shut }
    }

    fn lore<'s>(&'s self, place: &'s Place<'_>) -> Option<&'s Lore<'s>> {
        let pools = self.told.get(&place.machine.role)?;
        pools.get(&kin(place.machine))
    }

    fn known<'s>(
        &'s self,
        place: &'s Place<'_>,
    ) -> impl Iterator<Item = &'s (Care, Fingerprint)> + Clone {
        self.lore(place).into_iter().flat_map(Lore::known)
    }

    /// Whether there is anything that a node may be told.
    fn leads(&self, place: &Place<'_>) -> bool {
        let lore = self.lore(place);
        lore.is_some_and(|lore| !lore.known.is_empty())
    }

    /// What a node should be told. What was begun or told goes on while it leads somewhere.
    pub(super) fn wished(&self, place: &Place<'_>) -> Care {
        let begun = place.open.and_then(|open| open.action.care());
        let mut known = self.known(place).map(|(care, _)| care);
        let goes_on = begun.and_then(|begun| known.clone().find(|care| *care == begun));
        let stays = goes_on.or_else(|| self.told(place));
        stays.or_else(|| known.next()).cloned().unwrap_or_default()
    }

    /// Whether the load balancer that should pass the API on does so.
    pub(super) const fn passes(&self) -> bool {
        self.passes
    }

    /// Why nobody is led anywhere now: no port is open where the API is.
    pub(super) fn unreached(&self) -> Option<Reason> {
        let after = self.shut.clone()?;
        Some(Reason::Turn { after })
    }

    /// Whether somebody has to be led to a machine, and all ports are shut there.
    pub(super) fn needs_port(&self, draft: &Draft<'_>) -> bool {
        let led = |place: &Place<'_>| joinable(place) || untended(self, place);
        let places = draft.survey.places.iter();
        let mut led = places.filter(|place| place.machine.role == Role::Compute && led(place));
        self.shut.is_some() && led.next().is_some()
    }

    /// Whether a node carries what it should, and finds the API.
    fn met(&self, place: &Place<'_>) -> bool {
        self.told(place).is_some()
    }

    /// What a node was told of all that it may have been.
    fn told<'s>(&'s self, place: &'s Place<'_>) -> Option<&'s Care> {
        // Who was told nothing was told none of it.
        let print = place.care?;
        let mut known = self.known(place);
        let told = known.find(|(_, known)| known == print);
        told.map(|(care, _)| care)
    }
}

/// Where nodes without an API of their own may find it.
struct Ways {
    /// The first is where they are led, unless a port has to open before.
    all: Vec<Vec<Ipv4Addr>>,
    /// Whether the load balancer that should pass it on does so.
    passes: bool,
    /// The first member, where there is no way but to one of them and no port is open.
    shut: Option<Name>,
}

/// Where nodes without an API of their own may find it.
///
/// Whoever is led to a load balancer stays with it while it is there, and whoever is led to one
/// member of the control plane stays with that while it answers: nobody is moved back and forth.
fn ways(draft: &Draft<'_>) -> Ways {
    let doors = |which: fn(&Draft<'_>, &Place<'_>) -> bool| {
        let doors = draft.survey.places.iter();
        let doors = doors.filter(|place| which(draft, place));
        let mut doors: Vec<_> = doors.map(|place| place.machine.address).collect();
        // Who comes and who goes changes nothing but itself.
        doors.sort();
        doors
    };
    let (open, known) = (doors(balancers::passes_api), doors(balancers::knows_api));
    let (mut ways, mut shut) = (Vec::new(), None);
    let (passes, mut others) = (!open.is_empty(), vec![known]);
    if open.is_empty() {
        // Until the one to which the API moves passes it on, nodes stay with the one from which it
        // does.
        let before = doors(balancers::passed_api);
        let moves = draft.view.desired.api_balancer().is_some() || !before.is_empty();
        ways.extend((!before.is_empty()).then_some(before));
        ways.extend(members(draft));
        shut = shut_out(draft).filter(|_| ways.is_empty());
        // One that passes nothing on any more keeps nobody from a machine that can be reached.
        if moves || shut.is_some() {
            others.push(doors(balancers::knew_api));
        }
    } else {
        ways.push(open);
    }
    for other in others {
        let led = !ways.is_empty() || shut.is_some();
        if !other.is_empty() && led && !ways.contains(&other) {
            ways.push(other);
        }
    }
    Ways {
        all: ways,
        passes,
        shut,
    }
}

/// The first member of the control plane that answers, where the world is kept from all of them.
pub(super) fn shut_out(draft: &Draft<'_>) -> Option<Name> {
    let members = || draft.survey.members().filter(|place| place.ready_control());
    let open = members().any(|place| ports::is_open(draft, place));
    let first = members().next().filter(|_| !open)?;
    Some(first.machine.name.clone())
}

/// The member of the control plane to which nodes are to be led, where its port is still to open. Who
/// passes the API on until then goes on to: where they are led does not depend on whose port opens
/// first.
pub(super) fn to_open(draft: &Draft<'_>) -> Option<Name> {
    let ready = |wanted: bool| {
        let mut members = draft.survey.members();
        members.find(|place| place.wanted == wanted && place.ready_control())
    };
    let first = ready(true).or_else(|| ready(false))?;
    let shut = !ports::is_open(draft, first);
    shut.then(|| first.machine.name.clone())
}

/// Members of the control plane that answer and that can be reached, each by itself; those to leave
/// where there is no other. One that we change will answer again, and nobody is led away from it.
fn members(draft: &Draft<'_>) -> Vec<Vec<Ipv4Addr>> {
    let some = |which: fn(&Place<'_>) -> bool| {
        let members = draft.survey.members();
        let members = members.filter(move |place| which(place) && ports::is_open(draft, place));
        members.map(|place| vec![place.machine.address])
    };
    let mut members: Vec<_> = some(|place| place.wanted && place.ready_control()).collect();
    if members.is_empty() {
        return some(|place| !place.wanted && place.ready_control()).collect();
    }
    let changing = |place: &Place<'_>| {
        let changed = place.slot && place.life != Life::Unreachable;
        place.wanted && changed && !place.ready_control()
    };
    members.extend(some(changing));
    members
}

/// Nodes that do not carry what they should, look for the API where it is not, or ask for a
/// certificate. All at once: no workload is touched.
pub(super) fn tend(draft: &mut Draft<'_>, cares: &Cares<'_>) {
    let lost = cannot_join(draft.survey);
    let comes = balancers::api_to_come(draft, cares).map(|door| Reason::Turn {
        after: door.machine.name.clone(),
    });
    let unreached = cares.unreached();
    for place in &draft.survey.places {
        let nowhere = !cares.leads(place) && cares.shut.is_none();
        let asks = place.life == Life::Running && place.node.is_some_and(|node| node.asks);
        if draft.is_busy(place) || nowhere || !asks && !untended(cares, place) {
            continue;
        }
        // Who finds the API is not led anywhere.
        let unreached = unreached.as_ref().filter(|_| !cares.met(place));
        let waits = unreached.or(comes.as_ref());
        let waits = waits.filter(|_| place.machine.role == Role::Compute);
        if let Some(reason) = lost.as_ref().or(waits) {
            draft.hold(place, Kind::Tend, reason.clone());
        } else {
            let care = cares.wished(place);
            draft.want(place, Action::Tend { care });
        }
    }
}

/// Whether a node that could be told was told something else.
fn untended(cares: &Cares<'_>, place: &Place<'_>) -> bool {
    place.node.is_some() && place.life == Life::Running && !cares.met(place)
}

/// Why a machine may not go yet: nodes may look for the API there, or nobody could anywhere else.
pub(super) fn still_asked(
    draft: &Draft<'_>,
    cares: &Cares<'_>,
    place: &Place<'_>,
) -> Option<Reason> {
    // Nodes may still be led to a load balancer that was made anew and knows nothing yet.
    let (api, passes) = match place.machine.role {
        Role::Control => (place.node.is_some(), true),
        Role::Balancer => (true, balancers::is_told(place)),
        Role::Compute => (false, false),
    };
    let asks = asker(draft, cares, place, passes).filter(|_| api);
    // People look for it there, too, and go with it.
    let shut = || to_open(draft).filter(|_| balancers::gives_up_api(draft, place));
    let after = asks.map(|asks| asks.machine.name.clone()).or_else(shut)?;
    Some(Reason::Turn { after })
}

/// A node that answers and looks for the API on a machine, or may: where somebody `passes` it on, a
/// node of which nobody knows where it looks may look there.
pub(super) fn asker<'s, 'a>(
    draft: &'s Draft<'a>,
    cares: &Cares<'_>,
    place: &Place<'_>,
    passes: bool,
) -> Option<&'s Place<'a>> {
    let asks = |other: &&Place<'_>| {
        let given_up = || draft.cancelled(other.machine.id, Kind::Tend).is_some();
        let told = cares.told(other);
        // Of a node that was told what nobody knows any more nobody knows where it looks.
        let unknown = passes || other.care.is_some();
        let there = told.map_or(unknown, |care| care.api.contains(&place.machine.address));
        let node = other.machine.role == Role::Compute && other.node.is_some();
        node && other.life == Life::Running && there && !given_up()
    };
    draft.survey.places.iter().find(asks)
}
