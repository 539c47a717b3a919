//! A directory of scripts, a place where they are run, and somebody who listens.

use crate::testing::{Known, context, subject};
use driver::Context;
use driver::deploy::{Acted, Deployer as _, Following, Looked, Output, Stream, Subject, Work};
use model::environment::link::Link;
use model::environment::status::{Deed, Look};
use model::id::{ActionId, Origin};
use model::time::Timestamp;
use scripts::{Scripts, Surroundings};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The runner that is built with the tests.
const RUNNER: &str = env!("CARGO_BIN_EXE_run-script");

/// How long scripts of tests have to end when they are asked to.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// No test waits for longer.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct World {
    pub(crate) home: tempfile::TempDir,
    pub(crate) scripts: Scripts,
    pub(crate) subject: Subject,
}

impl World {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("scripts")).unwrap();
        let mut subject = subject();
        let scripts = home.path().join("scripts");
        subject.settings.scripts = scripts.into_os_string().into_string().unwrap();
        Self {
            scripts: open(home.path()),
            home,
            subject,
        }
    }

    /// Another server at the same place, as after a restart.
    pub(crate) fn again(&self) -> Scripts {
        open(self.home.path())
    }

    /// Writes a script of POSIX shell. `$HERE` is a directory to leave traces in.
    pub(crate) fn script(&self, name: &str, text: &str) -> &Self {
        let here = self.home.path().display();
        let file = self.home.path().join("scripts").join(name);
        std::fs::write(&file, format!("#!/bin/sh\nHERE='{here}'\n{text}\n")).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn work(&self, deed: Deed, cx: &Context) -> Work {
        work(self.subject.clone(), deed, cx)
    }

    pub(crate) fn runs(&self, work: &Work) -> PathBuf {
        self.path("runs").join(work.action.to_string())
    }

    /// Looks at it.
    pub(crate) async fn look(&self, look: Look) -> Result<Looked, driver::Error> {
        let cx = nobody_secret();
        within(self.scripts.look(&cx, &self.subject, look)).await
    }

    /// Does it, and answers what became of it and what was printed.
    pub(crate) async fn act(&self, cx: &Context, work: &Work) -> (Acted, Heard) {
        let heard = Heard::default();
        let following = following(&heard);
        let acted = within(self.scripts.act(cx, work, &following)).await;
        (acted, heard)
    }
}

pub(crate) fn open(home: &Path) -> Scripts {
    let surroundings = Surroundings::new(std::env::vars_os());
    let scripts = Scripts::open(&home.join("runs"), vec![RUNNER.into()], surroundings);
    scripts.unwrap().with_grace(GRACE)
}

pub(crate) fn work(subject: Subject, deed: Deed, cx: &Context) -> Work {
    let origin = Origin {
        parent: "orange-button",
        name: deed.as_str(),
        ordinal: 1,
        incarnation: 0,
    };
    Work {
        action: ActionId::derive(origin),
        deed,
        subject,
        begun_at: None,
        deadline: cx.now().plus(PATIENCE),
    }
}

/// A context that ends when it is told to.
pub(crate) fn ending(cancel: CancellationToken) -> Context {
    struct Silent;
    impl driver::Log for Silent {
        fn line(&self, _: Timestamp, _: &str) {}
    }
    let secrets = Arc::new(driver::NoSecrets);
    Context::new(driver::Clock::System, Arc::new(Silent), secrets, cancel, 1)
}

pub(crate) fn nobody_secret() -> Context {
    context(Known(Vec::new()))
}

/// What was heard, and how much of it before.
#[derive(Default)]
pub(crate) struct Heard {
    lines: Mutex<Vec<(Stream, String)>>,
    links: Mutex<Vec<Link>>,
    known: [u64; 2],
}

impl Heard {
    /// Somebody who has heard so many lines of either stream before.
    pub(crate) fn after(out: u64, err: u64) -> Self {
        let known = [out, err];
        Self {
            known,
            ..Self::default()
        }
    }

    /// Where the environment is reached, each a name and an address.
    pub(crate) fn links(&self) -> Vec<String> {
        let links = self.links.lock().unwrap();
        let links = links.iter();
        links
            .map(|link| format!("{} {}", link.name, link.url))
            .collect()
    }

    pub(crate) fn lines(&self, of: Stream) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        let of = lines.iter().filter(|(stream, _)| *stream == of);
        of.map(|(_, line)| line.clone()).collect()
    }
}

impl Output for Heard {
    fn known(&self, stream: Stream) -> u64 {
        match stream {
            Stream::Out => self.known[0],
            Stream::Err => self.known[1],
        }
    }

    fn line(&self, stream: Stream, text: &str) {
        self.lines.lock().unwrap().push((stream, text.to_owned()));
    }

    fn links(&self, links: &[Link]) {
        *self.links.lock().unwrap() = links.to_vec();
    }
}

pub(crate) fn following(output: &dyn Output) -> Following<'_> {
    let may_begin = CancellationToken::new();
    may_begin.cancel();
    Following {
        output,
        end: CancellationToken::new(),
        may_begin,
    }
}

/// The answer, unless it takes longer than any test should.
pub(crate) async fn within<T>(answer: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, answer).await.unwrap()
}

/// Waits until something is so.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    within(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// Whether a process lives, as its number in a file says.
pub(crate) fn lives(number: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim()));
    stat.is_ok_and(|stat| {
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
        !matches!(state, Some(Some('Z' | 'X')))
    })
}
