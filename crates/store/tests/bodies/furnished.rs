//! A store with something of everything in it.

use crate::fixture::{
    LEASE, at, cluster, edited, effect, in_a_rack, name, plan, plan_and_hold, project, settle,
    submission, submit, submit_to, text, text_with_given,
};
use crate::habitat::{self, create, draft, end, look_at_all, sealed_for, settings, settle_in};
use model::access::{Role, TokenId};
use model::id::{JourneyId, Origin};
use model::intent::Wish;
use model::sealed::{KeyId, Owner, Place, Sealed, Wrapped};
use store::{
    ActionEnded, Draft, Ended, OutputStream, Printed, Quota, Recorded, SealedChange, SealedRow,
    Store, TokenDraft,
};

/// A data key as its master would have wrapped it.
pub(crate) fn wrapped(number: u8) -> Wrapped {
    Wrapped {
        id: KeyId::from_digest([number; 16]),
        by: "master".to_owned(),
        text: format!("wrapped {number}"),
    }
}

/// A token on its way in.
pub(crate) fn token(holder: &str) -> TokenDraft {
    let digest: String = holder
        .bytes()
        .cycle()
        .take(32)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    TokenDraft {
        id: TokenId::of(&digest),
        name: holder.to_owned(),
        project: None,
        role: Role::User,
        digest,
        expires_at: Some(at(1_000_000)),
    }
}

/// Puts a row at least into every table, after a past that was swept away already.
pub(crate) async fn furnish(store: &Store) {
    const MONTH: i64 = 40 * 24 * 60 * 60;
    let past = cluster(store, "past", 1).await;
    settle(store, past, at(-MONTH)).await;
    store.sweep(at(-5)).await.unwrap();

    documents(store).await;
    secrets(store).await;
    work(store).await;
    environments(store).await;
    let journey = JourneyId::derive(Origin {
        parent: "",
        name: "",
        ordinal: 0,
        incarnation: 0,
    });
    let said = "a \"journey\" \\ with \u{1f6a2}\n and \u{7} and \u{2028}".to_owned();
    store
        .save_journey(journey, &project(), said, at(4))
        .await
        .unwrap();
}

/// Projects, manifests with a past and a future, wishes.
async fn documents(store: &Store) {
    let quota = Quota {
        clusters: Some(5),
        machines: Some(50),
        environments: None,
    };
    let shop = name("shop");
    store
        .put_project(&shop, quota, "root".into(), at(0))
        .await
        .unwrap();
    submit_to(store, &shop, &text("web", &["east", "west"], 1, 1))
        .await
        .unwrap();
    let mut again = submission(&text("again", &["again"], 1, 2));
    again.key = Some("once".to_owned());
    store.submit(again, at(0)).await.unwrap();
    let gone = cluster(store, "gone", 1).await;
    settle(store, gone, at(1)).await;
    store
        .delete_manifest(&project(), &name("gone"), "ana", at(1))
        .await
        .unwrap();
    settle(store, gone, at(1)).await;
    let wish = |wish: Wish| Draft {
        project: project(),
        cluster: name("again"),
        wish,
        author: "ana".into(),
        reason: "because".to_owned(),
        expires_at: Some(at(5000)),
    };
    let pause = store.wish(wish(Wish::Pause), at(1)).await.unwrap();
    store
        .withdraw_intent(&project(), pause.id, "ana", at(2))
        .await
        .unwrap();
    let scale = Wish::Scale {
        pool: name("muscle"),
        count: 3,
        was: 0,
    };
    store.wish(wish(scale), at(2)).await.unwrap();
}

/// Tokens, keys and secrets.
async fn secrets(store: &Store) {
    for holder in ["ana", "bob"] {
        store
            .add_token(token(holder), "root".into(), at(1))
            .await
            .unwrap();
    }
    store
        .token_by_digest(&token("ana").digest, at(2))
        .await
        .unwrap();
    store
        .revoke_token(token("bob").id, None, "root".into(), at(2))
        .await
        .unwrap();
    for number in [1, 2] {
        store
            .use_seal_key(wrapped(number), false, "root".into(), at(1))
            .await
            .unwrap();
        let sealed = Sealed {
            key: wrapped(number).id,
            text: format!("noise {number}"),
        };
        let change = SealedChange::Set(format!("entry-{number}").parse().unwrap(), sealed);
        store
            .put_secret(
                (&project(), &name("account")),
                vec![change],
                false,
                "ana".into(),
                at(2),
            )
            .await
            .unwrap();
    }
}

/// Tasks in every state, with logs, claims, a slot of a group, and things that were seen.
async fn work(store: &Store) {
    let rack = |workers: u32| in_a_rack(&text("rack", &["rack"], 1, workers));
    let rack_id = submit(store, &rack(4)).await.unwrap().changed[0].0;
    settle(store, rack_id, at(2)).await;
    submit(store, &rack(3)).await.unwrap();
    plan(store, rack_id, at(3)).await;

    let given = text_with_given("attic", "attic", "{endpoint: 203.0.113.5}");
    let windows =
        "version: v1.34.1, disruption: {windows: [{days: [Wed], start: '02:00', duration: 30m}]},";
    let given = edited(&given, &[("version: v1.34.1,", windows)]);
    let attic = submit(store, &given).await.unwrap().changed[0].0;
    plan_and_hold(store, attic, at(3)).await;

    let mut claims = store.claim("w", 100, 100, LEASE, at(3)).await.unwrap();
    assert!(claims.len() >= 3);
    let (stuck, retried) = (claims.remove(0), claims.remove(0));
    let output = SealedRow {
        place: Place {
            project: project(),
            owner: Owner::Machine(retried.task.machine.id),
            entry: "ssh".parse().unwrap(),
        },
        sealed: Sealed {
            key: wrapped(2).id,
            text: "noise of a machine".to_owned(),
        },
    };
    let lines = (0..1500)
        .map(|number| (at(3), format!("line {number}")))
        .collect();
    assert_eq!(
        store.append_log(&retried, lines).await.unwrap(),
        Recorded::Yes
    );
    let ended = Ended::Retry {
        error: "no answer".to_owned(),
        not_before: at(90),
    };
    let seen = effect(&retried.task, at(3));
    let recorded = store.record(retried, ended, seen, vec![output], vec![], at(4));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    let ended = Ended::Stuck {
        error: "mend it".to_owned(),
    };
    let recorded = store.record(stuck, ended, vec![], vec![], vec![], at(4));
    assert_eq!(recorded.await.unwrap(), Recorded::Yes);
    // The others are still under way.
    drop(claims);
}

/// One that runs and is found by a label, with what its script printed, and one that waits.
async fn environments(store: &Store) {
    let project = project();
    settle_in(store, settings()).await;
    let mut coming = draft(store, &project, "orange", &["image.tag=v1", "password"]).await;
    coming.sealed = vec![sealed_for(
        coming.id,
        "password",
        wrapped(2).id,
        "noise of orange",
    )];
    let label = ("team".to_owned(), "web \u{1f6a2}".to_owned());
    coming.about.labels.extend([label]);
    coming.about.expires_at = Some(at(100));
    store.create_environment(coming, at(3)).await.unwrap();
    let claim = habitat::claim(store, 3).await.remove(0);
    let lines = vec![Printed {
        place: 1,
        stream: OutputStream::Err,
        number: 1,
        at: at(3),
        text: "mind the step".to_owned(),
    }];
    let ended = store.end_action(&claim, end(ActionEnded::Done, at(4)), lines, at(4));
    assert_eq!(ended.await.unwrap(), Recorded::Yes);
    look_at_all(store, 0, 4).await;
    create(store, "lemon", 4).await;
    let event = r#"{"repository":"acme/shop","request":12,"action":"opened","open":true,"branch":"b",
        "sha":"c4295bd74fb0f4fda03689c3df3f2803b658fd85","fork":false,"url":"https://git.example.org","at":1}"#;
    let event = serde_json::from_str(event).unwrap();
    let of = (&project, &name("shop"));
    store.take_in(of, "one", event, at(4)).await.unwrap();
    assert_eq!(store.tell_of_ends(at(95)).await.unwrap(), 1);
    let failed = Some("it ended with status 3".to_owned());
    let record = store.record_init(&project, "here", failed, at(4));
    record.await.unwrap();
}
