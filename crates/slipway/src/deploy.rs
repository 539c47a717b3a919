//! The files of `deploy/` name verbs, options and variables: the program must know them.
//!
//! Only a test. Every command line in there is read by the real definition, every variable of ours
//! belongs to an option of its verb, and systemd judges its units where it is installed.

use crate::config;
use clap::Command;
use clap::error::ErrorKind;
use model::source::{self, Value};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("deploy").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

/// Reads a command line as the program would, without running it.
#[track_caller]
fn understood(words: &[&str], variables: &[&str]) {
    let line = std::iter::once("slipway").chain(words.iter().copied());
    // What is required may come from the environment, which is not that of this test.
    let matches = match config::command().try_get_matches_from(line.clone()) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            let forgiving = config::command().ignore_errors(true);
            forgiving.try_get_matches_from(line)
        }
        matches => matches,
    };
    let matches = matches.unwrap_or_else(|error| panic!("`slipway {}`: {error}", words.join(" ")));
    let mut known = vec!["SLIPWAY_LOG".to_owned()];
    let mut command = &config::command();
    known.extend(variables_of(command));
    let mut matches = &matches;
    while let Some((word, inside)) = matches.subcommand() {
        command = command.find_subcommand(word).unwrap();
        known.extend(variables_of(command));
        matches = inside;
    }
    for variable in variables {
        assert!(
            known.iter().any(|known| known == variable),
            "`slipway {}` does not read {variable}, only {known:?}",
            words.join(" ")
        );
    }
}

fn variables_of(command: &Command) -> Vec<String> {
    let names = command.get_arguments().filter_map(clap::Arg::get_env);
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The value at a path of names.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| {
        entries(value)
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    })
}

fn entries(value: &Value) -> &[(String, Value)] {
    let Value::Map(entries) = value else {
        panic!("{value} instead of a mapping")
    };
    entries
}

fn text(value: &Value) -> &str {
    let Value::Text(text) = value else {
        panic!("{value} instead of a text")
    };
    text
}

fn texts(value: &Value) -> Vec<&str> {
    let Value::List(items) = value else {
        panic!("{value} instead of a list")
    };
    items.iter().map(text).collect()
}

/// The services of the compose file that run our image, by name.
fn services(compose: &Value) -> BTreeMap<&str, &Value> {
    let services = entries(at(compose, "services").unwrap()).iter();
    let image = |service: &Value| text(at(service, "image").unwrap()).contains("slipway");
    services
        .filter(|(_, service)| image(service))
        .map(|(name, service)| (name.as_str(), service))
        .collect()
}

#[test]
fn compose_calls_the_program_as_it_is() {
    let compose = source::parse(&read("compose.yaml")).unwrap();
    let services = services(&compose);
    let names: Vec<&str> = services.keys().copied().collect();
    assert_eq!(
        names,
        ["migrate", "serve-1", "serve-2", "worker-1", "worker-2"]
    );
    for service in services.values() {
        let variables = entries(at(service, "environment").unwrap());
        let variables: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        understood(&texts(at(service, "command").unwrap()), &variables);
        if let Some(test) = at(service, "healthcheck.test") {
            let words = texts(test);
            assert_eq!(words[..2], ["CMD", "/slipway"]);
            understood(&words[2..], &[]);
        }
        let image = text(at(service, "image").unwrap());
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(image, format!("${{SLIPWAY_IMAGE:-slipway:{version}}}"));
    }
}

#[test]
fn compose_waits_for_what_it_needs_and_for_nothing_that_is_not_there() {
    let compose = source::parse(&read("compose.yaml")).unwrap();
    let all = entries(at(&compose, "services").unwrap());
    for (name, service) in all {
        for (needed, how) in at(service, "depends_on").map_or(&[][..], entries) {
            let needed = all.iter().find(|(other, _)| other == needed);
            let (_, needed) = needed.unwrap_or_else(|| panic!("{name} needs what is not there"));
            match text(at(how, "condition").unwrap()) {
                "service_healthy" => assert!(at(needed, "healthcheck").is_some(), "{name}"),
                "service_completed_successfully" => {
                    assert_eq!(text(at(needed, "restart").unwrap()), "no", "{name}");
                }
                other => panic!("{name} waits for {other}"),
            }
        }
        for volume in at(service, "volumes").map_or(Vec::new(), texts) {
            let (volume, _) = volume.split_once(':').unwrap();
            assert!(
                at(&compose, &format!("volumes.{volume}")).is_some(),
                "{volume}"
            );
        }
    }
    // A password has no default: nobody shall have the one that stands here.
    assert!(!read("compose.yaml").contains("PASSWORD:-"));
}

const UNITS: [&str; 2] = ["slipway.service", "slipway-worker.service"];

/// The values of a key of a unit.
fn values(unit: &str, key: &str) -> Vec<String> {
    let lines = unit.lines().filter_map(|line| line.strip_prefix(key));
    lines
        .filter_map(|rest| rest.strip_prefix('='))
        .map(str::to_owned)
        .collect()
}

#[test]
fn units_call_the_program_as_it_is() {
    for name in UNITS {
        let unit = read(name);
        let variables: Vec<String> = values(&unit, "Environment")
            .iter()
            .filter_map(|value| Some(value.split_once('=')?.0.to_owned()))
            .filter(|name| name != "TMPDIR")
            .collect();
        let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
        let calls = values(&unit, "ExecStart");
        let [call] = calls.as_slice() else {
            panic!("{name} starts {} things", calls.len())
        };
        let words: Vec<&str> = call.split_whitespace().collect();
        assert_eq!(words[0], "/usr/local/bin/slipway");
        understood(&words[1..], &variables);
    }
}

#[test]
fn scripts_and_their_temporary_files_outlive_a_unit_that_stops() {
    for name in UNITS {
        let unit = read(name);
        assert_eq!(values(&unit, "KillMode"), ["process"], "{name}");
        // Those of a private /tmp do not, and a dynamic user has no other.
        let kept = values(&unit, "CacheDirectory");
        assert_eq!(kept, ["slipway"], "{name}");
        let scratch = format!("TMPDIR=/var/cache/{}", kept[0]);
        assert!(values(&unit, "Environment").contains(&scratch), "{name}");
    }
}

#[test]
fn systemd_understands_the_units() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for name in UNITS {
        // The program need not be installed for its unit to be right.
        let unit = read(name).replace("/usr/local/bin/slipway", "/bin/true");
        let path = directory.path().join(name);
        std::fs::write(&path, unit).unwrap();
        paths.push(path);
    }
    let judged = std::process::Command::new("systemd-analyze")
        .arg("verify")
        .args(&paths)
        .output();
    let Ok(judged) = judged else {
        if let Some(file) = std::env::var_os("SLIPWAY_SKIPS") {
            let mut file = std::fs::OpenOptions::new().append(true).open(file).unwrap();
            let reason = "not possible here: systemd-analyze is not installed";
            writeln!(file, "systemd_understands_the_units: {reason}").unwrap();
        }
        return;
    };
    // Other units of this machine may have faults of their own.
    let said = String::from_utf8_lossy(&judged.stderr);
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("slipway"))
        .collect();
    assert_eq!(ours, [""; 0]);
}
