//! Load balancers of the manifest: what each listens to, whom it serves, and what no field can
//! tell alone.

use super::dns::{self, Called};
use super::fields::Fields;
use super::manifest::{CLUSTER_NAME_MAX, Declared, POOL_NAME_MAX};
use super::parts::{Names, Parts, Read, Title};
use super::pools::{Kind, Stock};
use super::providers::Lender;
use crate::balancer::{ADMIN_PORT, API_PORT, HEALTH_PORT, Protocol, RESERVED_FROM};
use crate::cluster::Forward;
use crate::fault::{Code, Faults};
use crate::manifest::Balancer;
use crate::mesh;
use crate::name::Name;
use crate::source::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What every machine listens to before it becomes one of a load balancer. Whoever took such a
/// port could not be told anything any more, or not be started.
const TAKEN: [(Protocol, u16, &str); 2] = [
    (Protocol::Tcp, 22, "its SSH server"),
    (Protocol::Udp, mesh::PORT, "the mesh"),
];

/// Load balancers and their roles, as read.
pub(super) struct Balancers {
    clusters: Parts<Serving>,
    roles: Parts<Answering>,
}

/// A load balancer as read: what it names counts even where the rest has faults.
struct Serving {
    cluster: Title,
    roles: Names,
    pools: Names,
    called: Option<Called>,
    whole: Option<Balancer>,
}

/// A role as read: so does what it says of ports and pools.
struct Answering {
    protocol: Option<Protocol>,
    port: Option<u32>,
    target_port: Option<u32>,
    pools: Names,
    whole: Option<Forward>,
}

impl Answering {
    /// Whether it leads to the API.
    fn is_api(&self) -> bool {
        self.target_port == Some(API_PORT)
    }

    /// Where it listens, where that is clear.
    fn place(&self) -> Option<(Protocol, u32)> {
        self.protocol.zip(self.port)
    }

    /// Whether every machine listens there already.
    fn is_taken(&self) -> bool {
        let mut taken = TAKEN.iter();
        taken.any(|(of, at, _)| self.place() == Some((*of, u32::from(*at))))
    }
}

impl Balancers {
    pub(super) fn whole(self) -> Vec<Balancer> {
        let whole = self.clusters.all.into_iter();
        whole.filter_map(|balancer| balancer.value.whole).collect()
    }

    /// What they say of pools of their own.
    pub(super) fn pools(&self) -> impl Iterator<Item = &Names> {
        self.clusters.all.iter().map(|read| &read.value.pools)
    }

    /// Each with its place, its name and every pool of its machines.
    pub(super) fn owners(&self) -> impl Iterator<Item = (&str, &Name, &Name)> {
        self.clusters.all.iter().flat_map(|read| {
            let named = read.name().into_iter();
            named.flat_map(move |name| {
                let pools = read.value.pools.iter();
                pools.map(move |pool| (read.path.as_str(), name, pool))
            })
        })
    }

    /// The pools of those that serve a cluster.
    pub(super) fn pools_for(&self, cluster: &Name) -> impl Iterator<Item = &Names> {
        let serving = self.clusters.all.iter().map(|read| &read.value);
        let serving = serving.filter(move |serving| serving.cluster.name() == Some(cluster));
        serving.map(|serving| &serving.pools)
    }

    /// Those through which the API is reached, each with its place and its pools.
    pub(super) fn entrances(&self) -> impl Iterator<Item = (&str, &Names)> {
        let read = self.clusters.all.iter();
        let passes = |serving: &Serving| self.answering(serving).any(|(_, role)| role.is_api());
        let entrances = read.filter(move |read| passes(&read.value));
        entrances.map(|read| (read.path.as_str(), &read.value.pools))
    }

    /// Whether all are known.
    pub(super) const fn all(&self) -> bool {
        !self.clusters.is_lost()
    }

    /// Who answers for their names.
    pub(super) fn answering_for(&self) -> impl Iterator<Item = &Name> {
        let serving = self.clusters.all.iter().map(|read| &read.value);
        serving.filter_map(|serving| serving.called.as_ref()?.provider.as_ref())
    }

    /// Notes roles that nobody has, and load balancers without any.
    pub(super) fn remark_idle(&self, faults: &mut Faults) {
        let named = self.clusters.all.iter().map(|read| &read.value.roles);
        let used: BTreeSet<&Name> = named.flat_map(Names::iter).collect();
        for role in &self.roles.all {
            let Some(name) = role.name().filter(|name| !used.contains(name)) else {
                continue;
            };
            let message = format!("found `{name}`, which has no effect: no load balancer has it");
            faults.remark(format!("{}.name", role.path), message);
        }
        for read in &self.clusters.all {
            if read.value.roles.read.is_empty() {
                let message = "found no role: it has machines, and listens to nothing";
                faults.remark(format!("{}.roles", read.path), message);
            }
        }
    }

    /// The roles that one names, with the places where it does.
    fn answering<'a>(
        &'a self,
        serving: &'a Serving,
    ) -> impl Iterator<Item = (&'a str, &'a Answering)> {
        let named = serving.roles.read.iter();
        named.filter_map(|(path, name)| {
            let role = self.roles.get(name)?;
            Some((path.as_str(), &role.value))
        })
    }
}

/// Reads what the manifest says of load balancers, where it says anything.
pub(super) fn balancers_of(
    spec: &mut Fields<'_>,
    providers: &Parts<Lender>,
    faults: &mut Faults,
) -> Balancers {
    let said = spec.has("loadBalancers");
    let Some(mut fields) = spec.mapping("loadBalancers", faults) else {
        return Balancers {
            clusters: if said { Parts::lost() } else { Parts::none() },
            roles: Parts::none(),
        };
    };
    let roles = Parts::of(&mut fields, "roles", faults, |fields, _, faults| {
        role_of(fields, faults)
    });
    let clusters = Parts::of(&mut fields, "clusters", faults, |fields, _, faults| {
        balancer_of(fields, (&roles, providers), faults)
    });
    fields.finish(faults);
    Balancers { clusters, roles }
}

fn role_of(mut fields: Fields<'_>, faults: &mut Faults) -> (Title, Answering) {
    let title = Title::of(&mut fields, "name", Name::LEN_MAX, faults);
    let protocol = fields.text("protocol", faults);
    let protocol = protocol.and_then(|text| protocol_of(text, &fields, faults));
    let port = fields.number("port", 1..=RESERVED_FROM - 1, faults);
    let target_port = fields.number("targetPort", 1..=65_535, faults);
    let of = ("pool", POOL_NAME_MAX);
    let pools = Names::of(&mut fields, "targetPools", of, faults);
    if !fields.has("targetPools") || fields.empty_list("targetPools") {
        let message = "found no pool, allowed: at least one";
        faults.note(fields.path("targetPools"), Code::Required, message);
    }
    let (proxy_protocol, sticky) = settings_of(&mut fields, faults);
    if let (Some(protocol), Some(port)) = (protocol, port) {
        free_on_machines(protocol, port, &fields, faults);
    }
    if target_port == Some(API_PORT) {
        as_the_api(protocol, port, &fields, faults);
    }
    fields.finish(faults);
    let short = |port: Option<u32>| u16::try_from(port?).ok();
    let whole = || {
        Some(Forward {
            name: title.name()?.clone(),
            protocol: protocol?,
            port: short(port)?,
            target_port: short(target_port)?,
            // Datagrams have no beginning to tell who is calling, and the API server wants none.
            proxy_protocol: proxy_protocol
                && protocol == Some(Protocol::Tcp)
                && target_port != Some(API_PORT),
            sticky,
            target_pools: pools.whole(),
        })
    };
    let whole = whole();
    let answering = Answering {
        protocol,
        port,
        target_port,
        pools,
        whole,
    };
    (title, answering)
}

/// The API is reached by TCP, where everybody looks for it.
fn as_the_api(
    protocol: Option<Protocol>,
    port: Option<u32>,
    fields: &Fields<'_>,
    faults: &mut Faults,
) {
    if let Some(port) = port.filter(|port| *port != API_PORT) {
        let message =
            format!("found `{port}`, allowed: {API_PORT} where the target port is {API_PORT}");
        faults.note(fields.path("port"), Code::Range, message);
    }
    if protocol == Some(Protocol::Udp) {
        let message = format!("found `udp`, allowed: tcp where the target port is {API_PORT}");
        faults.note(fields.path("protocol"), Code::Range, message);
    }
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
    mut fields: Fields<'_>,
    (roles, providers): (&Parts<Answering>, &Parts<Lender>),
    faults: &mut Faults,
) -> (Title, Serving) {
    let title = Title::of(&mut fields, "name", CLUSTER_NAME_MAX, faults);
    let cluster = Title::of(&mut fields, "targetedK8s", CLUSTER_NAME_MAX, faults);
    let used = Names::of(&mut fields, "roles", ("role", Name::LEN_MAX), faults);
    let pools = Names::of(&mut fields, "pools", ("pool", POOL_NAME_MAX), faults);
    let called = dns::of_balancer(&mut fields, providers, faults);
    fields.finish(faults);
    let whole = || {
        let named = used.iter().filter_map(|name| roles.get(name));
        let mut roles: Vec<_> = named.filter_map(|role| role.value.whole.clone()).collect();
        roles.sort_by_key(|forward| (forward.port, forward.protocol));
        Some(Balancer {
            name: title.name()?.clone(),
            cluster: cluster.name()?.clone(),
            roles,
            pools: pools.whole(),
            dns: called.as_ref().and_then(|called| called.whole.clone()),
        })
    };
    let whole = whole();
    let serving = Serving {
        cluster,
        roles: used,
        pools,
        called,
        whole,
    };
    (title, serving)
}

/// Ports that two roles of one load balancer would listen to.
fn ports_apart(balancers: &Balancers, serving: &Serving, faults: &mut Faults) {
    let mut seen: BTreeMap<(Protocol, u32), &Name> = BTreeMap::new();
    for (path, name) in &serving.roles.read {
        let role = balancers.roles.get(name);
        let Some(place) = role.and_then(|role| role.value.place()) else {
            continue;
        };
        // The same role twice is told already.
        let other = *seen.entry(place).or_insert(name);
        if other != name {
            let (protocol, port) = (place.0.as_str(), place.1);
            let message =
                format!("found `{name}` on {protocol} port {port}, where `{other}` listens");
            faults.note(path, Code::Duplicate, message);
        }
    }
}

/// What load balancers, clusters and pools say of each other.
pub(super) fn check(
    balancers: &Balancers,
    pools: &Parts<Stock>,
    clusters: &Parts<Declared>,
    faults: &mut Faults,
) {
    names(balancers, clusters, faults);
    let serving = || balancers.clusters.all.iter().map(|read| &read.value);
    dns::unique(serving().filter_map(|of| of.called.as_ref()), faults);
    for role in &balancers.roles.all {
        role.value.pools.refuse(pools, "pool", faults);
    }
    let mut entrances: BTreeMap<&Name, &str> = BTreeMap::new();
    for read in &balancers.clusters.all {
        let serving = &read.value;
        one_name(balancers, serving, faults);
        serving.roles.refuse(&balancers.roles, "role", faults);
        ports_apart(balancers, serving, faults);
        serving.pools.refuse(pools, "pool", faults);
        let Some(name) = serving.cluster.name() else {
            continue;
        };
        let place = format!("{}.targetedK8s", read.path);
        clusters.refuse_unknown(name, &place, "cluster", faults);
        let Some(cluster) = clusters.get(name) else {
            continue;
        };
        targets(balancers, serving, (&cluster.value, pools), faults);
        let mut roles = balancers.answering(serving);
        if let Some((path, _)) = roles.find(|(_, role)| role.is_api())
            && let Some(first) = entrances.insert(name, path)
        {
            let message =
                format!("found a second entrance to the API of `{name}`; the first is {first}");
            faults.note(path, Code::Duplicate, message);
        }
    }
}

/// The certificate of an API server is for one name.
fn one_name(balancers: &Balancers, serving: &Serving, faults: &mut Faults) {
    let besides = serving.called.as_ref().and_then(|of| of.besides.as_ref());
    let mut named = serving.roles.iter();
    let api = named.find(|name| {
        let role = balancers.roles.get(name);
        role.is_some_and(|role| role.value.is_api())
    });
    if let (Some(besides), Some(role)) = (besides, api) {
        let message = format!(
            "found other names, allowed: none on a load balancer with the API (role `{role}`)"
        );
        faults.note(besides, Code::Unsupported, message);
    }
}

/// Ports that would be listened to twice on one machine: by its SSH server, through which alone
/// it can be told anything, and by its load balancer.
pub(super) fn ports(balancers: &Balancers, pools: &Parts<Stock>, faults: &mut Faults) {
    let ssh = |pool: &Name| match &pools.get(pool)?.value.kind {
        Kind::Static(fixed) => fixed.ssh_port.map(u32::from),
        Kind::Dynamic(_) | Kind::Metal => None,
    };
    for Read { value: serving, .. } in &balancers.clusters.all {
        for (path, name) in &serving.roles.read {
            let role = balancers.roles.get(name).map(|role| &role.value);
            // The usual port is refused in the role itself, whoever serves it.
            let place = role.filter(|role| !role.is_taken()).map(Answering::place);
            let Some(Some((Protocol::Tcp, port))) = place else {
                continue;
            };
            if let Some(pool) = serving.pools.iter().find(|pool| ssh(pool) == Some(port)) {
                let message = format!(
                    "found role `{name}` on tcp port {port}, allowed: another port; \
                     machines of pool `{pool}` have their SSH server there"
                );
                faults.note(path, Code::Range, message);
            }
        }
    }
    let own = [ADMIN_PORT, HEALTH_PORT].map(u32::from);
    let serving: BTreeSet<&Name> = balancers.pools().flat_map(Names::iter).collect();
    for name in serving {
        let port = ssh(name).filter(|port| own.contains(port));
        if let (Some(port), Some(pool)) = (port, pools.get(name)) {
            let message = format!(
                "found `{port}`, allowed: another than {ADMIN_PORT} and {HEALTH_PORT} \
                 where the pool is one of a load balancer, which listens there"
            );
            faults.note(format!("{}.sshPort", pool.path), Code::Range, message);
        }
    }
}

/// Names that are used twice: machines of load balancers and of clusters are named alike.
fn names(balancers: &Balancers, clusters: &Parts<Declared>, faults: &mut Faults) {
    let named = |path, name: Option<_>| name.map(|name| (name, path));
    let clusters = clusters.all.iter();
    let mut seen: BTreeMap<&Name, &String> = clusters
        .filter_map(|read| named(&read.path, read.name()))
        .collect();
    for read in &balancers.clusters.all {
        let Some(name) = read.name() else { continue };
        if let Some(first) = seen.insert(name, &read.path) {
            let message = format!("found `{name}` again; {first} has this name");
            faults.note(format!("{}.name", read.path), Code::Duplicate, message);
        }
    }
    balancers.roles.refuse_twins("role", faults);
}

/// Target pools that the cluster does not use, or that cannot answer.
fn targets(
    balancers: &Balancers,
    serving: &Serving,
    (of, pools): (&Declared, &Parts<Stock>),
    faults: &mut Faults,
) {
    for (path, name) in &serving.roles.read {
        let Some(role) = balancers.roles.get(name).map(|role| &role.value) else {
            continue;
        };
        // Those that nobody has defined were told already.
        let named = role.pools.distinct().into_iter();
        for pool in named.filter(|pool| pools.get(pool).is_some()) {
            let control = of.control.may_have(pool);
            let message = if role.is_api() && !control {
                "which has no API server; allowed: control pools of the cluster"
            } else if !control && !of.compute.may_have(pool) {
                "which its cluster does not use; allowed: a pool of the cluster"
            } else {
                continue;
            };
            let message = format!("found role `{name}` with target pool `{pool}`, {message}");
            faults.note(path, Code::Reference, message);
        }
    }
}

const _: () = assert!(POOL_NAME_MAX + CLUSTER_NAME_MAX < Name::LEN_MAX);
