//! The way out of what cannot be read: others go on, right input replaces wrong, and what is set aside
//! costs no machine that nobody named.

use crate::behind::Place;
use crate::fixture::{
    at, cluster, machines, name, plan, project, settle, submission, submit, text, view,
};
use expect_test::expect;
use model::cluster::Generation;
use model::id::ClusterId;
use model::intent::Wish;
use model::time::Timestamp;
use plan::Change;
use store::{Allowed, Draft, Page, Recovered, Recovery, Store, Submitted, WishError};

fn scale(cluster: &str, count: u32) -> Draft {
    Draft {
        project: project(),
        cluster: name(cluster),
        wish: Wish::Scale {
            pool: name("muscle"),
            count,
            was: 0,
        },
        author: "ana".into(),
        reason: "because".to_owned(),
        expires_at: None,
    }
}

fn recovery(cluster: &str) -> Recovery {
    Recovery {
        project: project(),
        cluster: name(cluster),
        leave: Vec::new(),
        abandon: false,
        allow: Allowed::default(),
        author: "ana".into(),
    }
}

/// Makes the newest desired state of a cluster one that nobody can read.
fn break_desired(place: &Place, cluster: ClusterId) {
    place.run(&format!(
        "UPDATE desired SET body = '{{\"cni\":\"quantum\"}}' WHERE cluster = '{cluster}'
           AND generation = (SELECT MAX(generation) FROM desired WHERE cluster = '{cluster}');"
    ));
}

async fn delete(store: &Store, manifest: &str, now: Timestamp) -> Submitted {
    store
        .delete_manifest(&project(), &name(manifest), "ana", now)
        .await
        .unwrap()
}

#[track_caller]
fn reason(refused: Result<Recovered, WishError>) -> String {
    match refused {
        Err(WishError::Refused { reason }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_cluster_that_cannot_be_read_keeps_no_other_of_its_manifest() {
    let test = "a_cluster_that_cannot_be_read_keeps_no_other_of_its_manifest";
    for place in Place::each(test) {
        let store = place.open();
        let shop = |workers| text("shop", &["east", "west"], 1, workers);
        let ids = submit(&store, &shop(1)).await.unwrap().changed;
        let (east, west) = (ids[0].0, ids[1].0);
        submit(&store, &shop(2)).await.unwrap();
        break_desired(&place, east);

        // A plan says what applying does: the other changes, this one stays, and why.
        let wider = submission(&shop(3));
        let previews = store
            .preview(&project(), &wider.manifest, None, at(1))
            .await
            .unwrap();
        let told: Vec<_> = previews.clusters.iter().map(|of| of.change).collect();
        assert_eq!(told, [Change::Changed]);
        expect![[r#"cluster east stays as it is: cannot read the desired state of a cluster that is stored, it is not of the form it should have (STORE-006); `slipway cluster recover east` sets that aside, then apply the manifest again"#]]
            .assert_eq(&previews.unread[0].to_string());
        let submitted = store.submit(wider, at(1)).await.unwrap();
        assert_eq!(submitted.changed, [(west, name("west"))]);
        assert_eq!(submitted.unread, [previews.unread[0].to_string()]);
        assert_eq!(submitted.unchanged, 1);

        // Also what removes it, or all of them: nothing is removed that nobody can name.
        let without = text("shop", &["west"], 1, 3).replace("10.0.0.0", "10.1.0.0");
        let submitted = submit(&store, &without).await.unwrap();
        assert_eq!((submitted.changed.len(), submitted.unread.len()), (0, 1));
        let gone = delete(&store, "shop", at(2)).await;
        assert_eq!(gone.changed, [(west, name("west"))]);
        assert_eq!(gone.unread.len(), 1);

        // The exit, and then it goes as well.
        store.recover(recovery("east"), at(3)).await.unwrap();
        assert!(!view(&store, east).await.desired.tombstone);
        let gone = delete(&store, "shop", at(3)).await;
        assert_eq!(gone.changed, [(east, name("east"))]);
        let desired = view(&store, east).await.desired;
        assert!(desired.tombstone);
        assert_eq!(
            machines(&desired),
            "(east-brain-01) (east-muscle-01) (east-muscle-02)"
        );
    }
}

#[tokio::test]
async fn what_is_recovered_has_its_machines_and_becomes_what_the_manifest_says() {
    let test = "what_is_recovered_has_its_machines_and_becomes_what_the_manifest_says";
    for place in Place::each(test) {
        let store = place.open();
        let east = cluster(&store, "east", 1).await;
        settle(&store, east, at(1)).await;
        submit(&store, &text("east", &["east"], 1, 3))
            .await
            .unwrap();
        settle(&store, east, at(2)).await;
        let before = view(&store, east).await.desired;
        break_desired(&place, east);

        let submitted = submit(&store, &text("east", &["east"], 1, 4))
            .await
            .unwrap();
        assert_eq!(submitted.unread.len(), 1);
        let recovered = store.recover(recovery("east"), at(3)).await.unwrap();
        expect![[r#"
            [
                "generation 2, what is desired was made from generation 1",
            ]
        "#]]
        .assert_debug_eq(&recovered.aside);
        let known = view(&store, east).await;
        assert!(known.is_unseen(), "somebody looks before anything is done");
        let after = known.desired;
        assert_eq!(after.generation, recovered.generation);
        assert_eq!(recovered.generation, Generation(4));
        for machine in &before.machines {
            assert!(after.machines.contains(machine), "{}", machine.name);
        }
        assert_eq!(
            machines(&after),
            "east-brain-01 east-muscle-01 east-muscle-02 east-muscle-03 east-muscle-04"
        );
        // Nobody asks twice.
        assert_eq!(
            reason(store.recover(recovery("east"), at(4)).await),
            "all that is stored of cluster east can be read"
        );
        let audit = store.audit(None, Page::default()).await.unwrap().items;
        assert!(audit.iter().any(|entry| entry.action == "cluster.recover"));
    }
}

#[tokio::test]
async fn a_cluster_whose_only_generation_cannot_be_read_is_made_of_its_manifest_and_its_machines() {
    let test = "a_cluster_whose_only_generation_cannot_be_read_is_made_of_its_manifest";
    for place in Place::each(test) {
        let store = place.open();
        let east = cluster(&store, "east", 2).await;
        settle(&store, east, at(1)).await;
        let before = view(&store, east).await.desired;
        break_desired(&place, east);
        // What is applied meanwhile is for later.
        submit(&store, &text("east", &["east"], 1, 3))
            .await
            .unwrap();
        let recovered = store.recover(recovery("east"), at(3)).await.unwrap();
        expect![[r#"
            [
                "generation 1, what is desired was made from what its manifest said then",
            ]
        "#]]
        .assert_debug_eq(&recovered.aside);
        let after = view(&store, east).await.desired;
        for machine in &before.machines {
            assert!(after.machines.contains(machine), "{}", machine.name);
        }
        assert_eq!(
            (
                after.network,
                &after.kubernetes,
                after.version,
                after.incarnation
            ),
            (
                before.network,
                &before.kubernetes,
                before.version,
                before.incarnation
            )
        );
        assert_eq!(
            machines(&after),
            "east-brain-01 east-muscle-01 east-muscle-02 east-muscle-03"
        );
    }
}

#[tokio::test]
async fn no_machine_is_left_to_itself_unless_it_is_named() {
    let test = "no_machine_is_left_to_itself_unless_it_is_named";
    for place in Place::each(test) {
        let store = place.open();
        let east = cluster(&store, "east", 1).await;
        settle(&store, east, at(1)).await;
        submit(&store, &text("east", &["east"], 1, 2))
            .await
            .unwrap();
        settle(&store, east, at(2)).await;
        break_desired(&place, east);
        // One that an older generation tells of as well, and one that nothing tells of.
        place.run("UPDATE machines SET body = '{}' WHERE name LIKE 'east-muscle-%';");
        assert_eq!(
            reason(store.recover(recovery("east"), at(3)).await),
            "nothing that can be read tells where east-muscle-02 is; with `--leave east-muscle-02` they are left to themselves"
        );
        assert!(store.cluster_view(east).await.is_err(), "nothing was done");
        let mut leaving = recovery("east");
        leaving.leave = vec![name("east-muscle-02")];
        let recovered = store.recover(leaving, at(3)).await.unwrap();
        assert_eq!(recovered.left, [name("east-muscle-02")]);
        // The manifest asks for two: another one comes, which is not taken for the one that was left.
        let desired = view(&store, east).await.desired;
        assert_eq!(desired.machines.len(), 3);
        let comes = desired.machines.last().unwrap();
        assert!(comes.incarnation > 1000, "{}", comes.incarnation);
        plan(&store, east, at(4)).await;
    }
}

#[tokio::test]
async fn a_cluster_of_which_nothing_is_left_can_be_given_up() {
    let place = Place::directory();
    let store = place.open();
    let east = cluster(&store, "east", 1).await;
    settle(&store, east, at(1)).await;
    let giving_up = || Recovery {
        abandon: true,
        ..recovery("east")
    };
    place.run(&format!(
        "UPDATE observations SET fact = '{{\"quark\":\"up\"}}' WHERE cluster = '{east}' AND source = 'kubernetes';"
    ));
    assert_eq!(
        reason(store.recover(giving_up(), at(2)).await),
        "the machines of cluster east are known; recover it, then delete it"
    );
    break_desired(&place, east);
    break_manifest(&place, "east");
    let refused = reason(store.recover(recovery("east"), at(2)).await);
    assert!(
        refused.starts_with("no generation of cluster east can be read"),
        "{refused}"
    );
    let recovered = store.recover(giving_up(), at(2)).await.unwrap();
    assert_eq!(
        recovered.left,
        [name("east-brain-01"), name("east-muscle-01")]
    );
    assert_eq!(store.cluster_view(east).await.unwrap(), None);
    let told = store.events(None, 0, 1000).await.unwrap();
    let told = told.iter().find(|event| event.kind == "cluster.recovered");
    assert!(
        told.unwrap()
            .message
            .ends_with("left to themselves: east-brain-01, east-muscle-01")
    );
    // The name is free, for another life.
    let again = submit(&store, &text("east", &["east"], 1, 1))
        .await
        .unwrap();
    assert_ne!(again.changed[0].0, east);
}

#[tokio::test]
async fn that_a_control_plane_was_started_is_never_forgotten() {
    let place = Place::directory();
    let store = place.open();
    let east = cluster(&store, "east", 1).await;
    settle(&store, east, at(1)).await;
    place.run("UPDATE observations SET fact = '{\"quark\":\"up\"}';");
    assert!(store.cluster_view(east).await.is_err());
    let recovered = store.recover(recovery("east"), at(2)).await.unwrap();
    assert!(recovered.aside.len() > 3, "{recovered:?}");
    assert!(view(&store, east).await.observed.initialised);
}

/// Makes the newest document of a manifest one that nobody can read.
fn break_manifest(place: &Place, manifest: &str) {
    place.run(&format!(
        "UPDATE manifest_generations SET body = '{{\"cni\":\"quantum\"}}' WHERE name = '{manifest}';"
    ));
}

async fn generation_of(store: &Store, manifest: &str) -> Generation {
    let row = store.manifest(&project(), &name(manifest)).await.unwrap();
    row.unwrap().generation
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_is_replaced_by_the_same_one_and_can_be_deleted() {
    for place in
        Place::each("a_manifest_that_cannot_be_read_is_replaced_by_the_same_one_and_can_be_deleted")
    {
        let store = place.open();
        let east = cluster(&store, "east", 1).await;
        break_manifest(&place, "east");
        let refused = store.wish(scale("east", 2), at(1)).await.unwrap_err();
        let WishError::Store(error) = refused else {
            panic!("{refused}")
        };
        assert_eq!(error.code(), "STORE-006");
        assert!(
            error.hint().contains("applying a manifest again"),
            "{}",
            error.hint()
        );

        submit(&store, &text("east", &["east"], 1, 1))
            .await
            .unwrap();
        assert_eq!(generation_of(&store, "east").await, Generation(2));
        store.wish(scale("east", 2), at(2)).await.unwrap();

        break_manifest(&place, "east");
        let gone = delete(&store, "east", at(3)).await;
        assert_eq!(gone.changed, [(east, name("east"))]);
        assert!(view(&store, east).await.desired.tombstone);
    }
}

#[tokio::test]
async fn names_of_machines_are_taken_also_by_a_manifest_that_cannot_be_read() {
    // By the list of names alone: no other manifest is read, whatever their number.
    let place = Place::directory();
    let store = place.open();
    submit(&store, &text("one", &["a-b"], 1, 1)).await.unwrap();
    break_manifest(&place, "one");
    let twin = text("two", &["a"], 1, 1).replace("brain", "b-brain");
    let refused = submit(&store, &twin).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "machines of a and its pool b-brain would be called as those of a-b and its pool brain, which belong to manifest one"
    );
    // Who is older than the list is read, and listed with the next change.
    let place = Place::directory();
    let store = place.open();
    submit(&store, &text("one", &["a-b"], 1, 1)).await.unwrap();
    place.run("DELETE FROM stems; UPDATE manifests SET listed = 0;");
    assert!(submit(&store, &twin).await.is_err());
    cluster(&store, "other", 1).await;
    break_manifest(&place, "one");
    assert!(submit(&store, &twin).await.is_err());
    delete(&store, "one", at(1)).await;
    submit(&store, &twin).await.unwrap();
}
