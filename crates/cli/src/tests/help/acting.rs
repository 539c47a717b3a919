//! The help of what acts on a single thing.

use super::check;
use expect_test::expect;

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
        Give a dynamic pool another size, until its manifest names another count, or another is wished
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
        &expect![[r#"
            Make a new machine, then remove this one with its disk
            Usage: slipway machine replace [OPTIONS] <NAME>
            Arguments:
              <NAME>  The name of the machine, or its id
            Options:
                  --reason <TEXT>   Why; others will read it
                  --expires <TIME>  End the wish after this time, e.g. 90s, 30m, 2h
              -h, --help            Print help (see more with '--help')
            Example:
              slipway machine replace edge-compute-02 --reason 'disk is failing'"#]],
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
        &expect![[r#"
            List and withdraw wishes outside the manifest
            Usage: slipway intent [OPTIONS] <COMMAND>
            Commands:
              list      List the wishes that count
              withdraw  Take a wish back
              help      Print this message or the help of the given subcommand(s)
            Options:
              -h, --help  Print help (see more with '--help')
            Examples:
              slipway intent list
              slipway intent withdraw intent-0c5w3k9qj2m4x"#]],
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
                  --allow-data-loss        Allow machines to go together with data that their cluster keeps on
                                           them
              -h, --help                   Print help (see more with '--help')
            Example:
              slipway intent withdraw intent-0c5w3k9qj2m4x"#]],
    );
}

#[test]
fn the_help_of_ssh() {
    check(
        "ssh",
        &expect![[r#"
        Enter a machine, or run a command on it
        Usage: slipway ssh [OPTIONS] <MACHINE> [-- <COMMAND>...]
        Arguments:
          <MACHINE>     The machine
          [COMMAND]...  What to run there instead of a shell
        Options:
              --option <LINE>  An option for ssh, as a line of its configuration; may be given several times
              --keep <DIR>     Do not enter: write what ssh, scp and rsync need to this new directory,
                               readable by you alone
          -h, --help           Print help (see more with '--help')
        Examples:
          slipway ssh edge-compute-02
          slipway ssh edge-compute-02 -- journalctl -u kubelet -n 50
          slipway ssh edge-brain-01 --option 'LocalForward 8080 localhost:80'
          slipway ssh edge-compute-02 --keep way && scp -F way/config core.gz edge-compute-02:/tmp/
        The server lets a key that is made for this one visit in for five minutes and carries what is said;
        only the machine can read it. Who entered which machine is audited. The exit status is that of ssh."#]],
    );
}
