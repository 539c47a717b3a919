//! The smallest world for tests of this crate.

use driver::deploy::Subject;
use driver::{Clock, Context, Keeping, Log, Open, Opening};
use model::environment::config::{Edits, Given, Key, Level, Setting, Source};
use model::environment::settings::{Patience, Place, Settings};
use model::id::{EnvironmentId, Origin};
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
    Settings {
        place: Place {
            project_name: "Cactus store".to_owned(),
            base_domain: "cactus-store.com".to_owned(),
            namespace: "cactus".parse().unwrap(),
            cluster: None,
        },
        scripts: "/nowhere".to_owned(),
        contract: model::environment::settings::Contract::Current,
        tag: Settings::TAG.parse().unwrap(),
        secret_delivery: None,
        patience: Patience::default(),
        retention: Settings::RETENTION,
        up_max: None,
    }
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
