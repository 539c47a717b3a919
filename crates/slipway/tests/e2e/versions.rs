//! The oldest and the newest Kubernetes that are admitted: clusters are made of the one, get the
//! other, and machines join afterwards.

use crate::asking::answered;
use crate::shape::{NODE_PORT, Shape};
use crate::site::{NEXT, VERSION, foreseen};
use lab::kubernetes::{NEWEST, OLDEST};

#[test]
fn a_cluster_of_the_oldest_version_is_made_upgraded_and_grows() {
    let test = "versions::a_cluster_of_the_oldest_version_is_made_upgraded_and_grows";
    raised(test, OLDEST, VERSION);
}

#[test]
fn a_cluster_gets_the_newest_version_and_grows() {
    let test = "versions::a_cluster_gets_the_newest_version_and_grows";
    raised(test, NEXT, NEWEST);
}

fn raised(test: &str, from: &'static str, to: &'static str) {
    foreseen(test, &[from, to], |site| {
        site.step(&format!("all nodes are ready with {from}"), |site| {
            site.apply(Shape::small(from, 1));
        });
        site.deploy(1);
        site.step(&format!("from {from} to {to}"), |site| {
            site.apply(Shape::small(to, 1));
        });
        site.step(&format!("a machine joins with {to}"), |site| {
            site.apply(Shape::small(to, 2));
        });
        site.rolled_out();
        for at in site.addresses("compute") {
            answered(&at, NODE_PORT);
        }
        site.step("delete", |site| site.delete());
    });
}
