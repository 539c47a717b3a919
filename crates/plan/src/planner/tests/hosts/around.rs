//! What a task on a node tells of the cluster around it.

use super::plan;
use crate::fixture::{World, host};
use model::cluster::Balancer;
use model::task::{Action, Kind, State, Task};

fn tasks(world: &World, kind: Kind) -> Vec<Task> {
    let tasks = plan(&world.view()).tasks.into_iter();
    tasks.filter(|task| task.action.kind() == kind).collect()
}

fn through(task: &Task) -> Vec<String> {
    let around = task.around.as_ref().unwrap();
    let names = around
        .through
        .iter()
        .map(|machine| machine.name.to_string());
    names.collect()
}

#[test]
fn who_joins_is_told_by_whom_the_api_is_reached_and_where_it_will_be() {
    let world = World::hosts("c1 c2 w1 b1").after(5);
    let joins = tasks(&world, Kind::Join);
    let [join] = joins.as_slice() else {
        panic!("{joins:?}");
    };
    assert_eq!(through(join), ["c1"], "only those that are ready can help");
    let door = |machine: &&model::cluster::Machine| machine.balancer.is_some();
    let doors = world.desired.machines.iter().filter(door);
    let doors: Vec<_> = doors.map(|machine| machine.address).collect();
    assert_eq!(world.desired.api(), doors, "behind the load balancer");

    let mut without = world.desired.clone();
    without.balancers = Vec::<Balancer>::new();
    let first = without.machines.first().unwrap().address;
    assert_eq!(without.api(), [first], "else on the first that runs one");
}

#[test]
fn the_first_starts_alone_and_machines_of_the_simulated_world_need_nothing() {
    let world = World::hosts("c1 w1").after(4);
    let init = tasks(&world, Kind::Init);
    assert_eq!(through(&init[0]), Vec::<String>::new());
    let simulated = World::new("1.34.0", "c1 w1", "");
    let created = tasks(&simulated, Kind::Create);
    assert!(created.iter().all(|task| task.around.is_none()));
}

#[test]
fn what_waits_for_one_who_is_gone_is_begun_anew() {
    let version = "1.34.0".parse().unwrap();
    let world = World::hosts("c1 w1").after(5);
    let care = crate::care::care(&world.desired, &host("w1"), &[host("c1").address]);
    let join = Action::Join {
        version,
        care,
        gated: false,
    };
    let mut world = world.open("w1", join, State::Waiting, Some("c0 is silent"));
    assert_eq!(
        tasks(&world, Kind::Join).len(),
        1,
        "nobody it knew is there"
    );
    let member = world.desired.machines.first().unwrap().id;
    world.open[0].through = vec![member];
    assert_eq!(tasks(&world, Kind::Join), Vec::new(), "it goes on");
}

/// The nodes that are brought images before this machine is upgraded.
fn brought_first(machine: &str) -> Vec<String> {
    let upgraded = |rounds| {
        let mut world = World::hosts("c1 w1 w2").after(12);
        world.desired.version = "1.35.0".parse().unwrap();
        let upgrades = tasks(&world.after(rounds), Kind::Upgrade);
        upgrades
            .into_iter()
            .find(|task| task.machine.name.as_str() == machine)
    };
    let task = (0..30).find_map(upgraded).unwrap();
    let nodes = task.around.unwrap().nodes.into_iter();
    nodes.map(|machine| machine.name.to_string()).collect()
}

#[test]
fn every_node_has_the_images_before_the_control_plane_is_upgraded() {
    assert_eq!(brought_first("c1"), ["c1", "w1", "w2"]);
    assert_eq!(brought_first("w1"), Vec::<String>::new());
}
