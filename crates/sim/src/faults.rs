//! What goes wrong in a rehearsal: by chance from a seed, or at exactly one or two points.
//!
//! The simulated driver asks at every attempt, at every moment around an effect and at
//! every look whether something goes wrong there. A [`Profile`] answers by chance; a
//! [`Script`] picks points, so that a proof can try them all, one after the other.

mod profile;

pub use profile::{Error, Profile};

use model::name::Name;
use model::observed::Observation;
use model::task::{Kind, Task};
use profile::Odds;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A point around an effect at which the engine can be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Just before anything is changed.
    Before,
    /// When the change has begun and has not taken effect.
    During,
    /// When it has taken effect and nobody has recorded that.
    After,
}

/// One thing that goes wrong, counted from the first attempt and the first effect as 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// This attempt fails and may work later.
    Retry(u64),
    /// This attempt gets stuck.
    Stuck(u64),
    /// The engine is killed at this moment of this effect.
    Kill(u64, Moment),
    /// The engine is told to end there, and started again.
    Restart(u64, Moment),
}

/// Exactly what goes wrong, each thing once.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Script {
    faults: [Option<Fault>; 2],
}

impl Script {
    /// One thing goes wrong.
    pub const fn once(fault: Fault) -> Self {
        Self {
            faults: [Some(fault), None],
        }
    }

    /// Two things go wrong. The second is counted as if the first had not been, so that a story
    /// may end before it comes.
    pub const fn twice(first: Fault, second: Fault) -> Self {
        Self {
            faults: [Some(first), Some(second)],
        }
    }

    /// What goes wrong.
    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        self.faults.into_iter().flatten()
    }

    /// Whether this is one of the things; it is not any more afterwards.
    fn strike(&mut self, fault: Fault) -> bool {
        let mut faults = self.faults.iter_mut();
        let found = faults.find(|known| **known == Some(fault));
        found.and_then(Option::take).is_some()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.faults()).finish()
    }
}

/// What a failed attempt says that failed only because of a [`Script`] or a profile.
pub const INJECTED: &str = "the simulated world failed on purpose";

/// How an attempt fails that was chosen to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It may work later; nothing was changed.
    Retry,
    /// It may work later, though everything was done: only the answer got lost.
    LostAnswer,
    /// It will not work until somebody asks again.
    Stuck,
}

/// How much was tried so far: the points that a [`Script`] can pick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Attempts that were begun.
    pub attempts: u64,
    /// Effects that were begun, or would have been.
    pub effects: u64,
    /// How often the engine was killed.
    pub kills: u64,
    /// How often it was told to end, and started again.
    pub restarts: u64,
    /// How many things of a [`Script`] went wrong.
    pub struck: u64,
}

/// Decides what goes wrong, and kills the engine.
pub struct Faults {
    state: Mutex<State>,
    knell: Notify,
    curfew: Notify,
}

struct State {
    odds: Odds,
    script: Script,
    random: fastrand::Rng,
    counted: Counted,
    ordered: BTreeMap<(Kind, Option<Name>), u32>,
    /// Whether the engine is dead: nothing that it had begun may go on.
    dead: bool,
    /// What earlier looks saw, for those that come late.
    earlier: Vec<Observation>,
}

impl State {
    /// Whether this goes wrong now, as the script says.
    fn strikes(&mut self, fault: Fault) -> bool {
        let strikes = self.script.strike(fault);
        self.counted.struck += u64::from(strikes);
        strikes
    }
}

/// A rehearsal ends though the engine keeps being killed: not more often than this.
const KILLS_MAX: u64 = 40;

impl Faults {
    /// Faults by chance.
    pub fn by_chance(profile: Profile, seed: u64) -> Self {
        Self::new(profile.odds(), Script::default(), seed)
    }

    /// Faults at chosen points, and nowhere else.
    pub fn scripted(script: Script) -> Self {
        Self::new(Profile::None.odds(), script, 0)
    }

    fn new(odds: Odds, script: Script, seed: u64) -> Self {
        Self {
            state: Mutex::new(State {
                odds,
                script,
                random: fastrand::Rng::with_seed(seed),
                counted: Counted::default(),
                ordered: BTreeMap::new(),
                dead: false,
                earlier: Vec::new(),
            }),
            knell: Notify::new(),
            curfew: Notify::new(),
        }
    }

    /// Lets nothing go wrong by itself from now on.
    pub fn calm(&self) {
        let mut state = self.lock();
        state.odds = Profile::None.odds();
        state.script = Script::default();
        state.ordered.clear();
    }

    /// Lets the next attempts of a kind fail, on one machine or on any.
    pub fn fail_next(&self, kind: Kind, machine: Option<Name>, attempts: u32) {
        self.lock().ordered.insert((kind, machine), attempts);
    }

    /// How much was tried so far.
    pub fn counted(&self) -> Counted {
        self.lock().counted
    }

    /// Kills the engine now.
    pub fn kill(&self) {
        let mut state = self.lock();
        state.dead = true;
        state.counted.kills += 1;
        self.knell.notify_one();
    }

    /// Waits until the engine is killed.
    pub async fn killed(&self) {
        self.knell.notified().await;
    }

    /// Tells the engine to end, as a person would who starts it again.
    pub fn restart(&self) {
        self.lock().counted.restarts += 1;
        self.curfew.notify_one();
    }

    /// Waits until the engine is told to end.
    pub async fn restarted(&self) {
        self.curfew.notified().await;
    }

    /// Says that a new engine begins.
    pub fn revive(&self) {
        self.lock().dead = false;
    }

    /// Counts an attempt, and says how it fails if it does.
    pub(crate) fn attempt(&self, task: &Task) -> Option<Failure> {
        let mut state = self.lock();
        let number = state.counted.attempts;
        state.counted.attempts += 1;
        if state.strikes(Fault::Retry(number)) {
            return Some(Failure::Retry);
        }
        if state.strikes(Fault::Stuck(number)) {
            return Some(Failure::Stuck);
        }
        let kind = task.action.kind();
        for machine in [None, Some(task.machine.name.clone())] {
            if let Some(left) = state.ordered.get_mut(&(kind, machine))
                && *left > 0
            {
                *left -= 1;
                return Some(Failure::Retry);
            }
        }
        let (fails, loses) = (state.odds.attempt_fails, state.odds.answer_lost);
        match state.random.u8(0..100) {
            roll if roll < fails => Some(Failure::Retry),
            roll if roll < fails + loses => Some(Failure::LostAnswer),
            _ => None,
        }
    }

    /// Counts an effect that is about to begin, and numbers it.
    pub(crate) fn effect(&self) -> u64 {
        let mut state = self.lock();
        let number = state.counted.effects;
        state.counted.effects += 1;
        number
    }

    /// Passes a moment around an effect; does not return when the engine dies there.
    pub(crate) async fn pass(&self, effect: u64, moment: Moment) {
        if self.kills_at(effect, moment) {
            self.kill();
        }
        if self.lock().dead {
            std::future::pending::<()>().await;
        }
    }

    fn kills_at(&self, effect: u64, moment: Moment) -> bool {
        let mut state = self.lock();
        if state.dead {
            return false;
        }
        if state.strikes(Fault::Restart(effect, moment)) {
            state.counted.restarts += 1;
            self.curfew.notify_one();
        }
        if state.strikes(Fault::Kill(effect, moment)) {
            return true;
        }
        let odds = state.odds.killed;
        odds > 0 && state.counted.kills < KILLS_MAX && state.random.u8(0..100) < odds
    }

    /// How many times slower than usual the next effect is.
    pub(crate) fn stretch(&self) -> u32 {
        let mut state = self.lock();
        let (usual, rare) = state.odds.stretch;
        if rare > usual && state.random.u8(0..100) < 5 {
            rare
        } else {
            usual
        }
    }

    /// What of a look gets through, and how long that takes.
    pub(crate) fn blur(&self, seen: Vec<Observation>) -> (Duration, Vec<Observation>) {
        let mut state = self.lock();
        let State {
            odds,
            random,
            earlier,
            ..
        } = &mut *state;
        if odds.look_fails == 0 {
            return (Duration::ZERO, seen);
        }
        let mut shown = seen.clone();
        match random.u8(0..100) {
            roll if roll < odds.look_fails => shown.clear(),
            roll if roll < 2 * odds.look_fails => shown = std::mem::take(earlier),
            _ => shown.retain(|_| random.u8(0..100) >= odds.look_fails),
        }
        *earlier = seen;
        random.shuffle(&mut shown);
        let late = random.u8(0..100) < odds.look_fails;
        let delay = if late { random.u64(1..25) } else { 0 };
        (Duration::from_secs(delay), shown)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
