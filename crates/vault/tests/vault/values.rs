//! Values: what opens, what does not, and what a change of keys means for them.

use crate::{FINGERPRINTS, KEYS, master, place, sealer};
use model::id::{ClusterId, Origin};
use model::sealed::{Owner, Place, Sealed, Wrapped};
use model::secret::Secret;
use vault::Sealer;

fn text(text: &str) -> Secret {
    Secret::from_text(text.to_owned())
}

#[tokio::test]
async fn a_value_comes_back_as_it_was() {
    let sealer = sealer(&KEYS[..1]);
    let key = sealer.draw().await.unwrap().id;
    for value in [&b""[..], b"x", "grün".as_bytes(), &vec![0xff; 100_000]] {
        let sealed = sealer
            .seal(key, &Secret::from(value.to_vec()), &place("token"))
            .unwrap();
        let opened = sealer.clone().open(&sealed, &place("token")).unwrap();
        assert_eq!(opened.expose(), value);
    }
}

#[tokio::test]
async fn a_value_opens_in_its_own_place_only() {
    let sealer = sealer(&KEYS[..1]);
    let key = sealer.draw().await.unwrap().id;
    let home = place("token");
    let sealed = sealer.seal(key, &text("hunter2"), &home).unwrap();
    let origin = Origin {
        parent: "default",
        name: "aws",
        ordinal: 0,
        incarnation: 0,
    };
    for elsewhere in [
        place("token2"),
        Place {
            project: "other".parse().unwrap(),
            ..home.clone()
        },
        Place {
            owner: Owner::Secret("gcp".parse().unwrap()),
            ..home.clone()
        },
        Place {
            owner: Owner::Cluster(ClusterId::derive(origin)),
            ..home.clone()
        },
    ] {
        let error = sealer.open(&sealed, &elsewhere).err().unwrap();
        assert_eq!(error.code(), "SEAL-005");
        assert!(
            error.to_string().contains(&elsewhere.to_string()),
            "{error}"
        );
    }
    assert!(sealer.open(&sealed, &home).is_ok());
}

#[tokio::test]
async fn a_value_under_another_data_key_does_not_open() {
    let sealer = sealer(&KEYS[..1]);
    let [one, other] = [sealer.draw().await.unwrap(), sealer.draw().await.unwrap()];
    let mut sealed = sealer
        .seal(one.id, &text("hunter2"), &place("token"))
        .unwrap();
    sealed.key = other.id;
    let error = sealer.open(&sealed, &place("token")).err().unwrap();
    assert_eq!(error.code(), "SEAL-005");
    sealer.forget(other.id);
    let error = sealer.open(&sealed, &place("token")).err().unwrap();
    assert_eq!(error.code(), "SEAL-009");
    let error = sealer
        .seal(other.id, &text(""), &place("token"))
        .unwrap_err();
    assert_eq!(error.code(), "SEAL-009");
}

/// Every way to change one character, of a value as well as of a wrapped data key.
fn changed(text: &str) -> impl Iterator<Item = String> {
    (0..text.len()).flat_map(move |at| {
        ["A", "B", "/", "=", ""]
            .iter()
            .filter(move |new| &text[at..=at] != **new)
            .map(move |new| format!("{}{new}{}", &text[..at], &text[at + 1..]))
    })
}

#[tokio::test]
async fn one_changed_byte_is_noticed() {
    let drawn = sealer(&KEYS[..1]);
    let wrapped = drawn.draw().await.unwrap();
    let sealed = drawn
        .seal(wrapped.id, &text("hunter2"), &place("token"))
        .unwrap();
    for text in changed(&sealed.text) {
        let key = sealed.key;
        let error = drawn
            .open(&Sealed { key, text }, &place("token"))
            .err()
            .unwrap();
        assert_eq!(error.code(), "SEAL-005");
    }
    let fresh = sealer(&KEYS[..1]);
    for text in changed(&wrapped.text) {
        let broken = Wrapped {
            text,
            ..wrapped.clone()
        };
        assert_eq!(fresh.admit(&broken).await.unwrap_err().code(), "SEAL-010");
    }
    fresh.admit(&wrapped).await.unwrap();
    assert!(fresh.open(&sealed, &place("token")).is_ok());
}

/// Rows of one table can be confused as well: a data key does not open under another's id.
#[tokio::test]
async fn a_data_key_does_not_pass_for_another() {
    let first = sealer(&KEYS[..1]);
    let [one, other] = [first.draw().await.unwrap(), first.draw().await.unwrap()];
    let swapped = Wrapped {
        id: one.id,
        ..other
    };
    let fresh = sealer(&KEYS[..1]);
    assert_eq!(fresh.admit(&swapped).await.unwrap_err().code(), "SEAL-010");
    assert!(!fresh.knows(one.id));
}

#[tokio::test]
async fn a_wrong_key_file_is_named() {
    let wrapped = sealer(&KEYS[..1]).draw().await.unwrap();
    let wrong = sealer(&KEYS[1..]);
    let error = wrong.admit(&wrapped).await.unwrap_err();
    assert_eq!(error.code(), "SEAL-004");
    let said = error.to_string();
    for fingerprint in FINGERPRINTS {
        assert!(said.contains(fingerprint), "{said}");
    }
    assert_eq!(wrong.rewrap(&wrapped).await.unwrap_err().code(), "SEAL-004");
}

#[tokio::test]
async fn an_older_line_opens_and_its_data_keys_move_to_the_new_one() {
    let old = sealer(&KEYS[..1]);
    let wrapped = old.draw().await.unwrap();
    assert_eq!(wrapped.by, FINGERPRINTS[0]);
    let sealed = old
        .seal(wrapped.id, &text("hunter2"), &place("token"))
        .unwrap();

    let both = sealer(&[KEYS[1], KEYS[0]]);
    both.admit(&wrapped).await.unwrap();
    assert!(both.open(&sealed, &place("token")).is_ok());
    let moved = both.rewrap(&wrapped).await.unwrap().unwrap();
    assert_eq!((moved.id, moved.by.as_str()), (wrapped.id, FINGERPRINTS[1]));
    assert_eq!(both.rewrap(&moved).await.unwrap(), None);

    // The old line is gone, the sealed value is as it was.
    let new = sealer(&[KEYS[1]]);
    new.admit(&moved).await.unwrap();
    let opened = new.open(&sealed, &place("token")).unwrap();
    assert_eq!(opened.expose(), b"hunter2");
}

#[tokio::test]
async fn an_installation_can_move_to_another_key_file() {
    let wrapped = sealer(&KEYS[..1]).draw().await.unwrap();
    let moving = Sealer::new(
        master(&KEYS[1..2]),
        vec![master(&KEYS[2..]), master(&KEYS[..1])],
    );
    let moved = moving.rewrap(&wrapped).await.unwrap().unwrap();
    sealer(&KEYS[1..2]).admit(&moved).await.unwrap();
}

/// Written once by the first version: whatever changes here, this has to open.
#[tokio::test]
async fn what_was_sealed_long_ago_opens() {
    let sealer = sealer(&KEYS[..1]);
    let wrapped = Wrapped {
        id: "key-dd30ec2c792df4c99de6fd1a42223033".parse().unwrap(),
        by: FINGERPRINTS[0].to_owned(),
        text: "x1.qceMbTZut8XeRBtdMs/9Z4svj50IjTljOoOHM0gxt0KRADJ3GUv8DvMEUE05UPGiYqyZA1oSNtk9f1LEmT3eT+uuJZNVqb1c".to_owned(),
    };
    let sealed = Sealed {
        key: wrapped.id,
        text: "x1.xSpUZ3FG0vS35I40q4jak3Kuqx4XQOzdoUTUg/pBoJaHvb25eiJCMonPIjGG18U=".to_owned(),
    };
    sealer.admit(&wrapped).await.unwrap();
    let opened = sealer.open(&sealed, &place("token")).unwrap();
    assert_eq!(opened.expose(), b"hunter2");
}
