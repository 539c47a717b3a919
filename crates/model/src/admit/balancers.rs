//! Load balancers of the manifest: what each listens to, whom it serves, and what no field can
//! tell alone.

use super::dns::{self, Called};
use super::fields::Fields;
use super::manifest::{CLUSTER_NAME_MAX, Declared, POOL_NAME_MAX, Read, listed, names_at};
use crate::balancer::{ADMIN_PORT, API_PORT, HEALTH_PORT, Protocol, RESERVED_FROM};
use crate::cluster::Forward;
use crate::fault::{Code, Faults};
use crate::manifest::{Account, Balancer, Pool};
use crate::mesh;
use crate::name::Name;
use crate::source::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most roles, and the most load balancers, in one manifest.
const ENTRIES_MAX: usize = 1_000;

/// What every machine listens to before it becomes one of a load balancer. Whoever took such a
/// port could not be told anything any more, or not be started.
const TAKEN: [(Protocol, u16, &str); 2] = [
    (Protocol::Tcp, 22, "its SSH server"),
    (Protocol::Udp, mesh::PORT, "the mesh"),
];

/// Load balancers and their roles, as read.
#[derive(Default)]
pub(super) struct Balancers {
    clusters: Vec<Read<Serving>>,
    roles: Vec<Read<Answering>>,
    /// Every pool that a load balancer names, with its place.
    pools: Vec<(String, Name)>,
    /// Whether there is one that could not be read at all, or not all pools of one: it may name any.
    unread: bool,
}

/// A load balancer as read: what it names counts even where the rest has faults.
struct Serving {
    cluster: Option<Name>,
    /// The roles that it names and that could be read, with the places where it names them.
    roles: Vec<(String, Forward)>,
    pools: Vec<(String, Name)>,
    /// Whether those are all that it names.
    read: bool,
    called: Option<Called>,
    whole: Option<Balancer>,
}

/// A role as read: so do the pools that it names.
struct Answering {
    pools: Vec<(String, Name)>,
    whole: Option<Forward>,
}

impl Balancers {
    pub(super) fn whole(self) -> Vec<Balancer> {
        let whole = self.clusters.into_iter();
        whole.filter_map(|balancer| balancer.value?.whole).collect()
    }

    /// Every pool that load balancers name, with its place.
    pub(super) fn pools(&self) -> impl Iterator<Item = (&str, &Name)> {
        self.pools.iter().map(|(path, pool)| (path.as_str(), pool))
    }

    /// Each with its place, its name and every pool of its machines.
    pub(super) fn owners(&self) -> impl Iterator<Item = (&str, &Name, &Name)> {
        self.clusters.iter().flat_map(|read| {
            let pools = read.value.iter().flat_map(|serving| &serving.pools);
            pools.map(|(_, pool)| (read.path.as_str(), &read.name, pool))
        })
    }

    /// The pools of those that serve a cluster.
    pub(super) fn pools_for(&self, cluster: &Name) -> impl Iterator<Item = &Name> {
        let serving = self.clusters.iter().filter_map(|read| read.value.as_ref());
        serving
            .filter(move |serving| serving.cluster.as_ref() == Some(cluster))
            .flat_map(|serving| serving.pools.iter().map(|(_, pool)| pool))
    }

    /// Those through which the API is reached, each with its place and its pools.
    pub(super) fn entrances(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &Name>)> {
        let read = self.clusters.iter();
        read.filter_map(|read| {
            let serving = read.value.as_ref()?;
            let passes = serving.roles.iter().any(|(_, role)| is_api(role));
            let pools = serving.pools.iter().map(|(_, pool)| pool);
            (passes && serving.read).then_some((read.path.as_str(), pools))
        })
    }

    /// Whether all pools that they name are known.
    pub(super) const fn read(&self) -> bool {
        !self.unread
    }
}

/// Reads what the manifest says of load balancers, where it says anything.
pub(super) fn balancers_of(
    spec: &mut Fields<'_>,
    providers: &[Read<Account>],
    faults: &mut Faults,
) -> Balancers {
    let unread = spec.has("loadBalancers");
    let mut read = Balancers::default();
    let Some(mut fields) = spec.mapping("loadBalancers", faults) else {
        return Balancers { unread, ..read };
    };
    for (path, value) in fields.items("roles", ENTRIES_MAX, faults) {
        read.roles.extend(role_of(value, path, faults));
    }
    for (path, value) in fields.items("clusters", ENTRIES_MAX, faults) {
        let Some((name, serving)) = balancer_of(value, &path, (&read.roles, providers), faults)
        else {
            read.unread = true;
            continue;
        };
        read.unread |= !serving.read;
        read.pools.extend(serving.pools.iter().cloned());
        let value = Some(serving);
        read.clusters
            .extend(name.map(|name| Read { path, name, value }));
    }
    fields.finish(faults);
    read
}

fn role_of(value: &Value, path: String, faults: &mut Faults) -> Option<Read<Answering>> {
    let mut fields = Fields::open(value, path.as_str(), faults)?;
    let name = fields.name("name", Name::LEN_MAX, faults);
    let protocol = fields.text("protocol", faults);
    let protocol = protocol.and_then(|text| protocol_of(text, &fields, faults));
    let port = fields.number("port", 1..=RESERVED_FROM - 1, faults);
    let target_port = fields.number("targetPort", 1..=65_535, faults);
    let pools = names_at(&mut fields, "targetPools", "pool", POOL_NAME_MAX, faults);
    if !fields.has("targetPools") || fields.empty_list("targetPools") {
        let message = "found no pool, allowed: at least one";
        faults.note(fields.path("targetPools"), Code::Required, message);
    }
    let (proxy_protocol, sticky) = settings_of(&mut fields, faults);
    if let (Some(protocol), Some(port)) = (protocol, port) {
        free_on_machines(protocol, port, &fields, faults);
    }
    if target_port == Some(API_PORT)
        && let Some(port) = port.filter(|port| *port != API_PORT)
    {
        let message =
            format!("found `{port}`, allowed: {API_PORT} where the target port is {API_PORT}");
        faults.note(fields.path("port"), Code::Range, message);
    }
    if target_port == Some(API_PORT) && protocol == Some(Protocol::Udp) {
        let message = format!("found `udp`, allowed: tcp where the target port is {API_PORT}");
        faults.note(fields.path("protocol"), Code::Range, message);
    }
    fields.finish(faults);
    let name = name?;
    let short = |port: Option<u32>| u16::try_from(port?).ok();
    let whole = || {
        Some(Forward {
            name: name.clone(),
            protocol: protocol?,
            port: short(port)?,
            target_port: short(target_port)?,
            // Datagrams have no beginning to tell who is calling, and the API server wants none.
            proxy_protocol: proxy_protocol
                && protocol == Some(Protocol::Tcp)
                && target_port != Some(API_PORT),
            sticky,
            target_pools: pools.iter().map(|(_, pool)| pool.clone()).collect(),
        })
    };
    let whole = whole();
    let value = Some(Answering { pools, whole });
    Some(Read { path, name, value })
}

fn protocol_of(text: &str, fields: &Fields<'_>, faults: &mut Faults) -> Option<Protocol> {
    match text {
        "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        _ => {
            let found = Value::Text(text.to_owned());
            let message = format!("found {found}, allowed: tcp or udp");
            faults.note(fields.path("protocol"), Code::Format, message);
            None
        }
    }
}

fn free_on_machines(protocol: Protocol, port: u32, fields: &Fields<'_>, faults: &mut Faults) {
    let taken = |(of, at, _): &&(Protocol, u16, &str)| *of == protocol && u32::from(*at) == port;
    if let Some((_, _, by)) = TAKEN.iter().find(taken) {
        let protocol = protocol.as_str();
        let message = format!(
            "found `{port}`, allowed: another {protocol} port; every machine has {by} there"
        );
        faults.note(fields.path("port"), Code::Range, message);
    }
}

/// Whether targets are told who is calling, and whether callers stay with their target.
fn settings_of(fields: &mut Fields<'_>, faults: &mut Faults) -> (bool, bool) {
    let Some(mut settings) = fields.mapping("settings", faults) else {
        return (true, false);
    };
    let proxy_protocol = settings.flag("proxyProtocol", faults);
    let sticky = settings.flag("stickySessions", faults);
    settings.finish(faults);
    (proxy_protocol.unwrap_or(true), sticky.unwrap_or(false))
}

fn balancer_of(
    value: &Value,
    path: &str,
    (roles, providers): (&[Read<Answering>], &[Read<Account>]),
    faults: &mut Faults,
) -> Option<(Option<Name>, Serving)> {
    let mut fields = Fields::open(value, path, faults)?;
    let name = fields.name("name", CLUSTER_NAME_MAX, faults);
    let cluster = fields.name("targetedK8s", CLUSTER_NAME_MAX, faults);
    let used = names_at(&mut fields, "roles", "role", Name::LEN_MAX, faults);
    let before = faults.count();
    let pools = names_at(&mut fields, "pools", "pool", POOL_NAME_MAX, faults);
    let read = faults.count() == before;
    let called = dns::of_balancer(&mut fields, providers, faults);
    fields.finish(faults);
    let forwards = forwards_of(&used, roles, faults);
    let whole = || {
        let mut roles: Vec<_> = forwards.iter().map(|(_, role)| role.clone()).collect();
        roles.sort_by_key(|forward| (forward.port, forward.protocol));
        Some(Balancer {
            name: name.clone()?,
            cluster: cluster.clone()?,
            roles,
            pools: pools.iter().map(|(_, pool)| pool.clone()).collect(),
            dns: called.as_ref().and_then(|called| called.whole.clone()),
        })
    };
    let whole = whole();
    let serving = Serving {
        cluster,
        roles: forwards,
        pools,
        read,
        called,
        whole,
    };
    Some((name, serving))
}

/// The roles that a load balancer names, with the places where it does.
fn forwards_of(
    used: &[(String, Name)],
    roles: &[Read<Answering>],
    faults: &mut Faults,
) -> Vec<(String, Forward)> {
    let defined: Vec<_> = roles.iter().map(|role| role.name.as_str()).collect();
    let mut forwards: Vec<(String, Forward)> = Vec::new();
    for (path, name) in used {
        let Some(role) = roles.iter().find(|role| role.name == *name) else {
            let message = format!(
                "found `{name}`, allowed: a role of this manifest ({})",
                listed(&defined)
            );
            faults.note(path, Code::Reference, message);
            continue;
        };
        let whole = role.value.as_ref().and_then(|role| role.whole.as_ref());
        let Some(forward) = whole else { continue };
        let taken = |(_, other): &&(String, Forward)| {
            other.port == forward.port && other.protocol == forward.protocol
        };
        if let Some((_, other)) = forwards.iter().find(taken) {
            let (port, protocol) = (forward.port, forward.protocol.as_str());
            let message = format!(
                "found `{name}` on {protocol} port {port}, where `{}` listens",
                other.name
            );
            faults.note(path, Code::Duplicate, message);
        }
        forwards.push((path.clone(), forward.clone()));
    }
    forwards
}

/// What load balancers, clusters and pools say of each other.
pub(super) fn check(
    balancers: &Balancers,
    pools: &BTreeSet<&Name>,
    clusters: &[Read<Declared>],
    faults: &mut Faults,
) {
    names(balancers, clusters, faults);
    let serving = || balancers.clusters.iter().filter_map(|of| of.value.as_ref());
    dns::unique(serving().filter_map(|of| of.called.as_ref()), faults);
    serving().for_each(|serving| one_name(serving, faults));
    let known: Vec<_> = clusters.iter().map(|read| read.name.as_str()).collect();
    let mut entrances: BTreeMap<&Name, &str> = BTreeMap::new();
    for role in &balancers.roles {
        let named = role.value.iter().flat_map(|role| &role.pools);
        pools_exist(named, pools, faults);
    }
    for read in &balancers.clusters {
        let Some(serving) = &read.value else { continue };
        pools_exist(serving.pools.iter(), pools, faults);
        let Some(name) = &serving.cluster else {
            continue;
        };
        let Some(cluster) = clusters.iter().find(|of| of.name == *name) else {
            let message = format!(
                "found `{name}`, allowed: a cluster of this manifest ({})",
                listed(&known)
            );
            faults.note(
                format!("{}.targetedK8s", read.path),
                Code::Reference,
                message,
            );
            continue;
        };
        if let Some(declared) = &cluster.value {
            targets(serving, declared, pools, faults);
        }
        if let Some((path, _)) = serving.roles.iter().find(|(_, role)| is_api(role))
            && let Some(first) = entrances.insert(name, path)
        {
            let message =
                format!("found a second entrance to the API of `{name}`; the first is {first}");
            faults.note(path, Code::Duplicate, message);
        }
    }
}

/// The certificate of an API server is for one name.
fn one_name(serving: &Serving, faults: &mut Faults) {
    let besides = serving.called.as_ref().and_then(|of| of.besides.as_ref());
    let api = serving.roles.iter().find(|(_, role)| is_api(role));
    if let (Some(besides), Some((_, role))) = (besides, api) {
        let message = format!(
            "found other names, allowed: none on a load balancer with the API (role `{}`)",
            role.name
        );
        faults.note(besides, Code::Unsupported, message);
    }
}

fn is_api(forward: &Forward) -> bool {
    u32::from(forward.target_port) == API_PORT
}

/// Ports that would be listened to twice on one machine: by its SSH server, through which alone
/// it can be told anything, and by its load balancer.
pub(super) fn ports(balancers: &Balancers, pools: &[Read<Pool>], faults: &mut Faults) {
    let ssh: BTreeMap<&Name, u16> = pools
        .iter()
        .filter_map(|pool| match &pool.value {
            Some(Pool::Static(fixed)) => Some((&pool.name, fixed.ssh_port)),
            Some(Pool::Dynamic(_) | Pool::Metal(_)) | None => None,
        })
        .collect();
    for serving in balancers.clusters.iter().filter_map(|of| of.value.as_ref()) {
        for (path, role) in serving
            .roles
            .iter()
            .filter(|(_, role)| role.protocol == Protocol::Tcp)
        {
            // The usual port is refused in the role itself, whoever serves it.
            let own = |pool: &&Name| {
                let port = ssh.get(*pool);
                port.is_some_and(|port| *port == role.port && !is_taken(role))
            };
            let mut named = serving.pools.iter().map(|(_, pool)| pool);
            if let Some(pool) = named.find(own) {
                let Forward { name, port, .. } = role;
                let message = format!(
                    "found role `{name}` on tcp port {port}, allowed: another port; \
                     machines of pool `{pool}` have their SSH server there"
                );
                faults.note(path, Code::Range, message);
            }
        }
    }
    let serving: BTreeSet<&Name> = balancers.pools().map(|(_, pool)| pool).collect();
    for pool in pools.iter().filter(|pool| serving.contains(&pool.name)) {
        let port = ssh.get(&pool.name);
        if let Some(port) = port.filter(|port| [ADMIN_PORT, HEALTH_PORT].contains(port)) {
            let message = format!(
                "found `{port}`, allowed: another than {ADMIN_PORT} and {HEALTH_PORT} \
                 where the pool is one of a load balancer, which listens there"
            );
            faults.note(format!("{}.sshPort", pool.path), Code::Range, message);
        }
    }
}

/// Whether a role is where every machine listens already.
fn is_taken(role: &Forward) -> bool {
    let mut taken = TAKEN.iter();
    taken.any(|(protocol, port, _)| *protocol == role.protocol && *port == role.port)
}

/// Pools that are named twice in one list, or that nobody has defined.
fn pools_exist<'a>(
    named: impl Iterator<Item = &'a (String, Name)>,
    pools: &BTreeSet<&Name>,
    faults: &mut Faults,
) {
    let mut seen = BTreeSet::new();
    for (path, pool) in named {
        if !pools.contains(pool) {
            let defined: Vec<_> = pools.iter().map(|name| name.as_str()).collect();
            let message = format!(
                "found `{pool}`, allowed: a pool of this manifest ({})",
                listed(&defined)
            );
            faults.note(path, Code::Reference, message);
        }
        if !seen.insert(pool) {
            let message = format!("found `{pool}` twice in one list");
            faults.note(path, Code::Duplicate, message);
        }
    }
}

/// Names that are used twice: machines of load balancers and of clusters are named alike.
fn names(balancers: &Balancers, clusters: &[Read<Declared>], faults: &mut Faults) {
    let mut seen: BTreeMap<&Name, &str> = clusters
        .iter()
        .map(|cluster| (&cluster.name, cluster.path.as_str()))
        .collect();
    for read in &balancers.clusters {
        if let Some(first) = seen.insert(&read.name, &read.path) {
            let message = format!("found `{}` again; {first} has this name", read.name);
            faults.note(format!("{}.name", read.path), Code::Duplicate, message);
        }
    }
    let mut seen: BTreeMap<&Name, &str> = BTreeMap::new();
    for role in &balancers.roles {
        if let Some(first) = seen.insert(&role.name, &role.path) {
            let message = format!(
                "found `{}` again; the role at {first} has this name",
                role.name
            );
            faults.note(format!("{}.name", role.path), Code::Duplicate, message);
        }
    }
}

/// Target pools that the cluster does not use, or that cannot answer.
fn targets(serving: &Serving, of: &Declared, pools: &BTreeSet<&Name>, faults: &mut Faults) {
    for (path, forward) in &serving.roles {
        // Those that nobody has defined were told already.
        let named = forward.target_pools.iter();
        for pool in named.filter(|pool| pools.contains(pool)) {
            let control = of.control.contains(pool);
            let message = if is_api(forward) && !control {
                "which has no API server; allowed: control pools of the cluster"
            } else if !control && !of.compute.contains(pool) {
                "which its cluster does not use; allowed: a pool of the cluster"
            } else {
                continue;
            };
            let role = &forward.name;
            faults.note(
                path,
                Code::Reference,
                format!("found role `{role}` with target pool `{pool}`, {message}"),
            );
        }
    }
}

const _: () = assert!(POOL_NAME_MAX + CLUSTER_NAME_MAX < Name::LEN_MAX);
