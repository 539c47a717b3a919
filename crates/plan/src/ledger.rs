//! The disruption ledger: who is out of service because of us, and whether one more may be.
//!
//! The planner asks before it takes a machine out of service, and the store asks again in the
//! transaction that commits, when it knows what everybody else has done meanwhile. Both get
//! the same answer in the same words.

use crate::held::{Reason, Scope};
use model::cluster::Machine;
use model::disruption::Disruption;
use model::id::MachineId;
use model::name::Name;

/// One row of the disruption ledger: a machine that is out of service because of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Which machine.
    pub machine: MachineId,
    /// What people call it.
    pub name: Name,
    /// The pool it belongs to.
    pub pool: Name,
    /// The group its pool belongs to.
    pub group: Option<Name>,
}

impl Slot {
    /// The row that a machine would have.
    pub fn of(machine: &Machine, budgets: &Disruption) -> Self {
        Self {
            machine: machine.id,
            name: machine.name.clone(),
            pool: machine.pool.clone(),
            group: budgets.group(&machine.pool).cloned(),
        }
    }
}

/// One row of the ledger that another cluster of the project holds, in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Which cluster.
    pub cluster: Name,
    /// Which of its machines.
    pub machine: Name,
    /// The group that the machine belongs to.
    pub group: Name,
}

impl std::fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of cluster {}", self.machine, self.cluster)
    }
}

/// Why no row can be drawn for `slot`: which budget is spent, and by whom.
///
/// `taken` are the machines of the cluster that are out of service already; the machine
/// itself may be among them and does not count.
pub fn spent(
    budgets: &Disruption,
    taken: &[Slot],
    elsewhere: &[Elsewhere],
    slot: &Slot,
) -> Option<Reason> {
    let others = || taken.iter().filter(|other| other.machine != slot.machine);
    let of_cluster = || {
        let by = others().map(By::Here);
        refused(Scope::Cluster, budgets.unavailable, by)
    };
    let of_pool = || {
        let budget = budgets.of_pool(&slot.pool)?;
        let by = others().filter(|other| other.pool == slot.pool);
        refused(Scope::Pool(slot.pool.clone()), budget, by.map(By::Here))
    };
    let of_group = || {
        let group = slot.group.as_ref()?;
        let budget = *budgets.groups.get(group)?;
        let here = others().filter(|other| other.group.as_ref() == Some(group));
        let there = elsewhere.iter().filter(|other| other.group == *group);
        let by = here.map(By::Here).chain(there.map(By::Elsewhere));
        refused(Scope::Group(group.clone()), budget, by)
    };
    of_cluster().or_else(of_pool).or_else(of_group)
}

/// Somebody who is out of service.
enum By<'a> {
    Here(&'a Slot),
    Elsewhere(&'a Elsewhere),
}

/// The refusal, where as many are out of service as may be.
fn refused<'a>(scope: Scope, budget: u32, mut by: impl Iterator<Item = By<'a>>) -> Option<Reason> {
    let first = by.next()?;
    let unavailable = u32::try_from(by.count()).map_or(u32::MAX, |rest| rest.saturating_add(1));
    (unavailable >= budget).then(|| Reason::Budget {
        scope,
        by: match first {
            By::Here(slot) => slot.name.to_string(),
            By::Elsewhere(row) => row.to_string(),
        },
        unavailable,
        budget,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::machine;
    use expect_test::{Expect, expect};

    /// Who is out of service here and elsewhere, who would be next, and what is said to that.
    #[track_caller]
    fn check(unavailable: u32, taken: &str, there: &[&str], next: &str, expected: &Expect) {
        let budgets: Disruption = serde_json::from_str(
            r#"{"pools":{"compute":{"unavailable":2,"group":"rack"},"attic":{"group":"rack"}},"groups":{"rack":3}}"#,
        )
        .unwrap();
        let budgets = Disruption {
            unavailable,
            ..budgets
        };
        let slot = |name: &str| Slot::of(&machine(name), &budgets);
        let taken: Vec<_> = taken.split_whitespace().map(slot).collect();
        let there: Vec<_> = there
            .iter()
            .map(|name| Elsewhere {
                cluster: "west".parse().unwrap(),
                machine: name.parse().unwrap(),
                group: "rack".parse().unwrap(),
            })
            .collect();
        let reason = spent(&budgets, &taken, &there, &slot(next));
        let told = reason.map_or("free".to_owned(), |reason| reason.to_string());
        expected.assert_eq(&told);
    }

    #[test]
    fn the_budget_that_is_spent_is_named_with_who_spent_it() {
        check(1, "", &[], "w1", &expect!["free"]);
        check(1, "w1", &[], "w1", &expect!["free"]);
        check(
            1,
            "w2",
            &[],
            "w1",
            &expect!["1 of 1 already out of service (w2)"],
        );
        check(
            9,
            "w2 w3",
            &[],
            "w1",
            &expect!["2 of 2 of pool compute already out of service (w2)"],
        );
        check(9, "w2 w3", &[], "s1", &expect!["free"]);
        check(
            9,
            "w2 w3 s2",
            &[],
            "s1",
            &expect!["3 of 3 of group rack already out of service (w2)"],
        );
        check(9, "c1 c2 c3 c4", &[], "s1", &expect!["free"]);
        check(9, "w2", &["w8"], "s1", &expect!["free"]);
        check(
            9,
            "",
            &["w7", "w8", "w9"],
            "s1",
            &expect!["3 of 3 of group rack already out of service (w7 of cluster west)"],
        );
        check(9, "", &["w7", "w8", "w9"], "c1", &expect!["free"]);
    }
}
