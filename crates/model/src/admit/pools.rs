//! Machines alike: `nodePools`.

use super::fields::Fields;
use super::jump::{self, Jump};
use super::manifest::{ENTRIES_MAX, POOL_NAME_MAX, PROVIDER_NAME_MAX};
use super::marks::{self, Source};
use super::metal::metal_of;
use super::parts::{Names, Parts, Title};
use super::providers::{Lender, via};
use super::sizes::{self, Size, Sizes};
use super::{disruption, hardware, secrets, upkeep};
use crate::cluster::LITE;
use crate::fault::{Code, Faults};
use crate::manifest::{Dynamic, Host, Pool, Replace, Static};
use crate::name::Name;
use crate::provider::{Cloud, Provider};
use crate::source::Value;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// What runs in a host of the sandbox.
const SANDBOX_TYPES: [&str; 2] = [LITE, "systemd"];

/// Longer than any user of a machine is called.
const USERNAME_MAX: usize = 64;

/// A pool as read: what it says of its machines counts even where the rest has faults.
pub(super) struct Stock {
    pub(super) kind: Kind,
    /// The fewest and the most machines that it may have.
    pub(super) size: Option<(u32, u32)>,
    /// The group that it names.
    pub(super) group: Names,
    pub(super) whole: Option<Pool>,
}

/// Where the machines of a pool come from.
pub(super) enum Kind {
    Dynamic(Made),
    Static(Fixed),
    Metal,
}

/// What is known of machines that we make.
pub(super) struct Made {
    pub(super) provider: Option<Name>,
    pub(super) via: Option<Provider>,
    /// Whether their number changes.
    pub(super) scaled: bool,
    /// Whether they may be taken back at any time.
    pub(super) spot: bool,
    /// The data disk that they should have.
    pub(super) disk: Option<u32>,
    /// How they are replaced.
    pub(super) replace: Option<Replace>,
}

/// What is known of machines that were given.
pub(super) struct Fixed {
    pub(super) hosts: Vec<Standing>,
    pub(super) ssh_port: Option<u16>,
    pub(super) jump: Option<Jump>,
}

/// A machine that was given, and where its address could be read.
pub(super) struct Standing {
    /// Its place in the manifest.
    pub(super) node: String,
    pub(super) endpoint: Ipv4Addr,
}

pub(super) fn pools_of(
    value: &Value,
    providers: &Parts<Lender>,
    groups: &Parts<Option<u32>>,
    faults: &mut Faults,
) -> Parts<Stock> {
    let Some(mut fields) = Fields::open(value, "spec.nodePools", faults) else {
        return Parts::lost();
    };
    let mut position = 0;
    let mut pools = Parts::of(&mut fields, "dynamic", faults, |fields, path, faults| {
        // Items that are no mappings have a place, too.
        position = place(path).unwrap_or(position);
        dynamic_of(fields, position, providers, groups, faults)
    });
    pools.extend(Parts::of(
        &mut fields,
        "static",
        faults,
        |fields, _, faults| static_of(fields, groups, faults),
    ));
    pools.extend(Parts::of(
        &mut fields,
        "metal",
        faults,
        |fields, _, faults| metal_of(fields, groups, faults),
    ));
    fields.finish(faults);
    pools
}

/// The place in its list that a path ends with.
pub(super) fn place(path: &str) -> Option<usize> {
    path.strip_suffix(']')?.rsplit_once('[')?.1.parse().ok()
}

fn dynamic_of(
    mut fields: Fields<'_>,
    position: usize,
    providers: &Parts<Lender>,
    groups: &Parts<Option<u32>>,
    faults: &mut Faults,
) -> (Title, Stock) {
    let title = Title::of(&mut fields, "name", POOL_NAME_MAX, faults);
    let spec_path = fields.path("providerSpec");
    let spec = fields.required("providerSpec", faults);
    let spec = spec.and_then(|spec| provider_spec_of(spec, &spec_path, providers, faults));
    let Sizes { scaled, size } = sizes::of_pool(&mut fields, faults);
    let server_type = fields.text("serverType", faults).map(str::to_owned);
    let image = fields.text("image", faults).map(str::to_owned);
    let via = spec.as_ref().and_then(|spec| spec.via);
    refuse_type(server_type.as_deref(), via, &fields, faults);
    let mut hardware = hardware::of_pool(&mut fields, via, faults);
    let (budget, group) = disruption::of_pool(&mut fields, groups, faults);
    let marks = marks::of_pool(&mut fields, Source::Made, faults);
    let replace = upkeep::of_pool(&mut fields, faults);
    fields.finish(faults);
    let made = Made {
        provider: spec.as_ref().and_then(|spec| spec.provider.clone()),
        via,
        scaled,
        spot: hardware.spot,
        disk: hardware.disk,
        replace,
    };
    let whole = || {
        let spec = spec?;
        hardware.external_network = spec.network;
        let (size, server_type, image) = (size?, server_type?, image?);
        Some(Pool::Dynamic(Dynamic {
            position,
            provider: spec.provider?,
            region: spec.region?,
            zone: spec.zone,
            count: size.count,
            autoscaler: size.autoscaler,
            server_type,
            image,
            hardware,
            budget,
            marks,
            replace,
        }))
    };
    let stock = Stock {
        kind: Kind::Dynamic(made),
        size: size.map(Size::bounds),
        group,
        whole: whole(),
    };
    (title, stock)
}

/// Types that hosts of the sandbox do not have.
fn refuse_type(
    found: Option<&str>,
    via: Option<Provider>,
    fields: &Fields<'_>,
    faults: &mut Faults,
) {
    if let Some(found) = found
        && via == Some(Provider::Sandbox)
        && !SANDBOX_TYPES.contains(&found)
    {
        let message = format!(
            "found `{found}`, allowed: {} on a provider of type sandbox",
            SANDBOX_TYPES.join(" or ")
        );
        faults.note(fields.path("serverType"), Code::Format, message);
    }
}

/// Whose machines a pool has, and where.
struct Whose {
    provider: Option<Name>,
    via: Option<Provider>,
    region: Option<String>,
    zone: Option<String>,
    network: Option<String>,
}

fn provider_spec_of(
    value: &Value,
    path: &str,
    providers: &Parts<Lender>,
    faults: &mut Faults,
) -> Option<Whose> {
    let mut fields = Fields::open(value, path, faults)?;
    let name = fields.name("name", PROVIDER_NAME_MAX, faults);
    let region = fields.text("region", faults).map(str::to_owned);
    // The files that people have may say an empty one, which means that the provider chooses.
    let zone = match fields.optional("zone") {
        Some(Value::Text(text)) if text.is_empty() => None,
        Some(_) | None => fields.optional_text("zone", faults).map(str::to_owned),
    };
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
        provider: name,
        via,
        region,
        zone,
        network,
    })
}

/// The type of the provider that a pool names; it must be there, and lend machines.
fn lender(
    name: &Name,
    fields: &Fields<'_>,
    providers: &Parts<Lender>,
    faults: &mut Faults,
) -> Option<Provider> {
    providers.refuse_unknown(name, &fields.path("name"), "provider", faults);
    let via = via(providers, name)?;
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
    mut fields: Fields<'_>,
    groups: &Parts<Option<u32>>,
    faults: &mut Faults,
) -> (Title, Stock) {
    let title = Title::of(&mut fields, "name", POOL_NAME_MAX, faults);
    let ssh_port = port_of(&mut fields, faults);
    let jump = jump::of_pool(&mut fields, faults);
    let nodes = fields.items("nodes", ENTRIES_MAX, faults);
    if !fields.has("nodes") || fields.empty_list("nodes") {
        faults.note(
            fields.path("nodes"),
            Code::Required,
            "found no node, allowed: at least one",
        );
    }
    let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    let (mut standing, mut hosts) = (Vec::new(), Vec::new());
    for (node, value) in nodes {
        let (endpoint, host) = host_of(value, &node, faults);
        standing.extend(endpoint.map(|endpoint| Standing { node, endpoint }));
        hosts.push(host);
    }
    let (budget, group) = disruption::of_pool(&mut fields, groups, faults);
    let marks = marks::of_pool(&mut fields, Source::Given, faults);
    fields.finish(faults);
    let whole = || {
        Some(Pool::Static(Static {
            hosts: hosts.into_iter().collect::<Option<_>>()?,
            ssh_port: ssh_port?,
            jump: match &jump {
                Some(jump) => Some(jump.whole.clone()?),
                None => None,
            },
            budget,
            marks,
        }))
    };
    let whole = whole();
    let fixed = Fixed {
        hosts: standing,
        ssh_port,
        jump,
    };
    let stock = Stock {
        kind: Kind::Static(fixed),
        size: (count > 0).then_some((count, count)),
        group,
        whole,
    };
    (title, stock)
}

/// The port of an SSH server, the usual one where none is said; 0 says so, in files that people have.
pub(super) fn port_of(fields: &mut Fields<'_>, faults: &mut Faults) -> Option<u16> {
    if !fields.has("sshPort") {
        fields.optional("sshPort");
        return Some(22);
    }
    let port = fields.optional_number("sshPort", 0..=65_535, faults)?;
    let port = u16::try_from(port).ok()?;
    Some(if port == 0 { 22 } else { port })
}

/// A machine as it was given, and its address where at least that could be read.
fn host_of(value: &Value, path: &str, faults: &mut Faults) -> (Option<Ipv4Addr>, Option<Host>) {
    let Some(mut fields) = Fields::open(value, path, faults) else {
        return (None, None);
    };
    let endpoint = fields.parsed("endpoint", faults);
    let endpoint = endpoint.map(|Endpoint(address)| address);
    let username = username_of(&mut fields, faults);
    let secret = secrets::named(&mut fields, Some(secrets::SSH_KEY), faults);
    if let Some(endpoint) = endpoint {
        enterable(endpoint, secret.is_some(), &fields, faults);
    }
    fields.finish(faults);
    let host = endpoint.zip(username).map(|(endpoint, username)| Host {
        endpoint,
        username,
        secret,
    });
    (endpoint, host)
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
