//! The smallest world for tests of this crate.

use driver::deploy::Subject;
use driver::{Clock, Context, Keeping, Log, Open, Opening, Unopened};
use model::environment::config::{Edits, Given, Key, Level, Setting, Source};
use model::environment::settings::{Place, Settings};
use model::id::{EnvironmentId, Origin};
use model::name::Name;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::time::Timestamp;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(crate) fn setting(key: &str, value: &str) -> Setting {
    Setting {
        key: key.parse().unwrap(),
        value: Given::Plain(value.parse().unwrap()),
        source: Source::Added,
    }
}

pub(crate) fn secret(key: &str) -> Setting {
    Setting {
        value: Given::Secret,
        ..setting(key, "")
    }
}

pub(crate) fn settings() -> Settings {
    let place = Place {
        project_name: "Cactus store".to_owned(),
        base_domain: "cactus-store.com".to_owned(),
        namespace: "cactus".parse().unwrap(),
        cluster: None,
    };
    Settings::usual(place, "/nowhere")
}

pub(crate) fn subject() -> Subject {
    let origin = Origin {
        parent: "cactus",
        name: "orange-button",
        ordinal: 0,
        incarnation: 0,
    };
    Subject {
        id: Some(EnvironmentId::derive(origin)),
        project: "cactus".parse().unwrap(),
        name: "orange-button".parse().unwrap(),
        settings: settings(),
        application: Vec::new(),
        deployment: Vec::new(),
    }
}

/// Knows these values of every environment.
pub(crate) struct Known(pub(crate) Vec<(Level, &'static str, &'static [u8])>);

impl Open for Known {
    fn open<'a>(&'a self, _: &'a SecretRef) -> Opening<'a> {
        unreachable!("settings are kept with their environment")
    }

    fn kept<'a>(&'a self, _: &'a Owner, entry: &'a EntryName) -> Keeping<'a> {
        let of = |(level, key, _): &&(Level, &str, &[u8])| {
            Edits::entry(*level, &key.parse::<Key>().unwrap()) == *entry
        };
        let found = self.0.iter().find(of);
        let found = found.map(|(_, _, value)| Secret::from(value.to_vec()));
        Box::pin(std::future::ready(Ok(found)))
    }

    fn kubeconfig<'a>(&'a self, cluster: &'a Name) -> Opening<'a> {
        let way = match cluster.as_str() {
            "nowhere" => Err(Unopened::Retry(driver::Error {
                attempted: format!("there is no cluster {cluster}"),
                hint: String::new(),
            })),
            name => Ok(Secret::from_text(format!(
                "cluster: {name}\ntoken: the-way-to-{name}\n"
            ))),
        };
        Box::pin(std::future::ready(way))
    }
}

struct Silent;

impl Log for Silent {
    fn line(&self, _: Timestamp, _: &str) {}
}

pub(crate) fn context(known: Known) -> Context {
    Context::new(
        Clock::System,
        Arc::new(Silent),
        Arc::new(known),
        CancellationToken::new(),
        1,
    )
}
