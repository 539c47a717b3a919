//! The private network of a cluster as its machines see it: who dials whom.
//!
//! Every machine has a tunnel to every other one. Keys are born on the hosts; only public
//! halves are here.

use crate::cluster::{Machine, Origin};
use crate::host::Fingerprint;
use crate::id::MachineId;
use crate::network::{self, Network};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where every machine listens for its peers.
pub const PORT: u16 = 51_820;

/// How often who dials says something: the way back through a NAT stays open, and a tunnel that
/// nobody uses can still be told from one that is broken.
const KEEPALIVE_SECONDS: u16 = 25;

/// The public half of a host's key: 32 bytes in base64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MeshKey(String);

/// Why a text is not a [`MeshKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a WireGuard key is 32 bytes in base64: 44 characters, the last a `=`")]
pub struct NotAKey;

impl MeshKey {
    /// As `wg` writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for MeshKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        match text.strip_suffix('=') {
            Some(digits) if digits.len() == 43 && digits.bytes().all(digit) => {
                Ok(Self(text.to_owned()))
            }
            Some(_) | None => Err(NotAKey),
        }
    }
}

impl TryFrom<String> for MeshKey {
    type Error = NotAKey;

    fn try_from(text: String) -> Result<Self, NotAKey> {
        text.parse()
    }
}

impl From<MeshKey> for String {
    fn from(key: MeshKey) -> Self {
        key.0
    }
}

impl std::fmt::Display for MeshKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// One machine of a mesh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Which machine, whole: whoever changes its peers must reach it.
    pub machine: Machine,
    /// Its key.
    pub key: MeshKey,
    /// Where it answers.
    pub at: IpAddr,
    /// Where its pods are, if they are reached through the mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Network>,
}

/// A member as others know it, for those who only compare.
#[derive(Debug, Clone, Copy)]
pub struct Face<'a> {
    /// Which machine.
    pub machine: &'a Machine,
    /// Its key.
    pub key: &'a MeshKey,
    /// Where it answers.
    pub at: IpAddr,
    /// Where its pods are, if they are reached through the mesh.
    pub pods: Option<Network>,
}

/// A mesh as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// The network that it carries.
    pub network: Network,
    /// The network of all pods, if they are reached through the mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Network>,
    /// Everybody, in the order of their addresses.
    pub members: Vec<Member>,
    /// Whose peers have to change.
    pub to: Vec<MachineId>,
}

/// The end of the mesh on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Its address in the network.
    pub address: Ipv4Addr,
    /// The prefix length of the network.
    pub prefix: u8,
    /// What else is reached through it: the network of all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Network>,
    /// Everybody else, in the order of their addresses.
    pub peers: Vec<Peer>,
}

/// Somebody at the other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its key.
    pub key: MeshKey,
    /// Its address in the network; nothing else comes from it but its pods.
    pub address: Ipv4Addr,
    /// Where its pods are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Network>,
    /// Where to dial it; absent where it dials us.
    pub endpoint: Option<SocketAddr>,
    /// How often to say something, in seconds.
    pub keepalive: Option<u16>,
}

/// What a host tells of its end of the mesh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeshFact {
    /// What it was told last: its first half stands for the wish, its second half for the
    /// peers that come of it. So who has the wish need not work out the peers of everybody.
    pub told: Fingerprint,
    /// The peers that it really has.
    pub live: Fingerprint,
}

/// Of how many of its peers a host has heard lately: they all say something twice a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heard {
    /// The peers that it has.
    pub peers: u32,
    /// Those it shook hands with in the last three minutes.
    pub lately: u32,
}

impl MeshFact {
    fn of(wish: &Fingerprint, live: Fingerprint) -> Self {
        let half = |print: &Fingerprint| print.as_str().get(..HALF).unwrap_or_default().to_owned();
        let told = format!("{}{}", half(wish), half(&live));
        Self {
            // Two halves make a whole; another one would only cause work.
            told: told.parse().unwrap_or_else(|_| wish.clone()),
            live,
        }
    }

    /// Whether the peers are those that came of what it was told.
    fn undisturbed(&self) -> bool {
        let promised = self.told.as_str().get(HALF..);
        promised.is_some_and(|promised| self.live.as_str().starts_with(promised))
    }
}

/// Digits of half a fingerprint.
const HALF: usize = 8;

impl Mesh {
    /// The end of the mesh on one of its machines.
    pub fn tunnel(&self, machine: MachineId) -> Option<Tunnel> {
        let of = |member: &&Member| member.machine.id == machine;
        let this = self.members.iter().find(of)?;
        let others = self.members.iter().filter(|member| !of(member));
        Some(Tunnel {
            address: this.machine.address,
            prefix: self.network.prefix(),
            pods: self.pods,
            peers: others
                .map(|other| dial(this.face().is_given(), other))
                .collect(),
        })
    }

    /// The first machine that is reached inside the network of the mesh, itself or by the jump host
    /// in front of it, and where. Its tunnel would take the way on which we come, and nobody could
    /// take it back: such a mesh must not be told to anybody.
    pub fn reached_within(&self) -> Option<(&Machine, IpAddr)> {
        let within = |address: IpAddr| match address {
            IpAddr::V4(address) => self.network.contains(address),
            IpAddr::V6(_) => false,
        };
        self.members.iter().find_map(|member| {
            let jump = member.machine.origin.jump();
            let jump = jump.map(|jump| IpAddr::V4(jump.endpoint));
            let mut ways = [Some(member.at), jump].into_iter().flatten();
            Some((&member.machine, ways.find(|at| within(*at))?))
        })
    }

    /// What all its machines are to be told, worked out at once: with a thousand of them a
    /// million peers would be too many to look at.
    pub fn wishes(&self) -> Wishes {
        let faces: Vec<_> = self.members.iter().map(Member::face).collect();
        Wishes::of(self.network, self.pods, &faces)
    }
}

impl Member {
    fn face(&self) -> Face<'_> {
        Face {
            machine: &self.machine,
            key: &self.key,
            at: self.at,
            pods: self.pods,
        }
    }
}

impl Face<'_> {
    /// The same, to be kept.
    pub fn member(&self) -> Member {
        Member {
            machine: self.machine.clone(),
            key: self.key.clone(),
            at: self.at,
            pods: self.pods,
        }
    }

    const fn is_given(&self) -> bool {
        matches!(self.machine.origin, Origin::Given { .. })
    }

    /// How a machine reaches it. Given machines may be behind NAT: they dial those that we made, and
    /// keep the way back open. Among themselves they try each other.
    fn dialled(&self, by_given: bool) -> Option<(SocketAddr, u16)> {
        let dialled = !self.is_given() || by_given;
        dialled.then_some((SocketAddr::new(self.at, PORT), KEEPALIVE_SECONDS))
    }
}

/// What each machine of a mesh is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes(BTreeMap<MachineId, Fingerprint>);

impl Wishes {
    /// What all these are to be told of each other.
    pub fn of(network: Network, pods: Option<Network>, members: &[Face<'_>]) -> Self {
        let mut wishes = BTreeMap::new();
        let mut text = String::new();
        // Who was given dials otherwise than who was made.
        for by_given in [false, true] {
            if !members.iter().any(|member| member.is_given() == by_given) {
                continue;
            }
            let digest = |of: &Face<'_>| {
                let at = (of.key, of.machine.address);
                digest(&mut text, at, of.pods, of.dialled(by_given))
            };
            let digests: Vec<_> = members.iter().map(digest).collect();
            let all = Sum::of(digests.iter().copied());
            for (member, own) in members.iter().zip(digests) {
                if member.is_given() == by_given {
                    let (address, prefix) = (member.machine.address, network.prefix());
                    let wish = all.without(own).wish(&mut text, (address, prefix), pods);
                    wishes.insert(member.machine.id, wish);
                }
            }
        }
        Self(wishes)
    }

    /// Whether a machine is part of the mesh and its end of it is not as it should be.
    pub fn unmet(&self, machine: MachineId, seen: Option<&MeshFact>) -> bool {
        let met = |wish: &Fingerprint, fact: &MeshFact| {
            let (wish, told) = (wish.as_str().get(..HALF), fact.told.as_str().get(..HALF));
            wish == told && fact.undisturbed()
        };
        let wish = self.0.get(&machine);
        wish.is_some_and(|wish| seen.is_none_or(|fact| !met(wish, fact)))
    }

    /// Whether a machine was told this once, whatever has become of its end of the mesh since.
    pub fn told(&self, machine: MachineId, seen: &MeshFact) -> bool {
        let wish = self
            .0
            .get(&machine)
            .and_then(|wish| wish.as_str().get(..HALF));
        wish.is_some() && wish == seen.told.as_str().get(..HALF)
    }

    /// What a machine will tell when its wish is met, for those who look ahead: its peers are
    /// as it was told, whatever they are.
    pub fn met(&self, machine: MachineId) -> Option<MeshFact> {
        let wish = self.0.get(&machine)?;
        let live = Fingerprint::of_text(wish.as_str());
        Some(MeshFact::of(wish, live))
    }
}

impl Tunnel {
    /// What a host tells that was told this.
    pub fn fact(&self) -> MeshFact {
        let mut text = String::new();
        let sum = Sum::of(self.peers.iter().map(|peer| {
            let dialled = peer.endpoint.zip(peer.keepalive);
            digest(&mut text, (&peer.key, peer.address), peer.pods, dialled)
        }));
        let wish = sum.wish(&mut text, (self.address, self.prefix), self.pods);
        MeshFact::of(&wish, self.live())
    }

    /// The fingerprint of the peers as `wg show INTERFACE allowed-ips` lists them, sorted.
    fn live(&self) -> Fingerprint {
        // In the order of keys, which is that of the lines: all keys are of one length.
        let mut peers: Vec<_> = self.peers.iter().collect();
        peers.sort_by(|a, b| a.key.cmp(&b.key));
        let mut lines = String::new();
        for peer in peers {
            lines.extend([peer.key.as_str(), "\t", &peer.allowed(" "), "\n"]);
        }
        Fingerprint::of_text(&lines)
    }
}

impl Peer {
    /// What may come from it and is sent to it, as `wg` lists it.
    pub fn allowed(&self, between: &str) -> String {
        match self.pods {
            None => format!("{}/32", self.address),
            Some(pods) => format!("{}/32{between}{pods}", self.address),
        }
    }
}

/// A digest of peers from which one can be taken out again: the sum of theirs.
#[derive(Debug, Clone, Copy)]
struct Sum(u64);

impl Sum {
    fn of(digests: impl Iterator<Item = u64>) -> Self {
        Self(digests.fold(0, u64::wrapping_add))
    }

    const fn without(self, digest: u64) -> Self {
        Self(self.0.wrapping_sub(digest))
    }

    /// Stands for what a machine at this address, with these peers, is to be told.
    fn wish(
        self,
        text: &mut String,
        (address, prefix): (Ipv4Addr, u8),
        pods: Option<Network>,
    ) -> Fingerprint {
        text.clear();
        network::push(text, address);
        text.push('/');
        network::push_number(text, prefix);
        push_pods(text, pods);
        text.push(' ');
        let digits = (0..16).rev().map(|place| self.0 >> (4 * place) & 15);
        for digit in digits {
            text.extend(
                u32::try_from(digit)
                    .ok()
                    .and_then(|of| char::from_digit(of, 16)),
            );
        }
        Fingerprint::of_text(text)
    }
}

fn push_pods(text: &mut String, pods: Option<Network>) {
    if let Some(pods) = pods {
        text.push(' ');
        pods.push(text);
    }
}

/// The digest of a peer: who it is, where its pods are, where to dial it and how often to say
/// something. It is written into a text that others were written into before: a thousand machines
/// have two thousand of them in every plan.
fn digest(
    text: &mut String,
    (key, address): (&MeshKey, Ipv4Addr),
    pods: Option<Network>,
    dialled: Option<(SocketAddr, u16)>,
) -> u64 {
    text.clear();
    text.push_str(key.as_str());
    text.push(' ');
    network::push(text, address);
    push_pods(text, pods);
    match dialled {
        None => text.push_str(" None None"),
        Some((SocketAddr::V4(at), KEEPALIVE_SECONDS)) if at.port() == PORT => {
            text.push_str(" Some(");
            network::push(text, *at.ip());
            text.push_str(":51820) Some(25)");
        }
        Some((at, keepalive)) => text.push_str(&format!(" Some({at}) Some({keepalive})")),
    }
    let digest = Sha256::digest(text.as_bytes());
    let first = digest.iter().take(8);
    first.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// How a machine reaches another.
fn dial(by_given: bool, other: &Member) -> Peer {
    let (endpoint, keepalive) = other.face().dialled(by_given).unzip();
    Peer {
        key: other.key.clone(),
        address: other.machine.address,
        pods: other.pods,
        endpoint,
        keepalive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Generation, Jump, Role};
    use crate::hardware::Hardware;
    use crate::id;
    use crate::provider::Provider;

    /// The n-th machine: every third was given.
    fn member(n: u32) -> Member {
        let public = IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1 + u8::try_from(n).unwrap()));
        let origin = if n.is_multiple_of(3) {
            Origin::Given {
                endpoint: Ipv4Addr::new(192, 168, 0, 9),
                ssh_port: 22,
                username: "root".to_owned(),
                secret: None,
                jump: None,
            }
        } else {
            Origin::Made {
                provider: "lab".parse().unwrap(),
                via: Provider::Sandbox,
                region: "here".to_owned(),
                zone: None,
                server_type: "lite".to_owned(),
                image: "debian-12".to_owned(),
                hardware: Hardware::default(),
                secret: None,
            }
        };
        let derived = id::Origin {
            parent: "test",
            name: "m",
            ordinal: u64::from(n),
            incarnation: 0,
        };
        Member {
            machine: Machine {
                id: MachineId::derive(derived),
                name: format!("m{n}").parse().unwrap(),
                pool: "p".parse().unwrap(),
                role: Role::Compute,
                ordinal: n,
                incarnation: 0,
                address: Ipv4Addr::from(0x0a08_0001 + n),
                balancer: None,
                origin,
            },
            // Keys are not in the order of addresses.
            key: format!("{:x>43}=", 900 - n).parse().unwrap(),
            at: public,
            pods: None,
        }
    }

    fn mesh(members: impl IntoIterator<Item = u32>) -> Mesh {
        Mesh {
            network: "10.8.0.0/24".parse().unwrap(),
            pods: None,
            members: members.into_iter().map(member).collect(),
            to: Vec::new(),
        }
    }

    /// Hosts remember what they were told: another text would have all of them told again.
    #[test]
    fn what_stands_for_a_mesh_stays_the_same() {
        let mut mesh = mesh(1..4);
        mesh.pods = Some("10.244.0.0/16".parse().unwrap());
        mesh.members[0].pods = Some("10.244.7.0/24".parse().unwrap());
        mesh.members[1].at = "2001:db8::7".parse().unwrap();
        for member in &mesh.members {
            let tunnel = mesh.tunnel(member.machine.id).unwrap();
            let digests = tunnel.peers.iter().map(|peer| {
                let pods = peer.pods.map(|pods| format!(" {pods}")).unwrap_or_default();
                let (key, address) = (&peer.key, peer.address);
                let text = format!(
                    "{key} {address}{pods} {:?} {:?}",
                    peer.endpoint, peer.keepalive
                );
                let digest = Sha256::digest(text.as_bytes());
                u64::from_be_bytes(*digest.first_chunk().unwrap())
            });
            let sum = digests.fold(0, u64::wrapping_add);
            let text = format!("{}/24 10.244.0.0/16 {sum:016x}", tunnel.address);
            let wish = Fingerprint::of_text(&text);
            assert_eq!(mesh.wishes().0[&member.machine.id], wish);
            assert!(
                tunnel
                    .fact()
                    .told
                    .as_str()
                    .starts_with(&wish.as_str()[..HALF])
            );
        }
    }

    fn facts(mesh: &Mesh) -> Vec<(MachineId, MeshFact)> {
        let fact = |member: &Member| {
            let id = member.machine.id;
            (id, mesh.tunnel(id).unwrap().fact())
        };
        mesh.members.iter().map(fact).collect()
    }

    fn unmet(wished: &Mesh, told: &Mesh) -> Vec<bool> {
        let wishes = wished.wishes();
        let facts = facts(told);
        facts
            .iter()
            .map(|(id, fact)| wishes.unmet(*id, Some(fact)))
            .collect()
    }

    #[test]
    fn who_was_told_of_a_mesh_has_met_its_wishes() {
        for size in 1..8 {
            assert_eq!(
                unmet(&mesh(0..size), &mesh(0..size)),
                vec![false; usize::try_from(size).unwrap()]
            );
        }
    }

    #[test]
    fn who_looks_ahead_sees_wishes_met() {
        let mesh = mesh(0..5);
        let wishes = mesh.wishes();
        for member in &mesh.members {
            let id = member.machine.id;
            assert!(!wishes.unmet(id, wishes.met(id).as_ref()));
        }
    }

    #[test]
    fn another_member_or_another_way_to_it_is_another_wish_for_everybody_else() {
        let told = mesh(0..5);
        assert_eq!(unmet(&mesh(0..6), &told), [true; 5]);
        assert_eq!(unmet(&mesh(0..4), &told), [true, true, true, true, false]);
        let mut moved = told.clone();
        moved.members[1].at = "192.168.7.7".parse().unwrap();
        assert_eq!(unmet(&moved, &told), [true, false, true, true, true]);
        let mut born_again = told.clone();
        born_again.members[2].key = member(40).key;
        assert_eq!(unmet(&born_again, &told), [true, true, false, true, true]);
    }

    #[test]
    fn who_lost_a_peer_or_was_never_told_is_not_as_wished() {
        let mesh = mesh(0..4);
        let wishes = mesh.wishes();
        let (id, fact) = facts(&mesh).remove(1);
        assert!(wishes.unmet(id, None));
        let live = Fingerprint::of_text("");
        assert!(wishes.unmet(id, Some(&MeshFact { live, ..fact })));
    }

    #[test]
    fn peers_are_told_as_wireguard_lists_them() {
        let mesh = mesh(0..3);
        let (_, fact) = facts(&mesh).remove(0);
        let listed = "\
            xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx898=\t10.8.0.3/32\n\
            xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx899=\t10.8.0.2/32\n";
        assert_eq!(fact.live, Fingerprint::of_text(listed));
    }

    #[test]
    fn who_is_reached_inside_the_network_is_told_and_by_which_way() {
        let apart = mesh(0..4);
        assert_eq!(apart.reached_within(), None);
        let moved = |n: usize, at: &str| {
            let mut mesh = apart.clone();
            mesh.members[n].at = at.parse().unwrap();
            let found = mesh.reached_within();
            found.map(|(machine, at)| (machine.name.to_string(), at.to_string()))
        };
        let told = |name: &str, at: &str| Some((name.to_owned(), at.to_owned()));
        for at in ["10.8.0.0", "10.8.0.77", "10.8.0.255"] {
            assert_eq!(moved(2, at), told("m2", at));
        }
        // Just beside it, and of another kind.
        for at in ["10.7.255.255", "10.8.1.0", "::ffff:10.8.0.77"] {
            assert_eq!(moved(2, at), None);
        }

        let mut behind = apart.clone();
        let by = |endpoint| Jump {
            endpoint,
            ssh_port: 22,
            username: "root".to_owned(),
            secret: None,
            since: Generation(1),
        };
        for (front, expected) in [("192.168.0.8", None), ("10.8.0.9", told("m3", "10.8.0.9"))] {
            let Origin::Given { jump, .. } = &mut behind.members[3].machine.origin else {
                panic!("m3 is not given");
            };
            *jump = Some(by(front.parse().unwrap()));
            let found = behind.reached_within();
            let found = found.map(|(machine, at)| (machine.name.to_string(), at.to_string()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn given_machines_dial_and_keep_the_way_back_open() {
        let mesh = mesh([0, 1, 3]);
        let ways = |n: usize| -> Vec<_> {
            let tunnel = mesh.tunnel(mesh.members[n].machine.id).unwrap();
            let way = |peer: &Peer| (peer.endpoint.is_some(), peer.keepalive.is_some());
            tunnel.peers.iter().map(way).collect()
        };
        assert_eq!(ways(0), [(true, true), (true, true)]);
        assert_eq!(ways(1), [(false, false), (false, false)]);
    }
}
