//! What the world will look like when a task has gone well.
//!
//! The happy path and nothing else; the simulator shows the others.

use model::cluster::Machine;
use model::observed::{MachineFact, NodeFact, Observed, Seen};
use model::task::{Action, Kind};
use model::time::Timestamp;
use std::net::IpAddr;

/// Changes `observed` to what will be seen after `action` on `machine` has gone well.
pub fn predict(observed: &mut Observed, machine: &Machine, action: &Action, now: Timestamp) {
    let reference = || machine.name.to_string();
    if matches!(action, Action::Init { .. }) {
        observed.initialised = true;
    }
    let seen = observed.machines.entry(machine.id).or_default();
    match action {
        Action::Create | Action::Prepare => {
            let address = IpAddr::V4(machine.address);
            seen.machine = Some((
                MachineFact::Running {
                    reference: reference(),
                    address,
                },
                now,
            ));
        }
        Action::Init { version, .. } | Action::Join { version } => {
            seen.node = Some((
                NodeFact::Joined {
                    ready: true,
                    cordoned: false,
                    version: *version,
                },
                now,
            ));
        }
        Action::Drain => change(seen, |cordoned, _| *cordoned = true),
        Action::Uncordon => change(seen, |cordoned, _| *cordoned = false),
        Action::Upgrade { version } => change(seen, |_, runs| *runs = *version),
        Action::Leave => seen.node = Some((NodeFact::Absent, now)),
        Action::Delete | Action::Release => {
            seen.machine = Some((MachineFact::Absent, now));
            seen.node = Some((NodeFact::Absent, now));
        }
    }
}

fn change(seen: &mut Seen, edit: impl FnOnce(&mut bool, &mut model::version::Version)) {
    if let Some((
        NodeFact::Joined {
            cordoned,
            version,
            ready: _,
        },
        _,
    )) = &mut seen.node
    {
        edit(cordoned, version);
    }
}

/// How long a task takes, in minutes, on machines and networks of the usual kind.
pub const fn minutes(kind: Kind) -> u32 {
    match kind {
        Kind::Create | Kind::Join | Kind::Drain => 2,
        Kind::Prepare | Kind::Uncordon | Kind::Leave | Kind::Delete | Kind::Release => 1,
        Kind::Init | Kind::Upgrade => 3,
    }
}
