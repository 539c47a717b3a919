//! The settings of one environment, as a chart is given them.

use std::collections::BTreeMap;

use driver::deploy::Subject;
use model::environment::config::{Given, Key, Level, Setting, Source};
use model::environment::schema::{Owner, Sight, path};
use model::environment::settings::Chart;

use super::values::Facts;
use crate::secrets::Opened;

/// Settings as a chart is given them.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// Each as text.
    pub(super) texts: BTreeMap<String, String>,
    /// Whose they are, and what may be told of them.
    pub(super) owners: BTreeMap<String, Owner>,
}

impl Handed {
    fn hand(&mut self, key: &Key, text: String, owner: Owner) {
        self.texts.insert(key.to_string(), text);
        self.owners.insert(key.to_string(), owner);
    }
}

/// The settings of an environment as text. Both levels are values of the chart. What somebody said
/// of the application counts before what was said of the deployment, and that before the chart's
/// own defaults. A secret whose value nobody knows yet is made up.
pub(super) fn given(subject: &Subject, chart: &Chart, opened: &Opened, facts: &Facts) -> Handed {
    let mut chosen: BTreeMap<&Key, (Level, &Setting)> = BTreeMap::new();
    for (level, settings) in [
        (Level::Deployment, &subject.deployment),
        (Level::Application, &subject.application),
    ] {
        for setting in settings {
            let known = chosen.contains_key(&setting.key);
            if !known || setting.source != Source::Default {
                chosen.insert(&setting.key, (level, setting));
            }
        }
    }
    let host = chart.host.as_ref().filter(|host| {
        let known = chosen.get(host);
        known.is_none_or(|(_, setting)| setting.source == Source::Default)
    });
    let mut handed = Handed::default();
    for (key, (level, setting)) in chosen {
        let (text, sight) = match &setting.value {
            Given::Plain(text) if setting.source == Source::Default => {
                (text.as_str().to_owned(), Sight::Default)
            }
            Given::Plain(text) => (text.as_str().to_owned(), Sight::Open),
            Given::Secret => match opened.text(level, key) {
                Some(text) => (text.to_owned(), Sight::Secret),
                None => (facts.made_up(&path(key.as_str())), Sight::MadeUp),
            },
        };
        handed.hand(key, text, Owner { level, sight });
    }
    let domain = &subject.settings.place.base_domain;
    if let Some(host) = host.filter(|_| !domain.is_empty()) {
        let owner = Owner {
            level: Level::Application,
            sight: Sight::Open,
        };
        handed.hand(host, format!("{}.{domain}", subject.name), owner);
    }
    handed
}

/// The tag that an environment should have, where everybody may see it.
pub(super) fn tag(subject: &Subject) -> Option<&str> {
    let key = &subject.settings.tag;
    let all = || subject.application.iter().chain(&subject.deployment);
    let edited = all().find(|one| one.key == *key && one.source != Source::Default);
    let found = edited.or_else(|| all().find(|one| one.key == *key));
    match &found?.value {
        Given::Plain(tag) => Some(tag.as_str()).filter(|tag| !tag.is_empty()),
        Given::Secret => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Known, context, secret, setting, subject};
    use serde_json::json;

    fn chart(host: Option<&str>) -> Chart {
        Chart {
            chart: "/nowhere".to_owned(),
            kubeconfig: None,
            host: host.map(|host| host.parse().unwrap()),
        }
    }

    fn default(key: &str, value: &str) -> Setting {
        Setting {
            source: Source::Default,
            ..setting(key, value)
        }
    }

    fn pairs(given: &Handed) -> Vec<String> {
        let pairs = given
            .texts
            .iter()
            .map(|(key, text)| format!("{key}={text}"));
        pairs.collect()
    }

    #[test]
    fn what_was_said_counts_before_defaults_and_the_application_before_the_deployment() {
        let mut subject = subject();
        subject.deployment = vec![setting("a", "deployment"), setting("b", "deployment")];
        subject.application = vec![
            default("a", "chart"),
            setting("b", "application"),
            default("c", "chart"),
        ];
        let given = given(&subject, &chart(None), &Opened::none(), &Facts::default());
        assert_eq!(pairs(&given), ["a=deployment", "b=application", "c=chart"]);
    }

    #[test]
    fn the_host_is_below_the_base_domain_unless_somebody_sets_it() {
        let mut subject = subject();
        let host = |subject: &Subject| {
            let chart = chart(Some("ingress.host"));
            let given = given(subject, &chart, &Opened::none(), &Facts::default());
            given.texts.get("ingress.host").cloned()
        };
        let below = Some("orange-button.cactus-store.com".to_owned());
        assert_eq!(host(&subject), below);
        subject.application = vec![default("ingress.host", "example.org")];
        assert_eq!(host(&subject), below);
        subject.application = vec![setting("ingress.host", "mine.example")];
        assert_eq!(host(&subject), Some("mine.example".to_owned()));
        subject.settings.place.base_domain = String::new();
        subject.application.clear();
        assert_eq!(host(&subject), None);
    }

    #[tokio::test]
    async fn a_secret_is_its_value_or_something_that_fits() {
        let mut subject = subject();
        subject.application = vec![secret("password"), secret("pin")];
        let known = vec![(Level::Application, "password", &b"hunter2"[..])];
        let cx = context(Known(known));
        let opened = Opened::texts_of(&cx, &subject, true).await.unwrap();
        let facts = Facts {
            schema: json!({"properties": {"pin": {"type": "integer"}}}).into(),
            ..Facts::default()
        };
        let given = given(&subject, &chart(None), &opened, &facts);
        assert_eq!(pairs(&given), ["password=hunter2", "pin=1"]);
        let sight = |key: &str| given.owners.get(key).unwrap().sight;
        assert_eq!(
            (sight("password"), sight("pin")),
            (Sight::Secret, Sight::MadeUp)
        );
        let why = Opened::texts_of(&cx, &subject, false).await.err().unwrap();
        assert!(why.what.starts_with("pin of environment orange-button"));
    }

    #[test]
    fn the_tag_is_what_was_said_and_may_be_unknown() {
        let mut subject = subject();
        assert_eq!(tag(&subject), None);
        subject.application = vec![default("image.tag", "")];
        assert_eq!(tag(&subject), None);
        subject.deployment = vec![setting("image.tag", "v2")];
        assert_eq!(tag(&subject), Some("v2"));
        subject.application = vec![setting("image.tag", "v1")];
        assert_eq!(tag(&subject), Some("v1"));
        subject.application = vec![secret("image.tag")];
        assert_eq!(tag(&subject), None);
    }
}
