//! What is declared in a world: pools, budgets and windows, a load balancer, a proxy, playbooks, and
//! what happens to machines while they live.

use model::admit::admit;
use model::cluster::Desired;
use model::manifest::Manifest;
use model::name::Name;
use model::source;
use model::time::Timestamp;
use plan::{Known, expand};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// Given hosts: the name of their pool, and how many of them.
pub(crate) type Hosts = (&'static str, u8);

pub(crate) fn hosts() -> impl Strategy<Value = Hosts> {
    (prop_oneof![Just("attic"), Just("cellar")], 0..3_u8)
}

/// How many machines may be out of service at once, and when.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) cluster: u32,
    pub(crate) pool: Option<u32>,
    pub(crate) group: u32,
    /// The minute of the day, and for how long; every day.
    pub(crate) window: Option<(u32, u32)>,
}

pub(crate) fn rules() -> impl Strategy<Value = Rules> {
    (
        1..4_u32,
        prop::option::of(1..3_u32),
        1..4_u32,
        prop::option::of((0..1_440_u32, 10..120_u32)),
    )
        .prop_map(|(cluster, pool, group, window)| Rules {
            cluster,
            pool,
            group,
            window,
        })
}

/// How machines are made, and what becomes of those that do not serve.
#[derive(Debug, Clone)]
pub(crate) struct Upkeep {
    /// The types of control machines, of workers, and of those of the load balancer.
    pub(crate) kinds: [&'static str; 3],
    /// How many of another kind come at once.
    pub(crate) surge: u32,
    /// After how many minutes one that does not serve is replaced; nothing where people see to it.
    pub(crate) repair: Option<u32>,
    /// Whether the workers are scaled.
    pub(crate) scaled: bool,
}

/// The most workers that a pool is scaled to.
pub(crate) const SCALED_MAX: u32 = 6;

impl Upkeep {
    /// As the manifest writes it: each pool's own words, how many workers there are, and the
    /// cluster's.
    fn written(&self, compute: u32) -> ([String; 3], String, String) {
        let surge = self.surge;
        let made =
            |kind| format!("serverType: {kind}, image: debian-12, replace: true, surge: {surge}");
        let size = if self.scaled {
            format!("autoscaler: {{min: 1, max: {SCALED_MAX}}}")
        } else {
            format!("count: {compute}")
        };
        let repair = match self.repair {
            Some(after) => format!("repair: {{after: {after}m}}"),
            None => "repair: {mode: off}".to_owned(),
        };
        (self.kinds.map(made), size, repair)
    }
}

pub(crate) fn upkeep() -> impl Strategy<Value = Upkeep> {
    let kind = || prop_oneof![3 => Just("lite"), 1 => Just("systemd")];
    (
        [kind(), kind(), kind()],
        1..4_u32,
        prop::option::of(1..30_u32),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(kinds, surge, repair, scaled)| Upkeep {
            kinds,
            surge,
            repair,
            scaled,
        })
}

/// What stands before a cluster, and how its hosts reach the world.
#[derive(Debug, Clone)]
pub(crate) struct Front {
    /// Whether machines are real hosts, or those of the simulated world.
    pub(crate) real: bool,
    /// Whether a cloud lends the control machines.
    pub(crate) cloud: bool,
    /// How many machines its load balancer has, if it has one, and where.
    pub(crate) door: Option<(u32, &'static str)>,
    /// What its load balancer is called, and whether that passes the API on.
    pub(crate) called: (&'static str, bool),
    pub(crate) port: u16,
    pub(crate) proxy: bool,
    /// What is played on nodes before they join, and when they have.
    pub(crate) playbooks: [Option<u8>; 2],
}

impl Front {
    /// As the manifest writes it: the provider, the pool, the proxy and the playbooks, the load
    /// balancer.
    fn written(&self, made: &str) -> [String; 4] {
        let via = if self.real { "sandbox" } else { "simulated" };
        let proxy = if self.proxy {
            "installationProxy: {mode: on, endpoint: 'http://proxy.example.org'}"
        } else {
            "installationProxy: {mode: off}"
        };
        let playbook = |name: &str, text: Option<u8>| {
            let text = text.map(|text| format!("{{name: {name}, text: '- {{hosts: n{text}}}'}}"));
            text.unwrap_or_default()
        };
        let [before, after] = self.playbooks;
        let (before, after) = (playbook("before", before), playbook("after", after));
        let playbooks = format!("{{beforeJoining: [{before}], afterJoining: [{after}]}}");
        let proxy = format!("{proxy}\n        playbooks: {playbooks}");
        let mut written = [via.to_owned(), String::new(), proxy, String::new()];
        if let Some((count, region)) = self.door {
            let (port, (name, api)) = (self.port, self.called);
            let api = if api { ", api" } else { "" };
            written[1] = format!(
                "- {{name: door, providerSpec: {{name: lab, region: {region}}}, count: {count}, {made}}}"
            );
            written[3] = format!(
                "
  loadBalancers:
    roles:
      - {{name: web, protocol: tcp, port: {port}, targetPort: 30443, targetPools: [muscle]}}
      - {{name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [brain]}}
    clusters: [{{name: {name}, targetedK8s: edge, pools: [door], roles: [web{api}]}}]"
            );
        }
        written
    }
}

pub(crate) fn front() -> impl Strategy<Value = Front> {
    let region = prop_oneof![3 => Just("n"), 1 => Just("m")];
    let door = prop::option::of((1..4_u32, region));
    let name = prop_oneof![3 => Just("front"), 1 => Just("back")];
    let called = (name, prop::bool::weighted(0.7));
    let playbook = || prop::option::of(1..3_u8);
    let playbooks = [playbook(), playbook()];
    (door, called, 1..3_u16, any::<bool>(), playbooks).prop_map(
        |(door, called, port, proxy, playbooks)| Front {
            real: true,
            cloud: false,
            door,
            called,
            port,
            proxy,
            playbooks,
        },
    )
}

/// What is declared in all.
pub(crate) struct Declared<'a> {
    pub(crate) control: u32,
    pub(crate) compute: u32,
    pub(crate) hosts: Hosts,
    pub(crate) minor: u16,
    /// Whether there are hardly more addresses than machines.
    pub(crate) tight: bool,
    pub(crate) rules: &'a Rules,
    pub(crate) front: &'a Front,
    pub(crate) upkeep: &'a Upkeep,
}

/// Given hosts as the manifest writes them: their pool, and where it is named.
fn given((pool, count): Hosts, real: bool) -> (String, String) {
    let block = if real { "192.168.3" } else { "203.0.113" };
    let nodes: Vec<_> = (0..count)
        .map(|n| format!("{{endpoint: {block}.{n}, secretRef: {{name: keys}}}}"))
        .collect();
    if nodes.is_empty() {
        return (String::new(), String::new());
    }
    let nodes = nodes.join(", ");
    let fixed =
        format!("static: [{{name: {pool}, nodes: [{nodes}], disruption: {{group: rack}}}}]");
    (fixed, format!(", {pool}"))
}

pub(crate) fn manifest(declared: &Declared<'_>) -> Manifest {
    let Declared {
        control,
        compute,
        hosts,
        minor,
        tight,
        rules,
        front,
        upkeep,
    } = *declared;
    let (fixed, name) = given(hosts, front.real);
    let ([brain, muscle, made], size, repair) = upkeep.written(compute);
    let [via, door, proxy, balancers] = front.written(&made);
    let lender = if front.cloud { "sky" } else { "lab" };
    // All that a cloud lends may move at once.
    let moves = front.cloud && upkeep.surge == 3;
    let region = if moves { "m" } else { "n" };
    let network = if tight { 28 } else { 24 };
    let own = rules
        .pool
        .map(|most| format!("unavailable: {most}, "))
        .unwrap_or_default();
    let window = rules.window.map(|(start, open)| {
        format!(
            "{{start: '{:02}:{:02}', duration: {open}m}}",
            start / 60,
            start % 60
        )
    });
    let windows = window.unwrap_or_default();
    let Rules { cluster, group, .. } = rules;
    // Some have gates, too; which of them do follows from what else is so of them.
    let gates = match cluster {
        3 => "upgradeGates: [{name: smoke, command: ['true']}]",
        _ => "upgradeGates: []",
    };
    // And some are made from modules of a branch.
    let modules = match group {
        2 if via == "simulated" => ", templates: {repository: git.example.org/m, commit: main}",
        _ => "",
    };
    let text = format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers:
    - {{name: lab, providerType: {via}, secretRef: {{name: account}}{modules}}}
    - {{name: sky, providerType: hetzner, secretRef: {{name: account}}}}
  disruption: {{groups: [{{name: rack, unavailable: {group}}}]}}
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: {lender}, region: {region}}}, count: {control}, {brain}}}
      - {{name: muscle, providerSpec: {{name: {lender}, region: {region}}}, {size}, {muscle}, disruption: {{{own}group: rack}}}}
      {door}
    {fixed}
  kubernetes:
    clusters:
      - name: edge
        version: v1.{minor}.0
        network: 10.8.0.0/{network}
        {repair}
        disruption: {{unavailable: {cluster}, windows: [{windows}]}}
        pools: {{control: [brain], compute: [muscle{name}]}}
        {gates}
        {proxy}{balancers}
"
    );
    read(text)
}

/// How many texts are remembered: all that the promises of one world are about.
const LATELY: usize = 4;

thread_local! {
    /// Texts that were read lately, and what they say, the oldest first.
    static READ: RefCell<VecDeque<(String, Manifest)>> = const { RefCell::new(VecDeque::new()) };
}

/// What a manifest says. Every promise of a world is about the same few texts, and reading one takes
/// longer than several plans.
fn read(text: String) -> Manifest {
    READ.with_borrow_mut(|lately| {
        if let Some((_, known)) = lately.iter().find(|(known, _)| *known == text) {
            return known.clone();
        }
        let manifest = admit(&source::parse(&text).unwrap()).unwrap();
        lately.push_back((text, manifest.clone()));
        if lately.len() > LATELY {
            lately.pop_front();
        }
        manifest
    })
}

/// What a manifest makes of a cluster, or nothing where it is refused: some edits are. Asked twice
/// it says the same twice.
pub(crate) fn grown(
    previous: Option<Known<'_>>,
    manifest: &Manifest,
    now: Timestamp,
) -> Option<Desired> {
    let known: Vec<_> = previous.into_iter().collect();
    let project = Name::default_project();
    let expanded = || expand(&project, manifest, &known, &BTreeMap::new(), now);
    let expansions = expanded();
    assert_eq!(expansions, expanded(), "what is expanded twice is the same");
    Some(expansions.ok()?.remove(0).desired)
}
