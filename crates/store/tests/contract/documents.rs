//! Manifests and desired state, by generation.

use crate::fixture::{
    absent, admitted, at, claim, cluster, edited, events, generation, machines, name, plan,
    project, record, settle, submission, submit, text, text_with_given, view,
};
use expect_test::expect;
use model::id::ClusterId;
use model::intent::Wish;
use model::observed::Observation;
use plan::{Change, Phase};
use store::{
    Claim, Clash, CommitError, Draft, Ended, Page, Recorded, Store, SubmitError, Submitted,
};

/// Makes all that a submission asks for.
async fn settle_all(store: &Store, submitted: Submitted) {
    for (cluster, _) in submitted.changed {
        settle(store, cluster, at(0)).await;
    }
}

pub(crate) async fn a_submission_becomes_a_generation_and_clusters(store: &Store) {
    let submitted = submit(store, &text("shop", &["east", "west"], 1, 1))
        .await
        .unwrap();
    assert_eq!(submitted.generation, generation(1));
    assert_eq!((submitted.changed.len(), submitted.unchanged), (2, 0));

    let row = store
        .manifest(&project(), &name("shop"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.generation, row.author.as_str(), row.deleted),
        (generation(1), "ana", false)
    );
    let clusters: Vec<_> = row
        .clusters
        .iter()
        .map(|(name, summary)| (name.as_str(), summary.phase))
        .collect();
    assert_eq!(
        clusters,
        [("east", Phase::Pending), ("west", Phase::Pending)]
    );

    let west = store
        .cluster(&project(), &name("west"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (west.summary.control, west.summary.compute),
        ((0, 1), (0, 1))
    );
    assert_eq!(
        machines(&view(store, west.id).await.desired),
        "west-brain-01 west-muscle-01"
    );
    expect![[r#"
        cluster.changed cluster/east: generation 1: 2 machines, Kubernetes v1.34.1
        cluster.changed cluster/west: generation 1: 2 machines, Kubernetes v1.34.1
        manifest.submitted manifest/shop: ana submitted generation 1: 2 clusters changed, 0 unchanged
    "#]]
    .assert_eq(&events(store).await);
}

pub(crate) async fn the_same_text_twice_is_one_generation(store: &Store) {
    let text = text("shop", &["east"], 1, 1);
    submit(store, &text).await.unwrap();
    let before = events(store).await;
    let again = submit(store, &text).await.unwrap();
    assert_eq!(
        (again.generation, again.changed.len(), again.unchanged),
        (generation(1), 0, 1)
    );
    assert_eq!(events(store).await, before);
}

pub(crate) async fn a_submission_for_another_generation_is_refused(store: &Store) {
    let based_on = |parent: u64, workers: u32| {
        let mut submission = submission(&text("shop", &["east"], 1, workers));
        submission.parent = Some(generation(parent));
        submission
    };
    store.submit(based_on(0, 1), at(0)).await.unwrap();
    store.submit(based_on(1, 2), at(0)).await.unwrap();
    for stale in [0, 1, 3] {
        let refused = store.submit(based_on(stale, 3), at(0)).await.unwrap_err();
        assert!(matches!(refused, SubmitError::Conflict { current } if current == generation(2)));
    }
    // The text that is stored is no excuse for not knowing what is current.
    let refused = store.submit(based_on(1, 2), at(0)).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Conflict { current } if current == generation(2)));
    let same = store.submit(based_on(2, 2), at(0)).await.unwrap();
    assert_eq!((same.generation, same.changed), (generation(2), vec![]));

    let mut with_key = based_on(2, 3);
    with_key.key = Some("once".to_owned());
    let stored = store.submit(with_key.clone(), at(0)).await.unwrap();
    assert_eq!(stored.generation, generation(3));
    assert_eq!(
        store.submit(with_key, at(0)).await.unwrap(),
        stored,
        "a repeat is answered as before, though its parent is no longer current"
    );
}

pub(crate) async fn old_generations_stay_readable(store: &Store) {
    for workers in 1..=3 {
        submit(store, &text("shop", &["east"], 1, workers))
            .await
            .unwrap();
    }
    let first = store
        .manifest_at(&project(), &name("shop"), generation(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(first.text, text("shop", &["east"], 1, 1));
    let page = Page {
        limit: 2,
        after: None,
    };
    let newest = store
        .manifest_generations(&project(), &name("shop"), page)
        .await
        .unwrap();
    let numbers: Vec<_> = newest.items.iter().map(|row| row.generation.0).collect();
    assert_eq!(numbers, [3, 2]);
    let page = Page {
        limit: 2,
        after: newest.next,
    };
    let rest = store
        .manifest_generations(&project(), &name("shop"), page)
        .await
        .unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));

    let east = store
        .cluster(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap()
        .id;
    let first = store
        .desired_at(east, generation(1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(machines(&first), "east-brain-01 east-muscle-01");
    let all = store
        .desired_generations(east, Page::default())
        .await
        .unwrap();
    assert_eq!(all.items.len(), 3);
    assert_eq!(store.desired_at(east, generation(4)).await.unwrap(), None);
}

pub(crate) async fn a_cluster_has_one_manifest(store: &Store) {
    submit(store, &text("shop", &["east"], 1, 1)).await.unwrap();
    let refused = submit(store, &text("bank", &["north", "east"], 1, 1))
        .await
        .unwrap_err();
    assert_eq!(refused.to_string(), "cluster east belongs to manifest shop");
    assert_eq!(
        store.manifest(&project(), &name("bank")).await.unwrap(),
        None
    );
    assert_eq!(
        store.cluster(&project(), &name("north")).await.unwrap(),
        None
    );
}

pub(crate) async fn a_change_that_removes_too_much_needs_consent(store: &Store) {
    let submitted = submit(store, &text("shop", &["east"], 1, 5)).await;
    settle_all(store, submitted.unwrap()).await;
    let less = text("shop", &["east"], 1, 2);
    let refused = submit(store, &less).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "3 of the 6 machines of cluster east would be removed at once"
    );
    let SubmitError::Blast { percent_needed, .. } = refused else {
        panic!("{refused}")
    };
    assert_eq!(percent_needed, 50);

    let mut consented = submission(&less);
    consented.allow = Some(49).into();
    store.submit(consented.clone(), at(0)).await.unwrap_err();
    consented.allow = Some(50).into();
    store.submit(consented, at(0)).await.unwrap();
    let east = store
        .cluster(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        machines(&view(store, east.id).await.desired),
        "east-brain-01 east-muscle-01 east-muscle-02 (east-muscle-03) (east-muscle-04) (east-muscle-05)"
    );
}

/// Six machines that were planned, with all attempts at making them begun.
async fn begun(store: &Store) -> (ClusterId, Vec<Claim>) {
    let east = cluster(store, "east", 5).await;
    plan(store, east, at(1)).await;
    let claims = claim(store, at(1)).await;
    assert_eq!(claims.len(), 6);
    (east, claims)
}

/// The same cluster of other machines, for none of the old ones can become one of them.
async fn correct(store: &Store) -> String {
    let other = text("east", &["east"], 1, 5).replace("serverType: small", "serverType: large");
    match submit(store, &other).await {
        Ok(_) => "accepted".to_owned(),
        Err(refused) => refused.to_string(),
    }
}

pub(crate) async fn machines_that_were_never_made_need_no_consent(store: &Store) {
    let (_, claims) = begun(store).await;
    for claim in claims {
        let error = "no such server type".to_owned();
        assert_eq!(
            record(store, claim, Ended::Stuck { error }, at(2)).await,
            Recorded::Yes
        );
    }
    assert_eq!(correct(store).await, "accepted");
}

pub(crate) async fn small_steps_that_are_not_taken_yet_are_one_large_one(store: &Store) {
    let other = submit(store, &text("other", &["north"], 1, 30)).await;
    settle_all(store, other.unwrap()).await;
    let submitted = submit(store, &text("shop", &["east"], 1, 6)).await;
    settle_all(store, submitted.unwrap()).await;
    submit(store, &text("shop", &["east"], 1, 5)).await.unwrap();
    let second = submit(store, &text("shop", &["east"], 1, 4)).await.unwrap();
    let refused = submit(store, &text("shop", &["east"], 1, 3)).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "3 of the 7 machines of cluster east, 2 of which are leaving already, would be removed at once"
    );
    settle_all(store, second).await;
    submit(store, &text("shop", &["east"], 1, 3)).await.unwrap();
}

pub(crate) async fn a_cluster_is_not_stranded_unasked(store: &Store) {
    let submitted = submit(store, &text("shop", &["east"], 3, 9)).await;
    settle_all(store, submitted.unwrap()).await;
    let less = text("shop", &["east"], 1, 9);
    let refused = submit(store, &less).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "2 of the 3 machines of the control plane of cluster east would be removed at once"
    );
    let mut consented = submission(&less);
    consented.allow.blast = Some(67);
    store.submit(consented, at(0)).await.unwrap();

    let one = submit(store, &text("one", &["west"], 1, 1)).await;
    settle_all(store, one.unwrap()).await;
    let none = edited(
        &text("one", &["west"], 1, 1),
        &[("compute: [muscle]", "compute: []")],
    );
    let none: String = none
        .lines()
        .filter(|line| !line.contains("name: muscle"))
        .map(|line| format!("{line}\n"))
        .collect();
    let refused = submit(store, &none).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "1 of the 1 machines of cluster west that take workloads, and no other is left, would be removed at once"
    );
    let mut consented = submission(&none);
    consented.allow.blast = Some(100);
    store.submit(consented, at(0)).await.unwrap();
}

pub(crate) async fn a_manifest_is_judged_with_what_was_wished(store: &Store) {
    let two = |back: u32| {
        let pool = format!(
            "      - {{name: back, providerSpec: {{name: lab, region: north}}, count: {back}, \
             serverType: small, image: debian-12}}\n  kubernetes:"
        );
        edited(
            &text("shop", &["east"], 3, 1),
            &[
                ("  kubernetes:", &pool),
                ("control: [brain]", "control: [brain, back]"),
            ],
        )
    };
    submit(store, &two(2)).await.unwrap();
    let draft = Draft {
        project: project(),
        cluster: name("east"),
        wish: Wish::Scale {
            pool: name("brain"),
            count: 5,
            was: 3,
        },
        author: "ana".into(),
        reason: "more".to_owned(),
        expires_at: None,
    };
    let wished = store.wish(draft, at(0)).await.unwrap();
    let refused = submit(store, &two(4)).await.unwrap_err();
    let SubmitError::Faults(faults) = refused else {
        panic!("{refused}")
    };
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].path, "spec.kubernetes.clusters[0].pools");
    let id = wished.id.to_string();
    assert!(
        faults[0].message.contains("found 9 control machines"),
        "{faults:?}"
    );
    assert!(faults[0].message.contains(&id), "{faults:?}");
}

pub(crate) async fn machines_that_were_seen_to_be_absent_need_no_consent(store: &Store) {
    let (east, claims) = begun(store).await;
    let seen: Vec<_> = claims
        .iter()
        .map(|claim| Observation {
            cluster: east,
            fact: absent(&claim.task.machine),
            at: at(1),
        })
        .collect();
    store.observe(east, seen, at(1)).await.unwrap();
    let refused = "6 of the 6 machines of cluster east would be removed at once";
    assert_eq!(correct(store).await, refused, "they are being made");
    for claim in claims {
        let ended = Ended::Retry {
            error: "no quota".to_owned(),
            not_before: at(60),
        };
        assert_eq!(record(store, claim, ended, at(2)).await, Recorded::Yes);
    }
    assert_eq!(correct(store).await, "accepted");
}

pub(crate) async fn machines_that_may_have_been_made_need_consent(store: &Store) {
    let (_, mut claims) = begun(store).await;
    let made = claims.split_off(2);
    for claim in claims {
        let error = "no such server type".to_owned();
        assert_eq!(
            record(store, claim, Ended::Stuck { error }, at(2)).await,
            Recorded::Yes
        );
    }
    for claim in made {
        let ended = Ended::Retry {
            error: "no answer".to_owned(),
            not_before: at(60),
        };
        assert_eq!(record(store, claim, ended, at(2)).await, Recorded::Yes);
    }
    assert_eq!(
        correct(store).await,
        "4 of the 4 machines of cluster east would be removed at once"
    );
}

pub(crate) async fn a_cluster_that_is_no_longer_declared_needs_consent(store: &Store) {
    let submitted = submit(store, &text("shop", &["east", "west"], 1, 2)).await;
    settle_all(store, submitted.unwrap()).await;
    let less = text("shop", &["east"], 1, 2);
    let refused = submit(store, &less).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "3 of the 3 machines of cluster west would be removed at once"
    );

    let mut consented = submission(&less);
    consented.allow = Some(100).into();
    let submitted = store.submit(consented, at(0)).await.unwrap();
    assert_eq!((submitted.changed.len(), submitted.unchanged), (1, 1));
    let west = store
        .cluster(&project(), &name("west"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(west.summary.phase, Phase::Deleting);
    assert!(view(store, west.id).await.desired.tombstone);
}

pub(crate) async fn what_cannot_change_is_refused_whole(store: &Store) {
    let text = text("shop", &["east", "west"], 1, 1);
    settle_all(store, submit(store, &text).await.unwrap()).await;
    let changed = text.replace(
        "v1.34.1, network: 10.1.0.0/16",
        "v1.33.0, network: 10.9.0.0/16",
    );
    let SubmitError::Faults(faults) = submit(store, &changed).await.unwrap_err() else {
        panic!("not refused")
    };
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "spec.kubernetes.clusters[1].network",
            "spec.kubernetes.clusters[1].version"
        ]
    );
    let row = store
        .manifest(&project(), &name("shop"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.generation, generation(1));
}

pub(crate) async fn a_deleted_manifest_leaves_tombstones_until_all_is_gone(store: &Store) {
    let east = cluster(store, "east", 2).await;
    settle(store, east, at(1)).await;
    let deleted = store
        .delete_manifest(&project(), &name("east"), "ben", at(2))
        .await
        .unwrap();
    assert_eq!(
        (deleted.generation, deleted.changed.len()),
        (generation(2), 1)
    );
    let again = store
        .delete_manifest(&project(), &name("east"), "ben", at(2))
        .await
        .unwrap();
    assert_eq!((again.generation, again.changed.len()), (generation(2), 0));

    let row = store
        .manifest(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap();
    assert!(row.deleted);
    assert_eq!(row.clusters[0].1.phase, Phase::Deleting);
    assert_eq!(
        store
            .manifests(&project(), Page::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );

    settle(store, east, at(3)).await;
    assert_eq!(
        store.cluster(&project(), &name("east")).await.unwrap(),
        None
    );
    assert_eq!(store.live_clusters().await.unwrap(), []);
    assert_eq!(
        store
            .manifests(&project(), Page::default())
            .await
            .unwrap()
            .items,
        []
    );
    assert!(
        store
            .manifest(&project(), &name("east"))
            .await
            .unwrap()
            .unwrap()
            .clusters
            .is_empty()
    );

    let unknown = store
        .delete_manifest(&project(), &name("nobody"), "ben", at(2))
        .await
        .unwrap_err();
    assert!(matches!(unknown, SubmitError::NotFound { .. }));
}

pub(crate) async fn a_name_used_again_is_another_cluster(store: &Store) {
    let first = cluster(store, "east", 1).await;
    store
        .delete_manifest(&project(), &name("east"), "ana", at(1))
        .await
        .unwrap();
    let second = cluster(store, "east", 1).await;
    assert_ne!(first, second);
    // Both are there; the one that is to stay bears the name.
    assert_eq!(store.live_clusters().await.unwrap().len(), 2);
    let row = store
        .cluster(&project(), &name("east"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((row.id, row.incarnation), (second, 1));
    let brain = store
        .machines_named(&project(), &name("east-brain-01"))
        .await
        .unwrap();
    let leaving: Vec<_> = brain.iter().map(|row| row.leaving).collect();
    assert_eq!(leaving, [false, true]);

    // Machines that were never seen must be deleted before they are believed to be gone.
    settle(store, first, at(2)).await;
    let live: Vec<_> = store
        .live_clusters()
        .await
        .unwrap()
        .into_iter()
        .map(|live| live.id)
        .collect();
    assert_eq!(live, [second]);
}

pub(crate) async fn a_key_repeats_the_answer(store: &Store) {
    let keyed = |workers: u32| {
        let mut submission = submission(&text("shop", &["east"], 1, workers));
        submission.key = Some("k1".to_owned());
        submission
    };
    let first = store.submit(keyed(1), at(0)).await.unwrap();
    submit(store, &text("shop", &["east"], 1, 2)).await.unwrap();
    let repeated = store.submit(keyed(1), at(0)).await.unwrap();
    assert_eq!(first, repeated);
    let row = store
        .manifest(&project(), &name("shop"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.generation, generation(2), "a repeat does nothing");

    let other = store.submit(keyed(3), at(0)).await.unwrap_err();
    assert!(matches!(other, SubmitError::KeyReused { .. }));
}

pub(crate) async fn a_preview_writes_nothing(store: &Store) {
    let submitted = submit(store, &text("shop", &["east", "west"], 1, 1)).await;
    settle_all(store, submitted.unwrap()).await;
    let before = events(store).await;
    let next = text("shop", &["east", "north"], 1, 1).replacen("v1.34.1", "v1.34.2", 1);
    let refused = store
        .preview(&project(), &admitted(&next), None, at(1))
        .await
        .unwrap_err();
    assert!(matches!(refused, SubmitError::Blast { .. }), "{refused}");

    let previews = store
        .preview(&project(), &admitted(&next), Some(100), at(1))
        .await
        .unwrap();
    let previews = previews.clusters;
    let changes: Vec<_> = previews
        .iter()
        .map(|one| (one.desired.name.as_str(), one.change))
        .collect();
    assert_eq!(
        changes,
        [
            ("east", Change::Changed),
            ("north", Change::New),
            ("west", Change::Removed)
        ]
    );
    assert_eq!(previews[0].known.desired.version.to_string(), "v1.34.1");
    assert_eq!(
        previews[0].view(at(1)).desired.version.to_string(),
        "v1.34.2"
    );
    assert_eq!(events(store).await, before);
    assert_eq!(store.live_clusters().await.unwrap().len(), 2);
}

pub(crate) async fn a_twin_goes_its_own_way(store: &Store) {
    let east = cluster(store, "east", 1).await;
    let west = cluster(store, "west", 1).await;
    settle(store, east, at(1)).await;
    submit(store, &text("east", &["east"], 1, 2)).await.unwrap();

    let twin = store.twin(&project(), &name("east")).await.unwrap();
    assert_eq!(view(&twin, east).await, view(store, east).await);
    assert_eq!(twin.cluster_view(west).await.unwrap(), None);
    settle(&twin, east, at(2)).await;
    let row = |row: Option<store::ClusterRow>| row.unwrap().summary.phase;
    assert_eq!(
        row(twin.cluster(&project(), &name("east")).await.unwrap()),
        Phase::Done
    );
    assert_eq!(
        row(store.cluster(&project(), &name("east")).await.unwrap()),
        Phase::Pending
    );
}

pub(crate) async fn a_twin_knows_what_others_hold(store: &Store) {
    let theirs = text_with_given("west", "west", "{endpoint: 203.0.113.5}");
    let west = submit(store, &theirs).await.unwrap().changed[0].0;
    settle(store, west, at(1)).await;
    // Not planned yet: the twin must not do it either.
    cluster(store, "north", 1).await;

    let twin = store.twin(&project(), &name("east")).await.unwrap();
    assert_eq!(twin.live_clusters().await.unwrap(), []);
    assert_eq!(twin.unplanned().await.unwrap(), []);
    assert_eq!(twin.cluster(&project(), &name("west")).await.unwrap(), None);
    let taken = submit(&twin, &text("east", &["west"], 1, 1)).await;
    assert!(matches!(
        taken.unwrap_err(),
        SubmitError::Taken { clashes }
            if matches!(&clashes[..], [Clash::Cluster { manifest, .. }] if *manifest == name("west"))
    ));
    let mine = text_with_given("east", "east", "{endpoint: 203.0.113.5}");
    let east = submit(&twin, &mine).await.unwrap().changed[0].0;
    let wanted = plan::plan(&view(&twin, east).await.view(at(2)));
    let refused = twin.commit(wanted, at(2)).await.unwrap_err();
    assert!(matches!(refused, CommitError::Refused { .. }), "{refused}");
}
