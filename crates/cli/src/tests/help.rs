//! What `--help` says, verb by verb.

mod access;
mod acting;
mod declaring;
mod env;
mod looking;

use super::Program;
use clap::CommandFactory;
use expect_test::{Expect, expect};

/// The short help of a verb, without the options that all of them share.
#[track_caller]
fn check(verb: &str, expected: &Expect) {
    let mut command = Program::command().term_width(100);
    command.build();
    let mut found = &mut command;
    for name in verb.split_whitespace() {
        found = found.find_subcommand_mut(name).unwrap();
    }
    let help = found.render_help().to_string();
    let shared = help.find("Global options:").filter(|_| !verb.is_empty());
    let help = match shared {
        None => help,
        Some(at) => {
            let rest = &help[at..];
            let after = rest.find("\n\n").map_or("", |end| &rest[end + 2..]);
            format!("{}{after}", &help[..at])
        }
    };
    let lines: Vec<_> = help
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn the_program() {
    check(
        "",
        &expect![[r#"
            Builds Kubernetes and looks after it for life
            Usage: slipway [OPTIONS] <COMMAND>
            Commands:
              plan        Show all that would follow if a manifest were applied; touch nothing
              apply       Declare a manifest; the server does what it takes
              delete      Remove a manifest with all its clusters
              get         List things, or show one
              describe    Show all that is known of one thing
              why         Show why something is as it is, and what would change it
              watch       Show what happens, as it happens
              history     List the accepted changes of a manifest or a cluster
              diff        Compare two accepted changes of a manifest or a cluster
              explain     Say what a field of a manifest is for
              kubeconfig  Print what opens the API of a cluster, for kubectl
              ssh         Enter a machine, or run a command on it
              simulate    Rehearse a manifest in a simulated world
              task        Read the log of a task, retry it, cancel it
              pool        Scale a pool, or make its machines from newer modules
              machine     Replace a machine, or have its pool do without it
              cluster     Pause a cluster, let it go on
              intent      List and withdraw wishes outside the manifest
              secret      Set secrets, list them, change the keys they are sealed with
              project     Make and remove projects, and say how much they may have
              token       Make, list and revoke tokens
              audit       List, verify and export what was done
              completion  Write a completion script for a shell
              env         Create environments, change them, archive them, look at them
              help        Print this message or the help of the given subcommand(s)
            Options:
              -h, --help  Print help (see more with '--help')
            Global options:
                  --server <URL>       Where the server is [env: SLIPWAY_SERVER] [default:
                                       http://127.0.0.1:7077]
                  --token-file <FILE>  A file with the token of who asks [default: admin.token in the data
                                       directory]
                  --data-dir <DIR>     Where the server on this machine keeps its data [default: the user's
                                       state directory] [env: SLIPWAY_DATA]
                  --project <NAME>     Whose things [default: default; of tokens and audit, all]
              -o, --output <FORMAT>    How to show the answer [possible values: table, json, yaml]"#]],
    );
}

#[test]
fn the_help_of_completion() {
    check(
        "completion",
        &expect![[r"
        Write a completion script for a shell
        Usage: slipway completion [OPTIONS] <SHELL>
        Arguments:
          <SHELL>  The shell [possible values: bash, elvish, fish, powershell, zsh]
        Options:
          -h, --help  Print help (see more with '--help')
        Example:
          source <(slipway completion bash)"]],
    );
}

#[test]
fn every_verb_has_an_example() {
    fn leaves(command: &clap::Command, path: &str) {
        let mut below = command.get_subcommands().peekable();
        if below.peek().is_none() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains(&format!("slipway {path}").trim_end().to_owned()),
                "{path}: {help}"
            );
        }
        for verb in below {
            leaves(verb, format!("{path} {}", verb.get_name()).trim_start());
        }
    }
    leaves(&Program::command(), "");
}

#[test]
fn a_token_cannot_be_written_on_the_command_line() {
    let tokens = Program::command()
        .get_arguments()
        .filter(|option| option.get_id() == "token")
        .count();
    assert_eq!(tokens, 0);
}
