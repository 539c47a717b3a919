//! `slipway env settings notify`: who else is told what becomes of environments.

use crate::context::Context;
use crate::error::Error;
use crate::view;
use api::environment::{
    EnvironmentSettings, NotifyEvent, NotifySlack, NotifyTarget, NotifyWebhook,
};
use api::{DeliveryState, Exit};
use std::time::Duration;

/// How long the answer of a target is waited for: longer than one may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(45);

/// Between two looks whether it has answered.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Every word that `--event` takes.
const EVENTS: [NotifyEvent; 8] = [
    NotifyEvent::Pending,
    NotifyEvent::Running,
    NotifyEvent::Failing,
    NotifyEvent::Archived,
    NotifyEvent::CleanupFailed,
    NotifyEvent::Gone,
    NotifyEvent::ActionFailed,
    NotifyEvent::ExpiresSoon,
];

/// Arguments of `slipway env settings notify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  slipway secret set hooks ops slack
  slipway env settings notify ops --webhook https://ops.example.org/slipway --secret hooks/ops
  slipway env settings notify chat --slack hooks/slack --event failing --event action-failed
  slipway env settings notify chat --remove

What a target had is replaced. The secret may be set before or after.")]
pub struct Notify {
    /// What the target is called
    #[arg(value_name = "TARGET", value_parser = api::argument::name)]
    target: String,

    /// Send it signed requests: to this address
    #[arg(
        long,
        value_name = "URL",
        requires = "secret",
        conflicts_with = "slack"
    )]
    webhook: Option<String>,

    /// What requests are signed with: a secret of the project, and its entry
    #[arg(long, value_name = "NAME/ENTRY", requires = "webhook")]
    secret: Option<String>,

    /// Write to a channel of Slack, or of whoever takes the same: the secret that has its address
    #[arg(long, value_name = "NAME/ENTRY")]
    slack: Option<String>,

    /// What it is told of; may be given several times [default: all but pending]
    #[arg(long = "event", value_name = "EVENT", value_parser = event)]
    events: Vec<NotifyEvent>,

    /// Only of environments with this label; may be given several times
    #[arg(long = "label", value_name = "LABEL[=VALUE]")]
    labels: Vec<String>,

    /// Tell it nothing any more
    #[arg(long, conflicts_with_all = ["webhook", "slack", "events", "labels"])]
    remove: bool,
}

/// Arguments of `slipway env settings test-notify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  slipway env settings test-notify ops

It is sent once, behind what waits for the target already. Ends with 1 when it did not arrive.")]
pub struct TestNotify {
    /// The target
    #[arg(value_name = "TARGET", value_parser = api::argument::name)]
    target: String,
}

fn event(word: &str) -> Result<NotifyEvent, String> {
    let found = EVENTS.into_iter().find(|event| event.as_str() == word);
    found.ok_or_else(|| {
        let all = EVENTS.map(NotifyEvent::as_str).join(", ");
        format!("write one of {all}")
    })
}

/// The settings with a target in place of the one of its name.
pub(super) fn named(
    notify: Notify,
    mut settings: EnvironmentSettings,
) -> Result<EnvironmentSettings, Error> {
    let at = settings
        .notify
        .iter()
        .position(|target| target.name == notify.target);
    if notify.remove {
        let at = at.ok_or_else(|| Error::Usage {
            what: format!("the project's settings name no target `{}`", notify.target),
            hint: "see `slipway env settings show`".to_owned(),
        })?;
        settings.notify.remove(at);
        return Ok(settings);
    }
    let webhook = notify.webhook.zip(notify.secret);
    let webhook = webhook.map(|(url, secret)| NotifyWebhook { url, secret });
    let slack = notify.slack.map(|secret| NotifySlack { secret });
    if webhook.is_none() && slack.is_none() {
        return Err(Error::Usage {
            what: "it is not said how the target is told".to_owned(),
            hint: "name --webhook and --secret, or --slack, or --remove".to_owned(),
        });
    }
    let target = NotifyTarget {
        name: notify.target,
        webhook,
        slack,
        events: notify.events,
        labels: notify.labels,
    };
    match at {
        Some(at) => settings.notify[at] = target,
        None => settings.notify.push(target),
    }
    Ok(settings)
}

/// Sends a test, and waits for what comes of it.
pub(super) async fn tested(test: &TestNotify, context: &mut Context<'_>) -> Result<Exit, Error> {
    let client = context.client()?;
    let mut view = client.test_delivery(&test.target).await?;
    let looked = async {
        while matches!(view.state, DeliveryState::Waiting | DeliveryState::Sending) {
            tokio::time::sleep(LOOK_EVERY).await;
            view = client.delivery(&view.id).await?;
        }
        Ok::<_, Error>(())
    };
    // Whoever waits for too long is shown how far it has come.
    if let Ok(looked) = tokio::time::timeout(ANSWERED_WITHIN, looked).await {
        looked?;
    }
    context.show(&view, |now| {
        view::deliveries(std::slice::from_ref(&view), now)
    })?;
    Ok(if view.state == DeliveryState::Delivered {
        Exit::Done
    } else {
        Exit::Failed
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        notify: Notify,
    }

    fn over(settings: EnvironmentSettings, line: &str) -> Result<EnvironmentSettings, String> {
        let words = std::iter::once("notify").chain(line.split(' '));
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        named(line.notify, settings).map_err(|error| error.to_string())
    }

    #[test]
    fn a_target_is_added_replaced_and_removed() {
        let text = r#"{"projectName":"Shop","baseDomain":"a.b","namespace":"shop","scripts":"/s"}"#;
        let settings: EnvironmentSettings = serde_json::from_str(text).unwrap();
        let settings = over(settings, "ops --webhook https://a --secret hooks/ops").unwrap();
        let settings = over(settings, "chat --slack hooks/slack --event failing").unwrap();
        let settings = over(
            settings,
            "ops --webhook https://b --secret hooks/b --label team=web",
        )
        .unwrap();
        let names: Vec<_> = settings
            .notify
            .iter()
            .map(|target| target.name.as_str())
            .collect();
        assert_eq!(names, ["ops", "chat"]);
        assert_eq!(
            settings.notify[0].webhook.as_ref().unwrap().url,
            "https://b"
        );
        assert_eq!(settings.notify[1].events, [NotifyEvent::Failing]);
        let why = |line| over(settings.clone(), line).unwrap_err();
        assert!(why("ops").contains("not said how"));
        assert!(why("ops --webhook https://a").contains("--secret"));
        assert!(why("other --remove").contains("no target `other`"));
        assert!(why("chat --slack hooks/slack --event never").contains("write one of pending"));
        let settings = over(settings, "ops --remove").unwrap();
        assert_eq!(settings.notify.len(), 1);
    }
}
