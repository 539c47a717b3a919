//! The key command: a program that wraps and unwraps data keys with a key service.
//!
//! It is called as `PROGRAM ARGUMENTS… wrap` or `… unwrap`. The bytes come as one line of
//! base64 on its standard input; it answers with base64 on its standard output and ends
//! with status 0. Nothing secret is in its arguments or its environment, which is ours.
//! Its time and its output are bounded, and whatever it started is ended with it.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use model::secret::Secret;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use zeroize::Zeroize as _;

use crate::{Error, text};

/// How much of an answer is read. Key services wrap a key in a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// How much of the end of its standard error is kept, to find the last line in.
const COMPLAINT_BYTES: usize = 4 * 1024;

/// How long a complaint may be in a message.
const COMPLAINT_CHARS_MAX: usize = 300;

/// A line that repeats so much of a secret text is not shown. Long enough to never occur by
/// chance: each character has six bits.
const TELLING_BYTES: usize = 12;

/// What the program is asked to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Turn a data key into something that may be stored.
    Wrap,
    /// Turn it back.
    Unwrap,
}

impl Verb {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Wrap => "wrap",
            Self::Unwrap => "unwrap",
        }
    }
}

/// A program that wraps and unwraps.
pub struct Hook {
    program: String,
    arguments: Vec<String>,
    limit: Duration,
}

impl Hook {
    /// How long one call may take.
    pub const TIME_MAX: Duration = Duration::from_secs(10);

    /// The program and its arguments, as separate words: no shell reads them.
    pub fn new(words: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        Ok(Self {
            program: program.ok_or(Error::NoProgram)?,
            arguments: words.collect(),
            limit: Self::TIME_MAX,
        })
    }

    /// The same program with another limit of time.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Which program it is.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Calls the program. If the returned future is dropped, the program ends.
    pub(crate) async fn call(&self, verb: Verb, input: &Secret) -> Result<Secret, Error> {
        let spawned = Command::new(&self.program)
            .args(&self.arguments)
            .arg(verb.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut running = Running(spawned.map_err(|cause| Error::Start {
            program: self.program.clone(),
            cause,
        })?);
        let line = text::encode_line("", input);
        match tokio::time::timeout(self.limit, running.talk(&line)).await {
            Ok(Ok(said)) => self.judge(verb, &line, &said),
            Ok(Err(Trouble::TooMuch)) => Err(self.unusable(verb, "is longer than 64 KiB")),
            Ok(Err(Trouble::Pipe(cause))) => Err(Error::Speak {
                program: self.program.clone(),
                verb: verb.as_str(),
                cause,
            }),
            Err(_) => Err(Error::Slow {
                program: self.program.clone(),
                verb: verb.as_str(),
                limit: self.limit,
            }),
        }
    }

    /// What the program's end and its words mean.
    fn judge(&self, verb: Verb, input: &Secret, said: &Said) -> Result<Secret, Error> {
        let answer = said.answer.expose();
        if !said.status.success() {
            return Err(Error::Failed {
                program: self.program.clone(),
                verb: verb.as_str(),
                status: said.status.to_string(),
                said: last_line(said.complaint.expose(), &[input.expose(), answer]),
            });
        }
        // Programs that write base64 like to break it into lines.
        let mut compact = Vec::with_capacity(answer.len());
        compact.extend(answer.iter().filter(|byte| !byte.is_ascii_whitespace()));
        match text::decode(Secret::from(compact).expose()) {
            None => Err(self.unusable(verb, "is not base64")),
            Some(bytes) if bytes.expose().is_empty() => Err(self.unusable(verb, "is empty")),
            Some(bytes) => Ok(bytes),
        }
    }

    /// The error for an answer that cannot be used.
    pub(crate) fn unusable(&self, verb: Verb, why: &'static str) -> Error {
        Error::Answer {
            program: self.program.clone(),
            verb: verb.as_str(),
            why,
        }
    }
}

/// How the program ended and what it wrote.
struct Said {
    status: ExitStatus,
    answer: Secret,
    complaint: Secret,
}

/// Why nothing is known of how it ended.
enum Trouble {
    /// It wrote more than is read.
    TooMuch,
    /// A pipe broke, or the process could not be waited for.
    Pipe(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(cause: io::Error) -> Self {
        Self::Pipe(cause)
    }
}

/// A program that runs, and ends with all it started when this is dropped.
struct Running(Child);

impl Running {
    async fn talk(&mut self, input: &Secret) -> Result<Said, Trouble> {
        let (stdin, stdout, stderr) = (
            self.0.stdin.take(),
            self.0.stdout.take(),
            self.0.stderr.take(),
        );
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program that reads nothing closes the pipe: its answer says why.
                match stdin.write_all(input.expose()).await {
                    Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
                        return Err(cause.into());
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            Ok::<_, Trouble>(())
        };
        let hear = async {
            match stdout {
                Some(stdout) => answer(stdout).await,
                None => Ok(Secret::from(Vec::new())),
            }
        };
        let drain = async {
            match stderr {
                Some(stderr) => Ok(tail(stderr).await?),
                None => Ok(Secret::from(Vec::new())),
            }
        };
        let ((), answer, complaint) = tokio::try_join!(feed, hear, drain)?;
        Ok(Said {
            status: self.0.wait().await?,
            answer,
            complaint,
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has an id until it was waited for, so the number cannot be somebody else's.
        let group = self
            .0
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(group) = group
            && let Err(cause) = kill_process_group(group, Signal::KILL)
        {
            tracing::warn!(%cause, "could not end the key command");
        }
    }
}

/// Reads all of a bounded answer.
async fn answer(mut from: impl AsyncRead + Unpin) -> Result<Secret, Trouble> {
    let mut bytes = vec![0; ANSWER_BYTES_MAX + 1];
    let mut len = 0;
    let read = loop {
        match from.read(&mut bytes[len..]).await {
            Ok(0) => break Ok(()),
            Ok(more) => len += more,
            Err(cause) => break Err(cause),
        }
    };
    bytes.truncate(len);
    let answer = Secret::from(bytes);
    read?;
    if len > ANSWER_BYTES_MAX {
        return Err(Trouble::TooMuch);
    }
    Ok(answer)
}

/// Reads everything and keeps the end of it.
async fn tail(mut from: impl AsyncRead + Unpin) -> io::Result<Secret> {
    let mut bytes = Vec::with_capacity(2 * COMPLAINT_BYTES);
    let mut more = [0; COMPLAINT_BYTES];
    let read = loop {
        match from.read(&mut more).await {
            Ok(0) => break Ok(()),
            Ok(len) => {
                bytes.extend_from_slice(&more[..len]);
                bytes.drain(..bytes.len().saturating_sub(COMPLAINT_BYTES));
            }
            Err(cause) => break Err(cause),
        }
    };
    more.zeroize();
    let tail = Secret::from(bytes);
    read.map(|()| tail)
}

/// The last line that says something, fit to be shown: short, printable, and without any
/// part of what the program was given or answered.
fn last_line(complaint: &[u8], secrets: &[&[u8]]) -> String {
    let last = complaint
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .rfind(|line| !line.is_empty());
    let Some(last) = last else {
        return "it wrote nothing to its standard error".to_owned();
    };
    let tells = |secret: &[u8]| {
        secret
            .windows(TELLING_BYTES)
            .any(|part| last.windows(TELLING_BYTES).any(|shown| shown == part))
    };
    if secrets.iter().any(|secret| tells(secret)) {
        return "its last line is withheld, because it repeats key material".to_owned();
    }
    String::from_utf8_lossy(last)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(COMPLAINT_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_shown_without_secrets() {
        let key: &[u8] = b"c2VjcmV0IGtleSBtYXRlcmlhbA==\n";
        for (complaint, shown) in [
            ("", "it wrote nothing to its standard error"),
            ("\n  \n", "it wrote nothing to its standard error"),
            ("first\nsecond\r\n\n", "second"),
            ("\u{1b}[31mred", " [31mred"),
            (
                "curl -d c2VjcmV0IGtleSBtYXRlcmlhbA== failed",
                "its last line is withheld, because it repeats key material",
            ),
            (
                "…IGtleSBtYXRl…",
                "its last line is withheld, because it repeats key material",
            ),
            ("no key c2VjcmV0", "no key c2VjcmV0"),
        ] {
            assert_eq!(last_line(complaint.as_bytes(), &[key]), shown);
        }
        let long = "x".repeat(COMPLAINT_BYTES);
        assert_eq!(
            last_line(long.as_bytes(), &[key]).len(),
            COMPLAINT_CHARS_MAX
        );
    }

    #[tokio::test]
    async fn only_the_end_of_a_long_complaint_is_kept() {
        let long = format!("{}end", "x".repeat(10 * COMPLAINT_BYTES));
        let kept = tail(long.as_bytes()).await.unwrap();
        assert_eq!(kept.expose().len(), COMPLAINT_BYTES);
        assert!(kept.expose().ends_with(b"xend"));
    }

    #[test]
    fn a_command_names_a_program() {
        for empty in [vec![], vec![String::new()]] {
            assert_eq!(Hook::new(empty).err().unwrap().code(), "SEAL-006");
        }
    }
}
