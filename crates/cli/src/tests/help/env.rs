//! The help of what is done with environments.

use super::check;
use expect_test::expect;

#[test]
fn the_help_of_env() {
    check(
        "env",
        &expect![[r#"
            Create environments, change them, archive them, look at them
            Usage: slipway env [OPTIONS] <COMMAND>
            Commands:
              create      Create an environment
              update      Change an environment: settings, labels, owner, notes
              list        List environments
              info        Show all that is known of one environment
              keys        List the settings that can be edited, and what each may be
              status      Show how an environment is
              logs        Show what the scripts of an action printed
              archive     Have an environment rest: nothing runs, and what it has stored is kept
              restore     Bring an environment back from the archive [alias: wake]
              cleanup     Remove an environment with all that it has stored
              delete      Forget an environment, and touch nothing of it
              cancel      End what is being done to an environment
              redeploy    Have the configuration of an earlier action count again
              clone       Create another environment with the same edits
              extend      Say how long an environment may be up, from now on
              wait        Wait until nothing is under way with an environment
              deliveries  See which messages to others have arrived, and send them again
              settings    Say how environments of the project are made
              help        Print this message or the help of the given subcommand(s)
            Options:
              -h, --help  Print help (see more with '--help')"#]],
    );
}

#[test]
fn the_help_of_env_keys() {
    check(
        "env keys",
        &expect![[r#"
        List the settings that can be edited, and what each may be
        Usage: slipway env keys [OPTIONS] [NAME]
        Arguments:
          [NAME]  The environment, as which it is deployed [default: one that nobody edited]
        Options:
              --level <LEVEL>  Which of the two configurations [default: application] [possible values:
                               application, deployment]
          -h, --help           Print help (see more with '--help')
        Examples:
          slipway env keys
          slipway env keys orange --level deployment
          slipway env keys -o json | jq -r '.settings[] | select(.required) | .key'
        What is known of settings comes from the schema of the chart, where environments are deployed by
        Helm. Control scripts tell only their names."#]],
    );
}

#[test]
fn the_help_of_env_create() {
    check(
        "env create",
        &expect![[r#"
        Create an environment
        Usage: slipway env create [OPTIONS] [NAME]
        Arguments:
          [NAME]  The name of the environment
        Options:
          -n, --name <NAME>
                  The same, as an option
          -t, --tag <TAG>
                  The version of the application: sets what the project says is its tag
          -e, --set-app-config <KEY=VALUE>
                  Set what the application is given; the value begins behind the first `=`
          -o, --output <KEY=VALUE|FORMAT>
                  With a `=`, set how it is deployed; without, how to show the answer (table, json, yaml)
              --remove-app <KEY>
                  Leave out what the application would be given by default
              --remove-deployment <KEY>
                  Leave out of how it is deployed what would be there by default
              --secret <KEY[=@FILE]>
                  Set what the application is given and nobody sees; asked for, or piped in, or in a file
              --secret-deployment <KEY[=@FILE]>
                  The same of how it is deployed
          -l, --label <NAME=VALUE>
                  What it is found by; NAME- removes one
              --owner <TEXT>
                  Whose it is
              --notes <TEXT>
                  What else there is to know
              --protect
                  Keep it: it is not archived or removed unless that is forced
              --no-protect
                  Keep it no longer
              --expires <TIME>
                  Archive it after this time, e.g. 90m, 8h, 7d
              --from-file <FILE>
                  Read what is asked from this file too: YAML with the fields of the API; `-` reads standard
                  input
              --dry-run
                  Show what it would be configured with, and change nothing
              --wait
                  Wait until it is done, and show what scripts print
              --timeout <TIME>
                  Wait no longer than this, e.g. 90s, 30m, 2h
          -h, --help
                  Print help (see more with '--help')
        Examples:
          slipway env create orange -t v1.2 -e replicas=2 --wait
          slipway env create orange -o chart_version=12.1.0 --secret db.password --expires 7d
          slipway env create --from-file orange.yaml -o json
        -e sets what the application is given, -o with a `=` how it is deployed; -o json, yaml or table is
        how to show the answer, as everywhere. A secret value never stands on the command line: it is asked
        for, unseen, or read from standard input or from a file."#]],
    );
}

#[test]
fn the_help_of_env_update() {
    check(
        "env update",
        &expect![[r#"
        Change an environment: settings, labels, owner, notes
        Usage: slipway env update [OPTIONS] [NAME]
        Arguments:
          [NAME]  The name of the environment
        Options:
          -n, --name <NAME>
                  The same, as an option
          -t, --tag <TAG>
                  The version of the application: sets what the project says is its tag
          -e, --set-app-config <KEY=VALUE>
                  Set what the application is given; the value begins behind the first `=`
          -o, --output <KEY=VALUE|FORMAT>
                  With a `=`, set how it is deployed; without, how to show the answer (table, json, yaml)
              --remove-app <KEY>
                  Leave out what the application would be given by default
              --remove-deployment <KEY>
                  Leave out of how it is deployed what would be there by default
              --secret <KEY[=@FILE]>
                  Set what the application is given and nobody sees; asked for, or piped in, or in a file
              --secret-deployment <KEY[=@FILE]>
                  The same of how it is deployed
          -E, --unset-app-config <KEY>
                  Forget what was edited of what the application is given
          -O, --unset-deployment-config <KEY>
                  Forget what was edited of how it is deployed
          -l, --label <NAME=VALUE>
                  What it is found by; NAME- removes one
              --owner <TEXT>
                  Whose it is
              --notes <TEXT>
                  What else there is to know
              --protect
                  Keep it: it is not archived or removed unless that is forced
              --no-protect
                  Keep it no longer
              --replace
                  Put this in place of all that there is, instead of changing it
              --generation <N>
                  Refuse it unless the environment has this generation
              --from-file <FILE>
                  Read what is asked from this file too: YAML with the fields of the API; `-` reads standard
                  input
              --dry-run
                  Show what it would be configured with, and change nothing
              --wait
                  Wait until it is done, and show what scripts print
              --timeout <TIME>
                  Wait no longer than this, e.g. 90s, 30m, 2h
          -h, --help
                  Print help (see more with '--help')
        Examples:
          slipway env update orange -t v1.3 --wait
          slipway env update orange -e replicas=3 -E debug -O chart_version
          slipway env update orange --remove-app ingress.enabled --label team=web --dry-run
        -E and -O forget what was edited, so that the default counts again; --remove-app and
        --remove-deployment leave a default out. Everything happens at once or not at all. What says nothing
        of settings runs no script."#]],
    );
}

#[test]
fn the_help_of_env_logs() {
    check(
        "env logs",
        &expect![[r#"
        Show what the scripts of an action printed
        Usage: slipway env logs [OPTIONS] [NAME]
        Arguments:
          [NAME]  The name of the environment
        Options:
          -n, --name <NAME>        The same, as an option
          -a, --action <ID>        The action [default: the newest]
          -l, --log-type <STREAM>  Which of the two streams [default: all] [possible values: stdout, stderr,
                                   all]
              --follow             Go on until the action has ended, also when the connection breaks
          -h, --help               Print help (see more with '--help')
        Examples:
          slipway env logs orange --follow
          slipway env logs orange --action action-0c5w3k9qj2m4x --log-type stderr"#]],
    );
}

#[test]
fn the_help_of_env_wait() {
    check(
        "env wait",
        &expect![[r#"
        Wait until nothing is under way with an environment
        Usage: slipway env wait [OPTIONS] [NAME]
        Arguments:
          [NAME]  The name of the environment
        Options:
          -n, --name <NAME>     The same, as an option
              --for <WHAT>      What it is waited for to be [default: running or archived] [possible values:
                                running, archived, gone, settled]
              --timeout <TIME>  Wait no longer than this, e.g. 90s, 30m, 2h
          -h, --help            Print help (see more with '--help')
        Examples:
          slipway env wait orange
          slipway env wait orange --for archived --timeout 10m"#]],
    );
}
