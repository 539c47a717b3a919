//! Carries messages to people and programs outside, over the web.
//!
//! [`Post`] tells the targets that projects name in their settings: by a signed request, or by a
//! sentence to a channel. Each message is carried once; whether it is carried again is decided
//! elsewhere. [`web::Web`] is what all of them go through: bounded in time and size, and following
//! nobody who says that they have moved.
//!
//! **Invariant:** what opens the way to somebody, a key or an address, is in the request and in
//! nothing that is answered, logged or stored. `tests/deliveries` looks for it.

pub mod signature;
pub mod web;

mod body;
mod git;
mod sentence;

use driver::deliver::{Carried, Parcel};
use driver::{Context, Unopened};
use model::environment::delivery::Answer;
use model::environment::notify::{Address, Message, Target, Way, Webhook};
use model::secret::{Secret, SecretRef};
use web::{Post as Request, Web};

/// Tells the targets of projects.
#[derive(Clone)]
pub struct Post {
    web: Web,
}

impl Post {
    /// Prepares to carry; nobody is asked yet.
    pub fn new(web: Web) -> Self {
        Self { web }
    }

    /// Carries a message to the target of its project that it names.
    pub async fn carry(&self, cx: &Context, parcel: &Parcel) -> Carried {
        let Ok(message) = serde_json::from_str::<Message>(&parcel.document) else {
            return Carried::never("what it says cannot be read by this program");
        };
        let settings = parcel.settings.as_ref();
        let named = |target: &&Target| {
            target.name.as_str() == parcel.target && target.way.as_str() == parcel.kind
        };
        let Some(target) = settings.and_then(|settings| settings.notify.iter().find(named)) else {
            return Carried::never("the project names no such target any more");
        };
        match &target.way {
            Way::Webhook(webhook) => self.webhook(cx, webhook, parcel, &message).await,
            Way::Slack(secret) => self.slack(cx, secret, parcel, &message).await,
        }
    }

    async fn webhook(
        &self,
        cx: &Context,
        webhook: &Webhook,
        parcel: &Parcel,
        message: &Message,
    ) -> Carried {
        let key = match opened(cx, &webhook.secret).await {
            Ok(key) => key,
            Err(carried) => return carried,
        };
        let body = body::of(parcel, message);
        let timestamp = (cx.now().as_millis() / 1_000).to_string();
        let Some(signature) = signature::sign(line(&key), &timestamp, &body) else {
            return Carried::never("nothing can be signed with its secret");
        };
        let request = Request {
            url: &webhook.url,
            headers: vec![
                ("slipway-delivery", parcel.id.to_string()),
                ("slipway-timestamp", timestamp),
                ("slipway-signature", signature),
            ],
            body,
        };
        self.web.post(request).await.carried(&[line(&key)])
    }

    async fn slack(
        &self,
        cx: &Context,
        secret: &SecretRef,
        parcel: &Parcel,
        message: &Message,
    ) -> Carried {
        let url = match opened(cx, secret).await {
            Ok(url) => url,
            Err(carried) => return carried,
        };
        let text = std::str::from_utf8(line(&url)).unwrap_or_default();
        let address = match text.parse::<Address>() {
            Ok(address) => address,
            Err(error) => {
                return refused(format!("secret {secret} is no address of the web: {error}"));
            }
        };
        let text = sentence::of(&parcel.project, message);
        let request = Request {
            url: &address,
            headers: vec![("slipway-delivery", parcel.id.to_string())],
            body: serde_json::json!({ "text": text }).to_string(),
        };
        let path = text_of_path(&address);
        let answered = self.web.post(request).await;
        answered.carried(&[line(&url), path.as_bytes()])
    }
}

/// What follows the host of an address: that is what opens the way.
fn text_of_path(address: &Address) -> String {
    let rest = address
        .as_str()
        .split_once("://")
        .map_or("", |(_, rest)| rest);
    rest.split_once('/').map_or("", |(_, path)| path).to_owned()
}

/// What a secret says, without the line break that people's files end with.
fn line(secret: &Secret) -> &[u8] {
    secret.expose().trim_ascii_end()
}

async fn opened(cx: &Context, secret: &SecretRef) -> Result<Secret, Carried> {
    cx.secret(secret).await.map_err(|unopened| match unopened {
        Unopened::Retry(error) => Carried::later(error.to_string()),
        Unopened::Stuck(error) => refused(error.to_string()),
    })
}

/// Somebody must change something, and may do so soon.
fn refused(said: String) -> Carried {
    Carried {
        answer: Answer::Refused,
        said,
    }
}
