//! Who lends machines: `providers`.

use super::fields::Fields;
use super::manifest::{ENTRIES_MAX, PROVIDER_NAME_MAX, Read};
use super::secrets;
use super::templates::{self, Described};
use crate::fault::{Code, Faults};
use crate::manifest::Account;
use crate::name::Name;
use crate::provider::Provider;
use crate::source::Value;

pub(super) fn providers_of(
    spec: &mut Fields<'_>,
    modules: &mut Described,
    faults: &mut Faults,
) -> Vec<Read<Account>> {
    let mut providers = Vec::new();
    for (path, value) in spec.items("providers", ENTRIES_MAX, faults) {
        let Some(mut fields) = Fields::open(value, path.as_str(), faults) else {
            continue;
        };
        let name = fields.name("name", PROVIDER_NAME_MAX, faults);
        let kind = fields.text("providerType", faults);
        let via = kind.and_then(|kind| provider_of(kind, &path, faults));
        // A cloud knows which entries it needs.
        let secret = match via {
            Some(Provider::Cloud(_)) => secrets::named_whole(&mut fields, faults),
            Some(Provider::Simulated | Provider::Sandbox) | None => {
                secrets::named(&mut fields, None, faults)
            }
        };
        identified(via, &fields, faults);
        let templates = templates::of_provider(&mut fields, via, modules, faults);
        let value = via.zip(templates.ok()).map(|(via, found)| {
            let (templates, templates_secret) = found.map(|of| (of.templates, of.secret)).unzip();
            Account {
                via,
                secret,
                templates,
                templates_secret: templates_secret.flatten(),
            }
        });
        fields.finish(faults);
        providers.extend(name.map(|name| Read { path, name, value }));
    }
    providers
}

fn provider_of(kind: &str, path: &str, faults: &mut Faults) -> Option<Provider> {
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

/// What is said of a provider, where it could be read.
pub(super) fn account<'a>(providers: &'a [Read<Account>], name: &Name) -> Option<&'a Account> {
    let provider = providers.iter().find(|provider| provider.name == *name)?;
    provider.value.as_ref()
}
