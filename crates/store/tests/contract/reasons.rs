//! Why generations came, what wishes are about, and data that does not go unasked.

use crate::fixture::{
    at, claim, cluster, edited, name, plan, project, settle, submission, submit, text, view,
};
use expect_test::expect;
use model::id::ClusterId;
use model::intent::{Intent, Wish};
use std::fmt::Write as _;
use store::{Allowed, Draft, Page, Store, SubmitError, WishError};

async fn wish(store: &Store, wish: Wish, reason: &str) -> Result<Intent, WishError> {
    let draft = Draft {
        project: project(),
        cluster: name("east"),
        wish,
        author: "bob".into(),
        reason: reason.to_owned(),
        expires_at: None,
    };
    store.wish(draft, at(1)).await
}

fn scale(count: u32) -> Wish {
    Wish::Scale {
        pool: name("muscle"),
        count,
        was: 0,
    }
}

async fn history(store: &Store, east: ClusterId) -> String {
    let rows = store.desired_generations(east, Page::default()).await;
    let mut told = String::new();
    for row in rows.unwrap().items.into_iter().rev() {
        let (author, because, brief) = (row.author, row.because, row.brief);
        writeln!(told, "{} {author}: {because} | {brief}", row.generation).unwrap();
    }
    told
}

pub(crate) async fn history_says_who_why_and_what(store: &Store) {
    let east = cluster(store, "east", 1).await;
    settle(store, east, at(0)).await;
    let intent = wish(store, scale(2), "sale on Friday").await.unwrap();
    store
        .withdraw_intent(&project(), intent.id, "cas", at(2))
        .await
        .unwrap();
    let last = view(store, east).await.desired.machines.pop().unwrap();
    wish(store, Wish::Replace { machine: last.id }, "its disk fails")
        .await
        .unwrap();
    let newer = edited(&text("east", &["east"], 1, 1), &[("v1.34.1", "v1.35.0")]);
    submit(store, &newer).await.unwrap();
    store
        .delete_manifest(&project(), &name("east"), "ana", at(3))
        .await
        .unwrap();
    expect![[r#"
        1 ana: manifest east, generation 1, was applied | made, with 2 machines, Kubernetes v1.34.1
        2 bob: scale pool muscle from 1 to 2: sale on Friday | +east-muscle-02
        3 cas: withdrawn: scale pool muscle from 1 to 2 | -east-muscle-02
        4 bob: replace east-muscle-01: its disk fails | +east-muscle-03; -east-muscle-01
        5 ana: manifest east, generation 2, was applied | Kubernetes v1.34.1 → v1.35.0
        6 ana: manifest east was deleted | to be removed; -east-brain-01; -east-muscle-03
    "#]]
    .assert_eq(&history(store, east).await);
    let (project, manifest) = (project(), name("east"));
    let rows = store.manifest_generations(&project, &manifest, Page::default());
    let rows = rows.await.unwrap().items;
    let rows: Vec<_> = rows
        .into_iter()
        .map(|row| {
            format!(
                "{} {}: {} | {}",
                row.generation, row.author, row.because, row.brief
            )
        })
        .collect();
    expect![[r#"
        3 ana: deleted | removed 1 cluster
        2 ana: applied | changed east
        1 ana: applied | new east"#]]
    .assert_eq(&rows.join("\n"));
}

pub(crate) async fn what_nobody_asked_for_says_what_was_seen(store: &Store) {
    let east = cluster(store, "east", 1).await;
    settle(store, east, at(0)).await;
    let known = view(store, east).await;
    let mut next = known.desired.clone();
    next.generation = next.generation.next();
    let step = plan::Advance {
        desired: next,
        because: "east-muscle-01 has not served for ten minutes".to_owned(),
    };
    store.advance(step, at(1)).await.unwrap();
    let told = history(store, east).await;
    let last = told.lines().last().unwrap();
    assert_eq!(
        last,
        "2 slipway: east-muscle-01 has not served for ten minutes | nothing that can be told in short"
    );
}

pub(crate) async fn wishes_are_told_by_names(store: &Store) {
    let east = cluster(store, "east", 1).await;
    plan(store, east, at(0)).await;
    let task = claim(store, at(0)).await.remove(0).task;
    let machine = task.machine.id;
    let known = view(store, east).await.desired;
    let called = known
        .all()
        .find(|of| of.id == machine)
        .unwrap()
        .name
        .clone();
    let cancel = Wish::Cancel {
        task: task.id,
        machine,
        kind: task.action.kind(),
    };
    let wishes = vec![Wish::Replace { machine }, cancel, Wish::Pause];
    let about = store.wishes_are_about(wishes).await.unwrap();
    let doing = format!("{} {called}", task.action.kind());
    assert_eq!(about, [Some(called.to_string()), Some(doing), None]);
}

pub(crate) async fn machines_that_keep_data_go_only_when_that_is_said(store: &Store) {
    let declared = |workers| {
        let disk = [("{name: muscle,", "{name: muscle, storageDiskSize: 100,")];
        edited(&text("east", &["east"], 1, workers), &disk)
    };
    let east = submit(store, &declared(9)).await.unwrap().changed[0].0;
    settle(store, east, at(0)).await;
    // Two of ten are within every share, and still not unasked.
    let fewer = declared(7);
    let refused = submit(store, &fewer).await.unwrap_err();
    assert!(matches!(refused, SubmitError::DataLoss(_)), "{refused}");
    assert_eq!(
        refused.to_string(),
        "cluster east would lose east-muscle-08, east-muscle-09 with what is on data disks"
    );
    let mut consented = submission(&fewer);
    // A share of machines is another matter.
    consented.allow = Some(100).into();
    let refused = store.submit(consented.clone(), at(1)).await.unwrap_err();
    assert!(matches!(refused, SubmitError::DataLoss(_)), "{refused}");
    let refused = wish(store, scale(8), "less is more").await.unwrap_err();
    assert!(matches!(refused, WishError::DataLoss(_)), "{refused}");
    // Who names the machine has said so.
    let last = view(store, east).await.desired.machines.pop().unwrap();
    wish(store, Wish::Replace { machine: last.id }, "its disk fails")
        .await
        .unwrap();
    settle(store, east, at(1)).await;
    consented.allow = Allowed {
        blast: None,
        data_loss: true,
    };
    store.submit(consented, at(2)).await.unwrap();
    assert_eq!(view(store, east).await.desired.machines.len(), 8);
}
