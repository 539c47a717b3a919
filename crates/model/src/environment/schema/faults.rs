//! Whose fault it is: what is wrong with values, told as faults of settings.
//!
//! **Invariant:** of a secret setting neither its value nor anything inside of it is told, not even
//! how long it is.

use super::judge::Misfit;
use super::{is_below, written};
use crate::environment::config::Level;
use crate::fault::{Code, Fault, Faults};
use std::collections::{BTreeMap, BTreeSet};

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Of which configuration it is a setting.
    pub level: Level,
    /// What may be told of it.
    pub sight: Sight,
}

/// What may be told of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// All: somebody set it where everybody sees it.
    Open,
    /// All: nobody set it, and it is the chart's own.
    Default,
    /// Only whose it is.
    Secret,
    /// Nothing: it stands for a secret that nobody knows yet.
    MadeUp,
}

/// What is wrong with settings, each with its level and its name. What has no owner is of the
/// application: all that a chart has is what the application is given.
pub fn faults(misfits: &[Misfit], owners: &BTreeMap<String, Owner>) -> Vec<Fault> {
    let mut faults = Faults::default();
    let mut told = BTreeSet::new();
    for misfit in misfits {
        let place = written(&misfit.place);
        for (key, owner) in concerned(&place, misfit.code, owners) {
            let inside = is_below(&place, &key);
            let unknown = misfit.code == Code::UnknownField && !inside;
            if owner.sight == Sight::MadeUp && !unknown {
                continue;
            }
            let path = match owner.sight {
                Sight::Secret => format!("{}.{key}", owner.level.as_str()),
                // Inside of a setting that is JSON the place says more than its name.
                Sight::Open | Sight::Default if inside => {
                    format!("{}.{place}", owner.level.as_str())
                }
                Sight::Open | Sight::Default | Sight::MadeUp => {
                    format!("{}.{key}", owner.level.as_str())
                }
            };
            if told.insert(path.clone()) {
                faults.note(
                    path,
                    misfit.code,
                    message(misfit, &place, &key, owner.sight),
                );
            }
        }
    }
    faults.into_vec()
}

/// The settings that something is wrong with: the one that is there or that it is inside of, else
/// those that are inside of it.
fn concerned(place: &str, code: Code, owners: &BTreeMap<String, Owner>) -> Vec<(String, Owner)> {
    let nobody = Owner {
        level: Level::Application,
        sight: Sight::Open,
    };
    let above = owners
        .iter()
        .filter(|(key, _)| *key == place || is_below(place, key));
    if let Some((key, owner)) = above.max_by_key(|(key, _)| key.len()) {
        return vec![(key.clone(), *owner)];
    }
    let below = owners
        .iter()
        .filter(|(key, owner)| is_below(key, place) && owner.sight != Sight::Default);
    let below: Vec<_> = below.map(|(key, owner)| (key.clone(), *owner)).collect();
    if code == Code::UnknownField && !below.is_empty() {
        return below;
    }
    vec![(place.to_owned(), nobody)]
}

fn message(misfit: &Misfit, place: &str, key: &str, sight: Sight) -> String {
    let Misfit { found, allowed, .. } = misfit;
    match (sight, misfit.code) {
        (Sight::Secret, _) if is_below(place, key) => {
            "found a secret value, and something inside of it is not what the chart takes"
                .to_owned()
        }
        (_, Code::UnknownField) => format!("`{found}` is not known to the chart; {allowed}"),
        (Sight::Secret, _) => format!("found a secret value, allowed: {allowed}"),
        (Sight::Default, _) => format!("found {found}, the default; allowed: {allowed}"),
        (Sight::Open | Sight::MadeUp, _) => format!("found {found}, allowed: {allowed}"),
    }
}
