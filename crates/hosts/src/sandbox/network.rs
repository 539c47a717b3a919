//! The network of a sandbox: one bridge, a cable to every host.

use crate::error::{Error, Kind};
use crate::tool::{self, SHORT};
use model::network::Network;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

/// The network of one sandbox.
#[derive(Debug, Clone)]
pub(super) struct Lan {
    /// The name of its bridge.
    pub(super) bridge: String,
    /// Its addresses.
    pub(super) subnet: Network,
    /// The bridge's own address, which is the gateway of the hosts.
    pub(super) gateway: Ipv4Addr,
}

/// What `ip -j route` tells of a route.
#[derive(Deserialize)]
struct Route {
    dst: String,
    #[serde(default)]
    dev: String,
}

/// What `ip -j link` tells of a device.
#[derive(Deserialize)]
struct Link {
    ifname: String,
}

impl Lan {
    /// The network of the sandbox in a directory: another directory has another bridge.
    pub(super) fn new(directory: &Path, subnet: Network) -> Self {
        let bridge = format!(
            "sw{}",
            digest(&[directory.as_os_str().as_encoded_bytes()], 10)
        );
        let gateway = subnet.hosts().next().unwrap_or(Ipv4Addr::UNSPECIFIED);
        Self {
            bridge,
            subnet,
            gateway,
        }
    }

    /// An address with the prefix of the network.
    pub(super) fn with_prefix(&self, address: Ipv4Addr) -> String {
        format!("{address}/{}", self.subnet.prefix())
    }

    /// Has the bridge with its address there, unless the network leads elsewhere already.
    pub(super) async fn ensure(&self) -> Result<(), Error> {
        let routes = ip(&["-j", "-4", "route", "show"], "").await?;
        let routes: Vec<Route> = parsed(&routes)?;
        let other = |route: &&Route| route.dev != self.bridge && overlaps(self.subnet, &route.dst);
        if let Some(route) = routes.iter().find(other) {
            let (subnet, dst, dev) = (self.subnet, &route.dst, &route.dev);
            let what = format!("{subnet} for sandbox hosts: {dst} leads to {dev} already");
            return Err(Error::new(Kind::SubnetTaken, what));
        }
        if !self.links().await?.contains(&self.bridge) {
            ip(&["link", "add", &self.bridge, "type", "bridge"], "").await?;
        }
        // Another address is one of a sandbox that was here with another network.
        let (bridge, address) = (&self.bridge, self.with_prefix(self.gateway));
        let shown = ip(&["-4", "-o", "address", "show", "dev", bridge], "").await?;
        let mut batch = format!("link set lo up\nlink set {bridge} up\n");
        if !shown.contains(&format!(" {address} ")) || shown.lines().count() != 1 {
            batch.push_str(&format!("address flush dev {bridge}\n"));
            batch.push_str(&format!("address add {address} dev {bridge}\n"));
        }
        ip(&["-batch", "-"], &batch).await?;
        Ok(())
    }

    /// The names of all network devices here.
    pub(super) async fn links(&self) -> Result<BTreeSet<String>, Error> {
        let links: Vec<Link> = parsed(&ip(&["-j", "link", "show"], "").await?)?;
        Ok(links.into_iter().map(|link| link.ifname).collect())
    }

    /// The hardware address that belongs to an address: whoever has it next is found at once, where
    /// others would send to the one before for half a minute.
    pub(super) fn hardware(address: Ipv4Addr) -> String {
        let [a, b, c, d] = address.octets();
        format!("02:53:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
    }

    /// Lays a cable from the bridge to a process's namespace.
    pub(super) async fn connect(
        &self,
        key: &str,
        address: Ipv4Addr,
        pid: u32,
        up: bool,
    ) -> Result<(), Error> {
        let (bridge, state) = (&self.bridge, if up { "up" } else { "down" });
        let batch = format!(
            "link add {cable} master {bridge} type veth peer name eth0 address {hardware} netns {pid}\n\
             link set {cable} {state}\n",
            cable = cable(key),
            hardware = Self::hardware(address),
        );
        let began = Instant::now();
        loop {
            match ip(&["-batch", "-"], &batch).await {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > CABLE_MAX => return Err(error),
                Err(_) => {}
            }
            // The cable of a host that was just cut off goes away only when the kernel finds time.
            drop(ip(&["link", "delete", &cable(key)], "").await);
            tokio::time::sleep(CABLE_PAUSE).await;
        }
    }

    /// Plugs a cable in or out.
    pub(super) async fn plug(&self, key: &str, up: bool) -> Result<(), Error> {
        let state = if up { "up" } else { "down" };
        ip(&["link", "set", &cable(key), state], "").await.map(drop)
    }

    /// Removes the bridge.
    pub(super) async fn remove(&self) -> Result<(), Error> {
        if self.links().await?.contains(&self.bridge) {
            ip(&["link", "delete", &self.bridge], "").await?;
        }
        Ok(())
    }
}

/// How long the cable of a host that was cut off may be in the way of the next one.
const CABLE_MAX: Duration = Duration::from_secs(30);

/// How long to wait before that is looked at again.
const CABLE_PAUSE: Duration = Duration::from_millis(20);

/// The machine's end of a host's cable, as systemd-nspawn calls it.
pub(super) fn cable(key: &str) -> String {
    format!("vb-{key}")
}

/// The first digits of a digest over some parts.
pub(super) fn digest(parts: &[&[u8]], digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let hex: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    hex.chars().take(digits).collect()
}

async fn ip(arguments: &[&str], input: &str) -> Result<String, Error> {
    let mut command = tool::command("ip");
    let done = tool::run(command.args(arguments), input, SHORT).await;
    done.map_err(|said| {
        Error::new(
            Kind::NotStarted,
            format!("the network of sandbox hosts: {said}"),
        )
    })
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    // An empty answer is no document at all.
    let text = if text.trim().is_empty() { "[]" } else { text };
    let unread = |error| Error::new(Kind::Garbage, format!("ip answered with no JSON: {error}"));
    serde_json::from_str(text).map_err(unread)
}

/// Whether a destination of the routing table shares an address with a network.
fn overlaps(subnet: Network, destination: &str) -> bool {
    let (address, prefix) = destination.split_once('/').unwrap_or((destination, "32"));
    let (Ok(address), Ok(prefix)) = (address.parse::<Ipv4Addr>(), prefix.parse::<u8>()) else {
        return false;
    };
    let Some(first) = subnet.hosts().next() else {
        return false;
    };
    let bits = prefix.min(subnet.prefix());
    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
    u32::from(address) & mask == u32::from(first) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_to_any_address_of_the_network_is_in_the_way() {
        let subnet = "10.9.0.0/16".parse().unwrap();
        assert!(overlaps(subnet, "10.9.3.0/24"));
        assert!(overlaps(subnet, "10.9.3.4"));
        assert!(overlaps(subnet, "10.0.0.0/8"));
        assert!(!overlaps(subnet, "10.8.0.0/16"));
        assert!(!overlaps(subnet, "default"));
    }

    #[test]
    fn names_of_devices_are_short_and_differ_by_directory() {
        let subnet = "10.9.0.0/16".parse().unwrap();
        let one = Lan::new(Path::new("/a"), subnet);
        let other = Lan::new(Path::new("/b"), subnet);
        assert_ne!(one.bridge, other.bridge);
        assert!(one.bridge.len() <= 15, "the kernel takes no more");
        assert_eq!(one.gateway, Ipv4Addr::new(10, 9, 0, 1));
    }
}
