//! What a channel is told: one sentence, and where the environment is reached.

use model::environment::notify::{About, Message, Occasion};
use model::environment::status::Status;
use model::name::Name;

/// The most characters of a reason: who wants to know more looks.
const BECAUSE_MAX: usize = 300;

/// A message as one sentence.
pub(crate) fn of(project: &Name, message: &Message) -> String {
    let Some(about) = &message.environment else {
        return format!("This is a test of Slipway for project {project}.");
    };
    let mut text = format!("*{}* of {project} {}", about.name, became(about, message));
    if let Some(tag) = about.tag.as_ref().filter(|tag| !tag.is_empty()) {
        text.push_str(&format!(", version {tag}"));
    }
    let because = message.because.trim();
    if !because.is_empty() {
        let end = because.char_indices().nth(BECAUSE_MAX);
        let end = end.map_or(because.len(), |(at, _)| at);
        text.push_str(&format!(": {}", &because[..end]));
    }
    if !about.owner.is_empty() {
        text.push_str(&format!(" (owner {})", about.owner));
    }
    let mut text = escaped(&text);
    let gone = matches!(message.occasion, Occasion::Gone | Occasion::Archived);
    if let Some(link) = about.links.first().filter(|_| !gone) {
        text.push_str(&format!(" {}", escaped(&link.url)));
    }
    text
}

fn became(about: &About, message: &Message) -> String {
    let is = about.status.map_or("gone", Status::as_str);
    match (message.occasion, &message.action) {
        (Occasion::ExpiresSoon, _) => "will not be up for much longer".to_owned(),
        (Occasion::ActionFailed, Some(action)) => {
            format!("is {is}, and {} has failed", action.deed)
        }
        (_, _) => match about.before {
            Some(before) if Some(before) != about.status => format!("is {is}, was {before}"),
            Some(_) | None => format!("is {is}"),
        },
    }
}

/// Three characters mean something to Slack.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
