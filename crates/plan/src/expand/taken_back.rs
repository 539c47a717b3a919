//! Machines that were to leave, and stay because they are wanted again before anybody touched them.

use super::Known;
use super::growing::{Growing, Stand, made};
use model::cluster::{Machine, Origin};
use model::id::MachineId;
use model::observed::{MachineFact, NodeFact, Seen};
use model::task::{Kind, Open, State};
use std::collections::BTreeSet;

/// Those that should go, and still do all that they are there for: nobody has begun to take them out.
pub(super) fn untouched(known: &Known<'_>) -> BTreeSet<MachineId> {
    let begun = |machine: MachineId| {
        let mut open = known.open.iter().filter(|open| open.machine == machine);
        open.any(takes_out)
    };
    let leaving = known.desired.leaving.iter().map(|machine| machine.id);
    let serves = |id: &MachineId| known.observed.machines.get(id).is_some_and(serves);
    leaving.filter(|id| serves(id) && !begun(*id)).collect()
}

fn takes_out(open: &Open) -> bool {
    let kind = open.action.kind();
    let out = matches!(
        kind,
        Kind::Drain | Kind::Leave | Kind::Delete | Kind::Release
    );
    out && (open.state == State::Running || open.attempts > 0)
}

fn serves(seen: &Seen) -> bool {
    let balances = matches!(&seen.host, Some((host, _)) if host.balance.is_some());
    let node = matches!(
        seen.node,
        Some((
            NodeFact::Joined {
                ready: true,
                cordoned: false,
                ..
            },
            _
        ))
    );
    let lost = matches!(
        seen.machine,
        Some((
            MachineFact::Absent | MachineFact::Booting { .. } | MachineFact::Unreachable { .. },
            _
        ))
    );
    !lost && (node || balances)
}

impl Growing<'_> {
    /// Takes back as many machines of a pool as it lacks, lowest ordinal first. A pool that is on its way to
    /// machines of another kind has an order of its own, and takes none.
    pub(super) fn take_back(
        &mut self,
        stand: Stand<'_>,
        origin: Option<&Origin>,
        (kept, count): (&mut Vec<Machine>, usize),
    ) {
        let Some(origin) = origin else {
            return;
        };
        let alike = |machine: &Machine| machine.origin.made_like(origin);
        if !kept.iter().all(alike) {
            return;
        }
        let stays = |machine: &&Machine| !self.replaced.contains(&machine.id);
        let lacking = count.saturating_sub(kept.iter().filter(stays).count());
        let fits = |machine: &Machine| {
            stand.holds(machine)
                && made(machine)
                && alike(machine)
                && self.untouched.contains(&machine.id)
                && !self.replaced.contains(&machine.id)
                && !self.retired.contains(&machine.id)
        };
        let leaving = std::mem::take(&mut self.desired.leaving);
        let (mut back, others): (Vec<_>, Vec<_>) = leaving.into_iter().partition(fits);
        back.sort_by_key(|machine| machine.ordinal);
        let rest = back.split_off(back.len().min(lacking));
        self.desired.leaving = others;
        self.desired.leaving.extend(rest);
        kept.extend(back);
    }
}
