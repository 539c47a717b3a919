//! Documents that another version of the program wrote: refused with a sentence, never half read,
//! and nobody else is kept by them.

use crate::behind::Place;
use crate::fixture::{LEASE, absent, at, cluster, name, plan, project, view};
use expect_test::expect;
use model::id::ClusterId;
use model::intent::Wish;
use model::observed::Observation;
use plan::Phase;
use std::fmt::Write as _;
use store::{Allowed, ClusterFilter, Draft, MachineFilter, Page, Recovery, Store, TaskFilter};

/// Every document of a cluster: what it is called here, its table, the column that says whose it is,
/// the column with its text, and one with a word that this program does not know.
const DOCUMENTS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "desired",
        "desired",
        "cluster",
        "body",
        r#"{"cni":"quantum"}"#,
    ),
    (
        "task",
        "tasks",
        "cluster",
        "body",
        r#"{"action":"teleport"}"#,
    ),
    (
        "observation",
        "observations",
        "cluster",
        "fact",
        r#"{"quark":"up"}"#,
    ),
    (
        "intent",
        "intents",
        "cluster",
        "body",
        r#"{"wish":"world-peace"}"#,
    ),
    (
        "summary",
        "clusters",
        "id",
        "summary",
        r#"{"phase":"transcendent"}"#,
    ),
    ("held", "clusters", "id", "held", r#"[{"kind":"teleport"}]"#),
];

/// Two clusters with a task each that is due, something that was seen, and a wish.
async fn furnished(store: &Store) -> [ClusterId; 2] {
    let both = [
        cluster(store, "east", 1).await,
        cluster(store, "west", 1).await,
    ];
    for (cluster, called) in both.iter().zip(["east", "west"]) {
        let scale = Wish::Scale {
            pool: name("muscle"),
            count: 2,
            was: 0,
        };
        let draft = Draft {
            project: project(),
            cluster: name(called),
            wish: scale,
            author: "ana".into(),
            reason: "because".to_owned(),
            expires_at: None,
        };
        store.wish(draft, at(1)).await.unwrap();
        let known = view(store, *cluster).await;
        let machine = known.desired.machines.last().unwrap();
        let seen = Observation {
            cluster: *cluster,
            fact: absent(machine),
            at: at(1),
        };
        store.observe(*cluster, vec![seen], at(1)).await.unwrap();
        plan(store, *cluster, at(2)).await;
    }
    both
}

/// What everybody else can still do, and what is said of the one.
async fn told(store: &Store, [east, west]: [ClusterId; 2]) -> String {
    let mut told = String::new();
    match store.cluster_view(east).await {
        Ok(_) => told.push_str("read"),
        Err(error) => {
            write!(told, "{}: {error}", error.code()).unwrap();
            store.tell_unreadable(east, &error, at(5)).await.unwrap();
        }
    }
    // The other is read, planned and worked on.
    drop(view(store, west).await);
    plan(store, west, at(5)).await;
    let claimed = store.claim("w", 100, 100, LEASE, at(5)).await.unwrap();
    let others = claimed.iter().filter(|claim| claim.task.cluster == west);
    assert!(others.count() > 0, "{told}");
    store.expire(at(500)).await.unwrap();
    store.void_leases(at(501)).await.unwrap();
    store.backlog(at(501)).await.unwrap();
    store.live_clusters().await.unwrap();
    // Whoever looks sees which one it is.
    let page = || Page {
        limit: 100,
        after: None,
    };
    let project = project();
    let clusters = store.clusters(&project, ClusterFilter::default(), page());
    let clusters = clusters.await.unwrap().items;
    assert_eq!(clusters.len(), 2);
    let seen = clusters.iter().find(|row| row.id == east).unwrap();
    if !told.starts_with("read") {
        assert_eq!(seen.summary.phase, Phase::Error);
    }
    let of_west = TaskFilter {
        cluster: Some(name("west")),
        ..TaskFilter::default()
    };
    store.tasks(&project, of_west, page()).await.unwrap();
    let machines = MachineFilter {
        cluster: Some(name("west")),
    };
    store.machines(&project, machines, page()).await.unwrap();
    // Lists of all show the rest, and what waits for a person is no end.
    store
        .tasks(&project, TaskFilter::default(), page())
        .await
        .unwrap();
    store.intents(&project, page()).await.unwrap();
    store
        .machines(&project, MachineFilter::default(), page())
        .await
        .unwrap();
    store.manifests(&project, page()).await.unwrap();
    if !told.starts_with("read") {
        told.push_str(&recovered(store, east).await);
    }
    told
}

/// What becomes of it when it is recovered: all of it can be read again.
async fn recovered(store: &Store, east: ClusterId) -> String {
    let recovery = Recovery {
        project: project(),
        cluster: name("east"),
        leave: Vec::new(),
        abandon: false,
        allow: Allowed::default(),
        author: "ana".into(),
    };
    store.recover(recovery, at(502)).await.unwrap();
    drop(view(store, east).await);
    ", and recovered".to_owned()
}

#[tokio::test]
async fn what_another_version_wrote_is_refused_with_a_sentence_and_keeps_nobody_else() {
    for place in
        Place::each("what_another_version_wrote_is_refused_with_a_sentence_and_keeps_nobody_else")
    {
        let mut all = String::new();
        for (what, table, of, text, unknown) in DOCUMENTS {
            for how in ["newer", "unknown", "grown"] {
                let place = place.another();
                let store = place.open();
                let both = furnished(&store).await;
                let set = match how {
                    "newer" => "format = 99".to_owned(),
                    "unknown" => format!("{text} = '{unknown}'"),
                    // A field more than this program knows, in whatever there is.
                    _ => format!("{text} = REPLACE({text}, '{{', '{{\"quark\":0,')"),
                };
                place.run(&format!(
                    "UPDATE {table} SET {set} WHERE {of} = '{}';",
                    both[0]
                ));
                let told = told(&store, both).await;
                writeln!(all, "{what} {how}: {told}").unwrap();
            }
        }
        expect![[r#"
            desired newer: STORE-007: cannot read the desired state of a cluster that is stored, its format is 99 and this program knows up to 1, and recovered
            desired unknown: STORE-006: cannot read the desired state of a cluster that is stored, it is not of the form it should have, and recovered
            desired grown: STORE-006: cannot read the desired state of a cluster that is stored, it is not of the form it should have, and recovered
            task newer: STORE-007: cannot read a task that is stored, its format is 99 and this program knows up to 1, and recovered
            task unknown: STORE-006: cannot read a task that is stored, it is not of the form it should have, and recovered
            task grown: STORE-006: cannot read a task that is stored, it is not of the form it should have, and recovered
            observation newer: STORE-007: cannot read what was seen that is stored, its format is 99 and this program knows up to 1, and recovered
            observation unknown: STORE-006: cannot read what was seen that is stored, it is not of the form it should have, and recovered
            observation grown: STORE-006: cannot read what was seen that is stored, it is not of the form it should have, and recovered
            intent newer: STORE-007: cannot read a wish that is stored, its format is 99 and this program knows up to 1, and recovered
            intent unknown: STORE-006: cannot read a wish that is stored, it is not of the form it should have, and recovered
            intent grown: STORE-006: cannot read a wish that is stored, it is not of the form it should have, and recovered
            summary newer: read
            summary unknown: read
            summary grown: read
            held newer: read
            held unknown: read
            held grown: read
        "#]]
        .assert_eq(&all);
    }
}
