//! Reads environments that are to be taken over: every field becomes a checked type, or a fault.

use api::environment::IMPORT_MAX;
use api::{ImportAction, ImportEnvironment, ImportRequest, LinkView};
use model::environment::config::{Change, Edit, Edits, Key, Level, Value};
use model::environment::link::Link;
use model::environment::taken::{Taken, TakenAction, bounded};
use model::fault::{Code, Faults};
use model::time::Timestamp;
use std::time::Duration;

use super::wanted::{place, shown};
use crate::problem::Problem;

/// The environments of a request. Nothing of them is in the future, where it would keep whoever
/// counts from it waiting.
pub(crate) fn taken(request: ImportRequest, now: Timestamp) -> Result<Vec<Taken>, Problem> {
    let many = request.environments.len();
    if many > IMPORT_MAX {
        let detail = format!("found {many} environments, allowed: at most {IMPORT_MAX}");
        return Err(Problem::parameter("environments", detail));
    }
    let mut faults = Faults::default();
    let read = request.environments.into_iter().enumerate();
    let read: Vec<_> = read
        .filter_map(|(at, one)| environment(&format!("environments[{at}]"), one, now, &mut faults))
        .collect();
    let faults = faults.into_vec();
    if faults.is_empty() {
        Ok(read)
    } else {
        Err(Problem::cannot_be_taken(faults))
    }
}

fn environment(
    path: &str,
    one: ImportEnvironment,
    now: Timestamp,
    faults: &mut Faults,
) -> Option<Taken> {
    let ImportEnvironment {
        name,
        origin,
        status,
        since,
        created_at,
        updated_at,
        archived_at,
        set,
        remove,
        links,
        actions,
    } = one;
    let name = match name.parse() {
        Ok(name) => Some(name),
        Err(error) => {
            let error: model::environment::NameError = error;
            faults.note(format!("{path}.name"), Code::Format, error.to_string());
            None
        }
    };
    if !fits(&origin, Taken::ORIGIN_LEN_MAX) || origin.is_empty() {
        let message = format!("allowed: 1 to {} bytes in one line", Taken::ORIGIN_LEN_MAX);
        faults.note(format!("{path}.origin"), Code::Format, message);
    }
    let links = read_links(path, links, faults);
    let edits = edits(path, (set, remove), faults);
    let past = |time: api::Time| time.timestamp().min(now);
    let actions = actions.into_iter().enumerate();
    let actions = actions
        .map(|(at, action)| self::action(&format!("{path}.actions[{at}]"), action, now, faults))
        .collect();
    Some(Taken {
        name: name?,
        origin,
        status: status.into(),
        since: past(since),
        created_at: past(created_at),
        updated_at: past(updated_at),
        // Retention counts from then, so it has to be known.
        archived_at: archived_at
            .or_else(|| (status == api::EnvironmentStatus::Archived).then_some(since))
            .map(past),
        edits,
        links,
        actions,
    })
}

fn action(path: &str, one: ImportAction, now: Timestamp, faults: &mut Faults) -> TakenAction {
    let ImportAction {
        number,
        kind,
        author,
        exit,
        ended_at,
        millis,
        set,
        remove,
        stdout,
        stderr,
    } = one;
    if !fits(&author, api::environment::WORD_LEN_MAX) {
        let message = format!(
            "allowed: at most {} bytes in one line",
            api::environment::WORD_LEN_MAX
        );
        faults.note(format!("{path}.author"), Code::Format, message);
    }
    TakenAction {
        number,
        deed: kind.into(),
        author,
        exit,
        ended_at: ended_at.timestamp().min(now),
        took: Duration::from_millis(millis),
        edits: edits(path, (set, remove), faults),
        stdout: bounded(stdout),
        stderr: bounded(stderr),
    }
}

fn fits(text: &str, most: usize) -> bool {
    text.len() <= most && !text.chars().any(char::is_control)
}

fn read_links(path: &str, links: Vec<LinkView>, faults: &mut Faults) -> Vec<Link> {
    let path = format!("{path}.links");
    if links.len() > Taken::LINKS_MAX {
        let message = format!("allowed: at most {}", Taken::LINKS_MAX);
        faults.note(path, Code::Range, message);
        return Vec::new();
    }
    let mut read = Vec::with_capacity(links.len());
    for (at, LinkView { name, url }) in links.into_iter().enumerate() {
        if fits(&name, Taken::LINK_LEN_MAX) && fits(&url, Taken::LINK_LEN_MAX) {
            read.push(Link { name, url });
        } else {
            let message = format!("allowed: at most {} bytes in one line", Taken::LINK_LEN_MAX);
            faults.note(format!("{path}[{at}]"), Code::Format, message);
        }
    }
    read
}

fn edits(
    path: &str,
    (set, remove): (api::environment::ValueLevels, api::environment::KeyLevels),
    faults: &mut Faults,
) -> Edits {
    let mut change = Change::default();
    for (level, values) in [
        (Level::Application, set.application),
        (Level::Deployment, set.deployment),
    ] {
        for (name, value) in values {
            let here = format!("{path}.{}", place("set", level, &name));
            let value = Value::try_from(value);
            match (name.parse::<Key>(), value) {
                (Ok(key), Ok(value)) => change.set.push((level, key, Edit::Set(value))),
                (Err(error), _) => faults.note(here, Code::Format, shown(&error.to_string())),
                (_, Err(error)) => faults.note(here, Code::Format, error.to_string()),
            }
        }
    }
    for (level, names) in [
        (Level::Application, remove.application),
        (Level::Deployment, remove.deployment),
    ] {
        for name in names {
            match name.parse::<Key>() {
                Ok(key) => change.set.push((level, key, Edit::Removed)),
                Err(error) => {
                    let here = format!("{path}.{}", place("remove", level, &name));
                    faults.note(here, Code::Format, shown(&error.to_string()));
                }
            }
        }
    }
    let mut twice = Faults::default();
    change.check(&mut twice);
    for fault in twice.into_vec() {
        faults.note(format!("{path}.{}", fault.path), fault.code, fault.message);
    }
    if change.set.len() > Edits::COUNT_MAX {
        let message = format!("allowed: at most {} settings", Edits::COUNT_MAX);
        faults.note(format!("{path}.set"), Code::Range, message);
    }
    Edits::default().changed(&change)
}
