//! What every verb needs to know: which server, who asks, and how to show the answer.

use crate::error::Error;
use clap::ValueEnum as _;
use clap::builder::{EnumValueParser, StringValueParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// The project that is meant where none is named.
pub(crate) const DEFAULT_PROJECT: &str = "default";

/// The file in the data directory that holds the administrator's token.
const TOKEN_FILE: &str = "admin.token";

/// More than any token has; a larger file is some other file.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Options of every verb.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Where the server is
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "SLIPWAY_SERVER",
        hide_env_values = true,
        default_value = "http://127.0.0.1:7077"
    )]
    pub server: String,

    /// A file with the token of who asks [default: admin.token in the data directory]
    ///
    /// A token never stands on the command line, where every user of the machine could read it;
    /// `SLIPWAY_TOKEN` holds one instead of a file.
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Where the server on this machine keeps its data [default: the user's state directory]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "SLIPWAY_DATA",
        hide_env_values = true
    )]
    pub data_dir: Option<PathBuf>,

    /// Whose things [default: default; of tokens and audit, all]
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        value_parser = api::argument::name
    )]
    pub project: Option<String>,

    /// How to show the answer
    #[arg(
        id = "output",
        short = 'o',
        long = "output",
        global = true,
        value_name = "FORMAT",
        value_parser = EnumValueParser::<Format>::new().map(Output::Format)
    )]
    pub outputs: Vec<Output>,
}

/// What stands behind `-o`.
///
/// Whoever creates and changes environments knows it as the way to say how they are deployed; so
/// there, and only there, something with a `=` is a setting. It is one option for both, because
/// the command line knows one `-o`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// How an answer is shown.
    Format(Format),
    /// A setting of how an environment is deployed, and its value.
    Setting(String, String),
}

/// Reads what stands behind `-o` where environments are created and changed.
pub(crate) fn settings_or_formats() -> impl TypedValueParser<Value = Output> {
    StringValueParser::new().try_map(|text| match Format::from_str(&text, false) {
        Ok(format) => Ok(Output::Format(format)),
        Err(_) if text.contains('=') => {
            let (key, value) = api::argument::setting(&text)?;
            Ok(Output::Setting(key, value))
        }
        Err(_) => {
            Err("write KEY=VALUE to set how it is deployed, or one of table, json, yaml".to_owned())
        }
    })
}

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// The wire objects, for programs.
    Json,
    /// The wire objects, for either.
    Yaml,
}

/// A secret that cannot be printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The secret itself, to be sent and not to be shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(hidden)")
    }
}

impl Global {
    /// Whose things: those of the project that was named, or of the one that is always there.
    pub fn project(&self) -> &str {
        self.project.as_deref().unwrap_or(DEFAULT_PROJECT)
    }

    /// How to show the answer: as was said last, or for people.
    pub fn output(&self) -> Format {
        let mut formats = self.outputs.iter().rev().filter_map(|output| match output {
            Output::Format(format) => Some(*format),
            Output::Setting(..) => None,
        });
        formats.next().unwrap_or(Format::Table)
    }

    /// Where the server on this machine keeps its data.
    pub fn data_dir(&self) -> Result<PathBuf, Error> {
        if let Some(dir) = &self.data_dir {
            return Ok(dir.clone());
        }
        let absolute = |path: &PathBuf| path.is_absolute();
        std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(absolute)
            .or_else(|| Some(std::env::home_dir()?.join(".local/state")).filter(absolute))
            .map(|state| state.join("slipway"))
            .ok_or(Error::NoDataDir)
    }

    /// Prepares to speak to the server; nothing is sent yet.
    pub fn client(&self) -> Result<api::Client, Error> {
        let Self {
            server,
            token_file: _,
            data_dir: _,
            project: _,
            outputs: _,
        } = self;
        let token = self.find_token()?;
        let token = token.as_ref().map(Token::reveal);
        Ok(api::Client::new(server, token, self.project())?)
    }

    /// The token that was given, or the one the server on this machine wrote.
    ///
    /// The file is read for servers on this machine only: the key of this house is of no
    /// use elsewhere, and must not be shown around.
    pub(crate) fn find_token(&self) -> Result<Option<Token>, Error> {
        if let Some(file) = &self.token_file {
            return match read_token(file)? {
                Some(token) => Ok(Some(token)),
                None => Err(Error::TokenFile {
                    file: file.clone(),
                    cause: std::io::ErrorKind::NotFound.into(),
                }),
            };
        }
        if let Some(token) = std::env::var("SLIPWAY_TOKEN")
            .ok()
            .and_then(|text| given(&text))
        {
            return Ok(Some(token));
        }
        if !api::client::is_local(&self.server) {
            return Ok(None);
        }
        read_token(&self.data_dir()?.join(TOKEN_FILE))
    }

    /// What to do when the server wants to know who asks.
    pub(crate) fn token_hint(&self) -> String {
        match self.data_dir().map(|dir| dir.join(TOKEN_FILE)) {
            Ok(file) if api::client::is_local(&self.server) => format!(
                "there is no token in {}; name the server's --data-dir, or set SLIPWAY_TOKEN",
                file.display()
            ),
            Ok(_) | Err(_) => "set SLIPWAY_TOKEN to a token of that server".to_owned(),
        }
    }
}

/// The token in a variable; an empty one is as good as none.
fn given(text: &str) -> Option<Token> {
    let text = text.trim();
    (!text.is_empty()).then(|| Token(text.to_owned()))
}

/// Reads the token file; a file that is not there is no token, and not an error yet.
fn read_token(file: &Path) -> Result<Option<Token>, Error> {
    let unreadable = |cause| Error::TokenFile {
        file: file.to_owned(),
        cause,
    };
    match std::fs::metadata(file) {
        Ok(metadata) if metadata.len() > TOKEN_BYTES_MAX => {
            Err(unreadable(std::io::Error::other("too long for a token")))
        }
        Ok(_) => {
            let text = std::fs::read_to_string(file).map_err(unreadable)?;
            match given(&text) {
                Some(token) => Ok(Some(token)),
                None => Err(unreadable(std::io::Error::other("the file is empty"))),
            }
        }
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(unreadable(cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(server: &str, dir: &Path) -> Global {
        Global {
            server: server.to_owned(),
            token_file: None,
            data_dir: Some(dir.to_owned()),
            project: None,
            outputs: Vec::new(),
        }
    }

    #[test]
    fn the_token_of_this_machine_is_for_servers_on_this_machine() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(TOKEN_FILE), "s3cret\n").unwrap();
        let found = |server| global(server, dir.path()).find_token().unwrap();
        let local = found("http://127.0.0.1:7077").unwrap();
        assert_eq!(
            (local.reveal(), format!("{local:?}").as_str()),
            ("s3cret", "Token(hidden)")
        );
        assert!(found("http://elsewhere.example").is_none());
    }

    #[test]
    fn a_missing_token_is_not_an_error_yet_and_a_strange_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let here = global("http://localhost:1", dir.path());
        assert!(here.find_token().unwrap().is_none());
        std::fs::write(dir.path().join(TOKEN_FILE), "x".repeat(5_000)).unwrap();
        assert_eq!(here.find_token().unwrap_err().code(), "CLI-005");
        std::fs::write(dir.path().join(TOKEN_FILE), " \n").unwrap();
        let empty = here.find_token().unwrap_err();
        assert_eq!(empty.code(), "CLI-005");
        assert!(empty.to_string().contains(TOKEN_FILE), "{empty}");
        assert!(given(" ").is_none());
    }
}
