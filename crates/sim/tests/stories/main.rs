//! Every story told, compared with what it told before; then again with everything going wrong.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod proof;
mod script;

use script::scripts;
use sim::story::{Disturbance, play};

/// A story that is longer is not read by anybody.
const LINES_MAX: usize = 30;

#[test]
fn every_story_is_told_as_before() {
    for script in scripts() {
        let name = &script.name;
        let told = play(&script.story, Disturbance::None).unwrap();
        expect_test::expect_file![&script.golden].assert_eq(&told.text);
        assert!(told.text.lines().count() <= LINES_MAX, "{name} is too long");
        assert!(told.settled, "{name} did not settle");
        assert!(told.violations.is_empty(), "{name}: {:?}", told.violations);
        assert!(told.leftovers.is_empty(), "{name}: {:?}", told.leftovers);
        assert!(told.made_again.is_empty(), "{name}: {:?}", told.made_again);
    }
}
