//! The help of projects, tokens, audit and secrets.

use super::check;
use expect_test::expect;

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
              -h, --help  Print help (see more with '--help')
            Examples:
              slipway project create lab --clusters 5
              slipway project list"#]],
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
              -h, --help  Print help (see more with '--help')
            Examples:
              slipway token create ci --role user --expires 30d > ci.token
              slipway token list"#]],
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
            and sets secrets; an operator scales, replaces, retries, cancels, pauses, deletes, takes
            kubeconfigs, enters machines, saves and restores etcd; an admin decides about projects, tokens,
            keys, audit and backups."#]],
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
              -h, --help  Print help (see more with '--help')
            Examples:
              slipway audit list --limit 20
              slipway audit verify"#]],
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
              -h, --help  Print help (see more with '--help')
            Examples:
              slipway secret set cloud token < token.txt
              slipway secret list"#]],
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
                  --force  Also values with which a manifest could not open its account any more
              -h, --help   Print help (see more with '--help')
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
              -y, --yes    Do not ask
                  --force  Also where clusters need it: their machines can neither be changed nor removed until
                           it is set again
              -h, --help   Print help (see more with '--help')
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
