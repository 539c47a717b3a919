//! Documents of environments that another version of the program wrote: refused with a sentence,
//! and nobody else is kept by them.

use crate::behind::Place;
use crate::fixture::{at, project};
use crate::habitat::{
    HERE, begin, called, claim, create, due, look_at_all, settings, settle_in, show, work,
};
use expect_test::expect;
use model::environment::status::{Deed, Status};
use std::fmt::Write as _;
use store::{EnvironmentFilter, EnvironmentOrder, Page, Store};

/// Every document: its table, which of its rows, and a text that this program does not know.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("environments", "name = 'east'", r#"{"edits":{"aura":{}}}"#),
    (
        "environment_actions",
        "name = 'east'",
        r#"{"deed":"teleport"}"#,
    ),
    ("environment_settings", "1 = 1", r#"{"scripts":7}"#),
];

/// What is said of the one, and that everybody else goes on.
async fn told(store: &Store, table: &str) -> String {
    let mut told = String::new();
    let east = store.environment(&project(), &called("east")).await;
    match east.as_ref() {
        Ok(_) => told.push_str("read"),
        Err(error) => write!(told, "{}", error.code()).unwrap(),
    }
    let updated = begin(store, "east", Deed::Update, 20).await;
    write!(
        told,
        ", update {}",
        updated.map_or_else(|error| error.to_string(), |_| "begun".to_owned())
    )
    .unwrap();
    let west = begin(store, "west", Deed::Update, 20).await;
    let others = table != "environment_settings";
    assert_eq!(west.is_ok(), others, "{table}");
    store.outlived_environments(10, at(20)).await.unwrap();
    let claimed = claim(store, 21).await;
    let names: Vec<_> = claimed.iter().map(|claim| claim.name.as_str()).collect();
    write!(told, ", claimed {}", names.join(" ")).unwrap();
    assert_eq!(names.contains(&"west"), others);
    assert!(names.contains(&"south"), "it was asked before");
    drop(claimed);
    store.void_actions(at(22)).await.unwrap();
    let looks = due(store, 23).await;
    let names: Vec<_> = looks.iter().map(|check| check.name.as_str()).collect();
    let looked = if names.is_empty() {
        "nobody".to_owned()
    } else {
        names.join(" ")
    };
    write!(told, ", looked at {looked}").unwrap();
    assert_eq!(names.contains(&"north"), others);
    look_at_all(store, 1, 900).await;
    let filter = EnvironmentFilter::default();
    let listed = store
        .environments(&project(), filter, EnvironmentOrder::Name, Page::default())
        .await;
    assert_eq!(
        listed.unwrap().items.len(),
        4,
        "whoever looks sees which one it is"
    );
    told
}

#[tokio::test]
async fn environments_that_another_version_wrote_keep_nobody_else() {
    for place in Place::each("environments_that_another_version_wrote_keep_nobody_else") {
        let mut all = String::new();
        for (table, which, unknown) in DOCUMENTS {
            for set in ["format = 99".to_owned(), format!("body = '{unknown}'")] {
                let place = place.another();
                let store = place.open();
                settle_in(&store, settings()).await;
                for called in ["east", "north", "west"] {
                    create(&store, called, 1).await;
                }
                if *table != "environment_actions" {
                    work(&store, 2).await;
                }
                create(&store, "south", 3).await;
                if *table == "environment_actions" {
                    place.run(&format!("UPDATE {table} SET {set} WHERE {which};"));
                    work(&store, 4).await;
                    begin(&store, "south", Deed::Update, 5).await.unwrap();
                } else {
                    place.run(&format!("UPDATE {table} SET {set} WHERE {which};"));
                }
                let told = told(&store, table).await;
                let how = set.split(' ').next().unwrap();
                writeln!(all, "{table} {how}: {told}").unwrap();
            }
        }
        expect![[r#"
            environments format: STORE-007, update cannot read an environment that is stored, its format is 99 and this program knows up to 1, claimed south west, looked at north
            environments body: STORE-006, update cannot read an environment that is stored, it is not of the form it should have, claimed south west, looked at north
            environment_actions format: read, update it is busy: create is under way, claimed south west, looked at north
            environment_actions body: read, update it is busy: create is under way, claimed south west, looked at north
            environment_settings format: read, update cannot read what a project says of its environments that is stored, its format is 99 and this program knows up to 1, claimed south, looked at nobody
            environment_settings body: read, update cannot read what a project says of its environments that is stored, it is not of the form it should have, claimed south, looked at nobody
        "#]]
        .assert_eq(&all);
    }
}

#[tokio::test]
async fn what_another_version_was_to_do_can_be_called_off() {
    for place in Place::each("what_another_version_was_to_do_can_be_called_off") {
        let store = place.open();
        settle_in(&store, settings()).await;
        create(&store, "east", 1).await;
        create(&store, "west", 1).await;
        // Of one somebody says that it is begun.
        let claims = claim(&store, 2).await;
        let west = claims.iter().find(|claim| claim.name == called("west"));
        let west = west.unwrap();
        let out = store.set_out_action(west, HERE, at(2)).await;
        out.unwrap().unwrap();
        place.run("UPDATE environment_actions SET format = 99;");
        store.void_actions(at(3)).await.unwrap();
        assert_eq!(claim(&store, 4).await.len(), 0, "both are set aside");
        for name in ["east", "west"] {
            let row = show(&store, name).await;
            let action = row.busy.unwrap().action;
            let by = "ana".into();
            let cancelled = store.cancel_action(&project(), action, by, at(5)).await;
            cancelled.unwrap();
        }
        // Its script may run until its time is over.
        claim(&store, 700).await;
        assert!(show(&store, "west").await.busy.is_some());
        claim(&store, 100_000).await;
        for name in ["east", "west"] {
            let row = show(&store, name).await;
            assert_eq!((row.busy, row.status), (None, Status::CreatePending));
        }
        let looks = due(&store, 100_001).await;
        assert_eq!(looks.len(), 2, "looks tell how they are");
        begin(&store, "west", Deed::Archive, 100_002).await.unwrap();
    }
}
