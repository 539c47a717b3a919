//! Requests of git services that are opened, pushed to and closed while an engine follows them.

use crate::{Stage, by_helm, play, settings};
use model::disruption::{Day, Window, Windows};
use model::environment::config::{Edit, Level};
use model::environment::git::event::Event;
use model::environment::git::{Forks, Lent, Source};
use model::environment::settings::{SecretDelivery, Settings};
use model::environment::status::{Deed, Sleep, Status};
use model::name::Name;
use model::secret::{Secret, SecretRef};
use std::time::Duration;
use store::{ActionDraft, EnvironmentError, GitRequest, GitState, TakenIn};
use vault::Changes;

fn project() -> Name {
    Name::default_project()
}

fn shop() -> Name {
    "shop".parse().unwrap()
}

fn reference(entry: &str) -> SecretRef {
    SecretRef {
        name: "git".parse().unwrap(),
        key: Some(entry.parse().unwrap()),
    }
}

fn source() -> Source {
    Source {
        name: shop(),
        service: model::environment::git::Service::Github,
        repository: "acme/shop".parse().unwrap(),
        secret: reference("hook"),
        report: None,
        rules: model::environment::git::Rules::default(),
        environment: "{branch}".parse().unwrap(),
        tag: "{short}".parse().unwrap(),
        beginning: model::environment::git::Beginning::default(),
    }
}

fn with(source: Source) -> Settings {
    Settings {
        secret_delivery: Some(SecretDelivery::File),
        sources: vec![source],
        ..settings()
    }
}

/// A commit whose digits are all the same.
fn sha(digit: char) -> String {
    digit.to_string().repeat(40)
}

fn event(number: u64, branch: &str, digit: char, open: bool) -> Event {
    Event {
        repository: "acme/shop".parse().unwrap(),
        request: number,
        action: "told".to_owned(),
        open,
        branch: branch.to_owned(),
        sha: sha(digit),
        before: None,
        author: Some("ana".to_owned()),
        labels: Vec::new(),
        fork: false,
        url: format!("https://git.example.org/acme/shop/{number}"),
        at: model::time::Timestamp::from_millis(0),
    }
}

impl Stage {
    /// Has a service tell something, now by its clock.
    async fn told(&self, event: Event) {
        let at = self.now();
        let event = Event { at, ..event };
        let delivery = format!("{} {}", at.as_millis(), event.sha);
        let (project, shop) = (project(), shop());
        let taken = self
            .store
            .take_in((&project, &shop), &delivery, event, at)
            .await;
        assert!(matches!(taken.unwrap(), TakenIn::New(_)));
        // Services tell times to the second.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    async fn request(&self, number: u64) -> GitRequest {
        let of = (&project(), &shop());
        self.store.git_request(of, number).await.unwrap().unwrap()
    }

    /// Waits until nothing is left to be decided.
    async fn settled(&self, number: u64) -> GitRequest {
        loop {
            let request = self.request(number).await;
            if request.state != GitState::Waiting {
                return request;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// The whole way of a request.
async fn whole_way(stage: &Stage) {
    stage.told(event(12, "feature/basket", 'a', true)).await;
    stage.settled(12).await;
    stage.until("feature-basket", Some(Status::Running)).await;
    let row = stage.show("feature-basket").await.unwrap();
    let origin = row.origin.clone().unwrap();
    assert_eq!((origin.request, origin.sha), (12, sha('a')));
    assert_eq!(row.about.owner, "ana");
    assert_eq!(row.about.labels["git/request"], "12");

    stage.told(event(12, "feature/basket", 'b', true)).await;
    stage.settled(12).await;
    stage.until("feature-basket", Some(Status::Running)).await;
    assert_eq!(stage.world.state().up["feature-basket"], "bbbbbbb");

    stage.told(event(12, "feature/basket", 'b', false)).await;
    stage.settled(12).await;
    stage.until("feature-basket", Some(Status::Archived)).await;

    stage.told(event(12, "feature/basket", 'c', true)).await;
    stage.settled(12).await;
    stage.until("feature-basket", Some(Status::Running)).await;
    assert_eq!(stage.world.state().up["feature-basket"], "ccccccc");
    let begun = stage.world.state().begun.join(", ");
    assert_eq!(
        begun,
        "create feature-basket, update feature-basket, archive feature-basket, restore feature-basket"
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_has_an_environment_while_it_is_open_wherever_the_engine_is_killed() {
    for point in 1.. {
        let stage = Stage::set().await;
        stage.say(with(source())).await;
        if !play(&stage, Some(point), whole_way(&stage)).await {
            assert!(point > 40, "killed at {point} points alone");
            return;
        }
    }
}

/// One whose request is closed and opened again, at the same commit and at others, by Helm.
async fn back_and_forth(stage: &Stage) {
    for (digit, open) in [
        ('a', true),
        ('a', false),
        ('a', true),
        ('b', false),
        ('c', true),
    ] {
        stage.told(event(12, "basket", digit, open)).await;
        stage.settled(12).await;
        let status = if open {
            Status::Running
        } else {
            Status::Archived
        };
        stage.until("basket", Some(status)).await;
    }
    assert_eq!(stage.world.state().up["basket"], "ccccccc");
    let row = stage.show("basket").await.unwrap();
    assert_eq!(row.origin.unwrap().sha, sha('c'));
    let begun = stage.world.state().begun.join(", ");
    assert_eq!(
        begun,
        "create basket, archive basket, restore basket, archive basket, restore basket, update basket"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_brought_back_as_it_was_is_given_the_commit_then_wherever_the_engine_is_killed() {
    for point in 1.. {
        let stage = Stage::set().await;
        stage.say(by_helm(with(source()))).await;
        if !play(&stage, Some(point), back_and_forth(&stage)).await {
            assert!(point > 40, "killed at {point} points alone");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_pushes_while_a_script_runs_the_last_counts() {
    let stage = Stage::set().await;
    stage.say(with(source())).await;
    let minutes = Duration::from_mins(5);
    stage.world.state().takes.insert(Deed::Create, minutes);
    let story = async {
        for digit in ['a', 'b', 'c', 'd'] {
            stage.told(event(12, "basket", digit, true)).await;
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
        assert_eq!(stage.request(12).await.state, GitState::Waiting);
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
        let state = stage.world.state();
        assert_eq!(state.up["basket"], "ddddddd");
        assert_eq!(state.begun.join(", "), "create basket, update basket");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_closed_while_its_environment_is_made_is_archived() {
    let stage = Stage::set().await;
    stage.say(with(source())).await;
    let story = async {
        stage.told(event(12, "basket", 'a', true)).await;
        stage.until("basket", Some(Status::CreatePending)).await;
        stage.told(event(12, "basket", 'a', false)).await;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Archived)).await;
        let begun = stage.world.state().begun.join(", ");
        assert_eq!(begun, "create basket, archive basket");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_is_closed_also_when_nobody_can_tell_defaults() {
    let stage = Stage::set().await;
    stage.say(with(source())).await;
    let story = async {
        stage.told(event(12, "basket", 'a', true)).await;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
        stage.world.state().speechless = true;
        stage.told(event(12, "basket", 'a', false)).await;
        assert_eq!(stage.settled(12).await.said, "archive basket");
        stage.until("basket", Some(Status::Archived)).await;
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn what_somebody_archived_by_hand_is_given_the_commit_when_it_is_restored() {
    let stage = Stage::set().await;
    stage.say(with(source())).await;
    let story = async {
        stage.told(event(12, "basket", 'a', true)).await;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
        stage.begin("basket", Deed::Archive, None).await;
        stage.until("basket", Some(Status::Archived)).await;
        stage.told(event(12, "basket", 'b', true)).await;
        assert_eq!(stage.settled(12).await.state, GitState::Held);
        tokio::time::sleep(Duration::from_hours(1)).await;
        stage.until("basket", Some(Status::Archived)).await;
        stage.begin("basket", Deed::Restore, None).await;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
        assert_eq!(stage.world.state().up["basket"], "bbbbbbb");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn the_environment_of_a_request_that_is_closed_while_it_sleeps_is_not_woken() {
    let stage = Stage::set().await;
    // Up for ten minutes of each day, from when the world began.
    let minutes = stage.now().as_millis() / 60_000 % (24 * 60);
    let hours = Windows(vec![Window {
        days: Day::ALL.into(),
        start: u16::try_from(minutes).unwrap(),
        minutes: 10,
        offset: 0,
    }]);
    let said = Settings {
        hours,
        ..with(source())
    };
    stage.say(said).await;
    let story = async {
        stage.told(event(12, "basket", 'a', true)).await;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
        stage.until("basket", Some(Status::Archived)).await;
        let asleep = stage.show("basket").await.unwrap().asleep;
        assert_eq!(asleep, Some(Sleep::Hours));
        stage.told(event(12, "basket", 'a', false)).await;
        assert_eq!(stage.settled(12).await.said, "archive basket");
        assert_eq!(stage.show("basket").await.unwrap().asleep, None);
        tokio::time::sleep(Duration::from_hours(25)).await;
        stage.until("basket", Some(Status::Archived)).await;
        let begun = stage.world.state().begun.join(", ");
        assert_eq!(begun, "create basket, archive basket");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn a_push_and_a_request_that_is_opened_again_begin_the_time_of_an_environment_anew() {
    let stage = Stage::set().await;
    let mut source = source();
    let span = Duration::from_hours(2);
    source.beginning.expires = Some(span);
    stage.say(with(source)).await;
    let left = async || {
        let row = stage.show("basket").await.unwrap();
        row.about.expires_at.unwrap().since(stage.now())
    };
    let anew = span.saturating_sub(Duration::from_mins(2))..=span;
    let story = async {
        for (digit, open) in [('a', true), ('b', true), ('b', false), ('b', true)] {
            stage.told(event(12, "basket", digit, open)).await;
            stage.settled(12).await;
            let status = if open {
                Status::Running
            } else {
                Status::Archived
            };
            stage.until("basket", Some(status)).await;
            assert!(!open || anew.contains(&left().await), "{digit} {open}");
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        // Its time is over; whoever restores it has as much again, and so does who pushes then.
        stage.until("basket", Some(Status::Archived)).await;
        stage.begin("basket", Deed::Restore, None).await;
        stage.until("basket", Some(Status::Running)).await;
        assert!(anew.contains(&left().await));
        tokio::time::sleep(Duration::from_hours(1)).await;
        stage.told(event(12, "basket", 'c', true)).await;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
        assert!(anew.contains(&left().await));
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn two_requests_never_have_one_environment() {
    let stage = Stage::set().await;
    stage.say(with(source())).await;
    let story = async {
        stage.create("basket", "v1").await;
        stage.until("basket", Some(Status::Running)).await;
        for (number, branch) in [
            (1, "basket"),
            (2, "Basket"),
            (3, "basket!"),
            (4, "a/b"),
            (5, "a-b"),
        ] {
            stage.told(event(number, branch, 'a', true)).await;
        }
        let mut names = std::collections::BTreeSet::new();
        for number in 1..=5 {
            let request = stage.settled(number).await;
            let id = request.environment.unwrap();
            let row = stage.store.environment_by_id(id).await.unwrap().unwrap();
            assert_eq!(row.origin.unwrap().request, number);
            assert!(names.insert(row.name));
        }
        let by_hand = stage.show("basket").await.unwrap();
        assert_eq!(by_hand.origin, None, "it is not anybody's");
        assert_eq!(stage.world.state().up["basket"], "v1");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_check_refuses_is_told_and_the_next_push_counts() {
    let stage = Stage::set().await;
    stage.say(with(source())).await;
    stage.world.state().refused = Some("aaaaaaa".to_owned());
    stage.world.state().unfit = Some("bbbbbbb".to_owned());
    let story = async {
        stage.told(event(12, "basket", 'a', true)).await;
        let request = stage.settled(12).await;
        assert_eq!(
            request.said,
            "the project's check does not take it: no such image"
        );
        assert_eq!(request.environment, None);
        stage.told(event(12, "basket", 'b', true)).await;
        let request = stage.settled(12).await;
        assert_eq!(
            request.said,
            "settings have values that they cannot have: application.image.tag: found another, allowed: a version"
        );
        stage.told(event(12, "basket", 'c', true)).await;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_done_is_tried_again() {
    let stage = Stage::set().await;
    stage.say(with(source())).await;
    stage.world.state().speechless = true;
    let story = async {
        stage.told(event(12, "basket", 'a', true)).await;
        tokio::time::sleep(Duration::from_mins(3)).await;
        let request = stage.request(12).await;
        assert_eq!(request.state, GitState::Waiting);
        assert!(request.tries >= 3, "{}", request.tries);
        assert!(
            request.said.contains("exited with status 9"),
            "{}",
            request.said
        );
        stage.world.state().speechless = false;
        stage.settled(12).await;
        stage.until("basket", Some(Status::Running)).await;
    };
    play(&stage, None, story).await;
}

/// A source that lends a secret to every environment, also if forks have some.
async fn lending(stage: &Stage) {
    let mut source = source();
    source.rules.forks = Forks::WithoutSecrets;
    source.beginning.secrets.push(Lent {
        level: Level::Application,
        key: "db.password".parse().unwrap(),
        secret: reference("password"),
    });
    stage.say(with(source)).await;
    let value = Secret::from_text("hunter2".to_owned());
    let changes = Changes {
        entries: vec![("password".parse().unwrap(), Some(value))],
        only: true,
    };
    let git = "git".parse().unwrap();
    let set = stage
        .vault
        .set((&project(), &git), &changes, &"root".into())
        .await;
    set.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_given_no_secret_now_or_later() {
    let stage = Stage::set().await;
    lending(&stage).await;
    let story = async {
        stage.told(event(1, "own", 'a', true)).await;
        let fork = Event {
            fork: true,
            ..event(2, "theirs", 'a', true)
        };
        stage.told(fork).await;
        stage.settled(2).await;
        stage.until("own", Some(Status::Running)).await;
        stage.until("theirs", Some(Status::Running)).await;
        let own = stage.show("own").await.unwrap();
        assert_eq!(own.edits.secrets().count(), 1);
        let theirs = stage.show("theirs").await.unwrap();
        assert!(theirs.origin.as_ref().unwrap().fork);
        assert_eq!(theirs.edits.secrets().count(), 0);

        let mut edits = theirs.edits.clone();
        let key = "db.password".parse().unwrap();
        edits.application.insert(key, Edit::Secret);
        let draft = ActionDraft {
            project: project(),
            name: theirs.name,
            deed: Deed::Update,
            force: true,
            generation: None,
            seen: None,
            edits: Some(edits),
            sealed: Vec::new(),
            sealed_until: None,
            effective: store::Effective::default(),
            actor: "root".into(),
            cause: None,
            origin: None,
            step: None,
        };
        // Even a value that is sealed for it.
        let entry = model::environment::config::Edits::entry(
            Level::Application,
            &"db.password".parse().unwrap(),
        );
        let place = model::sealed::Place {
            project: project(),
            owner: model::sealed::Owner::Environment(theirs.id),
            entry,
        };
        let value = Secret::from_text("hunter2".to_owned());
        let sealed = stage.vault.seal(&place, &value).await.unwrap();
        let draft = ActionDraft {
            sealed: vec![store::SealedRow { place, sealed }],
            ..draft
        };
        let refused = stage.store.begin_action(draft, stage.now()).await;
        assert!(
            matches!(refused, Err(EnvironmentError::Fork { .. })),
            "{refused:?}"
        );
    };
    Box::pin(play(&stage, None, story)).await;
}
