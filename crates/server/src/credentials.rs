//! What opens the accounts of a manifest, judged before anything is begun with it.
//!
//! A secret is opened to be judged once for each of its versions; what is remembered is the verdict
//! and never a value. So whoever plans ten times has opened it once, and the audit says so once.

use model::cluster::{Machine, Origin};
use model::fault::{Code, Fault};
use model::manifest::{Account, Named};
use model::name::Name;
use model::provider::{Cloud, Provider};
use model::sealed::{Owner, Place};
use model::secret::{EntryName, Secret};
use model::time::Timestamp;
use plan::Change;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use store::{Actor, Preview};

use crate::app::App;
use crate::problem::Problem;

/// Which secret, and of which cloud it opens an account.
type Asked = (Name, Name, &'static str);

/// Which version of a secret: one that was removed begins to count anew.
type Version = (u64, Timestamp);

/// What was found of secrets, by the version that was judged.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<BTreeMap<Asked, (Version, Vec<String>)>>);

impl Verdicts {
    fn of(&self, asked: &Asked, version: Version) -> Option<Vec<String>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (judged, faults) = known.get(asked)?;
        (*judged == version).then(|| faults.clone())
    }

    fn remember(&self, asked: Asked, version: Version, faults: Vec<String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(asked, (version, faults));
    }
}

/// A provider of a manifest whose secret cannot open what it is named for.
pub(crate) struct Shut {
    provider: Name,
    fault: Fault,
}

impl Shut {
    /// What is wrong with it.
    pub(crate) fn into_fault(self) -> Fault {
        self.fault
    }
}

/// Providers whose secrets cannot open what they are named for. Those that are not set yet are
/// waited for; whoever sets them later is judged by their provider.
pub(crate) async fn shut(
    app: &App,
    project: &Name,
    providers: &BTreeMap<Name, Account>,
    actor: &Actor,
) -> Result<Vec<Shut>, Problem> {
    let mut shut = Vec::new();
    for (provider, account) in providers {
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
                let fault = Fault {
                    path: named.path.clone(),
                    code: Code::Format,
                    message,
                };
                let provider = provider.clone();
                shut.push(Shut { provider, fault });
            }
        }
    }
    Ok(shut)
}

/// Refuses what begins something new with an account that cannot be opened; what leaves such accounts
/// as they are goes on, and says so.
pub(crate) fn refuse_begun(shut: Vec<Shut>, previews: &[Preview]) -> Result<Vec<String>, Problem> {
    let begun: BTreeSet<_> = previews.iter().flat_map(begun).collect();
    let (refused, noted): (Vec<_>, Vec<_>) = shut
        .into_iter()
        .partition(|shut| begun.contains(&shut.provider));
    if !refused.is_empty() {
        let faults = refused.into_iter().map(Shut::into_fault);
        return Err(Problem::faults(faults.collect()));
    }
    let told = noted.iter().map(|shut| {
        format!(
            "{}; what is there stays, and what has to be done with that account waits until it is \
             set right with `slipway secret set`",
            shut.fault
        )
    });
    Ok(told.collect())
}

/// Providers with whom a cluster begins something new: machines, another kind of them, or names.
fn begun(preview: &Preview) -> Vec<&Name> {
    let Preview {
        desired,
        known,
        change,
    } = preview;
    let new = *change == Change::New;
    let had = |machine: &Machine| known.desired.all().any(|other| other.id == machine.id);
    let coming = desired.machines.iter().filter(|of| new || !had(of));
    let coming = coming.map(|machine| &machine.origin);
    let rolls = desired.rolls.iter();
    let rolls = rolls.filter(|roll| new || !known.desired.rolls.contains(roll));
    let made = coming.chain(rolls.map(|roll| &roll.origin));
    let made = made.filter_map(|origin| match origin {
        Origin::Made { provider, .. } => Some(provider),
        Origin::Given { .. } => None,
    });
    let named = desired.balancers.iter();
    let named = named.filter(|of| new || !known.desired.balancers.contains(of));
    let named = named.filter_map(|balancer| Some(&balancer.dns.as_ref()?.provider));
    made.chain(named).collect()
}

/// What is wrong with those entries of a secret that are set.
async fn judged(
    app: &App,
    project: &Name,
    cloud: Cloud,
    named: &Named,
    actor: &Actor,
) -> Result<Vec<String>, Problem> {
    let name = &named.secret.name;
    let Some(row) = app.store().secret(project, name).await? else {
        return Ok(Vec::new());
    };
    let asked = (project.clone(), name.clone(), cloud.as_str());
    let version = (row.version, row.updated_at);
    if let Some(faults) = app.verdicts().of(&asked, version) {
        return Ok(faults);
    }
    let mut found = Vec::new();
    for entry in row.entries {
        if !cloud.entries().iter().any(|of| of.name == entry.as_str()) {
            continue;
        }
        let place = Place {
            project: project.clone(),
            owner: Owner::Secret(name.clone()),
            entry,
        };
        if let Some(value) = app.vault().open(&place, actor).await? {
            found.push((place.entry, value));
        }
    }
    let faults = wrong(cloud, found.iter().map(|(entry, value)| (entry, value)));
    app.verdicts().remember(asked, version, faults.clone());
    Ok(faults)
}

/// What is wrong with values for an account, without telling them.
fn wrong<'a>(
    cloud: Cloud,
    values: impl Iterator<Item = (&'a EntryName, &'a Secret)>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut texts = BTreeMap::new();
    for (name, value) in values {
        match value.expose_text() {
            Some(text) => drop(texts.insert(name.as_str(), text)),
            None if cloud.entries().iter().any(|of| of.name == name.as_str()) => {
                faults.push(format!("{name} is no text"));
            }
            None => {}
        }
    }
    faults.extend(cloud.faults(&texts));
    faults
}

/// What manifests could not open any more if a secret had these values.
pub(crate) async fn would_shut(
    app: &App,
    (project, name): (&Name, &Name),
    entries: &[(EntryName, Option<Secret>)],
) -> Result<Vec<Fault>, Problem> {
    let mut faults = Vec::new();
    for (manifest, cloud) in app.store().accounts(project, name).await? {
        let values = entries.iter();
        let values = values.filter_map(|(entry, value)| Some((entry, value.as_ref()?)));
        for wrong in wrong(cloud, values) {
            let entry = wrong.split(' ').next().unwrap_or_default();
            faults.push(Fault {
                path: format!("entries.{entry}"),
                code: Code::Format,
                message: format!(
                    "{wrong}, and manifest {manifest} opens an account of {} with it",
                    cloud.as_str()
                ),
            });
        }
    }
    Ok(faults)
}

/// Clusters that need what is to go: these entries of a secret, which may be all that it has.
pub(crate) async fn would_strand(
    app: &App,
    (project, name): (&Name, &Name),
    going: &[EntryName],
    all: bool,
) -> Result<Vec<Fault>, Problem> {
    let mut faults = Vec::new();
    if going.is_empty() {
        return Ok(faults);
    }
    for used in app.store().uses(project, name).await? {
        let needed = going.iter().find(|entry| used.entries.contains(entry));
        let any = all && used.entries.is_empty();
        if needed.is_none() && !any {
            continue;
        }
        let what = match used.machines {
            0 => "for its snapshots or its names".to_owned(),
            1 => "to change or remove 1 machine".to_owned(),
            many => format!("to change or remove {many} machines"),
        };
        faults.push(Fault {
            path: needed.map_or_else(|| "entries".to_owned(), |entry| format!("entries.{entry}")),
            code: Code::Reference,
            message: format!("cluster {} ({}) needs it {what}", used.cluster, used.id),
        });
    }
    Ok(faults)
}
