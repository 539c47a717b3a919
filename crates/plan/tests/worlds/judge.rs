//! What must never be: a budget that is exceeded, a control plane that is started twice, a load
//! balancer that sends to nobody or to those who leave.

use crate::besides;
use crate::seen::{ends, joined};
use model::balancer::{Balance, Listener};
use model::cluster::{Desired, Machine, Role};
use model::id::MachineId;
use model::observed::{MachineFact, NodeFact, Observed, Seen};
use model::task::{Action, Kind, Open, Task};
use model::time::Timestamp;
use plan::{Plan, Slot, View, minutes};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

/// What the ledger would say after a step, against what may be. `before` are its rows after
/// those that are given back.
pub(crate) fn excess(view: &View<'_>, step: &Plan, before: &[Slot]) -> Option<String> {
    let budgets = &view.desired.disruption;
    let role = |slot: &Slot| {
        let machine = view
            .desired
            .all()
            .find(|machine| machine.id == slot.machine);
        machine.map(|machine| machine.role)
    };
    for new in &step.disturbs {
        let rows = || before.iter().chain(&step.disturbs);
        let count = |among: &dyn Fn(&Slot) -> bool| {
            u32::try_from(rows().filter(|row| among(row)).count()).unwrap()
        };
        if count(&|_| true) > budgets.unavailable {
            return Some(format!("{} exceeds the budget of the cluster", new.name));
        }
        if budgets
            .of_pool(&new.pool)
            .is_some_and(|most| count(&|row| row.pool == new.pool) > most)
        {
            return Some(format!("{} exceeds the budget of its pool", new.name));
        }
        let there = u32::try_from(view.elsewhere.len()).unwrap();
        if let Some(group) = &new.group
            && count(&|row| row.group.as_ref() == Some(group)) + there > budgets.groups[group]
        {
            return Some(format!("{} exceeds the budget of its group", new.name));
        }
        if role(new) == Some(Role::Control) && count(&|row| role(row) == Some(Role::Control)) > 1 {
            return Some(format!("{} is the second control machine", new.name));
        }
        let mut all = view.desired.all();
        let machine = all.find(|machine| machine.id == new.machine);
        let renewed = step
            .tasks
            .iter()
            .any(|task| task.machine.id == new.machine && task.action.kind() == Kind::Renew);
        let end = machine.and_then(|machine| ends(view.observed, machine));
        let near = end.is_some_and(|end| end <= view.now.plus(Duration::from_hours(7 * 24)));
        if budgets.windows.opens(view.now).is_some() && !(renewed && near) {
            return Some(format!(
                "{} is taken out of service outside its windows",
                new.name
            ));
        }
    }
    let without = step.tasks.iter().find(|task| {
        let mut secrets = task.action.needs(&task.machine.origin);
        secrets.any(|secret| view.missing.contains(&secret))
    });
    without.map(|task| format!("{} is begun without its secret", task.machine.name))
}

/// A machine that is to stay and on which a control plane may have been started.
pub(crate) fn starting(desired: &Desired, observed: &Observed, open: &[Open]) -> Option<MachineId> {
    let init = open.iter().find(|open| open.action.kind() == Kind::Init)?;
    let fact = observed.machines.get(&init.machine)?.machine.as_ref()?;
    let there = matches!(
        fact.0,
        MachineFact::Running { .. } | MachineFact::Unreachable { .. }
    );
    let mut wanted = desired.machines.iter();
    let stays = wanted.any(|machine| machine.id == init.machine);
    (there && stays).then_some(init.machine)
}

/// A control plane that would be started beside the one that was begun.
pub(crate) fn second_start(
    view: &View<'_>,
    step: &Plan,
    begun: Option<MachineId>,
) -> Option<String> {
    let stays = |id: &MachineId| view.desired.machines.iter().any(|one| one.id == *id);
    let begun = begun.filter(|id| !view.observed.initialised && stays(id))?;
    let mut starts = step.tasks.iter();
    let second =
        starts.find(|task| task.action.kind() == Kind::Init && task.machine.id != begun)?;
    Some(format!("{} would split the cluster", second.machine.name))
}

/// A machine that does not serve, though all is said to be done.
pub(crate) fn unfinished(desired: &Desired, observed: &Observed) -> Option<String> {
    let exposed = desired.api_balancer().is_none();
    let lacks = |machine: &&Machine| {
        let Some(seen) = observed.machines.get(&machine.id) else {
            return true;
        };
        let host = seen.host.as_ref().map(|(host, _)| host);
        let version = desired.version;
        let joined = matches!(seen.node, Some((NodeFact::Joined { version: runs, .. }, _)) if runs == version);
        let meshed = host.is_some_and(|host| host.mesh.is_some());
        let balances = host.is_some_and(|host| host.balance.is_some());
        machine.role.is_node() != joined
            || machine.origin.is_host() && !meshed
            || machine.role == Role::Balancer && !balances
            || machine.has_firewall() && observed.lets_in(machine.id) != exposed
    };
    let found = desired.machines.iter().find(lacks);
    let found = found.map(|machine| machine.name.to_string());
    found.or_else(|| besides::lacking(desired, observed))
}

/// The clock after a step.
pub(crate) fn later(now: Timestamp, step: &Plan, going: &[Open]) -> Timestamp {
    let new = step.tasks.iter().map(|task| task.action.kind());
    let longest = new
        .chain(going.iter().map(|open| open.action.kind()))
        .map(minutes)
        .max();
    now.plus(Duration::from_secs(u64::from(longest.unwrap_or(0)) * 60))
}

/// Who is led to a machine at which nobody lets the world in.
fn shut_out(view: &View<'_>, task: &Task) -> Option<String> {
    let care = task.action.care()?;
    let shut = |machine: &&Machine| {
        let led = care.api.contains(&machine.address);
        led && machine.has_firewall() && !view.observed.lets_in(machine.id)
    };
    let shut = view.desired.all().find(shut)?;
    Some(format!("{} is led to {}", task.machine.name, shut.name))
}

/// What load balancers were told since somebody watched.
#[derive(Default)]
pub(crate) struct Told(BTreeMap<MachineId, Balance>, Led);

/// Where nodes were led to find the API.
type Led = BTreeMap<MachineId, Vec<Ipv4Addr>>;

impl Told {
    /// Takes in what ends well.
    pub(crate) fn hear(&mut self, machine: MachineId, action: &Action) {
        if let Action::Balance { balance } = action {
            self.0.insert(machine, balance.clone());
        }
        if let Action::Join { care, .. } | Action::Tend { care } = action {
            self.1.insert(machine, care.api.clone());
        }
    }

    /// What a step does to those that load balancers send to, or to them, and must not.
    pub(crate) fn misled(&self, view: &View<'_>, step: &Plan) -> Option<String> {
        // Who is gone already does not go a second time.
        let dead = |task: &Task| {
            let seen = view.observed.machines.get(&task.machine.id);
            task.action.kind() == Kind::Leave && seen.is_some_and(Seen::outlived)
        };
        let tasks = || step.tasks.iter().filter(|task| !dead(task));
        let leave = tasks().find_map(|task| self.leaves(view, task));
        let empty = tasks().find_map(|task| self.empties(view, task));
        let asked = tasks().find_map(|task| self.asked(view, task));
        let shut_out = || tasks().find_map(|task| shut_out(view, task));
        leave.or(empty).or(asked).or_else(shut_out)
    }

    /// Who goes while a node looks for the API there.
    fn asked(&self, view: &View<'_>, task: &Task) -> Option<String> {
        let goes = match task.machine.role {
            Role::Control => matches!(task.action.kind(), Kind::Leave | Kind::Shut),
            Role::Balancer => {
                let removed = matches!(task.action.kind(), Kind::Delete | Kind::Release);
                removed || self.closes(task)
            }
            Role::Compute => false,
        };
        let asks = |node: &&Machine| {
            let seen = view.observed.machines.get(&node.id);
            let fact = seen.and_then(|seen| seen.machine.as_ref());
            let led = self.1.get(&node.id);
            matches!(fact, Some((MachineFact::Running { .. }, _)))
                && joined(view.observed, node)
                && led.is_some_and(|api| api.contains(&task.machine.address))
        };
        let by = view.desired.all().find(asks);
        let by = by.filter(|_| goes && !view.desired.tombstone)?;
        let gone = &task.machine.name;
        Some(format!(
            "{gone} goes and {} looks for the API there",
            by.name
        ))
    }

    /// Whether a load balancer that passes the API on is told to do so no more.
    fn closes(&self, task: &Task) -> bool {
        let Action::Balance { balance } = &task.action else {
            return false;
        };
        let passes = |balance: &Balance| balance.listeners.iter().any(Listener::is_api);
        self.0.get(&task.machine.id).is_some_and(passes) && !passes(balance)
    }

    fn leaves(&self, view: &View<'_>, task: &Task) -> Option<String> {
        let runs = |machine: &&Machine| {
            let seen = view.observed.machines.get(&machine.id);
            let fact = seen.and_then(|seen| seen.machine.as_ref());
            matches!(fact, Some((MachineFact::Running { .. }, _)))
        };
        let sends = |machine: &&Machine| {
            let told = self.0.get(&machine.id);
            let mut listeners = told.into_iter().flat_map(|balance| &balance.listeners);
            listeners.any(|listener| listener.targets.contains(&task.machine.address))
        };
        let mut sending = view.desired.machines.iter().filter(runs).filter(sends);
        let by = sending
            .next()
            .filter(|_| task.action.kind() == Kind::Leave)?;
        Some(format!(
            "{} leaves and {} sends to it",
            task.machine.name, by.name
        ))
    }

    fn empties(&self, view: &View<'_>, task: &Task) -> Option<String> {
        let Action::Balance { balance } = &task.action else {
            return None;
        };
        let before = self.0.get(&task.machine.id)?;
        let pool = |role: &str| if role == "web" { "muscle" } else { "brain" };
        let comes = |role: &str| {
            let mut machines = view.desired.machines.iter();
            machines.any(|machine| {
                machine.pool.as_str() == pool(role) && !joined(view.observed, machine)
            })
        };
        let mut pairs = balance.listeners.iter().filter_map(|now| {
            let before = before
                .listeners
                .iter()
                .find(|before| before.role == now.role)?;
            Some((before, now))
        });
        let emptied = pairs.find(|(before, now)| {
            !before.targets.is_empty() && now.targets.is_empty() && comes(now.role.as_str())
        });
        emptied.map(|(_, now)| format!("{} sends {} to nobody", task.machine.name, now.role))
    }
}
