//! Each way to hand a secret over, and what is in none of the others.

use super::*;
use crate::contract::lifecycle;
use crate::testing::{Known, context, secret, setting, subject};
use std::os::unix::fs::PermissionsExt as _;

const PASSWORD: &[u8] = b"swordfish";

async fn opened(delivery: Option<SecretDelivery>) -> (Subject, Result<Opened, Error>) {
    let mut subject = subject();
    subject.settings.secret_delivery = delivery;
    subject.application = vec![setting("a", "1"), secret("db.pass-word")];
    subject.deployment = vec![secret("db.pass-word")];
    let known = Known(vec![
        (Level::Application, "db.pass-word", PASSWORD),
        (Level::Deployment, "db.pass-word", b"other"),
    ]);
    let opened = Opened::open(&context(known), &subject).await;
    (subject, opened)
}

#[tokio::test]
async fn arguments_have_secrets_only_if_the_project_says_so() {
    let (subject, opened) = opened(Some(SecretDelivery::Argv)).await;
    let words = lifecycle(&subject, &opened.unwrap()).join(" ");
    let told = words.split_once("orange-button ").unwrap().1;
    assert_eq!(
        told,
        "--application-config a=1 --application-config db.pass-word=swordfish \
         --deployment-config db.pass-word=other"
    );
}

#[tokio::test]
async fn variables_have_them_under_names_of_their_own() {
    let (subject, opened) = opened(Some(SecretDelivery::Env)).await;
    let opened = opened.unwrap();
    let all: Vec<_> = opened.variables().collect();
    assert_eq!(
        all,
        [
            (
                "SLIPWAY_SECRET_APPLICATION_db__pass_2Dword".to_owned(),
                "swordfish"
            ),
            (
                "SLIPWAY_SECRET_DEPLOYMENT_db__pass_2Dword".to_owned(),
                "other"
            ),
        ]
    );
    let words = lifecycle(&subject, &opened).join(" ");
    assert!(!words.contains("db.pass-word"), "{words}");
}

#[tokio::test]
async fn files_are_private_and_listed() {
    let (subject, opened) = opened(Some(SecretDelivery::File)).await;
    let opened = opened.unwrap();
    assert_eq!(opened.variables().count(), 0);
    assert!(
        !lifecycle(&subject, &opened)
            .join(" ")
            .contains("db.pass-word")
    );
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("secrets");
    opened.write(&directory).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(
        read("index"),
        "application\tdb.pass-word\t1\ndeployment\tdb.pass-word\t2\n"
    );
    assert_eq!(
        (read("1"), read("2")),
        ("swordfish".to_owned(), "other".to_owned())
    );
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&directory), mode(&directory.join("1"))),
        (0o700, 0o600)
    );
}

#[tokio::test]
async fn without_a_way_nothing_secret_is_handed_over() {
    let (_, opened) = opened(None).await;
    assert_eq!(opened.err().unwrap().kind, Kind::NoDelivery);
}

#[tokio::test]
async fn what_cannot_be_handed_over_is_told() {
    let mut subject = subject();
    subject.application = vec![secret("key")];
    for (value, delivery, kind) in [
        (&b"a\0b"[..], SecretDelivery::Env, Some(Kind::UnfitSecret)),
        (b"\xff\xfe", SecretDelivery::Argv, Some(Kind::UnfitSecret)),
        (b"\xff\0", SecretDelivery::File, None),
    ] {
        subject.settings.secret_delivery = Some(delivery);
        let cx = context(Known(vec![(Level::Application, "key", value)]));
        let opened = Opened::open(&cx, &subject).await;
        assert_eq!(opened.err().map(|error| error.kind), kind);
    }
    let opened = Opened::open(&context(Known(Vec::new())), &subject).await;
    assert_eq!(opened.err().unwrap().kind, Kind::NoSecret);
}

#[test]
fn no_two_keys_become_one_variable() {
    let keys = [
        "a.b", "a_b", "a__b", "a_5Fb", "a-b", "A.b", "a_2Eb", "ä", "a b",
    ];
    let name = |key: &&str| variable(Level::Application, &key.parse().unwrap());
    let names: std::collections::BTreeSet<_> = keys.iter().map(name).collect();
    assert_eq!(names.len(), keys.len());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    assert!(
        names.iter().all(|name| name.chars().all(plain)),
        "{names:?}"
    );
}
