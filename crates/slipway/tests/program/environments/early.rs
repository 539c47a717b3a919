//! What is asked of scripts before the one that comes before all others has ended.

use super::{House, noted_scripts, runs_of};
use crate::secrets::until;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn whoever_asks_scripts_before_init_has_ended_is_told_so() {
    let mut house = House::new("file");
    house.env(&["create", "orange", "-t", "v1", "--wait"]);
    let other = house.directory.path().join("other");
    noted_scripts(&other, &runs_of(&house.directory));
    let (init, go) = (other.join("init"), house.directory.path().join("go"));
    let text = format!(
        "#!/bin/sh\nwhile [ ! -e '{}' ]; do sleep 0.1; done\n",
        go.display()
    );
    std::fs::write(&init, text).unwrap();
    std::fs::set_permissions(&init, std::fs::Permissions::from_mode(0o755)).unwrap();
    house.env(&["settings", "set", "--scripts", other.to_str().unwrap()]);
    let asked: [&[&str]; 2] = [
        &["keys", "--level", "application"],
        &["update", "orange", "-t", "v2", "--dry-run"],
    ];
    for words in asked {
        let (_, told) = house.refused(words);
        assert!(told.contains("(ENV-039)"), "{told}");
    }
    // Nobody looks, so nobody thinks ill of it; and whoever asks now is soon answered.
    assert_eq!(house.seen("orange")["status"], "running");
    std::fs::write(go, "").unwrap();
    for words in asked {
        house.env(words);
    }
    let seen = house.seen("orange")["checked"]["at"].clone();
    until("somebody looks again", || {
        (house.seen("orange")["checked"]["at"] != seen).then_some(())
    });
}
