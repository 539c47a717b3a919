//! The reader of indexes meets whatever a network can bring.

use crate::{index_of, name};
use hosts::artifacts::{Digest, Entry, Index, Name, Source};
use proptest::prelude::*;

/// Names as mirrors have them.
fn names() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_+~:=@%-][a-zA-Z0-9._+~:=@%-]{0,12}(/[a-z0-9][a-z0-9._-]{0,8}){0,4}"
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_is_read(
        entries in prop::collection::btree_map(names(), (any::<u64>(), 0_u64..1 << 36), 0..40)
    ) {
        let mut index = Index::default();
        for (text, (seed, size)) in &entries {
            let sha256 = Digest::of(&seed.to_le_bytes());
            index.insert(text.parse().unwrap(), Entry { sha256, size: *size });
        }
        prop_assert_eq!(index.len(), entries.len());
        prop_assert_eq!(Index::parse(index.to_text().as_bytes()), Ok(index));
    }

    #[test]
    fn noise_is_refused_without_harm(noise in prop::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(Index::parse(&noise).is_err());
    }

    /// What a bad disk or a bad proxy does to a good index: read, it is one that we would write.
    #[test]
    fn a_spoiled_index_is_refused_or_still_makes_sense(
        at in 0_usize..400,
        gone in 0_usize..8,
        put in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'/'), Just(b'.')], 0..8),
    ) {
        let mut text = index_of(&[("a/b", b"1"), ("c", b"22"), ("d/e.f", b"333")]).into_bytes();
        let at = at.min(text.len());
        let end = (at + gone).min(text.len());
        text.splice(at..end, put);
        if let Ok(index) = Index::parse(&text) {
            for (name, _) in index.iter() {
                prop_assert!(!name.as_str().split('/').any(|part| part.is_empty() || part.starts_with('.')));
            }
            prop_assert_eq!(Index::parse(index.to_text().as_bytes()), Ok(index));
        }
    }

    /// A name never leads out of the directory it is joined to.
    #[test]
    fn a_name_stays_inside(text in "[./a-c\\\\\u{0}%2 ]{0,12}") {
        if let Ok(name) = text.parse::<Name>() {
            let root = std::path::Path::new("/srv/mirror");
            let joined = root.join(name.as_str());
            prop_assert!(joined.starts_with(root));
            prop_assert!(joined.components().all(|part| part != std::path::Component::ParentDir));
        }
    }

    #[test]
    fn any_text_is_a_source_or_says_why_not(text in "\\PC{0,40}") {
        if let Err(why) = text.parse::<Source>() {
            prop_assert!(!why.to_string().is_empty());
        }
    }
}

#[test]
fn a_cut_off_index_is_never_read() {
    let text = index_of(&[("a/b", b"1"), ("c", b"22")]);
    let whole = text.trim_end();
    for end in 0..whole.len() {
        assert!(Index::parse(&whole.as_bytes()[..end]).is_err(), "{end}");
    }
    let index = Index::parse(whole.as_bytes()).unwrap();
    assert!(index.get(&name("c")).is_some());
}
