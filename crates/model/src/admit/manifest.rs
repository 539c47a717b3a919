//! The manifest language, field by field.

use super::fields::Fields;
use super::parts::{Names, Parts, Read, Title};
use super::pools::{Kind, Stock, pools_of};
use super::providers::{Lender, providers_of};
use super::{
    addons, balancers, disruption, gates, kubernetes, marks, order, partial, playbooks, proxy,
    references, snapshots, templates, upkeep,
};
use crate::fault::{Code, Fault, Faults};
use crate::manifest::{Cluster, Manifest, Partial};
use crate::name::Name;
use crate::network::Network;
use crate::provider::{Cloud, Provider};
use crate::source::Value;
use crate::version::Version;
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

/// The most parts of one kind, and the most names in one list: as many roles as one load balancer may
/// have where files come from.
pub(super) const ENTRIES_MAX: usize = 1_018;

/// A cluster as read: what it says of pools and networks counts even where the rest has faults.
pub(super) struct Declared {
    pub(super) control: Names,
    pub(super) compute: Names,
    pub(super) version: Option<Version>,
    pub(super) network: Option<Network>,
    pub(super) kubernetes: kubernetes::Said,
    pub(super) whole: Option<Cluster>,
}

/// Parts under their names, where they could be read whole.
fn whole<T, W>(parts: Parts<T>, whole: impl Fn(T) -> Option<W>) -> impl Iterator<Item = (Name, W)> {
    let parts = parts.all.into_iter();
    parts.filter_map(move |part| match part.title {
        Title::Name(name) => Some((name, whole(part.value)?)),
        Title::Text(_) => None,
    })
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
    read_all(documents).map_err(|refused| refused.faults.into_vec())
}

/// A manifest that is refused.
#[derive(Debug)]
pub struct Refused {
    /// What is wrong with it, in its order.
    faults: Faults,
    /// What could be read of it all the same.
    pub partial: Partial,
}

impl Refused {
    /// What is wrong with it by itself, and what is besides in the eyes of who knows the project: the doubts
    /// that go along with what could be read are theirs to judge. All in the order of the documents.
    pub fn with(self, judged: Vec<Fault>, documents: &[Value]) -> Vec<Fault> {
        let mut faults = self.faults;
        faults.settle(judged);
        sort(&mut faults, documents);
        faults.into_vec()
    }
}

/// The same as [`admit_all`], and what could be read of a manifest that is refused goes along: whoever knows
/// the project tells what else is wrong with it, in the same answer.
pub fn read_all(documents: &[Value]) -> Result<Manifest, Box<Refused>> {
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
    let document = if let Some((_, first)) = manifests.first() {
        document_of(first, &mut modules, &mut faults)
    } else {
        let message = "found no document of kind InputManifest, allowed: one";
        faults.note("", Code::Required, message);
        None
    };
    modules.refuse_unused(&mut faults);
    sort(&mut faults, documents);
    match document {
        Some(document) if faults.is_empty() => document.admitted(faults),
        Some(document) => {
            let partial = partial::of(document, &mut faults);
            Err(Box::new(Refused { faults, partial }))
        }
        None => {
            let partial = Partial::default();
            Err(Box::new(Refused { faults, partial }))
        }
    }
}

/// Puts faults into the order of a file.
fn sort(faults: &mut Faults, documents: &[Value]) {
    let first = order::manifest(documents);
    faults.sort_by_place(|path| order::place(documents, first, path));
}

/// Where in a file something is that a path of its manifest names, comparable with other places.
pub fn place(documents: &[Value], path: &str) -> Vec<usize> {
    order::place(documents, order::manifest(documents), path)
}

/// The parts of a document, as read.
pub(super) struct Document {
    pub(super) name: Option<Name>,
    pub(super) namespace: Option<Name>,
    pub(super) providers: Parts<Lender>,
    pub(super) groups: Parts<Option<u32>>,
    pub(super) pools: Parts<Stock>,
    pub(super) clusters: Parts<Declared>,
    pub(super) balancers: balancers::Balancers,
}

impl Document {
    /// The manifest that it is, where nothing is wrong.
    fn admitted(self, mut faults: Faults) -> Result<Manifest, Box<Refused>> {
        let Some(name) = self.name.clone() else {
            // That it has no name was told.
            let partial = partial::of(self, &mut faults);
            return Err(Box::new(Refused { faults, partial }));
        };
        Ok(Manifest {
            name,
            namespace: self.namespace,
            providers: whole(self.providers, |lender| lender.whole).collect(),
            pools: whole(self.pools, |stock| stock.whole).collect(),
            groups: whole(self.groups, |budget| budget).collect(),
            clusters: whole(self.clusters, |declared| declared.whole)
                .map(|(_, cluster)| cluster)
                .collect(),
            balancers: self.balancers.whole(),
            remarks: faults.take_remarks(),
            doubts: faults.doubts(),
        })
    }
}

fn document_of(
    document: &Value,
    modules: &mut templates::Described,
    faults: &mut Faults,
) -> Option<Document> {
    let mut top = Fields::open(document, "", faults)?;
    one_of(&mut top, "apiVersion", &API_VERSIONS, faults);
    one_of(&mut top, "kind", &[KIND], faults);
    let metadata = top
        .required("metadata", faults)
        .map(|metadata| metadata_of(metadata, "metadata".to_owned(), faults));
    let (name, namespace) = metadata.unwrap_or_default();
    let spec = top
        .required("spec", faults)
        .and_then(|spec| Fields::open(spec, "spec", faults));
    top.finish(faults);

    let mut spec = spec?;
    let providers = providers_of(&mut spec, modules, faults);
    let groups = disruption::groups_of(&mut spec, faults);
    let pools = match spec.required("nodePools", faults) {
        Some(pools) => pools_of(pools, &providers, &groups, faults),
        None => Parts::lost(),
    };
    let clusters = match spec.required("kubernetes", faults) {
        Some(kubernetes) => clusters_of(kubernetes, &refused(&pools), faults),
        None => Parts::lost(),
    };
    let balancers = balancers::balancers_of(&mut spec, &providers, faults);
    spec.finish(faults);
    references::check(&providers, &groups, &pools, &clusters, &balancers, faults);

    Some(Document {
        name,
        namespace,
        providers,
        groups,
        pools,
        clusters,
        balancers,
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
) -> (Option<Name>, Option<Name>) {
    let Some(mut fields) = Fields::open(metadata, path, faults) else {
        return (None, None);
    };
    let name = fields.name("name", Name::LEN_MAX, faults);
    let namespace = fields.optional_parsed("namespace", faults);
    marks::of_document(&mut fields, faults);
    fields.finish(faults);
    (name, namespace)
}

/// Pools whose machines have addresses that package sources and registries are known to refuse.
fn refused(pools: &Parts<Stock>) -> BTreeSet<&Name> {
    let hetzner = Some(Provider::Cloud(Cloud::Hetzner));
    let made = pools.all.iter().filter(|pool| match &pool.value.kind {
        Kind::Dynamic(made) => made.via == hetzner,
        Kind::Static(_) | Kind::Metal => false,
    });
    made.filter_map(Read::name).collect()
}

fn clusters_of(value: &Value, refused: &BTreeSet<&Name>, faults: &mut Faults) -> Parts<Declared> {
    let Some(mut fields) = Fields::open(value, "spec.kubernetes", faults) else {
        return Parts::lost();
    };
    let clusters = Parts::of(&mut fields, "clusters", faults, |fields, _, faults| {
        cluster_of(fields, refused, faults)
    });
    fields.finish(faults);
    clusters
}

fn cluster_of(
    mut fields: Fields<'_>,
    refused: &BTreeSet<&Name>,
    faults: &mut Faults,
) -> (Title, Declared) {
    let title = Title::of(&mut fields, "name", CLUSTER_NAME_MAX, faults);
    let name = title.name();
    let version = fields.parsed("version", faults);
    let network = fields.parsed("network", faults);
    let (control, compute) = pools_named(&mut fields, faults);
    let (unavailable, windows) = disruption::of_cluster(&mut fields, faults);
    let gates = gates::of_cluster(&mut fields, faults);
    let kubernetes = kubernetes::of_cluster(&mut fields, (name, network), faults);
    let refused = control
        .iter()
        .chain(compute.iter())
        .any(|pool| refused.contains(pool));
    let proxy = proxy::of_cluster(&mut fields, network, (&kubernetes, refused), faults);
    let playbooks = playbooks::of_cluster(&mut fields, faults);
    let addons = addons::of_cluster(&mut fields, kubernetes.cni, faults);
    let (etcd_backup, backup_secret) = snapshots::of_cluster(&mut fields, faults);
    let protected = fields.optional_flag("deletionProtection", faults);
    let repair = upkeep::of_cluster(&mut fields, faults);
    engine_of(&mut fields, faults);
    fields.finish(faults);
    let whole = || {
        Some(Cluster {
            name: name?.clone(),
            version: version?,
            network: network?,
            kubernetes: kubernetes.whole()?,
            control: control.whole(),
            compute: compute.whole(),
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
    let declared = Declared {
        control,
        compute,
        version,
        network,
        kubernetes,
        whole,
    };
    (title, declared)
}

/// The pools that a cluster names: those of its control plane, and the others.
fn pools_named(fields: &mut Fields<'_>, faults: &mut Faults) -> (Names, Names) {
    let path = fields.path("pools");
    let pools = fields.required("pools", faults);
    let Some(mut pools) = pools.and_then(|pools| Fields::open(pools, path, faults)) else {
        return (Names::lost(), Names::lost());
    };
    let of = ("pool", POOL_NAME_MAX);
    let control = Names::of(&mut pools, "control", of, faults);
    let compute = Names::of(&mut pools, "compute", of, faults);
    pools.finish(faults);
    (control, compute)
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
