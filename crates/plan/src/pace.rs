//! How long tasks take: as long as those before them took, or a guess where there were none.

use model::cluster::{Machine, Origin};
use model::task::Kind;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Fewer tasks than these are chance.
const LEAST: usize = 3;

/// Machines that were given, whoever made them.
const GIVEN: &str = "static";

/// Machines of the simulated world, and what is only played on others.
const SIMULATED: &str = "simulated";

/// How long tasks took, by whose machines they were done to and what was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paces {
    learnt: BTreeMap<(&'static str, Kind), Pace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pace {
    /// What is usual.
    took: Duration,
    /// Learnt from how many.
    tasks: u32,
}

impl Paces {
    /// Whose machine it is, as far as that says how long something takes.
    pub fn whose(machine: &Machine, kind: Kind) -> &'static str {
        match &machine.origin {
            origin if origin.pretends() && kind.of_kubernetes() => SIMULATED,
            Origin::Made { via, .. } => via.as_str(),
            origin @ Origin::Given { .. } if origin.is_host() => GIVEN,
            Origin::Given { .. } => SIMULATED,
        }
    }

    /// Whatever could be done to these machines, and whose they are.
    pub fn asked<'a>(
        machines: impl IntoIterator<Item = &'a Machine>,
    ) -> BTreeSet<(&'static str, Kind)> {
        // Thousands of machines are of few kinds.
        let (mut seen, mut asked) = (BTreeSet::new(), BTreeSet::new());
        for machine in machines {
            let whose = |kind| Self::whose(machine, kind);
            if seen.insert((whose(Kind::Create), whose(Kind::Join))) {
                asked.extend(Kind::ALL.map(|kind| (whose(kind), kind)));
            }
        }
        asked
    }

    /// Learns from tasks of one kind what is usual: half of them took no longer.
    pub fn learn(&mut self, whose: &'static str, kind: Kind, mut took: Vec<Duration>) {
        took.sort_unstable();
        if took.len() < LEAST {
            return;
        }
        if let Some(middle) = took.get((took.len() - 1) / 2) {
            let pace = Pace {
                took: *middle,
                tasks: u32::try_from(took.len()).unwrap_or(u32::MAX),
            };
            self.learnt.insert((whose, kind), pace);
        }
    }

    /// How long something takes, in seconds, and from how many tasks that was learnt.
    pub(crate) fn of(&self, machine: &Machine, kind: Kind) -> (u32, Option<u32>) {
        match self.learnt.get(&(Self::whose(machine, kind), kind)) {
            None => (minutes(kind).saturating_mul(60), None),
            Some(Pace { took, tasks }) => {
                let seconds = took.as_millis().div_ceil(1000).max(1);
                (u32::try_from(seconds).unwrap_or(u32::MAX), Some(*tasks))
            }
        }
    }
}

/// How long a task takes, in minutes, on machines and networks of the usual kind: a guess.
pub const fn minutes(kind: Kind) -> u32 {
    match kind {
        Kind::Create | Kind::Equip | Kind::Join | Kind::Install | Kind::Drain | Kind::Renew => 2,
        Kind::Key
        | Kind::Prepare
        | Kind::Mesh
        | Kind::Balance
        | Kind::Name
        | Kind::Expose
        | Kind::Shut
        | Kind::Tend
        | Kind::Uncordon
        | Kind::Leave
        | Kind::Clear
        | Kind::Snapshot
        | Kind::Delete
        | Kind::Release => 1,
        Kind::Init | Kind::Upgrade | Kind::Restore => 3,
    }
}

/// What the minutes of a journey, or of several, were learnt from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// How many tasks, by whose machines they were done to and what was done.
    learnt: BTreeMap<String, BTreeMap<Kind, u32>>,
    /// What nothing is known of.
    guessed: BTreeSet<Kind>,
}

impl Basis {
    /// Something takes as long as was learnt, or guessed.
    pub(crate) fn note(&mut self, machine: &Machine, kind: Kind, tasks: Option<u32>) {
        let Some(tasks) = tasks else {
            self.guessed.insert(kind);
            return;
        };
        let whose = Paces::whose(machine, kind);
        let learnt = self.learnt.entry(whose.to_owned()).or_default();
        learnt.insert(kind, tasks);
    }

    /// With that of another journey.
    pub fn extend(&mut self, other: &Self) {
        for (whose, kinds) in &other.learnt {
            let learnt = self.learnt.entry(whose.clone()).or_default();
            learnt.extend(kinds);
        }
        self.guessed.extend(&other.guessed);
    }

    /// How many tasks it was learnt from.
    pub fn tasks(&self) -> u32 {
        let kinds = self.learnt.values().flat_map(BTreeMap::values);
        kinds.fold(0, |sum, tasks| sum.saturating_add(*tasks))
    }

    /// The kinds of tasks whose minutes are a guess.
    pub const fn guessed(&self) -> &BTreeSet<Kind> {
        &self.guessed
    }
}

/// As one line: `minutes are learnt from 57 past tasks`.
impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = self.tasks();
        if tasks == 0 {
            return f.write_str("minutes are a guess: too little of this was done here before");
        }
        write!(f, "minutes are learnt from {tasks} past tasks")?;
        let guessed: Vec<_> = self.guessed.iter().map(|kind| kind.as_str()).collect();
        match guessed.as_slice() {
            [] => Ok(()),
            guessed => write!(f, "; those of {} are a guess", guessed.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use crate::journey::journey_by;
    use crate::price::Prices;
    use expect_test::expect;

    /// So many seconds, each.
    fn took(seconds: &[u64]) -> Vec<Duration> {
        seconds.iter().copied().map(Duration::from_secs).collect()
    }

    #[test]
    fn minutes_are_those_of_past_tasks_and_guessed_where_there_were_few() {
        let all = "c1 w1 w2";
        let world = World::new("1.35.0", all, all);
        let mut paces = Paces::default();
        paces.learn("simulated", Kind::Drain, took(&[5, 10, 900]));
        paces.learn("simulated", Kind::Upgrade, took(&[400, 20, 500, 450]));
        paces.learn("simulated", Kind::Uncordon, took(&[1, 1]));
        paces.learn("sandbox", Kind::Drain, took(&[9999, 9999, 9999]));
        let told = journey_by(&world.view(), &Prices::usual(), &paces, &|_, _| None);
        expect![[r#"
            cluster edge
                    1  drain c1                                                      disturb       1 min
                    2  upgrade c1                                                    in place      7 min
                    3  uncordon c1                                                   in place      1 min
                  4-9  2 of compute, one at a time: drain, upgrade, uncordon         disturb      16 min
              disturbs  2 of compute, one at a time; 1 of control
              ends ready after about 25 min, 3 machines touched
            minutes are learnt from 7 past tasks; those of uncordon are a guess"#]].assert_eq(&format!("{told}{}", told.basis));
    }

    #[test]
    fn what_takes_no_time_takes_a_second() {
        let world = World::new("1.34.0", "c1 w1", "c1 w1~");
        let mut paces = Paces::default();
        paces.learn("simulated", Kind::Join, took(&[0, 0, 0]));
        let told = journey_by(&world.view(), &Prices::usual(), &paces, &|_, _| None);
        expect![[r#"
            cluster edge
                    1  join w1                                                       create        1 min
              ends ready after about 1 min, 1 machine touched
            minutes are learnt from 3 past tasks"#]].assert_eq(&format!("{told}{}", told.basis));
    }

    #[test]
    fn the_basis_of_several_journeys_counts_every_task_once() {
        let mut paces = Paces::default();
        paces.learn("simulated", Kind::Create, took(&[60; 7]));
        let of = |want: &str, have: &str| {
            let world = World::new("1.34.0", want, have);
            journey_by(&world.view(), &Prices::usual(), &paces, &|_, _| None).basis
        };
        let mut basis = Basis::default();
        assert_eq!(
            basis.to_string(),
            "minutes are a guess: too little of this was done here before"
        );
        basis.extend(&of("c1 w1", "c1"));
        basis.extend(&of("c1 w1 w2", "c1 w1"));
        assert_eq!(
            basis.to_string(),
            "minutes are learnt from 7 past tasks; those of join are a guess"
        );
        assert_eq!((basis.tasks(), basis.guessed().len()), (7, 1));
    }
}
