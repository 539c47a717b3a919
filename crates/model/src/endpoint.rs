//! Where people find the API of a cluster: its one name, and the machines to which that leads.
//!
//! On every node the name is written down, and nobody outside knows it. What is given out
//! therefore says at which address to ask and which name to expect there: certificates bear the
//! name alone, so that the API can move and they still fit.

use crate::cluster::{Desired, Machine, Role};
use crate::kubernetes::{API_PORT, api_name};
use crate::name::Name;
use crate::observed::{MachineFact, Observed};
use crate::secret::Secret;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

/// The API of one cluster, as it is found now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The one name, on all nodes and in the certificates.
    pub name: String,
    /// The machines to which it leads, in the order in which they are asked.
    pub machines: Vec<Behind>,
}

/// A machine to which the name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// Which machine.
    pub machine: Name,
    /// Where nodes find it.
    pub address: Ipv4Addr,
    /// Where people find it; none where it was not seen to run.
    pub outside: Option<IpAddr>,
}

/// No machine to which the name leads was seen to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoAddress;

impl Endpoint {
    /// The API of a cluster that should be so and was seen so.
    pub fn of(desired: &Desired, observed: &Observed) -> Self {
        let addresses = open_doors(desired, observed).unwrap_or_else(|| desired.api());
        let serves = |machine: &&Machine| addresses.contains(&machine.address);
        let behind = |machine: &Machine| Behind {
            machine: machine.name.clone(),
            address: machine.address,
            outside: outside(machine, observed),
        };
        let machines = desired.all().filter(serves);
        Self {
            name: api_name(&desired.name),
            machines: machines.map(behind).collect(),
        }
    }

    /// Where people find the API.
    pub fn outside(&self) -> Option<IpAddr> {
        self.machines.iter().find_map(|behind| behind.outside)
    }

    /// A kubeconfig as people can use it: where it asks by the name, it asks at the address
    /// outside and expects the name there. All else stays as it is, and so does a kubeconfig
    /// that does not ask by the name, as those of simulated clusters.
    pub fn given_out(&self, kubeconfig: Secret) -> Result<Secret, NoAddress> {
        let Some(text) = kubeconfig.expose_text() else {
            return Ok(kubeconfig);
        };
        let Some(place) = self.asked_at(text) else {
            return Ok(kubeconfig);
        };
        let host = match self.outside().ok_or(NoAddress)? {
            IpAddr::V4(at) => at.to_string(),
            IpAddr::V6(at) => format!("[{at}]"),
        };
        let line = &text[place.clone()];
        let indent = &line[..line.len() - line.trim_start().len()];
        let name = &self.name;
        let written =
            format!("{indent}server: https://{host}:{API_PORT}\n{indent}tls-server-name: {name}");
        // Of its final size from the start: memory that grows leaves copies behind.
        let mut given = String::with_capacity(text.len() + written.len());
        given.push_str(&text[..place.start]);
        given.push_str(&written);
        given.push_str(&text[place.end..]);
        Ok(Secret::from_text(given))
    }

    /// The line, without its end, in which an entry of `clusters` asks by the name.
    fn asked_at(&self, kubeconfig: &str) -> Option<Range<usize>> {
        let wanted = format!("server: https://{}:{API_PORT}", self.name);
        let (mut start, mut inside) = (0, false);
        for line in kubeconfig.split_inclusive('\n') {
            let plain = line.trim_end();
            if !plain.is_empty() && !plain.starts_with([' ', '-', '#']) {
                inside = plain == "clusters:";
            }
            if inside && plain.trim_start() == wanted {
                return Some(start..start + plain.len());
            }
            start += line.len();
        }
        None
    }
}

/// Where people are let in while the API is on its way to a machine: ports open before anybody is
/// led there, and what passed it on goes on with that. Nothing where it is where it should be.
fn open_doors(desired: &Desired, observed: &Observed) -> Option<Vec<Ipv4Addr>> {
    if desired.api_balancer().is_some() {
        return None;
    }
    let control = |machine: &&Machine| machine.role == Role::Control;
    let mut members = desired.machines.iter().filter(control);
    let shut = |machine: &Machine| machine.has_firewall() && !observed.lets_in(machine.id);
    if !members.clone().next().is_some_and(shut) {
        return None;
    }
    if let Some(open) = members.find(|machine| !shut(machine)) {
        return Some(vec![open.address]);
    }
    let passes = |machine: &&Machine| {
        let role = desired.former_api_role(machine);
        let seen = observed.machines.get(&machine.id);
        let told = seen.and_then(|seen| seen.host.as_ref()?.0.balance.as_ref());
        role.zip(told)
            .is_some_and(|(role, told)| told.healthy.contains_key(&role.name))
    };
    let before: Vec<_> = desired.all().filter(passes).map(|of| of.address).collect();
    (!before.is_empty()).then_some(before)
}

/// Where a machine was last seen to run.
fn outside(machine: &Machine, observed: &Observed) -> Option<IpAddr> {
    let seen = observed.machines.get(&machine.id)?;
    match seen.machine.as_ref()? {
        (MachineFact::Running { address, .. }, _) => Some(*address),
        (
            MachineFact::Absent | MachineFact::Booting { .. } | MachineFact::Unreachable { .. },
            _,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balancer::{BalanceFact, Protocol};
    use crate::cluster::{Balancer, Forward, Origin};
    use crate::host::Fingerprint;
    use crate::observed::Seen;
    use crate::observed::{HostFact, PortFact};
    use crate::provider::{Cloud, Provider};
    use crate::time::Timestamp;

    /// A cluster with two control machines, and two machines of a load balancer.
    const DESIRED: &str = r#"{
        "cluster":"cluster-0c5w3k9qj2m4x","project":"default","manifest":"m","name":"edge","incarnation":0,
        "generation":3,"version":"v1.34.0","network":"10.8.0.0/24","machines":[
            {"id":"machine-0c5w3k9qj2m4x","name":"edge-brain-01","pool":"brain","role":"control","ordinal":1,
             "incarnation":0,"address":"10.8.0.1","origin":{"given":{"endpoint":"192.168.7.1","ssh_port":22,
             "username":"root"}}},
            {"id":"machine-0c5w3k9qj2m4y","name":"edge-brain-02","pool":"brain","role":"control","ordinal":2,
             "incarnation":0,"address":"10.8.0.2","origin":{"given":{"endpoint":"192.168.7.2","ssh_port":22,
             "username":"root"}}}],
        "leaving":[],"made":{"brain":2},"tombstone":false}"#;

    /// What kubeadm writes; the texts within are made up.
    const KUBECONFIG: &str = "apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTg==
    server: https://api.edge.slipway.internal:6443
  name: edge
contexts:
- context:
    cluster: edge
    user: kubernetes-admin
  name: kubernetes-admin@edge
current-context: kubernetes-admin@edge
kind: Config
preferences: {}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: LS0tLS1DRVJU
    client-key-data: LS0tLS1LRVk=
";

    fn desired() -> Desired {
        serde_json::from_str(DESIRED).unwrap()
    }

    fn seen(desired: &Desired, facts: &[(usize, MachineFact)]) -> Observed {
        let mut observed = Observed::default();
        for (at, fact) in facts {
            let seen = Seen {
                machine: Some((fact.clone(), Timestamp::from_millis(1))),
                ..Seen::default()
            };
            observed.machines.insert(desired.machines[*at].id, seen);
        }
        observed
    }

    fn running(address: &str) -> MachineFact {
        MachineFact::Running {
            reference: "vm".to_owned(),
            address: address.parse().unwrap(),
        }
    }

    fn given(endpoint: &Endpoint, text: &str) -> Result<String, NoAddress> {
        let given = endpoint.given_out(Secret::from_text(text.to_owned()))?;
        Ok(given.expose_text().unwrap().to_owned())
    }

    #[test]
    fn a_kubeconfig_asks_at_the_address_and_expects_the_name() {
        let desired = desired();
        for (address, host) in [("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "[2001:db8::7]")] {
            let observed = seen(
                &desired,
                &[(0, running(address)), (1, running("192.0.2.8"))],
            );
            let endpoint = Endpoint::of(&desired, &observed);
            let given = given(&endpoint, KUBECONFIG).unwrap();
            let expected = KUBECONFIG.replace(
                "    server: https://api.edge.slipway.internal:6443\n",
                &format!(
                    "    server: https://{host}:6443\n    tls-server-name: api.edge.slipway.internal\n"
                ),
            );
            assert_eq!(given, expected, "all else stays byte for byte");
            assert_ne!(given, KUBECONFIG);
        }
    }

    #[test]
    fn only_an_entry_of_clusters_is_changed() {
        let desired = desired();
        let endpoint = Endpoint::of(&desired, &seen(&desired, &[(0, running("192.0.2.7"))]));
        let line = "    server: https://api.edge.slipway.internal:6443\n";
        let elsewhere = KUBECONFIG.replace(line, "") + "extensions:\n- any:\n" + line;
        let others = [
            // As a simulated cluster has it.
            KUBECONFIG.replace("api.edge.slipway.internal", "10.8.0.1"),
            KUBECONFIG.replace("api.edge", "api.other"),
            elsewhere,
            "not: [a, kubeconfig".to_owned(),
            String::new(),
        ];
        for text in others {
            assert_eq!(given(&endpoint, &text).unwrap(), text);
        }
        let bytes = endpoint.given_out(Secret::from(vec![0xff, 0xfe])).unwrap();
        assert_eq!(bytes.expose(), [0xff, 0xfe]);
    }

    #[test]
    fn without_an_address_only_what_needs_none_is_given_out() {
        let desired = desired();
        let lost = MachineFact::Unreachable {
            reference: "vm".to_owned(),
            because: None,
        };
        // The name leads to the first control machine, whatever is known of the second.
        let observed = seen(&desired, &[(0, lost), (1, running("192.0.2.8"))]);
        let endpoint = Endpoint::of(&desired, &observed);
        assert_eq!(given(&endpoint, KUBECONFIG), Err(NoAddress));
        let simulated = KUBECONFIG.replace("api.edge.slipway.internal", "10.8.0.1");
        assert_eq!(given(&endpoint, &simulated), Ok(simulated));
    }

    #[test]
    fn behind_a_load_balancer_the_first_of_its_machines_that_runs_is_asked() {
        let mut desired = desired();
        for (at, name) in [(2_u8, "gate-01"), (3, "gate-02")] {
            let mut gate = desired.machines[0].clone();
            let id = ["machine-0c5w3k9qj2m5x", "machine-0c5w3k9qj2m6x"][usize::from(at) - 2];
            gate.id = id.parse().unwrap();
            gate.name = name.parse().unwrap();
            gate.role = Role::Balancer;
            gate.address = [10, 8, 0, at + 1].into();
            gate.balancer = Some("gate".parse().unwrap());
            desired.machines.push(gate);
        }
        desired.balancers.push(Balancer {
            dns: None,
            name: "gate".parse().unwrap(),
            roles: vec![Forward {
                name: "api".parse().unwrap(),
                protocol: Protocol::Tcp,
                port: API_PORT,
                target_port: API_PORT,
                target_pools: vec!["brain".parse().unwrap()],
                proxy_protocol: false,
                sticky: false,
            }],
        });
        let booting = MachineFact::Booting {
            reference: "vm".to_owned(),
        };
        let facts = [
            (0, running("192.0.2.1")),
            (2, booting),
            (3, running("192.0.2.9")),
        ];
        let endpoint = Endpoint::of(&desired, &seen(&desired, &facts));
        let told: Vec<_> = endpoint
            .machines
            .iter()
            .map(|behind| behind.machine.as_str())
            .collect();
        assert_eq!(told, ["gate-01", "gate-02"]);
        assert_eq!(endpoint.outside(), Some([192, 0, 2, 9].into()));
    }

    /// The machines at a cloud, and a load balancer that passed the API on before.
    fn at_a_cloud(desired: &mut Desired) {
        for machine in &mut desired.machines {
            machine.origin = Origin::Made {
                provider: "sky".parse().unwrap(),
                via: Provider::Cloud(Cloud::Hetzner),
                region: "north".to_owned(),
                zone: None,
                server_type: "small".to_owned(),
                image: "debian-12".to_owned(),
                hardware: crate::hardware::Hardware::default(),
                secret: None,
            };
        }
        let mut gate = desired.machines[0].clone();
        gate.id = "machine-0c5w3k9qj2m5x".parse().unwrap();
        gate.name = "gate-01".parse().unwrap();
        gate.role = Role::Balancer;
        gate.address = [10, 8, 0, 3].into();
        gate.balancer = Some("gate".parse().unwrap());
        desired.machines.push(gate);
        desired.former.push(Balancer {
            dns: None,
            name: "gate".parse().unwrap(),
            roles: vec![Forward {
                name: "api".parse().unwrap(),
                protocol: Protocol::Tcp,
                port: API_PORT,
                target_port: API_PORT,
                target_pools: vec!["brain".parse().unwrap()],
                proxy_protocol: false,
                sticky: false,
            }],
        });
    }

    #[test]
    fn nobody_is_sent_to_a_port_that_is_shut_while_there_is_another_way() {
        let mut desired = desired();
        at_a_cloud(&mut desired);
        let all: Vec<_> = (0..3).map(|at| (at, running("192.0.2.1"))).collect();
        let mut observed = seen(&desired, &all);
        let asked = |observed: &Observed| -> Vec<String> {
            let endpoint = Endpoint::of(&desired, observed);
            let names = endpoint.machines.iter();
            names.map(|behind| behind.machine.to_string()).collect()
        };
        // There is no other way.
        assert_eq!(asked(&observed), ["edge-brain-01"]);
        let told = BalanceFact {
            told: Fingerprint::of(&()),
            healthy: [("api".parse().unwrap(), 2)].into(),
        };
        let host = HostFact {
            balance: Some(told),
            ..HostFact::default()
        };
        let at = Timestamp::from_millis(1);
        let of = |at: usize| desired.machines[at].id;
        observed.machines.get_mut(&of(2)).unwrap().host = Some((host, at));
        assert_eq!(asked(&observed), ["gate-01"]);
        let mut opened = |machine: usize, open: bool| {
            let seen = observed.machines.get_mut(&of(machine)).unwrap();
            seen.port = Some((PortFact { open }, at));
            asked(&observed)
        };
        assert_eq!(opened(0, false), ["gate-01"]);
        assert_eq!(opened(1, true), ["edge-brain-02"]);
        assert_eq!(opened(0, true), ["edge-brain-01"]);
    }
}
