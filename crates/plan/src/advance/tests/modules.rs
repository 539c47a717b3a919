//! What machines are made from, where a branch is named.

use super::*;
use crate::advance::{Advance, Ward, offers, wake};
use crate::why;
use model::cluster::Origin;
use model::observed::UnresolvedFact;
use model::templates::{Commit, Reference};

const MAIN: Said = Said {
    branch: "main",
    more: "",
    ..SAID
};

/// Two hours every night.
const NIGHTLY: Said = Said {
    cluster: ", disruption: {windows: [{start: \"02:00\", duration: 2h}]}",
    ..MAIN
};

fn wakes(life: &Life) -> Option<Timestamp> {
    let view = life.view();
    wake(&view, &Ward::of(&view))
}

fn commit(digit: char) -> Commit {
    digit.to_string().repeat(40).parse().unwrap()
}

impl Life {
    /// A cluster of which nothing was done yet.
    fn unborn(said: Said) -> Self {
        let mut life = Self::of(SAID);
        (life.desired, life.observed) = (None, Observed::default());
        life.apply(said);
        life
    }

    /// Somebody looks where the branch leads.
    fn leads(&mut self, digit: char) {
        let followed = self.followed();
        followed.commit = Some((commit(digit), START));
        followed.since = Some(START);
        followed.unresolved = None;
    }

    /// Somebody looks, and nobody answers.
    fn silent(&mut self, lasting: bool) {
        let now = self.now.plus(Duration::from_secs(1));
        let because = "the repository does not answer".to_owned();
        self.followed().unresolved = Some((UnresolvedFact { because, lasting }, now));
    }

    fn followed(&mut self) -> &mut model::observed::Followed {
        let reference = Reference {
            repository: "git.example.org/m".to_owned(),
            name: "main".to_owned(),
        };
        self.observed.followed.entry(reference).or_default()
    }

    /// A cluster that is made from the commit of one digit.
    fn made_from(said: Said, digit: char) -> Self {
        let mut life = Self::unborn(said);
        life.leads(digit);
        life.settle();
        life.told.clear();
        life
    }

    fn ask(&mut self, digit: char) {
        let wish = Wish::Update {
            pool: "muscle".parse().unwrap(),
            commit: Some(commit(digit)),
        };
        let origin = crate::fixture::origin("update", 0);
        self.intents.push(Intent {
            id: model::id::IntentId::derive(origin),
            project: Name::default_project(),
            cluster: "edge".parse().unwrap(),
            wish,
            author: "ann".to_owned(),
            reason: "newer".to_owned(),
            created_at: self.now,
            expires_at: None,
        });
    }

    /// What each machine is made from.
    fn commits(&self) -> String {
        let machines = self.desired.as_ref().unwrap().machines.iter();
        let told = machines.map(|machine| {
            let pinned = machine.origin.pinned();
            let digit = pinned.map_or("?".to_owned(), |of| of.as_str()[..1].to_owned());
            format!("{} {digit}", machine.name)
        });
        told.collect::<Vec<_>>().join(", ")
    }

    fn chain(&self) -> String {
        let view = self.view();
        let told = why(&view, &plan(&view));
        told.iter()
            .skip(1)
            .map(|cause| format!("{cause}\n"))
            .collect()
    }

    /// What is there in the window of the first night.
    fn at_night(&mut self) {
        self.now = Timestamp::from_millis(2 * 3_600_000);
        self.look();
    }
}

#[test]
fn nothing_is_made_before_its_commit_was_seen() {
    let mut life = Life::unborn(MAIN);
    assert_eq!(
        life.commits(),
        "edge-brain-01 ?, edge-muscle-01 ?, edge-muscle-02 ?"
    );
    assert!(!life.pass());
    expect![[r"
        create edge-brain-01 and 2 more: nobody has seen yet to which commit git.example.org/m@main leads
          → continues by itself when somebody has seen it
    "]]
    .assert_eq(&life.chain());
    life.silent(false);
    assert!(!life.pass());
    expect![[r"
        create edge-brain-01 and 2 more: git.example.org/m@main was not looked up: the repository does not answer
          → continues by itself when somebody has seen it
    "]]
    .assert_eq(&life.chain());
    life.silent(true);
    expect![[r"
        create edge-brain-01 and 2 more: git.example.org/m@main was not looked up: the repository does not answer
          → mend what is wrong there, or name other modules in the manifest; continues by itself when somebody has seen it
    "]]
    .assert_eq(&life.chain());
    life.leads('a');
    life.settle();
    life.told(&expect![[r"
        git.example.org/m@main leads to aaaaaaaaaa
          join edge-muscle-01
          join edge-muscle-02
        now edge-brain-01 edge-muscle-01 edge-muscle-02
    "]]);
    assert_eq!(
        life.commits(),
        "edge-brain-01 a, edge-muscle-01 a, edge-muscle-02 a"
    );
}

#[test]
fn a_journey_is_told_before_anybody_has_looked() {
    let life = Life::unborn(MAIN);
    let told = journey(&life.view());
    assert_eq!((told.held.len(), told.effects.len()), (0, 3));
    let mut life = Life::unborn(MAIN);
    life.silent(true);
    let told = journey(&life.view());
    assert_eq!((told.held.len(), told.effects.len()), (1, 0));
}

#[test]
fn the_same_manifest_is_the_same_cluster_wherever_its_branch_leads() {
    let mut life = Life::made_from(MAIN, 'a');
    let before = life.desired.clone().unwrap();
    life.leads('b');
    life.apply(MAIN);
    assert_eq!(life.desired.as_ref(), Some(&before));
    // Who comes later is made from what the others are made from.
    life.apply(Said { compute: 3, ..MAIN });
    life.settle();
    assert!(
        life.commits()
            .ends_with("edge-muscle-02 a, edge-muscle-03 a")
    );
    // Who writes down what runs changes nothing, and nothing else is offered.
    let hash: &'static str = Box::leak(commit('a').to_string().into_boxed_str());
    life.apply(Said {
        branch: hash,
        compute: 3,
        ..MAIN
    });
    assert_eq!(life.desired.as_ref().unwrap().leaving, []);
    life.settle();
    assert_eq!(
        (life.told.as_str(), offers(&life.view())),
        ("  join edge-muscle-03\n", vec![])
    );
}

#[test]
fn a_branch_that_moves_is_offered_and_moves_nobody() {
    let mut life = Life::made_from(MAIN, 'a');
    life.leads('b');
    assert!(!life.pass());
    expect![[r"
        everything was last seen as declared
        pool brain could have newer modules: git.example.org/m@main leads, since Thu 1970-01-01 00:16 UTC, to bbbbbbbbbb, and machines are made from aaaaaaaaaa
          → `slipway pool update edge/brain` takes them, one machine after the other
        pool muscle could have newer modules: git.example.org/m@main leads, since Thu 1970-01-01 00:16 UTC, to bbbbbbbbbb, and machines are made from aaaaaaaaaa
          → `slipway pool update edge/muscle` takes them, one machine after the other
    "]]
    .assert_eq(&life.chain());
    assert_eq!(wakes(&life), None);
    assert!(journey(&life.view()).effects.is_empty());
}

#[test]
fn newer_modules_are_taken_when_somebody_asks() {
    let mut life = Life::made_from(MAIN, 'a');
    life.leads('b');
    life.ask('b');
    // Where it leads since then was not asked for.
    life.leads('c');
    assert_eq!(journey(&life.view()).effects.len(), 4);
    life.settle();
    life.told(&expect![[r"
        pool muscle goes to modules of bbbbbbbbbb
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
        edge-muscle-03 in place of edge-muscle-01
          drain edge-muscle-01
        edge-muscle-04 to come, made as pool muscle now says
          delete edge-muscle-01
          join edge-muscle-04
        edge-muscle-04 in place of edge-muscle-02
          drain edge-muscle-02
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-03 edge-muscle-04
    "]]);
    assert_eq!(
        life.commits(),
        "edge-brain-01 a, edge-muscle-03 b, edge-muscle-04 b"
    );
}

#[test]
fn newer_modules_are_taken_in_a_window_and_not_before() {
    let mut life = Life::made_from(NIGHTLY, 'a');
    life.leads('b');
    life.settle();
    assert_eq!(
        (life.told.as_str(), wakes(&life)),
        ("", Some(Timestamp::from_millis(2 * 3_600_000)))
    );
    expect![[r"
        everything was last seen as declared
        pool brain could have newer modules: git.example.org/m@main leads, since Thu 1970-01-01 00:16 UTC, to bbbbbbbbbb, and machines are made from aaaaaaaaaa
          → taken by itself when the window opens, Thu 1970-01-01 02:00 UTC; `slipway pool update edge/brain` notes it at once
        pool muscle could have newer modules: git.example.org/m@main leads, since Thu 1970-01-01 00:16 UTC, to bbbbbbbbbb, and machines are made from aaaaaaaaaa
          → taken by itself when the window opens, Thu 1970-01-01 02:00 UTC; `slipway pool update edge/muscle` notes it at once
    "]]
    .assert_eq(&life.chain());
    life.at_night();
    life.settle();
    assert_eq!(
        life.commits(),
        "edge-brain-02 b, edge-muscle-03 b, edge-muscle-04 b"
    );
}

#[test]
fn a_repository_that_does_not_answer_disturbs_nobody() {
    let mut life = Life::made_from(NIGHTLY, 'a');
    life.leads('b');
    life.at_night();
    life.silent(true);
    life.ask('b');
    assert!(!life.pass());
    life.leads('b');
    life.settle();
    assert!(life.commits().starts_with("edge-brain-02 b"));
}

#[test]
fn modules_that_fail_are_tried_again_with_what_their_branch_leads_to_then() {
    let mut life = Life::made_from(MAIN, 'a');
    life.leads('b');
    life.ask('b');
    life.broken = vec!["bbbb"];
    life.settle();
    assert_eq!(
        life.commits(),
        "edge-brain-01 a, edge-muscle-01 a, edge-muscle-02 a"
    );
    life.told.clear();
    // It ended when the pool was on its way.
    life.intents.clear();
    life.leads('c');
    life.settle();
    life.told.truncate(life.told.find("edge-muscle").unwrap());
    expect![[r"
        pool muscle goes on to modules of cccccccccc
    "]]
    .assert_eq(&life.told);
    assert!(
        life.commits().ends_with("edge-muscle-04 c"),
        "{}",
        life.commits()
    );
}

#[test]
fn an_edit_in_the_middle_keeps_what_was_begun() {
    let mut life = Life::made_from(MAIN, 'a');
    life.leads('b');
    life.ask('b');
    life.until(|life| life.commits().contains(" b"));
    let before = life.desired.clone().unwrap();
    life.apply(MAIN);
    assert_eq!(life.desired.as_ref(), Some(&before), "nothing was edited");
    life.apply(Said { compute: 3, ..MAIN });
    life.settle();
    let commits = life.commits();
    assert_eq!(commits.matches(" b").count(), 3, "{commits}");
}

/// What the checker says of a step that somebody makes up.
#[track_caller]
fn refused(life: &Life, step: impl FnOnce(&mut Desired)) -> Vec<&'static str> {
    let mut desired = life.desired.clone().unwrap();
    step(&mut desired);
    let because = String::new();
    let notes = check_advance(&life.view(), &Advance { desired, because });
    notes.into_iter().map(|note| note.broken).collect()
}

#[test]
fn the_checker_refuses_newer_modules_that_nobody_asked_for() {
    const UNASKED: &str =
        "newer modules are taken in a window where no data goes along, or when somebody asks";
    const REMADE: &str = "a machine stays what it is made from";
    let mut life = Life::made_from(NIGHTLY, 'a');
    let rolls = |digit: char| {
        move |desired: &mut Desired| {
            let machine = desired.machines.last().unwrap().clone();
            desired.rolls.push(model::upkeep::Roll {
                pool: machine.pool,
                role: machine.role,
                balancer: None,
                origin: machine.origin.at(Some(commit(digit))),
                surge: 1,
                coming: Vec::new(),
                failed: None,
            });
        }
    };
    life.leads('b');
    assert_eq!(refused(&life, rolls('b')), [UNASKED]);
    life.at_night();
    assert!(refused(&life, rolls('b')).is_empty());
    assert_eq!(refused(&life, rolls('c')), [UNASKED], "nobody saw it");
    life.now = START;
    life.ask('b');
    assert!(refused(&life, rolls('b')).is_empty());
    assert_eq!(refused(&life, rolls('c')), [UNASKED]);
    let remade = |desired: &mut Desired| {
        let machine = desired.machines.last_mut().unwrap();
        machine.origin = machine.origin.clone().at(Some(commit('b')));
    };
    assert_eq!(refused(&life, remade), [REMADE]);
    let mut unseen = Life::unborn(MAIN);
    assert_eq!(refused(&unseen, remade), [REMADE], "nobody saw it");
    unseen.leads('b');
    assert!(refused(&unseen, remade).is_empty());
}

#[test]
fn the_checker_refuses_to_make_what_nobody_knows() {
    let mut life = Life::unborn(MAIN);
    life.leads('a');
    while life.desired.as_ref().unwrap().machines[0]
        .origin
        .lacks_commit()
    {
        life.pass();
    }
    let mut step = plan(&life.view());
    assert_eq!(check(&life.view(), &step), []);
    for task in &mut step.tasks {
        task.machine.origin = task.machine.origin.clone().at(None);
    }
    let broken = check(&life.view(), &step);
    assert!(
        broken
            .iter()
            .all(|note| note.broken == "a machine is made from modules whose commit is known")
    );
    assert_eq!(broken.len(), step.tasks.len());
    assert!(
        life.desired
            .unwrap()
            .machines
            .iter()
            .all(|of| matches!(of.origin, Origin::Made { .. }))
    );
}

/// What is kept on the machines of workers goes with them.
const VOLUMES: Said = Said {
    cluster: ", addons: [{name: local-path}], disruption: {windows: [{start: \"02:00\", duration: 2h}]}",
    ..MAIN
};

#[test]
fn no_window_takes_data_along() {
    let mut life = Life::made_from(VOLUMES, 'a');
    life.leads('b');
    life.at_night();
    life.settle();
    // The control plane keeps none.
    assert_eq!(
        life.commits(),
        "edge-brain-02 b, edge-muscle-01 a, edge-muscle-02 a"
    );
    expect![[r"
        everything was last seen as declared
        pool muscle could have newer modules: git.example.org/m@main leads, since Thu 1970-01-01 00:16 UTC, to bbbbbbbbbb, and machines are made from aaaaaaaaaa
          → `slipway pool update edge/muscle` takes them, one machine after the other, each with volumes of add-on local-path; say replace: true of the pool to have windows do so
    "]]
    .assert_eq(&life.chain());
    expect![[r"
        cluster edge: nothing can be done now
          held  drain edge-muscle-01 and 1 more: stays though git.example.org/m@main leads to bbbbbbbbbb: volumes of add-on local-path would go with it
                move what is on it, then run `slipway pool update edge/muscle`; or say replace: true of the pool, and windows do so
    "]]
    .assert_eq(&journey(&life.view()).to_string());
    // The checker does not take the planner's word for it.
    let workers = |desired: &mut Desired| {
        let machine = desired.machines.last().unwrap().clone();
        desired.rolls.push(model::upkeep::Roll {
            pool: machine.pool,
            role: machine.role,
            balancer: None,
            origin: machine.origin.at(Some(commit('b'))),
            surge: 1,
            coming: Vec::new(),
            failed: None,
        });
    };
    assert_eq!(
        refused(&life, workers),
        ["newer modules are taken in a window where no data goes along, or when somebody asks"]
    );
    life.ask('b');
    assert!(refused(&life, workers).is_empty());
    life.settle();
    assert_eq!(
        life.commits(),
        "edge-brain-02 b, edge-muscle-03 b, edge-muscle-04 b"
    );
}

#[test]
fn windows_take_newer_modules_where_the_pool_says_that_machines_are_replaced() {
    let more = "replace: true";
    let mut life = Life::made_from(Said { more, ..VOLUMES }, 'a');
    life.leads('b');
    life.at_night();
    assert!(journey(&life.view()).held.is_empty());
    life.settle();
    assert_eq!(
        life.commits(),
        "edge-brain-02 b, edge-muscle-03 b, edge-muscle-04 b"
    );
}

#[test]
fn a_data_disk_that_somebody_asked_for_goes_with_no_window() {
    let at_night = |more: &'static str| {
        let mut life = Life::made_from(Said { more, ..NIGHTLY }, 'a');
        life.leads('b');
        life.at_night();
        life.settle();
        life.commits()
    };
    assert!(at_night("storageDiskSize: 50").ends_with("edge-muscle-01 a, edge-muscle-02 a"));
    assert!(at_night("storageDiskSize: 0").ends_with("edge-muscle-03 b, edge-muscle-04 b"));
}
