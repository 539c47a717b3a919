//! How load balancers are called in the world: `dns`.

use super::fields::Fields;
use super::manifest::PROVIDER_NAME_MAX;
use super::parts::Parts;
use super::providers::{Lender, via};
use crate::dns::{CHOSEN_LEN, Declared, Domain};
use crate::fault::{Code, Faults};
use crate::name::Name;
use crate::provider::Provider;
use crate::source::Value;
use std::collections::{BTreeMap, BTreeSet};

/// More names than anybody gives to one load balancer.
const NAMES_MAX: usize = 100;

/// What is said of the names of one load balancer, as far as it could be read.
#[derive(Default)]
pub(super) struct Called {
    zone: Option<Domain>,
    /// Who answers for them.
    pub(super) provider: Option<Name>,
    /// Every name, with its place.
    names: Vec<(String, Domain)>,
    /// Where names besides the first are, if there are any.
    pub(super) besides: Option<String>,
    pub(super) whole: Option<Declared>,
}

/// Reads the names of a load balancer, where it has any. In doubt nothing is whole.
pub(super) fn of_balancer(
    fields: &mut Fields<'_>,
    providers: &Parts<Lender>,
    faults: &mut Faults,
) -> Option<Called> {
    let mut dns = fields.mapping("dns", faults)?;
    let zone: Option<Domain> = dns.parsed("dnsZone", faults);
    let provider = dns.name("provider", PROVIDER_NAME_MAX, faults);
    if let Some(provider) = &provider {
        answers(provider, &dns, providers, faults);
    }
    let absent = !dns.has("hostname");
    // The files that people have may say an empty one.
    let empty = dns.optional("hostname") == Some(&Value::Text(String::new()));
    let hostname = (!absent && !empty)
        .then(|| dns.name("hostname", Name::LEN_MAX, faults))
        .flatten();
    let mut names = Vec::new();
    names.extend(
        hostname
            .iter()
            .map(|label| (dns.path("hostname"), Domain::from(label))),
    );
    let (alternatives, read) = alternatives_of(&mut dns, faults);
    let besides = (!alternatives.is_empty()).then(|| dns.path("alternativeNames"));
    names.extend(alternatives.iter().cloned());
    if let Some(zone) = &zone {
        fitting(zone, &names, faults);
        let room = Domain::LEN_MAX - CHOSEN_LEN - 1;
        if zone.as_str().len() > room {
            let len = zone.as_str().len();
            let message =
                format!("found {len} characters, allowed: at most {room}, for a name before it");
            faults.note(dns.path("dnsZone"), Code::Range, message);
        }
    }
    dns.finish(faults);
    let said = absent || empty || hostname.is_some();
    let whole = || {
        Some(Declared {
            zone: zone.clone()?,
            provider: provider.clone()?,
            hostname,
            alternatives: alternatives.into_iter().map(|(_, name)| name).collect(),
        })
    };
    let whole = whole().filter(|_| said && read);
    Some(Called {
        zone,
        provider,
        names,
        besides,
        whole,
    })
}

/// Other names, each with its place, and whether all could be read.
fn alternatives_of(dns: &mut Fields<'_>, faults: &mut Faults) -> (Vec<(String, Domain)>, bool) {
    let mut names = Vec::new();
    let items = dns.items("alternativeNames", NAMES_MAX, faults);
    let count = items.len();
    for (path, item) in items {
        let judged = match item {
            Value::Text(text) => text.parse::<Domain>().map_err(|error| error.to_string()),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_) => Err("a name is a text".to_owned()),
        };
        match judged {
            Ok(name) => names.push((path, name)),
            Err(why) => faults.note(path, Code::Format, format!("found {item}: {why}")),
        }
    }
    let read = names.len() == count;
    (names, read)
}

/// Names that are too long below their zone.
fn fitting(zone: &Domain, names: &[(String, Domain)], faults: &mut Faults) {
    for (path, name) in names {
        if let Err(error) = name.within(zone) {
            faults.note(
                path,
                Code::Format,
                format!("found `{name}.{zone}`: {error}"),
            );
        }
    }
}

/// The provider must be there, and answer for names.
fn answers(name: &Name, dns: &Fields<'_>, providers: &Parts<Lender>, faults: &mut Faults) {
    providers.refuse_unknown(name, &dns.path("provider"), "provider", faults);
    let via = via(providers, name);
    if let Some(via) = via.filter(|via| !via.answers()) {
        let answering = Provider::all().filter(|other| other.answers());
        let answering: Vec<_> = answering.map(Provider::as_str).collect();
        let message = format!(
            "found `{name}` of type {}, allowed: a provider that answers for names, of type {}",
            via.as_str(),
            answering.join(", ")
        );
        faults.note(dns.path("provider"), Code::Reference, message);
    }
}

/// Names that are there twice, whichever load balancers have them and in whichever zones they are written; and
/// names that nobody would find, because a narrower zone answers for them.
pub(super) fn unique<'a>(all: impl Iterator<Item = &'a Called> + Clone, faults: &mut Faults) {
    let zones: BTreeSet<&Domain> = all.clone().filter_map(|of| of.zone.as_ref()).collect();
    let mut seen: BTreeMap<Domain, (&Domain, &str)> = BTreeMap::new();
    for called in all {
        let Some(zone) = &called.zone else { continue };
        for (path, name) in &called.names {
            // One that is too long was told.
            let Ok(whole) = name.within(zone) else {
                continue;
            };
            let answers = |other: &&&Domain| other.is_below(zone) && whole.is_of(other);
            if let Some((other, first)) = seen.insert(whole.clone(), (zone, path)) {
                let message = if other == zone {
                    format!("found `{name}` again in zone {zone}; it is at {first}")
                } else {
                    format!(
                        "found `{name}` in zone {zone}, which is {whole}; that is at {first}, in zone {other}"
                    )
                };
                faults.note(path, Code::Duplicate, message);
            } else if let Some(narrow) = zones.iter().find(answers) {
                let message = format!(
                    "found `{name}` in zone {zone}, which is {whole}, allowed: a name outside of {narrow}, \
                     a zone of this manifest that answers for all below it; name it there"
                );
                faults.note(path, Code::Reference, message);
            }
        }
    }
}
