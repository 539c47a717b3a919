//! Writes `docs/configuration.md` from the definition of the command line.
//!
//! Only a test: the file is compared with what is written here, and `make bless` rewrites it.

use crate::config;
use clap::{Arg, Command, Subcommand as _};
use expect_test::expect_file;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What stands before the tables.
const HEAD: &str = "\
# Configuration

<!-- Written by a test from the definition of the command line (crates/slipway/src/reference.rs);
     `make bless` rewrites it. -->

Everything has a default, and `slipway serve` runs without any configuration. A setting is, in this order:

1. an option on the command line;
2. else an environment variable;
3. else a line of the configuration file, which `--config` or `SLIPWAY_CONFIG` names;
4. else its default.

The file is YAML: the names of the options without their dashes, and their values. One file serves all roles of an
installation: each takes what it has an option for. Options without a value are `true` or `false`; options that may
be repeated take a list. A name that no role knows is refused ([CONFIG-003](errors/CONFIG-003.md)), and nothing is
started.

```yaml
listen: 0.0.0.0:7077
data-dir: /var/lib/slipway
log: json
```

A database address may hold a password: keep the file, or the file with the variables, readable by the service alone.
";

/// Variables that no option stands for: their name, and what they do.
const VARIABLES: [(&str, &str); 12] = [
    (
        "NO_COLOR",
        "any value: answers of the command line are not coloured",
    ),
    (
        "SLIPWAY_ACTION",
        "set by Slipway for control scripts: the action that the script is part of",
    ),
    (
        "SLIPWAY_CLUSTER",
        "set by Slipway for gates: the cluster whose node wants to pass",
    ),
    (
        "SLIPWAY_EXAMPLE_",
        "what begins so is passed on to control scripts, unlike all else that begins with `SLIPWAY_`: \
         `SLIPWAY_EXAMPLE_STATE` tells those of `examples/environments` where to deploy",
    ),
    (
        "SLIPWAY_LOG",
        "what the server's log tells, by severity (`info` when not set) or in the notation of \
         Rust's `env_filter`: `debug`, `warn,engine=debug`",
    ),
    (
        "SLIPWAY_LOOK",
        "set by Slipway for control scripts that look or tell: for which process they do; what is left of them when that was \
         killed is ended at the next start",
    ),
    (
        "SLIPWAY_NODE",
        "set by Slipway for gates: the node that wants to pass",
    ),
    (
        "SLIPWAY_SECRETS",
        "set by Slipway for control scripts: the directory with settings that are secret, where they \
         are delivered as files; its file `index` has a line for each, with level, key and file name",
    ),
    (
        "SLIPWAY_SECRET_APPLICATION_",
        "set by Slipway for control scripts, with the key behind it: a secret setting of the \
         application, where they are delivered as variables; in keys a dot becomes `__`, and what is \
         no letter or digit `_` and its code in hexadecimal",
    ),
    (
        "SLIPWAY_SECRET_DEPLOYMENT_",
        "the same of how it is deployed",
    ),
    (
        "SLIPWAY_TOKEN",
        "the token of who asks, for clients; `--token-file` comes first",
    ),
    (
        "XDG_STATE_HOME",
        "below it lies the data directory when neither `--data-dir` nor `SLIPWAY_DATA` names one; \
         `~/.local/state` when not set",
    ),
];

/// Variables that only proofs of our own set, or the program for itself.
const OF_TESTS: [&str; 4] = [
    "SLIPWAY_BLESS",
    "SLIPWAY_ENTERED",
    "SLIPWAY_FIGURES",
    "SLIPWAY_SKIPS",
];

/// The whole page.
fn page() -> String {
    let program = config::command();
    let keys = config::keys(&program);
    let mut page = HEAD.to_owned();
    let client = cli::Verb::augment_subcommands(Command::new("client"));
    for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        if client.find_subcommand(verb.get_name()).is_none() {
            sections(verb, "slipway", &keys, &mut page);
        }
    }
    page.push_str("\n## Options of every verb\n\n");
    page.push_str(&table(program.get_arguments(), &keys));
    page.push_str("\n## Variables without an option\n\n| Variable | Meaning |\n|---|---|\n");
    for (name, meaning) in VARIABLES {
        page.push_str(&format!("| `{name}` | {meaning} |\n"));
    }
    page
}

/// A verb, or the verbs below it.
fn sections(verb: &Command, above: &str, keys: &BTreeSet<String>, page: &mut String) {
    let name = format!("{above} {}", verb.get_name());
    if verb.has_subcommands() {
        for inner in verb.get_subcommands() {
            sections(inner, &name, keys, page);
        }
        return;
    }
    let about = verb
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    page.push_str(&format!("\n## `{name}`\n\n{}.\n\n", one_line(&about)));
    let reads = verb
        .get_arguments()
        .any(|arg| arg.get_long() == Some("config"));
    let nothing = BTreeSet::new();
    page.push_str(&table(
        verb.get_arguments(),
        if reads { keys } else { &nothing },
    ));
}

/// One row for each option; the third cell is its name in the file.
fn table<'a>(arguments: impl Iterator<Item = &'a Arg>, keys: &BTreeSet<String>) -> String {
    let mut table =
        "| Option | Variable | In the file | Default | Meaning |\n|---|---|---|---|---|\n"
            .to_owned();
    for arg in arguments.filter(|arg| !arg.is_hide_set()) {
        let code = |text: Option<String>| text.map_or("–".to_owned(), |text| format!("`{text}`"));
        let in_file = config::key(arg).filter(|name| keys.contains(name));
        table.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            option(arg),
            code(
                arg.get_env()
                    .map(|name| name.to_string_lossy().into_owned())
            ),
            code(in_file),
            code(default(arg)),
            meaning(arg)
        ));
    }
    table
}

/// How the option is written.
fn option(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<&str> = names.iter().map(clap::builder::Str::as_str).collect();
    let values = if arg.get_action().takes_values() {
        values.join(" ")
    } else {
        String::new()
    };
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => return values,
    };
    format!("{name} {values}").trim_end().to_owned()
}

/// What holds when nobody says anything.
fn default(arg: &Arg) -> Option<String> {
    let values = arg.get_default_values();
    let texts: Vec<String> = values
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    (arg.get_action().takes_values() && !texts.is_empty()).then(|| texts.join(" "))
}

/// What the help says, and the values to choose from.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let help = one_line(&help.map(ToString::to_string).unwrap_or_default());
    let values = arg.get_possible_values();
    let choice: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let choice = if choice.is_empty() || !arg.get_action().takes_values() {
        String::new()
    } else {
        format!(": {}", choice.join(", "))
    };
    format!("{help}{choice}").replace('|', "\\|")
}

/// A text of several lines in one: paragraphs become sentences.
fn one_line(text: &str) -> String {
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| paragraph.trim_end_matches('.').to_owned())
        .collect();
    paragraphs.join(". ")
}

#[test]
fn the_reference_is_what_the_program_takes() {
    expect_file!["../../../docs/configuration.md"].assert_eq(&page());
}

/// The Rust files below a directory.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_variable_of_ours_is_left_out() {
    let page = page();
    let mut files = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for member in std::fs::read_dir(crates).unwrap() {
        let source = member.unwrap().path().join("src");
        if source.is_dir() {
            sources(&source, &mut files);
        }
    }
    let mut missing = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("\"SLIPWAY_") {
            let name: String = text[at + 1..]
                .chars()
                .take_while(|letter| letter.is_ascii_uppercase() || *letter == '_')
                .collect();
            let of_tests = name.starts_with("SLIPWAY_TEST_") || OF_TESTS.contains(&name.as_str());
            let known = of_tests || page.contains(&format!("`{name}`"));
            // The prefix alone is this very search.
            if !known && name != "SLIPWAY_" {
                missing.insert(format!("{name} in {}", file.display()));
            }
        }
    }
    assert_eq!(missing, BTreeSet::new(), "add them to VARIABLES");
}
