//! The help of what declares, and of what shows it beforehand.

use super::check;
use expect_test::expect;

#[test]
fn the_help_of_plan() {
    check(
        "plan",
        &expect![[r#"
            Show all that would follow if a manifest were applied; touch nothing
            Usage: slipway plan [OPTIONS] --file <FILE>
            Options:
              -f, --file <FILE>            The manifest; `-` reads standard input
                  --allow-blast <PERCENT>  Allow the removal of this share of machines at once
                  --allow-data-loss        Allow machines to go together with data that their cluster keeps on
                                           them
              -h, --help                   Print help (see more with '--help')
            Example:
              slipway plan -f examples/hello.yaml"#]],
    );
}

#[test]
fn the_help_of_apply() {
    check(
        "apply",
        &expect![[r#"
            Declare a manifest; the server does what it takes
            Usage: slipway apply [OPTIONS] --file <FILE>
            Options:
              -f, --file <FILE>            The manifest; `-` reads standard input
                  --wait                   Wait until everything is as declared
                  --timeout <TIME>         Wait no longer than this, e.g. 90s, 30m, 2h
                  --plan <ID>              Accept only what this journey has shown
                  --allow-blast <PERCENT>  Allow the removal of this share of machines at once
                  --allow-data-loss        Allow machines to go together with data that their cluster keeps on
                                           them
              -h, --help                   Print help (see more with '--help')
            Examples:
              slipway apply -f examples/hello.yaml --wait
              slipway plan -f hello.yaml && slipway apply -f hello.yaml --plan plan-0c5w3k9qj2m4x"#]],
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
