//! An audit chain that somebody touched behind the store's back: the entry is named.

use crate::behind::Place;
use crate::fixture::{at, name, project, submit, text};
use crate::furnished::token;
use store::{Actor, Quota, Store, Verified, Walk};

/// How many entries the chain has.
const ENTRIES: u64 = 7;

/// A chain with something in every column.
async fn chain(store: &Store) {
    let ana = || Actor::new("ana", "192.0.2.1");
    for workers in [1, 2, 3] {
        submit(store, &text("web", &["east"], 1, workers))
            .await
            .unwrap();
    }
    store
        .put_project(&name("shop"), Quota::default(), ana(), at(1))
        .await
        .unwrap();
    for holder in ["a", "b"] {
        store.add_token(token(holder), ana(), at(2)).await.unwrap();
    }
    store
        .delete_manifest(&project(), &name("web"), ana(), at(3))
        .await
        .unwrap();
}

/// What the store says, which is what a walk along the exported entries says.
async fn verdict(store: &Store) -> Verified {
    let verified = store.verify_audit().await.unwrap();
    if let Ok(entries) = store.audit_after(0, 1000).await {
        let mut walk = Walk::default();
        let whole = entries.iter().all(|entry| walk.step(entry));
        assert_eq!(whole, verified.broken.is_none());
        assert_eq!(walk.end(), verified);
    }
    verified
}

/// One change, how it is undone, and the entry that is named for it.
type Touch = (&'static str, &'static str, u64);

/// A byte of every column, numbers as well as texts.
const BYTES: &[Touch] = &[
    (
        "UPDATE audit SET at = at + 1 WHERE seq = 3",
        "UPDATE audit SET at = at - 1 WHERE seq = 3",
        3,
    ),
    (
        "UPDATE audit SET project = 'defaulu' WHERE seq = 3",
        "UPDATE audit SET project = 'default' WHERE seq = 3",
        3,
    ),
    (
        "UPDATE audit SET project = NULL WHERE seq = 3",
        "UPDATE audit SET project = 'default' WHERE seq = 3",
        3,
    ),
    (
        "UPDATE audit SET project = 'default' WHERE seq = 5",
        "UPDATE audit SET project = NULL WHERE seq = 5",
        5,
    ),
    (
        "UPDATE audit SET actor = 'anb' WHERE seq = 4",
        "UPDATE audit SET actor = 'ana' WHERE seq = 4",
        4,
    ),
    (
        "UPDATE audit SET origin = '192.0.2.2' WHERE seq = 4",
        "UPDATE audit SET origin = '192.0.2.1' WHERE seq = 4",
        4,
    ),
    (
        "UPDATE audit SET action = 'manifest.submiu' WHERE seq = 1",
        "UPDATE audit SET action = 'manifest.submit' WHERE seq = 1",
        1,
    ),
    (
        "UPDATE audit SET object = 'manifest/wec' WHERE seq = 7",
        "UPDATE audit SET object = 'manifest/web' WHERE seq = 7",
        7,
    ),
    (
        "UPDATE audit SET was = 3 WHERE seq = 3",
        "UPDATE audit SET was = 2 WHERE seq = 3",
        3,
    ),
    (
        "UPDATE audit SET was = -2 WHERE seq = 3",
        "UPDATE audit SET was = 2 WHERE seq = 3",
        3,
    ),
    (
        "UPDATE audit SET was = NULL WHERE seq = 3",
        "UPDATE audit SET was = 2 WHERE seq = 3",
        3,
    ),
    (
        "UPDATE audit SET became = 2 WHERE seq = 3",
        "UPDATE audit SET became = 3 WHERE seq = 3",
        3,
    ),
    (
        "UPDATE audit SET detail = 'a, uses' WHERE seq = 5",
        "UPDATE audit SET detail = 'a, user' WHERE seq = 5",
        5,
    ),
    (
        "UPDATE audit SET previous = '1' || substr(previous, 2) WHERE seq = 1",
        "UPDATE audit SET previous = '0' || substr(previous, 2) WHERE seq = 1",
        1,
    ),
    (
        "UPDATE audit SET digest = 'x' || digest WHERE seq = 2",
        "UPDATE audit SET digest = substr(digest, 2) WHERE seq = 2",
        2,
    ),
    // What has another number is missing from its place, and the next one says so.
    (
        "UPDATE audit SET seq = 30 WHERE seq = 3",
        "UPDATE audit SET seq = 3 WHERE seq = 30",
        4,
    ),
    (
        "UPDATE audit SET seq = 8 WHERE seq = 7",
        "UPDATE audit SET seq = 7 WHERE seq = 8",
        8,
    ),
    (
        "UPDATE audit SET seq = -1 WHERE seq = 1",
        "UPDATE audit SET seq = 1 WHERE seq = -1",
        2,
    ),
];

/// Two that change places: by their numbers, and by all they say.
const SWAPPED: &[Touch] = &[
    (
        "UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 99",
        "UPDATE audit SET seq = 99 WHERE seq = 2; UPDATE audit SET seq = 2 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 99",
        2,
    ),
    (
        "UPDATE audit SET detail = CASE WHEN seq = 5 THEN 'b, user' ELSE 'a, user' END WHERE seq IN (5, 6)",
        "UPDATE audit SET detail = CASE WHEN seq = 5 THEN 'a, user' ELSE 'b, user' END WHERE seq IN (5, 6)",
        5,
    ),
];

/// Entries that are gone for good; each time one more.
const REMOVED: &[(&str, u64)] = &[
    ("DELETE FROM audit WHERE seq = 5", 6),
    ("DELETE FROM audit WHERE seq = 3", 4),
    ("DELETE FROM audit WHERE seq = 1", 2),
];

#[tokio::test]
async fn whoever_touches_the_chain_is_noticed() {
    for place in Place::each("whoever_touches_the_chain_is_noticed") {
        let store = place.open();
        chain(&store).await;
        let whole = verdict(&store).await;
        assert_eq!((whole.entries, whole.broken), (ENTRIES, None));
        for (touch, undo, named) in BYTES.iter().chain(SWAPPED) {
            place.run(touch);
            let broken = verdict(&store).await.broken;
            assert_eq!(
                broken.map(|(seq, _)| seq),
                Some(*named),
                "{touch} on {place}"
            );
            place.run(undo);
            let whole = verdict(&store).await;
            assert_eq!(
                (whole.entries, whole.broken),
                (ENTRIES, None),
                "{undo} on {place}"
            );
        }
        // The end can be cut off without a trace in the chain: that is why its head is told,
        // to be kept elsewhere.
        let head = verdict(&store).await.head;
        place.run("DELETE FROM audit WHERE seq = 7");
        let shorter = verdict(&store).await;
        assert_eq!((shorter.entries, shorter.broken), (ENTRIES - 1, None));
        assert_ne!(shorter.head, head);
        for (touch, named) in REMOVED {
            place.run(touch);
            let broken = verdict(&store).await.broken.unwrap();
            assert_eq!(
                broken,
                (*named, "an entry before it is missing"),
                "{touch} on {place}"
            );
        }
    }
}

/// What was written after the touch does not cover it up.
#[tokio::test]
async fn a_chain_that_goes_on_stays_broken_where_it_was() {
    for place in Place::each("a_chain_that_goes_on_stays_broken_where_it_was") {
        let store = place.open();
        chain(&store).await;
        place.run("UPDATE audit SET actor = 'bob' WHERE seq = 2");
        submit(&store, &text("more", &["west"], 1, 1))
            .await
            .unwrap();
        let broken = verdict(&store).await.broken;
        assert_eq!(broken, Some((2, "it was changed after it was written")));
        // Not even with a digest that fits: the next entry follows another one.
        let entries = store.audit_after(0, 100).await.unwrap();
        place.run(&format!(
            "UPDATE audit SET digest = '{}' WHERE seq = 2",
            entries[1].computed()
        ));
        let broken = verdict(&store).await.broken;
        assert_eq!(broken, Some((3, "it does not follow the entry before it")));
    }
}
