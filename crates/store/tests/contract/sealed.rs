//! Sealed values and the keys they are sealed with. Nothing here is opened: to the store they
//! are noise.

use crate::fixture::{at, claim, cluster, name, plan, project, settle};
use model::name::Name;
use model::sealed::{KeyId, Owner, Place, Sealed, Wrapped};
use model::secret::EntryName;
use std::collections::BTreeSet;
use store::{
    Ended, Page, RecordError, Recorded, SECRET_ENTRIES_MAX, SealError, SealedChange, SealedRow,
    SecretRow, Store,
};

/// A data key as its master would have wrapped it.
pub(crate) fn wrapped(number: u8) -> Wrapped {
    Wrapped {
        id: KeyId::from_digest([number; 16]),
        by: "master-1".to_owned(),
        text: format!("wrapped {number}"),
    }
}

/// Puts a key to use.
pub(crate) async fn key(store: &Store, number: u8) -> KeyId {
    let used = store.use_seal_key(wrapped(number), false, "root".into(), at(1));
    used.await.unwrap().id
}

/// A value as it would be sealed.
pub(crate) fn value(key: KeyId, text: &str) -> Sealed {
    Sealed {
        key,
        text: text.to_owned(),
    }
}

fn entry(text: &str) -> EntryName {
    text.parse().unwrap()
}

fn set(of: &str, sealed: Sealed) -> SealedChange {
    SealedChange::Set(entry(of), sealed)
}

fn place(secret: &str, of: &str) -> Place {
    Place {
        project: project(),
        owner: Owner::Secret(name(secret)),
        entry: entry(of),
    }
}

async fn put(
    store: &Store,
    secret: &str,
    changes: Vec<SealedChange>,
    only: bool,
    seconds: i64,
) -> Result<SecretRow, SealError> {
    store
        .put_secret(
            (&project(), &name(secret)),
            changes,
            only,
            "ana".into(),
            at(seconds),
        )
        .await
}

async fn take(store: &Store, place: &Place) -> Option<Sealed> {
    store
        .take_sealed(place, "bob".into(), at(99))
        .await
        .unwrap()
}

async fn keys(store: &Store) -> Vec<KeyId> {
    let keys = store.seal_keys().await.unwrap().into_iter();
    keys.map(|key| key.id).collect()
}

/// What was done to keys and secrets: action, object and sentence of each entry.
async fn entries(store: &Store) -> Vec<String> {
    let entries = store.audit_after(0, 1000).await.unwrap().into_iter();
    let entries = entries.filter(|entry| !entry.action.starts_with("manifest."));
    entries
        .map(|entry| format!("{} {} {}", entry.action, entry.object, entry.detail))
        .collect()
}

pub(crate) async fn the_first_key_is_made_once(store: &Store) {
    assert_eq!(keys(store).await, []);
    // Many start at once, each with a key of its own: all use the same one afterwards.
    let mut starting = tokio::task::JoinSet::new();
    for number in 1..=6 {
        let store = store.clone();
        starting.spawn(async move {
            let used = store.use_seal_key(wrapped(number), true, "root".into(), at(1));
            used.await.unwrap()
        });
    }
    let used: BTreeSet<_> = starting
        .join_all()
        .await
        .into_iter()
        .map(|key| key.id)
        .collect();
    assert_eq!(used.len(), 1);
    let first: Vec<_> = used.into_iter().collect();
    assert_eq!(keys(store).await, first);
    assert_eq!(entries(store).await.len(), 1);

    // Another is put to use on purpose; the first stays for what it has sealed.
    assert_eq!(key(store, 7).await, wrapped(7).id);
    assert_eq!(keys(store).await, [wrapped(7).id, first[0]]);
    let rows = store.seal_key_rows().await.unwrap();
    let rows: Vec<_> = rows.iter().map(|row| (row.in_use, row.values)).collect();
    assert_eq!(rows, [(true, 0), (false, 0)]);
    let unchanged = store.use_seal_key(wrapped(8), true, "root".into(), at(2));
    assert_eq!(unchanged.await.unwrap(), wrapped(7));
}

pub(crate) async fn a_key_is_wrapped_again(store: &Store) {
    key(store, 1).await;
    let again = Wrapped {
        by: "master-2".to_owned(),
        text: "wrapped otherwise".to_owned(),
        ..wrapped(1)
    };
    let stored = store.rewrap_seal_key(again.clone(), "root".into(), at(2));
    stored.await.unwrap();
    assert_eq!(store.seal_keys().await.unwrap(), [again]);
    let nobody = store.rewrap_seal_key(wrapped(9), "root".into(), at(3));
    nobody.await.unwrap();
    assert_eq!(keys(store).await, [wrapped(1).id]);
    let id = wrapped(1).id;
    assert_eq!(
        entries(store).await,
        [
            format!("key.use key/{id} wrapped by master-1"),
            format!("key.rewrap key/{id} wrapped by master-2")
        ]
    );
}

pub(crate) async fn a_value_under_a_key_that_is_not_in_use_is_refused(store: &Store) {
    let old = key(store, 1).await;
    put(
        store,
        "account",
        vec![set("user", value(old, "before"))],
        false,
        2,
    )
    .await
    .unwrap();
    key(store, 2).await;
    let before = entries(store).await;
    for gone in [old, wrapped(9).id] {
        let refused = put(
            store,
            "account",
            vec![set("user", value(gone, "late"))],
            false,
            3,
        )
        .await;
        assert!(matches!(refused, Err(SealError::KeyGone { key }) if key == gone));
    }
    assert_eq!(entries(store).await, before);
    assert_eq!(
        take(store, &place("account", "user")).await,
        Some(value(old, "before"))
    );
}

/// A worker that was given another key meanwhile keeps its claim, and seals again.
pub(crate) async fn an_output_under_an_old_key_is_sealed_again_and_recorded(store: &Store) {
    let old = key(store, 1).await;
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(1)).await;
    let mut claims = claim(store, at(1)).await;
    let claim = claims.remove(0);
    let (task, machine) = (claim.task.id, claim.task.machine.id);
    let at_machine = Place {
        project: project(),
        owner: Owner::Machine(machine),
        entry: entry("ssh"),
    };
    let output = |key| SealedRow {
        place: at_machine.clone(),
        sealed: value(key, "private"),
    };
    let new = key(store, 2).await;
    let line = vec![(at(2), "made a key".to_owned())];
    let refused = store
        .record(
            claim,
            Ended::Done,
            vec![],
            vec![output(old)],
            line.clone(),
            at(2),
        )
        .await;
    let Err(RecordError::KeyGone { key, claim }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(key, old);
    assert_eq!(
        store.task_log(task, 0, 10).await.unwrap(),
        [],
        "nothing was kept"
    );
    assert_eq!(take(store, &at_machine).await, None);

    let recorded = store
        .record(*claim, Ended::Done, vec![], vec![output(new)], line, at(3))
        .await;
    assert_eq!(recorded.unwrap(), Recorded::Yes);
    assert_eq!(take(store, &at_machine).await, Some(value(new, "private")));
    let said = entries(store).await;
    assert!(said.contains(&format!("output.set machine/{machine} ssh")));
    assert!(said.contains(&format!("secret.open machine/{machine} ssh")));

    // What a cluster and its machines have sealed goes with them.
    for claim in claims {
        let recorded = store.record(claim, Ended::Yield, vec![], vec![], vec![], at(4));
        assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    }
    settle(store, east, at(5)).await;
    store
        .delete_manifest(&project(), &name("east"), "ana", at(6))
        .await
        .unwrap();
    settle(store, east, at(7)).await;
    assert_eq!(store.cluster_view(east).await.unwrap(), None);
    assert_eq!(take(store, &at_machine).await, None);
}

pub(crate) async fn sealing_again_passes_over_what_has_changed(store: &Store) {
    let old = key(store, 1).await;
    for secret in ["a", "b"] {
        let changes = ["x", "y", "z"].map(|of| set(of, value(old, &format!("{secret}{of}"))));
        put(store, secret, changes.into(), false, 2).await.unwrap();
    }
    assert_eq!(store.sealed_with_old_keys(None, 10).await.unwrap(), []);
    let new = key(store, 2).await;

    // All of them, some at a time, in the order of their places.
    let mut found: Vec<SealedRow> = Vec::new();
    loop {
        let after = found.last().map(|row| row.place.clone());
        let more = store.sealed_with_old_keys(after, 4).await.unwrap();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    let places: Vec<_> = found.iter().map(|row| row.place.to_string()).collect();
    let expected = ["a/x", "a/y", "a/z", "b/x", "b/y", "b/z"];
    assert_eq!(places, expected.map(|at| format!("default/secret/{at}")));

    // Meanwhile somebody sets one anew and removes another.
    put(store, "a", vec![set("y", value(new, "changed"))], false, 3)
        .await
        .unwrap();
    put(store, "b", vec![SealedChange::Remove(entry("x"))], false, 3)
        .await
        .unwrap();
    let again = |key: KeyId| {
        let row = |row: &SealedRow| {
            (
                row.clone(),
                value(key, &format!("again {}", row.sealed.text)),
            )
        };
        found.iter().map(row).collect::<Vec<_>>()
    };
    let refused = store.reseal(again(old)).await;
    assert!(matches!(refused, Err(SealError::KeyGone { key }) if key == old));
    assert_eq!(store.reseal(again(new)).await.unwrap(), 4);
    assert_eq!(
        take(store, &place("a", "x")).await,
        Some(value(new, "again ax"))
    );
    assert_eq!(
        take(store, &place("a", "y")).await,
        Some(value(new, "changed"))
    );
    assert_eq!(take(store, &place("b", "x")).await, None);
    assert_eq!(store.sealed_with_old_keys(None, 10).await.unwrap(), []);
    let secret = store.secret(&project(), &name("a")).await.unwrap().unwrap();
    assert_eq!(
        (secret.version, secret.updated_at),
        (2, at(3)),
        "nobody changed it"
    );
}

pub(crate) async fn a_key_goes_when_nothing_is_sealed_with_it(store: &Store) {
    let old = key(store, 1).await;
    put(
        store,
        "account",
        vec![set("user", value(old, "x"))],
        false,
        2,
    )
    .await
    .unwrap();
    let new = key(store, 2).await;
    let drop_unused = || store.drop_unused_seal_keys("root".into(), at(3));
    assert_eq!(drop_unused().await.unwrap(), []);
    assert_eq!(keys(store).await, [new, old]);

    let rows = store.sealed_with_old_keys(None, 10).await.unwrap();
    let again = rows.into_iter().map(|row| (row, value(new, "y"))).collect();
    assert_eq!(store.reseal(again).await.unwrap(), 1);
    assert_eq!(drop_unused().await.unwrap(), [old]);
    assert_eq!(
        drop_unused().await.unwrap(),
        [],
        "the one in use stays, with or without values"
    );
    assert_eq!(keys(store).await, [new]);
    let dropped = format!("key.drop key/{old} ");
    assert_eq!(
        entries(store)
            .await
            .iter()
            .filter(|entry| **entry == dropped)
            .count(),
        1
    );
}

pub(crate) async fn a_secret_is_shown_by_its_entries(store: &Store) {
    let key = key(store, 1).await;
    let row = put(
        store,
        "account",
        vec![
            set("user", value(key, "u")),
            set("password", value(key, "p")),
        ],
        false,
        2,
    );
    let expected = SecretRow {
        name: name("account"),
        entries: vec![entry("password"), entry("user")],
        version: 1,
        updated_by: "ana".to_owned(),
        updated_at: at(2),
    };
    assert_eq!(row.await.unwrap(), expected);
    assert_eq!(
        store.secret(&project(), &name("account")).await.unwrap(),
        Some(expected)
    );
    // Entries are added, changed and removed; each time it is the next version of the whole.
    let changes = vec![
        set("token", value(key, "t")),
        SealedChange::Remove(entry("user")),
        SealedChange::Remove(entry("never-there")),
    ];
    let row = put(store, "account", changes, false, 3).await.unwrap();
    assert_eq!(
        (row.version, row.entries),
        (2, vec![entry("password"), entry("token")])
    );
    // Or it is set as a whole.
    let row = put(store, "account", vec![set("a", value(key, "a"))], true, 4)
        .await
        .unwrap();
    assert_eq!((row.version, row.entries), (3, vec![entry("a")]));
    assert_eq!(take(store, &place("account", "token")).await, None);
}

pub(crate) async fn secrets_are_listed_and_removed(store: &Store) {
    let key = key(store, 1).await;
    for secret in ["account", "b", "c", "d"] {
        put(store, secret, vec![set("x", value(key, "x"))], false, 5)
            .await
            .unwrap();
    }
    let listed = async |project: &Name| {
        let (mut names, mut page) = (
            Vec::new(),
            Page {
                limit: 2,
                after: None,
            },
        );
        loop {
            let part = store.secrets(project, page.clone()).await.unwrap();
            names.extend(part.items.into_iter().map(|row| row.name.to_string()));
            page.after = part.next;
            if page.after.is_none() {
                return names;
            }
        }
    };
    assert_eq!(listed(&project()).await, ["account", "b", "c", "d"]);
    assert_eq!(listed(&name("elsewhere")).await, [""; 0]);

    let delete = async |of: &Name, secret: &str| {
        let secret = name(secret);
        let deleted = store.delete_secret(of, &secret, "ana".into(), at(6));
        deleted.await.unwrap()
    };
    assert!(!delete(&name("elsewhere"), "account").await);
    assert!(delete(&project(), "account").await);
    assert!(!delete(&project(), "account").await);
    assert_eq!(
        store.secret(&project(), &name("account")).await.unwrap(),
        None
    );
    let row = put(store, "account", vec![set("a", value(key, "a"))], false, 7)
        .await
        .unwrap();
    assert_eq!(row.version, 1, "another secret of the same name");
}

pub(crate) async fn a_secret_is_changed_whole_or_not_at_all(store: &Store) {
    let key = key(store, 1).await;
    put(
        store,
        "account",
        vec![set("user", value(key, "u"))],
        false,
        2,
    )
    .await
    .unwrap();
    let (before, said) = (
        store.secret(&project(), &name("account")).await.unwrap(),
        entries(store).await,
    );

    let one_bad = vec![
        SealedChange::Remove(entry("user")),
        set("a", value(key, "a")),
        set("b", value(wrapped(9).id, "b")),
    ];
    let refused = put(store, "account", one_bad, true, 3).await;
    assert!(matches!(refused, Err(SealError::KeyGone { .. })));

    let too_many: Vec<_> = (0..SECRET_ENTRIES_MAX)
        .map(|number| set(&format!("e{number}"), value(key, "x")))
        .collect();
    let refused = put(store, "account", too_many.clone(), false, 3).await;
    assert!(
        matches!(refused, Err(SealError::TooMany { found }) if found == SECRET_ENTRIES_MAX + 1)
    );

    let nowhere = name("nowhere");
    let refused = store
        .put_secret(
            (&nowhere, &name("account")),
            vec![set("a", value(key, "a"))],
            false,
            "ana".into(),
            at(3),
        )
        .await;
    assert!(matches!(refused, Err(SealError::NoProject { project }) if project == nowhere));

    let after = store.secret(&project(), &name("account")).await.unwrap();
    assert_eq!((after, entries(store).await), (before, said));
    assert_eq!(
        take(store, &place("account", "user")).await,
        Some(value(key, "u"))
    );

    let as_many_as_may_be = put(store, "account", too_many, true, 4).await.unwrap();
    assert_eq!(as_many_as_may_be.entries.len(), SECRET_ENTRIES_MAX);
}

pub(crate) async fn whoever_opens_a_secret_is_named(store: &Store) {
    let key = key(store, 1).await;
    put(
        store,
        "account",
        vec![set("user", value(key, "u"))],
        false,
        2,
    )
    .await
    .unwrap();
    let opener = store::Actor::new("carol", "192.0.2.7");
    let (user, other) = (place("account", "user"), place("account", "other"));
    let taken = store.take_sealed(&user, opener.clone(), at(5));
    assert_eq!(taken.await.unwrap(), Some(value(key, "u")));
    let none = store.take_sealed(&other, opener, at(6));
    assert_eq!(none.await.unwrap(), None);
    let mut said = store
        .audit(Some(&project()), Page::default())
        .await
        .unwrap()
        .items;
    said.retain(|entry| entry.action == "secret.open");
    let [entry] = said.as_slice() else {
        panic!("{said:?}")
    };
    assert_eq!(
        (entry.actor.as_str(), entry.origin.as_str(), entry.at),
        ("carol", "192.0.2.7", at(5))
    );
    assert_eq!(
        (entry.object.as_str(), entry.detail.as_str()),
        ("secret/account", "user")
    );
}
