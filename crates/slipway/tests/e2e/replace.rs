//! A control machine loses its power for good: the API goes on, and another takes its place.

use crate::asking::{Asking, answered, api};
use crate::hosts_within::cut_power;
use crate::shape::{API, WEB};
use crate::site::{VERSION, story};
use crate::whole::{WHOLE, made, members};
use std::time::Duration;

/// How long the API may be silent: as long as a load balancer takes to see that a target is gone,
/// and etcd to choose who leads.
const SILENCE_MAX: Duration = Duration::from_secs(20);

#[test]
fn a_control_machine_that_lost_its_power_is_replaced_while_the_api_answers() {
    let test = "replace::a_control_machine_that_lost_its_power_is_replaced_while_the_api_answers";
    story(test, &[VERSION], |site| {
        let door = made(site);
        let lost = site.names("control").remove(0);
        let before = site.ids();
        let at = door.clone();
        let asking = Asking::begin("the API", move || api(&at, API));
        site.step("its power is cut and it is replaced", |site| {
            cut_power(site.directory(), &lost);
            site.client(&["machine", "replace", &lost, "--reason", "its power is cut"]);
            site.apply(WHOLE);
            let after = site.ids();
            let fresh = after.iter().filter(|id| !before.contains(id)).count();
            assert_eq!(fresh, 1, "{before:?} became {after:?}");
        });
        let heard = asking.end();
        site.figure(&format!("the API {heard}"));
        assert!(heard.silence < SILENCE_MAX, "{heard:?}");
        site.step("etcd has three members in good health", |site| {
            assert_eq!(members(site), 3);
        });
        answered(&door, WEB);
        site.step("delete", |site| site.delete());
    });
}
