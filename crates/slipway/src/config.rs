//! The configuration file: the options of the program, by their names, in YAML.
//!
//! What can stand in the file is not written down here. It is read off the definition of the
//! command line: every option of the roles, and what they share with all verbs. What neither the
//! line nor the environment says is taken from the file as if it stood on the line, so a value
//! means in the file what it means there.
//!
//! One file is for all roles of an installation: a verb takes from it what it has an option for
//! and leaves the rest. A name that no role knows is a mistake, and is refused.

use crate::Program;
use crate::failure::{self, Failure};
use clap::builder::PathBufValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use model::source::{self, BYTES_MAX, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The verbs whose options are settings.
const ROLES: [&str; 2] = ["serve", "worker"];

/// Options of all verbs that only clients read.
const FOR_CLIENTS: [&str; 4] = ["output", "project", "server", "token-file"];

/// The option that names the file.
const OPTION: &str = "config";

/// The whole command line, with `--config` where a file can be read.
pub(crate) fn command() -> Command {
    offered(Program::command())
}

/// Reads the command line, the environment and, below them, the file.
pub(crate) fn parse() -> Result<Program, ExitCode> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let matches = settle(command(), &line).map_err(|failure| {
        failure::tell(&failure.into());
        ExitCode::from(failure::USAGE)
    })?;
    let program = matches.and_then(|matches| {
        Program::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))
    });
    Ok(program.unwrap_or_else(|error| error.exit()))
}

/// What can stand in the file.
pub(crate) fn keys(program: &Command) -> BTreeSet<String> {
    let of_roles = ROLES
        .into_iter()
        .filter_map(|role| program.find_subcommand(role))
        .flat_map(Command::get_arguments);
    let shared = program.get_arguments().filter(|arg| arg.is_global_set());
    of_roles.chain(shared).filter_map(key).collect()
}

/// The name of an option in the file, if it can stand there: that of its id, which is its own
/// unless two roles have options of one name that mean different things.
pub(crate) fn key(arg: &Arg) -> Option<String> {
    let name = arg.get_long()?;
    // The other actions ask for help, count, or unset; none of them says how to run.
    let value = matches!(
        arg.get_action(),
        ArgAction::Set | ArgAction::Append | ArgAction::SetTrue
    );
    let ours = name != OPTION && !FOR_CLIENTS.contains(&name);
    (value && ours && !arg.is_hide_set()).then(|| arg.get_id().as_str().replace('_', "-"))
}

/// Adds `--config` to every verb with an option of its own that is a setting.
fn offered(program: Command) -> Command {
    let keys = keys(&program);
    offer(program, &keys)
}

fn offer(command: Command, keys: &BTreeSet<String>) -> Command {
    command.mut_subcommands(|verb| {
        let verb = offer(verb, keys);
        let has = |arg| key(arg).is_some_and(|key| keys.contains(&key));
        let reads = verb.get_arguments().any(has);
        if reads { verb.arg(option()) } else { verb }
    })
}

fn option() -> Arg {
    Arg::new(OPTION)
        .long(OPTION)
        .value_name("FILE")
        .env("SLIPWAY_CONFIG")
        .hide_env_values(true)
        .value_parser(PathBufValueParser::new())
        .help("Read settings from this file: YAML, by the names of the options, which come first")
}

/// One thing that is wrong with the file.
#[derive(Debug)]
struct Fault {
    code: &'static str,
    what: String,
    hint: String,
}

/// Everything that is wrong with the file, told at once.
fn refuse(file: &Path, faults: &[Fault]) -> Failure {
    let what: Vec<&str> = faults.iter().map(|fault| fault.what.as_str()).collect();
    let mut hints: Vec<&str> = Vec::new();
    for fault in faults {
        if !hints.contains(&fault.hint.as_str()) {
            hints.push(&fault.hint);
        }
    }
    Failure {
        what: format!(
            "cannot use the configuration in {}: {}",
            file.display(),
            what.join("; ")
        ),
        code: faults.first().map_or("CONFIG-001", |fault| fault.code),
        hint: hints.join("; "),
    }
}

/// Reads a command line under a definition; the inner error is one of the line, not of the file.
fn settle(program: Command, line: &[OsString]) -> Result<clap::error::Result<ArgMatches>, Failure> {
    let asked = match program.clone().try_get_matches_from(line) {
        // What the line lacks may be in the file.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let forgiving = program.clone().ignore_errors(true);
            forgiving.try_get_matches_from(line)
        }
        asked => asked,
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => return Ok(Err(error)),
    };
    let (verb, asked) = leaf(&asked);
    let Some(file) = asked.try_get_one::<PathBuf>(OPTION).ok().flatten() else {
        return Ok(program.try_get_matches_from(line));
    };
    let written = read(file).map_err(|fault| refuse(file, &[fault]))?;
    let mut built = program.clone();
    built.build(); // now each verb knows the options of all
    let judge = Judge {
        keys: keys(&program),
        program: &built,
        verb: &verb,
    };
    let settings = judge
        .settings(written)
        .map_err(|faults| refuse(file, &faults))?;
    let words = judge.choose(settings, asked).into_values().flatten();
    Ok(program.try_get_matches_from(longer(line, words)))
}

/// The line with more words among its options, which end at a lone `--`.
fn longer(line: &[OsString], words: impl Iterator<Item = String>) -> Vec<OsString> {
    let end = line.iter().position(|word| word == "--");
    let (options, rest) = line.split_at(end.unwrap_or(line.len()));
    let words = words.map(OsString::from);
    let longer = options.iter().cloned().chain(words);
    longer.chain(rest.iter().cloned()).collect()
}

/// The verb that was called, by the words that lead to it, and what it was told.
fn leaf(matches: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let mut verb = Vec::new();
    let mut matches = matches;
    while let Some((word, inside)) = matches.subcommand() {
        verb.push(word.to_owned());
        matches = inside;
    }
    (verb, matches)
}

/// The words for a command line, by the name of the option.
type Settings = BTreeMap<String, Vec<String>>;

/// Reads the file; a file without a word in it says nothing, and that is fine.
fn read(file: &Path) -> Result<Vec<(String, Value)>, Fault> {
    let unreadable = |cause: std::io::Error| Fault {
        code: "CONFIG-001",
        what: format!("could not read it: {cause}"),
        hint: "is the path right, and may this user read the file?".to_owned(),
    };
    let limit = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let strange = |what: String| Fault {
        code: "CONFIG-002",
        what,
        hint: "write one `name: value` per line; names are those of `slipway serve --help`"
            .to_owned(),
    };
    let text = String::from_utf8(bytes).map_err(|_| strange("it is not UTF-8".to_owned()))?;
    match source::parse(&text).map_err(|error| strange(error.to_string()))? {
        Value::Map(entries) => Ok(entries),
        Value::Null => Ok(Vec::new()),
        other @ (Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::List(_)) => Err(strange(format!(
            "it holds {}, not settings by name",
            other.kind()
        ))),
    }
}

/// Compares what the file says with what the verb understands.
struct Judge<'a> {
    /// What may stand in the file, for whatever role.
    keys: BTreeSet<String>,
    /// The command line, built.
    program: &'a Command,
    verb: &'a [String],
}

impl Judge<'_> {
    /// The settings of this verb, or every fault there is.
    fn settings(&self, written: Vec<(String, Value)>) -> Result<Settings, Vec<Fault>> {
        let options = self.options();
        let mut settings = Settings::new();
        let mut faults = Vec::new();
        for (name, value) in written {
            if !self.keys.contains(&name) {
                faults.push(self.unknown(&name));
                continue;
            }
            let Some(option) = options.get(&name) else {
                continue; // for another role
            };
            match self.words(option, &name, &value) {
                Ok(words) => drop(settings.insert(name, words)),
                Err(what) => faults.push(Fault {
                    code: "CONFIG-004",
                    what,
                    hint: format!(
                        "`slipway {} --help` tells what it takes",
                        self.verb.join(" ")
                    ),
                }),
            }
        }
        faults.extend(self.quarrels(&settings));
        if faults.is_empty() {
            Ok(settings)
        } else {
            Err(faults)
        }
    }

    /// Leaves out what the line or the environment say themselves, or exclude.
    fn choose(&self, mut settings: Settings, asked: &ArgMatches) -> Settings {
        let options = self.options();
        let said = |name: &String| {
            options.get(name).is_some_and(|option| {
                let source = asked.value_source(option.get_id().as_str());
                source.is_some_and(|source| source != ValueSource::DefaultValue)
            })
        };
        let all: Vec<String> = options.keys().cloned().collect();
        let said: BTreeSet<String> = all.into_iter().filter(said).collect();
        settings.retain(|name, _| !said.contains(name) && self.rivals(name).is_disjoint(&said));
        settings
    }

    /// The settings that this verb has an option for.
    fn options(&self) -> BTreeMap<String, &Arg> {
        let named = |arg| Some((key(arg)?, arg));
        let all = self.command().get_arguments().filter_map(named);
        all.filter(|(name, _)| self.keys.contains(name)).collect()
    }

    /// The definition of the verb.
    fn command(&self) -> &Command {
        self.verb.iter().fold(self.program, |command, word| {
            command.find_subcommand(word).unwrap_or(command)
        })
    }

    fn unknown(&self, name: &str) -> Fault {
        let known: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        Fault {
            code: "CONFIG-003",
            what: format!("`{}` is no setting", name.escape_debug()),
            hint: format!("the settings are {}", known.join(", ")),
        }
    }

    /// The value as the command line would have it, or why it would not.
    fn words(&self, option: &Arg, name: &str, value: &Value) -> Result<Vec<String>, String> {
        let many = matches!(option.get_action(), ArgAction::Append);
        let long = option.get_long().unwrap_or(name);
        if matches!(option.get_action(), ArgAction::SetTrue) {
            let Value::Bool(set) = value else {
                return Err(format!("`{name}` is `true` or `false`"));
            };
            return Ok(set.then(|| format!("--{long}")).into_iter().collect());
        }
        let values: Option<Vec<String>> = if let Value::List(items) = value {
            if !many {
                return Err(format!("`{name}` takes one value and not a list"));
            }
            items.iter().map(scalar).collect()
        } else {
            scalar(value).map(|value| vec![value])
        };
        let values = values.ok_or_else(|| format!("`{name}` cannot be {}", value.kind()))?;
        let words: Vec<String> = values
            .iter()
            .map(|value| format!("--{long}={value}"))
            .collect();
        let line = std::iter::once("slipway")
            .chain(self.verb.iter().map(String::as_str))
            .chain(words.iter().map(String::as_str));
        match self.program.clone().try_get_matches_from(line) {
            Err(error) if is_of_value(error.kind()) => Err(complaint(&error, option, name)),
            // What else is wrong with such a line has nothing to do with the value.
            Ok(_) | Err(_) => Ok(words),
        }
    }

    /// Settings that exclude each other.
    fn quarrels(&self, settings: &Settings) -> Vec<Fault> {
        let mut found = Vec::new();
        for name in settings.keys() {
            // Each pair is told once, by the first of the two.
            for rival in self.rivals(name).iter().filter(|rival| *rival > name) {
                if settings.contains_key(rival) {
                    found.push(Fault {
                        code: "CONFIG-005",
                        what: format!("`{name}` and `{rival}` exclude each other"),
                        hint: "keep one of them".to_owned(),
                    });
                }
            }
        }
        found
    }

    /// The settings that cannot be together with this one.
    fn rivals(&self, name: &str) -> BTreeSet<String> {
        let command = self.command();
        let named = |wanted: &str| {
            let mut options = command.get_arguments();
            options.find(|arg| key(arg).as_deref() == Some(wanted))
        };
        // One of the two says so, or a group has both and allows one.
        let excludes = |arg: &Arg, other: &Arg| {
            let told = command.get_arg_conflicts_with(arg);
            told.iter().any(|told| told.get_id() == other.get_id())
        };
        let grouped = |arg: &Arg, other: &Arg| {
            command.get_groups().any(|group| {
                let mut of_group = group.clone();
                let has = |arg: &Arg| group.get_args().any(|id| id == arg.get_id());
                !of_group.is_multiple() && has(arg) && has(other)
            })
        };
        let Some(arg) = named(name) else {
            return BTreeSet::new();
        };
        let others = command.get_arguments().filter(|other| {
            let same = other.get_id() == arg.get_id();
            !same && (excludes(arg, other) || excludes(other, arg) || grouped(arg, other))
        });
        others.filter_map(key).collect()
    }
}

/// A single value, as it would be written on a command line.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::Float(value) => Some(value.to_string()),
        Value::Text(text) => Some(text.clone()),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

/// Whether a command line was refused for a value.
fn is_of_value(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidValue
            | ErrorKind::ValueValidation
            | ErrorKind::InvalidUtf8
            | ErrorKind::TooManyValues
            | ErrorKind::TooFewValues
            | ErrorKind::WrongNumberOfValues
    )
}

/// Why a value was refused. An option whose value is not shown in the help does not show it here.
fn complaint(error: &clap::Error, option: &Arg, name: &str) -> String {
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) if !option.is_hide_env_values_set() => {
            format!("`{}`", value.escape_debug())
        }
        Some(_) | None => "what it is".to_owned(),
    };
    let reason = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(source), _) => format!(": {source}"),
        (None, Some(ContextValue::Strings(valid))) if !valid.is_empty() => {
            format!(", only {}", valid.join(" or "))
        }
        (None, _) => String::new(),
    };
    format!("`{name}` cannot be {value}{reason}")
}

#[cfg(test)]
mod tests;
