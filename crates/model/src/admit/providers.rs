//! Who lends machines: `providers`.

use super::fields::Fields;
use super::manifest::PROVIDER_NAME_MAX;
use super::parts::{Parts, Title};
use super::secrets;
use super::templates::{self, Described};
use crate::fault::{Code, Faults};
use crate::manifest::Account;
use crate::name::Name;
use crate::provider::Provider;
use crate::source::Value;

/// A provider as read: whose hands reach it counts even where the rest has faults.
pub(super) struct Lender {
    pub(super) via: Option<Provider>,
    pub(super) whole: Option<Account>,
}

pub(super) fn providers_of(
    spec: &mut Fields<'_>,
    modules: &mut Described,
    faults: &mut Faults,
) -> Parts<Lender> {
    Parts::of(spec, "providers", faults, |fields, path, faults| {
        provider_of(fields, path, modules, faults)
    })
}

fn provider_of(
    mut fields: Fields<'_>,
    path: &str,
    modules: &mut Described,
    faults: &mut Faults,
) -> (Title, Lender) {
    let title = Title::of(&mut fields, "name", PROVIDER_NAME_MAX, faults);
    let kind = fields.text("providerType", faults);
    let via = kind.and_then(|kind| kind_of(kind, path, faults));
    // A cloud knows which entries it needs.
    let secret = match via {
        Some(Provider::Cloud(_)) => secrets::named_whole(&mut fields, faults),
        Some(Provider::Simulated | Provider::Sandbox) | None => {
            secrets::named(&mut fields, None, faults)
        }
    };
    identified(via, &fields, faults);
    let templates = templates::of_provider(&mut fields, via, modules, faults);
    let whole = via.zip(templates.ok()).map(|(via, found)| {
        let (templates, templates_secret) = found.map(|of| (of.templates, of.secret)).unzip();
        Account {
            via,
            secret,
            templates,
            templates_secret: templates_secret.flatten(),
        }
    });
    fields.finish(faults);
    (title, Lender { via, whole })
}

fn kind_of(kind: &str, path: &str, faults: &mut Faults) -> Option<Provider> {
    let via = Provider::named(kind);
    if via.is_none() {
        let found = Value::Text(kind.to_owned());
        let known: Vec<_> = Provider::all().map(Provider::as_str).collect();
        let message = format!("found {found}, allowed: {}", known.join(", "));
        faults.note(format!("{path}.providerType"), Code::Unsupported, message);
    }
    via
}

/// Nobody lends anything to whom he does not know.
fn identified(via: Option<Provider>, fields: &Fields<'_>, faults: &mut Faults) {
    if let Some(Provider::Cloud(cloud)) = via
        && !fields.has("secretRef")
    {
        let entries = cloud.entries().iter().filter(|entry| entry.needed);
        let entries: Vec<_> = entries.map(|entry| entry.name).collect();
        let message = format!(
            "found nothing, allowed: the name of a secret with what opens the account ({})",
            entries.join(", ")
        );
        faults.note(fields.path("secretRef"), Code::Required, message);
    }
}

/// Whose hands reach a provider, where that could be read.
pub(super) fn via(providers: &Parts<Lender>, name: &Name) -> Option<Provider> {
    providers.get(name)?.value.via
}
