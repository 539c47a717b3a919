//! Every story told, compared with what it told before.

mod told;

use sim::story::{Disturbance, play};
use told::stories;

/// A story that is longer is not read by anybody.
const LINES_MAX: usize = 30;

#[test]
fn every_story_is_told_as_before() {
    for read in stories() {
        let name = &read.name;
        let told = play(&read.story, Disturbance::None).unwrap();
        expect_test::expect_file![&read.golden].assert_eq(&told.text);
        assert!(told.text.lines().count() <= LINES_MAX, "{name} is too long");
        assert!(told.settled, "{name} did not settle");
        assert!(told.violations.is_empty(), "{name}: {:?}", told.violations);
        assert!(told.leftovers.is_empty(), "{name}: {:?}", told.leftovers);
        assert!(told.made_again.is_empty(), "{name}: {:?}", told.made_again);
    }
}
