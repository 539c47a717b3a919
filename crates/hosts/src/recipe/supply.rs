//! Where the packages of a recipe come from: which ones there are, which a host lacks, and the
//! recipe with all of them out of a directory on the host.
//!
//! Everything here reads the items themselves, so that what is collected for hosts, what is
//! brought to one, and what is installed on it cannot differ.

use crate::program::Program;
use crate::recipe::item::{Item, Source};
use crate::recipe::{Level, prepare, render};
use model::host::{Purpose, Recipe};
use std::collections::BTreeSet;
use std::time::Duration;

/// Where packages lie on a host from when they are pushed until they are installed.
pub const PUSHED: &str = "/var/lib/slipway/debs";

/// How long a host may take to say which packages it lacks.
const LOOK_MAX: Duration = Duration::from_mins(1);

/// How long it may take to find out what that takes; apt may be busy with something else.
const FORESEE_MAX: Duration = Duration::from_mins(5);

/// Every package that a recipe may want of a distribution, for whatever host.
pub fn package_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for purpose in [Purpose::Node, Purpose::Balancer] {
        for level in [Level::Systemd, Level::Lite] {
            let recipe = Recipe {
                purpose,
                proxy: None,
                playbooks: Vec::new(),
            };
            note_names(&prepare(&recipe, level), &mut names);
        }
    }
    names
}

fn note_names(items: &[Item], names: &mut BTreeSet<String>) {
    for item in items {
        if let Item::Packages { names: wished, .. } = item {
            let name = |wish: &String| wish.split('=').next().unwrap_or(wish).to_owned();
            names.extend(wished.iter().map(name));
        }
        note_names(item.inner(), names);
    }
}

/// A program that tells which packages of these items a host lacks, as facts `missing`; it
/// changes nothing.
pub fn missing(items: &[Item]) -> Program {
    render(&looks(items), "look for packages", LOOK_MAX)
}

/// What decides whether a host needs packages, and for each of them a look.
fn looks(items: &[Item]) -> Vec<Item> {
    let mut all = Vec::new();
    for item in items {
        match item {
            Item::Packages { names, .. } => all.push(Item::Foreseen {
                names: names.clone(),
                index: None,
            }),
            Item::Supported { purpose } => all.push(Item::Supported { purpose: *purpose }),
            Item::When { condition, items } => all.push(Item::When {
                condition: condition.clone(),
                items: looks(items),
            }),
            Item::Unprepared { items } => all.push(Item::Unprepared {
                items: looks(items),
            }),
            Item::File { .. }
            | Item::Placed { .. }
            | Item::Directory { .. }
            | Item::Absent { .. }
            | Item::Returned { .. }
            | Item::Block { .. }
            | Item::Foreseen { .. }
            | Item::Removed { .. }
            | Item::Sysctl { .. }
            | Item::Restored
            | Item::Module { .. }
            | Item::Service { .. }
            | Item::Command { .. }
            | Item::Told { .. }
            | Item::Stamp { .. } => {}
        }
    }
    all
}

/// A program that tells what a host would install for these packages out of an index that was
/// pushed to [`PUSHED`], as facts `needs`.
pub fn needed(names: &[String]) -> Program {
    let item = Item::Foreseen {
        names: names.to_vec(),
        index: Some(PUSHED.to_owned()),
    };
    render(&[item], "foresee packages", FORESEE_MAX)
}

/// The same items with all packages out of what was pushed to [`PUSHED`].
pub fn from_pushed(mut items: Vec<Item>) -> Vec<Item> {
    point_to_pushed(&mut items);
    items
}

fn point_to_pushed(items: &mut [Item]) {
    for item in items {
        if let Item::Packages { source, .. } = item {
            *source = Source::Directory(PUSHED.to_owned());
        }
        point_to_pushed(item.inner_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(items: &[Item], found: &mut Vec<Source>) {
        for item in items {
            if let Item::Packages { source, .. } = item {
                found.push(source.clone());
            }
            sources(item.inner(), found);
        }
    }

    #[test]
    fn every_package_of_a_recipe_is_known_and_can_be_pushed() {
        let names = package_names();
        for name in ["containerd", "iproute2", "wireguard-go", "wireguard-tools"] {
            assert!(names.contains(name), "{name} is not among {names:?}");
        }
        let recipe = Recipe {
            purpose: Purpose::Node,
            proxy: None,
            playbooks: Vec::new(),
        };
        let items = prepare(&recipe, Level::Systemd);
        let text = missing(&items).text;
        for name in &names {
            assert!(text.contains(name.as_str()), "{name} is not looked for");
        }
        assert!(!text.contains("\nsw_packages "), "it would install");
        let mut found = Vec::new();
        sources(&from_pushed(items), &mut found);
        assert!(found.len() > 2);
        for source in found {
            assert_eq!(source, Source::Directory(PUSHED.to_owned()));
        }
    }
}
