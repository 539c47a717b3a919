//! What opens the accounts of a manifest, judged before anything is begun with it.

use model::fault::{Code, Fault, Faults};
use model::manifest::{Account, Manifest, Named};
use model::name::Name;
use model::provider::{Cloud, Provider};
use model::sealed::{Owner, Place};
use std::collections::BTreeMap;
use store::Actor;

use crate::app::App;
use crate::problem::Problem;

/// Refuses secrets that cannot open what they are named for.
pub(crate) async fn check(
    app: &App,
    project: &Name,
    manifest: &Manifest,
    actor: &Actor,
) -> Result<(), Problem> {
    let faults = faults(app, project, manifest, actor).await?;
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Problem::faults(faults))
    }
}

/// Secrets that cannot open what they are named for. Those that are not set yet are waited for;
/// whoever sets them later is judged by their provider.
pub(crate) async fn faults(
    app: &App,
    project: &Name,
    manifest: &Manifest,
    actor: &Actor,
) -> Result<Vec<Fault>, Problem> {
    let mut faults = Faults::default();
    for account in manifest.providers.values() {
        if let Account {
            via: Provider::Cloud(cloud),
            secret: Some(named),
            ..
        } = account
        {
            for fault in judged(app, project, *cloud, named, actor).await? {
                let message = format!(
                    "found a secret that opens no account of {}: {fault}",
                    cloud.as_str()
                );
                faults.note(named.path.clone(), Code::Format, message);
            }
        }
    }
    Ok(faults.into_vec())
}

/// What is wrong with those entries of a secret that are set.
async fn judged(
    app: &App,
    project: &Name,
    cloud: Cloud,
    named: &Named,
    actor: &Actor,
) -> Result<Vec<String>, Problem> {
    let mut found = BTreeMap::new();
    for name in cloud
        .entries()
        .iter()
        .filter_map(|entry| entry.name.parse().ok())
    {
        let place = Place {
            project: project.clone(),
            owner: Owner::Secret(named.secret.name.clone()),
            entry: name,
        };
        if let Some(value) = app.vault().open(&place, actor).await? {
            found.insert(place.entry.to_string(), value);
        }
    }
    let mut faults = Vec::new();
    let mut texts = BTreeMap::new();
    for (name, value) in &found {
        match value.expose_text() {
            Some(text) => drop(texts.insert(name.as_str(), text)),
            None => faults.push(format!("{name} is no text")),
        }
    }
    faults.extend(cloud.faults(&texts));
    Ok(faults)
}
