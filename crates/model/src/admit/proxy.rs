//! How the hosts of a cluster reach package sources and registries.

use super::fields::Fields;
use super::kubernetes::Said;
use crate::fault::{Code, Faults};
use crate::host::Proxy;
use crate::network::Network;
use crate::source::Value;
use std::net::Ipv6Addr;

/// What is never reached through a proxy: the host itself, and what is inside every cluster.
const ALWAYS_DIRECT: [&str; 5] = [
    "127.0.0.0/8",
    "localhost",
    "cluster.local",
    "svc",
    "slipway.internal",
];

/// The longest list of what is reached without a proxy: it becomes one line of settings.
const DIRECT_MAX: usize = 4_096;

/// The proxy that a cluster declares, where its mode is `on`; or `default`, and it has machines of
/// somebody whose addresses package sources and registries are known to refuse.
pub(super) fn of_cluster(
    fields: &mut Fields<'_>,
    network: Option<Network>,
    (kubernetes, refused): (&Said, bool),
    faults: &mut Faults,
) -> Option<Proxy> {
    let mut proxy = fields.mapping("installationProxy", faults)?;
    let on = match proxy.text("mode", faults) {
        Some("on") => true,
        // Without a proxy of one's own there is none to go through.
        Some("default") => refused && proxy.has("endpoint"),
        Some("off") | None => false,
        Some(other) => {
            let found = Value::Text(other.to_owned());
            let message = format!("found {found}, allowed: on, off or default");
            faults.note(proxy.path("mode"), Code::Format, message);
            false
        }
    };
    let endpoint = endpoint_of(&mut proxy, on, faults);
    let direct = direct_of(&mut proxy, faults);
    proxy.finish(faults);
    let always = ALWAYS_DIRECT.iter().map(|one| (*one).to_owned());
    let inside = [kubernetes.pods, kubernetes.services, network];
    let inside = inside.into_iter().flatten().map(|one| one.to_string());
    let except = always.chain(inside).chain(direct).collect();
    let endpoint = endpoint.filter(|_| on)?;
    Some(Proxy { endpoint, except })
}

/// What is reached without the proxy besides. Blanks and commas around the list and between its
/// words mean nothing: people's files have them.
fn direct_of(proxy: &mut Fields<'_>, faults: &mut Faults) -> Vec<String> {
    let list = proxy.optional("noProxy");
    let path = proxy.path("noProxy");
    let allowed = "allowed: names, addresses and networks, with commas between";
    match list {
        None => Vec::new(),
        Some(Value::Text(text)) if text.len() > DIRECT_MAX => {
            let found = text.chars().count();
            let message = format!("found {found} characters, allowed: at most {DIRECT_MAX}");
            faults.note(path, Code::Range, message);
            Vec::new()
        }
        Some(Value::Text(text)) => {
            let words = text.split(',').map(str::trim);
            let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
            if let Some(bad) = words.iter().find(|word| !plain(word)) {
                let found = Value::Text((*bad).to_owned());
                faults.note(path, Code::Format, format!("found {found}, {allowed}"));
            }
            words.into_iter().map(str::to_owned).collect()
        }
        Some(
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_)),
        ) => {
            faults.note(path, Code::Type, format!("found {other}, {allowed}"));
            Vec::new()
        }
    }
}

fn endpoint_of(proxy: &mut Fields<'_>, on: bool, faults: &mut Faults) -> Option<String> {
    /// What is allowed, by example.
    const FOR_EXAMPLE: &str = "allowed: for example http://proxy.example.org:3128";
    let given = proxy.has("endpoint");
    let endpoint = proxy.optional_text("endpoint", faults);
    let path = proxy.path("endpoint");
    match endpoint {
        Some(text) if is_url(text) => return Some(text.to_owned()),
        // What stands before an `@` may be a password: it is not repeated.
        Some(text) if text.contains('@') => {
            let message = format!(
                "found a user or a password, which a manifest must not hold; {FOR_EXAMPLE}"
            );
            faults.note(path, Code::Format, message);
        }
        Some(text) => {
            let found = Value::Text(text.to_owned());
            faults.note(path, Code::Format, format!("found {found}, {FOR_EXAMPLE}"));
        }
        None if on && !given => {
            let message = "found nothing, allowed: the URL of the proxy, because its mode is on";
            faults.note(path, Code::Required, message);
        }
        None => {}
    }
    None
}

/// Whether a text is the URL of a server as a whole: a scheme, a host, perhaps a port.
pub(super) fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else { return false };
    let place = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        Some(_) | None => (place, None),
    };
    let number = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    is_host(host) && port.is_none_or(number)
}

fn is_host(text: &str) -> bool {
    let inside = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    if let Some(address) = inside {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && !label.starts_with('-') && label.bytes().all(inner)
    };
    text.split('.').all(label)
}

/// Whether the programs of a host take it as one word.
fn plain(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".:/-_*[]".contains(&byte);
    text.bytes().all(allowed)
}
