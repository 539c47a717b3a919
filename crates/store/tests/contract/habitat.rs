//! The smallest world with environments in it.

use crate::fixture::{at, name, project};
use model::environment::EnvironmentName;
use model::environment::config::{Edit, Edits, Given, Level, Setting, Source};
use model::environment::settings::{Place, Settings};
use model::environment::status::{Deed, Seen};
use model::id::EnvironmentId;
use model::name::Name;
use model::sealed::{self, KeyId, Owner, Sealed};
use model::time::Timestamp;
use std::time::Duration;
use store::{
    About, ActionClaim, ActionDraft, ActionEnd, ActionEnded, Begun, DueCheck, Effective,
    EnvironmentDraft, EnvironmentError, EnvironmentRow, LookRecord, LooksRecorded, Page, Recorded,
    SealedRow, Store,
};

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Where scripts run.
pub(crate) const HERE: &str = "here";

pub(crate) fn called(text: &str) -> EnvironmentName {
    text.parse().unwrap()
}

/// What a project may say of its environments.
pub(crate) fn settings() -> Settings {
    let place = Place {
        project_name: "Shop".to_owned(),
        base_domain: "shop.example.org".to_owned(),
        namespace: name("shop"),
        cluster: None,
    };
    Settings::usual(place, "/scripts")
}

pub(crate) async fn settle_in(store: &Store, settings: Settings) {
    store
        .put_environment_settings(&project(), settings, "root".into(), at(0))
        .await
        .unwrap();
}

/// Edits of the application alone: `key=value`, or a key whose value is secret.
pub(crate) fn edits(texts: &[&str]) -> Edits {
    let mut edits = Edits::default();
    for text in texts {
        let (key, edit) = match text.split_once('=') {
            Some((key, value)) => (key, Edit::Set(value.parse().unwrap())),
            None => (*text, Edit::Secret),
        };
        edits.application.insert(key.parse().unwrap(), edit);
    }
    edits
}

/// What comes of edits where there are no defaults.
pub(crate) fn effective(edits: &Edits) -> Effective {
    let setting = |(key, edit): (&model::environment::config::Key, &Edit)| Setting {
        key: key.clone(),
        value: match edit {
            Edit::Set(value) => Given::Plain(value.clone()),
            Edit::Secret | Edit::Removed => Given::Secret,
        },
        source: Source::Added,
    };
    Effective {
        application: edits.application.iter().map(setting).collect(),
        deployment: Vec::new(),
    }
}

/// The value of a secret setting, as it would be sealed.
pub(crate) fn sealed_for(id: EnvironmentId, key: &str, with: KeyId, text: &str) -> SealedRow {
    SealedRow {
        place: sealed::Place {
            project: project(),
            owner: Owner::Environment(id),
            entry: Edits::entry(Level::Application, &key.parse().unwrap()),
        },
        sealed: Sealed {
            key: with,
            text: text.to_owned(),
        },
    }
}

pub(crate) async fn draft(
    store: &Store,
    of: &Name,
    called_so: &str,
    with: &[&str],
) -> EnvironmentDraft {
    let name = called(called_so);
    let edits = edits(with);
    EnvironmentDraft {
        project: of.clone(),
        id: store.environment_to_be(of, &name).await.unwrap(),
        name,
        about: About::default(),
        effective: effective(&edits),
        edits,
        sealed: Vec::new(),
        actor: "ana".into(),
        origin: None,
        step: None,
    }
}

pub(crate) async fn create(store: &Store, called: &str, seconds: i64) -> Begun {
    let draft = draft(store, &project(), called, &["image.tag=v1"]).await;
    store.create_environment(draft, at(seconds)).await.unwrap()
}

pub(crate) fn action(called_so: &str, deed: Deed) -> ActionDraft {
    ActionDraft {
        project: project(),
        name: called(called_so),
        deed,
        force: false,
        generation: None,
        seen: None,
        edits: None,
        sealed: Vec::new(),
        sealed_until: None,
        effective: Effective::default(),
        actor: "ana".into(),
        cause: None,
        origin: None,
        step: None,
    }
}

pub(crate) async fn begin(
    store: &Store,
    called: &str,
    deed: Deed,
    seconds: i64,
) -> Result<Begun, EnvironmentError> {
    store.begin_action(action(called, deed), at(seconds)).await
}

/// The sentence with which something is refused.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, EnvironmentError>) -> String {
    answer.unwrap_err().to_string()
}

pub(crate) async fn show(store: &Store, called_so: &str) -> EnvironmentRow {
    let row = store.environment(&project(), &called(called_so)).await;
    row.unwrap().unwrap()
}

pub(crate) async fn status(store: &Store, called: &str) -> String {
    show(store, called).await.status.to_string()
}

/// Claims all that is due, and begins it.
pub(crate) async fn claim(store: &Store, seconds: i64) -> Vec<ActionClaim> {
    let claimed = store.claim_actions(("w", HERE), 500, LEASE, at(seconds));
    let claimed = claimed.await.unwrap();
    for claim in &claimed {
        set_out(store, claim, seconds).await;
    }
    claimed
}

/// Begins what was claimed; answers until when it may take.
pub(crate) async fn set_out(store: &Store, claim: &ActionClaim, seconds: i64) -> Timestamp {
    let deadline = store.set_out_action(claim, HERE, at(seconds));
    deadline.await.unwrap().unwrap()
}

/// That an action ended, and nothing else.
pub(crate) fn end(ended: ActionEnded, look_at: Timestamp) -> ActionEnd {
    let error = (ended != ActionEnded::Done).then(|| "it broke".to_owned());
    ActionEnd {
        ended,
        exit: Some(i32::from(ended != ActionEnded::Done)),
        error,
        links: None,
        look_at,
    }
}

pub(crate) async fn finish(
    store: &Store,
    claim: &ActionClaim,
    ended: ActionEnded,
    seconds: i64,
) -> Recorded {
    let end = end(ended, at(seconds));
    let ended = store.end_action(claim, end, Vec::new(), at(seconds));
    ended.await.unwrap()
}

/// Does all that waits, and does it well.
pub(crate) async fn work(store: &Store, seconds: i64) {
    for claim in claim(store, seconds).await {
        let done = finish(store, &claim, ActionEnded::Done, seconds).await;
        assert_eq!(done, Recorded::Yes);
    }
}

pub(crate) async fn due(store: &Store, seconds: i64) -> Vec<DueCheck> {
    store.due_checks(1000, at(seconds)).await.unwrap().checks
}

pub(crate) fn look(check: &DueCheck, exit: Option<i32>, next: i64) -> LookRecord {
    LookRecord {
        environment: check.id,
        held: check.held,
        seen: Some(Seen::from_exit(exit)),
        said: format!("exit {exit:?}"),
        due: at(next),
    }
}

/// Looks at all that is due, with the same end.
pub(crate) async fn look_at_all(store: &Store, exit: i32, seconds: i64) -> LooksRecorded {
    let looks = due(store, seconds).await;
    let looks = looks
        .iter()
        .map(|check| look(check, Some(exit), seconds + 15))
        .collect();
    store.record_looks(looks, at(seconds)).await.unwrap()
}

/// An environment that runs.
pub(crate) async fn running(store: &Store, called: &str, seconds: i64) -> EnvironmentRow {
    create(store, called, seconds).await;
    work(store, seconds).await;
    look_at_all(store, 0, seconds).await;
    let row = show(store, called).await;
    assert_eq!(row.status.to_string(), "running");
    row
}

/// How an environment became what it is, newest first.
pub(crate) async fn changes(store: &Store, id: EnvironmentId) -> String {
    let changes = store
        .environment_changes(id, Page::default())
        .await
        .unwrap();
    let line = |change: &store::EnvironmentChange| {
        let word = |status: Option<model::environment::status::Status>| {
            status.map_or("-", |status| status.as_str())
        };
        let (was, became) = (word(change.was), word(change.became));
        format!("{was} → {became}: {}\n", change.because)
    };
    changes.items.iter().map(line).collect()
}
