//! One minor release at a time: by which versions nodes come to the one that is declared.
//!
//! kubeadm upgrades by one minor release, and by no more. Where the declared version is further away,
//! all nodes go to a stepping stone first, the control plane before the others, and on from there
//! when every one of them serves again. Which stone that is, desired state remembers: of a drained
//! node nobody could tell otherwise whether it has arrived there or is about to leave.

use model::version::Version;

/// The version that nodes which run these can go to next on the way to `declared`.
pub(crate) fn next(declared: Version, runs: &[Version]) -> Version {
    let Some(oldest) = runs.iter().min() else {
        return declared;
    };
    let minor = oldest.minor + 1;
    if declared.minor <= minor {
        return declared;
    }
    // Who is there already is not asked to go back.
    let there = runs.iter().filter(|version| version.minor == minor);
    let stone = Version::stepping_stone(minor);
    there.copied().fold(stone, Version::max)
}

/// The stepping stone of a cluster whose manifest says `declared` from now on, and whose nodes run
/// these. The one that they are on their way to stays, while it lies between.
pub(crate) fn stone(
    before: Option<Version>,
    declared: Version,
    runs: &[Version],
) -> Option<Version> {
    let oldest = runs.iter().min()?;
    let between = |stone: &Version| stone.minor < declared.minor && stone.minor <= oldest.minor + 1;
    let next = next(declared, runs);
    before
        .filter(between)
        .or((next != declared).then_some(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn versions(words: &str) -> Vec<Version> {
        let words = words.split_whitespace();
        words.map(|word| word.parse().unwrap()).collect()
    }

    /// All versions that nodes go to, one after the other, until there is no other.
    fn way(declared: &str, runs: &str) -> String {
        let (declared, mut runs) = (declared.parse().unwrap(), versions(runs));
        let mut told = String::new();
        while runs.iter().any(|version| *version < declared) {
            let to = next(declared, &runs);
            told += &format!("{to}\n");
            for version in &mut runs {
                assert!(to.minor <= version.minor + 1, "{version} skips to {to}");
                *version = to.max(*version);
            }
        }
        told
    }

    #[test]
    fn a_way_over_several_minors_goes_by_stepping_stones() {
        expect![[r#"
            v1.34.4
            v1.35.8
            v1.36.3
        "#]]
        .assert_eq(&way("1.36.3", "1.33.13 1.33.13"));
        expect![[r#"
            v1.34.4
            v1.35.0
        "#]]
        .assert_eq(&way("1.35.0", "1.33.13"));
        expect![[r#"
            v1.35.0
        "#]]
        .assert_eq(&way("1.35.0", "1.34.0"));
        // One that went ahead has the others follow.
        expect![[r#"
            v1.34.9
            v1.35.8
            v1.36.3
        "#]]
        .assert_eq(&way("1.36.3", "1.33.13 1.34.9"));
        expect![[r#"
            v1.35.8
            v1.36.3
        "#]]
        .assert_eq(&way("1.36.3", "1.36.3 1.34.0"));
        assert_eq!(way("1.36.3", ""), "");
    }

    #[test]
    fn a_stone_stays_while_it_lies_between() {
        let stone = |before: Option<&str>, declared: &str, runs: &str| {
            let before = before.map(|stone| stone.parse().unwrap());
            let stone = stone(before, declared.parse().unwrap(), &versions(runs));
            stone.map_or(String::new(), |stone| stone.to_string())
        };
        assert_eq!(stone(None, "1.36.3", "1.33.13"), "v1.34.4");
        assert_eq!(stone(None, "1.34.9", "1.33.13"), "");
        assert_eq!(stone(None, "1.36.3", ""), "");
        let before = Some("1.34.4");
        assert_eq!(stone(before, "1.36.3", "1.34.4 1.34.4"), "v1.34.4");
        assert_eq!(stone(before, "1.35.0", "1.34.4 1.33.13"), "v1.34.4");
        assert_eq!(stone(before, "1.34.9", "1.33.13"), "");
    }
}
