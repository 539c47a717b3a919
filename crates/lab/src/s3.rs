//! A store that speaks S3, of one's own.
//!
//! [`Store::start`] runs [moto](https://github.com/getmoto/moto) on a port of the loopback device.
//! It keeps everything in memory, and ends when its standard input does: with this value, or with
//! this process, however that ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The program that runs it.
const SERVER: &str = include_str!("s3/server.py");

/// Names the directory of the programs of moto, where it is not the usual one.
const PROGRAMS: &str = "SLIPWAY_TEST_MOTO";

/// What a list ends with.
const END: &str = ".";

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("could not {attempted}: {error}")]
    System {
        /// What was attempted.
        attempted: &'static str,
        /// What it said.
        error: std::io::Error,
    },
    /// The program ended, or says what nobody expects.
    #[error("the store broke down: {0}")]
    Broken(String),
}

fn system(attempted: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |error| Error::System { attempted, error }
}

/// Who may ask a store: the key that names them, and the one they sign with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Who they are.
    pub access_key: String,
    /// What they sign with.
    pub secret_key: String,
}

/// A store that lives no longer than this value, nor than this process.
pub struct Store {
    program: Child,
    /// Taken when it shall end.
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Where it answers.
    pub endpoint: String,
    /// Its only bucket.
    pub bucket: String,
    /// Who may do everything.
    pub friend: User,
    /// Who may do nothing.
    pub stranger: User,
}

impl Store {
    /// Starts a store by the Python that has moto.
    pub fn start(python: &Path) -> Result<Self, Error> {
        let mut program = Command::new(python)
            .args(["-c", SERVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(system("start Python"))?;
        let (Some(questions), Some(answers)) = (program.stdin.take(), program.stdout.take()) else {
            unreachable!("it was started with both pipes");
        };
        let mut answers = BufReader::new(answers);
        let mut line = String::new();
        answers
            .read_line(&mut line)
            .map_err(system("read what the store says"))?;
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let Ok([endpoint, bucket, friend, hers, stranger, his]) = <[String; 6]>::try_from(words)
        else {
            drop(questions);
            return Err(Error::Broken(last_words(&mut program)));
        };
        Ok(Self {
            program,
            questions: Some(questions),
            answers,
            endpoint,
            bucket,
            friend: User {
                access_key: friend,
                secret_key: hers,
            },
            stranger: User {
                access_key: stranger,
                secret_key: his,
            },
        })
    }

    /// The names of all objects, each with its size.
    pub fn objects(&mut self) -> Result<Vec<(String, u64)>, Error> {
        self.ask("objects")
    }

    /// The names of all objects whose upload was begun and not ended, each with how many parts of
    /// it are there.
    pub fn uploads(&mut self) -> Result<Vec<(String, u64)>, Error> {
        self.ask("uploads")
    }

    fn ask(&mut self, question: &str) -> Result<Vec<(String, u64)>, Error> {
        if let Some(questions) = &mut self.questions {
            let asked = writeln!(questions, "{question}").and_then(|()| questions.flush());
            asked.map_err(system("ask the store"))?;
        }
        let mut found = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.answers.read_line(&mut line);
            let read = read.map_err(system("read what the store says"))?;
            let pair = line.trim().rsplit_once(' ');
            let pair = pair.and_then(|(name, number)| Some((name, number.parse().ok()?)));
            match pair {
                Some((name, number)) => found.push((name.to_owned(), number)),
                None if line.trim() == END => return Ok(found),
                None if read == 0 => return Err(Error::Broken(last_words(&mut self.program))),
                None => return Err(Error::Broken(line)),
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.questions.take());
        // Nothing that it has is worth waiting for.
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

/// The last that a program says before it ends.
fn last_words(program: &mut Child) -> String {
    drop(program.kill());
    let mut said = String::new();
    if let Some(stderr) = &mut program.stderr {
        drop(stderr.read_to_string(&mut said));
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    last.unwrap_or("it says nothing").to_owned()
}

/// Starts a store, where moto was installed below a directory of tools or elsewhere; says why a
/// test did not run where it was not.
///
/// # Panics
///
/// When it is there and does not start.
#[expect(clippy::panic, reason = "only tests call this, and they fail by it")]
pub fn start_or_skip(test: &str, tools: &Path) -> Option<Store> {
    let named = std::env::var_os(PROGRAMS).map(PathBuf::from);
    let python = named
        .unwrap_or_else(|| tools.join("moto/bin"))
        .join("python");
    if !python.exists() {
        crate::skip(test, "moto is not installed: `cargo xtask tools` does that");
        return None;
    }
    match Store::start(&python) {
        Ok(store) => Some(store),
        Err(error) => panic!("{error}"),
    }
}
