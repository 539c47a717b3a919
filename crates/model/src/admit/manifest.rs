//! The manifest language, field by field.

use super::fields::Fields;
use super::pools::pools_of;
use super::providers::{account, providers_of};
use super::{
    addons, balancers, disruption, gates, kubernetes, marks, playbooks, proxy, references,
    snapshots, templates, upkeep,
};
use crate::fault::{Code, Fault, Faults};
use crate::manifest::{Account, Cluster, Manifest, Pool};
use crate::name::Name;
use crate::provider::{Cloud, Provider};
use crate::source::Value;
use std::collections::BTreeSet;

/// The API versions that are read; both are the same language.
pub const API_VERSIONS: [&str; 2] = ["slipway.dev/v1", "claudie.io/v1beta1"];

/// The kind of document that a manifest is.
pub const KIND: &str = "InputManifest";

/// Limits of names: cluster, pool and ordinal together must fit a DNS label.
pub(crate) const PROVIDER_NAME_MAX: usize = 15;
pub(crate) const POOL_NAME_MAX: usize = 14;
pub(crate) const CLUSTER_NAME_MAX: usize = 28;

/// Who makes Kubernetes on machines.
pub(crate) const ENGINE: &str = "kubeadm";

/// The most providers, and the most pools of each kind, in one manifest.
pub(super) const ENTRIES_MAX: usize = 1_000;

/// The most clusters in one manifest.
const CLUSTERS_MAX: usize = 1_000;

/// A part as read, with the place it was read from.
///
/// A part with faults keeps its name: what refers to it is not wrong for that reason.
pub(super) struct Read<T> {
    pub(super) path: String,
    pub(super) name: Name,
    pub(super) value: Option<T>,
}

/// A cluster as read: what it says of pools counts even where the rest has faults.
pub(super) struct Declared {
    pub(super) control: Vec<Name>,
    pub(super) compute: Vec<Name>,
    /// Whether all pools that it names could be read.
    pub(super) read: bool,
    pub(super) whole: Option<Cluster>,
}

impl<T> Read<T> {
    /// The part under its name, where it could be read whole.
    fn whole(self) -> Option<(Name, T)> {
        Some((self.name, self.value?))
    }
}

/// Admits a document as a manifest, or tells everything that is wrong with it. What is wrong only
/// where no cluster lives with it goes along with the manifest.
pub fn admit(document: &Value) -> Result<Manifest, Vec<Fault>> {
    admit_all(std::slice::from_ref(document))
}

/// Admits the documents of a file as one manifest and what it refers to, or tells everything that is
/// wrong with them. What is wrong with the manifest is told by its own paths, what is wrong with
/// another document by its place in the file.
pub fn admit_all(documents: &[Value]) -> Result<Manifest, Vec<Fault>> {
    let mut faults = Faults::default();
    let (described, manifests): (Vec<_>, Vec<_>) = documents
        .iter()
        .enumerate()
        .partition(|(_, document)| templates::describes(document));
    let mut modules = templates::Described::read(&described, &mut faults);
    for (at, _) in manifests.iter().skip(1) {
        let message = "found another document, allowed: one InputManifest, and those of kind \
                       TemplateGitReference that it names";
        faults.note(format!("documents[{at}]"), Code::Duplicate, message);
    }
    let manifest = if let Some((_, first)) = manifests.first() {
        document_of(first, &mut modules, &mut faults)
    } else {
        let message = "found no document of kind InputManifest, allowed: one";
        faults.note("", Code::Required, message);
        None
    };
    modules.refuse_unused(&mut faults);
    match manifest {
        Some(mut manifest) if faults.is_empty() => {
            manifest.doubts = faults.into_doubts();
            Ok(manifest)
        }
        Some(_) | None => Err(faults.into_vec()),
    }
}

fn document_of(
    document: &Value,
    modules: &mut templates::Described,
    faults: &mut Faults,
) -> Option<Manifest> {
    let mut top = Fields::open(document, "", faults)?;
    one_of(&mut top, "apiVersion", &API_VERSIONS, faults);
    one_of(&mut top, "kind", &[KIND], faults);
    let metadata = top
        .required("metadata", faults)
        .and_then(|metadata| metadata_of(metadata, "metadata".to_owned(), faults));
    let spec = top
        .required("spec", faults)
        .and_then(|spec| Fields::open(spec, "spec", faults));
    top.finish(faults);

    let mut spec = spec?;
    let providers = providers_of(&mut spec, modules, faults);
    let groups = disruption::groups_of(&mut spec, faults);
    let pools = match spec.required("nodePools", faults) {
        Some(pools) => pools_of(pools, &providers, &groups, faults),
        None => Vec::new(),
    };
    let (clusters, all) = match spec.required("kubernetes", faults) {
        Some(kubernetes) => clusters_of(kubernetes, &refused(&pools, &providers), faults),
        None => (Vec::new(), false),
    };
    let balancers = balancers::balancers_of(&mut spec, &providers, faults);
    spec.finish(faults);
    let clusters_read = (clusters.as_slice(), all);
    references::check(
        &providers,
        &groups,
        &pools,
        clusters_read,
        &balancers,
        faults,
    );

    let (name, namespace) = metadata?;
    Some(Manifest {
        name,
        namespace,
        providers: providers.into_iter().filter_map(Read::whole).collect(),
        pools: pools.into_iter().filter_map(Read::whole).collect(),
        groups: groups.into_iter().filter_map(Read::whole).collect(),
        clusters: clusters
            .into_iter()
            .filter_map(|read| read.value?.whole)
            .collect(),
        balancers: balancers.whole(),
        doubts: Vec::new(),
    })
}

pub(super) fn one_of(
    fields: &mut Fields<'_>,
    field: &'static str,
    allowed: &[&str],
    faults: &mut Faults,
) {
    if let Some(text) = fields.text(field, faults)
        && !allowed.contains(&text)
    {
        let found = Value::Text(text.to_owned());
        let path = fields.path(field);
        faults.note(
            path,
            Code::Format,
            format!("found {found}, allowed: {}", allowed.join(" or ")),
        );
    }
}

/// What a document is called, and the namespace that files from elsewhere name beside it.
pub(super) fn metadata_of(
    metadata: &Value,
    path: String,
    faults: &mut Faults,
) -> Option<(Name, Option<Name>)> {
    let mut fields = Fields::open(metadata, path, faults)?;
    let name = fields.name("name", Name::LEN_MAX, faults);
    let namespace = fields.optional_parsed("namespace", faults);
    marks::of_document(&mut fields, faults);
    fields.finish(faults);
    Some((name?, namespace))
}

/// Pools whose machines have addresses that package sources and registries are known to refuse.
fn refused<'a>(pools: &'a [Read<Pool>], providers: &[Read<Account>]) -> BTreeSet<&'a Name> {
    let hetzner = |name: &Name| {
        let account = account(providers, name);
        account.is_some_and(|account| account.via == Provider::Cloud(Cloud::Hetzner))
    };
    let made = pools.iter().filter(|pool| match &pool.value {
        Some(Pool::Dynamic(made)) => hetzner(&made.provider),
        Some(Pool::Static(_) | Pool::Metal(_)) | None => false,
    });
    made.map(|pool| &pool.name).collect()
}

/// The clusters that could be read, and whether that is all of them.
fn clusters_of(
    value: &Value,
    refused: &BTreeSet<&Name>,
    faults: &mut Faults,
) -> (Vec<Read<Declared>>, bool) {
    let Some(mut fields) = Fields::open(value, "spec.kubernetes", faults) else {
        return (Vec::new(), false);
    };
    let mut clusters = Vec::new();
    let items = fields.items("clusters", CLUSTERS_MAX, faults);
    for (path, value) in &items {
        clusters.extend(cluster_of(value, path, refused, faults));
    }
    fields.finish(faults);
    let all = clusters.len() == items.len();
    (clusters, all)
}

fn cluster_of(
    value: &Value,
    path: &str,
    refused: &BTreeSet<&Name>,
    faults: &mut Faults,
) -> Option<Read<Declared>> {
    let mut fields = Fields::open(value, path, faults)?;
    let name = fields.name("name", CLUSTER_NAME_MAX, faults);
    let version = fields.parsed("version", faults);
    let network = fields.parsed("network", faults);
    let pools_path = fields.path("pools");
    let pools = fields
        .required("pools", faults)
        .and_then(|pools| Fields::open(pools, pools_path, faults));
    let pools = pools.map(|mut pools| {
        let before = faults.count();
        let control = pools_named(&mut pools, "control", faults);
        let compute = pools_named(&mut pools, "compute", faults);
        let read = faults.count() == before;
        pools.finish(faults);
        (control, compute, read)
    });
    let (unavailable, windows) = disruption::of_cluster(&mut fields, faults);
    let gates = gates::of_cluster(&mut fields, faults);
    let kubernetes = kubernetes::of_cluster(&mut fields, (name.as_ref(), network), faults);
    let mut named = pools
        .iter()
        .flat_map(|(control, compute, _)| control.iter().chain(compute));
    let refused = named.any(|pool| refused.contains(pool));
    let proxy = proxy::of_cluster(&mut fields, network, (&kubernetes, refused), faults);
    let playbooks = playbooks::of_cluster(&mut fields, faults);
    let addons = addons::of_cluster(&mut fields, kubernetes.cni, faults);
    let (etcd_backup, backup_secret) = snapshots::of_cluster(&mut fields, faults);
    let protected = fields.optional_flag("deletionProtection", faults);
    let repair = upkeep::of_cluster(&mut fields, faults);
    engine_of(&mut fields, faults);
    fields.finish(faults);
    let name = name?;
    let value = pools.map(|(control, compute, read)| {
        let whole = || {
            Some(Cluster {
                name: name.clone(),
                version: version?,
                network: network?,
                kubernetes,
                control: control.clone(),
                compute: compute.clone(),
                unavailable,
                windows,
                gates,
                proxy,
                playbooks,
                addons,
                etcd_backup,
                protected: protected.unwrap_or(false),
                repair,
                backup_secret,
            })
        };
        let whole = whole();
        Declared {
            control,
            compute,
            read,
            whole,
        }
    });
    Some(Read {
        path: path.to_owned(),
        name,
        value,
    })
}

/// Who makes Kubernetes on machines: there is one.
fn engine_of(fields: &mut Fields<'_>, faults: &mut Faults) {
    if let Some(word) = fields.optional_text("engine", faults)
        && word != ENGINE
    {
        let found = Value::Text(word.to_owned());
        let message =
            format!("found {found}, allowed: {ENGINE} (this build has hands for {ENGINE} alone)");
        faults.note(fields.path("engine"), Code::Unsupported, message);
    }
}

/// The pools that a list names.
fn pools_named(pools: &mut Fields<'_>, field: &'static str, faults: &mut Faults) -> Vec<Name> {
    let named = names_at(pools, field, "pool", POOL_NAME_MAX, faults);
    named.into_iter().map(|(_, name)| name).collect()
}

/// The names in a list, each with its place.
pub(super) fn names_at(
    fields: &mut Fields<'_>,
    field: &'static str,
    what: &str,
    max: usize,
    faults: &mut Faults,
) -> Vec<(String, Name)> {
    let mut names = Vec::new();
    for (path, item) in fields.items(field, ENTRIES_MAX, faults) {
        match item {
            Value::Text(text) => match Name::checked(text, max) {
                Ok(name) => names.push((path, name)),
                Err(error) => faults.note(path, Code::Format, format!("found {item}: {error}")),
            },
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_) => {
                let message = format!("found {item}, allowed: the name of a {what}");
                faults.note(path, Code::Type, message);
            }
        }
    }
    names
}

/// Names for a message, or a word where there are none.
pub(super) fn listed(names: &[&str]) -> String {
    /// A message is read, not searched.
    const SHOWN_MAX: usize = 10;
    match names {
        [] => "none is defined".to_owned(),
        names if names.len() > SHOWN_MAX => {
            format!(
                "{}, … {} in all",
                names[..SHOWN_MAX].join(", "),
                names.len()
            )
        }
        names => names.join(", "),
    }
}
