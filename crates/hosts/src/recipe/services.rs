//! What a service runs, said once and written for systemd and for our own supervision; and what
//! can be asked of one besides.

use crate::program::{Program, quoted};
use crate::recipe::render;
use std::time::Duration;
use zeroize::Zeroizing;

/// Where our own supervision is, on hosts without systemd. `supervise boot` starts every service
/// again: it is for whatever is PID 1 there.
pub const SUPERVISE: &str = "/usr/local/lib/slipway/supervise";

/// Where it lives.
pub(crate) const DIRECTORY: &str = "/usr/local/lib/slipway";

/// Its text.
pub(crate) const SUPERVISE_TEXT: &str = include_str!("supervise.sh");

/// What a service of ours runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// What it is, in a few words.
    pub description: String,
    /// The program, by its whole path, and its arguments. Everybody on the host can read them.
    pub command: Vec<String>,
    /// The signal that makes it read its settings again, such as `HUP`.
    pub reload: String,
}

impl Definition {
    /// As a unit of systemd.
    pub fn unit(&self) -> String {
        let command: Vec<String> = self.command.iter().map(|word| in_unit(word)).collect();
        format!(
            "[Unit]\nDescription={}\nAfter=network.target\n\
             StartLimitIntervalSec=0\n\n\
             [Service]\nExecStart={}\nExecReload=/bin/kill -s {} $MAINPID\n\
             Restart=always\nRestartSec=1\nTimeoutStopSec=10\nLimitNOFILE=1048576\n\n\
             [Install]\nWantedBy=multi-user.target\n",
            self.description.replace(['\n', '%'], " "),
            command.join(" "),
            self.reload,
        )
    }

    /// As our own supervision reads it.
    pub fn supervised(&self) -> String {
        let command: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        format!(
            "# {}\nsignal={}\nset -- {}\n",
            self.description.replace('\n', " "),
            quoted(&self.reload),
            command.join(" ")
        )
    }
}

/// Quotes a word for a line of a unit, where `%` and `$` mean something, too.
fn in_unit(word: &str) -> String {
    let mut told = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' | '\\' => told.extend(['\\', letter]),
            '%' | '$' => told.extend([letter, letter]),
            '\n' => told.push_str("\\n"),
            other => told.push(other),
        }
    }
    told.push('"');
    told
}

/// What can be asked of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Start it, if it does not run.
    Start,
    /// Stop it until it is started again.
    Stop,
    /// Stop it and start it.
    Restart,
    /// Have it read its settings again.
    Reload,
    /// Only tell how it is.
    Look,
}

/// A program that asks one thing of a service and then tells the facts `service.NAME` (running,
/// starting, stopped or absent) and, for people, its last log lines.
pub fn ask(name: &str, verb: Verb, limit: Duration) -> Program {
    let service = quoted(name);
    let act = match verb {
        Verb::Start => format!(
            "[ \"$sw_now\" = running ] || {{ sw_begin start {service}; sw_changed 'service started'; }}"
        ),
        Verb::Stop => format!(
            "[ \"$sw_now\" != running ] || {{ \"sw_${{sw_init}}_do\" stop {service} || sw_died {service}; \
             sw_changed 'service stopped'; }}"
        ),
        Verb::Restart => format!("sw_begin again {service}\nsw_changed 'service restarted'"),
        Verb::Reload => format!(
            "\"sw_${{sw_init}}_do\" reload {service} || sw_died {service}\nsw_changed 'service reloaded'"
        ),
        Verb::Look => ":".to_owned(),
    };
    let body = format!(
        "\"sw_${{sw_init}}_state\" {service}\n\
         [ \"$sw_now\" != absent ] || sw_fail HOST-015 \"there is no service \"{service}\n\
         {act}\n\
         \"sw_${{sw_init}}_state\" {service}\n\
         sw_fact service.{service} \"$sw_now\"\n\
         \"sw_${{sw_init}}_log\" {service} 20\n"
    );
    Program {
        title: format!("service {name}"),
        text: Zeroizing::new(render::program(render::SERVICES, limit, &body)),
        limit,
    }
}
