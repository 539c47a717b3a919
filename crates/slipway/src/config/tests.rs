//! What a file may say, what it may not, and who comes first.

use super::{offered, settle};
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Arg, ArgAction, ArgGroup, Command};
use expect_test::{Expect, expect};
use std::ffi::OsString;
use std::path::Path;

/// A program with every kind of option.
fn program() -> Command {
    let serve = Command::new("serve").args([
        Arg::new("listen").long("listen").default_value("here"),
        Arg::new("log")
            .long("log")
            .value_parser(PossibleValuesParser::new(["text", "json"])),
        Arg::new("slots")
            .long("slots")
            .value_parser(RangedU64ValueParser::<u64>::new().range(1..=64)),
        Arg::new("quiet").long("quiet").action(ArgAction::SetTrue),
        Arg::new("label").long("label").action(ArgAction::Append),
        // A variable that is set whenever cargo runs tests.
        Arg::new("home").long("home").env("CARGO_MANIFEST_DIR"),
        Arg::new("must").long("must").required(true),
        Arg::new("database")
            .long("database")
            .hide_env_values(true)
            .conflicts_with("data-dir")
            .value_parser(|text: &str| match text.strip_prefix("postgres:") {
                Some(_) => Ok(text.to_owned()),
                None => Err("not a database"),
            }),
        Arg::new("key_file")
            .long("key-file")
            .conflicts_with("key_command"),
        Arg::new("key_command").long("key-command"),
        Arg::new("password").long("password").requires("database"),
        Arg::new("left").long("left"),
        Arg::new("right").long("right"),
        Arg::new("count")
            .short('v')
            .long("verbose")
            .action(ArgAction::Count),
    ]);
    let serve = serve.group(ArgGroup::new("side").args(["left", "right"]).required(true));
    let worker = Command::new("worker").args([
        Arg::new("speed").long("speed"),
        Arg::new("worker_listen").long("listen"),
    ]);
    let nested = Command::new("backup")
        .subcommand(Command::new("create").arg(Arg::new("database").long("database")));
    let global = |name: &'static str| Arg::new(name).long(name).global(true);
    offered(
        Command::new("slipway")
            .args([global("data-dir"), global("server")])
            .subcommands([serve, worker, nested])
            .subcommand(Command::new("get").arg(Arg::new("kind"))),
    )
}

/// Runs the words with a file that says `text`, and shows what came of it.
fn told(text: &str, words: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("slipway.yaml");
    std::fs::write(&file, text).unwrap();
    told_with(&file, words)
}

fn told_with(file: &Path, words: &[&str]) -> String {
    let line: Vec<OsString> = std::iter::once("slipway")
        .chain(words.iter().copied())
        .chain(["--config"])
        .map(OsString::from)
        .chain([file.as_os_str().to_owned()])
        .collect();
    match settle(program(), &line) {
        Ok(Ok(matches)) => {
            let (_, leaf) = super::leaf(&matches);
            let mut lines = Vec::new();
            for id in leaf.ids() {
                let values = leaf.get_raw(id.as_str()).into_iter().flatten();
                let values: Vec<String> = values
                    .map(|value| value.to_string_lossy().into_owned())
                    .collect();
                let shown = !matches!(id.as_str(), "config" | "home" | "count" | "side");
                if shown && !values.is_empty() {
                    lines.push(format!("{id} = {}\n", values.join(" ")));
                }
            }
            lines.sort();
            lines.concat()
        }
        Ok(Err(error)) => format!("clap: {}", error.to_string().lines().next().unwrap()),
        Err(failure) => format!(
            "{} ({})\nhint: {}\n",
            failure.what.replace(&file.display().to_string(), "FILE"),
            failure.code,
            failure.hint
        ),
    }
}

#[track_caller]
fn check(text: &str, words: &[&str], expected: &Expect) {
    expected.assert_eq(&told(text, words));
}

#[test]
fn every_kind_of_option_can_stand_in_the_file() {
    check(
        "listen: there\nlog: json\nslots: 8\nquiet: true\nlabel: [a, b]\nmust: 1.5\n\
         data-dir: /data\nkey-command: kms --unwrap\nleft: 'yes'\n",
        &["serve"],
        &expect![[r#"
            data-dir = /data
            key_command = kms --unwrap
            label = a b
            left = yes
            listen = there
            log = json
            must = 1.5
            quiet = true
            slots = 8
        "#]],
    );
}

#[test]
fn the_line_comes_first() {
    check(
        "listen: file\nmust: file\nleft: file\nlabel: [a, b]\ndata-dir: file\nquiet: false\n",
        &[
            "--data-dir",
            "line",
            "serve",
            "--listen",
            "line",
            "--label",
            "c",
            "--quiet",
        ],
        &expect![[r#"
            data-dir = line
            label = c
            left = file
            listen = line
            must = file
            quiet = true
        "#]],
    );
}

#[test]
fn a_variable_comes_before_the_file() {
    let line = ["slipway", "serve", "--must", "1", "--left", "1"].map(OsString::from);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("slipway.yaml");
    std::fs::write(&file, "home: file\n").unwrap();
    let line: Vec<OsString> = line
        .into_iter()
        .chain(["--config".into(), file.into()])
        .collect();
    let matches = settle(program(), &line).unwrap().unwrap();
    let (_, leaf) = super::leaf(&matches);
    let home = leaf.get_one::<String>("home").unwrap();
    assert_eq!(*home, std::env::var("CARGO_MANIFEST_DIR").unwrap());
}

#[test]
fn what_the_line_excludes_is_left_out_of_the_file() {
    check(
        "must: x\nkey-file: file\nleft: file\ndatabase: postgres:file\n",
        &[
            "serve",
            "--key-command",
            "line",
            "--right",
            "line",
            "--data-dir",
            "line",
        ],
        &expect![[r#"
            data-dir = line
            key_command = line
            listen = here
            must = x
            quiet = false
            right = line
        "#]],
    );
}

#[test]
fn what_one_option_requires_may_be_in_the_file() {
    check(
        "must: x\nleft: x\ndatabase: postgres:file\n",
        &["serve", "--password", "line"],
        &expect![[r#"
            database = postgres:file
            left = x
            listen = here
            must = x
            password = line
            quiet = false
        "#]],
    );
}

#[test]
fn settings_of_another_role_are_passed_over() {
    check(
        "speed: fast\nmust: x\nleft: x\n",
        &["serve"],
        &expect![[r#"
            left = x
            listen = here
            must = x
            quiet = false
        "#]],
    );
    check(
        "listen: there\ndatabase: postgres://x\n",
        &["backup", "create"],
        &expect![[r#"
            database = postgres://x
        "#]],
    );
}

#[test]
fn what_nobody_says_is_still_missed() {
    check(
        "",
        &["serve"],
        &expect!["clap: error: the following required arguments were not provided:"],
    );
    check(
        "must: x\nleft: x\n",
        &["serve", "--colour"],
        &expect!["clap: error: unexpected argument '--colour' found"],
    );
}

#[test]
fn every_fault_is_told_at_once() {
    check(
        "colour: red\nlog: xml\nslots: 65\nquiet: 1\nlisten: [a]\nmust: {a: b}\nserver: x\n\
         label:\n  - [a]\nleft:\n",
        &["serve"],
        &expect![[r#"
            cannot use the configuration in FILE: `colour` is no setting; `log` cannot be `xml`, only text or json; `slots` cannot be `65`: 65 is not in 1..=64; `quiet` is `true` or `false`; `listen` takes one value and not a list; `must` cannot be a mapping; `server` is no setting; `label` cannot be a list; `left` cannot be nothing (CONFIG-003)
            hint: the settings are data-dir, database, home, key-command, key-file, label, left, listen, log, must, password, quiet, right, slots, speed, worker-listen; `slipway serve --help` tells what it takes
        "#]],
    );
}

#[test]
fn a_secret_is_not_shown() {
    check(
        "database: mysql://user:hunter2@host\n",
        &["serve"],
        &expect![[r#"
            cannot use the configuration in FILE: `database` cannot be what it is: not a database (CONFIG-004)
            hint: `slipway serve --help` tells what it takes
        "#]],
    );
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    check(
        "must: x\nkey-file: a\nkey-command: b\nleft: a\nright: b\ndatabase: postgres:x\ndata-dir: x\n",
        &["serve"],
        &expect![[r#"
            cannot use the configuration in FILE: `data-dir` and `database` exclude each other; `key-command` and `key-file` exclude each other; `left` and `right` exclude each other (CONFIG-005)
            hint: keep one of them
        "#]],
    );
}

#[test]
fn what_is_no_configuration_is_refused() {
    let text = ["- a\n- b\n", "a: b: c", "a: 1\na: 2\n", "hello"]
        .map(|text| told(text, &["serve"]))
        .concat();
    expect![[r#"
        cannot use the configuration in FILE: it holds a list, not settings by name (CONFIG-002)
        hint: write one `name: value` per line; names are those of `slipway serve --help`
        cannot use the configuration in FILE: document cannot be read as YAML: mapping values are not allowed in this context at line 1, column 5 (CONFIG-002)
        hint: write one `name: value` per line; names are those of `slipway serve --help`
        cannot use the configuration in FILE: document cannot be read as YAML: the key `a` stands there twice, at line 2, column 1 (CONFIG-002)
        hint: write one `name: value` per line; names are those of `slipway serve --help`
        cannot use the configuration in FILE: it holds a text, not settings by name (CONFIG-002)
        hint: write one `name: value` per line; names are those of `slipway serve --help`
    "#]].assert_eq(&text);
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.yaml");
    let binary = directory.path().join("binary.yaml");
    std::fs::write(&binary, [0xff, 0xfe]).unwrap();
    let text = [directory.path(), &missing, &binary, Path::new("/dev/zero")]
        .map(|file| told_with(file, &["serve"]))
        .concat();
    expect![[r#"
        cannot use the configuration in FILE: could not read it: Is a directory (os error 21) (CONFIG-001)
        hint: is the path right, and may this user read the file?
        cannot use the configuration in FILE: could not read it: No such file or directory (os error 2) (CONFIG-001)
        hint: is the path right, and may this user read the file?
        cannot use the configuration in FILE: it is not UTF-8 (CONFIG-002)
        hint: write one `name: value` per line; names are those of `slipway serve --help`
        cannot use the configuration in FILE: document has 1048577 bytes, at most 1048576 are read (CONFIG-002)
        hint: write one `name: value` per line; names are those of `slipway serve --help`
    "#]].assert_eq(&text);
}

#[test]
fn a_verb_without_settings_of_its_own_reads_no_file() {
    check(
        "",
        &["get"],
        &expect!["clap: error: unexpected argument '--config' found"],
    );
}

#[test]
fn options_of_one_name_and_two_meanings_have_two_names_in_the_file() {
    let text = "listen: of the server\nworker-listen: of the worker\nmust: a\nleft: b\n";
    check(
        text,
        &["worker"],
        &expect![[r#"
            worker_listen = of the worker
        "#]],
    );
    check(
        text,
        &["serve"],
        &expect![[r#"
            left = b
            listen = of the server
            must = a
            quiet = false
        "#]],
    );
}
