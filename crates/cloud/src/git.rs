//! Asks a repository where its tags and branches lead, with the `git` program.
//!
//! Whatever git finds on this machine is not used: no configuration, no helper that knows
//! passwords, no question to anybody. What opens a repository is passed in the environment, never
//! in an argument, which others could read.

use crate::error::{Error, Kind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use driver::Context;
use model::secret::Secret;
use model::templates::{Commit, Reference};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use zeroize::Zeroizing;

/// The longest that a repository may take to answer. A look at a cluster has half a minute for
/// everything.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// What opens a repository.
pub(crate) struct Pass {
    /// In whose name.
    pub(crate) username: String,
    /// The token.
    pub(crate) token: Secret,
}

impl Pass {
    /// As a header of HTTP.
    fn header(&self) -> Zeroizing<String> {
        let token = Zeroizing::new(String::from_utf8_lossy(self.token.expose()).into_owned());
        let pair = Zeroizing::new(format!("{}:{}", self.username, token.trim()));
        let coded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
        Zeroizing::new(format!("Authorization: Basic {}", *coded))
    }
}

/// The commit to which a tag or a branch leads.
///
/// A tag that has a message of its own leads to what it is about; a tag comes before a branch of
/// the same name.
pub(crate) async fn lead(
    cx: &Context,
    base: &str,
    reference: &Reference,
    pass: Option<&Pass>,
) -> Result<Commit, Error> {
    let url = format!("{base}{}", reference.repository);
    let name = &reference.name;
    let tag = format!("refs/tags/{name}");
    let peeled = format!("{tag}^{{}}");
    let branch = format!("refs/heads/{name}");
    let wanted = [&peeled, &tag, &branch].map(String::as_str);
    let said = asked(cx, reference, git(&url, wanted, pass)).await;
    let said = said.map_err(|error| refused(error, pass))?;
    let lines = || said.lines().filter_map(|line| line.split_once('\t'));
    let led = |wanted: &str| {
        let mut lines = lines().filter(|(_, found)| *found == wanted);
        lines.find_map(|(commit, _)| commit.parse().ok())
    };
    let found = led(&peeled).or_else(|| led(&tag)).or_else(|| led(&branch));
    found.ok_or_else(|| {
        let repository = &reference.repository;
        let what = format!("{repository} has neither a tag nor a branch {name}");
        Error::new(Kind::NoReference, what)
    })
}

/// The program with all that it needs, and nothing else.
fn git(url: &str, wanted: [&str; 3], pass: Option<&Pass>) -> Command {
    let header = pass.map(Pass::header);
    let mut settings = vec![(
        "credential.helper".to_owned(),
        Zeroizing::new(String::new()),
    )];
    // Only for this repository: who is led elsewhere brings nothing along.
    settings.extend(header.map(|header| (format!("http.{url}.extraHeader"), header)));
    let mut command = Command::new("git");
    command
        .args(["ls-remote", "--quiet", "--", url])
        .args(wanted)
        .current_dir("/")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("GIT_CONFIG_COUNT", settings.len().to_string())
        .env_remove("GIT_DIR")
        .env_remove("GIT_TRACE_CURL")
        .env_remove("GIT_CURL_VERBOSE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for (at, (key, value)) in settings.iter().enumerate() {
        command
            .env(format!("GIT_CONFIG_KEY_{at}"), key)
            .env(format!("GIT_CONFIG_VALUE_{at}"), value.as_str());
    }
    command
}

/// Runs it within its time, or until nobody waits any more; answers what it said.
async fn asked(cx: &Context, reference: &Reference, mut command: Command) -> Result<String, Error> {
    let repository = &reference.repository;
    let ended = tokio::select! {
        biased;
        () = cx.cancelled() => Err(format!("could not ask {repository}: it was called off")),
        () = tokio::time::sleep(ANSWER_MAX) => {
            let seconds = ANSWER_MAX.as_secs();
            Err(format!("could not ask {repository}: no answer for {seconds} s"))
        }
        ended = command.output() => Ok(ended),
    };
    let ended = ended.map_err(|what| Error::new(Kind::Unreachable, what))?;
    let output = ended.map_err(|error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            Kind::NoGit
        } else {
            Kind::Unreachable
        };
        Error::new(kind, format!("could not run git to ask {repository}"))
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(meant(repository, &String::from_utf8_lossy(&output.stderr)))
}

/// What git says, and what it means.
const SAID: [(&str, Kind); 12] = [
    ("Authentication failed", Kind::Refused),
    ("returned error: 401", Kind::Refused),
    ("returned error: 403", Kind::Refused),
    ("invalid credentials", Kind::Refused),
    // Who hides what is not open to everybody asks for a name where nothing is.
    ("could not read Username", Kind::NotFound),
    ("could not read Password", Kind::Refused),
    ("returned error: 404", Kind::NotFound),
    ("repository not found", Kind::NotFound),
    ("does not appear to be a git repository", Kind::NotFound),
    ("not found", Kind::NotFound),
    ("does not exist", Kind::NotFound),
    ("returned error: 410", Kind::NotFound),
];

/// Who came with a pass and is asked for a name was refused.
fn refused(error: Error, pass: Option<&Pass>) -> Error {
    let asks = error.what.contains("could not read Username");
    let kind = if pass.is_some() && asks {
        Kind::Refused
    } else {
        error.kind
    };
    Error { kind, ..error }
}

/// Sorts what git said of a repository that did not answer as it should.
fn meant(repository: &str, said: &str) -> Error {
    let lower = said.to_ascii_lowercase();
    let known = SAID
        .iter()
        .find(|(words, _)| lower.contains(&words.to_ascii_lowercase()));
    let kind = known.map_or(Kind::Unreachable, |(_, kind)| *kind);
    // The last line that is about the failure says most.
    let line = said.lines().rev().find(|line| line.starts_with("fatal: "));
    let line = line.or_else(|| said.lines().last()).unwrap_or("git ended");
    let line = line.trim_start_matches("fatal: ").trim_end_matches('.');
    Error::new(kind, format!("could not ask {repository}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As git said it, of hosts that people use.
    #[test]
    fn what_git_says_is_sorted() {
        let sorted = |said: &str| meant("example.org/o/m", said).kind;
        for (said, kind) in [
            (
                "fatal: could not read Username for 'https://github.com': terminal prompts disabled\n",
                Kind::NotFound,
            ),
            (
                "remote: Repository not found.\nfatal: repository 'https://github.com/o/m/' not found\n",
                Kind::NotFound,
            ),
            (
                "remote: Invalid username or token. Password authentication is not supported for Git operations.\nfatal: Authentication failed for 'https://github.com/o/m/'\n",
                Kind::Refused,
            ),
            (
                "fatal: unable to access 'https://example.org/o/m/': The requested URL returned error: 403\n",
                Kind::Refused,
            ),
            (
                "fatal: unable to access 'https://example.invalid/': Could not resolve host: example.invalid\n",
                Kind::Unreachable,
            ),
            (
                "fatal: unable to access 'https://example.org/': The requested URL returned error: 502\n",
                Kind::Unreachable,
            ),
            (
                "fatal: unable to access 'https://example.org/': Failed to connect to example.org port 443 after 3 ms: Couldn't connect to server\n",
                Kind::Unreachable,
            ),
        ] {
            assert_eq!(sorted(said), kind, "{said}");
        }
    }
}
