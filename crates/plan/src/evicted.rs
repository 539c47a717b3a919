//! Pods that have to go because their nodes come to carry a taint: nobody is taken out of service by us,
//! and what runs there ends all the same.

use model::care::TaintEffect;
use model::cluster::Desired;
use model::name::Name;
use model::observed::{NodeFact, Observed};
use std::fmt;

/// Nodes of a pool that come to carry a taint which ends pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evicted<'a> {
    /// Which pool.
    pub pool: &'a Name,
    /// How many of its nodes are there.
    pub nodes: usize,
    /// The taint, as Kubernetes writes it.
    pub taint: String,
}

impl fmt::Display for Evicted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, nodes, taint } = self;
        let nodes = match nodes {
            1 => "1 node".to_owned(),
            many => format!("{many} nodes"),
        };
        write!(
            f,
            "pods that do not tolerate the taint {taint} are evicted from {nodes} of pool {pool} at once, \
             with regard to no budget and no window"
        )
    }
}

/// The taints that end pods and that nodes which are there do not carry yet.
pub fn evicted<'a>(before: &Desired, next: &'a Desired, observed: &Observed) -> Vec<Evicted<'a>> {
    let mut told = Vec::new();
    for (pool, marks) in &next.marks {
        let had = before.marks.get(pool);
        let nodes = next.machines.iter().filter(|machine| {
            let seen = observed.machines.get(&machine.id);
            let node = seen.and_then(|seen| seen.node.as_ref());
            machine.pool == *pool
                && node.is_some_and(|(node, _)| matches!(node, NodeFact::Joined { .. }))
        });
        let nodes = nodes.count();
        let new = marks.taints.iter().filter(|taint| {
            let carried = had.is_some_and(|had| had.taints.contains(taint));
            taint.effect == TaintEffect::NoExecute && !carried
        });
        told.extend(new.filter(|_| nodes > 0).map(|taint| {
            let value = Some(&taint.value).filter(|value| !value.is_empty());
            let value = value.map(|value| format!("={value}")).unwrap_or_default();
            Evicted {
                pool,
                nodes,
                taint: format!("{}{value}:NoExecute", taint.key),
            }
        }));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use expect_test::expect;
    use model::care::{Marks, Taint};

    #[test]
    fn a_taint_that_ends_pods_is_told_where_nodes_do_not_carry_it_yet() {
        let world = World::new("1.34.0", "c1 w1 w2 w3", "c1 w1 w2");
        let view = world.view();
        let pool = &view.desired.machines[1].pool;
        let with = |effect: TaintEffect| {
            let mut next = view.desired.clone();
            let taint = Taint {
                key: "only".to_owned(),
                effect,
                value: "gpu".to_owned(),
            };
            let marks = Marks {
                taints: vec![taint],
                ..Marks::default()
            };
            next.marks.insert(pool.clone(), marks);
            next
        };
        let told = |before: &Desired, next: &Desired| -> String {
            let told = evicted(before, next, view.observed);
            told.iter().map(ToString::to_string).collect()
        };
        let ends = with(TaintEffect::NoExecute);
        expect!["pods that do not tolerate the taint only=gpu:NoExecute are evicted from 2 nodes of pool compute at once, with regard to no budget and no window"].assert_eq(&told(view.desired, &ends));
        assert_eq!(told(&ends, &ends), "");
        assert_eq!(told(&ends, view.desired), "");
        assert_eq!(told(view.desired, &with(TaintEffect::NoSchedule)), "");
    }
}
