//! `slipway backup create`: the whole installation in one file, while everybody goes on working.

use crate::context::Context;
use crate::error::Error;
use api::backup::Ending;
use api::client::Backup;
use api::{Exit, Time};
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::signal::unix::{SignalKind, signal};

/// Write everything that the server knows to a file, while it goes on working
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway backup create
  slipway backup create --to /var/backups/slipway.backup
  slipway backup create --to - | ssh elsewhere 'cat > slipway.backup'

Secrets stay sealed in it: keep the key file (slipway.key) too, and apart from it. A file that is
there already is replaced when the new one is whole, and not before.")]
pub struct Arguments {
    /// The file; `-` writes to standard output [default: slipway-TIME.backup in this directory]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// Prints when the bar has no length yet.
const WAITING: &str = "{spinner} the server writes the backup  {elapsed_precise}";

/// Prints while bytes come.
const COMING: &str = "{bar:30} {bytes}/{total_bytes}  {bytes_per_sec}";

/// How often the clock beside the bar moves.
const TICK: Duration = Duration::from_millis(250);

/// What was written.
#[derive(Debug, Serialize)]
struct Written {
    file: String,
    bytes: u64,
    rows: u64,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let to = arguments.to.unwrap_or_else(|| named(Time::now()));
    let bar = bar(context.out().live());
    let taken = tokio::select! {
        biased;
        () = interrupted() => None,
        // Dropped when it is interrupted, and the unfinished file with it.
        taken = take(&to, &bar, context) => Some(taken),
    };
    bar.finish_and_clear();
    let Some(taken) = taken else {
        context.out().say("interrupted; no backup was written");
        return Ok(Exit::Interrupted);
    };
    let written = taken?;
    if is_standard(&to) {
        return Ok(Exit::Done);
    }
    context.show(&written, |_| {
        format!(
            "{}: {} rows, {}\n",
            written.file,
            written.rows,
            HumanBytes(written.bytes)
        )
    })?;
    Ok(Exit::Done)
}

/// A name that no other backup has, and that sorts by time.
fn named(now: Time) -> PathBuf {
    let now = now.to_string();
    let seconds = now.split(['.', 'Z']).next().unwrap_or_default();
    format!("slipway-{}Z.backup", seconds.replace(':', "-")).into()
}

fn is_standard(to: &Path) -> bool {
    to == Path::new("-")
}

/// Reads the backup to its end.
async fn take(to: &Path, bar: &ProgressBar, context: &mut Context<'_>) -> Result<Written, Error> {
    let client = context.client()?;
    // First of all: a file that cannot be written is known before the server has worked.
    let mut target = Target::at(to)?;
    let mut backup: Backup = client.backup().await?;
    if let Some(bytes) = backup.bytes() {
        bar.set_style(style(COMING));
        bar.set_length(bytes);
    }
    let mut ending = Ending::default();
    let mut bytes = 0;
    while let Some(piece) = backup.next().await? {
        target.write(&piece, context)?;
        ending.see(&piece);
        bytes += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        bar.set_position(bytes);
    }
    let rows = ending.rows().ok_or(Error::CutOff)?;
    target.keep()?;
    Ok(Written {
        file: to.display().to_string(),
        bytes,
        rows,
    })
}

/// Where the bytes go.
enum Target {
    /// To standard output.
    Standard,
    /// Beside the file, until all of it is there.
    Beside(NamedTempFile, PathBuf),
}

impl Target {
    fn at(to: &Path) -> Result<Self, Error> {
        if is_standard(to) {
            return Ok(Self::Standard);
        }
        let directory = match to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        };
        let beside = tempfile::Builder::new()
            .prefix(".slipway-")
            .suffix(".part")
            .tempfile_in(directory);
        let beside = beside.map_err(|cause| unwritable(to, cause))?;
        if to.is_dir() {
            return Err(Error::Directory {
                file: to.to_owned(),
            });
        }
        Ok(Self::Beside(beside, to.to_owned()))
    }

    fn write(&mut self, piece: &[u8], context: &mut Context<'_>) -> Result<(), Error> {
        match self {
            Self::Standard => Ok(context.out().bytes(piece)?),
            Self::Beside(file, to) => file.write_all(piece).map_err(|cause| unwritable(to, cause)),
        }
    }

    /// Gives the file its name, now that it is whole.
    fn keep(self) -> Result<(), Error> {
        let Self::Beside(file, to) = self else {
            return Ok(());
        };
        let kept = file
            .as_file()
            .sync_all()
            .and_then(|()| file.persist(&to).map(drop).map_err(|unkept| unkept.error));
        kept.map_err(|cause| unwritable(&to, cause))
    }
}

fn unwritable(to: &Path, cause: std::io::Error) -> Error {
    Error::Unwritable {
        file: to.to_owned(),
        cause,
    }
}

/// Completes when somebody asks us to end.
pub(crate) async fn interrupted() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => drop(signals.recv().await),
            // Without a handler for the signal the process ends as it always did.
            Err(_) => std::future::pending().await,
        }
    };
    let pressed = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = terminated => {}
        () = pressed => {}
    }
}

/// A bar on a terminal; nothing elsewhere.
fn bar(live: bool) -> ProgressBar {
    let bar = ProgressBar::new(0).with_style(style(WAITING));
    if live {
        bar.enable_steady_tick(TICK);
    } else {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// The style of a template; a test reads all of them.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::global::Global;
    use crate::out::Out;
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;

    /// A server that answers one request with these bytes and hangs up.
    fn serve(answer: Vec<u8>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while request.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            stream.write_all(&answer).unwrap();
        });
        server
    }

    fn answer(length: usize, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
    }

    fn whole() -> String {
        let digest = "0".repeat(64);
        format!("{{\"slipway\":\"backup\"}}\n{{\"rows\":3,\"sha256\":\"{digest}\"}}\n")
    }

    /// Runs the verb; answers how it ended and what there is in the directory then.
    async fn create(server: &str, directory: &Path) -> (Result<Exit, String>, Vec<String>) {
        let global = Global {
            server: server.to_owned(),
            token_file: None,
            data_dir: Some(directory.to_owned()),
            project: None,
            outputs: Vec::new(),
        };
        let mut out = Out::to(Box::new(std::io::sink()), Box::new(std::io::sink()));
        let mut context = Context::new(&global, &mut out);
        let to = Some(directory.join("a.backup"));
        let ended = run(Arguments { to }, &mut context).await;
        let ended = ended.map_err(|error| error.code().to_owned());
        let names = std::fs::read_dir(directory).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        (ended, names.collect())
    }

    #[tokio::test]
    async fn a_whole_backup_gets_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let body = whole();
        let server = serve(answer(body.len(), &body));
        let (ended, names) = create(&server, directory.path()).await;
        assert_eq!(
            (ended, names),
            (Ok(Exit::Done), vec!["a.backup".to_owned()])
        );
        let written = std::fs::read_to_string(directory.path().join("a.backup")).unwrap();
        assert_eq!(written, body);
    }

    #[tokio::test]
    async fn of_a_backup_that_breaks_off_nothing_is_left_and_the_old_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join("a.backup");
        std::fs::write(&old, "old").unwrap();
        let body = whole();
        for (bytes, code) in [
            (answer(body.len() + 9, &body), "CLI-003"),
            (answer(10, &body[..10]), "BACKUP-005"),
        ] {
            let (ended, names) = create(&serve(bytes), directory.path()).await;
            assert_eq!(ended, Err(code.to_owned()));
            assert_eq!(names, ["a.backup"]);
            assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
        }
    }

    #[test]
    fn names_sort_by_time() {
        let time = |text: &str| text.parse::<Time>().unwrap();
        let name = named(time("2026-03-01T12:30:00.123Z"));
        assert_eq!(name, Path::new("slipway-2026-03-01T12-30-00Z.backup"));
        assert_eq!(named(time("2026-03-01T12:30:00Z")), name);
    }

    #[test]
    fn the_templates_can_be_read() {
        for template in [WAITING, COMING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
