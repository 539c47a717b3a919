//! Reads what is asked of an environment: every fault of it, each with its place.

use api::environment::{
    HiddenLevels, KeyLevels, LABELS_MAX, NOTES_LEN_MAX, ValueLevels, WORD_LEN_MAX,
};
use api::{EnvironmentChangeRequest, EnvironmentRequest, Hidden};
use model::environment::config::{Change, Edit, Edits, Key, Level, Value, ValueError};
use model::environment::settings::Settings;
use model::fault::{Code, Fault, Faults};
use model::name::Name;
use model::secret::{EntryName, Secret};
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::problem::Problem;

pub(crate) use store::About;

/// How much of a name is repeated to whoever sent it.
const SHOWN_LEN_MAX: usize = 60;

/// What is asked of the settings of an environment.
pub(crate) struct Wanted {
    /// What becomes of edits.
    pub(crate) change: Change,
    /// Secret values, by the entries that they are sealed under.
    pub(crate) fresh: Arc<Vec<(EntryName, Secret)>>,
}

impl Wanted {
    /// All settings of a whole request; its secret values are taken out of it.
    pub(crate) fn whole(
        project: &Name,
        settings: &Settings,
        request: &mut EnvironmentRequest,
    ) -> Result<Self, Problem> {
        let mut reading = Reading::default();
        reading.tag(settings, request.tag.take());
        reading.values(std::mem::take(&mut request.set));
        reading.hidden(std::mem::take(&mut request.secret));
        reading.keys("keep", &request.keep, &Edit::Secret);
        reading.keys("remove", &request.remove, &Edit::Removed);
        reading.read(project, settings)
    }

    /// All settings of a change; its secret values are taken out of it.
    pub(crate) fn change(
        project: &Name,
        settings: &Settings,
        request: &mut EnvironmentChangeRequest,
    ) -> Result<Self, Problem> {
        let mut reading = Reading::default();
        reading.tag(settings, request.tag.take());
        reading.values(std::mem::take(&mut request.set));
        reading.hidden(std::mem::take(&mut request.secret));
        reading.keys("remove", &request.remove, &Edit::Removed);
        reading.unset(&request.unset);
        reading.read(project, settings)
    }

    /// What edits become by it. A setting that is to be secret needs a value, from here or from
    /// before.
    pub(crate) fn applied(&self, to: &Edits, before: &Edits) -> Result<Edits, Problem> {
        let edits = to.changed(&self.change);
        let many = edits.application.len() + edits.deployment.len();
        if many > Edits::COUNT_MAX {
            let allowed = format!(
                "found {many} settings, allowed: at most {}",
                Edits::COUNT_MAX
            );
            return Err(Problem::parameter("set", allowed));
        }
        for (level, key) in edits.secrets() {
            let entry = Edits::entry(level, key);
            let given = self.fresh.iter().any(|(fresh, _)| *fresh == entry);
            if !given && before.of(level).get(key) != Some(&Edit::Secret) {
                let level = level.as_str();
                let detail = format!("the {level} setting `{key}` is secret and has no value");
                return Err(Problem::no_secret_value(detail));
            }
        }
        Ok(edits)
    }
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    change: Change,
    fresh: Vec<(EntryName, Secret)>,
    keys: Vec<Fault>,
    values: Vec<Fault>,
}

impl Reading {
    fn tag(&mut self, settings: &Settings, tag: Option<String>) {
        let Some(tag) = tag else { return };
        if let Some(value) = self.value("tag".to_owned(), tag) {
            let set = (Level::Application, settings.tag.clone(), Edit::Set(value));
            self.change.set.push(set);
        }
    }

    fn values(&mut self, levels: ValueLevels) {
        let ValueLevels {
            application,
            deployment,
        } = levels;
        for (level, values) in [
            (Level::Application, application),
            (Level::Deployment, deployment),
        ] {
            for (name, value) in values {
                let path = place("set", level, &name);
                let key = self.key(&path, &name);
                let value = self.value(path, value);
                if let (Some(key), Some(value)) = (key, value) {
                    self.change.set.push((level, key, Edit::Set(value)));
                }
            }
        }
    }

    fn hidden(&mut self, levels: HiddenLevels) {
        let HiddenLevels {
            application,
            deployment,
        } = levels;
        for (level, values) in [
            (Level::Application, application),
            (Level::Deployment, deployment),
        ] {
            for (name, Hidden(value)) in values {
                let path = place("secret", level, &name);
                let key = self.key(&path, &name);
                let fits = fits(&value);
                if let Err(error) = &fits {
                    self.values.push(fault(path, error.to_string()));
                }
                if let (Some(key), Ok(())) = (key, fits) {
                    self.fresh.push((Edits::entry(level, &key), value));
                    self.change.set.push((level, key, Edit::Secret));
                }
            }
        }
    }

    fn keys(&mut self, field: &str, levels: &KeyLevels, edit: &Edit) {
        for (level, key) in self.named(field, levels) {
            self.change.set.push((level, key, edit.clone()));
        }
    }

    fn unset(&mut self, levels: &KeyLevels) {
        let unset = self.named("unset", levels);
        self.change.unset.extend(unset);
    }

    fn named(&mut self, field: &str, levels: &KeyLevels) -> Vec<(Level, Key)> {
        let all = [
            (Level::Application, &levels.application),
            (Level::Deployment, &levels.deployment),
        ];
        let mut found = Vec::new();
        for (level, names) in all {
            for name in names {
                let path = place(field, level, name);
                found.extend(self.key(&path, name).map(|key| (level, key)));
            }
        }
        found
    }

    fn key(&mut self, path: &str, name: &str) -> Option<Key> {
        let key = name.parse::<Key>();
        if let Err(error) = &key {
            self.keys
                .push(fault(path.to_owned(), shown(&error.to_string())));
        }
        key.ok()
    }

    fn value(&mut self, path: String, text: String) -> Option<Value> {
        let value = Value::try_from(text);
        if let Err(error) = &value {
            self.values.push(fault(path, error.to_string()));
        }
        value.ok()
    }

    fn read(self, project: &Name, settings: &Settings) -> Result<Wanted, Problem> {
        let Self {
            change,
            fresh,
            keys,
            values,
        } = self;
        if !keys.is_empty() {
            return Err(Problem::environment_keys(keys));
        }
        if !values.is_empty() {
            return Err(Problem::environment_values(values));
        }
        let mut twice = Faults::default();
        change.check(&mut twice);
        let twice = twice.into_vec();
        if !twice.is_empty() {
            return Err(Problem::shape(twice));
        }
        let secret = change.set.iter().any(|(_, _, edit)| *edit == Edit::Secret);
        if secret && !settings.takes_secrets() {
            return Err(Problem::no_secret_delivery(project));
        }
        Ok(Wanted {
            change,
            fresh: Arc::new(fresh),
        })
    }
}

/// Whether a secret value can be handed to a program; what is wrong says nothing of it.
fn fits(value: &Secret) -> Result<(), ValueError> {
    let len = value.expose().len();
    if len > Value::LEN_MAX {
        return Err(ValueError::TooLong { len });
    }
    match value.expose().iter().position(|byte| *byte == 0) {
        Some(at) => Err(ValueError::Nul { at }),
        None => Ok(()),
    }
}

fn fault(path: String, message: String) -> Fault {
    Fault {
        path,
        code: Code::Format,
        message,
    }
}

pub(super) fn place(field: &str, level: Level, name: &str) -> String {
    format!("{field}.{}.{}", level.as_str(), shown(name))
}

/// A text as far as it is repeated, with nothing in it that a terminal would obey.
pub(super) fn shown(text: &str) -> String {
    let plain = text
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    plain.take(4 * SHOWN_LEN_MAX).collect()
}

/// Until when an environment may be up that may be so for some seconds.
pub(crate) fn expiry(
    place: &str,
    seconds: Option<u32>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Problem> {
    match seconds {
        Some(0) => Err(Problem::parameter(place, "found 0, allowed: 1 or more")),
        Some(seconds) => Ok(Some(now.plus(Duration::from_secs(seconds.into())))),
        None => Ok(None),
    }
}

/// What people say of an environment, checked: others read it, on terminals too.
pub(crate) fn about(about: About) -> Result<About, Problem> {
    word("owner", &about.owner)?;
    labels(&about.labels)?;
    let notes = &about.notes;
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if notes.len() > NOTES_LEN_MAX {
        let found = format!(
            "found {} bytes, allowed: at most {NOTES_LEN_MAX}",
            notes.len()
        );
        return Err(Problem::parameter("notes", found));
    }
    if notes.contains(odd) {
        return Err(Problem::parameter(
            "notes",
            "found control characters, allowed: plain text",
        ));
    }
    Ok(about)
}

fn labels(labels: &BTreeMap<String, String>) -> Result<(), Problem> {
    if labels.len() > LABELS_MAX {
        let found = format!(
            "found {} labels, allowed: at most {LABELS_MAX}",
            labels.len()
        );
        return Err(Problem::parameter("labels", found));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    for (label, value) in labels {
        let path = format!("labels.{}", shown(label));
        if label.is_empty() || !label.chars().all(plain) {
            return Err(Problem::parameter(
                &path,
                "a label is made of a-z, A-Z, 0-9, `.`, `_`, `-` and `/`",
            ));
        }
        word(&path, label)?;
        word(&path, value)?;
        if value.contains(',') {
            return Err(Problem::parameter(&path, "a value has no commas"));
        }
    }
    Ok(())
}

fn word(place: &str, text: &str) -> Result<(), Problem> {
    if text.len() > WORD_LEN_MAX {
        let found = format!(
            "found {} bytes, allowed: at most {WORD_LEN_MAX}",
            text.len()
        );
        return Err(Problem::parameter(place, found));
    }
    if text.chars().any(char::is_control) {
        return Err(Problem::parameter(
            place,
            "found control characters, allowed: one line of plain text",
        ));
    }
    Ok(())
}
