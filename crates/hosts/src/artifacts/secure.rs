//! Asking web servers that speak TLS: this machine's curl does, with its certificates and proxies.

use super::trouble::Trouble;
use super::web::Patience;
use crate::error::{Error, Kind};
use crate::tool;
use reqwest::Url;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdout};

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// How much of what it complains of is read.
const SAID: u64 = 4096;

/// What curl ends with when the server refused.
const REFUSED: i32 = 22;

/// An answer on its way.
pub(super) struct Secure {
    child: Child,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl Secure {
    /// Asks for a file, from its beginning.
    pub(super) fn get(url: &Url, patience: Patience) -> Result<Self, Trouble> {
        let seconds = |time: std::time::Duration| time.as_secs().max(1).to_string();
        let mut command = tool::command("curl");
        command.args(["--fail", "--silent", "--show-error", "--location"]);
        command.args([
            "--proto",
            "=https",
            "--max-redirs",
            "10",
            "--speed-limit",
            "1",
        ]);
        command.args(["--connect-timeout", &seconds(patience.connect)]);
        command.args(["--speed-time", &seconds(patience.silence)]);
        command.args(["--max-time", &seconds(patience.whole)]);
        command.args(["--", url.as_str()]);
        let missing = |why: String| {
            let what = format!("could not ask {url} on this machine: {why}");
            Trouble::Ours(Error::new(Kind::MissingTool, what))
        };
        let child = command.spawn();
        let mut child = child.map_err(|error| missing(tool::unstarted("curl", &error)))?;
        match (child.stdout.take(), child.stderr.take()) {
            (Some(stdout), Some(stderr)) => Ok(Self {
                child,
                stdout,
                stderr,
            }),
            (None, _) | (_, None) => Err(missing("curl says nothing".to_owned())),
        }
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        let away = |error: std::io::Error| Trouble::Away(format!("curl broke down: {error}"));
        let mut piece = vec![0; PIECE];
        let read = self.stdout.read(&mut piece).await.map_err(away)?;
        if read > 0 {
            piece.truncate(read);
            return Ok(Some(piece));
        }
        let mut said = String::new();
        let mut stderr = (&mut self.stderr).take(SAID);
        stderr.read_to_string(&mut said).await.map_err(away)?;
        let ended = self.child.wait().await.map_err(away)?;
        if ended.success() {
            return Ok(None);
        }
        let said = said.trim().to_owned();
        // What asking again cannot change is as good as not there.
        let absent = ["403", "404", "410"]
            .iter()
            .any(|code| said.ends_with(code));
        Err(if ended.code() == Some(REFUSED) && absent {
            Trouble::Absent(said)
        } else {
            Trouble::Away(said)
        })
    }
}
