//! All who carry messages to somebody outside, as one: each message says which of them it needs.

use anyhow::Context as _;
use driver::Context;
use driver::deliver::{Carried, Courier, Parcel};
use driver::deploy::Subject;
use model::environment::delivery::Answer;
use model::environment::git::report::Reported;
use model::environment::notify::Message;
use post::Post;
use post::web::{Patience, Web};
use scripts::{Deployers, Notified};
use std::sync::Arc;

/// Control scripts, and whoever is reached over the web.
pub(crate) struct Couriers {
    deployers: Arc<Deployers>,
    post: Post,
}

impl Couriers {
    pub(crate) fn new(deployers: Arc<Deployers>) -> anyhow::Result<Self> {
        let web = Web::new(Patience::default()).context("could not prepare to tell others")?;
        let post = Post::new(web);
        Ok(Self { deployers, post })
    }

    /// Tells the script of the project.
    async fn script(&self, parcel: &Parcel) -> Carried {
        let Ok(message) = serde_json::from_str::<Message>(&parcel.document) else {
            return Carried::never("what it says cannot be read by this program");
        };
        let (Some(settings), Some(about)) = (&parcel.settings, message.environment) else {
            return Carried::never("the project says nothing of environments any more");
        };
        let (Some(was), Some(became)) = (about.before, about.status) else {
            return Carried::never("scripts are told of statuses alone");
        };
        let subject = Subject {
            id: Some(about.id),
            project: parcel.project.clone(),
            name: about.name,
            settings: settings.clone(),
            application: tagged(settings, about.tag.as_deref()),
            deployment: Vec::new(),
        };
        match self.deployers.scripts().notify(&subject, was, became).await {
            Ok(Notified::Told) => Carried {
                answer: Answer::Taken,
                said: String::new(),
            },
            Ok(Notified::Nobody) => Carried {
                answer: Answer::Nobody,
                said: String::new(),
            },
            // It was begun, and may have told others: it is somebody's script, and need not bear
            // being run twice.
            Err(error) => Carried::never(error.to_string()),
        }
    }
}

/// The tag alone, for scripts that know it as an argument of its own.
fn tagged(
    settings: &model::environment::settings::Settings,
    tag: Option<&str>,
) -> Vec<model::environment::config::Setting> {
    use model::environment::config::{Given, Setting, Source};
    let value = tag.and_then(|tag| tag.parse().ok());
    let setting = value.map(|value| Setting {
        key: settings.tag.clone(),
        value: Given::Plain(value),
        source: Source::Added,
    });
    setting.into_iter().collect()
}

impl Courier for Couriers {
    async fn carry(&self, cx: &Context, parcel: &Parcel) -> Carried {
        match parcel.kind.as_str() {
            "script" => self.script(parcel).await,
            "webhook" | "slack" => self.post.carry(cx, parcel).await,
            Reported::KIND => self.post.report(cx, parcel).await,
            other => Carried::never(format!("nobody here carries messages of kind {other}")),
        }
    }
}
