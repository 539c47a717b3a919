//! The manifest language, field by field.

use super::fields::Fields;
use super::marks::{self, Source};
use super::{
    addons, balancers, disruption, gates, jump, kubernetes, playbooks, proxy, references, secrets,
    snapshots,
};
use crate::cluster::LITE;
use crate::fault::{Code, Fault, Faults};
use crate::manifest::{
    Account, Cluster, Dynamic, Host, Manifest, POOL_COUNT_MAX, Pool, Provider, Static,
};
use crate::name::Name;
use crate::source::Value;
use std::net::Ipv4Addr;

/// The API versions that are read; both are the same language.
const API_VERSIONS: [&str; 2] = ["slipway.dev/v1", "claudie.io/v1beta1"];

/// Limits of names: cluster, pool and ordinal together must fit a DNS label.
pub(super) const PROVIDER_NAME_MAX: usize = 15;
pub(super) const POOL_NAME_MAX: usize = 14;
pub(super) const CLUSTER_NAME_MAX: usize = 28;

/// What runs in a host of the sandbox.
const SANDBOX_TYPES: [&str; 2] = [LITE, "systemd"];

/// Longer than any user of a machine is called.
const USERNAME_MAX: usize = 64;

/// The most providers, and the most pools of each kind, in one manifest.
const ENTRIES_MAX: usize = 1_000;

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
    pub(super) whole: Option<Cluster>,
}

impl<T> Read<T> {
    /// The part under its name, where it could be read whole.
    fn whole(self) -> Option<(Name, T)> {
        Some((self.name, self.value?))
    }
}

/// Admits a document as a manifest, or tells everything that is wrong with it.
pub fn admit(document: &Value) -> Result<Manifest, Vec<Fault>> {
    let mut faults = Faults::default();
    let manifest = document_of(document, &mut faults);
    match manifest {
        Some(manifest) if faults.is_empty() => Ok(manifest),
        Some(_) | None => Err(faults.into_vec()),
    }
}

fn document_of(document: &Value, faults: &mut Faults) -> Option<Manifest> {
    let mut top = Fields::open(document, "", faults)?;
    one_of(&mut top, "apiVersion", &API_VERSIONS, faults);
    one_of(&mut top, "kind", &["InputManifest"], faults);
    let name = top
        .required("metadata", faults)
        .and_then(|metadata| metadata_of(metadata, faults));
    let spec = top
        .required("spec", faults)
        .and_then(|spec| Fields::open(spec, "spec", faults));
    top.finish(faults);

    let mut spec = spec?;
    let providers = providers_of(&mut spec, faults);
    let groups = disruption::groups_of(&mut spec, faults);
    let pools = match spec.required("nodePools", faults) {
        Some(pools) => pools_of(pools, &providers, &groups, faults),
        None => Vec::new(),
    };
    let clusters = match spec.required("kubernetes", faults) {
        Some(kubernetes) => clusters_of(kubernetes, faults),
        None => Vec::new(),
    };
    let balancers = balancers::balancers_of(&mut spec, faults);
    spec.finish(faults);
    references::check(&providers, &groups, &pools, &clusters, &balancers, faults);

    Some(Manifest {
        name: name?,
        providers: providers.into_iter().filter_map(Read::whole).collect(),
        pools: pools.into_iter().filter_map(Read::whole).collect(),
        groups: groups.into_iter().filter_map(Read::whole).collect(),
        clusters: clusters
            .into_iter()
            .filter_map(|read| read.value?.whole)
            .collect(),
        balancers: balancers.whole(),
    })
}

fn one_of(fields: &mut Fields<'_>, field: &'static str, allowed: &[&str], faults: &mut Faults) {
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

fn metadata_of(metadata: &Value, faults: &mut Faults) -> Option<Name> {
    let mut fields = Fields::open(metadata, "metadata", faults)?;
    let name = fields.name("name", Name::LEN_MAX, faults);
    fields.finish(faults);
    name
}

fn providers_of(spec: &mut Fields<'_>, faults: &mut Faults) -> Vec<Read<Account>> {
    let mut providers = Vec::new();
    for (path, value) in spec.items("providers", ENTRIES_MAX, faults) {
        let Some(mut fields) = Fields::open(value, path.as_str(), faults) else {
            continue;
        };
        let name = fields.name("name", PROVIDER_NAME_MAX, faults);
        let kind = fields.text("providerType", faults);
        let via = kind.and_then(|kind| provider_of(kind, &path, faults));
        let secret = secrets::named(&mut fields, None, faults);
        let value = via.map(|via| Account { via, secret });
        fields.finish(faults);
        providers.extend(name.map(|name| Read { path, name, value }));
    }
    providers
}

fn provider_of(kind: &str, path: &str, faults: &mut Faults) -> Option<Provider> {
    match kind {
        "simulated" => return Some(Provider::Simulated),
        "sandbox" => return Some(Provider::Sandbox),
        _ => {}
    }
    let found = Value::Text(kind.to_owned());
    faults.note(
        format!("{path}.providerType"),
        Code::Unsupported,
        format!(
            "found {found}, allowed: simulated or sandbox (this build has no hands for others)"
        ),
    );
    None
}

fn pools_of(
    value: &Value,
    providers: &[Read<Account>],
    groups: &[Read<u32>],
    faults: &mut Faults,
) -> Vec<Read<Pool>> {
    let Some(mut fields) = Fields::open(value, "spec.nodePools", faults) else {
        return Vec::new();
    };
    let mut pools = Vec::new();
    for (position, (path, value)) in fields
        .items("dynamic", ENTRIES_MAX, faults)
        .into_iter()
        .enumerate()
    {
        let (name, pool) = dynamic_of(value, &path, providers, groups, faults);
        let value = pool.map(|pool| Pool::Dynamic(Dynamic { position, ..pool }));
        pools.extend(name.map(|name| Read { path, name, value }));
    }
    for (path, value) in fields.items("static", ENTRIES_MAX, faults) {
        let (name, pool) = static_of(value, &path, groups, faults);
        let value = pool.map(Pool::Static);
        pools.extend(name.map(|name| Read { path, name, value }));
    }
    fields.finish(faults);
    pools
}

fn dynamic_of(
    value: &Value,
    path: &str,
    providers: &[Read<Account>],
    groups: &[Read<u32>],
    faults: &mut Faults,
) -> (Option<Name>, Option<Dynamic>) {
    let Some(mut fields) = Fields::open(value, path, faults) else {
        return (None, None);
    };
    let name = fields.name("name", POOL_NAME_MAX, faults);
    let spec_path = fields.path("providerSpec");
    let spec = fields.required("providerSpec", faults);
    let spec = spec.and_then(|spec| provider_spec_of(spec, &spec_path, providers, faults));
    let count = fields.number("count", 1..=POOL_COUNT_MAX, faults);
    let server_type = fields.text("serverType", faults).map(str::to_owned);
    let image = fields.text("image", faults).map(str::to_owned);
    if let (Some((provider, ..)), Some(found)) = (&spec, &server_type) {
        let named = providers.iter().find(|read| read.name == *provider);
        let via = named
            .and_then(|read| read.value.as_ref())
            .map(|account| account.via);
        if via == Some(Provider::Sandbox) && !SANDBOX_TYPES.contains(&found.as_str()) {
            let message = format!(
                "found `{found}`, allowed: {} on a provider of type sandbox",
                SANDBOX_TYPES.join(" or ")
            );
            faults.note(fields.path("serverType"), Code::Format, message);
        }
    }
    let budget = disruption::of_pool(&mut fields, groups, faults);
    let marks = marks::of_pool(&mut fields, Source::Made, faults);
    fields.finish(faults);
    let whole = || {
        let (provider, region, zone) = spec?;
        let (count, server_type, image) = (count?, server_type?, image?);
        Some(Dynamic {
            position: 0,
            provider,
            region,
            zone,
            count,
            server_type,
            image,
            budget,
            marks,
        })
    };
    (name, whole())
}

fn provider_spec_of(
    value: &Value,
    path: &str,
    providers: &[Read<Account>],
    faults: &mut Faults,
) -> Option<(Name, String, Option<String>)> {
    let mut fields = Fields::open(value, path, faults)?;
    let name = fields.name("name", PROVIDER_NAME_MAX, faults);
    let region = fields.text("region", faults).map(str::to_owned);
    let zone = fields.optional_text("zone", faults).map(str::to_owned);
    if let Some(name) = &name
        && !providers.iter().any(|provider| provider.name == *name)
    {
        let defined: Vec<_> = providers
            .iter()
            .map(|provider| provider.name.as_str())
            .collect();
        faults.note(
            fields.path("name"),
            Code::Reference,
            format!(
                "found `{name}`, allowed: a provider of this manifest ({})",
                listed(&defined)
            ),
        );
    }
    fields.finish(faults);
    Some((name?, region?, zone))
}

fn static_of(
    value: &Value,
    path: &str,
    groups: &[Read<u32>],
    faults: &mut Faults,
) -> (Option<Name>, Option<Static>) {
    let Some(mut fields) = Fields::open(value, path, faults) else {
        return (None, None);
    };
    let name = fields.name("name", POOL_NAME_MAX, faults);
    let ssh_port = port_of(&mut fields, faults);
    let jump = jump::of_pool(&mut fields, faults);
    let nodes = fields.items("nodes", ENTRIES_MAX, faults);
    if nodes.is_empty() {
        faults.note(
            fields.path("nodes"),
            Code::Required,
            "found no node, allowed: at least one",
        );
    }
    let count = nodes.len();
    let mut hosts = Vec::new();
    for (path, node) in nodes {
        hosts.extend(host_of(node, &path, faults));
    }
    let budget = disruption::of_pool(&mut fields, groups, faults);
    let marks = marks::of_pool(&mut fields, Source::Given, faults);
    fields.finish(faults);
    let whole = hosts.len() == count;
    let pool = jump.ok().filter(|_| whole).map(|jump| Static {
        hosts,
        ssh_port,
        jump,
        budget,
        marks,
    });
    (name, pool)
}

/// The port of an SSH server, the usual one where none is said.
pub(super) fn port_of(fields: &mut Fields<'_>, faults: &mut Faults) -> u16 {
    let port = fields.optional_number("sshPort", 1..=65_535, faults);
    port.and_then(|port| u16::try_from(port).ok()).unwrap_or(22)
}

fn host_of(value: &Value, path: &str, faults: &mut Faults) -> Option<Host> {
    let mut fields = Fields::open(value, path, faults)?;
    let endpoint: Option<Ipv4Addr> = fields.parsed("endpoint", faults);
    let username = username_of(&mut fields, faults);
    let secret = secrets::named(&mut fields, Some(secrets::SSH_KEY), faults);
    if let Some(endpoint) = endpoint {
        enterable(endpoint, secret.is_some(), &fields, faults);
    }
    fields.finish(faults);
    Some(Host {
        endpoint: endpoint?,
        username: username?,
        secret,
    })
}

/// Who enters a machine or a jump host, `root` where nobody is said. The name is written into
/// the settings of other programs, where other letters would mean something.
pub(super) fn username_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<String> {
    let username = fields.optional_text("username", faults).unwrap_or("root");
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+-".contains(&byte);
    let usable = username.len() <= USERNAME_MAX
        && !username.starts_with('-')
        && username.bytes().all(letter);
    if !usable {
        let found = Value::Text(username.to_owned());
        let message = format!(
            "found {found}, allowed: at most {USERNAME_MAX} of A-Z, a-z, 0-9, `.`, `_`, `@`, `+` and, inside, `-`"
        );
        faults.note(fields.path("username"), Code::Format, message);
    }
    usable.then(|| username.to_owned())
}

/// What a machine needs so that we can enter it: an address of its own, and a key. At addresses
/// of documentation (RFC 5737) are machines of the simulated world, which let anybody in.
pub(super) fn enterable(endpoint: Ipv4Addr, key: bool, fields: &Fields<'_>, faults: &mut Faults) {
    let first = endpoint.octets()[0];
    if first == 0 || first >= 224 || endpoint.is_link_local() {
        let message = format!("found `{endpoint}`, allowed: an address that one machine has");
        faults.note(fields.path("endpoint"), Code::Range, message);
    } else if !key && !endpoint.is_documentation() && !fields.has("secretRef") {
        let message = "found nothing, allowed: the name of a secret that holds a private SSH key";
        faults.note(fields.path("secretRef"), Code::Required, message);
    }
}

fn clusters_of(value: &Value, faults: &mut Faults) -> Vec<Read<Declared>> {
    let Some(mut fields) = Fields::open(value, "spec.kubernetes", faults) else {
        return Vec::new();
    };
    let mut clusters = Vec::new();
    for (path, value) in fields.items("clusters", CLUSTERS_MAX, faults) {
        clusters.extend(cluster_of(value, &path, faults));
    }
    fields.finish(faults);
    clusters
}

fn cluster_of(value: &Value, path: &str, faults: &mut Faults) -> Option<Read<Declared>> {
    let mut fields = Fields::open(value, path, faults)?;
    let name = fields.name("name", CLUSTER_NAME_MAX, faults);
    let version = fields.parsed("version", faults);
    let network = fields.parsed("network", faults);
    let pools_path = fields.path("pools");
    let pools = fields
        .required("pools", faults)
        .and_then(|pools| Fields::open(pools, pools_path, faults));
    let pools = pools.map(|mut pools| {
        let control = pools_named(&mut pools, "control", faults);
        let compute = pools_named(&mut pools, "compute", faults);
        pools.finish(faults);
        (control, compute)
    });
    let (unavailable, windows) = disruption::of_cluster(&mut fields, faults);
    let gates = gates::of_cluster(&mut fields, faults);
    let kubernetes = kubernetes::of_cluster(&mut fields, network, faults);
    let proxy = proxy::of_cluster(&mut fields, network, &kubernetes, faults);
    let playbooks = playbooks::of_cluster(&mut fields, faults);
    let addons = addons::of_cluster(&mut fields, kubernetes.cni, faults);
    let (etcd_backup, backup_secret) = snapshots::of_cluster(&mut fields, faults);
    fields.finish(faults);
    let name = name?;
    let value = pools.map(|(control, compute)| {
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
                backup_secret,
            })
        };
        let whole = whole();
        Declared {
            control,
            compute,
            whole,
        }
    });
    Some(Read {
        path: path.to_owned(),
        name,
        value,
    })
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
