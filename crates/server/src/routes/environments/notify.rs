//! Who is told what becomes of environments.

use std::collections::{BTreeMap, BTreeSet};

use api::environment::{NotifyEvent, NotifySlack, NotifyTarget, NotifyWebhook};
use model::environment::notify::{TARGETS_MAX, Target, Way, Webhook};
use model::environment::settings::Settings;
use model::name::Name;

use super::settings::{is_set, secret};
use crate::app::App;
use crate::extract;
use crate::problem::Problem;

/// The longest label, and the longest value of one.
const LABEL_LEN_MAX: usize = 256;

/// Targets whose names, addresses and secrets can be what they are.
pub(super) fn checked(targets: Vec<NotifyTarget>) -> Result<Vec<Target>, Problem> {
    if targets.len() > TARGETS_MAX {
        let detail = format!("found {}, allowed: at most {TARGETS_MAX}", targets.len());
        return Err(Problem::parameter("notify", detail));
    }
    let mut names = BTreeSet::new();
    let mut checked = Vec::with_capacity(targets.len());
    for (at, target) in targets.into_iter().enumerate() {
        let target = one(&format!("notify[{at}]"), target)?;
        if !names.insert(target.name.clone()) {
            let place = format!("notify[{at}].name");
            let detail = format!("found {} twice, allowed: each name once", target.name);
            return Err(Problem::parameter(&place, detail));
        }
        checked.push(target);
    }
    Ok(checked)
}

/// What is missing of the secrets that targets name.
pub(super) async fn unset(
    app: &App,
    project: &Name,
    settings: &Settings,
) -> Result<Vec<String>, Problem> {
    let mut unset = Vec::new();
    for Target { name, way, .. } in &settings.notify {
        let (Way::Webhook(Webhook { secret, .. }) | Way::Slack(secret)) = way;
        if !is_set(app, project, secret).await? {
            unset.push(format!(
                "notify {name}: its secret {secret} is not set, so nothing arrives there"
            ));
        }
    }
    Ok(unset)
}

fn one(place: &str, target: NotifyTarget) -> Result<Target, Problem> {
    let NotifyTarget {
        name,
        webhook,
        slack,
        events,
        labels,
    } = target;
    let way = match (webhook, slack) {
        (Some(NotifyWebhook { url, secret: text }), None) => {
            let url = url.parse();
            let wrong = |error| Problem::parameter(&format!("{place}.webhook.url"), error);
            Way::Webhook(Webhook {
                url: url.map_err(wrong)?,
                secret: secret(&format!("{place}.webhook.secret"), &text)?,
            })
        }
        (None, Some(NotifySlack { secret: text })) => {
            Way::Slack(secret(&format!("{place}.slack.secret"), &text)?)
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::parameter(
                place,
                "allowed: either webhook or slack",
            ));
        }
    };
    Ok(Target {
        name: extract::name(&format!("{place}.name"), &name)?,
        way,
        events: events.into_iter().map(NotifyEvent::occasion).collect(),
        labels: wanted(&format!("{place}.labels"), labels)?,
    })
}

/// Labels, each with its value or with any.
fn wanted(place: &str, labels: Vec<String>) -> Result<BTreeMap<String, Option<String>>, Problem> {
    let read = |text: String| {
        let (label, value) = match text.split_once('=') {
            Some((label, value)) => (label.to_owned(), Some(value.to_owned())),
            None => (text, None),
        };
        let long = label.len().max(value.as_ref().map_or(0, String::len));
        if label.is_empty() || long > LABEL_LEN_MAX {
            let detail =
                format!("allowed: LABEL or LABEL=VALUE, each of at most {LABEL_LEN_MAX} bytes");
            return Err(Problem::parameter(place, detail));
        }
        Ok((label, value))
    };
    labels.into_iter().map(read).collect()
}
