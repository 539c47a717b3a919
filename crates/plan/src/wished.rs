//! Sizes that pools have because somebody wished so: the manifest says another one.

use model::cluster::Desired;
use model::id::IntentId;
use model::intent::{Intent, Wish};
use model::name::Name;
use model::time::Timestamp;
use std::fmt;

/// A pool that a wish holds at another size than its manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wished<'a> {
    /// Which pool.
    pub pool: &'a Name,
    /// How many machines it has.
    pub count: u32,
    /// How many the manifest names.
    pub declared: u32,
    /// Which wish, and whose.
    by: (IntentId, &'a str),
}

/// As a fact: `pool muscle has 3 machines because ann wished so, and the manifest names 2`.
impl fmt::Display for Wished<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machines = if self.count == 1 {
            "machine"
        } else {
            "machines"
        };
        write!(
            f,
            "pool {} has {} {machines} because {} wished so, and the manifest names {}",
            self.pool, self.count, self.by.1, self.declared
        )
    }
}

impl Wished<'_> {
    /// What ends it.
    pub fn next_action(&self) -> String {
        format!(
            "it stays so until the manifest names another count, or `slipway intent withdraw {}`",
            self.by.0
        )
    }
}

/// The pools of a cluster that wishes hold at another size than the manifest named when they were wished.
/// Where it names no number but limits, every size between them is as declared.
pub fn wished<'a>(desired: &Desired, intents: &'a [Intent], now: Timestamp) -> Vec<Wished<'a>> {
    let holds = |pool: &Name, count: u32| {
        let machines = desired.machines.iter();
        let machines = machines.filter(|of| of.pool == *pool && of.balancer.is_none());
        u32::try_from(machines.count()) == Ok(count)
    };
    let counting = intents.iter().filter(|intent| intent.counts(now));
    let told = counting.filter_map(|intent| {
        let Wish::Scale { pool, count, was } = &intent.wish else {
            return None;
        };
        let other = *was != 0 && was != count && holds(pool, *count);
        other.then_some(Wished {
            pool,
            count: *count,
            declared: *was,
            by: (intent.id, &intent.author),
        })
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use expect_test::expect;

    #[test]
    fn a_size_that_was_wished_is_told_with_what_ends_it_and_only_while_it_holds() {
        let world = World::new("1.34.0", "c1 w1 w2 w3", "c1 w1 w2 w3");
        let view = world.view();
        let pool = &view.desired.machines[3].pool;
        let of = |count: u32, was: u32| {
            let pool = pool.clone();
            Intent {
                id: IntentId::derive(crate::fixture::origin("wish", 0)),
                project: view.desired.project.clone(),
                cluster: view.desired.name.clone(),
                wish: Wish::Scale { pool, count, was },
                author: "ann".to_owned(),
                reason: "a sale".to_owned(),
                created_at: view.now,
                expires_at: None,
            }
        };
        let intents = [of(3, 2)];
        let told = wished(view.desired, &intents, view.now);
        let told: Vec<_> = told
            .iter()
            .map(|of| format!("{of}\n{}", of.next_action()))
            .collect();
        expect![[r#"
            pool compute has 3 machines because ann wished so, and the manifest names 2
            it stays so until the manifest names another count, or `slipway intent withdraw intent-f8hqe22n6z32d`"#]].assert_eq(&told.join("\n"));
        for (count, was) in [(4, 2), (3, 0), (3, 3)] {
            assert_eq!(wished(view.desired, &[of(count, was)], view.now), []);
        }
        let mut ended = of(3, 2);
        ended.expires_at = Some(view.now);
        assert_eq!(wished(view.desired, &[ended], view.now), []);
    }
}
