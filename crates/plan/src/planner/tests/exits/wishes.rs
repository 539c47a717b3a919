//! What people wish.

use super::*;
use model::id::MachineId;

/// Whether a wish may keep the planner from going on until it is withdrawn.
const fn keeps_waiting(wish: &Wish) -> bool {
    match wish {
        Wish::Pause | Wish::Cancel { .. } => true,
        // What is desired follows the first three, and the planner follows that; the others end with
        // what was asked for.
        Wish::Scale { .. }
        | Wish::Replace { .. }
        | Wish::Retire { .. }
        | Wish::Retry { .. }
        | Wish::Snapshot
        | Wish::Restore { .. }
        | Wish::Update { .. } => false,
    }
}

#[test]
fn every_wish_is_fulfilled_or_can_be_withdrawn() {
    let id: MachineId = machine("w1").id;
    let task = TaskId::derive(crate::fixture::origin("w1", 9));
    let kind = Kind::Join;
    let wishes = [
        Wish::Scale {
            pool: "compute".parse().unwrap(),
            count: 1,
            was: 1,
        },
        Wish::Replace { machine: id },
        Wish::Retire { machine: id },
        Wish::Retry { task },
        Wish::Cancel {
            task,
            machine: id,
            kind,
        },
        Wish::Pause,
        Wish::Snapshot,
        Wish::Restore {
            snapshot: SnapshotId::of(NOW, "0a1b2c3d").unwrap(),
        },
        Wish::Update {
            pool: "compute".parse().unwrap(),
            commit: Some(Commit::to_come()),
        },
    ];
    for wish in wishes {
        let waits = keeps_waiting(&wish);
        let told = format!("{wish:?}");
        let world = World::new("1.34.0", "c1 w1", "c1 w1~");
        let stuck = matches!(wish, Wish::Retry { .. });
        let mut world = if stuck {
            let care = super::super::care("w1");
            let join = Action::Join {
                version: world.desired.version,
                care,
                gated: false,
            };
            world.open("w1", join, State::Stuck, Some("no luck"))
        } else {
            world
        }
        .wish(wish);
        let first = lived(&mut world);
        assert_eq!(arrived(&first), !waits, "{told}: {first:#?}");
        world.intents.clear();
        assert!(arrived(&lived(&mut world)), "{told}");
    }
}
