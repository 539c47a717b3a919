//! A world in which scripts run on without whoever began them, as under a real runner.
//!
//! Every call of the engine passes numbered points; at one of them the engine may be killed.

use driver::deploy::{
    Acted, Because, Deployer, Following, Judged, Looked, Of, Stream, Subject, Work,
};
use driver::{Clock, Context, Error};
use model::environment::config::{Defaults, Given};
use model::environment::link::Link;
use model::environment::schema::KnownKey;
use model::environment::settings::{Deploy, Settings};
use model::environment::status::{Deed, Failure, Look, Seen};
use model::fault::{Code, Fault};
use model::id::ActionId;
use model::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Lines that every script prints, one each second, to either stream in turn.
pub(crate) const LINES: u64 = 4;

/// A script that was begun.
#[derive(Debug, Clone)]
struct Run {
    place: &'static str,
    environment: String,
    deed: Deed,
    tag: String,
    /// Whether it is brought back as it was, whatever is told.
    by_helm: bool,
    begun: Timestamp,
    /// When it ends by itself.
    ends: Timestamp,
    exit: i32,
    /// How it ended, and whether its effect has come.
    ended: Option<Acted>,
}

#[derive(Default)]
pub(crate) struct State {
    runs: BTreeMap<ActionId, Run>,
    /// What runs of each environment.
    pub(crate) up: BTreeMap<String, String>,
    /// What ran of each that was archived.
    rested: BTreeMap<String, String>,
    /// Which directories were initialised, and where.
    pub(crate) inits: Vec<String>,
    /// What was begun, in order.
    pub(crate) begun: Vec<String>,
    /// What must never happen, and did.
    pub(crate) wrong: Vec<String>,
    /// Scripts that take this long, by what they do.
    pub(crate) takes: BTreeMap<Deed, Duration>,
    /// How often somebody began to initialise one.
    pub(crate) inits_begun: usize,
    /// How long it takes to initialise a directory, where that is longer than usual.
    pub(crate) init_takes: Option<Duration>,
    /// Scripts that exit otherwise than well.
    pub(crate) exits: BTreeMap<Deed, i32>,
    /// Environments whose looks never end.
    pub(crate) hanging: BTreeSet<String>,
    /// Whether nobody can look, because this machine has no room.
    pub(crate) no_room: bool,
    /// Whether nobody can tell the defaults.
    pub(crate) speechless: bool,
    /// Directories of scripts that never tell them.
    pub(crate) mute: BTreeSet<String>,
    /// The tag by default, where that is another than at first.
    pub(crate) tag: Option<String>,
    /// A tag that makes no sense.
    pub(crate) refused: Option<String>,
    /// A tag that the setting cannot have.
    pub(crate) unfit: Option<String>,
    /// How often each environment was looked at.
    pub(crate) looks: BTreeMap<String, u32>,
    points: u32,
    kill_at: Option<u32>,
    kill: CancellationToken,
    forgotten: BTreeSet<ActionId>,
}

/// The world; a clone is another view of the same.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    state: Arc<Mutex<State>>,
}

impl World {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: Arc::default(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Has whoever works next be killed at this point; the answer completes then.
    pub(crate) fn kill_at(&self, point: Option<u32>) -> CancellationToken {
        let mut state = self.state();
        (state.points, state.kill_at) = (0, point);
        state.kill = CancellationToken::new();
        state.kill.clone()
    }

    /// A point at which the engine may be killed.
    async fn point(&self) {
        let killed = {
            let mut state = self.state();
            state.points += 1;
            let killed = state.kill_at == Some(state.points);
            if killed {
                state.kill.cancel();
            }
            killed
        };
        if killed {
            std::future::pending::<()>().await;
        }
    }

    /// Has everything end that runs, and nobody know how: done halfway, or all of it.
    pub(crate) fn power_cut(&self, done: bool) {
        let now = self.clock.now();
        let mut state = self.state();
        let runs: Vec<_> = state.runs.keys().copied().collect();
        for id in runs {
            let run = state.runs.get_mut(&id).unwrap();
            if run.ended.is_none() {
                run.ended = Some(Acted::Lost);
                run.ends = now;
                let run = run.clone();
                if done {
                    affect(&mut state, &run);
                }
            }
        }
    }

    /// Says how long scripts of a kind take.
    pub(crate) fn takes(&self, deed: Deed, span: Duration) {
        self.state().takes.insert(deed, span);
    }

    /// Actions of which something is left at a place.
    pub(crate) fn left(&self, place: &str) -> Vec<ActionId> {
        let state = self.state();
        let here = state.runs.iter().filter(|(_, run)| run.place == place);
        let left = here.filter(|(id, _)| !state.forgotten.contains(*id));
        left.map(|(id, _)| *id).collect()
    }

    /// Where an action was begun.
    pub(crate) fn begun_at(&self, action: ActionId) -> Option<&'static str> {
        self.state().runs.get(&action).map(|run| run.place)
    }

    /// Has come about what must have by now.
    fn pass(&self, state: &mut State) {
        let now = self.clock.now();
        let due: Vec<_> = state
            .runs
            .iter()
            .filter(|(_, run)| run.ended.is_none() && run.ends <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let run = state.runs.get_mut(&id).unwrap();
            run.ended = Some(Acted::Exited { status: run.exit });
            let run = run.clone();
            if run.exit == 0 {
                affect(state, &run);
            }
        }
    }
}

fn affect(state: &mut State, run: &Run) {
    match run.deed {
        Deed::Create | Deed::Update | Deed::Restore => {
            let rested = state.rested.remove(&run.environment);
            let back = rested.filter(|_| run.by_helm && run.deed == Deed::Restore);
            let tag = back.unwrap_or_else(|| run.tag.clone());
            state.up.insert(run.environment.clone(), tag);
        }
        Deed::Archive | Deed::Cleanup => {
            let rests = state.up.remove(&run.environment);
            let rests = rests.map(|tag| (run.environment.clone(), tag));
            state.rested.extend(rests);
        }
        Deed::Delete => state.wrong.push("delete has no script".to_owned()),
    }
}

fn tag(subject: &Subject) -> String {
    let tag = subject
        .application
        .iter()
        .find(|setting| setting.key.as_str() == "image.tag");
    match tag.map(|setting| &setting.value) {
        Some(Given::Plain(tag)) => tag.as_str().to_owned(),
        Some(Given::Secret) | None => "none".to_owned(),
    }
}

/// Somebody who deploys, at one place.
pub(crate) struct Hands {
    pub(crate) world: World,
    pub(crate) place: &'static str,
}

impl Hands {
    /// Scripts that are initialised by themselves.
    fn directory(&self, settings: &Settings) -> String {
        format!("{} at {}", settings.scripts, self.place)
    }

    /// Notes that something was asked before its time.
    fn must_be_initialised(&self, settings: &Settings, what: &str) {
        let directory = self.directory(settings);
        let mut state = self.world.state();
        // Helm has nothing like it.
        if settings.deploy == Deploy::Scripts && !state.inits.contains(&directory) {
            state.wrong.push(format!("{what} came before init"));
        }
    }

    /// Begins a script, or finds that it was begun; none where nobody here can.
    fn begin(&self, work: &Work) -> Option<Acted> {
        let now = self.world.clock.now();
        let mut state = self.world.state();
        self.world.pass(&mut state);
        if let Some(run) = state.runs.get(&work.action) {
            if run.place == self.place {
                return None;
            }
            return Some(if now >= work.deadline {
                Acted::Lost
            } else {
                Acted::Left
            });
        }
        if work
            .begun_at
            .as_deref()
            .is_some_and(|place| place != self.place)
        {
            return Some(if now >= work.deadline {
                Acted::Lost
            } else {
                Acted::Left
            });
        }
        let environment = work.subject.name.to_string();
        let other = state
            .runs
            .values()
            .find(|run| run.environment == environment && run.ended.is_none())
            .map(|other| format!("{} of {environment} during {}", work.deed, other.deed));
        state.wrong.extend(other);
        if state.forgotten.contains(&work.action) {
            state
                .wrong
                .push(format!("{} was begun after it was forgotten", work.action));
        }
        let by_helm = matches!(work.subject.settings.deploy, Deploy::Helm(_));
        if !by_helm
            && !state
                .inits
                .contains(&self.directory(&work.subject.settings))
        {
            state
                .wrong
                .push(format!("{} was begun before init", work.action));
        }
        state.begun.push(format!("{} {environment}", work.deed));
        let takes = state
            .takes
            .get(&work.deed)
            .copied()
            .unwrap_or(Duration::from_secs(6));
        let run = Run {
            place: self.place,
            environment,
            deed: work.deed,
            tag: tag(&work.subject),
            by_helm,
            begun: now,
            ends: now.plus(takes),
            exit: state.exits.get(&work.deed).copied().unwrap_or(0),
            ended: None,
        };
        state.runs.insert(work.action, run);
        None
    }

    /// Prints what the script has printed by now; answers how it ended, if it has.
    fn read(&self, work: &Work, following: &Following<'_>) -> Option<Acted> {
        let mut state = self.world.state();
        self.world.pass(&mut state);
        let run = state.runs.get(&work.action)?;
        let url = format!("https://{}.example.org", run.environment);
        let name = "app".to_owned();
        following.output.links(&[Link { name, url }]);
        let until = if run.ended.is_some() {
            run.ends
        } else {
            self.world.clock.now()
        };
        let printed = until.since(run.begun).as_secs().min(LINES);
        for line in 0..printed {
            let stream = if line % 2 == 0 {
                Stream::Out
            } else {
                Stream::Err
            };
            if following.output.known(stream) <= line / 2 {
                following.output.line(stream, &format!("line {line}"));
            }
        }
        run.ended.clone()
    }

    fn end(&self, work: &Work, because: Because) -> Acted {
        let now = self.world.clock.now();
        let acted = Acted::Killed { because };
        if let Some(run) = self.world.state().runs.get_mut(&work.action) {
            run.ended = Some(acted.clone());
            run.ends = now;
        }
        acted
    }
}

impl Deployer for Hands {
    fn place(&self) -> &str {
        self.place
    }

    async fn init(&self, _: &Context, settings: &Settings) -> Result<(), Error> {
        self.world.state().inits_begun += 1;
        let takes = self.world.state().init_takes;
        tokio::time::sleep(takes.unwrap_or(Duration::from_secs(3))).await;
        let ran = self.directory(settings);
        self.world.state().inits.push(ran);
        if settings.scripts.contains("broken") {
            return Err(Error {
                attempted: "script init ended with status 3".to_owned(),
                hint: "mend it".to_owned(),
            });
        }
        Ok(())
    }

    async fn act(&self, cx: &Context, work: &Work, following: &Following<'_>) -> Acted {
        self.world.point().await;
        if self.world.begun_at(work.action).is_none() {
            following.may_begin.cancelled().await;
        }
        if let Some(acted) = self.begin(work) {
            return acted;
        }
        loop {
            self.world.point().await;
            if let Some(acted) = self.read(work, following) {
                return acted;
            }
            tokio::select! {
                biased;
                () = cx.cancelled() => return Acted::Left,
                () = following.end.cancelled() => return self.end(work, Because::Cancelled),
                () = tokio::time::sleep(work.deadline.since(cx.now())) => {
                    return self.end(work, Because::TimedOut);
                }
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
    }

    async fn left(&self) -> Vec<ActionId> {
        self.world.left(self.place)
    }

    async fn forget(&self, action: ActionId) {
        self.world.point().await;
        self.world.state().forgotten.insert(action);
    }

    async fn look(&self, _: &Context, subject: &Subject, look: Look) -> Result<Looked, Error> {
        self.world.point().await;
        let name = subject.name.to_string();
        self.must_be_initialised(&subject.settings, &format!("a look at {name}"));
        let hangs = {
            let mut state = self.world.state();
            *state.looks.entry(name.clone()).or_default() += 1;
            state.hanging.contains(&name)
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        if self.world.state().no_room {
            return Err(Error {
                attempted: "could not start the script: no memory".to_owned(),
                hint: "see that there is room".to_owned(),
            });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        self.world.point().await;
        let mut state = self.world.state();
        self.world.pass(&mut state);
        let found = state.up.get(&name);
        let seen = match (look, found) {
            (Look::Up, None) | (Look::Down, Some(_)) => Seen::Bad(Failure::Generic),
            (Look::Up, Some(found)) if *found != tag(subject) => Seen::Bad(Failure::TagMismatch),
            (Look::Up, Some(_)) | (Look::Down, None) => Seen::Good,
        };
        let said = format!("found {}", found.map_or("nothing", String::as_str));
        Ok(Looked { seen, said })
    }

    async fn defaults(
        &self,
        _: &Context,
        settings: &Settings,
        of: Of<'_>,
    ) -> Result<Defaults, Error> {
        self.must_be_initialised(settings, "a question for defaults");
        if self.world.state().mute.contains(&settings.scripts) {
            std::future::pending::<()>().await;
        }
        if self.world.state().speechless {
            return Err(Error {
                attempted: "the script of the defaults exited with status 9".to_owned(),
                hint: "mend it".to_owned(),
            });
        }
        let tag = self.world.state().tag.clone();
        let told = match of {
            Of::Deployment => ("chart", "shop"),
            Of::Application(_) => ("image.tag", tag.as_deref().unwrap_or("v0")),
        };
        let told = (told.0.parse().unwrap(), told.1.parse().unwrap());
        Ok(Defaults::new([told]))
    }

    async fn keys(&self, _: &Context, _: &Settings, _: Of<'_>) -> Result<Vec<KnownKey>, Error> {
        Ok(Vec::new())
    }

    async fn lacking(&self, _: &Settings) -> Vec<driver::Error> {
        Vec::new()
    }

    async fn judge(&self, _: &Context, subject: &Subject) -> Result<Judged, Error> {
        self.world.point().await;
        self.must_be_initialised(&subject.settings, "a question whether it makes sense");
        let refused = self.world.state().refused.clone();
        if refused == Some(tag(subject)) {
            return Ok(Judged::Bad("no such image\n".to_owned()));
        }
        let unfit = self.world.state().unfit.clone();
        if unfit == Some(tag(subject)) {
            return Ok(Judged::Wrong(vec![Fault {
                path: "application.image.tag".to_owned(),
                code: Code::Format,
                message: "found another, allowed: a version".to_owned(),
            }]));
        }
        Ok(Judged::Good)
    }
}
