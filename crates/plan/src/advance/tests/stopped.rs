//! A step that the checker stops.

use super::*;
use crate::fixture::picture;
use crate::why;

#[test]
fn a_step_that_the_checker_stops_is_told_and_everything_else_goes_on() {
    let mut life = Life::of(SAID);
    life.apply(Said {
        kind: "large",
        compute: 3,
        ..SAID
    });
    let mut step = advance(&life.view()).unwrap();
    let mut went = step.desired.machines.iter();
    let went = went.position(|machine| machine.name.as_str() == "edge-muscle-01");
    let went = step.desired.machines.remove(went.unwrap());
    step.desired.leaving.push(went);
    let notes = check_advance(&life.view(), &step);
    let mut planned = plan(&life.view());
    for held in step.stopped(&notes) {
        planned.tell(held.clone());
        planned.tell(held);
    }
    expect![[r#"
        create   edge-muscle-03
        held     drain edge-muscle-01: stopped by the checker: who serves goes when all others of its pool do (in the step: edge-muscle-04 to come, made as pool muscle now says)
        held     drain muscle: stopped by the checker: a pool keeps its size (in the step: edge-muscle-04 to come, made as pool muscle now says)
        error
    "#]].assert_eq(&picture(&planned));
    let why = why(&life.view(), &planned);
    let told: String = why.iter().map(|cause| format!("{cause}\n")).collect();
    expect![[r#"
        cluster edge is error at generation 2: 1 of 1 control and 2 of 3 compute nodes are ready
        drain edge-muscle-01: stopped by the checker: who serves goes when all others of its pool do (in the step: edge-muscle-04 to come, made as pool muscle now says)
          → another manifest may get past it; this is a defect of Slipway, please report it
        drain muscle: stopped by the checker: a pool keeps its size (in the step: edge-muscle-04 to come, made as pool muscle now says)
          → another manifest may get past it; this is a defect of Slipway, please report it
        1 task waits for a worker
          → begins by itself
    "#]].assert_eq(&told);
}
