//! The manifests that stories write: one cluster each, in the language that people use.

use super::parse::Clause;
use model::name::Name;
use model::version::Version;
use std::net::Ipv4Addr;

/// What a story has said so far of one manifest.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    control: u32,
    compute: u32,
    /// Compute machines of several providers, in the order in which they were named.
    places: Vec<(Name, u32)>,
    scaled: Option<(u32, u32)>,
    balancers: u32,
    sandboxed: bool,
    cni: Option<String>,
    addons: Vec<String>,
    proxy: Option<String>,
    sparing: String,
    hosts: Vec<Ipv4Addr>,
    server_type: String,
    compute_type: Option<String>,
    replacing: bool,
    account: Option<Name>,
    keys: Option<Name>,
    bucket: Option<Name>,
    gate: Option<Name>,
    version: Version,
    /// The share of machines that the last edit may remove at once.
    pub(super) allowing: Option<u8>,
}

impl Default for Declared {
    fn default() -> Self {
        Self {
            control: 1,
            compute: 0,
            places: Vec::new(),
            scaled: None,
            balancers: 0,
            sandboxed: false,
            cni: None,
            addons: Vec::new(),
            proxy: None,
            sparing: String::new(),
            hosts: Vec::new(),
            server_type: "small".to_owned(),
            compute_type: None,
            replacing: false,
            account: None,
            keys: None,
            bucket: None,
            gate: None,
            version: Version {
                minor: Version::MINOR_MIN,
                patch: 0,
            },
            allowing: None,
        }
    }
}

impl Declared {
    /// Takes in what an edit says.
    pub(super) fn edit(&mut self, clauses: &[Clause]) {
        self.allowing = None;
        for clause in clauses {
            match clause {
                Clause::Control(count) => self.control = *count,
                Clause::Compute(count) => (self.compute, self.scaled) = (*count, None),
                Clause::From(provider, count) => self.place(provider, *count),
                Clause::Scaled(min, max) => self.scaled = Some((*min, *max)),
                Clause::Balancers(count) => self.balancers = *count,
                Clause::Sandboxed => self.sandboxed = true,
                Clause::Connected(cni) => self.cni = Some(cni.clone()),
                Clause::Having(addons) => self.addons.clone_from(addons),
                Clause::Through(proxy) => self.proxy.clone_from(proxy),
                Clause::Sparing(direct) => self.sparing.clone_from(direct),
                Clause::Hosts(hosts) => self.hosts.clone_from(hosts),
                Clause::On(server_type) => {
                    self.server_type.clone_from(server_type);
                    self.compute_type = None;
                }
                Clause::ComputeOn(server_type) => self.compute_type = Some(server_type.clone()),
                Clause::Replacing => self.replacing = true,
                Clause::Account(secret) => self.account = Some(secret.clone()),
                Clause::Keys(secret) => self.keys = Some(secret.clone()),
                Clause::Bucket(secret) => self.bucket = Some(secret.clone()),
                Clause::Gated(gate) => self.gate = Some(gate.clone()),
                Clause::At(version) => self.version = *version,
                Clause::Allowing(percent) => self.allowing = Some(*percent),
            }
        }
    }

    /// So many compute machines come from one provider, whatever comes from the others.
    fn place(&mut self, provider: &Name, count: u32) {
        let mut places = self.places.iter_mut();
        match places.find(|(known, _)| known == provider) {
            Some((_, known)) => *known = count,
            None => self.places.push((provider.clone(), count)),
        }
    }

    /// The providers, of which the first makes whatever is not said to come from another.
    fn providers(&self) -> Vec<&str> {
        match self.places.as_slice() {
            [] => vec!["lab"],
            places => places.iter().map(|(name, _)| name.as_str()).collect(),
        }
    }

    /// Who connects pods, what else there is besides Kubernetes, where etcd is saved, and what nodes
    /// must pass.
    fn besides(&self) -> String {
        let cni = self.cni.iter().map(|cni| format!("        cni: {cni}\n"));
        let addon = |word: &String| match word.split_once('=') {
            Some((name, version)) => format!("{{ name: {name}, version: {version} }}"),
            None => format!("{{ name: {word} }}"),
        };
        let addons: Vec<_> = self.addons.iter().map(addon).collect();
        let addons =
            (!addons.is_empty()).then(|| format!("        addons: [{}]\n", addons.join(", ")));
        let bucket = self.bucket.as_ref().map(|secret| {
            let s3 = format!(
                "{{ endpoint: \"https://s3.example.org\", bucket: etcd, secretRef: {{ name: {secret} }} }}"
            );
            format!("        etcdBackup: {{ to: {{ s3: {s3} }} }}\n")
        });
        let gate = self.gate.as_ref().map(|gate| {
            format!("        upgradeGates: [{{ name: {gate}, command: [\"true\"] }}]\n")
        });
        cni.chain(addons).chain(bucket).chain(gate).collect()
    }

    /// The pools of machines that are made: what each is called, who makes it, and its size.
    fn sizes(&self) -> Vec<(&str, &str, String)> {
        let counted = |count: u32| (count > 0).then(|| format!("count: {count}"));
        let scaled = self
            .scaled
            .map(|(min, max)| format!("autoscaler: {{ min: {min}, max: {max} }}"));
        let first = self.providers()[0];
        let mut sizes = vec![
            ("control", first, counted(self.control)),
            ("compute", first, scaled.or_else(|| counted(self.compute))),
            ("door", first, counted(self.balancers)),
        ];
        let places = self.places.iter();
        sizes.extend(places.map(|(name, count)| (name.as_str(), name.as_str(), counted(*count))));
        let there = sizes.into_iter();
        there
            .filter_map(|(pool, provider, size)| Some((pool, provider, size?)))
            .collect()
    }

    /// The server type of a pool.
    fn server_type(&self, computes: bool) -> &str {
        let own = self.compute_type.as_deref().filter(|_| computes);
        let usual = if self.sandboxed {
            "lite"
        } else {
            &self.server_type
        };
        own.unwrap_or(usual)
    }

    /// The proxy of hosts, where they have any.
    fn proxy(&self) -> String {
        let Some(proxy) = &self.proxy else {
            return String::new();
        };
        let direct = &self.sparing;
        format!(
            "        installationProxy: {{ mode: \"on\", endpoint: \"{proxy}\", noProxy: \"{direct}\" }}\n"
        )
    }

    /// The text of the manifest.
    pub(super) fn text(&self, name: &Name) -> String {
        let mut pools = String::new();
        let mut compute = Vec::new();
        pools.push_str("    dynamic:\n");
        for (pool, provider, size) in self.sizes() {
            let computes = !matches!(pool, "control" | "door");
            let made = (provider, self.server_type(computes));
            pools.push_str(&dynamic_pool(pool, made, &size, self.replacing));
            if computes {
                compute.push(pool);
            }
        }
        if !self.hosts.is_empty() {
            pools.push_str("    static:\n      - name: attic\n        nodes:\n");
            for host in &self.hosts {
                pools.push_str("          - endpoint: ");
                pools.push_str(&host.to_string());
                pools.push('\n');
                if let Some(secret) = &self.keys {
                    pools.push_str(&format!("            secretRef: {{ name: {secret} }}\n"));
                }
            }
            compute.push("attic");
        }
        let account = self.account.as_ref().map_or(String::new(), |secret| {
            format!("      secretRef: {{ name: {secret} }}\n")
        });
        let kind = if self.sandboxed {
            "sandbox"
        } else {
            "simulated"
        };
        let provider =
            |name: &str| format!("    - name: {name}\n      providerType: {kind}\n{account}");
        let providers: String = self.providers().into_iter().map(provider).collect();
        let proxy = self.proxy();
        let more = self.besides();
        let balancers = match self.balancers {
            0 => String::new(),
            _ => balancers(name, &compute),
        };
        format!(
            "apiVersion: slipway.dev/v1
kind: InputManifest
metadata:
  name: {name}
spec:
  providers:
{providers}  nodePools:
{pools}  kubernetes:
    clusters:
      - name: {name}
        version: {}
        network: 10.8.0.0/24
        pools:
          control: [control]
          compute: [{}]
{more}{proxy}{balancers}",
            self.version,
            compute.join(", ")
        )
    }
}

/// A load balancer with an entrance to the API and one to workloads.
fn balancers(cluster: &Name, compute: &[&str]) -> String {
    let web = match compute {
        [] => "control".to_owned(),
        pools => pools.join(", "),
    };
    format!(
        "  loadBalancers:
    roles:
      - {{ name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [control] }}
      - {{ name: web, protocol: tcp, port: 443, targetPort: 30443, targetPools: [{web}] }}
    clusters:
      - name: {cluster}-lb
        targetedK8s: {cluster}
        roles: [api, web]
        pools: [door]
"
    )
}

fn dynamic_pool(
    name: &str,
    (provider, server_type): (&str, &str),
    size: &str,
    replacing: bool,
) -> String {
    format!(
        "      - name: {name}
        providerSpec: {{ name: {provider}, region: north }}
        {size}
        serverType: {server_type}
        image: debian-12
        replace: {replacing}
"
    )
}
