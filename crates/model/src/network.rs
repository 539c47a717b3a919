//! The private network of a cluster.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// An IPv4 network in CIDR notation, given by its base address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Network {
    base: Ipv4Addr,
    prefix: u8,
}

/// Why a text is not a [`Network`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Not of the form address/prefix.
    #[error("network is not of the form A.B.C.D/PREFIX with a prefix from 8 to 29")]
    Form,
    /// Bits set behind the prefix.
    #[error("network has bits set behind its prefix; did you mean {meant}?")]
    Base {
        /// The network that contains the address.
        meant: Network,
    },
}

impl Network {
    /// What machines at clouds have there; each pool has a part of it.
    pub const AT_CLOUDS: Self = Self::of([10, 0, 0, 0], 16);

    /// One of ours that is known to be right.
    pub(crate) const fn of(base: [u8; 4], prefix: u8) -> Self {
        let [a, b, c, d] = base;
        Self {
            base: Ipv4Addr::new(a, b, c, d),
            prefix,
        }
    }

    /// The n-th of the smaller networks of that prefix within it.
    pub fn part(self, prefix: u8, n: u32) -> Option<Self> {
        let more = u32::from(prefix.checked_sub(self.prefix)?);
        if prefix > 29 || u64::from(n) >= 1_u64 << more {
            return None;
        }
        let base = u32::from(self.base) + (n << (32 - u32::from(prefix)));
        Some(Self {
            base: Ipv4Addr::from(base),
            prefix,
        })
    }

    /// Which of its addresses it is, counted from 0.
    pub fn place(self, address: Ipv4Addr) -> Option<u32> {
        self.contains(address)
            .then(|| u32::from(address) - u32::from(self.base))
    }

    /// How many machines fit: all addresses but the network's own and the broadcast.
    pub fn capacity(self) -> u32 {
        (1_u32 << (32 - u32::from(self.prefix))) - 2
    }

    /// The length of its prefix.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// The addresses machines may have, lowest first.
    pub fn hosts(self) -> impl Iterator<Item = Ipv4Addr> {
        let base = u32::from(self.base);
        (1..=self.capacity()).map(move |offset| Ipv4Addr::from(base + offset))
    }

    /// Whether machines can have its addresses: not this host's own, link-local, multicast or
    /// reserved ones.
    pub fn usable(self) -> bool {
        let first = self.base.octets()[0];
        let special = self.base.is_loopback() || self.base.is_link_local() || first == 0;
        !special && first < 224
    }

    /// Whether an address is one of it.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        mask(address, self.prefix) == self.base
    }

    /// Whether the two share an address.
    pub fn overlaps(self, other: Self) -> bool {
        let prefix = self.prefix.min(other.prefix);
        mask(self.base, prefix) == mask(other.base, prefix)
    }
}

fn mask(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    let bits = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    Ipv4Addr::from(u32::from(address) & bits)
}

impl std::str::FromStr for Network {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (address, prefix) = text.split_once('/').ok_or(Error::Form)?;
        let address: Ipv4Addr = address.parse().map_err(|_| Error::Form)?;
        let prefix: u8 = prefix.parse().map_err(|_| Error::Form)?;
        if !(8..=29).contains(&prefix) {
            return Err(Error::Form);
        }
        let base = mask(address, prefix);
        if base != address {
            return Err(Error::Base {
                meant: Self { base, prefix },
            });
        }
        Ok(Self { base, prefix })
    }
}

/// Writes an address where very many are written: what formatters can do besides is not needed.
pub(crate) fn push(text: &mut String, address: Ipv4Addr) {
    for (place, octet) in address.octets().into_iter().enumerate() {
        if place > 0 {
            text.push('.');
        }
        push_number(text, octet);
    }
}

/// Writes a small number in the same way.
pub(crate) fn push_number(text: &mut String, number: u8) {
    let mut digit = |digit: u8| text.push(char::from(b'0' + digit));
    if number >= 100 {
        digit(number / 100);
    }
    if number >= 10 {
        digit(number / 10 % 10);
    }
    digit(number % 10);
}

impl Network {
    /// Writes it where very many are written.
    pub(crate) fn push(self, text: &mut String) {
        push(text, self.base);
        text.push('/');
        push_number(text, self.prefix);
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl TryFrom<String> for Network {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_of_29_bits_holds_six_machines() {
        let hosts: Vec<_> = network("10.1.0.8/29")
            .hosts()
            .map(|host| host.to_string())
            .collect();
        assert_eq!(hosts.first().unwrap(), "10.1.0.9");
        assert_eq!(hosts.last().unwrap(), "10.1.0.14");
        assert_eq!(hosts.len(), 6);
    }

    #[test]
    fn a_host_address_is_refused_with_the_network_that_was_meant() {
        let refused = "10.1.0.9/24"
            .parse::<Network>()
            .expect_err("must not parse");
        assert_eq!(
            refused.to_string(),
            "network has bits set behind its prefix; did you mean 10.1.0.0/24?"
        );
    }

    #[test]
    fn overlap_is_seen_from_either_side() {
        assert!(network("10.0.0.0/8").overlaps(network("10.9.0.0/24")));
        assert!(network("10.9.0.0/24").overlaps(network("10.0.0.0/8")));
        assert!(!network("10.9.0.0/24").overlaps(network("10.9.1.0/24")));
    }
}
