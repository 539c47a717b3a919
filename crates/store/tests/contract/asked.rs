//! What is asked again with its key: done once, and answered as before.

use crate::fixture::{at, project};
use crate::habitat::{action, called, draft, running, settings, settle_in};
use model::environment::status::Deed;
use store::{Ask, EnvironmentError, Page, Repeat, Store};

fn keyed(request: &str) -> Repeat {
    Repeat {
        key: "k".to_owned(),
        request: request.to_owned(),
    }
}

pub(crate) async fn of_two_with_one_key_the_second_hears_what_the_first_was_told(store: &Store) {
    settle_in(store, settings()).await;
    let draft = Box::new(draft(store, &project(), "orange", &[]).await);
    let ask = async |seconds| {
        let ask = Ask::Create(draft.clone());
        let (project, repeat) = (project(), Some(keyed("create")));
        store.ask(&project, ask, repeat, at(seconds)).await
    };
    let (one, other) = tokio::join!(ask(1), ask(2));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one, other);
    let row = store.environment(&project(), &called("orange")).await;
    let id = row.unwrap().unwrap().id;
    let actions = store.actions(id, Page::default()).await.unwrap().items;
    assert_eq!(actions.len(), 1);
    let told = store.asked(&project(), &keyed("create")).await;
    assert_eq!(told.unwrap(), Some(one));
}

pub(crate) async fn what_is_refused_uses_no_key_up_and_what_is_done_does(store: &Store) {
    settle_in(store, settings()).await;
    let archive = || Ask::Begin(Box::new(action("orange", Deed::Archive)));
    let ask = async |request: &str, seconds| {
        let (project, repeat) = (project(), Some(keyed(request)));
        store.ask(&project, archive(), repeat, at(seconds)).await
    };
    let refused = ask("archive", 1).await;
    assert!(matches!(refused, Err(EnvironmentError::NotFound { .. })));
    running(store, "orange", 2).await;
    ask("archive", 20).await.unwrap();
    let reused = ask("another", 21).await;
    assert!(matches!(reused, Err(EnvironmentError::KeyReused { .. })));
    let reused = store.asked(&project(), &keyed("another")).await;
    assert!(matches!(reused, Err(EnvironmentError::KeyReused { .. })));
}
