//! What becomes of a manifest: names, addresses, and who has to leave.

use super::{Change, Expansion, Known, expand};
use expect_test::{Expect, expect};
use model::admit::admit;
use model::cluster::Desired;
use model::intent::Wish;
use model::manifest::{Manifest, Pool};
use model::name::Name;
use model::observed::{MachineFact, Observed, Seen};
use model::source;
use model::task::{Action, Open, State};
use model::time::Timestamp;
use model::version::Version;
use std::collections::BTreeMap;
use std::fmt::Write as _;

mod balancers;
mod declared;
mod disks;
mod lived_with;
mod metal;
mod named;
mod scaled;
mod subnets;

const NOW: Timestamp = Timestamp::from_millis(5);

fn manifest(control: u32, compute: u32, version: &str, hosts: &[&str]) -> Manifest {
    let nodes: Vec<_> = hosts
        .iter()
        .map(|host| format!("{{endpoint: {host}}}"))
        .collect();
    let (fixed, pools) = if hosts.is_empty() {
        (String::new(), "compute: [muscle]")
    } else {
        (
            format!("static: [{{name: attic, nodes: [{}]}}]", nodes.join(", ")),
            "compute: [muscle, attic]",
        )
    };
    let text = format!(
        "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: {control}, serverType: small, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: n}}, count: {compute}, serverType: small, image: debian-12}}
    {fixed}
  kubernetes:
    clusters:
      - {{name: edge, version: {version}, network: 10.8.0.0/24, pools: {{control: [brain], {pools}}}}}
"
    );
    admitted(&text)
}

fn admitted(text: &str) -> Manifest {
    admit(&source::parse(text).unwrap()).unwrap()
}

/// Expands one generation after the other and draws the last.
struct History {
    desired: Option<Desired>,
    observed: Observed,
    wishes: Vec<model::intent::Intent>,
    open: Vec<Open>,
}

impl History {
    fn new() -> Self {
        Self {
            desired: None,
            observed: Observed::default(),
            wishes: Vec::new(),
            open: Vec::new(),
        }
    }

    fn apply(mut self, manifest: &Manifest) -> Self {
        self.desired = Some(self.next(manifest).desired);
        self
    }

    /// What comes of the next manifest.
    fn next(&self, manifest: &Manifest) -> Expansion {
        let known = self.desired.iter().map(|desired| Known {
            desired,
            observed: &self.observed,
            intents: &self.wishes,
            open: &self.open,
        });
        let known: Vec<_> = known.collect();
        let project = Name::default_project();
        let expanded = expand(&project, manifest, &known, &BTreeMap::new(), NOW);
        expanded.expect("must expand").remove(0)
    }

    fn gone(mut self, name: &str) -> Self {
        let id = self
            .desired
            .as_ref()
            .unwrap()
            .machine_named(name)
            .unwrap()
            .id;
        let seen = Seen {
            machine: Some((MachineFact::Absent, NOW)),
            node: None,
            host: None,
            certificates: None,
            names: None,
            port: None,
        };
        self.observed.machines.insert(id, seen);
        self
    }

    /// Every machine has joined.
    fn joined(mut self) -> Self {
        let desired = self.desired.clone().unwrap();
        let version = desired.version;
        for machine in &desired.machines {
            let care = model::care::Care::default();
            let join = Action::Join {
                version,
                care,
                gated: false,
            };
            crate::predict(&mut self.observed, machine, &join, NOW);
        }
        self
    }

    /// Its first machine was upgraded.
    fn upgraded(mut self, version: &str) -> Self {
        let machine = &self.desired.as_ref().unwrap().machines[0];
        let version = version.parse().unwrap();
        let upgrade = Action::Upgrade { version };
        crate::predict(&mut self.observed, machine, &upgrade, NOW);
        self
    }

    /// An attempt has begun on its first machine.
    fn begun(mut self, action: impl FnOnce(Version) -> Action, state: State) -> Self {
        let desired = self.desired.as_ref().unwrap();
        let machine = &desired.machines[0];
        self.open.push(Open {
            id: model::id::TaskId::derive(crate::fixture::origin("t", 0)),
            machine: machine.id,
            action: action(desired.version),
            origin: machine.origin.clone(),
            through: Vec::new(),
            state,
            attempts: 1,
            not_before: NOW,
            error: None,
            corrected: false,
        });
        self
    }

    fn wish(mut self, wish: impl FnOnce(&Desired) -> Wish) -> Self {
        let desired = self.desired.as_ref().unwrap();
        self.wishes.push(model::intent::Intent {
            id: model::id::IntentId::derive(crate::fixture::origin("i", 0)),
            project: Name::default_project(),
            cluster: desired.name.clone(),
            wish: wish(desired),
            author: "ann".to_owned(),
            reason: String::new(),
            created_at: NOW,
            expires_at: None,
        });
        self
    }

    /// What is wrong with the next manifest.
    #[track_caller]
    fn refuse(&self, manifest: &Manifest, expected: &Expect) {
        let known = [Known {
            desired: self.desired.as_ref().unwrap(),
            observed: &self.observed,
            intents: &self.wishes,
            open: &self.open,
        }];
        let project = Name::default_project();
        let faults = expand(&project, manifest, &known, &BTreeMap::new(), NOW);
        let faults = faults.expect_err("must be refused");
        let told: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
        expected.assert_eq(&told);
    }

    #[track_caller]
    fn check(self, expected: &Expect) {
        let desired = self.desired.unwrap();
        let mut told = format!("generation {} at {}\n", desired.generation, desired.version);
        for machine in &desired.machines {
            writeln!(
                told,
                "  {} {} life {}",
                machine.name, machine.address, machine.incarnation
            )
            .unwrap();
        }
        for machine in &desired.leaving {
            writeln!(told, "  {} {} leaves", machine.name, machine.address).unwrap();
        }
        expected.assert_eq(&told);
    }
}

#[test]
fn machines_get_names_and_addresses_in_order() {
    History::new()
        .apply(&manifest(1, 2, "1.34.0", &["203.0.113.9"]))
        .check(&expect![[r#"
            generation 1 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-attic-01 10.8.0.4 life 0
              edge-muscle-01 10.8.0.2 life 0
              edge-muscle-02 10.8.0.3 life 1
        "#]]);
}

#[test]
fn the_same_manifest_makes_no_new_generation() {
    let same = manifest(1, 2, "1.34.0", &[]);
    History::new().apply(&same).apply(&same).check(&expect![[r#"
        generation 1 at v1.34.0
          edge-brain-01 10.8.0.1 life 0
          edge-muscle-01 10.8.0.2 life 0
          edge-muscle-02 10.8.0.3 life 1
    "#]]);
}

#[test]
fn the_highest_ordinals_leave_and_keep_their_addresses() {
    History::new()
        .apply(&manifest(1, 3, "1.34.0", &[]))
        .apply(&manifest(1, 1, "1.34.0", &[]))
        .apply(&manifest(1, 2, "1.34.0", &[]))
        .check(&expect![[r#"
            generation 3 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-muscle-01 10.8.0.2 life 0
              edge-muscle-04 10.8.0.5 life 3
              edge-muscle-02 10.8.0.3 leaves
              edge-muscle-03 10.8.0.4 leaves
        "#]]);
}

#[test]
fn a_name_used_again_is_another_life() {
    History::new()
        .apply(&manifest(1, 2, "1.34.0", &[]))
        .apply(&manifest(1, 1, "1.34.0", &[]))
        .gone("edge-muscle-02")
        .apply(&manifest(1, 2, "1.34.0", &[]))
        .check(&expect![[r#"
            generation 3 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-muscle-01 10.8.0.2 life 0
              edge-muscle-02 10.8.0.3 life 2
        "#]]);
}

#[test]
fn a_replaced_machine_leaves_and_another_comes() {
    History::new()
        .apply(&manifest(1, 2, "1.34.0", &[]))
        .wish(|desired| Wish::Replace {
            machine: desired.machine_named("edge-muscle-01").unwrap().id,
        })
        .apply(&manifest(1, 2, "1.34.0", &[]))
        .check(&expect![[r#"
            generation 2 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-muscle-02 10.8.0.3 life 1
              edge-muscle-03 10.8.0.4 life 2
              edge-muscle-01 10.8.0.2 leaves
        "#]]);
}

#[test]
fn a_wish_to_scale_ends_when_the_manifest_says_another_number() {
    let wished = || {
        History::new()
            .apply(&manifest(1, 2, "1.34.0", &[]))
            .wish(|_| Wish::Scale {
                pool: "muscle".parse().unwrap(),
                count: 3,
                was: 2,
            })
    };
    wished()
        .apply(&manifest(1, 2, "1.34.0", &[]))
        .check(&expect![[r#"
            generation 2 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-muscle-01 10.8.0.2 life 0
              edge-muscle-02 10.8.0.3 life 1
              edge-muscle-03 10.8.0.4 life 2
        "#]]);
    wished()
        .apply(&manifest(1, 1, "1.34.0", &[]))
        .check(&expect![[r#"
            generation 2 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-muscle-01 10.8.0.2 life 0
              edge-muscle-02 10.8.0.3 leaves
        "#]]);
}

#[test]
fn a_given_host_that_is_declared_no_more_leaves() {
    History::new()
        .apply(&manifest(1, 1, "1.34.0", &["203.0.113.9", "203.0.113.10"]))
        .apply(&manifest(1, 1, "1.34.0", &["203.0.113.10", "203.0.113.11"]))
        .check(&expect![[r#"
            generation 2 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-attic-02 10.8.0.4 life 1
              edge-attic-03 10.8.0.5 life 2
              edge-muscle-01 10.8.0.2 life 0
              edge-attic-01 10.8.0.3 leaves
        "#]]);
}

#[test]
fn what_cannot_change_is_refused() {
    let on = |version: &str| {
        let first = History::new().apply(&manifest(1, 1, version, &[]));
        first.joined()
    };
    on("1.35.0").refuse(&manifest(1, 1, "1.34.0", &[]), &expect![[r#"
        spec.kubernetes.clusters[0].version: found v1.34.0, allowed: v1.35.0 or newer, which nodes run; Kubernetes cannot be downgraded
    "#]]);
    let mut moved = manifest(1, 1, "1.34.0", &[]);
    moved.clusters[0].network = "10.9.0.0/24".parse().unwrap();
    on("1.34.0").refuse(&moved, &expect![[r#"
        spec.kubernetes.clusters[0].network: found 10.9.0.0/24, allowed: 10.8.0.0/24, the network the cluster was made with
    "#]]);
}

#[test]
fn a_version_that_is_far_ahead_is_reached_by_stepping_stones() {
    let at = |version: &str| manifest(1, 1, version, &[]);
    let stone = |history: &History| {
        let stone = history.desired.as_ref().unwrap().stone;
        stone.map_or(String::new(), |stone| stone.to_string())
    };
    let far = || {
        History::new()
            .apply(&at("1.33.0"))
            .joined()
            .apply(&at("1.36.0"))
    };
    assert_eq!(stone(&far()), "v1.34.4");
    assert_eq!(far().next(&at("1.36.0")).change, Change::Unchanged);
    assert_eq!(stone(&far().apply(&at("1.34.2"))), "");
    assert_eq!(stone(&far().apply(&at("1.33.0"))), "");
    // Halfway.
    let halfway = || far().upgraded("1.34.4");
    assert_eq!(stone(&halfway().apply(&at("1.36.3"))), "v1.34.4");
    assert_eq!(stone(&halfway().apply(&at("1.35.0"))), "v1.34.4");
    assert_eq!(stone(&halfway().apply(&at("1.34.4"))), "");
    halfway().refuse(&at("1.34.3"), &expect![[r#"
        spec.kubernetes.clusters[0].version: found v1.34.3, allowed: v1.34.4 or newer, which nodes run; Kubernetes cannot be downgraded
    "#]]);
    let begun = far().begun(
        |_| Action::Upgrade {
            version: "1.34.4".parse().unwrap(),
        },
        State::Stuck,
    );
    begun.refuse(&at("1.34.3"), &expect![[r#"
        spec.kubernetes.clusters[0].version: found v1.34.3, allowed: v1.34.4 or newer, to which a node is being brought; Kubernetes cannot be downgraded
    "#]]);
    // Nobody is there who could be too far behind.
    assert_eq!(
        stone(&History::new().apply(&at("1.33.0")).apply(&at("1.36.0"))),
        ""
    );
}

#[test]
fn a_version_that_no_node_came_to_run_can_be_taken_back() {
    let begun = |action: fn(Version) -> Action, state| {
        let first = History::new().apply(&manifest(1, 1, "1.35.0", &[]));
        first.begun(action, state)
    };
    let init = |version| Action::Init {
        version,
        network: "10.8.0.0/24".parse().unwrap(),
        care: model::care::Care::default(),
    };
    let before = &manifest(1, 1, "1.34.0", &[]);
    begun(init, State::Stuck).next(before);
    let may = expect![[r#"
        spec.kubernetes.clusters[0].version: found v1.34.0, allowed: v1.35.0 or newer, to which a node is being brought; Kubernetes cannot be downgraded
    "#]];
    begun(init, State::Running).refuse(before, &may);
    begun(|version| Action::Upgrade { version }, State::Stuck).refuse(before, &may);
}

#[test]
fn a_cluster_that_is_declared_no_more_gets_a_tombstone() {
    let first = History::new().apply(&manifest(1, 1, "1.34.0", &[]));
    let desired = first.desired.as_ref().unwrap();
    let known = [Known {
        desired,
        observed: &first.observed,
        intents: &[],
        open: &[],
    }];
    let mut other = manifest(1, 1, "1.34.0", &[]);
    other.clusters.clear();
    let expanded = expand(
        &Name::default_project(),
        &other,
        &known,
        &BTreeMap::new(),
        NOW,
    )
    .unwrap();
    assert_eq!(expanded[0].change, Change::Removed);
    assert!(expanded[0].desired.tombstone && expanded[0].desired.machines.is_empty());
    assert_eq!(expanded[0].desired.leaving.len(), 2);
}

#[test]
fn a_machine_that_serves_keeps_its_type_and_one_that_does_not_is_made_anew() {
    let mut larger = manifest(1, 1, "1.34.0", &[]);
    if let Some(Pool::Dynamic(pool)) = larger.pools.get_mut(&"muscle".parse::<Name>().unwrap()) {
        pool.server_type = "large".to_owned();
    }
    let first = || History::new().apply(&manifest(1, 1, "1.34.0", &[]));
    first().apply(&larger).check(&expect![[r#"
        generation 2 at v1.34.0
          edge-brain-01 10.8.0.1 life 0
          edge-muscle-02 10.8.0.3 life 1
          edge-muscle-01 10.8.0.2 leaves
    "#]]);
    first().joined().refuse(&larger, &expect![[r#"
        spec.nodePools.dynamic[1]: found serverType large, which was small when edge-muscle-01 was made; say replace: true to have the pool's machines replaced, one after the other
    "#]]);
}

#[test]
fn a_pool_of_two_clusters_that_should_be_of_another_type_is_one_fault() {
    let mut both = manifest(1, 1, "1.34.0", &[]);
    let mut second = both.clusters[0].clone();
    second.name = "west".parse().unwrap();
    second.network = "10.9.0.0/24".parse().unwrap();
    both.clusters.push(second);
    let project = Name::default_project();
    let living = expand(&project, &both, &[], &BTreeMap::new(), NOW).unwrap();
    let histories: Vec<_> = living
        .into_iter()
        .map(|expansion| {
            let mut history = History::new();
            history.desired = Some(expansion.desired);
            history.joined()
        })
        .collect();
    let known = histories.iter().map(|history| Known {
        desired: history.desired.as_ref().unwrap(),
        observed: &history.observed,
        intents: &[],
        open: &[],
    });
    let known: Vec<_> = known.collect();
    if let Some(Pool::Dynamic(pool)) = both.pools.get_mut(&"muscle".parse::<Name>().unwrap()) {
        pool.server_type = "large".to_owned();
    }
    let faults = expand(&project, &both, &known, &BTreeMap::new(), NOW).unwrap_err();
    let told: String = faults.iter().map(|fault| format!("{fault}\n")).collect();
    expect![[r#"
        spec.nodePools.dynamic[1]: found serverType large, which was small when edge-muscle-01 was made; say replace: true to have the pool's machines replaced, one after the other
    "#]].assert_eq(&told);
}

#[test]
fn a_network_without_a_free_address_is_a_fault_and_not_a_strange_address() {
    let mut small = manifest(1, 4, "1.34.0", &[]);
    small.clusters[0].network = "10.8.0.0/29".parse().unwrap();
    let wished = History::new().apply(&small).wish(|_| Wish::Scale {
        pool: "muscle".parse().unwrap(),
        count: 6,
        was: 4,
    });
    wished.refuse(&small, &expect![[r#"
        spec.kubernetes.clusters[0].network: found 10.8.0.0/29 with 6 addresses, allowed: room for 7 machines; ask for fewer
    "#]]);
}

#[test]
fn a_given_host_that_is_declared_again_stays_who_it_is() {
    let both = manifest(1, 1, "1.34.0", &["203.0.113.9", "203.0.113.10"]);
    History::new()
        .apply(&both)
        .apply(&manifest(1, 1, "1.34.0", &["203.0.113.9"]))
        .apply(&both)
        .check(&expect![[r#"
            generation 3 at v1.34.0
              edge-brain-01 10.8.0.1 life 0
              edge-attic-01 10.8.0.3 life 0
              edge-attic-02 10.8.0.4 life 1
              edge-muscle-01 10.8.0.2 life 0
        "#]]);
}

#[test]
fn a_wrong_version_that_no_node_runs_can_be_taken_back() {
    History::new()
        .apply(&manifest(1, 1, "1.34.0", &[]))
        .joined()
        .apply(&manifest(1, 1, "1.34.99", &[]))
        .apply(&manifest(1, 1, "1.34.2", &[]))
        .check(&expect![[r#"
            generation 3 at v1.34.2
              edge-brain-01 10.8.0.1 life 0
              edge-muscle-01 10.8.0.2 life 0
        "#]]);
}

#[test]
fn the_only_control_machine_cannot_move_to_another_pool() {
    let on = |pool: &str| {
        let text = format!(
            "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  nodePools:
    static: [{{name: {pool}, nodes: [{{endpoint: 203.0.113.9}}]}}]
  kubernetes:
    clusters: [{{name: edge, version: v1.34.0, network: 10.8.0.0/24, pools: {{control: [{pool}]}}}}]
"
        );
        admit(&source::parse(&text).unwrap()).unwrap()
    };
    let first = History::new().apply(&on("attic")).joined();
    first.refuse(&on("cellar"), &expect![[r#"
        spec.kubernetes.clusters[0].pools.control: the last control machine cannot move to another pool: nobody is left to take over; keep its pool, or add another control machine first
    "#]]);
}
