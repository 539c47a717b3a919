//! Compute machines come and go while the cluster runs.

use crate::asking::answered;
use crate::shape::{NODE_PORT, Shape};
use crate::site::{VERSION, foreseen};

#[test]
fn compute_goes_from_two_to_three_to_one_and_pods_move_along() {
    let test = "scale::compute_goes_from_two_to_three_to_one_and_pods_move_along";
    let shape = |compute| Shape::small(VERSION, compute);
    foreseen(test, &[VERSION], |site| {
        site.step("two compute machines are ready", |site| {
            site.apply(shape(2));
        });
        site.step("three are", |site| site.apply(shape(3)));
        site.step("each runs a pod", |site| {
            site.deploy(3);
            for at in site.addresses("compute") {
                answered(&at, NODE_PORT);
            }
        });
        site.step("one is left", |site| site.apply(shape(1)));
        site.step("it runs all pods", |site| {
            site.rolled_out();
            let at = site.addresses("compute");
            answered(&at[0], NODE_PORT);
        });
        site.step("delete", |site| site.delete());
    });
}
