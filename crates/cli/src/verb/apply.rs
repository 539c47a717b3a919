//! `slipway apply`: declares a manifest and, if asked, waits until the world is as declared.

use crate::allow::Allowing;
use crate::context::Context;
use crate::error::Error;
use crate::progress::Goal;
use crate::source::Source;
use crate::table::count;
use crate::wait::{Wait, wait};
use api::client::Submit;
use api::{Accepted, Exit};
use std::time::Duration;

/// How many changed clusters are named.
const NAMED_MAX: usize = 5;

/// Arguments of `slipway apply`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    slipway apply -f examples/hello.yaml --wait\n  \
    slipway plan -f hello.yaml && slipway apply -f hello.yaml --plan plan-0c5w3k9qj2m4x")]
pub struct Arguments {
    #[command(flatten)]
    source: Source,

    /// Wait until everything is as declared
    #[arg(long)]
    wait: bool,

    /// Wait no longer than this, e.g. 90s, 30m, 2h
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = span)]
    timeout: Option<Duration>,

    /// Accept only what this journey has shown
    #[arg(long, value_name = "ID", value_parser = api::argument::plan)]
    plan: Option<String>,

    #[command(flatten)]
    allow: Allowing,
}

pub(crate) async fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, Error> {
    let Arguments {
        source,
        wait: waits,
        timeout,
        plan,
        allow,
    } = arguments;
    let text = source.read()?;
    let client = context.client()?;
    let submit = Submit {
        allow: allow.into(),
        plan,
        parent: None,
        key: None,
    };
    let accepted = client.submit(&text, &submit).await?;
    let name = &accepted.manifest;
    for note in &accepted.notes {
        context.out().complain(&format!("note: {note}\n"));
    }
    if !waits {
        context.show(&accepted, |_| told(&accepted))?;
        if !accepted.changed.is_empty() {
            context.out().say(&format!(
                "follow it with `slipway describe manifest {name}`"
            ));
        }
        return Ok(Exit::Done);
    }
    context.out().complain(&told(&accepted));
    let again = if source.file.as_os_str() == "-" {
        format!("slipway describe manifest {name}")
    } else {
        format!("slipway apply -f {} --wait", source.file.display())
    };
    let goal = Goal::new(accepted.generation, false);
    wait(
        context,
        &client,
        Wait {
            manifest: name,
            goal,
            timeout,
            again,
        },
    )
    .await
}

/// What was accepted, in one line.
pub(super) fn told(accepted: &Accepted) -> String {
    let Accepted {
        manifest,
        generation,
        changed,
        unchanged,
        follow: _,
        notes: _,
    } = accepted;
    if changed.is_empty() && *unchanged == 0 {
        return format!(
            "manifest {manifest} generation {generation}: there are no clusters in it\n"
        );
    }
    if changed.is_empty() {
        return format!("manifest {manifest} generation {generation}: nothing changed\n");
    }
    let stay = match unchanged {
        0 => String::new(),
        1 => ", 1 stays as it is".to_owned(),
        many => format!(", {many} stay as they are"),
    };
    let changes = if changed.len() == 1 {
        "changes"
    } else {
        "change"
    };
    let clusters = named(changed);
    format!("manifest {manifest} generation {generation}: {clusters} {changes}{stay}\n")
}

/// Clusters by number and name, the first few of them.
pub(super) fn named(clusters: &[String]) -> String {
    let names = clusters
        .iter()
        .take(NAMED_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = match clusters.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} ({names}{more})", count(clusters.len(), "cluster"))
}

/// Reads a span of time: a number and `s`, `m` or `h`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and s, m, h or d, e.g. 30m".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: u64 = text[..text.len() - unit.len_utf8()]
        .parse()
        .map_err(|_| wrong())?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    // A year is longer than anybody waits, and short enough for every clock.
    let year = 365 * 24 * 3_600;
    let total = number.saturating_mul(seconds);
    if total > year {
        Err("write at most a year".to_owned())
    } else {
        Ok(Duration::from_secs(total))
    }
}

/// Reads after which time something ends, which is not at once.
pub(super) fn lifetime(text: &str) -> Result<Duration, String> {
    match span(text)? {
        Duration::ZERO => Err("write 1s or more, or leave it out".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_numbers_with_a_unit() {
        assert_eq!(span("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(span("30m"), Ok(Duration::from_mins(30)));
        assert_eq!(span("2h"), Ok(Duration::from_hours(2)));
        assert_eq!(span("30d"), Ok(Duration::from_hours(720)));
        for wrong in [
            "",
            "s",
            "30",
            "-1s",
            "1.5h",
            "3ü",
            "99999999999999999999h",
            "9999999h",
        ] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        assert_eq!(span("0s"), Ok(Duration::ZERO));
        assert!(lifetime("0d").is_err());
        assert_eq!(lifetime("1s"), Ok(Duration::from_secs(1)));
    }

    #[test]
    fn what_was_accepted_is_one_line() {
        let accepted = |changed: usize, unchanged| {
            told(&Accepted {
                manifest: "hello".to_owned(),
                generation: 2,
                changed: (0..changed).map(|n| format!("c{n}")).collect(),
                unchanged,
                follow: String::new(),
                notes: Vec::new(),
            })
        };
        assert_eq!(
            accepted(0, 0),
            "manifest hello generation 2: there are no clusters in it\n"
        );
        assert_eq!(
            accepted(0, 3),
            "manifest hello generation 2: nothing changed\n"
        );
        assert_eq!(
            accepted(1, 1),
            "manifest hello generation 2: 1 cluster (c0) changes, 1 stays as it is\n"
        );
        assert_eq!(
            accepted(7, 0),
            "manifest hello generation 2: 7 clusters (c0, c1, c2, c3, c4 and 2 more) change\n"
        );
    }
}
