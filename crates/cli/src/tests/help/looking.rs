//! The help of what only looks.

use super::check;
use expect_test::expect;

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
fn the_help_of_kubeconfig() {
    check(
        "kubeconfig",
        &expect![[r"
        Print what opens the API of a cluster, for kubectl
        Usage: slipway kubeconfig [OPTIONS] <CLUSTER>
        Arguments:
          <CLUSTER>  The cluster
        Options:
              --to <FILE>  Write it to this file instead of standard output
          -h, --help       Print help (see more with '--help')
        Examples:
          slipway kubeconfig edge --to edge.conf
          kubectl --kubeconfig edge.conf get nodes
        Whoever has it is an administrator of the cluster: a file is readable by you alone. It asks at the
        address that the API has now; take it again when the API has moved."]],
    );
}

#[test]
fn the_help_of_explain() {
    check(
        "explain",
        &expect![[r#"
        Say what a field of a manifest is for
        Usage: slipway explain [OPTIONS] [FIELD]
        Arguments:
          [FIELD]  Where it stands, or how that ends; the top of the manifest without it
        Options:
              --schema  Print the JSON Schema of manifests, for editors
          -h, --help    Print help (see more with '--help')
        Examples:
          slipway explain spec.nodePools.dynamic
          slipway explain upgradeGates
          slipway explain --schema > manifest.json
        An editor that knows JSON Schemas completes manifests that begin with
          # yaml-language-server: $schema=manifest.json"#]],
    );
}
