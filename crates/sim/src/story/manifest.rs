//! The manifests that stories write: one cluster each, in the language that people use.

use super::parse::{Clause, Entrance};
use model::name::Name;
use model::version::Version;
use std::net::Ipv4Addr;

/// The repository of modules that stories use.
pub(super) const MODULES: &str = "git.example.org/modules";

/// What a story has said so far of one manifest.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    control: u32,
    compute: u32,
    /// Compute machines of several providers, in the order in which they were named.
    places: Vec<(Name, u32)>,
    /// Control machines of other providers than the first.
    control_places: Vec<(Name, u32)>,
    clouds: bool,
    scaled: Option<(u32, u32)>,
    balancers: u32,
    others: u32,
    api: Entrance,
    called: Option<Name>,
    named: Option<Name>,
    /// Who answers for its name, where that is a cloud, and the secret that opens the account there.
    zones: Option<(String, Name)>,
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
    modules: Option<String>,
    window: Option<(String, String)>,
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
            control_places: Vec::new(),
            clouds: false,
            scaled: None,
            balancers: 0,
            others: 0,
            api: Entrance::First,
            called: None,
            named: None,
            zones: None,
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
            modules: None,
            window: None,
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
                Clause::From(provider, count) => place(&mut self.places, provider, *count),
                Clause::ControlFrom(provider, count) => {
                    place(&mut self.control_places, provider, *count);
                }
                Clause::Clouds => self.clouds = true,
                Clause::Scaled(min, max) => self.scaled = Some((*min, *max)),
                Clause::Balancers(count) => self.balancers = *count,
                Clause::Others(count) => self.others = *count,
                Clause::Api(entrance) => self.api = *entrance,
                Clause::Called(name) => self.called = Some(name.clone()),
                Clause::Named(name) => self.named = Some(name.clone()),
                Clause::Zones(kind, secret) => {
                    self.zones = Some((kind.clone(), secret.clone()));
                }
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
                Clause::Modules(branch) => self.modules = Some(branch.clone()),
                Clause::Open(start, hours) => self.window = Some((start.clone(), hours.clone())),
                Clause::At(version) => self.version = *version,
                Clause::Allowing(percent) => self.allowing = Some(*percent),
            }
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
        let window = self.window.as_ref().map(|(start, hours)| {
            format!(
                "        disruption: {{ windows: [{{ start: \"{start}\", duration: {hours} }}] }}\n"
            )
        });
        let more = cni.chain(addons).chain(bucket);
        more.chain(gate).chain(window).collect()
    }

    /// The pools of control machines, and who makes them.
    fn control(&self) -> Vec<(String, &str, u32)> {
        let first = ("control".to_owned(), self.providers()[0], self.control);
        let others = self.control_places.iter();
        let others = others.map(|(name, count)| (format!("control-{name}"), name.as_str(), *count));
        let all = std::iter::once(first).chain(others);
        all.filter(|(_, _, count)| *count > 0).collect()
    }

    /// The pools of other machines that are made: what each is called, who makes it, and its size.
    fn sizes(&self) -> Vec<(&str, &str, String)> {
        let counted = |count: u32| (count > 0).then(|| format!("count: {count}"));
        let scaled = self
            .scaled
            .map(|(min, max)| format!("autoscaler: {{ min: {min}, max: {max} }}"));
        let first = self.providers()[0];
        let mut sizes = vec![
            ("compute", first, scaled.or_else(|| counted(self.compute))),
            ("door", first, counted(self.balancers)),
            ("side", first, counted(self.others)),
        ];
        let places = self.places.iter();
        sizes.extend(places.map(|(name, count)| (name.as_str(), name.as_str(), counted(*count))));
        let there = sizes.into_iter();
        there
            .filter_map(|(pool, provider, size)| Some((pool, provider, size?)))
            .collect()
    }

    /// The type of a provider, by its place among them.
    const fn kind(&self, at: usize) -> &'static str {
        match (self.sandboxed, self.clouds) {
            (true, _) => "sandbox",
            (false, true) => ["hetzner", "aws", "exoscale"][at % 3],
            (false, false) => "simulated",
        }
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

    /// The provider that answers for its name, where it has one.
    fn zones(&self) -> String {
        if self.named.is_none() {
            return String::new();
        }
        let (kind, secret) = match &self.zones {
            Some((kind, secret)) => (kind.as_str(), reference(Some(secret))),
            None => ("simulated", String::new()),
        };
        format!("    - name: zones\n      providerType: {kind}\n{secret}")
    }

    /// Its load balancers: each has an entrance to workloads, and one of them that to the API.
    fn balancers(&self, cluster: &Name, compute: &[&str]) -> String {
        let web = match compute {
            [] => "control".to_owned(),
            pools => pools.join(", "),
        };
        let control = control_pools(&self.control());
        let balancer = |name: &str, pool: &str, roles: &[&str]| {
            let roles = roles.join(", ");
            format!(
                "      - name: {name}
        targetedK8s: {cluster}
        roles: [{roles}]
        pools: [{pool}]
"
            )
        };
        let usual = || format!("{cluster}-lb");
        let first = self.called.as_ref().map_or_else(usual, Name::to_string);
        let dns = self.named.as_ref().map_or(String::new(), |name| {
            format!("        dns: {{ dnsZone: example.org, provider: zones, hostname: {name} }}\n")
        });
        let mut declared = String::new();
        let mut used = Vec::new();
        if self.balancers > 0 {
            let roles = entrances(self.api == Entrance::First, "web");
            declared += &(balancer(&first, "door", &roles) + &dns);
            used.extend(roles);
        }
        if self.others > 0 {
            let roles = entrances(self.api == Entrance::Other, "shop");
            declared += &balancer(&format!("{cluster}-alt"), "side", &roles);
            used.extend(roles);
        }
        if declared.is_empty() {
            return declared;
        }
        let role = |name: &&str| {
            let (port, target, pools) = match *name {
                "api" => (6443, 6443, control.as_str()),
                "web" => (443, 30443, web.as_str()),
                _ => (8443, 30444, web.as_str()),
            };
            format!(
                "      - {{ name: {name}, protocol: tcp, port: {port}, targetPort: {target}, targetPools: [{pools}] }}\n"
            )
        };
        let roles: String = used.iter().map(role).collect();
        format!("  loadBalancers:\n    roles:\n{roles}    clusters:\n{declared}")
    }

    /// The pools, and which of them compute.
    fn pools(&self) -> (String, Vec<&str>) {
        let mut pools = "    dynamic:\n".to_owned();
        let mut compute = Vec::new();
        for (pool, provider, count) in self.control() {
            let made = (provider, self.server_type(false));
            let size = format!("count: {count}");
            pools.push_str(&dynamic_pool(&pool, made, &size, self.replacing));
        }
        for (pool, provider, size) in self.sizes() {
            let computes = !matches!(pool, "door" | "side");
            let made = (provider, self.server_type(computes));
            pools.push_str(&dynamic_pool(pool, made, &size, self.replacing));
            if computes {
                compute.push(pool);
            }
        }
        if !self.hosts.is_empty() {
            pools.push_str("    static:\n      - name: attic\n        nodes:\n");
            for host in &self.hosts {
                pools.push_str(&format!("          - endpoint: {host}\n"));
                if let Some(secret) = &self.keys {
                    pools.push_str(&format!("            secretRef: {{ name: {secret} }}\n"));
                }
            }
            compute.push("attic");
        }
        (pools, compute)
    }

    /// The text of the manifest.
    pub(super) fn text(&self, name: &Name) -> String {
        let (pools, compute) = self.pools();
        let account = reference(self.account.as_ref());
        let modules = self.modules.as_ref().map_or(String::new(), |branch| {
            format!("      templates: {{ repository: {MODULES}, commit: {branch} }}\n")
        });
        let provider = |(at, name): (usize, &str)| {
            let kind = self.kind(at);
            format!("    - name: {name}\n      providerType: {kind}\n{account}{modules}")
        };
        let providers = self.providers().into_iter().enumerate();
        let providers: String = providers.map(provider).collect();
        let zones = self.zones();
        let proxy = self.proxy();
        let more = self.besides();
        let balancers = self.balancers(name, &compute);
        format!(
            "apiVersion: slipway.dev/v1
kind: InputManifest
metadata:
  name: {name}
spec:
  providers:
{providers}{zones}  nodePools:
{pools}  kubernetes:
    clusters:
      - name: {name}
        version: {}
        network: 10.8.0.0/24
        pools:
          control: [{}]
          compute: [{}]
{more}{proxy}{balancers}",
            self.version,
            control_pools(&self.control()),
            compute.join(", ")
        )
    }
}

/// The secret that opens the account with a provider, where there is one.
fn reference(secret: Option<&Name>) -> String {
    secret.map_or(String::new(), |secret| {
        format!("      secretRef: {{ name: {secret} }}\n")
    })
}

/// So many machines come from one provider, whatever comes from the others.
fn place(places: &mut Vec<(Name, u32)>, provider: &Name, count: u32) {
    match places.iter_mut().find(|(known, _)| known == provider) {
        Some((_, known)) => *known = count,
        None => places.push((provider.clone(), count)),
    }
}

/// What pools of control machines are called.
fn control_pools(control: &[(String, &str, u32)]) -> String {
    let names: Vec<_> = control.iter().map(|(name, _, _)| name.as_str()).collect();
    names.join(", ")
}

/// The entrances of a load balancer, which has one of its own.
fn entrances(api: bool, own: &'static str) -> Vec<&'static str> {
    if api { vec!["api", own] } else { vec![own] }
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
