//! `slipway doctor`: looks whether all is well, and says how to mend what is not.
//!
//! Looking (`look.rs`) and judging (`judge.rs`) are apart: what was seen is plain data, and the
//! judgement a function of it. A server that runs is not disturbed: nothing is locked, written
//! or migrated, and what only the server can know is asked of the server.

mod judge;
mod look;
mod seen;
mod show;

use crate::roles::Options;
use api::Exit;
use clap::Args as _;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Look whether everything that a server needs is as it should be, and say how to mend the rest
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway doctor
  sudo -u slipway slipway doctor --data-dir /var/lib/slipway
  slipway doctor --config /etc/slipway/slipway.yaml -o json

Give it the options that the server has, as the user who runs the server. A server that is running
is asked where it listens, unless --server names another address, and is not disturbed. Ends with 1 when something is wrong; notes are no fault.")]
pub(crate) struct Arguments {
    /// Where the server listens, or would
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SLIPWAY_LISTEN",
        default_value = "127.0.0.1:7077"
    )]
    listen: SocketAddr,
    #[command(flatten)]
    options: Options,
}

/// Looks, judges and tells.
pub(crate) async fn run(arguments: Arguments, global: &cli::Global) -> anyhow::Result<ExitCode> {
    let asked = asked(arguments.listen, global);
    let seen = look::look(&arguments.options, arguments.listen, &asked).await?;
    let findings = judge::judge(&seen);
    let report = show::Report::of(&findings);
    let exit = if report.good {
        Exit::Done
    } else {
        Exit::Failed
    };
    Ok(cli::show(global, &report, &show::picture(&findings), exit))
}

/// Whom to ask: the server that was named, else the one that listens, or would, on this machine.
fn asked(listen: SocketAddr, global: &cli::Global) -> cli::Global {
    let mut asked = global.clone();
    if listen.port() != 0 && is_default(&asked.server) {
        asked.server = format!("http://{}", look::reachable(listen));
    }
    asked
}

/// Whether an address is the one that is asked when nobody names one.
fn is_default(server: &str) -> bool {
    let command = cli::Global::augment_args(clap::Command::new("doctor"));
    let mut options = command.get_arguments();
    let option = options.find(|option| option.get_id() == "server");
    option.is_some_and(|option| {
        option
            .get_default_values()
            .iter()
            .any(|value| value == server)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        global: cli::Global,
    }

    #[test]
    fn a_server_is_asked_where_it_listens_unless_another_is_named() {
        let ask = |listen: &str, words: &[&str]| {
            let line = ["doctor"].iter().chain(words);
            let global = Line::try_parse_from(line).unwrap().global;
            asked(listen.parse().unwrap(), &global).server
        };
        assert_eq!(ask("127.0.0.1:7077", &[]), "http://127.0.0.1:7077");
        assert_eq!(ask("127.0.0.1:7901", &[]), "http://127.0.0.1:7901");
        assert_eq!(ask("0.0.0.0:7901", &[]), "http://127.0.0.1:7901");
        assert_eq!(ask("[::]:7901", &[]), "http://[::1]:7901");
        assert_eq!(ask("127.0.0.1:0", &[]), "http://127.0.0.1:7077");
        let named = ["--server", "http://10.0.0.1:80"];
        assert_eq!(ask("127.0.0.1:7901", &named), "http://10.0.0.1:80");
    }
}
