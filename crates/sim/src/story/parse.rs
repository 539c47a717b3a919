//! Reads the lines of a story.

use crate::driver::WRONG;
use model::addon::AddonName;
use model::name::Name;
use model::secret::EntryName;
use model::task::Kind;
use model::templates::Commit;
use model::version::Version;
use std::net::Ipv4Addr;
use std::time::Duration;

/// A line of a story that nobody understands.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: cannot understand `{text}`: {why}")]
pub struct Fault {
    /// Which line, counted from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// One line of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Apply(Name, Vec<Clause>),
    Edit(Name, Vec<Clause>),
    Delete(Name),
    Replace(Name),
    /// A machine goes, and its pool becomes one smaller.
    Retire(Name),
    /// The compute pool of a cluster gets another size.
    Scale(Name, u32),
    /// The same, again and again until it has it.
    Insist(Name, u32),
    Pause(Name),
    Resume(Name),
    /// Etcd of a cluster is saved.
    Save(Name),
    /// Etcd of a cluster is put back to the newest snapshot.
    PutBack(Name),
    Retry,
    /// Somebody gives up what fails.
    Cancel {
        kind: Kind,
        machine: Name,
    },
    Power {
        machine: Name,
        on: bool,
    },
    /// Somebody destroys a machine by hand.
    Destroy(Name),
    /// A node is left of a machine that nobody knows, or somebody else joins one.
    Stray {
        node: Name,
        cluster: Name,
        left: bool,
    },
    Offer {
        server_type: String,
        offered: bool,
    },
    /// What a gate asks for fails, or is mended.
    Gate {
        name: Name,
        open: bool,
    },
    /// What happens to the modules that stories use.
    Modules(Modules),
    /// The compute pool of a cluster is made from newer modules.
    Update(Name),
    /// Why a cluster is as it is.
    ShowWhy(Name),
    /// The certificates of a cluster end after this time.
    Age {
        cluster: Name,
        left: Duration,
    },
    Fail {
        attempts: u32,
        kind: Kind,
        machine: Option<Name>,
    },
    Set {
        secret: Name,
        entry: EntryName,
        value: String,
    },
    Unset(Name),
    Kill,
    Restart,
    Settle,
    Wait(Duration),
    ShowClusters,
    ShowMachines,
    ShowPlan(Name),
    ShowSnapshots(Name),
    /// Attempts that end well are not told from now on.
    TellFailures,
}

/// What happens to modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Modules {
    /// A branch leads to another commit.
    Move(String, Commit),
    /// Their repository answers, or does not.
    Answer(bool),
}

/// One thing that a manifest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Clause {
    Control(u32),
    Compute(u32),
    /// Compute machines of one provider among several.
    From(Name, u32),
    /// Control machines of one provider among several.
    ControlFrom(Name, u32),
    /// Compute machines whose number changes, from and to.
    Scaled(u32, u32),
    /// Machines of a load balancer with two roles.
    Balancers(u32),
    /// Machines of another load balancer, which has a role of its own.
    Others(u32),
    /// Which load balancer passes the API on.
    Api(Entrance),
    /// What the first load balancer is called.
    Called(Name),
    /// Under which name of DNS it is reached.
    Named(Name),
    /// Which type of provider answers for it, and the secret that opens the account there.
    Zones(String, Name),
    /// Machines are hosts of a sandbox.
    Sandboxed,
    /// Machines are hosts of clouds, each provider another one.
    Clouds,
    /// Who connects pods.
    Connected(String),
    /// What it has besides Kubernetes, each with or without a version.
    Having(Vec<String>),
    /// Hosts reach the outside through a proxy, or through none any more.
    Through(Option<String>),
    /// What they reach without it.
    Sparing(String),
    Hosts(Vec<Ipv4Addr>),
    On(String),
    /// The server type of compute machines alone.
    ComputeOn(String),
    /// Machines are replaced when they are to be made in another way.
    Replacing,
    /// The secret that opens the account with the provider.
    Account(Name),
    /// The secret with the private key of the hosts.
    Keys(Name),
    /// The secret that opens the bucket in which snapshots are kept.
    Bucket(Name),
    At(Version),
    Allowing(u8),
    /// What nodes must pass before they serve again.
    Gated(Name),
    /// The tag or the branch of the modules that machines are made with.
    Modules(String),
    /// When machines may be taken out of service: every day at this hour, for so many.
    Open(String, String),
}

/// A load balancer that may pass the API on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entrance {
    First,
    Other,
    None,
}

/// Reads all lines that say something.
pub(super) fn read(text: &str) -> Result<Vec<(String, Command)>, Fault> {
    let mut commands = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let said = line.split('#').next().unwrap_or_default().trim();
        if said.is_empty() {
            continue;
        }
        let command = command(said).map_err(|why| Fault {
            line: at + 1,
            text: said.to_owned(),
            why,
        })?;
        commands.push((said.to_owned(), command));
    }
    Ok(commands)
}

fn command(said: &str) -> Result<Command, String> {
    let words: Vec<_> = said
        .split_whitespace()
        .map(|word| word.trim_end_matches([',', ':']))
        .collect();
    match words.as_slice() {
        ["apply", name, "with", rest @ ..] => Ok(Command::Apply(parsed(name)?, clauses(rest)?)),
        ["edit", name, rest @ ..] => Ok(Command::Edit(parsed(name)?, clauses(rest)?)),
        ["upgrade", name, "to", version] => {
            let clause = Clause::At(parsed(version)?);
            Ok(Command::Edit(parsed(name)?, vec![clause]))
        }
        ["delete", name] => Ok(Command::Delete(parsed(name)?)),
        ["replace", machine] => Ok(Command::Replace(parsed(machine)?)),
        ["retire", machine] => Ok(Command::Retire(parsed(machine)?)),
        ["scale", name, "to", count] => Ok(Command::Scale(parsed(name)?, parsed(count)?)),
        ["insist", "on", count, "compute", "machines", "of", name] => {
            Ok(Command::Insist(parsed(name)?, parsed(count)?))
        }
        ["pause", name] => Ok(Command::Pause(parsed(name)?)),
        ["resume", name] => Ok(Command::Resume(parsed(name)?)),
        ["save", "etcd", "of", name] => Ok(Command::Save(parsed(name)?)),
        ["put", "back", "etcd", "of", name] => Ok(Command::PutBack(parsed(name)?)),
        ["show", "snapshots", "of", name] => Ok(Command::ShowSnapshots(parsed(name)?)),
        ["show", "why", name] => Ok(Command::ShowWhy(parsed(name)?)),
        ["update", name] => Ok(Command::Update(parsed(name)?)),
        ["retry", "what", "is", "stuck"] => Ok(Command::Retry),
        ["cancel", kind, "of", machine] => Ok(Command::Cancel {
            kind: known(kind)?,
            machine: parsed(machine)?,
        }),
        ["fail", "the", "next", attempts, "attempts", "of", kind] => Ok(Command::Fail {
            attempts: parsed(attempts)?,
            kind: known(kind)?,
            machine: None,
        }),
        [
            "fail",
            "the",
            "next",
            attempts,
            "attempts",
            "of",
            kind,
            "on",
            machine,
        ] => Ok(Command::Fail {
            attempts: parsed(attempts)?,
            kind: known(kind)?,
            machine: Some(parsed(machine)?),
        }),
        ["set", "secret", secret, entry] => set(secret, entry, "correct horse battery staple"),
        ["set", "secret", secret, entry, "to", "nothing"] => set(secret, entry, ""),
        ["set", "secret", secret, entry, "to", "a", "wrong", "one"] => set(secret, entry, WRONG),
        ["delete", "secret", secret] => Ok(Command::Unset(parsed(secret)?)),
        ["kill", "the", "engine"] => Ok(Command::Kill),
        ["restart", "the", "engine"] => Ok(Command::Restart),
        ["wait", "until", "settled"] => Ok(Command::Settle),
        ["wait", number, unit] => span(parsed(number)?, unit).map(Command::Wait),
        ["show", "clusters"] => Ok(Command::ShowClusters),
        ["show", "machines"] => Ok(Command::ShowMachines),
        ["show", "plan", "of", name] => Ok(Command::ShowPlan(parsed(name)?)),
        ["tell", "only", "of", "failures"] => Ok(Command::TellFailures),
        words => of_the_world(words),
    }
}

/// What happens outside, whatever anybody wishes.
fn of_the_world(words: &[&str]) -> Result<Command, String> {
    match words {
        [verb @ ("cut" | "restore"), "power", "of", machine] => Ok(Command::Power {
            machine: parsed(machine)?,
            on: *verb == "restore",
        }),
        ["somebody", "destroys", machine] => Ok(Command::Destroy(parsed(machine)?)),
        ["somebody", "joins", node, "to", cluster] => Ok(Command::Stray {
            node: parsed(node)?,
            cluster: parsed(cluster)?,
            left: false,
        }),
        ["node", node, "is", "left", "in", cluster] => Ok(Command::Stray {
            node: parsed(node)?,
            cluster: parsed(cluster)?,
            left: true,
        }),
        ["provider", verb @ ("refuses" | "offers"), server_type] => Ok(Command::Offer {
            server_type: (*server_type).to_owned(),
            offered: *verb == "offers",
        }),
        ["gate", name, "is", verb @ ("shut" | "open")] => Ok(Command::Gate {
            name: parsed(name)?,
            open: *verb == "open",
        }),
        ["branch", branch, "moves", "to", digits] => {
            // A few digits are enough for a story.
            let commit = digits.chars().cycle().take(40).collect::<String>();
            let moved = Modules::Move((*branch).to_owned(), parsed(&commit)?);
            Ok(Command::Modules(moved))
        }
        ["modules", "answer"] => Ok(Command::Modules(Modules::Answer(true))),
        ["modules", "do", "not", "answer"] => Ok(Command::Modules(Modules::Answer(false))),
        ["certificates", "of", name, "end", "in", number, unit] => Ok(Command::Age {
            cluster: parsed(name)?,
            left: span(parsed(number)?, unit)?,
        }),
        _ => Err("no such command".to_owned()),
    }
}

fn set(secret: &str, entry: &str, value: &str) -> Result<Command, String> {
    Ok(Command::Set {
        secret: parsed(secret)?,
        entry: parsed(entry)?,
        value: value.to_owned(),
    })
}

/// The add-ons that words begin with, each with or without a version.
fn addons(words: &[&str]) -> Vec<String> {
    let named = |word: &&&str| {
        let (name, _) = word.split_once('=').unwrap_or((word, ""));
        name.parse::<AddonName>().is_ok()
    };
    let named = words.iter().take_while(named);
    named.map(|word| (*word).to_owned()).collect()
}

/// So many machines that do this.
fn machines(word: &str, count: u32) -> Clause {
    match word {
        "control" => Clause::Control(count),
        "compute" => Clause::Compute(count),
        _ => Clause::Balancers(count),
    }
}

fn clauses<'w>(mut words: &'w [&'w str]) -> Result<Vec<Clause>, String> {
    let mut clauses = Vec::new();
    while !words.is_empty() {
        words = match words {
            ["and", rest @ ..] => rest,
            [number, "control", "from", provider, rest @ ..] => {
                clauses.push(Clause::ControlFrom(parsed(provider)?, parsed(number)?));
                rest
            }
            [
                number,
                word @ ("control" | "compute" | "balancer" | "balancers"),
                rest @ ..,
            ] => {
                clauses.push(machines(word, parsed(number)?));
                rest
            }
            ["scaled", min, "to", max, rest @ ..] => {
                clauses.push(Clause::Scaled(parsed(min)?, parsed(max)?));
                rest
            }
            [word @ ("sandboxed" | "replacing"), rest @ ..] => {
                let sandboxed = *word == "sandboxed";
                clauses.push(if sandboxed {
                    Clause::Sandboxed
                } else {
                    Clause::Replacing
                });
                rest
            }
            ["connected", "by", cni, rest @ ..] => {
                clauses.push(Clause::Connected((*cni).to_owned()));
                rest
            }
            ["having", rest @ ..] => {
                let addons = addons(rest);
                let behind = &rest[addons.len()..];
                clauses.push(Clause::Having(addons));
                behind
            }
            ["hosts", rest @ ..] => {
                let hosts: Vec<_> = rest.iter().map_while(|word| word.parse().ok()).collect();
                let behind = &rest[hosts.len()..];
                clauses.push(Clause::Hosts(hosts));
                behind
            }
            ["on", server_type, rest @ ..] => {
                clauses.push(Clause::On((*server_type).to_owned()));
                rest
            }
            _ => {
                let (clause, rest) = of_one_word(words)?;
                clauses.push(clause);
                rest
            }
        };
    }
    Ok(clauses)
}

/// A clause that is a word or two and what stands behind them.
fn of_one_word<'w>(words: &'w [&'w str]) -> Result<(Clause, &'w [&'w str]), String> {
    match words {
        ["account", secret, rest @ ..] => Ok((Clause::Account(parsed(secret)?), rest)),
        [count, "other", "balancer" | "balancers", rest @ ..] => {
            Ok((Clause::Others(parsed(count)?), rest))
        }
        ["api", "on", "first", rest @ ..] => Ok((Clause::Api(Entrance::First), rest)),
        ["api", "on", "other", rest @ ..] => Ok((Clause::Api(Entrance::Other), rest)),
        ["api", "on", "none", rest @ ..] => Ok((Clause::Api(Entrance::None), rest)),
        ["named", name, rest @ ..] => Ok((Clause::Named(parsed(name)?), rest)),
        ["zones", "at", kind, "with", secret, rest @ ..] => {
            Ok((Clause::Zones((*kind).to_owned(), parsed(secret)?), rest))
        }
        ["called", name, rest @ ..] => Ok((Clause::Called(parsed(name)?), rest)),
        ["bucket", secret, rest @ ..] => Ok((Clause::Bucket(parsed(secret)?), rest)),
        ["keys", secret, rest @ ..] => Ok((Clause::Keys(parsed(secret)?), rest)),
        ["at", "clouds", rest @ ..] => Ok((Clause::Clouds, rest)),
        ["at", version, rest @ ..] => Ok((Clause::At(parsed(version)?), rest)),
        ["through", "nothing", rest @ ..] => Ok((Clause::Through(None), rest)),
        ["through", proxy, rest @ ..] => Ok((Clause::Through(Some((*proxy).to_owned())), rest)),
        ["sparing", direct, rest @ ..] => Ok((Clause::Sparing((*direct).to_owned()), rest)),
        ["compute", "on", server_type, rest @ ..] => {
            Ok((Clause::ComputeOn((*server_type).to_owned()), rest))
        }
        [number, "from", provider, rest @ ..] => {
            Ok((Clause::From(parsed(provider)?, parsed(number)?), rest))
        }
        ["modules", branch, rest @ ..] => Ok((Clause::Modules((*branch).to_owned()), rest)),
        ["open", "at", start, "for", hours, rest @ ..] => {
            let (start, hours) = ((*start).to_owned(), (*hours).to_owned());
            Ok((Clause::Open(start, hours), rest))
        }
        ["gated", "by", gate, rest @ ..] => Ok((Clause::Gated(parsed(gate)?), rest)),
        ["allowing", percent, "per", "cent", rest @ ..] => {
            Ok((Clause::Allowing(parsed(percent)?), rest))
        }
        [word, ..] => Err(format!("`{word}` says nothing of a manifest")),
        [] => Err("something is missing".to_owned()),
    }
}

fn parsed<T: std::str::FromStr>(word: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    word.parse().map_err(|error| format!("`{word}`: {error}"))
}

fn known(word: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.as_str() == word);
    found.ok_or_else(|| {
        let names = Kind::ALL.map(Kind::as_str).join(", ");
        format!("`{word}` is not one of {names}")
    })
}

fn span(number: u64, unit: &str) -> Result<Duration, String> {
    let seconds = match unit {
        "second" | "seconds" => 1,
        "minute" | "minutes" => 60,
        "hour" | "hours" => 3_600,
        "day" | "days" => 86_400,
        _ => {
            return Err(format!(
                "`{unit}` is not one of seconds, minutes, hours, days"
            ));
        }
    };
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_may_be_joined_by_and_or_commas() {
        let said = "edit hello: 3 control, hosts 192.0.2.7 192.0.2.8 and on large at 1.35.0";
        assert_eq!(
            command(said),
            Ok(Command::Edit(
                "hello".parse().unwrap(),
                vec![
                    Clause::Control(3),
                    Clause::Hosts(vec![
                        Ipv4Addr::new(192, 0, 2, 7),
                        Ipv4Addr::new(192, 0, 2, 8)
                    ]),
                    Clause::On("large".to_owned()),
                    Clause::At("1.35.0".parse().unwrap()),
                ]
            ))
        );
    }

    #[test]
    fn clauses_of_two_words_are_told_from_counts() {
        let said = "edit hello: 2 compute, compute on large, 3 from south and through nothing";
        assert_eq!(
            command(said),
            Ok(Command::Edit(
                "hello".parse().unwrap(),
                vec![
                    Clause::Compute(2),
                    Clause::ComputeOn("large".to_owned()),
                    Clause::From("south".parse().unwrap(), 3),
                    Clause::Through(None),
                ]
            ))
        );
    }

    #[test]
    fn a_line_that_says_nothing_we_know_is_a_fault_with_its_place() {
        let refused = read("# a story\napply hello with 1 control\n\nsing a song\n");
        assert_eq!(
            refused.expect_err("must not be understood").to_string(),
            "line 4: cannot understand `sing a song`: no such command"
        );
    }
}
