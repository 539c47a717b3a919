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
              secret      Set secrets, list them, change the keys they are sealed with
              project     Make and remove projects, and say how much they may have
              token       Make, list and revoke tokens
              audit       List, verify and export what was done
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
                  --project <NAME>     Whose things [default: default; of tokens and audit, all]
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
        &expect![[r#"
            List things, or show one
            Usage: slipway get [OPTIONS] <KIND> [NAME]
            Arguments:
              <KIND>  The kind of thing [possible values: manifest, cluster, machine, task, intent, event,
                      project]
              [NAME]  Only this one, by name or id
            Options:
                  --manifest <NAME>  Only clusters of this manifest
                  --cluster <NAME>   Only machines or tasks of this cluster
                  --state <STATE>    Only clusters or tasks that stand so
              -h, --help             Print help (see more with '--help')
            Examples:
              slipway get clusters --state error
              slipway get machines --cluster edge -o json"#]],
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
fn the_help_of_project() {
    check(
        "project",
        &expect![[r#"
            Make and remove projects, and say how much they may have
            Usage: slipway project [OPTIONS] <COMMAND>
            Commands:
              list    List the projects, as `slipway get projects` does
              create  Make a project
              quota   Change how much a project may have
              delete  Remove a project that has nothing left
              help    Print this message or the help of the given subcommand(s)
            Options:
              -h, --help  Print help (see more with '--help')"#]],
    );
}

#[test]
fn the_help_of_project_create() {
    check(
        "project create",
        &expect![[r#"
            Make a project
            Usage: slipway project create [OPTIONS] <NAME>
            Arguments:
              <NAME>  What people call it
            Options:
                  --clusters <N>      So many clusters, or `none` for no limit
                  --machines <N>      So many machines, of all clusters together, or `none`
                  --environments <N>  So many environments, or `none`
              -h, --help              Print help (see more with '--help')
            Examples:
              slipway project create lab
              slipway project create lab --clusters 5 --machines 50"#]],
    );
}

#[test]
fn the_help_of_project_quota() {
    check(
        "project quota",
        &expect![[r#"
            Change how much a project may have
            Usage: slipway project quota [OPTIONS] <NAME>
            Arguments:
              <NAME>  The name of the project
            Options:
                  --clusters <N>      So many clusters, or `none` for no limit
                  --machines <N>      So many machines, of all clusters together, or `none`
                  --environments <N>  So many environments, or `none`
              -h, --help              Print help (see more with '--help')
            Examples:
              slipway project quota lab --machines 100
              slipway project quota lab --clusters none"#]],
    );
}

#[test]
fn the_help_of_project_delete() {
    check(
        "project delete",
        &expect![[r#"
            Remove a project that has nothing left
            Usage: slipway project delete [OPTIONS] <NAME>
            Arguments:
              <NAME>  The name of the project
            Options:
              -h, --help  Print help (see more with '--help')
            Example:
              slipway project delete lab"#]],
    );
}

#[test]
fn the_help_of_token() {
    check(
        "token",
        &expect![[r#"
            Make, list and revoke tokens
            Usage: slipway token [OPTIONS] <COMMAND>
            Commands:
              create  Make a token; it is printed once and never again
              list    List the tokens that were made, with what became of them
              revoke  End a token for good
              help    Print this message or the help of the given subcommand(s)
            Options:
              -h, --help  Print help (see more with '--help')"#]],
    );
}

#[test]
fn the_help_of_token_create() {
    check(
        "token create",
        &expect![[r#"
            Make a token; it is printed once and never again
            Usage: slipway token create [OPTIONS] <NAME>
            Arguments:
              <NAME>  What its holder is called, in audit and history
            Options:
                  --role <ROLE>           What its holder may do [default: viewer] [possible values: viewer,
                                          user, operator, admin]
                  --project-scope <NAME>  The project it is good for [default: that of --project]
                  --all-projects          Good for all projects, also for those to come
                  --expires <TIME>        End it after this time, e.g. 12h, 30d [default: never]
              -h, --help                  Print help (see more with '--help')
            Examples:
              slipway token create ci --role user --expires 30d > ci.token
              slipway token create ada --role operator --project-scope lab
              slipway token create root --role admin --all-projects
            Each role may all that the one before it may: a viewer reads; a user declares, plans, rehearses
            and sets secrets; an operator scales, replaces, retries, cancels, pauses and deletes; an admin
            decides about projects, tokens, keys, audit and backups."#]],
    );
}

#[test]
fn the_help_of_token_list() {
    check(
        "token list",
        &expect![[r#"
            List the tokens that were made, with what became of them
            Usage: slipway token list [OPTIONS]
            Options:
              -h, --help  Print help (see more with '--help')
            Examples:
              slipway token list
              slipway token list --project lab -o json"#]],
    );
}

#[test]
fn the_help_of_token_revoke() {
    check(
        "token revoke",
        &expect![[r#"
            End a token for good
            Usage: slipway token revoke [OPTIONS] <ID>
            Arguments:
              <ID>  The id of the token
            Options:
              -h, --help  Print help (see more with '--help')
            Example:
              slipway token revoke token-0c5w3k9qj2m4x"#]],
    );
}

#[test]
fn the_help_of_audit() {
    check(
        "audit",
        &expect![[r#"
            List, verify and export what was done
            Usage: slipway audit [OPTIONS] <COMMAND>
            Commands:
              list    List what was done, newest first
              verify  Walk along the chain and name the first entry that is not as it was written
              export  Write the chain as lines of JSON, oldest first
              help    Print this message or the help of the given subcommand(s)
            Options:
              -h, --help  Print help (see more with '--help')"#]],
    );
}

#[test]
fn the_help_of_audit_list() {
    check(
        "audit list",
        &expect![[r#"
            List what was done, newest first
            Usage: slipway audit list [OPTIONS]
            Options:
                  --limit <N>  So many entries at most [default: 100]
              -h, --help       Print help (see more with '--help')
            Examples:
              slipway audit list --limit 20
              slipway audit list --project lab -o json"#]],
    );
}

#[test]
fn the_help_of_audit_verify() {
    check(
        "audit verify",
        &expect![[r#"
            Walk along the chain and name the first entry that is not as it was written
            Usage: slipway audit verify [OPTIONS]
            Options:
                  --file <FILE>  An export; `-` reads standard input
              -h, --help         Print help (see more with '--help')
            Examples:
              slipway audit verify
              slipway audit export --to audit.jsonl && slipway audit verify --file audit.jsonl
            Without --file the server verifies its own chain. With it no server is asked: the digests are
            computed here. Keep the last digest elsewhere: it shows whether the whole chain was written anew."#]],
    );
}

#[test]
fn the_help_of_audit_export() {
    check(
        "audit export",
        &expect![[r#"
            Write the chain as lines of JSON, oldest first
            Usage: slipway audit export [OPTIONS]
            Options:
                  --to <FILE>  The file [default: standard output]
              -h, --help       Print help (see more with '--help')
            Examples:
              slipway audit export --to audit.jsonl
              slipway audit export | jq -r .actor | sort | uniq -c
            With --project only the entries of that project are written: no chain, and not to be verified."#]],
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
fn secret() {
    check(
        "secret",
        &expect![[r#"
        Set secrets, list them, change the keys they are sealed with
        Usage: slipway secret [OPTIONS] <COMMAND>
        Commands:
          set          Set entries of a secret; the others stay
          get-keys     Show which entries a secret has, never their values
          list         List the secrets of the project
          delete       Remove a secret, or some of its entries
          rotate-keys  Seal everything with a new data key, while all goes on
          help         Print this message or the help of the given subcommand(s)
        Options:
          -h, --help  Print help (see more with '--help')"#]],
    );
    check(
        "secret set",
        &expect![[r#"
        Set entries of a secret; the others stay
        Usage: slipway secret set [OPTIONS] <NAME> <KEY[=FILE]>...
        Arguments:
          <NAME>           The name of the secret
          <KEY[=FILE]>...  An entry, and the file with its value
        Options:
          -h, --help  Print help (see more with '--help')
        Examples:
          slipway secret set cloud token
          slipway secret set attic privatekey=/home/me/.ssh/id_ed25519
          pass show cloud | slipway secret set cloud token
        A value never stands on the command line. Without a file it is asked for, unseen, or read
        from standard input; a single line there loses its line end."#]],
    );
    check(
        "secret delete",
        &expect![[r#"
        Remove a secret, or some of its entries
        Usage: slipway secret delete [OPTIONS] <NAME> [KEY]...
        Arguments:
          <NAME>    The name of the secret
          [KEY]...  Only these entries
        Options:
          -y, --yes   Do not ask
          -h, --help  Print help (see more with '--help')
        Examples:
          slipway secret delete cloud --yes
          slipway secret delete cloud token"#]],
    );
    check(
        "secret rotate-keys",
        &expect![[r#"
        Seal everything with a new data key, while all goes on
        Usage: slipway secret rotate-keys [OPTIONS]
        Options:
              --wait  Wait until every value is sealed with the new key
          -h, --help  Print help (see more with '--help')
        Example:
          slipway secret rotate-keys --wait"#]],
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
