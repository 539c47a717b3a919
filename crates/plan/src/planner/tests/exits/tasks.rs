//! Every kind of work, in every state that its task can be in.

use super::*;
use model::observed::CertificatesFact;

/// Beginnings of journeys on which every kind of work is done.
fn journeys() -> Vec<fn() -> World> {
    vec![
        || World::hosts("c1 c2 c3 w1 s1 b1"),
        || {
            World::hosts("c1 c2 c3 w1 w2 s1 b1")
                .settled()
                .want("c1 w1 b1")
        },
        || World::hosts("c1 w1 s1 b1").settled().want(""),
        || {
            let mut world = World::hosts("c1 w1 b1");
            world.desired.balancers[0].dns = Some(names(Provider::Simulated, "www"));
            world.settled().want("c1 w1 b2")
        },
        || World::hosts("c1 w1 b1").at_cloud("c1"),
        || {
            let mut world = World::hosts("c1 w1 b1").at_cloud("c1").settled();
            let mut former = world.desired.balancers.clone();
            former[0].roles.remove(0);
            world.desired.balancers[0].roles.remove(1);
            world.desired.former = former;
            world
        },
        || World::new("1.35.0", "c1 c2 c3 w1", "c1 c2 c3 w1").unsaved(),
        || {
            let mut world = World::new("1.34.0", "c1 w1", "c1 w1");
            let seen = world.observed.machines.get_mut(&machine("w1").id).unwrap();
            if let Some((NodeFact::Joined { asks, .. }, _)) = &mut seen.node {
                *asks = true;
            }
            world
        },
        || World::new("1.34.0", "c1", "c1").addons(Cni::Routed, "node-exporter", ""),
        || {
            let mut world = World::new("1.34.0", "c1 c2 c3", "c1 c2 c3");
            let seen = world.observed.machines.get_mut(&machine("c2").id).unwrap();
            seen.certificates = Some((CertificatesFact { end: NOW }, NOW));
            world
        },
        || World::new("1.34.0", "c1", "c1").strays("w9!"),
        || {
            let snapshot = SnapshotId::of(NOW, "0a1b2c3d").unwrap();
            let world = World::new("1.34.0", "c1 c2 c3 w1", "c1 c2 c3 w1");
            world.wish(Wish::Restore { snapshot })
        },
    ]
}

fn begun(task: &Task, state: State) -> Open {
    let through = task.around.iter().flat_map(|around| &around.through);
    Open {
        id: task.id,
        machine: task.machine.id,
        action: task.action.clone(),
        origin: task.machine.origin.clone(),
        through: through.map(|member| member.id).collect(),
        state,
        attempts: 1,
        not_before: NOW,
        error: (state == State::Stuck).then(|| "no luck".to_owned()),
        corrected: false,
    }
}

#[test]
fn every_kind_of_work_comes_out_of_every_state_of_its_task() {
    let mut met = BTreeSet::new();
    for start in journeys() {
        for round in 0..100 {
            let tasks = plan(&start().after(round).view()).tasks;
            for task in &tasks {
                if met.insert(task.action.kind()) {
                    leaves_every_state(start, round, task);
                }
            }
            if tasks.is_empty() {
                break;
            }
        }
    }
    let all: BTreeSet<_> = Kind::ALL.into_iter().collect();
    assert_eq!(met, all, "every kind of work is met");
}

fn leaves_every_state(start: fn() -> World, round: usize, task: &Task) {
    for state in STATES.into_iter().filter(|state| is_left(*state)) {
        let mut world = start().after(round);
        let step = plan(&world.view());
        // The row that was drawn for it is there as long as it is.
        let mut rows = step.disturbs.clone();
        rows.retain(|slot| slot.machine == task.machine.id);
        world.ledger.extend(rows);
        world.open.push(begun(task, state));
        let mut last = lived(&mut world);
        if state == State::Stuck && !arrived(&last) {
            let stuck = |held: &Held| {
                matches!(held.reason, Reason::Stuck { .. }) && !held.next_action().is_empty()
            };
            assert!(last.held.iter().any(stuck), "{last:#?}");
            corrected(&mut world);
            last = lived(&mut world);
        }
        let kind = task.action.kind();
        assert!(
            arrived(&last),
            "{kind} that is {state:?} ends with {last:#?}"
        );
    }
}
