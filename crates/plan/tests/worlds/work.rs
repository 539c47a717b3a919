//! What is under way in a world.

use crate::NOW;
use crate::seen::{ends, joined, mesh};
use crate::shape::World;
use model::balancer::Balance;
use model::care::Care;
use model::cluster::{Desired, Machine, Origin, Role};
use model::dns::Naming;
use model::id::{IntentId, TaskId};
use model::observed::Observed;
use model::snapshot::{Destination, Keep, Restoring, SnapshotId, Taking};
use model::task::{Action, Kind, Open, State};
use model::version::Version;
use std::collections::BTreeSet;
use std::net::IpAddr;

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
        Kind::Name => Action::Name {
            naming: Naming {
                address: IpAddr::V4(machine.address),
                names: Vec::new(),
                former: Vec::new(),
            },
        },
        Kind::Expose => Action::Expose,
        Kind::Shut => Action::Shut,
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
            gated: false,
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
        Kind::Clear => Action::Clear {
            leftovers: Vec::new(),
        },
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
        Kind::Balance | Kind::Name => machine.role == Role::Balancer,
        Kind::Expose | Kind::Shut => machine.has_firewall(),
        Kind::Init => machine.role == Role::Control && !observed.initialised,
        Kind::Install | Kind::Clear => machine.role == Role::Control && observed.initialised,
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
