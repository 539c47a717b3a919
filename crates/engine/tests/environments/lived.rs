//! What is called off, what takes too long, what nobody can look at, and what ends by itself.

use crate::{Stage, by_helm, name, play, settings, tagged, told, well};
use model::disruption::{Day, Window, Windows};
use model::environment::action::State;
use model::environment::config::Edits;
use model::environment::settings::Settings;
use model::environment::status::{Deed, Failure, Seen, Sleep, Status};
use model::environment::taken::Taken;
use model::name::Name;
use std::time::Duration;
use store::{About, ActionDraft, Cancelled, Quota};

#[tokio::test(start_paused = true)]
async fn what_is_called_off_is_ended_soon() {
    let stage = Stage::set().await;
    stage.world.takes(Deed::Create, Duration::from_mins(20));
    let story = async {
        let begun = stage.create("orange", "v1").await;
        while stage.action(begun.action).await.state != State::Running {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let project = Name::default_project();
        let asked_at = stage.now();
        let asked = stage
            .store
            .cancel_action(&project, begun.action, "bob".into(), asked_at)
            .await;
        assert_eq!(asked.unwrap(), Cancelled::Asked);
        let action = stage.ended(begun.action).await;
        assert_eq!(action.state, State::Cancelled);
        let took = action.ended_at.unwrap().since(asked_at);
        assert!(took <= Duration::from_secs(3), "{took:?}");
        // What is left of it is there, and everything may be tried again.
        stage
            .until("orange", Some(Status::Failure(Failure::Generic)))
            .await;
        let again = stage
            .begin("orange", Deed::Update, Some(tagged("v2")))
            .await;
        well(&stage, again).await;
        stage.until("orange", Some(Status::Running)).await;
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_init_says_so_and_is_called_off_at_once() {
    let stage = Stage::set().await;
    stage.world.state().init_takes = Some(Duration::from_hours(1));
    let project = Name::default_project();
    let story = async {
        let begun = stage.create("orange", "v1").await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        let action = stage.action(begun.action).await;
        assert_eq!(
            (action.state, action.error.as_deref()),
            (
                State::Running,
                Some("it waits for the project's script `init` to end")
            )
        );
        let asked = stage
            .store
            .cancel_action(&project, begun.action, "bob".into(), stage.now())
            .await;
        assert_eq!(asked.unwrap(), Cancelled::AtOnce);
        assert_eq!(stage.show("orange").await, None);
        // Nobody begins it when that has ended, and the next is begun.
        let next = stage.create("lemon", "v1").await;
        well(&stage, next).await;
        assert_eq!(stage.world.state().begun, ["create lemon"]);
        let begun = stage.world.state().inits_begun;
        assert_eq!(begun, 1, "who waits and leaves ends it for nobody");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn the_time_that_init_takes_is_not_taken_from_a_script() {
    let stage = Stage::set().await;
    stage.world.state().init_takes = Some(Duration::from_mins(29));
    stage.world.takes(Deed::Create, Duration::from_mins(28));
    let story = async {
        let created = stage.create("orange", "v1").await;
        well(&stage, created).await;
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_ended() {
    let stage = Stage::set().await;
    stage.world.takes(Deed::Create, Duration::from_hours(9));
    let story = async {
        let begun = stage.create("orange", "v1").await;
        let action = stage.ended(begun.action).await;
        assert_eq!(action.state, State::Failed);
        let error = action.error.unwrap();
        assert_eq!(error, "it took longer than 30 minutes and was ended");
        let took = action.ended_at.unwrap().since(action.started_at.unwrap());
        assert!(took < Duration::from_mins(31), "{took:?}");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_delays_nobody_else() {
    let stage = Stage::set().await;
    stage.world.state().hanging.insert("bad".to_owned());
    let story = async {
        for called in ["bad", "good", "fine"] {
            stage.create(called, "v1").await;
        }
        stage.until("good", Some(Status::Running)).await;
        stage.until("fine", Some(Status::Running)).await;
        let before = stage.world.state().looks.clone();
        tokio::time::sleep(Duration::from_mins(10)).await;
        let after = stage.world.state().looks.clone();
        for called in ["good", "fine"] {
            let looks = after[called] - before[called];
            assert!(
                (36..=44).contains(&looks),
                "{called} was looked at {looks} times"
            );
        }
        stage
            .until("bad", Some(Status::Failure(Failure::Generic)))
            .await;
        let said = stage.show("bad").await.unwrap().checked.unwrap().said;
        assert_eq!(said, "the look took longer than 60 seconds");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn however_many_hang_all_others_are_looked_at_in_time() {
    let stage = Stage::set().await;
    let bad: Vec<_> = (0..200).map(|number| format!("bad{number}")).collect();
    stage.world.state().hanging.extend(bad.iter().cloned());
    let story = async {
        for called in &bad {
            stage.create(called, "v1").await;
        }
        stage.create("good", "v1").await;
        stage.until("good", Some(Status::Running)).await;
        tokio::time::sleep(Duration::from_mins(10)).await;
        let before = stage.world.state().looks.clone();
        tokio::time::sleep(Duration::from_mins(30)).await;
        let after = stage.world.state().looks.clone();
        let looks = |called: &str| after[called] - before[called];
        let good = looks("good");
        assert!((108..=132).contains(&good), "it was looked at {good} times");
        // Nobody is forgotten.
        assert!(bad.iter().all(|called| looks(called) > 0));
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn a_project_whose_checks_hang_keeps_no_other_from_being_looked_at() {
    let stage = Stage::set().await;
    let other = "other".parse::<Name>().unwrap();
    let put = stage
        .store
        .put_project(&other, Quota::default(), "root".into(), stage.now());
    put.await.unwrap();
    let put = stage
        .store
        .put_environment_settings(&other, settings(), "root".into(), stage.now());
    put.await.unwrap();
    let bad: Vec<_> = (0..400).map(|number| format!("bad{number}")).collect();
    stage.world.state().hanging.extend(bad.iter().cloned());
    let story = async {
        for called in &bad {
            stage.create(called, "v1").await;
        }
        stage.create_in(&other, "good", "v1").await;
        let good = async || {
            let shown = stage.store.environment(&other, &name("good")).await;
            shown.unwrap().unwrap().status
        };
        while good().await != Status::Running {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // Also while nobody knows yet whose checks hang.
        let looks = || stage.world.state().looks["good"];
        let before = looks();
        tokio::time::sleep(Duration::from_mins(5)).await;
        let looks = looks() - before;
        assert!((18..=22).contains(&looks), "it was looked at {looks} times");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_is_told_what_was_deployed_whatever_the_defaults_are_by_now() {
    let stage = Stage::set().await;
    let story = async {
        let created = stage.create("orange", "v1").await;
        well(&stage, created).await;
        // An earlier action counts again, whose tag was the default then.
        let again = ActionDraft {
            project: Name::default_project(),
            name: name("orange"),
            deed: Deed::Update,
            force: false,
            generation: None,
            seen: None,
            edits: Some(Edits::default()),
            sealed: Vec::new(),
            sealed_until: None,
            effective: told(&tagged("v3")),
            actor: "ana".into(),
            cause: None,
            origin: None,
            step: None,
        };
        let again = stage.store.begin_action(again, stage.now()).await.unwrap();
        well(&stage, again).await;
        stage.world.state().tag = Some("v4".to_owned());
        stage.until("orange", Some(Status::Running)).await;
        // Nobody needs defaults for a look, either.
        stage.world.state().speechless = true;
        tokio::time::sleep(Duration::from_mins(20)).await;
        let row = stage.show("orange").await.unwrap();
        assert_eq!(row.status, Status::Running);
        assert_eq!(row.checked.unwrap().said, "found v3");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn defaults_that_nobody_can_tell_are_no_reason_to_think_ill_of_an_environment() {
    let stage = Stage::set().await;
    let story = async {
        // Of one that was taken over nobody knows what it was deployed with.
        stage.world.state().up.insert("orange".into(), "v1".into());
        let taken = Taken {
            name: name("orange"),
            origin: "octopod/orange".to_owned(),
            status: Status::Running,
            since: stage.now(),
            created_at: stage.now(),
            updated_at: stage.now(),
            archived_at: None,
            edits: tagged("v1"),
            links: Vec::new(),
            actions: Vec::new(),
        };
        let project = Name::default_project();
        let (taken, now) = (vec![taken], stage.now());
        let took = stage
            .store
            .take_environments(&project, taken, false, "root".into(), now);
        took.await.unwrap();
        tokio::time::sleep(Duration::from_mins(1)).await;
        let seen = stage.show("orange").await.unwrap().checked.unwrap().seen;
        assert_eq!(seen, Some(Seen::Good));
        stage.world.state().speechless = true;
        tokio::time::sleep(Duration::from_mins(2)).await;
        let row = stage.show("orange").await.unwrap();
        assert_eq!(row.status, Status::Running);
        let checked = row.checked.unwrap();
        assert!(checked.unseen_since.is_some());
        assert_eq!(
            checked.said,
            "could not look: the script of the defaults exited with status 9; mend it"
        );
        stage.world.state().speechless = false;
        stage.world.state().up.remove("orange");
        stage
            .until("orange", Some(Status::Failure(Failure::Generic)))
            .await;
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn that_nobody_here_can_look_is_no_reason_to_think_ill_of_an_environment() {
    let stage = Stage::set().await;
    let story = async {
        let created = stage.create("orange", "v1").await;
        well(&stage, created).await;
        stage.until("orange", Some(Status::Running)).await;
        stage.world.state().no_room = true;
        tokio::time::sleep(Duration::from_mins(2)).await;
        let row = stage.show("orange").await.unwrap();
        assert_eq!(row.status, Status::Running);
        let checked = row.checked.unwrap();
        assert!(checked.unseen_since.is_some());
        assert_eq!(
            checked.said,
            "could not start the script: no memory; see that there is room"
        );
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn what_has_been_there_for_long_enough_ends_by_itself() {
    let stage = Stage::set().await;
    let short = Settings {
        retention: Duration::from_hours(2),
        ..settings()
    };
    stage.say(short).await;
    let story = async {
        let created = stage.create("orange", "v1").await;
        well(&stage, created).await;
        stage.until("orange", Some(Status::Running)).await;
        stage.create("lasting", "v1").await;
        let about = About {
            expires_at: Some(stage.now().plus(Duration::from_hours(1))),
            ..About::default()
        };
        let project = Name::default_project();
        let of = (&project, &name("orange"));
        let amended = stage
            .store
            .amend_environment(of, None, about, "ana".into(), stage.now());
        amended.await.unwrap();
        let began = stage.now();
        stage.until("orange", Some(Status::Archived)).await;
        let up = stage.now().since(began);
        assert!(
            up >= Duration::from_hours(1) && up < Duration::from_mins(61),
            "{up:?}"
        );
        stage.until("orange", None).await;
        let all = stage.now().since(began);
        assert!(
            all >= Duration::from_hours(3) && all < Duration::from_mins(182),
            "{all:?}"
        );
        stage.until("lasting", Some(Status::Running)).await;
        let audit = stage.store.audit_after(0, 100).await.unwrap();
        let own = audit.iter().filter(|entry| entry.actor == "slipway");
        let own: Vec<_> = own.map(|entry| entry.action.as_str()).collect();
        assert_eq!(own, ["environment.archive", "environment.cleanup"]);
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_tell_keeps_nothing_from_ending() {
    let stage = Stage::set().await;
    let short = Settings {
        retention: Duration::from_hours(2),
        ..settings()
    };
    stage.say(short).await;
    let story = async {
        let created = stage.create("orange", "v1").await;
        well(&stage, created).await;
        stage.until("orange", Some(Status::Running)).await;
        stage.ends("orange", Duration::from_hours(1)).await;
        stage.world.state().speechless = true;
        let began = stage.now();
        stage.until("orange", Some(Status::Archived)).await;
        assert!(stage.now().since(began) < Duration::from_mins(61));
        stage.until("orange", None).await;
        assert!(stage.now().since(began) < Duration::from_mins(182));
    };
    play(&stage, None, story).await;
}

impl Stage {
    /// Says until when one may be up.
    async fn ends(&self, called: &str, after: Duration) {
        let about = About {
            expires_at: Some(self.now().plus(after)),
            ..About::default()
        };
        let (project, now) = (Name::default_project(), self.now());
        let of = (&project, &name(called));
        let amended = self
            .store
            .amend_environment(of, None, about, "ana".into(), now);
        amended.await.unwrap();
    }
}

/// Up in the first half of every hour that follows this moment.
fn half_of_each_hour(stage: &Stage) -> Windows {
    let minutes = stage.now().as_millis() / 60_000 % (24 * 60);
    let start = |hour: i64| u16::try_from((minutes + hour * 60) % (24 * 60)).unwrap();
    let windows = (0..24).map(|hour| Window {
        days: Day::ALL.into(),
        start: start(hour),
        minutes: 30,
        offset: 0,
    });
    Windows(windows.collect())
}

#[tokio::test(start_paused = true)]
async fn what_helm_wakes_is_what_it_was_whatever_the_defaults_are_by_now() {
    let stage = Stage::set().await;
    let sleepy = Settings {
        hours: half_of_each_hour(&stage),
        ..by_helm(settings())
    };
    stage.say(sleepy).await;
    let story = async {
        let created = stage.create("orange", "v1").await;
        well(&stage, created).await;
        // Its tag is the default of now.
        let again = ActionDraft {
            project: Name::default_project(),
            name: name("orange"),
            deed: Deed::Update,
            force: false,
            generation: None,
            seen: None,
            edits: Some(Edits::default()),
            sealed: Vec::new(),
            sealed_until: None,
            effective: told(&tagged("v3")),
            actor: "ana".into(),
            cause: None,
            origin: None,
            step: None,
        };
        let again = stage.store.begin_action(again, stage.now()).await.unwrap();
        well(&stage, again).await;
        stage.until("orange", Some(Status::Archived)).await;
        stage.world.state().tag = Some("v4".to_owned());
        stage.until("orange", Some(Status::Running)).await;
        let said = stage.show("orange").await.unwrap().checked.unwrap().said;
        assert_eq!(said, "found v3");
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn a_project_whose_scripts_hang_keeps_no_other_from_ending() {
    let stage = Stage::set().await;
    let (project, other) = (Name::default_project(), "other".parse::<Name>().unwrap());
    let put = stage
        .store
        .put_project(&other, Quota::default(), "root".into(), stage.now());
    put.await.unwrap();
    let sleepy = Settings {
        hours: half_of_each_hour(&stage),
        ..settings()
    };
    stage.say(sleepy.clone()).await;
    let put = stage.store.put_environment_settings(
        &other,
        Settings {
            scripts: "/other".to_owned(),
            ..settings()
        },
        "root".into(),
        stage.now(),
    );
    put.await.unwrap();
    let story = async {
        for number in 0..20 {
            stage.create(&format!("orange{number}"), "v1").await;
        }
        stage.create_in(&other, "lemon", "v1").await;
        stage.until("orange19", Some(Status::Archived)).await;
        let asleep = stage.show("orange19").await.unwrap().asleep;
        assert_eq!(asleep, Some(Sleep::Hours));
        // When they are to be woken, nobody can say with what.
        stage.world.state().mute.insert("/scripts".to_owned());
        while sleepy.hours.opens(stage.now()).is_some() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        let (lemon, now) = (name("lemon"), stage.now());
        let about = About {
            expires_at: Some(now.plus(Duration::from_secs(20))),
            ..About::default()
        };
        let of = (&other, &lemon);
        let amended = stage
            .store
            .amend_environment(of, None, about, "ana".into(), now);
        amended.await.unwrap();
        loop {
            let shown = stage.store.environment(&other, &lemon).await.unwrap();
            if shown.unwrap().status == Status::Archived {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let took = stage.now().since(now);
        assert!(took < Duration::from_mins(2), "{took:?}");
        // They are woken when somebody says it.
        stage.world.state().mute.clear();
        stage.until("orange0", Some(Status::Running)).await;
        assert_eq!(stage.show("orange0").await.unwrap().project, project);
    };
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn looks_wait_for_init() {
    let stage = Stage::set().await;
    let story = async {
        let created = stage.create("orange", "v1").await;
        well(&stage, created).await;
        stage.until("orange", Some(Status::Running)).await;
        stage.world.state().init_takes = Some(Duration::from_mins(20));
        let other = Settings {
            scripts: "/other".to_owned(),
            ..settings()
        };
        stage.say(other).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        let looks = || stage.world.state().looks["orange"];
        let before = looks();
        tokio::time::sleep(Duration::from_mins(18)).await;
        assert_eq!(looks(), before);
        let row = stage.show("orange").await.unwrap();
        assert_eq!(row.status, Status::Running);
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert!(looks() > before);
    };
    // The world notes whoever looks, or asks, too early.
    play(&stage, None, story).await;
}

#[tokio::test(start_paused = true)]
async fn init_runs_once_before_everything_and_again_for_other_scripts() {
    let stage = Stage::set().await;
    let project = Name::default_project();
    let story = async {
        let (one, two) = (
            stage.create("orange", "v1").await,
            stage.create("lemon", "v1").await,
        );
        well(&stage, one).await;
        well(&stage, two).await;
        assert_eq!(stage.world.state().inits.len(), 1);
        // What it does not depend on changes, and it is not run again.
        let other = Settings {
            up_max: Some(7),
            ..settings()
        };
        stage.say(other).await;
        tokio::time::sleep(Duration::from_mins(20)).await;
        assert_eq!(stage.world.state().inits.len(), 1);
        // Other scripts have another, which is run before anybody asks; how it ends stops nothing.
        let broken = Settings {
            scripts: "/broken".to_owned(),
            ..settings()
        };
        stage.say(broken).await;
        while stage.world.state().inits.len() < 2 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let update = stage
            .begin("orange", Deed::Update, Some(tagged("v2")))
            .await;
        well(&stage, update).await;
        let inits = stage.store.inits(&project).await.unwrap();
        assert_eq!(inits.len(), 1);
        let error = inits[0].error.as_deref().unwrap();
        assert!(error.contains("init ended with status 3"), "{error}");
        assert_eq!(stage.world.state().inits.len(), 2);
        assert_eq!(stage.world.state().wrong, Vec::<String>::new());
    };
    play(&stage, None, story).await;
}
