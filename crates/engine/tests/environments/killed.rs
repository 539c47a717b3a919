//! The engine is killed at every point of every action, and power fails below scripts.

use crate::{Stage, all_lines, name, play, tagged, well};
use model::environment::action::State;
use model::environment::status::{Deed, Failure, Status};
use model::name::Name;
use std::time::Duration;
use store::Ask;

/// The whole way of an environment.
async fn whole_way(stage: &Stage) {
    let created = stage.create("orange", "v1").await;
    well(stage, created).await;
    stage.until("orange", Some(Status::Running)).await;
    let updated = stage
        .begin("orange", Deed::Update, Some(tagged("v2")))
        .await;
    well(stage, updated).await;
    stage.until("orange", Some(Status::Running)).await;
    assert_eq!(stage.world.state().up["orange"], "v2");
    let links = stage.show("orange").await.unwrap().links;
    assert_eq!(links[0].url, "https://orange.example.org");
    for (deed, status) in [
        (Deed::Archive, Status::Archived),
        (Deed::Restore, Status::Running),
        (Deed::Archive, Status::Archived),
    ] {
        let begun = stage.begin("orange", deed, None).await;
        well(stage, begun).await;
        stage.until("orange", Some(status)).await;
    }
    let removed = stage.begin("orange", Deed::Cleanup, None).await;
    assert_eq!(stage.ended(removed.action).await.state, State::Done);
    stage.until("orange", None).await;
    let begun = stage.world.state().begun.join(", ");
    assert_eq!(
        begun,
        "create orange, update orange, archive orange, restore orange, archive orange, cleanup orange",
        "each script ran once"
    );
    while !stage.world.left("here").is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whenever_the_engine_is_killed_every_script_runs_once_and_to_its_end() {
    for point in 1.. {
        let stage = Stage::set().await;
        if !play(&stage, Some(point), whole_way(&stage)).await {
            assert!(point > 60, "killed at {point} points alone");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_script_that_fails_leaves_a_mark_wherever_the_engine_is_killed() {
    for point in 1.. {
        let stage = Stage::set().await;
        let story = async {
            let created = stage.create("orange", "v1").await;
            well(&stage, created).await;
            stage.until("orange", Some(Status::Running)).await;
            stage.world.state().exits.insert(Deed::Update, 7);
            let begun = stage
                .begin("orange", Deed::Update, Some(tagged("v2")))
                .await;
            let action = stage.ended(begun.action).await;
            assert_eq!((action.state, action.exit), (State::Failed, Some(7)));
            assert_eq!(stage.printed(begun.action).await, all_lines());
            let mismatch = Status::Failure(Failure::TagMismatch);
            stage.until("orange", Some(mismatch)).await;
            assert!(stage.show("orange").await.unwrap().failed);
        };
        if !play(&stage, Some(point), story).await {
            assert!(point > 20, "killed at {point} points alone");
            return;
        }
    }
}

/// Power fails in the middle of a script, and with it the engine.
async fn power_fails(deed: Deed, done: bool) -> (String, bool, Option<Status>) {
    let stage = Stage::set().await;
    let created = stage.create("orange", "v1").await;
    let working = async {
        well(&stage, created).await;
        stage.until("orange", Some(Status::Running)).await;
        if deed == Deed::Cleanup {
            stage.begin("orange", Deed::Archive, None).await;
            stage.until("orange", Some(Status::Archived)).await;
        }
        let edits = (deed == Deed::Update).then(|| tagged("v2"));
        stage.begin("orange", deed, edits).await;
        while !stage
            .world
            .state()
            .begun
            .contains(&format!("{deed} orange"))
        {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = working => {}
        () = stage.engine("first", "here", true) => {}
    }
    stage.world.power_cut(done);
    let ended = async {
        let row = stage.show("orange").await.unwrap();
        let action = stage.ended(row.busy.unwrap().action).await;
        assert_eq!(action.state, State::Lost);
        // It is looked at twice more.
        tokio::time::sleep(Duration::from_mins(1)).await;
        let row = stage.show("orange").await;
        let failed = row.as_ref().is_some_and(|row| row.failed);
        (action.error.unwrap(), failed, row.map(|row| row.status))
    };
    let found = tokio::select! {
        found = ended => found,
        () = stage.engine("second", "here", true) => unreachable!("it works until it is dropped"),
    };
    let begun = stage
        .world
        .state()
        .begun
        .iter()
        .filter(|one| one.starts_with(deed.as_str()))
        .count();
    assert_eq!(begun, 1, "it is not done again");
    found
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_of_is_looked_at_and_not_done_again() {
    let done = "nobody knows how its script ended; a look found it done".to_owned();
    let undone = "nobody knows how its script ended; a look found it not done".to_owned();
    let unseen =
        "nobody knows how its script ended; it cannot be seen whether it was done".to_owned();
    let mismatch = Status::Failure(Failure::TagMismatch);
    for (deed, came, expected) in [
        (
            Deed::Update,
            true,
            (done.clone(), false, Some(Status::Running)),
        ),
        (Deed::Update, false, (undone.clone(), true, Some(mismatch))),
        (Deed::Archive, true, (done, false, Some(Status::Archived))),
        // It does not rest, and runs as it should: the mark says that it was to.
        (Deed::Archive, false, (undone, true, Some(Status::Running))),
        (
            Deed::Cleanup,
            true,
            (unseen, true, Some(Status::CleanupFailed)),
        ),
    ] {
        assert_eq!(power_fails(deed, came).await, expected, "{deed} {came}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_already_is_followed_while_init_is_run_anew() {
    let stage = Stage::set().await;
    let begun = async {
        stage.create("orange", "v1").await;
        while stage.world.state().begun.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = begun => {}
        () = stage.engine("first", "here", true) => {}
    }
    stage.world.state().inits.clear();
    stage.world.state().init_takes = Some(Duration::from_hours(1));
    let action = stage.show("orange").await.unwrap().busy.unwrap().action;
    let followed = async {
        let ended = stage.ended(action).await;
        assert_eq!(ended.state, State::Done);
        assert!(!stage.show("orange").await.unwrap().links.is_empty());
        assert!(stage.world.state().inits.is_empty());
    };
    tokio::select! {
        () = followed => {}
        () = stage.engine("second", "here", true) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn who_still_runs_init_leaves_work_to_others() {
    let stage = Stage::set().await;
    let names = ["orange", "lemon", "lime", "apple", "pear"];
    let one = stage.engine("one", "here", false);
    let story = async {
        let first = stage.create("plum", "v1").await;
        well(&stage, first).await;
        stage.world.state().init_takes = Some(Duration::from_hours(1));
        let two = stage.engine("two", "there", false);
        let work = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            for name in names {
                let begun = stage.create(name, "v1").await;
                well(&stage, begun).await;
                assert_eq!(stage.world.begun_at(begun.action), Some("here"));
            }
        };
        tokio::select! {
            () = work => {}
            () = two => {}
        }
    };
    tokio::select! {
        () = story => {}
        () = one => {}
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_silent_server_began_can_be_given_up() {
    let stage = Stage::set().await;
    stage.world.takes(Deed::Create, Duration::from_mins(20));
    let created = stage.create("orange", "v1").await;
    let begun = async {
        while stage.world.state().begun.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = begun => {}
        () = stage.engine("one", "here", false) => {}
    }
    let cancel = async |force| {
        let busy = stage.show("orange").await.unwrap().busy.unwrap();
        let ask = Ask::Cancel {
            name: name("orange"),
            busy,
            force,
            actor: "ana".into(),
        };
        let project = Name::default_project();
        let asked = stage.store.ask(&project, ask, None, stage.now()).await;
        asked.unwrap().action.unwrap().state
    };
    let told = async {
        let busy = loop {
            let busy = stage.show("orange").await.unwrap().busy.unwrap();
            if busy.state == State::Waiting {
                break busy;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        let why = busy.waits.unwrap();
        assert!(
            why.starts_with("it waits for the server that began it"),
            "{why}"
        );
        assert_eq!(cancel(false).await, State::Waiting);
        tokio::time::sleep(Duration::from_mins(1)).await;
        let busy = stage.show("orange").await.unwrap().busy.unwrap();
        assert!(busy.cancel && busy.waits.is_some());
        cancel(true).await;
        let ended = stage.ended(created.action).await;
        assert_eq!(ended.state, State::Cancelled);
    };
    tokio::select! {
        () = told => {}
        () = stage.engine("two", "there", false) => {}
    }
    let back = async {
        while !stage.world.left("here").is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = back => {}
        () = stage.engine("three", "here", false) => {}
    }
    assert_eq!(stage.world.state().begun.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_two_places_one_acts_and_the_other_waits_until_it_must_be_over() {
    let stage = Stage::set().await;
    stage.world.takes(Deed::Create, Duration::from_mins(5));
    let created = stage.create("orange", "v1").await;
    let mut here = Box::pin(stage.engine("one", "here", false));
    let mut there = Box::pin(stage.engine("two", "there", false));
    let begun = async {
        while stage.world.state().begun.is_empty() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = begun => {}
        () = &mut here => {}
        () = &mut there => {}
    }
    // Whoever did not begin it goes on alone: the other's machine is gone for good.
    let other = if stage.world.begun_at(created.action) == Some("here") {
        drop(here);
        there
    } else {
        drop(there);
        here
    };
    let deadline = stage.action(created.action).await.deadline.unwrap();
    let ended = tokio::select! {
        ended = stage.ended(created.action) => ended,
        () = other => unreachable!("it works until it is dropped"),
    };
    assert_eq!(ended.state, State::Lost);
    assert!(
        ended.ended_at.unwrap() > deadline,
        "not before it must be over"
    );
    assert_eq!(stage.world.state().begun.len(), 1);
    assert_eq!(stage.world.state().wrong, Vec::<String>::new());
}
