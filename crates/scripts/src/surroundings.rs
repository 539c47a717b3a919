//! What scripts find in their environment.
//!
//! The server's own variables, less those that are about Slipway; `PATH` begins with the directory
//! of the scripts, which may call each other. Beside them `PROJECT_NAME`, `BASE_DOMAIN` and
//! `NAMESPACE`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use model::environment::settings::Settings;

use crate::secrets::{Opened, pair};

/// What variables begin with that are about Slipway itself, such as where its database is.
const OURS: &[u8] = b"SLIPWAY_";

/// The exception: what the example scripts are told.
const OF_EXAMPLES: &[u8] = b"SLIPWAY_EXAMPLE_";

/// Which programs are looked for where, if nobody says otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Puts together what scripts find in their environment.
#[derive(Clone)]
pub struct Surroundings {
    own: Vec<(OsString, OsString)>,
    path: OsString,
}

impl Surroundings {
    /// From variables of a program, usually this one.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut path = OsString::from(PATH);
        let mut own = Vec::new();
        for (name, value) in variables {
            if name == OsStr::new("PATH") {
                path = value;
            } else if !is_ours(&name) {
                own.push((name, value));
            }
        }
        Self { own, path }
    }

    /// Which programs are looked for where.
    pub(crate) fn path(&self) -> &OsStr {
        &self.path
    }

    /// All variables of a program that is no script.
    pub(crate) fn of_program(&self) -> Vec<(OsString, OsString)> {
        let mut all = self.own.clone();
        all.push(pair("PATH", &self.path));
        all
    }

    /// All variables of a script of a project.
    pub(crate) fn of(&self, settings: &Settings, opened: &Opened) -> Vec<(OsString, OsString)> {
        let place = &settings.place;
        let mut path = OsString::from(&settings.scripts);
        path.push(":");
        path.push(&self.path);
        let mut all = self.own.clone();
        all.extend([
            pair("PATH", path),
            pair("PROJECT_NAME", &place.project_name),
            pair("BASE_DOMAIN", &place.base_domain),
            pair("NAMESPACE", place.namespace.as_str()),
        ]);
        all.extend(opened.variables().map(|(name, value)| pair(name, value)));
        all
    }
}

/// Whether a variable is about Slipway itself.
fn is_ours(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(OURS) && !name.starts_with(OF_EXAMPLES)
}
