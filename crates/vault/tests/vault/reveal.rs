//! What is stored reveals nothing, whatever was sealed.

use crate::{KEYS, place, sealer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::secret::Secret;
use proptest::prelude::*;
use std::collections::HashSet;

/// How much of a secret is too much.
const WINDOW: usize = 8;

fn reveals(stored: &[u8], secret: &[u8]) -> bool {
    let shown: HashSet<&[u8]> = stored.windows(WINDOW).collect();
    secret.windows(WINDOW).any(|part| shown.contains(part))
}

/// Everything of it that is in the store: the text, and the bytes behind the text.
fn stored(text: &str) -> Vec<u8> {
    let bytes = STANDARD.decode(text.strip_prefix("x1.").unwrap()).unwrap();
    [text.as_bytes(), &bytes].concat()
}

#[test]
fn the_question_can_be_answered_with_yes() {
    let secret = b"correct horse battery staple";
    assert!(reveals(b"..horse ba..", secret));
    assert!(!reveals(b"..horse b..", secret));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_part_of_a_secret_is_stored(
        secret in prop_oneof![
            prop::collection::vec(any::<u8>(), WINDOW..300),
            "[ -~]{8,300}".prop_map(String::into_bytes),
            (any::<u8>(), WINDOW..300).prop_map(|(byte, len)| vec![byte; len]),
        ]
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let sealer = sealer(&KEYS[..1]);
        let wrapped = runtime.block_on(sealer.draw()).unwrap();
        let sealed = sealer.seal(wrapped.id, &Secret::from(secret.clone()), &place("token")).unwrap();
        let stored = [stored(&sealed.text), stored(&wrapped.text)].concat();
        prop_assert!(!reveals(&stored, &secret));
        prop_assert!(!reveals(&stored, STANDARD.encode(&secret).as_bytes()));
        let opened = sealer.open(&sealed, &place("token")).map(|value| value.expose().to_vec());
        prop_assert_eq!(opened.unwrap(), secret);
    }
}
