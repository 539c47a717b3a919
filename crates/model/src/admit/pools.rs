//! Machines alike: `nodePools`.

use super::fields::Fields;
use super::manifest::{ENTRIES_MAX, POOL_NAME_MAX, PROVIDER_NAME_MAX, Read, listed};
use super::marks::{self, Source};
use super::metal::metal_of;
use super::{disruption, hardware, jump, secrets, sizes, upkeep};
use crate::cluster::LITE;
use crate::fault::{Code, Faults};
use crate::manifest::{Account, Dynamic, Host, Pool, Static};
use crate::name::Name;
use crate::provider::{Cloud, Provider};
use crate::source::Value;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// What runs in a host of the sandbox.
const SANDBOX_TYPES: [&str; 2] = [LITE, "systemd"];

/// Longer than any user of a machine is called.
const USERNAME_MAX: usize = 64;

pub(super) fn pools_of(
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
    for (path, value) in fields.items("metal", ENTRIES_MAX, faults) {
        let (name, pool) = metal_of(value, &path, groups, faults);
        let value = pool.map(Pool::Metal);
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
    let size = sizes::of_pool(&mut fields, faults);
    let server_type = fields.text("serverType", faults).map(str::to_owned);
    let image = fields.text("image", faults).map(str::to_owned);
    let via = spec.as_ref().and_then(|spec| spec.via);
    if let Some(found) = &server_type
        && via == Some(Provider::Sandbox)
        && !SANDBOX_TYPES.contains(&found.as_str())
    {
        let message = format!(
            "found `{found}`, allowed: {} on a provider of type sandbox",
            SANDBOX_TYPES.join(" or ")
        );
        faults.note(fields.path("serverType"), Code::Format, message);
    }
    let mut hardware = hardware::of_pool(&mut fields, via, faults);
    let budget = disruption::of_pool(&mut fields, groups, faults);
    let marks = marks::of_pool(&mut fields, Source::Made, faults);
    let replace = upkeep::of_pool(&mut fields, faults);
    fields.finish(faults);
    let whole = || {
        let spec = spec?;
        hardware.external_network = spec.network;
        let (size, server_type, image) = (size?, server_type?, image?);
        Some(Dynamic {
            position: 0,
            provider: spec.provider,
            region: spec.region,
            zone: spec.zone,
            count: size.count,
            autoscaler: size.autoscaler,
            server_type,
            image,
            hardware,
            budget,
            marks,
            replace,
        })
    };
    (name, whole())
}

/// Whose machines a pool has, and where.
struct Whose {
    provider: Name,
    via: Option<Provider>,
    region: String,
    zone: Option<String>,
    network: Option<String>,
}

fn provider_spec_of(
    value: &Value,
    path: &str,
    providers: &[Read<Account>],
    faults: &mut Faults,
) -> Option<Whose> {
    let mut fields = Fields::open(value, path, faults)?;
    let name = fields.name("name", PROVIDER_NAME_MAX, faults);
    let region = fields.text("region", faults).map(str::to_owned);
    let zone = fields.optional_text("zone", faults).map(str::to_owned);
    let network = fields.optional_text("externalNetworkName", faults);
    let network = network.map(str::to_owned);
    let via = name
        .as_ref()
        .and_then(|name| lender(name, &fields, providers, faults));
    let openstack = via == Some(Provider::Cloud(Cloud::Openstack));
    if openstack && !fields.has("externalNetworkName") {
        let message = "found nothing, allowed: the network through which machines are reached; \
                       a provider of type openstack has several";
        faults.note(fields.path("externalNetworkName"), Code::Required, message);
    } else if via.is_some() && !openstack && network.is_some() {
        let message =
            "found a network, allowed: nothing; only those of type openstack have several";
        faults.note(
            fields.path("externalNetworkName"),
            Code::Unsupported,
            message,
        );
    }
    fields.finish(faults);
    Some(Whose {
        provider: name?,
        via,
        region: region?,
        zone,
        network,
    })
}

/// The type of the provider that a pool names; it must be there, and lend machines.
fn lender(
    name: &Name,
    fields: &Fields<'_>,
    providers: &[Read<Account>],
    faults: &mut Faults,
) -> Option<Provider> {
    let Some(named) = providers.iter().find(|provider| provider.name == *name) else {
        let defined = providers.iter().map(|provider| provider.name.as_str());
        let defined: Vec<_> = defined.collect();
        let message = format!(
            "found `{name}`, allowed: a provider of this manifest ({})",
            listed(&defined)
        );
        faults.note(fields.path("name"), Code::Reference, message);
        return None;
    };
    let via = named.value.as_ref()?.via;
    if !via.lends() {
        let message = format!(
            "found `{name}` of type {}, allowed: a provider that lends machines; this one answers for names alone",
            via.as_str()
        );
        faults.note(fields.path("name"), Code::Reference, message);
    }
    Some(via)
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

/// The port of an SSH server, the usual one where none is said; 0 says so, in files that people have.
pub(super) fn port_of(fields: &mut Fields<'_>, faults: &mut Faults) -> u16 {
    let port = fields.optional_number("sshPort", 0..=65_535, faults);
    let port = port.and_then(|port| u16::try_from(port).ok());
    port.filter(|port| *port > 0).unwrap_or(22)
}

fn host_of(value: &Value, path: &str, faults: &mut Faults) -> Option<Host> {
    let mut fields = Fields::open(value, path, faults)?;
    let endpoint = fields.parsed("endpoint", faults);
    let endpoint = endpoint.map(|Endpoint(address)| address);
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

/// Where a given machine is reached.
pub(super) struct Endpoint(pub(super) Ipv4Addr);

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = text.parse().map(Self);
        address.map_err(|_no_address| {
            "allowed: an IPv4 address, such as 203.0.113.5; not a name, not IPv6, no port"
        })
    }
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
