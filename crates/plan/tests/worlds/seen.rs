//! What is seen of a world.

use crate::NOW;
use crate::besides;
use crate::declared::{Declared, SCALED_MAX, grown, manifest};
use crate::life::wish;
use crate::shape::{Kit, Sight, World};
use model::balancer::BalanceFact;
use model::cluster::{Desired, Machine, Role};
use model::host::{Fingerprint, Recipe};
use model::intent::{Intent, Wish};
use model::manifest::Manifest;
use model::mesh::{Member, Mesh};
use model::observed::{
    CertificatesFact, HostFact, MachineFact, NodeFact, Observed, PortFact, Seen,
};
use model::secret::SecretRef;
use model::time::Timestamp;
use model::version::Version;
use plan::{Elsewhere, Known, retire};
use std::net::IpAddr;
use std::time::Duration;

/// What is declared before the edit, and after it.
pub(crate) fn declared(world: &World) -> [Manifest; 2] {
    let tight = world.more.past.as_ref().is_some_and(|past| past.tight);
    // A network is no smaller than admission allows, and is never another.
    let most = |count: (u32, u32)| count.0.max(count.1);
    let hosts = world.hosts.0.1.max(world.hosts.1.1);
    let door = |door: Option<(u32, &str)>| door.map_or(0, |(count, _)| count);
    let doors = most((door(world.front.0.door), door(world.front.1.door)));
    let workers = most(world.compute).max(SCALED_MAX);
    let tight = tight && most(world.control) + workers + u32::from(hosts) + doors <= 13;
    let of = |first: bool, minor: u16| {
        let either = |both: (u32, u32)| if first { both.0 } else { both.1 };
        manifest(&Declared {
            control: either(world.control),
            compute: either(world.compute),
            hosts: if first { world.hosts.0 } else { world.hosts.1 },
            minor,
            tight,
            rules: if first {
                &world.rules.0
            } else {
                &world.rules.1
            },
            front: if first {
                &world.front.0
            } else {
                &world.front.1
            },
            upkeep: if first {
                &world.upkeep.0
            } else {
                &world.upkeep.1
            },
        })
    };
    [of(true, 34), of(false, minor(world))]
}

/// Some are upgraded over several minors; which of them are follows from what else is so of them.
const fn minor(world: &World) -> u16 {
    match (world.upgrade, world.compute.1) {
        (false, _) => 34,
        (true, 3..) => 36,
        (true, _) => 35,
    }
}

/// The size that is wished for a pool, which counts where it is scaled.
pub(crate) fn scale(count: u32) -> Intent {
    wish(Wish::Scale {
        pool: "muscle".parse().unwrap(),
        count,
        was: 0,
    })
}

/// The desired state after an edit, and what is seen of its machines.
pub(crate) fn made(world: &World) -> (Desired, Observed) {
    let [before, after] = declared(world);
    let first = grown(None, &before, NOW).unwrap();
    let mut observed = Observed::default();
    if world.more.past.is_some() {
        sighted(world, &first, &mut observed);
        kitted(world, &first, &mut observed);
    }
    let edited = |desired: &Desired, observed: &Observed| {
        let known = Known {
            desired,
            observed,
            intents: &[scale(world.compute.1)],
            open: &[],
        };
        grown(Some(known), &after, NOW)
    };
    let mut next = edited(&first, &observed).unwrap_or_else(|| {
        // What cannot be edited was so from the beginning.
        observed = Observed::default();
        let first = grown(None, &after, NOW).unwrap();
        edited(&first, &observed).unwrap()
    });
    sighted(world, &next, &mut observed);
    kitted(world, &next, &mut observed);
    besides::beside(world, &mut next, &mut observed);
    let desired = if world.delete {
        retire(Known {
            desired: &next,
            observed: &observed,
            intents: &[],
            open: &[],
        })
    } else {
        next
    };
    (desired, observed)
}

fn node(minor: u16, ready: bool, (cordoned, gated): (bool, bool)) -> NodeFact {
    NodeFact::Joined {
        ready,
        cordoned,
        version: Version { minor, patch: 0 },
        care: None,
        asks: false,
        gated,
    }
}

/// Lets machines be seen that were not before.
fn sighted(world: &World, desired: &Desired, observed: &mut Observed) {
    let sights = world.sights.iter().zip(&world.ends).cycle();
    for (machine, (sight, left)) in desired.all().zip(sights) {
        if observed.machines.contains_key(&machine.id) {
            continue;
        }
        let running = MachineFact::Running {
            reference: "vm".to_owned(),
            address: IpAddr::V4(machine.address),
        };
        let (fact, node) = match *sight {
            Sight::Unseen => continue,
            Sight::Absent => (MachineFact::Absent, None),
            Sight::Booting => (
                MachineFact::Booting {
                    reference: "vm".to_owned(),
                },
                None,
            ),
            Sight::Running => (running, None),
            Sight::Lost => (
                MachineFact::Unreachable {
                    reference: "vm".to_owned(),
                    because: None,
                },
                None,
            ),
            Sight::Outlived => {
                let node = node(34, false, (false, false));
                let node = observed.initialised.then_some(node);
                (MachineFact::Absent, node.filter(|_| machine.role.is_node()))
            }
            Sight::Node {
                ready,
                cordoned,
                gated,
                old,
            } => {
                observed.initialised |= machine.role == Role::Control;
                let minor = if old { 34 } else { minor(world) };
                let node = node(minor, ready, (cordoned, gated));
                (running, machine.role.is_node().then_some(node))
            }
        };
        // Some firewalls were asked, and some not.
        let port = left.filter(|_| machine.has_firewall());
        let port = port.map(|days| PortFact {
            open: days % 2 == 0,
        });
        let left = left.filter(|_| node.is_some() && machine.role == Role::Control);
        let end = left.map(|days| NOW.plus(Duration::from_hours(u64::from(days) * 24)));
        let seen = Seen {
            machine: Some((fact, NOW)),
            node: node.map(|node| (node, NOW)),
            host: None,
            certificates: end.map(|end| (CertificatesFact { end }, NOW)),
            names: None,
            port: port.map(|port| (port, NOW)),
        };
        observed.machines.insert(machine.id, seen);
    }
}

/// Whether a machine was seen as a node.
pub(crate) fn joined(observed: &Observed, machine: &Machine) -> bool {
    let seen = observed.machines.get(&machine.id);
    let node = seen.and_then(|seen| seen.node.as_ref());
    matches!(node, Some((NodeFact::Joined { .. }, _)))
}

/// What a load balancer tells that works and was told something else than it should be.
pub(crate) fn passing() -> BalanceFact {
    let roles = ["web", "api"].map(|role| (role.parse().unwrap(), 1));
    BalanceFact {
        told: Fingerprint::of_text("something else"),
        healthy: roles.into(),
    }
}

/// What hosts say of themselves.
pub(crate) fn kitted(world: &World, desired: &Desired, observed: &mut Observed) {
    observed.access = world.access.then(|| "ssh-ed25519 AAAA".to_owned());
    let placed = || desired.all().zip(world.kits.iter().cycle());
    for (machine, kit) in placed().filter(|(machine, _)| machine.origin.is_host()) {
        let old = Recipe {
            purpose: machine.role.purpose(),
            proxy: None,
            playbooks: Vec::new(),
        };
        let recipe = match kit {
            Kit::Keyed { old: true } => old,
            Kit::Unknown
            | Kit::Bare
            | Kit::Keyed { old: false }
            | Kit::Meshed { .. }
            | Kit::Whole => desired.recipe(machine, joined(observed, machine)),
        };
        let keyed = !matches!(kit, Kit::Unknown | Kit::Bare);
        let key = format!("{:A<43}=", machine.id.to_string().replace('-', "/"));
        let host = HostFact {
            at: Some(IpAddr::V4(machine.address)),
            equipped: keyed.then(|| recipe.fingerprint()),
            mesh_key: keyed.then(|| key.parse().unwrap()),
            ..HostFact::default()
        };
        if let Some(seen) = observed.machines.get_mut(&machine.id)
            && seen.host.is_none()
        {
            seen.host = (!matches!(kit, Kit::Unknown)).then_some((host, NOW));
        }
    }
    let mesh = mesh(desired, observed);
    for (machine, kit) in placed() {
        let seen = observed.machines.get_mut(&machine.id);
        if let Some((host, _)) = seen.and_then(|seen| seen.host.as_mut())
            && machine.role == Role::Balancer
            && matches!(kit, Kit::Whole)
        {
            host.balance = Some(passing());
        }
        let told = match kit {
            Kit::Whole => Some((true, true)),
            Kit::Meshed { told, live } => Some((*told, *live)),
            Kit::Unknown | Kit::Bare | Kit::Keyed { .. } => None,
        };
        let fact = mesh.tunnel(machine.id).map(|tunnel| tunnel.fact());
        if let (Some((told, live)), Some(mut fact)) = (told, fact)
            && let Some((host, _)) = observed
                .machines
                .get_mut(&machine.id)
                .unwrap()
                .host
                .as_mut()
        {
            let other = || Fingerprint::of_text("something else");
            fact.told = if told { fact.told } else { other() };
            fact.live = if live { fact.live } else { other() };
            host.mesh = Some(fact);
        }
    }
}

/// The mesh of all hosts that have a key.
pub(crate) fn mesh(desired: &Desired, observed: &Observed) -> Mesh {
    let member = |machine: &Machine| {
        let (host, _) = observed.machines.get(&machine.id)?.host.as_ref()?;
        Some(Member {
            machine: machine.clone(),
            key: host.mesh_key.clone()?,
            at: host.at?,
            pods: desired.pods_of(machine),
        })
    };
    let mut members: Vec<_> = desired.all().filter_map(member).collect();
    members.sort_by_key(|member| member.machine.address);
    let to = members.iter().map(|member| member.machine.id).collect();
    Mesh {
        network: desired.network,
        pods: desired.kubernetes.through_mesh(),
        members,
        to,
    }
}

/// The day on which the certificates of a machine end.
pub(crate) fn ends(observed: &Observed, machine: &Machine) -> Option<Timestamp> {
    let seen = observed.machines.get(&machine.id)?;
    seen.certificates.as_ref().map(|(fact, _)| fact.end)
}

/// The rows that other clusters hold, and the secrets that nobody has set.
pub(crate) fn around(world: &World) -> (Vec<Elsewhere>, Vec<SecretRef>) {
    let row = |n| Elsewhere {
        cluster: "west".parse().unwrap(),
        machine: format!("west-{n}").parse().unwrap(),
        group: "rack".parse().unwrap(),
    };
    let secret = |name: &str, key: Option<&str>| SecretRef {
        name: name.parse().unwrap(),
        key: key.map(|key| key.parse().unwrap()),
    };
    let (account, keys) = world.missing;
    let mut missing = Vec::new();
    missing.extend(account.then(|| secret("account", None)));
    missing.extend(keys.then(|| secret("keys", Some("privatekey"))));
    ((0..world.elsewhere).map(row).collect(), missing)
}
