//! A pool becomes another kind of machine, and machines that do not serve are replaced.

mod balancers;
mod due;
mod edited;
mod first;
mod gates;
mod modules;
mod stopped;
mod tight;
mod vain;

use super::advance;
use crate::expand::{Known, expand};
use crate::ledger::Slot;
use crate::planner::{Plan, View, plan};
use crate::{check, check_advance, journey, predict};
use expect_test::{Expect, expect};
use model::admit::admit;
use model::cluster::{Desired, Machine};
use model::id::MachineId;
use model::intent::{Intent, Wish};
use model::name::Name;
use model::observed::{MachineFact, NodeFact, Observed, Wellbeing};
use model::source;
use model::task::{Action, Kind, Open, State, Task};
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

const START: Timestamp = Timestamp::from_millis(1_000_000);

/// A cluster that lives: what is planned comes true, unless it is to fail.
struct Life {
    desired: Option<Desired>,
    observed: Observed,
    open: Vec<Open>,
    ledger: Vec<Slot>,
    intents: Vec<Intent>,
    now: Timestamp,
    /// Server types of which no machine can be made.
    broken: Vec<&'static str>,
    /// What else fails for good.
    fails: fn(&Observed, &Task) -> bool,
    told: String,
}

/// What a manifest of one cluster says.
#[derive(Clone, Copy)]
struct Said {
    control: u32,
    compute: u32,
    kind: &'static str,
    more: &'static str,
    cluster: &'static str,
    version: &'static str,
    network: &'static str,
    /// How many machines the load balancer has, and of which type; none where there are none.
    door: (u32, &'static str),
    /// The branch of the modules that machines are made with; built-in ones where it is empty.
    branch: &'static str,
}

const SAID: Said = Said {
    control: 1,
    compute: 2,
    kind: "small",
    more: "replace: true",
    cluster: "",
    version: "1.34.0",
    network: "10.8.0.0/28",
    door: (0, ""),
    branch: "",
};

const LARGE: Said = Said {
    kind: "large",
    ..SAID
};

fn text(said: Said) -> String {
    let Said {
        control,
        compute,
        kind,
        more,
        cluster,
        version,
        network,
        door: (doors, door),
        branch,
    } = said;
    let modules = match branch {
        "" => String::new(),
        branch => format!(", templates: {{repository: git.example.org/m, commit: {branch}}}"),
    };
    let (via, brain, door, balancers) = if doors == 0 {
        ("simulated", "small", String::new(), "")
    } else {
        let door = format!(
            "- {{name: door, providerSpec: {{name: lab, region: n}}, count: {doors}, serverType: {door}, image: debian-12, {more}}}"
        );
        ("sandbox", "lite", door, BALANCERS)
    };
    format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: {via}{modules}}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: {control}, serverType: {brain}, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: n}}, count: {compute}, serverType: {kind}, image: debian-12, {more}}}
      {door}
  kubernetes:
    clusters:
      - {{name: edge, version: {version}, network: {network}, pools: {{control: [brain], compute: [muscle]}} {cluster}}}
{balancers}
"
    )
}

const BALANCERS: &str = "
  loadBalancers:
    roles: [{name: web, protocol: tcp, port: 443, targetPort: 30443, targetPools: [muscle]}]
    clusters: [{name: front, targetedK8s: edge, pools: [door], roles: [web]}]
";

/// What is told of the work of a life.
const TOLD: [Kind; 6] = [
    Kind::Balance,
    Kind::Join,
    Kind::Drain,
    Kind::Upgrade,
    Kind::Uncordon,
    Kind::Delete,
];

impl Life {
    fn of(said: Said) -> Self {
        let mut life = Self {
            desired: None,
            observed: Observed::default(),
            open: Vec::new(),
            ledger: Vec::new(),
            intents: Vec::new(),
            now: START,
            broken: Vec::new(),
            fails: |_, _| false,
            told: String::new(),
        };
        life.apply(said);
        life.settle();
        life.told.clear();
        life
    }

    fn apply(&mut self, said: Said) {
        let manifest = admit(&source::parse(&text(said)).unwrap()).unwrap();
        let known = self.desired.iter().map(|desired| Known {
            desired,
            observed: &self.observed,
            intents: &self.intents,
            open: &self.open,
        });
        let known: Vec<_> = known.collect();
        let project = Name::default_project();
        let expanded = expand(&project, &manifest, &known, &BTreeMap::new(), self.now);
        self.desired = Some(expanded.expect("must expand").remove(0).desired);
    }

    fn view(&self) -> View<'_> {
        View {
            desired: self.desired.as_ref().unwrap(),
            observed: &self.observed,
            open: &self.open,
            ledger: &self.ledger,
            elsewhere: &[],
            intents: &self.intents,
            blocked: &[],
            shut_out: &[],
            missing: &[],
            claimed: &[],
            vain: &[],
            parent: 0,
            now: self.now,
        }
    }

    /// One pass of the engine, and all that it begins ends; answers whether anything happened.
    fn pass(&mut self) -> bool {
        if let Some(step) = advance(&self.view()) {
            assert_eq!(check_advance(&self.view(), &step), []);
            writeln!(self.told, "{}", step.because).unwrap();
            self.desired = Some(step.desired);
            return true;
        }
        let step = plan(&self.view());
        assert_eq!(check(&self.view(), &step), []);
        self.ledger
            .retain(|slot| !step.release.contains(&slot.machine));
        self.ledger.extend(step.disturbs.iter().cloned());
        self.open.retain(|open| !step.withdraw.contains(&open.id));
        for task in &step.tasks {
            let made = format!("{:?}", task.machine.origin);
            let broken = task.action == Action::Create
                && self.broken.iter().any(|kind| made.contains(*kind));
            if broken || (self.fails)(&self.observed, task) {
                self.open.push(Open {
                    id: task.id,
                    machine: task.machine.id,
                    action: task.action.clone(),
                    origin: task.machine.origin.clone(),
                    through: Vec::new(),
                    state: State::Stuck,
                    attempts: 1,
                    not_before: self.now,
                    error: Some("there is no such type".to_owned()),
                    corrected: false,
                });
            } else {
                predict(&mut self.observed, &task.machine, &task.action, self.now);
            }
            let kind = task.action.kind();
            if TOLD.contains(&kind) {
                writeln!(self.told, "  {kind} {}", task.machine.name).unwrap();
            }
        }
        !step.tasks.is_empty() || !step.withdraw.is_empty()
    }

    fn settle(&mut self) {
        for _ in 0..200 {
            if !self.pass() {
                return;
            }
        }
        panic!("no end:\n{}", self.told);
    }

    /// What it waits for then.
    fn waits(&mut self) -> Plan {
        self.settle();
        plan(&self.view())
    }

    fn machine(&self, name: &str) -> Machine {
        let desired = self.desired.as_ref().unwrap();
        desired.machine_named(name).unwrap().clone()
    }

    /// Somebody else does what a task could not.
    fn by_hand(&mut self, name: &str) {
        let machine = self.machine(name);
        let mut open = self.open.iter();
        let open = open.find(|open| open.machine == machine.id).unwrap();
        predict(&mut self.observed, &machine, &open.action, self.now);
    }

    /// Passes until this is so.
    #[track_caller]
    fn until(&mut self, there: impl Fn(&Self) -> bool) {
        for _ in 0..50 {
            if there(self) {
                return;
            }
            self.pass();
        }
        panic!("never so:\n{}", self.told);
    }

    /// Kubernetes says from now on that its node is not ready.
    fn sicken(&mut self, name: &str) -> MachineId {
        let id = self.machine(name).id;
        let seen = self.observed.machines.get_mut(&id).unwrap();
        if let Some((NodeFact::Joined { ready, .. }, _)) = &mut seen.node {
            *ready = false;
        }
        self.observed.sick.insert(id, self.now);
        self.look();
        id
    }

    /// Everything is seen once more, as it was.
    fn look(&mut self) {
        let now = self.now;
        for seen in self.observed.machines.values_mut() {
            seen.machine.iter_mut().for_each(|(_, at)| *at = now);
            seen.node.iter_mut().for_each(|(_, at)| *at = now);
        }
    }

    fn wait(&mut self, minutes: u64) {
        self.now = self.now.plus(Duration::from_mins(minutes));
    }

    fn names(&self) -> String {
        let desired = self.desired.as_ref().unwrap();
        let names = desired.machines.iter().map(|machine| machine.name.as_str());
        names.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn told(&mut self, expected: &Expect) {
        let mut told = std::mem::take(&mut self.told);
        writeln!(told, "now {}", self.names()).unwrap();
        expected.assert_eq(&told);
    }
}

#[test]
fn each_machine_goes_when_another_of_the_new_kind_serves() {
    let mut life = Life::of(SAID);
    life.apply(Said {
        kind: "large",
        ..SAID
    });
    let journey = journey(&life.view());
    assert!(
        journey
            .effects
            .contains_key(&life.machine("edge-muscle-02").name)
    );
    life.settle();
    life.told(&expect![[r#"
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
    "#]]);
    assert!(life.desired.unwrap().rolls.is_empty());
}

#[test]
fn several_come_at_once_where_the_pool_says_so() {
    let more = "replace: true, surge: 2";
    let said = Said {
        compute: 3,
        more,
        ..SAID
    };
    let mut life = Life::of(said);
    life.apply(Said {
        kind: "large",
        ..said
    });
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-04 and edge-muscle-05 to come, made as pool muscle now says
          join edge-muscle-04
          join edge-muscle-05
        edge-muscle-04 and edge-muscle-05 in place of edge-muscle-01 and edge-muscle-02
          drain edge-muscle-01
          delete edge-muscle-01
          drain edge-muscle-02
        edge-muscle-01 to come, made as pool muscle now says
          delete edge-muscle-02
          join edge-muscle-01
        edge-muscle-01 in place of edge-muscle-03
          drain edge-muscle-03
          delete edge-muscle-03
        now edge-brain-01 edge-muscle-01 edge-muscle-04 edge-muscle-05
    "#]]);
}

#[test]
fn a_kind_that_fails_is_taken_back_and_tried_again_after_growing_pauses() {
    let mut life = Life::of(SAID);
    life.broken = vec!["huge"];
    life.apply(Said {
        kind: "huge",
        ..SAID
    });
    let waits = life.waits();
    assert_eq!(waits.held.len(), 1);
    let due = waits.wake.unwrap();
    assert_eq!(due.since(life.now), Duration::from_mins(1));
    writeln!(life.told, "{}", waits.held[0]).unwrap();
    life.now = due;
    // Whoever asks before the planner has looked hears of it all the same.
    let view = life.view();
    let asked = crate::why(&view, &plan(&view));
    let asked: Vec<_> = asked.iter().map(|of| of.fact.clone()).collect();
    let step = "the next step is due: edge-muscle-03 to come, made as pool muscle now says";
    assert!(asked.iter().any(|fact| fact == step), "{asked:#?}");
    assert!(!asked[0].contains(" is done "), "{asked:#?}");
    let waits = life.waits();
    writeln!(life.told, "{}", waits.held[0]).unwrap();
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
        pool muscle stays as it was, tried 1×: create edge-muscle-03: there is no such type
          delete edge-muscle-03
        drain edge-muscle-01 and 1 more: stays: its successor was tried 1× and taken back: create edge-muscle-03: there is no such type
        edge-muscle-03 to come, made as pool muscle now says
        pool muscle stays as it was, tried 2×: create edge-muscle-03: there is no such type
          delete edge-muscle-03
        drain edge-muscle-01 and 1 more: stays: its successor was tried 2× and taken back: create edge-muscle-03: there is no such type
        now edge-brain-01 edge-muscle-01 edge-muscle-02
    "#]]);
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(2));
}

#[test]
fn a_corrected_kind_begins_at_once_and_what_worked_is_kept() {
    let mut life = Life::of(SAID);
    life.broken = vec!["huge"];
    life.apply(Said {
        kind: "huge",
        ..SAID
    });
    life.settle();
    life.told.clear();
    life.apply(Said {
        kind: "large",
        ..SAID
    });
    life.settle();
    life.told(&expect![[r#"
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
    "#]]);
}

#[test]
fn back_to_the_old_kind_in_the_middle_keeps_those_of_it() {
    let mut life = Life::of(SAID);
    life.apply(Said {
        kind: "large",
        ..SAID
    });
    for _ in 0..3 {
        life.pass();
    }
    life.told(&expect![[r#"
        edge-muscle-03 to come, made as pool muscle now says
          join edge-muscle-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02 edge-muscle-03
    "#]]);
    life.apply(SAID);
    life.settle();
    life.told(&expect![[r#"
          drain edge-muscle-03
          delete edge-muscle-03
        now edge-brain-01 edge-muscle-01 edge-muscle-02
    "#]]);
}

#[test]
fn the_same_manifest_again_in_the_middle_changes_nothing() {
    let mut life = Life::of(SAID);
    let large = Said {
        kind: "large",
        ..SAID
    };
    life.apply(large);
    for _ in 0..4 {
        let before = life.desired.clone();
        life.apply(large);
        assert_eq!(life.desired, before);
        life.pass();
    }
}

#[test]
fn without_consent_another_kind_is_refused_with_the_word_that_allows_it() {
    let said = Said { more: "", ..SAID };
    let life = Life::of(said);
    let manifest = admit(
        &source::parse(&text(Said {
            kind: "large",
            ..said
        }))
        .unwrap(),
    )
    .unwrap();
    let known = [Known {
        desired: life.desired.as_ref().unwrap(),
        observed: &life.observed,
        intents: &[],
        open: &[],
    }];
    let refused = expand(
        &Name::default_project(),
        &manifest,
        &known,
        &BTreeMap::new(),
        life.now,
    );
    let refused = refused.expect_err("must be refused");
    assert!(
        refused[0].to_string().contains("replace: true"),
        "{}",
        refused[0]
    );
}

#[test]
fn a_pool_rolls_within_windows_alone() {
    let cluster = ", disruption: {windows: [{start: \"02:00\", duration: 4h}]}";
    let said = Said { cluster, ..SAID };
    let mut life = Life::of(said);
    life.apply(Said {
        kind: "large",
        ..said
    });
    let waits = life.waits();
    let opens = waits.wake.unwrap();
    life.told(&expect![[r#"
        now edge-brain-01 edge-muscle-01 edge-muscle-02
    "#]]);
    life.now = opens;
    life.settle();
    life.told(&expect![[r#"
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
    "#]]);
}

#[test]
fn who_is_not_ready_for_ten_minutes_is_replaced() {
    let mut life = Life::of(SAID);
    life.sicken("edge-muscle-02");
    let waits = life.waits();
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(10));
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
        edge-muscle-02: its node was not ready for 10 min; edge-muscle-03 takes its place
          join edge-muscle-03
          delete edge-muscle-02
        now edge-brain-01 edge-muscle-01 edge-muscle-03
    "#]]);
}

#[test]
fn nobody_is_replaced_when_nobody_looked_lately() {
    let mut life = Life::of(SAID);
    life.sicken("edge-muscle-02");
    life.wait(30);
    let waits = life.waits();
    assert_eq!(waits.wake.unwrap().since(life.now), Duration::from_mins(1));
    life.told(&expect![[r#"
        now edge-brain-01 edge-muscle-01 edge-muscle-02
    "#]]);
}

#[test]
fn nobody_is_replaced_when_too_many_do_not_serve_or_people_see_to_it() {
    let mut life = Life::of(SAID);
    life.sicken("edge-muscle-01");
    life.sicken("edge-muscle-02");
    life.wait(10);
    life.look();
    assert_eq!(advance(&life.view()), None);
    let cluster = ", repair: {mode: off}";
    let mut life = Life::of(Said { cluster, ..SAID });
    life.sicken("edge-muscle-02");
    life.wait(100);
    life.look();
    assert_eq!(advance(&life.view()), None);
}

#[test]
fn a_node_that_somebody_locked_is_left_to_them() {
    let mut life = Life::of(SAID);
    life.sicken("edge-muscle-02");
    let lock = (
        "edge-muscle-02".to_owned(),
        "slipway.dev/upgrade-lock".to_owned(),
    );
    let told = Wellbeing {
        locks: BTreeMap::from([lock]),
        ..Wellbeing::default()
    };
    life.observed.wellbeing = Some((told, life.now));
    life.wait(100);
    life.look();
    assert_eq!(advance(&life.view()), None);
    life.observed.wellbeing = None;
    assert!(advance(&life.view()).is_some());
}

#[test]
fn the_only_member_of_the_control_plane_is_not_replaced_one_of_three_is() {
    let mut life = Life::of(SAID);
    life.sicken("edge-brain-01");
    life.wait(10);
    life.look();
    assert_eq!(advance(&life.view()), None);
    let mut life = Life::of(Said { control: 3, ..SAID });
    life.sicken("edge-brain-01");
    life.wait(10);
    life.look();
    life.settle();
    life.told(&expect![[r#"
        edge-brain-01: its node was not ready for 10 min; edge-brain-04 takes its place
          join edge-brain-04
          delete edge-brain-01
        now edge-brain-02 edge-brain-03 edge-brain-04 edge-muscle-01 edge-muscle-02
    "#]]);
}

#[test]
fn a_pool_whose_machines_fall_sick_again_is_repaired_less_and_less_often() {
    let mut life = Life::of(SAID);
    let mut pauses = Vec::new();
    let mut last = life.now;
    for round in 0..8 {
        let name = life
            .machine(life.names().split(' ').next_back().unwrap())
            .name;
        life.sicken(name.as_str());
        while advance(&life.view()).is_none() {
            life.wait(1);
            life.look();
        }
        if round > 0 {
            pauses.push(life.now.since(last).as_secs() / 60);
        }
        last = life.now;
        life.settle();
    }
    assert_eq!(pauses, [10, 10, 10, 10, 16, 32, 60]);
}

#[test]
fn a_machine_at_work_is_left_to_those_who_work_on_it() {
    let mut life = Life::of(SAID);
    let id = life.sicken("edge-muscle-02");
    life.wait(10);
    life.look();
    let machine = life.machine("edge-muscle-02");
    let view = life.view();
    assert!(advance(&view).is_some());
    let ledger = [Slot::of(&machine, &view.desired.disruption)];
    let at_work = View {
        ledger: &ledger,
        ..view
    };
    assert_eq!(advance(&at_work), None);
    let wish = Wish::Pause;
    let pause = Intent {
        id: model::id::IntentId::derive(crate::fixture::origin("i", 0)),
        project: Name::default_project(),
        cluster: view.desired.name.clone(),
        wish,
        author: "ann".to_owned(),
        reason: String::new(),
        created_at: START,
        expires_at: None,
    };
    let intents = [pause];
    let paused = View {
        intents: &intents,
        ..view
    };
    assert_eq!(advance(&paused), None);
    let mut observed = life.observed.clone();
    observed.machines.get_mut(&id).unwrap().machine = Some((MachineFact::Absent, life.now));
    let gone = View {
        observed: &observed,
        ..view
    };
    assert_eq!(
        advance(&gone),
        None,
        "what is missing is made again by the planner"
    );
}
