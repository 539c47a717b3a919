//! The audit chain: an entry for every change, none for what was refused.

use crate::fixture::{at, cluster, name, project, submission, submit, text};
use crate::sealed;
use crate::spoken::token;
use expect_test::expect;
use model::intent::Wish;
use model::name::Name;
use model::sealed::{Owner, Place};
use store::{Actor, Audited, Draft, Page, Quota, SealedChange, Store, Submission, Walk};

/// An entry as one line; ids that nobody can foresee are left out.
fn line(entry: &Audited) -> String {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    let object = entry
        .object
        .split_once("/token-")
        .map_or(entry.object.as_str(), |_| "token/…");
    format!(
        "{} {} {}@{} {} {object} {}→{} {}",
        entry.seq,
        entry.project.as_deref().unwrap_or("-"),
        entry.actor,
        entry.origin,
        entry.action,
        number(entry.was),
        number(entry.became),
        entry.detail
    )
    .trim_end()
    .to_owned()
}

async fn lines(store: &Store) -> String {
    let entries = store.audit_after(0, 1000).await.unwrap();
    entries.iter().map(|entry| line(entry) + "\n").collect()
}

/// Somebody at some address.
fn ana() -> Actor {
    Actor::new("ana", "192.0.2.1")
}

/// Projects and tokens.
async fn change_who_may_what(store: &Store, shop: &Name) {
    let limited = Quota {
        machines: Some(5),
        ..Quota::default()
    };
    for (project, quota) in [
        (shop, Quota::default()),
        (shop, limited),
        (&name("empty"), Quota::default()),
    ] {
        let put = store.put_project(project, quota, ana(), at(1));
        put.await.unwrap();
    }
    store
        .delete_project(&name("empty"), ana(), at(1))
        .await
        .unwrap();
    let draft = token("ci", Some(shop));
    let id = draft.id;
    store.add_token(draft, ana(), at(2)).await.unwrap();
    store.revoke_token(id, None, ana(), at(2)).await.unwrap();
}

/// Keys and secrets, one of which is read.
async fn change_secrets(store: &Store, shop: &Name) {
    let account = name("account");
    let used = store
        .use_seal_key(sealed::wrapped(1), true, ana(), at(3))
        .await
        .unwrap();
    store
        .rewrap_seal_key(used.clone(), ana(), at(3))
        .await
        .unwrap();
    let change = SealedChange::Set("user".parse().unwrap(), sealed::value(used.id, "x"));
    store
        .put_secret((shop, &account), vec![change], false, ana(), at(3))
        .await
        .unwrap();
    let place = Place {
        project: shop.clone(),
        owner: Owner::Secret(account.clone()),
        entry: "user".parse().unwrap(),
    };
    store.take_sealed(&place, ana(), at(3)).await.unwrap();
    store
        .delete_secret(shop, &account, ana(), at(3))
        .await
        .unwrap();
    store
        .use_seal_key(sealed::wrapped(2), false, ana(), at(3))
        .await
        .unwrap();
    store.drop_unused_seal_keys(ana(), at(3)).await.unwrap();
}

/// Manifests and wishes.
async fn change_documents(store: &Store, shop: &Name) {
    for workers in [1, 2] {
        let submission = Submission {
            author: ana(),
            project: shop.clone(),
            ..submission(&text("web", &["east"], 1, workers))
        };
        store.submit(submission, at(4)).await.unwrap();
    }
    let draft = Draft {
        project: shop.clone(),
        cluster: name("east"),
        wish: Wish::Scale {
            pool: name("muscle"),
            count: 3,
            was: 0,
        },
        author: ana(),
        reason: "a sale".to_owned(),
        expires_at: None,
    };
    let intent = store.wish(draft, at(5)).await.unwrap();
    store
        .withdraw_intent(shop, intent.id, ana(), at(6))
        .await
        .unwrap();
    store
        .delete_manifest(shop, &name("web"), ana(), at(7))
        .await
        .unwrap();
}

pub(crate) async fn every_change_leaves_an_entry(store: &Store) {
    let shop = name("shop");
    change_who_may_what(store, &shop).await;
    change_secrets(store, &shop).await;
    change_documents(store, &shop).await;
    expect![[r#"
        1 shop ana@192.0.2.1 project.put project/shop -→- clusters no limit, machines no limit, environments no limit
        2 shop ana@192.0.2.1 project.put project/shop -→- clusters no limit, machines 5, environments no limit
        3 empty ana@192.0.2.1 project.put project/empty -→- clusters no limit, machines no limit, environments no limit
        4 empty ana@192.0.2.1 project.delete project/empty -→-
        5 shop ana@192.0.2.1 token.create token/… -→- ci, user
        6 shop ana@192.0.2.1 token.revoke token/… -→- ci
        7 - ana@192.0.2.1 key.use key/key-01010101010101010101010101010101 -→- wrapped by master-1
        8 - ana@192.0.2.1 key.rewrap key/key-01010101010101010101010101010101 -→- wrapped by master-1
        9 shop ana@192.0.2.1 secret.set secret/account -→1 set user
        10 shop ana@192.0.2.1 secret.open secret/account -→- user
        11 shop ana@192.0.2.1 secret.delete secret/account 1→-
        12 - ana@192.0.2.1 key.use key/key-02020202020202020202020202020202 -→- wrapped by master-1
        13 - ana@192.0.2.1 key.drop key/key-01010101010101010101010101010101 -→-
        14 shop ana@192.0.2.1 manifest.submit manifest/web 0→1 1 changed cluster
        15 shop ana@192.0.2.1 manifest.submit manifest/web 1→2 1 changed cluster
        16 shop ana@192.0.2.1 intent.wish cluster/east 2→- scale pool muscle from 2 to 3
        17 shop ana@192.0.2.1 intent.withdraw cluster/east -→- scale pool muscle from 2 to 3
        18 shop ana@192.0.2.1 manifest.delete manifest/web 2→3 1 cluster
    "#]].assert_eq(&lines(store).await);
    let verified = store.verify_audit().await.unwrap();
    assert_eq!((verified.entries, verified.broken), (18, None));
}

pub(crate) async fn what_is_refused_leaves_no_gap(store: &Store) {
    cluster(store, "east", 1).await;
    // Refused before anything was written, refused after, and nothing to do at all, mixed
    // with what is accepted: all at once, so that they share transactions.
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..40_u32 {
        let store = store.clone();
        asked.spawn(async move {
            match number % 4 {
                0 => submit(
                    &store,
                    &text(&format!("m{number}"), &[&format!("c{number}")], 1, 1),
                )
                .await
                .is_ok(),
                1 => submit(&store, &text("other", &["east"], 1, 1))
                    .await
                    .is_ok(),
                2 => {
                    let wish = Wish::Scale {
                        pool: name("muscle"),
                        count: 1_000_000,
                        was: 0,
                    };
                    let draft = Draft {
                        project: project(),
                        cluster: name("east"),
                        wish,
                        author: "ana".into(),
                        reason: String::new(),
                        expires_at: None,
                    };
                    store.wish(draft, at(1)).await.is_ok()
                }
                _ => {
                    let draft = token(&format!("t{number}"), None);
                    store.add_token(draft, "root".into(), at(1)).await.is_ok()
                }
            }
        });
    }
    let accepted = asked
        .join_all()
        .await
        .into_iter()
        .filter(|accepted| *accepted)
        .count();
    assert_eq!(accepted, 20);
    let entries = store.audit_after(0, 1000).await.unwrap();
    let numbers: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, (1..=21).collect::<Vec<u64>>());
    let verified = store.verify_audit().await.unwrap();
    assert_eq!((verified.entries, verified.broken), (21, None));
    assert_eq!(verified.head, entries[20].digest);
}

pub(crate) async fn the_chain_is_listed_newest_first(store: &Store) {
    let shop = name("shop");
    store
        .put_project(&shop, Quota::default(), ana(), at(1))
        .await
        .unwrap();
    for number in 0..4 {
        for project in [Some(&shop), None] {
            let holder = format!(
                "{number}-{}",
                project.map_or("-", |project| project.as_str())
            );
            let draft = token(&holder, project);
            store.add_token(draft, ana(), at(2)).await.unwrap();
        }
    }
    let listed = async |project: Option<&Name>| {
        let (mut numbers, mut page) = (
            Vec::new(),
            Page {
                limit: 2,
                after: None,
            },
        );
        loop {
            let part = store.audit(project, page.clone()).await.unwrap();
            numbers.extend(part.items.into_iter().map(|entry| entry.seq));
            page.after = part.next;
            if page.after.is_none() {
                return numbers;
            }
        }
    };
    assert_eq!(listed(None).await, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(listed(Some(&shop)).await, [8, 6, 4, 2, 1]);
    assert_eq!(listed(Some(&name("elsewhere"))).await, [0; 0]);
}

/// Whoever exported the chain and walks along it finds what the store finds.
pub(crate) async fn an_exported_chain_is_judged_alike(store: &Store) {
    assert_eq!(store.verify_audit().await.unwrap(), Walk::default().end());
    for number in 0..25 {
        let draft = token(&format!("holder \u{0} {number} …"), None);
        store.add_token(draft, ana(), at(number)).await.unwrap();
    }
    let (mut walk, mut seen) = (Walk::default(), 0);
    loop {
        let entries = store.audit_after(seen, 7).await.unwrap();
        let Some(last) = entries.last() else { break };
        seen = last.seq;
        assert!(entries.iter().all(|entry| walk.step(entry)));
    }
    let verified = store.verify_audit().await.unwrap();
    assert_eq!(verified.entries, 25);
    assert_eq!(walk.end(), verified);
}
