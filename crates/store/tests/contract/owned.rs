//! Projects, what they have, and how much they may have.

use crate::fixture::{
    admitted, at, claim, cluster, edited, effect, events, name, plan, plan_and_hold, project,
    refusal, settle, submission, submit, submit_to, text, view,
};
use crate::sealed;
use crate::spoken::token;
use expect_test::expect;
use model::name::Name;
use plan::{Phase, Reason};
use store::{
    ClusterFilter, Ended, Page, ProjectError, Quota, Recorded, SealedChange, Store, SubmitError,
    TaskFilter,
};

/// A limit on machines alone.
fn machines(limit: u32) -> Quota {
    Quota {
        machines: Some(limit),
        ..Quota::default()
    }
}

/// A limit on clusters alone.
fn clusters(limit: u32) -> Quota {
    Quota {
        clusters: Some(limit),
        ..Quota::default()
    }
}

async fn put(store: &Store, project: &Name, quota: Quota) -> bool {
    store
        .put_project(project, quota, "root".into(), at(1))
        .await
        .unwrap()
}

/// Why a project cannot be removed.
async fn kept(store: &Store, project: &Name) -> String {
    let refused = store
        .delete_project(project, "root".into(), at(9))
        .await
        .unwrap_err();
    refused.to_string()
}

/// What waits in a cluster, each with its reason.
async fn held(store: &Store, project: &Name, cluster: &str) -> Vec<String> {
    let row = store
        .cluster(project, &name(cluster))
        .await
        .unwrap()
        .unwrap();
    row.held.iter().map(ToString::to_string).collect()
}

pub(crate) async fn a_project_is_made_changed_and_removed(store: &Store) {
    let shop = name("shop");
    assert_eq!(store.project(&shop).await.unwrap(), None);
    let quota = Quota {
        clusters: Some(3),
        machines: Some(20),
        environments: Some(0),
    };
    assert!(put(store, &shop, quota).await, "it is new");
    let row = store.project(&shop).await.unwrap().unwrap();
    assert_eq!((row.quota, row.clusters, row.machines), (quota, 0, 0));
    assert_eq!((row.created_at, row.updated_at), (at(1), at(1)));

    let again = store
        .put_project(&shop, clusters(1), "root".into(), at(5))
        .await
        .unwrap();
    assert!(!again, "it was there");
    let row = store.project(&shop).await.unwrap().unwrap();
    assert_eq!(row.quota, clusters(1), "what is not said has no limit");
    assert_eq!((row.created_at, row.updated_at), (at(1), at(5)));

    submit_to(store, &shop, &text("web", &["east"], 1, 2))
        .await
        .unwrap();
    let row = store.project(&shop).await.unwrap().unwrap();
    assert_eq!((row.clusters, row.machines), (1, 3));
    let phases = store.phases(&shop).await.unwrap();
    assert_eq!(phases, [(Phase::Pending, 1)].into());

    for letter in ["a", "b", "zz"] {
        put(store, &name(letter), Quota::default()).await;
    }
    let (mut listed, mut page) = (
        Vec::new(),
        Page {
            limit: 2,
            after: None,
        },
    );
    loop {
        let part = store.projects(None, page.clone()).await.unwrap();
        listed.extend(part.items.iter().map(|row| row.name.to_string()));
        page.after = part.next;
        if page.after.is_none() {
            break;
        }
    }
    assert_eq!(listed, ["a", "b", "default", "shop", "zz"]);
    let own = store.projects(Some(&name("b")), Page::default()).await;
    let own: Vec<_> = own.unwrap().items.into_iter().map(|row| row.name).collect();
    assert_eq!(own, [name("b")], "whoever may see one project sees one");

    store
        .delete_project(&name("b"), "root".into(), at(6))
        .await
        .unwrap();
    assert_eq!(store.project(&name("b")).await.unwrap(), None);
    let gone = store.delete_project(&name("b"), "root".into(), at(7)).await;
    assert!(matches!(gone, Err(ProjectError::NotFound { project }) if project == name("b")));
}

pub(crate) async fn a_project_that_has_something_stays(store: &Store) {
    let shop = name("shop");
    put(store, &shop, Quota::default()).await;
    let submitted = submit_to(store, &shop, &text("web", &["east"], 1, 1)).await;
    let east = submitted.unwrap().changed[0].0;
    assert_eq!(
        kept(store, &shop).await,
        "project shop still has 1 manifest"
    );
    settle(store, east, at(2)).await;
    store
        .delete_manifest(&shop, &name("web"), "ana", at(3))
        .await
        .unwrap();
    assert_eq!(kept(store, &shop).await, "project shop still has 1 cluster");
    settle(store, east, at(4)).await;

    let key = sealed::key(store, 1).await;
    let change = SealedChange::Set("user".parse().unwrap(), sealed::value(key, "x"));
    store
        .put_secret(
            (&shop, &name("account")),
            vec![change],
            false,
            "ana".into(),
            at(5),
        )
        .await
        .unwrap();
    assert_eq!(
        kept(store, &shop).await,
        "project shop still has 1 sealed value"
    );
    store
        .delete_secret(&shop, &name("account"), "ana".into(), at(6))
        .await
        .unwrap();

    let drafts = [token("ci", Some(&shop)), token("cd", Some(&shop))];
    let ids = drafts.each_ref().map(|draft| draft.id);
    for draft in drafts {
        store.add_token(draft, "root".into(), at(7)).await.unwrap();
    }
    for (id, has) in ids.into_iter().zip(["2 tokens", "1 token"]) {
        let told = format!("project shop still has {has}");
        assert_eq!(kept(store, &shop).await, told);
        store
            .revoke_token(id, None, "root".into(), at(8))
            .await
            .unwrap();
    }
    store
        .delete_project(&shop, "root".into(), at(9))
        .await
        .unwrap();

    expect![
        "project default still has to be there: it is where everything goes that names no project"
    ]
    .assert_eq(&kept(store, &project()).await);
    assert!(store.project(&project()).await.unwrap().is_some());
}

pub(crate) async fn a_submission_into_an_unknown_project_is_refused(store: &Store) {
    let nowhere = name("nowhere");
    let text = text("web", &["east"], 1, 1);
    let refused = submit_to(store, &nowhere, &text).await.unwrap_err();
    assert!(matches!(&refused, SubmitError::NoProject { project } if *project == nowhere));
    let manifest = admitted(&text);
    let refused = store.preview(&nowhere, &manifest, None, at(0)).await;
    assert!(matches!(refused, Err(SubmitError::NoProject { .. })));

    // A project that was removed is as unknown as one that never was.
    put(store, &nowhere, Quota::default()).await;
    store
        .delete_project(&nowhere, "root".into(), at(2))
        .await
        .unwrap();
    let refused = submit_to(store, &nowhere, &text).await.unwrap_err();
    assert!(matches!(refused, SubmitError::NoProject { .. }));

    assert_eq!(events(store).await, "", "nothing happened");
    let found = store.manifest(&nowhere, &name("web")).await.unwrap();
    assert_eq!(found, None);
    assert_eq!(store.live_clusters().await.unwrap(), []);
}

pub(crate) async fn a_quota_of_clusters_refuses_the_whole_submission(store: &Store) {
    let shop = name("shop");
    put(store, &shop, clusters(2)).await;
    // What other projects have does not count.
    cluster(store, "elsewhere", 1).await;

    let three = text("web", &["a", "b", "c"], 1, 1);
    let refused = submit_to(store, &shop, &three).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "project shop has 0 clusters and would get 3 more, it may have 2"
    );
    let listed = store.clusters(&shop, ClusterFilter::default(), Page::default());
    assert_eq!(listed.await.unwrap().items, [], "not even the first two");
    assert_eq!(store.manifest(&shop, &name("web")).await.unwrap(), None);

    submit_to(store, &shop, &text("web", &["a", "b"], 1, 1))
        .await
        .unwrap();
    let refused = submit_to(store, &shop, &text("more", &["d"], 1, 1)).await;
    assert!(matches!(
        refused.unwrap_err(),
        SubmitError::Quota {
            used: 2,
            new: 1,
            limit: 2,
            ..
        }
    ));
    // What there is may be changed, also when it has become too much.
    put(store, &shop, clusters(1)).await;
    let changed = submit_to(store, &shop, &text("web", &["a", "b"], 1, 2)).await;
    assert_eq!(changed.unwrap().changed.len(), 2);
    put(store, &shop, clusters(3)).await;
    submit_to(store, &shop, &text("more", &["d"], 1, 1))
        .await
        .unwrap();
}

pub(crate) async fn a_limit_below_what_there_is_takes_nothing_away(store: &Store) {
    let east = cluster(store, "east", 2).await;
    plan(store, east, at(1)).await;
    put(store, &project(), machines(1)).await;
    // Units that were taken stay taken, and what was begun with them goes on to its end.
    settle(store, east, at(2)).await;
    let row = store.project(&project()).await.unwrap().unwrap();
    assert_eq!((row.machines, row.quota), (3, machines(1)));
    let row = store.cluster(&project(), &name("east")).await.unwrap();
    assert_eq!(row.unwrap().summary.phase, Phase::Done);

    submit(store, &text("east", &["east"], 1, 3)).await.unwrap();
    let more = plan::plan(&view(store, east).await.view(at(3)));
    let refused = refusal(store, more, at(3)).await;
    assert_eq!(
        refused,
        Reason::Quota {
            what: "machines".to_owned(),
            used: 3,
            limit: 1
        }
    );
}

pub(crate) async fn a_quota_of_machines_holds_back_what_is_beyond_it(store: &Store) {
    put(store, &project(), machines(2)).await;
    let east = cluster(store, "east", 2).await;
    let wanted = plan::plan(&view(store, east).await.view(at(2)));
    assert_eq!(wanted.tasks.len(), 3);
    let refused = refusal(store, wanted, at(2)).await;
    assert_eq!(
        refused.to_string(),
        "the project has 2 of at most 2 machines"
    );
    assert_eq!(
        view(store, east).await.open,
        [],
        "nothing of a refused plan stays"
    );

    plan_and_hold(store, east, at(2)).await;
    assert_eq!(view(store, east).await.open.len(), 2);
    assert_eq!(
        held(store, &project(), "east").await,
        ["create east-muscle-02: the project has 2 of at most 2 machines"]
    );
    assert_eq!(store.unplanned().await.unwrap(), []);

    // Somebody raises the limit: whoever waits for it is planned again.
    let before = events(store).await.len();
    store
        .put_project(&project(), machines(3), "root".into(), at(3))
        .await
        .unwrap();
    assert_eq!(store.unplanned().await.unwrap(), [east]);
    expect![[r#"
        cluster.woken cluster/east: the quota that it waits for has changed
    "#]]
    .assert_eq(&events(store).await[before..]);
    settle(store, east, at(4)).await;
    let tasks = store
        .tasks(&project(), TaskFilter::default(), Page::default())
        .await;
    let creates = tasks.unwrap().items.into_iter();
    let creates = creates.filter(|row| row.task.action.kind().as_str() == "create");
    assert_eq!(creates.count(), 3);
}

pub(crate) async fn a_unit_of_quota_comes_back_with_its_machine(store: &Store) {
    put(store, &project(), machines(2)).await;
    let east = cluster(store, "east", 1).await;
    settle(store, east, at(2)).await;
    let west = cluster(store, "west", 1).await;
    plan_and_hold(store, west, at(3)).await;
    assert_eq!(view(store, west).await.open, []);
    assert_eq!(held(store, &project(), "west").await.len(), 2);

    store
        .delete_manifest(&project(), &name("east"), "ana", at(4))
        .await
        .unwrap();
    assert_eq!(
        store.unplanned().await.unwrap(),
        [east],
        "too early for west"
    );
    settle(store, east, at(5)).await;
    assert_eq!(store.unplanned().await.unwrap(), [west]);
    settle(store, west, at(6)).await;
    let row = store.cluster(&project(), &name("west")).await.unwrap();
    assert_eq!(row.unwrap().summary.phase, Phase::Done);
}

/// Additions come first, unless they wait for the very units that a removal gives back.
pub(crate) async fn a_full_quota_keeps_nothing_from_leaving(store: &Store) {
    put(store, &project(), machines(4)).await;
    let two_pools = |muscle: u32, sinew: u32| {
        let sinew = format!(
            "      - {{name: sinew, providerSpec: {{name: lab, region: north}}, count: {sinew}, \
             serverType: small, image: debian-12}}\n  kubernetes:"
        );
        edited(
            &text("east", &["east"], 1, muscle),
            &[
                ("  kubernetes:", sinew.as_str()),
                ("[muscle]", "[muscle, sinew]"),
            ],
        )
    };
    let east = submit(store, &two_pools(2, 1)).await.unwrap().changed[0].0;
    settle(store, east, at(2)).await;

    let mut moved = submission(&two_pools(1, 2));
    moved.allow = Some(100).into();
    store.submit(moved, at(3)).await.unwrap();
    for step in 4..20 {
        plan_and_hold(store, east, at(step)).await;
        for claim in claim(store, at(step)).await {
            let seen = effect(&claim.task, at(step));
            let recorded = store.record(claim, Ended::Done, seen, vec![], vec![], at(step));
            assert_eq!(recorded.await.unwrap(), Recorded::Yes);
        }
    }
    let row = store.cluster(&project(), &name("east")).await.unwrap();
    let row = row.unwrap();
    assert_eq!((row.summary.phase, row.held), (Phase::Done, vec![]));
}
