//! Tokens: found by their digest, listed by project, revoked once.

use crate::fixture::{at, name};
use model::access::{Role, TokenId};
use model::name::Name;
use store::{Page, Store, TokenDraft, TokenRow};

/// A digest as the SHA-256 of some token would be.
pub(crate) fn digest(of: &str) -> String {
    of.bytes()
        .cycle()
        .take(32)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A token of a holder, good for one project or for all.
pub(crate) fn token(holder: &str, project: Option<&Name>) -> TokenDraft {
    let digest = digest(holder);
    TokenDraft {
        id: TokenId::of(&digest),
        name: holder.to_owned(),
        project: project.cloned(),
        role: Role::User,
        digest,
        expires_at: None,
    }
}

async fn add(store: &Store, holder: &str, project: Option<&Name>) -> TokenId {
    let draft = token(holder, project);
    let id = draft.id;
    store.add_token(draft, "root".into(), at(1)).await.unwrap();
    id
}

async fn found(store: &Store, holder: &str, seconds: i64) -> Option<TokenRow> {
    let found = store.token_by_digest(&digest(holder), at(seconds)).await;
    found.unwrap()
}

/// What was done to tokens: action, object and sentence of each entry.
async fn entries(store: &Store) -> Vec<(String, String)> {
    let entries = store.audit_after(0, 100).await.unwrap().into_iter();
    let tokens = entries.filter(|entry| entry.action.starts_with("token."));
    tokens.map(|entry| (entry.action, entry.detail)).collect()
}

pub(crate) async fn a_token_is_found_by_its_digest(store: &Store) {
    let shop = name("shop");
    let draft = TokenDraft {
        role: Role::Operator,
        expires_at: Some(at(50)),
        ..token("ana", Some(&shop))
    };
    assert_eq!(found(store, "ana", 1).await, None);
    store
        .add_token(draft.clone(), "root".into(), at(1))
        .await
        .unwrap();
    let expected = TokenRow {
        id: draft.id,
        name: "ana".to_owned(),
        project: Some(shop),
        role: Role::Operator,
        created_by: "root".to_owned(),
        created_at: at(1),
        expires_at: Some(at(50)),
        last_used_at: None,
        revoked_at: None,
    };
    assert_eq!(found(store, "ana", 2).await, Some(expected.clone()));
    assert_eq!(found(store, "bob", 2).await, None);

    // The same digest again is the same token, whatever else is said of it.
    let again = TokenDraft {
        name: "mallory".to_owned(),
        project: None,
        role: Role::Admin,
        expires_at: None,
        ..draft
    };
    store
        .add_token(again, "mallory".into(), at(3))
        .await
        .unwrap();
    let used = TokenRow {
        last_used_at: Some(at(2)),
        ..expected
    };
    assert_eq!(found(store, "ana", 4).await, Some(used.clone()));
    assert_eq!(
        store.tokens(None, Page::default()).await.unwrap().items,
        std::slice::from_ref(&used)
    );
    let one = ("token.create".to_owned(), "ana, operator".to_owned());
    assert_eq!(entries(store).await, [one]);

    // One that has ended is still known: who holds it shall be told so.
    let ended = found(store, "ana", 51).await.unwrap();
    assert_eq!(ended, used);
}

pub(crate) async fn the_last_use_of_a_token_is_known_to_the_minute(store: &Store) {
    add(store, "ana", None).await;
    add(store, "bob", None).await;
    let mut known = Vec::new();
    for seconds in [100, 130, 159, 160, 200, 219, 220, 1000] {
        found(store, "ana", seconds).await;
        let listed = store.tokens(None, Page::default()).await.unwrap().items;
        let of = |holder: &str| {
            let mut rows = listed.iter().filter(|row| row.name == holder);
            rows.next().unwrap().last_used_at
        };
        known.push(of("ana").unwrap());
        assert_eq!(of("bob"), None);
    }
    let expected = [100, 100, 100, 160, 160, 160, 220, 1000].map(at);
    assert_eq!(known, expected, "one write per minute, not one per use");
}

pub(crate) async fn a_token_is_revoked_once(store: &Store) {
    let (shop, other) = (name("shop"), name("other"));
    let ana = add(store, "ana", Some(&shop)).await;
    let root = add(store, "everywhere", None).await;
    let revoke = |id: TokenId, project: Option<Name>, seconds: i64| {
        let store = store.clone();
        async move {
            let revoked = store.revoke_token(id, project.as_ref(), "root".into(), at(seconds));
            revoked.await.unwrap()
        }
    };
    // Whoever may do so in one project touches no token of another, nor one of all.
    assert_eq!(revoke(ana, Some(other.clone()), 5).await, None);
    assert_eq!(revoke(root, Some(shop.clone()), 5).await, None);
    assert_eq!(found(store, "ana", 6).await.unwrap().revoked_at, None);
    assert_eq!(
        found(store, "everywhere", 6).await.unwrap().revoked_at,
        None
    );
    assert_eq!(revoke(TokenId::of("nobody's"), None, 6).await, None);

    let before = revoke(ana, Some(shop), 7).await.unwrap();
    assert_eq!((before.name.as_str(), before.revoked_at), ("ana", None));
    let again = revoke(ana, None, 8).await.unwrap();
    assert_eq!(again.revoked_at, Some(at(7)), "it ended when it first did");
    assert_eq!(
        found(store, "ana", 9).await.unwrap().revoked_at,
        Some(at(7))
    );
    revoke(root, None, 10).await.unwrap();

    let done: Vec<_> = entries(store).await;
    let done: Vec<_> = done
        .iter()
        .map(|(action, what)| format!("{action} {what}"))
        .collect();
    assert_eq!(
        done,
        [
            "token.create ana, user",
            "token.create everywhere, user",
            "token.revoke ana",
            "token.revoke everywhere"
        ]
    );
}

pub(crate) async fn tokens_are_listed_by_project(store: &Store) {
    let (shop, other) = (name("shop"), name("other"));
    for number in 0..7 {
        add(store, &format!("shop-{number}"), Some(&shop)).await;
        add(store, &format!("other-{number}"), Some(&other)).await;
    }
    add(store, "everywhere", None).await;
    let listed = async |project: Option<&Name>| {
        let (mut names, mut page) = (
            Vec::new(),
            Page {
                limit: 3,
                after: None,
            },
        );
        loop {
            let part = store.tokens(project, page.clone()).await.unwrap();
            assert!(part.items.len() <= 3);
            names.extend(part.items.into_iter().map(|row| row.name));
            page.after = part.next;
            if page.after.is_none() {
                names.sort();
                return names;
            }
        }
    };
    let own: Vec<_> = (0..7).map(|number| format!("shop-{number}")).collect();
    assert_eq!(listed(Some(&shop)).await, own);
    assert_eq!(listed(None).await.len(), 15);
    assert_eq!(listed(Some(&name("empty"))).await, [""; 0]);

    let page = Page {
        limit: 3,
        after: Some("clusters.a.1".to_owned()),
    };
    let refused = store.tokens(None, page).await.unwrap_err();
    assert_eq!(refused.code(), "STORE-008");
}
