//! What is seen of a world, and what is under way in it.

use crate::NOW;
use crate::besides;
use crate::declared::{grown, manifest};
use crate::shape::{Kit, Sight, World};
use model::balancer::{Balance, BalanceFact};
use model::care::Care;
use model::cluster::{Desired, Machine, Origin, Role};
use model::host::{Fingerprint, Recipe};
use model::id::{IntentId, TaskId};
use model::manifest::Manifest;
use model::mesh::{Member, Mesh};
use model::observed::{CertificatesFact, HostFact, MachineFact, NodeFact, Observed, Seen};
use model::secret::SecretRef;
use model::snapshot::{Destination, Keep, Restoring, SnapshotId, Taking};
use model::task::{Action, Kind, Open, State};
use model::time::Timestamp;
use model::version::Version;
use plan::{Elsewhere, Known, retire};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// What is declared before the edit, and after it.
pub(crate) fn declared(world: &World) -> [Manifest; 2] {
    let ((c1, c2), (w1, w2)) = (world.control, world.compute);
    let minor = minor(world);
    let before = manifest(c1, w1, world.hosts.0, 34, (&world.rules.0, &world.front.0));
    let after = manifest(
        c2,
        w2,
        world.hosts.1,
        minor,
        (&world.rules.1, &world.front.1),
    );
    [before, after]
}

const fn minor(world: &World) -> u16 {
    if world.upgrade { 35 } else { 34 }
}

/// The desired state after an edit.
fn edited(world: &World) -> Desired {
    let [before, after] = declared(world);
    let first = grown(None, &before, NOW).unwrap();
    let known = Known {
        desired: &first,
        observed: &Observed::default(),
        intents: &[],
        open: &[],
    };
    grown(Some(known), &after, NOW).unwrap()
}

/// The desired state after an edit, and what is seen of its machines.
pub(crate) fn made(world: &World) -> (Desired, Observed) {
    let minor = minor(world);
    let mut next = edited(world);
    let mut observed = Observed::default();
    let sights = world.sights.iter().zip(&world.ends).cycle();
    for (machine, (sight, left)) in next.all().zip(sights) {
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
            Sight::Node {
                ready,
                cordoned,
                old,
            } => {
                let version = Version {
                    minor: if old { 34 } else { minor },
                    patch: 0,
                };
                observed.initialised |= machine.role == Role::Control;
                let node = NodeFact::Joined {
                    ready,
                    cordoned,
                    version,
                    care: None,
                    asks: false,
                };
                (running, machine.role.is_node().then_some(node))
            }
        };
        let left = left.filter(|_| node.is_some() && machine.role == Role::Control);
        let end = left.map(|days| NOW.plus(Duration::from_hours(u64::from(days) * 24)));
        let seen = Seen {
            machine: Some((fact, NOW)),
            node: node.map(|node| (node, NOW)),
            host: None,
            certificates: end.map(|end| (CertificatesFact { end }, NOW)),
        };
        observed.machines.insert(machine.id, seen);
    }
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
        if let Some(seen) = observed.machines.get_mut(&machine.id) {
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

/// What an earlier plan would have begun.
fn begun(desired: &Desired, observed: &Observed, machine: &Machine, kind: Kind) -> Action {
    let version = Version {
        minor: 34,
        patch: 0,
    };
    let given = |machine: &Machine| matches!(machine.origin, Origin::Given { .. });
    match kind {
        Kind::Key => Action::Key,
        Kind::Equip => Action::Equip {
            recipe: desired.recipe(machine, joined(observed, machine)),
        },
        Kind::Mesh => Action::Mesh {
            mesh: mesh(desired, observed),
        },
        Kind::Balance => Action::Balance {
            balance: Balance {
                address: machine.address,
                listeners: Vec::new(),
            },
        },
        Kind::Init => Action::Init {
            version,
            network: desired.network,
            care: Care::default(),
        },
        Kind::Create if given(machine) => Action::Prepare,
        Kind::Delete if given(machine) => Action::Release,
        Kind::Join => Action::Join {
            version,
            care: Care::default(),
        },
        Kind::Install => Action::Install {
            addons: desired.addons.clone(),
            remove: Vec::new(),
        },
        Kind::Tend => Action::Tend {
            care: Care::default(),
        },
        Kind::Drain => Action::Drain,
        Kind::Leave => Action::Leave,
        Kind::Renew => Action::Renew {
            end: ends(observed, machine).unwrap_or(NOW),
        },
        Kind::Delete => Action::Delete,
        Kind::Snapshot => saving(version),
        Kind::Restore => putting_back(machine),
        Kind::Uncordon => Action::Readmit {
            gates: desired.disruption.gates.clone(),
        },
        Kind::Create | Kind::Prepare | Kind::Upgrade | Kind::Release => Action::Create,
    }
}

fn saving(version: Version) -> Action {
    Action::Snapshot {
        taking: Taking {
            version,
            before: None,
            wish: None,
            to: Destination::Directory { name: None },
            keep: Keep::default(),
            guard: None,
        },
    }
}

fn putting_back(machine: &Machine) -> Action {
    Action::Restore {
        restoring: Restoring {
            snapshot: SnapshotId::of(NOW, "0a1b2c3d").unwrap(),
            wish: IntentId::derive(model::id::Origin {
                parent: "test",
                name: "restore",
                ordinal: 0,
                incarnation: 0,
            }),
            asked_at: NOW,
            from: Destination::Directory { name: None },
            nodes: vec![machine.clone()],
        },
    }
}

/// The unfinished tasks of a world, each as an earlier plan would have made it.
pub(crate) fn under_way(world: &World, desired: &Desired, observed: &Observed) -> Vec<Open> {
    let placed = desired.all().zip(world.work.iter().cycle());
    let mut once = BTreeSet::new();
    placed
        .filter_map(|(machine, work)| {
            let (kind, state) = (*work)?;
            // Of some there is only ever one.
            let alone = matches!(
                kind,
                Kind::Key
                    | Kind::Mesh
                    | Kind::Init
                    | Kind::Install
                    | Kind::Snapshot
                    | Kind::Restore
            );
            if !fits(observed, machine, kind) || alone && !once.insert(kind) {
                return None;
            }
            Some(Open {
                id: TaskId::derive(model::id::Origin {
                    parent: "test",
                    name: machine.name.as_str(),
                    ordinal: u64::from(machine.ordinal),
                    incarnation: 0,
                }),
                machine: machine.id,
                action: begun(desired, observed, machine, kind),
                origin: machine.origin.clone(),
                state,
                attempts: 1,
                not_before: NOW,
                error: (state == State::Stuck).then(|| "no luck".to_owned()),
                corrected: false,
                through: Vec::new(),
            })
        })
        .collect()
}

/// Whether such work may be done to a machine.
fn fits(observed: &Observed, machine: &Machine, kind: Kind) -> bool {
    match kind {
        Kind::Key | Kind::Equip | Kind::Mesh => machine.origin.is_host(),
        Kind::Balance => machine.role == Role::Balancer,
        Kind::Init => machine.role == Role::Control && !observed.initialised,
        Kind::Install => machine.role == Role::Control && observed.initialised,
        Kind::Snapshot | Kind::Restore => {
            machine.role == Role::Control && joined(observed, machine)
        }
        Kind::Renew => ends(observed, machine).is_some(),
        Kind::Join | Kind::Tend | Kind::Drain | Kind::Upgrade | Kind::Uncordon | Kind::Leave => {
            machine.role.is_node()
        }
        Kind::Create | Kind::Prepare | Kind::Delete | Kind::Release => true,
    }
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
