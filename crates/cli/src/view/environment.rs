//! Environments as people see them.

use super::ago;
use crate::table::{Table, indent, plain};
use api::environment::NotifyTarget;
use api::time::{brief, exact};
use api::{
    ActionView, ConfigurationView, DeliveryView, EditKind, EditView, EnvironmentSettingsView,
    EnvironmentView, SettingView, Time,
};
use std::time::Duration;

/// How much of a value stands in a table: the rest is for `-o json`.
const VALUE_LEN_MAX: usize = 60;

pub(crate) fn environments(environments: &[EnvironmentView], now: Time) -> String {
    let mut table = Table::new([
        "NAME", "STATUS", "SINCE", "DOING", "OWNER", "LABELS", "ENDS", "CHANGED",
    ]);
    for view in environments {
        let labels: Vec<_> = view
            .labels
            .iter()
            .map(|(label, value)| format!("{label}={value}"))
            .collect();
        table.row([
            view.name.clone(),
            status(view, now),
            ago(view.since, now),
            doing(view),
            view.owner.clone(),
            labels.join(" "),
            view.expires_at
                .map_or_else(|| "never".to_owned(), |end| ago(end, now)),
            ago(view.updated_at, now),
        ]);
    }
    table.render()
}

fn status(view: &EnvironmentView, now: Time) -> String {
    let mut words = vec![view.status.to_string()];
    words.extend(view.failed.then(|| "last action failed".to_owned()));
    words.extend(view.cancelled.as_ref().map(|cancelled| {
        let api::CancelledView { kind, by, at, .. } = cancelled;
        format!("{kind} cancelled by {by} {}", ago(*at, now))
    }));
    words.extend(view.asleep.map(|why| format!("asleep by {}", why.as_str())));
    let unseen = view
        .checked
        .as_ref()
        .and_then(|checked| checked.unseen_since);
    words.extend(unseen.map(|since| format!("nobody could look for {}", brief(since.age(now)))));
    words.extend(view.protected.then(|| "protected".to_owned()));
    words.join(", ")
}

fn doing(view: &EnvironmentView) -> String {
    view.busy.as_ref().map_or_else(
        || "nothing".to_owned(),
        |busy| {
            let cancelled = if busy.cancelled { ", cancelled" } else { "" };
            format!("{}, {}{cancelled}", busy.kind, busy.state)
        },
    )
}

/// All that is known of one environment.
pub(crate) fn environment(
    view: &EnvironmentView,
    actions: &[ActionView],
    untold: &[DeliveryView],
    whole: Option<&ConfigurationView>,
    now: Time,
) -> String {
    let mut text = format!("environment {}\n", view.name);
    let mut say = |name: &str, value: String| {
        text.push_str(&format!("  {name:<12}{}\n", plain(&value)));
    };
    say("status", status(view, now));
    say("since", ago(view.since, now));
    say("doing", doing(view));
    let waits = view.busy.as_ref().and_then(|busy| busy.waits_for.clone());
    if let Some(waits) = waits {
        say("waits", waits);
    }
    if let Some(checked) = &view.checked {
        let seen = checked
            .seen
            .map_or("nobody could look", api::SeenView::as_str);
        say("last look", format!("{seen}, {}", ago(checked.at, now)));
    }
    let exits: Vec<_> = view.exits.iter().map(ToString::to_string).collect();
    say("possible", exits.join(", "));
    say("owner", view.owner.clone());
    let labels = view.labels.iter();
    let labels: Vec<_> = labels
        .map(|(label, value)| format!("{label}={value}"))
        .collect();
    say("labels", labels.join(" "));
    if let Some(end) = view.expires_at {
        say("ends", ago(end, now));
    }
    if let Some(origin) = &view.origin {
        say("request", format!("{}, {}", request(origin), origin.url));
    }
    say("created", ago(view.created_at, now));
    say("generation", view.generation.to_string());
    let section = |name: &str, body: String| {
        if body.is_empty() {
            String::new()
        } else {
            format!("{name}\n{}", indent(&body))
        }
    };
    text += &section(
        "notes",
        view.notes.lines().map(|line| plain(line) + "\n").collect(),
    );
    let said = view
        .checked
        .as_ref()
        .map_or("", |checked| checked.said.trim());
    text += &section(
        "what the last look said",
        said.lines().map(|line| plain(line) + "\n").collect(),
    );
    text += &section("links", links(view));
    if let Some(whole) = whole {
        text += &configuration(whole);
    } else {
        text += &section("application, as edited", edits(&view.edits.application));
        text += &section("deployment, as edited", edits(&view.edits.deployment));
    }
    text += &section("actions", self::actions(actions, now));
    text + &section("messages that have not arrived", deliveries(untold, now))
}

fn links(view: &EnvironmentView) -> String {
    let line = |link: &api::LinkView| {
        if link.name.is_empty() {
            format!("{}\n", plain(&link.url))
        } else {
            format!("{}: {}\n", plain(&link.name), plain(&link.url))
        }
    };
    view.links.iter().map(line).collect()
}

fn edits(edits: &[EditView]) -> String {
    let mut table = Table::new(["SETTING", "VALUE"]);
    for edit in edits {
        let value = match edit.kind {
            EditKind::Set => short(edit.value.as_deref().unwrap_or_default()),
            EditKind::Secret => "(secret, set)".to_owned(),
            EditKind::Removed => "(left out)".to_owned(),
        };
        table.row([edit.key.clone(), value]);
    }
    table.render()
}

/// A configuration as it counts in the end.
pub(crate) fn configuration(view: &ConfigurationView) -> String {
    let level = |name: &str, settings: &[SettingView]| {
        let mut table = Table::new(["SETTING", "VALUE", "FROM"]);
        for setting in settings {
            let value = match &setting.value {
                Some(value) => short(value),
                None => "(secret, set)".to_owned(),
            };
            let from = setting.source.as_str().to_owned();
            table.row([setting.key.clone(), value, from]);
        }
        let table = table.render();
        if table.is_empty() {
            format!("{name}: nothing\n")
        } else {
            format!("{name}\n{}", indent(&table))
        }
    };
    level("application", &view.application) + &level("deployment", &view.deployment)
}

pub(super) fn short(value: &str) -> String {
    let value = value.replace('\n', "\\n");
    if value.chars().count() <= VALUE_LEN_MAX {
        return value;
    }
    let head: String = value.chars().take(VALUE_LEN_MAX).collect();
    format!("{head}…")
}

fn actions(actions: &[ActionView], now: Time) -> String {
    let mut table = Table::new([
        "ACTION", "WHAT", "STATE", "BY", "WHEN", "TOOK", "EXIT", "ERROR",
    ]);
    for view in actions {
        let took = match (view.started_at, view.ended_at) {
            (Some(begun), Some(ended)) => brief(begun.age(ended)),
            (Some(_) | None, _) => "-".to_owned(),
        };
        let forced = if view.forced { " by force" } else { "" };
        table.row([
            view.id.clone(),
            format!("{}{forced}", view.kind),
            view.state.to_string(),
            view.author.clone(),
            ago(view.created_at, now),
            took,
            view.exit
                .map_or_else(|| "-".to_owned(), |exit| exit.to_string()),
            view.error.clone().unwrap_or_default(),
        ]);
    }
    table.render()
}

/// Which request an environment is of, or a copy of one that is.
fn request(origin: &api::environment::OriginView) -> String {
    let short: String = origin.sha.chars().take(12).collect();
    let fork = if origin.fork {
        ", of a fork: given no secrets"
    } else {
        ""
    };
    format!(
        "{} of {} ({}), {} at {short}{fork}",
        origin.request, origin.repository, origin.source, origin.branch
    )
}

/// How environments of a project are made.
pub(crate) fn environment_settings(view: &EnvironmentSettingsView, now: Time) -> String {
    let settings = &view.settings;
    let none = || "-".to_owned();
    let span = |seconds: Option<u32>| {
        seconds.map_or_else(none, |seconds| exact(Duration::from_secs(seconds.into())))
    };
    let rows = [
        ("project name", settings.project_name.clone()),
        ("base domain", settings.base_domain.clone()),
        ("namespace", settings.namespace.clone()),
        ("cluster", settings.cluster.clone().unwrap_or_else(none)),
        deployed_by(settings),
        (
            "contract",
            settings
                .contract
                .map_or("current", api::environment::Contract::as_str)
                .to_owned(),
        ),
        ("tag key", settings.tag_key.clone().unwrap_or_else(none)),
        ("secrets as", secrets_as(settings).to_owned()),
        ("action time", span(settings.action_seconds)),
        ("check time", span(settings.check_seconds)),
        ("pending time", span(settings.pending_seconds)),
        ("looked at every", span(settings.every_seconds)),
        ("kept in archive", span(settings.retention_seconds)),
        (
            "sleeps after",
            settings
                .idle_seconds
                .map_or_else(|| "any time".to_owned(), |_| span(settings.idle_seconds)),
        ),
        (
            "is up",
            if settings.hours.is_empty() {
                "always".to_owned()
            } else {
                settings.hours.join("; ")
            },
        ),
        (
            "up at once",
            settings
                .up_max
                .map_or_else(|| "any number".to_owned(), |max| format!("at most {max}")),
        ),
        ("tells", tells(settings)),
        (
            "changed",
            format!(
                "{} by {}, version {}",
                ago(view.updated_at, now),
                view.updated_by,
                view.version
            ),
        ),
    ];
    let line = |(name, value): &(&str, String)| format!("{name:<16}{}\n", plain(value));
    let sources = settings.sources.iter().map(source);
    let sources = sources.map(|told| ("source", told)).collect::<Vec<_>>();
    rows.iter().chain(&sources).map(line).collect()
}

/// A repository whose requests have environments, and which of these.
fn source(source: &api::environment::GitSource) -> String {
    let mut words = vec![format!(
        "{}: {} {}",
        source.name,
        source.service.as_str(),
        source.repository
    )];
    let lists = [
        ("branches", &source.branches),
        ("labels", &source.labels),
        ("authors", &source.authors),
    ];
    let lists = lists.iter().filter(|(_, list)| !list.is_empty());
    words.extend(lists.map(|(name, list)| format!("{name} {}", list.join(" "))));
    words.extend(
        source
            .forks
            .map(|forks| format!("forks {}", forks.as_str())),
    );
    let named = [("called", &source.environment), ("tag", &source.tag)];
    let named = named.iter().filter_map(|(name, template)| {
        let template = template.as_ref()?;
        Some(format!("{name} {template}"))
    });
    words.extend(named);
    words.push(match &source.token {
        Some(_) => "is told how they are".to_owned(),
        None => "is told nothing".to_owned(),
    });
    words.join(", ")
}

/// Who else is told what becomes of environments.
fn tells(settings: &api::EnvironmentSettings) -> String {
    let target = |target: &NotifyTarget| {
        let way = match (&target.webhook, &target.slack) {
            (Some(webhook), _) => format!("{} signed with {}", webhook.url, webhook.secret),
            (None, Some(slack)) => format!("Slack at {}", slack.secret),
            (None, None) => String::new(),
        };
        let events: Vec<_> = target.events.iter().map(|event| event.as_str()).collect();
        let of = if events.is_empty() {
            String::new()
        } else {
            format!(" of {}", events.join(" "))
        };
        let labels: String = target
            .labels
            .iter()
            .map(|label| format!(" {label}"))
            .collect();
        format!("{}: {way}{of}{labels}", target.name)
    };
    if settings.notify.is_empty() {
        return "nobody else".to_owned();
    }
    settings
        .notify
        .iter()
        .map(target)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Messages to those who are told what becomes of environments.
pub(crate) fn deliveries(deliveries: &[DeliveryView], now: Time) -> String {
    let mut table = Table::new([
        "DELIVERY", "TO", "OF", "EVENT", "STATE", "TRIES", "WHEN", "NEXT", "SAID",
    ]);
    for view in deliveries {
        let none = || "-".to_owned();
        table.row([
            view.id.clone(),
            format!("{} {}", view.kind, view.target),
            view.environment.clone().unwrap_or_else(none),
            view.event.clone(),
            view.state.as_str().to_owned(),
            view.tries.to_string(),
            ago(view.created_at, now),
            view.next_at.map_or_else(none, |next| ago(next, now)),
            short(view.said.as_deref().unwrap_or_default()),
        ]);
    }
    table.render()
}

/// Who deploys environments.
fn deployed_by(settings: &api::EnvironmentSettings) -> (&'static str, String) {
    match (&settings.helm, &settings.scripts) {
        (Some(helm), _) => ("chart", helm.chart.clone()),
        (None, scripts) => ("scripts", scripts.clone().unwrap_or_default()),
    }
}

/// How secret settings reach whoever deploys.
fn secrets_as(settings: &api::EnvironmentSettings) -> &'static str {
    match (&settings.helm, settings.secret_delivery) {
        (Some(_), _) => "values of the chart",
        (None, Some(delivery)) => delivery.as_str(),
        (None, None) => "not taken",
    }
}
