//! What `--help` says, verb by verb.

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
              simulate    Rehearse a manifest in a simulated world
              task        Read the log of a task, retry it, cancel it
              pool        Scale a pool
              machine     Replace a machine
              cluster     Pause a cluster, let it go on
              intent      List and withdraw wishes outside the manifest
              completion  Write a completion script for a shell
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
                  --project <NAME>     Whose things
              -o, --output <FORMAT>    How to show the answer [possible values: table, json, yaml]"#]],
    );
}

#[test]
fn the_help_of_plan() {
    check(
        "plan",
        &expect![[r"
        Show all that would follow if a manifest were applied; touch nothing
        Usage: slipway plan [OPTIONS] --file <FILE>
        Options:
          -f, --file <FILE>            The manifest; `-` reads standard input
              --allow-blast <PERCENT>  Allow the removal of this share of machines at once
          -h, --help                   Print help (see more with '--help')
        Example:
          slipway plan -f examples/hello.yaml"]],
    );
}

#[test]
fn the_help_of_apply() {
    check(
        "apply",
        &expect![[r"
        Declare a manifest; the server does what it takes
        Usage: slipway apply [OPTIONS] --file <FILE>
        Options:
          -f, --file <FILE>            The manifest; `-` reads standard input
              --wait                   Wait until everything is as declared
              --timeout <TIME>         Wait no longer than this, e.g. 90s, 30m, 2h
              --plan <ID>              Accept only what this journey has shown
              --allow-blast <PERCENT>  Allow the removal of this share of machines at once
          -h, --help                   Print help (see more with '--help')
        Examples:
          slipway apply -f examples/hello.yaml --wait
          slipway plan -f hello.yaml && slipway apply -f hello.yaml --plan plan-0c5w3k9qj2m4x"]],
    );
}

#[test]
fn the_help_of_delete() {
    check(
        "delete",
        &expect![[r#"
            Remove a manifest with all its clusters
            Usage: slipway delete [OPTIONS] <-f FILE | KIND NAME>
            Arguments:
              [KIND]  The kind of thing [possible values: manifest]
              [NAME]  Its name
            Options:
              -f, --file <FILE>     The manifest; `-` reads standard input
              -y, --yes             Do not ask
                  --wait            Wait until everything is gone
                  --timeout <TIME>  Wait no longer than this, e.g. 90s, 30m, 2h
              -h, --help            Print help (see more with '--help')
            Examples:
              slipway delete manifest hello --yes --wait
              slipway delete -f examples/hello.yaml"#]],
    );
}

#[test]
fn the_help_of_simulate() {
    check(
        "simulate",
        &expect![[r#"
            Rehearse a manifest in a simulated world
            Usage: slipway simulate [OPTIONS] --file <FILE>
            Options:
              -f, --file <FILE>       The manifest; `-` reads standard input
                  --seed <N>          The same number tells the same story
                  --faults <PROFILE>  Which faults to let loose [possible values: none, flaky, slow, lossy,
                                      crashes, storm]
              -h, --help              Print help (see more with '--help')
            Example:
              slipway simulate -f examples/hello.yaml --seed 7 --faults storm"#]],
    );
}

#[test]
fn the_help_of_get() {
    check(
        "get",
        &expect![[r"
        List things, or show one
        Usage: slipway get [OPTIONS] <KIND> [NAME]
        Arguments:
          <KIND>  The kind of thing [possible values: manifest, cluster, machine, task, intent, event]
          [NAME]  Only this one, by name or id
        Options:
              --manifest <NAME>  Only clusters of this manifest
              --cluster <NAME>   Only machines or tasks of this cluster
              --state <STATE>    Only clusters or tasks that stand so
          -h, --help             Print help (see more with '--help')
        Examples:
          slipway get clusters --state error
          slipway get machines --cluster edge -o json"]],
    );
}

#[test]
fn the_help_of_describe() {
    check(
        "describe",
        &expect![[r#"
            Show all that is known of one thing
            Usage: slipway describe [OPTIONS] <KIND> <NAME>
            Arguments:
              <KIND>  The kind of thing [possible values: manifest, cluster, machine, task, intent]
              <NAME>  Its name or id
            Options:
              -h, --help  Print help (see more with '--help')
            Example:
              slipway describe cluster edge"#]],
    );
}

#[test]
fn the_help_of_why() {
    check(
        "why",
        &expect![[r#"
            Show why something is as it is, and what would change it
            Usage: slipway why [OPTIONS] <KIND> <NAME>
            Arguments:
              <KIND>  The kind of thing [possible values: manifest, cluster, machine, task]
              <NAME>  Its name or id
            Options:
              -h, --help  Print help (see more with '--help')
            Examples:
              slipway why cluster edge
              slipway why machine edge-compute-02"#]],
    );
}

#[test]
fn the_help_of_watch() {
    check(
        "watch",
        &expect![[r"
        Show what happens, as it happens
        Usage: slipway watch [OPTIONS]
        Options:
              --after <ID>  Begin after this event instead of now
          -h, --help        Print help (see more with '--help')
        Example:
          slipway watch -o json | jq .message"]],
    );
}

#[test]
fn the_help_of_history() {
    check(
        "history",
        &expect![[r#"
            List the accepted changes of a manifest or a cluster
            Usage: slipway history [OPTIONS] <KIND> <NAME>
            Arguments:
              <KIND>  The kind of thing [possible values: manifest, cluster]
              <NAME>  Its name
            Options:
              -h, --help  Print help (see more with '--help')
            Example:
              slipway history manifest hello"#]],
    );
}

#[test]
fn the_help_of_diff() {
    check(
        "diff",
        &expect![[r#"
            Compare two accepted changes of a manifest or a cluster
            Usage: slipway diff [OPTIONS] <KIND> <NAME>
            Arguments:
              <KIND>  The kind of thing [possible values: manifest, cluster]
              <NAME>  Its name
            Options:
                  --from <GENERATION>  The older generation [default: the one before --to]
                  --to <GENERATION>    The newer generation [default: the newest]
              -h, --help               Print help (see more with '--help')
            Examples:
              slipway diff manifest hello
              slipway diff cluster edge --from 2 --to 5"#]],
    );
}

#[test]
fn the_help_of_task_log() {
    check(
        "task log",
        &expect![[r"
        Show what a task wrote
        Usage: slipway task log [OPTIONS] <ID>
        Arguments:
          <ID>  The id of the task
        Options:
              --follow        Go on until the task has ended, also when the connection breaks
              --after <LINE>  Begin after this line instead of with the first
          -h, --help          Print help (see more with '--help')
        Examples:
          slipway task log task-0c5w3k9qj2m4x --follow
          slipway task log task-0c5w3k9qj2m4x --after 200 -o json"]],
    );
}

#[test]
fn the_help_of_task_retry() {
    check(
        "task retry",
        &expect![[r"
        Ask for another attempt, now
        Usage: slipway task retry [OPTIONS] <ID>
        Arguments:
          <ID>  The id of the task
        Options:
              --reason <TEXT>   Why; others will read it
              --expires <TIME>  End the wish after this time, e.g. 90s, 30m, 2h
          -h, --help            Print help (see more with '--help')
        Example:
          slipway task retry task-0c5w3k9qj2m4x --reason 'quota raised'"]],
    );
}

#[test]
fn the_help_of_pool_scale() {
    check(
        "pool scale",
        &expect![[r"
        Give a dynamic pool another size, until its manifest names another number
        Usage: slipway pool scale [OPTIONS] <CLUSTER/POOL> <COUNT>
        Arguments:
          <CLUSTER/POOL>  The pool, of which cluster
          <COUNT>         How many machines
        Options:
              --reason <TEXT>   Why; others will read it
              --expires <TIME>  End the wish after this time, e.g. 90s, 30m, 2h
          -h, --help            Print help (see more with '--help')
        Example:
          slipway pool scale edge/compute 5 --reason 'sale on Friday'"]],
    );
}

#[test]
fn the_help_of_machine_replace() {
    check(
        "machine replace",
        &expect![[r"
        Make a new machine, then remove this one with its disk
        Usage: slipway machine replace [OPTIONS] <NAME>
        Arguments:
          <NAME>  The name of the machine
        Options:
              --reason <TEXT>   Why; others will read it
              --expires <TIME>  End the wish after this time, e.g. 90s, 30m, 2h
          -h, --help            Print help (see more with '--help')
        Example:
          slipway machine replace edge-compute-02 --reason 'disk is failing'"]],
    );
}

#[test]
fn the_help_of_cluster_pause() {
    check(
        "cluster pause",
        &expect![[r"
        Begin nothing new; what runs is finished
        Usage: slipway cluster pause [OPTIONS] <NAME>
        Arguments:
          <NAME>  The name of the cluster
        Options:
              --reason <TEXT>   Why; others will read it
              --expires <TIME>  End the wish after this time, e.g. 90s, 30m, 2h
          -h, --help            Print help (see more with '--help')
        Example:
          slipway cluster pause edge --reason 'audit until noon'"]],
    );
}

#[test]
fn the_help_of_cluster_resume() {
    check(
        "cluster resume",
        &expect![[r"
        Go on, by withdrawing every pause
        Usage: slipway cluster resume [OPTIONS] <NAME>
        Arguments:
          <NAME>  The name of the cluster
        Options:
          -h, --help  Print help (see more with '--help')
        Example:
          slipway cluster resume edge"]],
    );
}

#[test]
fn the_help_of_intent() {
    check(
        "intent",
        &expect![[r"
        List and withdraw wishes outside the manifest
        Usage: slipway intent [OPTIONS] <COMMAND>
        Commands:
          list      List the wishes that count
          withdraw  Take a wish back
          help      Print this message or the help of the given subcommand(s)
        Options:
          -h, --help  Print help (see more with '--help')"]],
    );
}

#[test]
fn the_help_of_intent_withdraw() {
    check(
        "intent withdraw",
        &expect![[r#"
            Take a wish back
            Usage: slipway intent withdraw [OPTIONS] <ID>
            Arguments:
              <ID>  The id of the intent
            Options:
                  --allow-blast <PERCENT>  Allow the removal of this share of machines at once
              -h, --help                   Print help (see more with '--help')
            Example:
              slipway intent withdraw intent-0c5w3k9qj2m4x"#]],
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
