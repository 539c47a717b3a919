//! What was last seen, per object and source, and a log of what changed.
//!
//! **Invariant:** nothing but drivers' reports is written here, and nothing that began
//! to be looked at before what is known already.

use crate::Store;
use crate::body::{FORMAT, Row, Scope, Tx, Value, encode, first};
use crate::error::Error;
use crate::events::note;
use crate::page::{Listed, Page, cursor};
use crate::{claims, intents};
use model::addon::AddonsFact;
use model::dns::NamesFact;
use model::id::{ClusterId, MachineId};
use model::name::Name;
use model::observed::{
    ControlPlaneFact, Fact, HostFact, MachineFact, NodeFact, Observation, Observed, PortFact, Seen,
    Silence, SilenceFact, Source, Wellbeing, fold,
};
use model::stray::StraysFact;
use model::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// One line of the log of what changed: from then on this was so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// When it was seen.
    pub at: Timestamp,
    /// Who saw it.
    pub source: Source,
    /// What was seen.
    pub fact: Fact,
}

impl Store {
    /// What changed about a machine, newest first, for as long as changes are kept.
    pub async fn machine_changes(
        &self,
        machine: MachineId,
        page: Page,
    ) -> Result<Listed<Change>, Error> {
        self.runner
            .read(move |tx| changes(tx, machine, &page))
            .await
    }

    /// Takes it upon itself to look at a cluster; answers whether nobody else just did.
    pub async fn begin_probe(
        &self,
        cluster: ClusterId,
        every: Duration,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp::from_millis(now.as_millis().saturating_sub(every));
        let question = move |tx: &mut dyn Tx| {
            let begun = tx.execute(
                "UPDATE clusters SET probed_at = $2 WHERE id = $1 AND (probed_at IS NULL OR probed_at <= $3)",
                &[cluster.into(), now.into(), before.into()],
            )?;
            Ok(begun > 0)
        };
        self.runner.write(Scope::Rows, question).await
    }

    /// Takes in what a probe of a whole cluster saw; answers whether anything changed.
    pub async fn observe(
        &self,
        cluster: ClusterId,
        observations: Vec<Observation>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let question = move |tx: &mut dyn Tx| {
            let alive = first(
                tx,
                "UPDATE clusters SET probed_at = $2 WHERE id = $1 AND phase <> 'gone' RETURNING project, name",
                &[cluster.into(), now.into()],
            )?;
            let Some(mut row) = alive else {
                return Ok(false);
            };
            let of = Of {
                cluster,
                project: &row.take()?,
                name: &row.take()?,
            };
            take_in(tx, of, &observations, now)
        };
        self.runner.write(Scope::Cluster(cluster), question).await
    }
}

/// When something was seen that may have changed since in whatever way: before anybody looked.
pub(crate) const FORGOTTEN: Timestamp = Timestamp::from_millis(-1);

/// Doubts all that was seen, until somebody looks again.
pub(crate) fn doubt(tx: &mut dyn Tx) -> Result<(), Error> {
    tx.execute(
        "UPDATE observations SET at = $1, since = NULL",
        &[FORGOTTEN.into()],
    )?;
    tx.execute("UPDATE clusters SET probed_at = NULL", &[])?;
    Ok(())
}

fn changes(tx: &mut dyn Tx, machine: MachineId, page: &Page) -> Result<Listed<Change>, Error> {
    let before = page.after_number("changes", u64::MAX)?;
    let rows = tx.query(
        "SELECT id, at, format, fact FROM observation_changes WHERE object = $1 AND id < $2
         ORDER BY id DESC LIMIT $3",
        &[machine.into(), before.into(), page.rows().into()],
    )?;
    let change = |mut row: Row| {
        let (id, at) = (row.take::<u64>()?, row.take()?);
        let fact: Fact = row.document()?;
        let source = fact.source();
        Ok((id, Change { at, source, fact }))
    };
    let rows = rows.into_iter().map(change).collect::<Result<_, Error>>()?;
    let Listed { items, next } = page.cut(rows, |(id, _)| cursor("changes", &[id]));
    Ok(Listed {
        items: items.into_iter().map(|(_, change)| change).collect(),
        next,
    })
}

/// The cluster that observations belong to.
#[derive(Clone, Copy)]
pub(crate) struct Of<'a> {
    pub(crate) cluster: ClusterId,
    pub(crate) project: &'a Name,
    pub(crate) name: &'a Name,
}

/// A cluster as it was last seen.
pub(crate) fn of_cluster(tx: &mut dyn Tx, cluster: ClusterId) -> Result<Observed, Error> {
    with_change(tx, cluster).map(|(observed, _)| observed)
}

/// A cluster as it was last seen, and since when nothing of that has changed.
pub(crate) fn with_change(
    tx: &mut dyn Tx,
    cluster: ClusterId,
) -> Result<(Observed, Timestamp), Error> {
    let rows = tx.query(
        "SELECT at, since, format, fact FROM observations WHERE cluster = $1",
        &[cluster.into()],
    )?;
    let (mut silent, mut unready) = (BTreeMap::new(), BTreeMap::new());
    let (mut led, mut changed_at) = (BTreeMap::new(), FORGOTTEN);
    let mut observations = Vec::with_capacity(rows.len());
    for mut row in rows {
        let (at, since): (Timestamp, Option<Timestamp>) = (row.take()?, row.take()?);
        let fact: Fact = row.document()?;
        changed_at = changed_at.max(since.unwrap_or(at));
        if let (Some(machine), Some(since)) = (fact.sick(), since) {
            let of_node = matches!(fact, Fact::Node(..));
            let sick = if of_node { &mut unready } else { &mut silent };
            sick.insert(machine, since);
        }
        if let (Fact::Commit(reference, _), Some(since)) = (&fact, since) {
            led.insert(reference.clone(), since);
        }
        observations.push(Observation { cluster, fact, at });
    }
    let mut observed = fold(observations);
    // A node says by itself since when it does not serve, however long its machine was not entered.
    silent.retain(|machine, _| {
        let seen = observed.machines.get(machine);
        !seen.is_some_and(Seen::is_node)
    });
    silent.append(&mut unready);
    observed.sick = silent;
    for (reference, followed) in &mut observed.followed {
        followed.since = led.remove(reference);
    }
    Ok((observed, changed_at))
}

/// Takes in observations of one cluster; answers whether anything changed.
pub(crate) fn take_in(
    tx: &mut dyn Tx,
    of: Of<'_>,
    observations: &[Observation],
    now: Timestamp,
) -> Result<bool, Error> {
    let (mut changed, mut absent) = (false, false);
    for observation in observations
        .iter()
        .filter(|seen| seen.cluster == of.cluster)
    {
        if let Some(before) = replace(tx, of.cluster, observation, now)? {
            changed = true;
            absent |= matches!(observation.fact, Fact::Machine(_, MachineFact::Absent));
            tell(tx, of, &observation.fact, before, now)?;
        }
    }
    // Only a machine that is gone can set something free.
    if absent {
        claims::settle(tx, of.cluster, now);
    }
    Ok(changed)
}

/// Whether there was a fact before the one that changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Another,
}

/// What a fact is about: a machine, a tag or a branch of a repository, or the cluster.
fn object(cluster: ClusterId, fact: &Fact) -> String {
    let machine = fact.machine().map(|machine| machine.to_string());
    let followed = || {
        fact.reference()
            .map(|reference| format!("modules/{reference}"))
    };
    machine.or_else(followed).unwrap_or(cluster.to_string())
}

/// Stores an observation unless something newer is known; answers what it changed.
fn replace(
    tx: &mut dyn Tx,
    cluster: ClusterId,
    observation: &Observation,
    now: Timestamp,
) -> Result<Option<Before>, Error> {
    let Observation {
        cluster: _,
        fact,
        at,
    } = observation;
    let object = object(cluster, fact);
    let key: [Value; 3] = [cluster.into(), object.into(), fact.source().as_str().into()];
    let [of, object, source] = key.clone();
    let known = first(
        tx,
        "SELECT at, since, fact FROM observations WHERE cluster = $1 AND object = $2 AND source = $3",
        &key,
    )?;
    let encoded = encode(fact)?;
    let mut sick_before = None;
    let before = match known {
        None => Before::Nothing,
        Some(mut row) => {
            let (known_at, since): (Timestamp, Option<Timestamp>) = (row.take()?, row.take()?);
            let known: String = row.take()?;
            // What is known from the future is known by a clock that was wrong, or is: dropping
            // all that is seen until then would have everything done again and again.
            if known_at > *at && known_at <= now {
                return Ok(None);
            }
            if Value::Text(known.clone()) == encoded {
                tx.execute(
                    "UPDATE observations SET at = $4, since = COALESCE(since, $4)
                     WHERE cluster = $1 AND object = $2 AND source = $3",
                    &[of, object, source, (*at).into()],
                )?;
                return Ok(None);
            }
            sick_before = since.filter(|_| was_sick(fact, &known));
            Before::Another
        }
    };
    let values = [of, object, source, (*at).into(), FORMAT.into(), encoded];
    let mut row = values.to_vec();
    row.push(sick_before.unwrap_or(*at).into());
    tx.execute(
        "INSERT INTO observations (cluster, object, source, at, format, fact, since)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (cluster, object, source)
         DO UPDATE SET at = excluded.at, format = excluded.format, fact = excluded.fact, since = excluded.since",
        &row,
    )?;
    tx.execute(
        "INSERT INTO observation_changes (cluster, object, source, at, format, fact)
         VALUES ($1, $2, $3, $4, $5, $6)",
        &values,
    )?;
    Ok(Some(before))
}

/// Whether a machine that does not serve did not either by what was known: something else of it
/// has changed. What cannot be read any more says nothing.
fn was_sick(fact: &Fact, known: &str) -> bool {
    let before = || serde_json::from_str::<Fact>(known).ok();
    fact.sick().is_some() && before().is_some_and(|before| before.sick() == fact.sick())
}

/// Lets others know of a change: lists, wishes that it fulfils, people.
fn tell(
    tx: &mut dyn Tx,
    of: Of<'_>,
    fact: &Fact,
    before: Before,
    now: Timestamp,
) -> Result<(), Error> {
    let (what, object, said) = match fact {
        fact if before == Before::Nothing && tells_nothing(fact) => return Ok(()),
        Fact::Machine(machine, fact) => {
            let absent = *fact == MachineFact::Absent;
            let name = tell_lists(tx, of, *machine, absent, now)?;
            // That a machine is not there before it was made is no news.
            if absent && before == Before::Nothing {
                return Ok(());
            }
            let object = format!("machine/{name}");
            ("machine.changed", object, said_of_machine(fact))
        }
        Fact::Node(machine, fact) => {
            let object = format!("machine/{}", machine_name(tx, *machine)?);
            ("machine.changed", object, said_of_node(fact))
        }
        Fact::Host(machine, fact) => {
            let object = format!("machine/{}", machine_name(tx, *machine)?);
            ("machine.changed", object, said_of_host(fact))
        }
        Fact::ControlPlane(fact) => {
            let object = format!("cluster/{}", of.name);
            let Some((what, message)) = news_of_control_plane(before, fact) else {
                return Ok(());
            };
            (what, object, message)
        }
        Fact::Certificates(machine, fact) => {
            let object = format!("machine/{}", machine_name(tx, *machine)?);
            let day = fact.end.to_day();
            let message = format!("the first of its certificates ends on {day}");
            ("machine.changed", object, message)
        }
        Fact::Names(machine, fact) => {
            let object = format!("machine/{}", machine_name(tx, *machine)?);
            ("machine.changed", object, said_of_names(fact))
        }
        Fact::Port(machine, fact) => {
            let object = format!("machine/{}", machine_name(tx, *machine)?);
            ("machine.changed", object, said_of_port(*fact))
        }
        Fact::Addons(fact) => {
            let object = format!("cluster/{}", of.name);
            ("cluster.changed", object, said_of_addons(fact))
        }
        Fact::Strays(fact) => {
            let object = format!("cluster/{}", of.name);
            ("cluster.changed", object, said_of_strays(fact))
        }
        Fact::Snapshots(fact) => {
            if let Some(wish) = fact.answered {
                intents::fulfil(tx, of.cluster, wish, now)?;
            }
            let Some(newest) = fact.kept.last() else {
                return Ok(());
            };
            let message = format!("snapshot {} of etcd is kept", newest.id);
            ("cluster.saved", format!("cluster/{}", of.name), message)
        }
        Fact::Restored(fact) => {
            intents::fulfil(tx, of.cluster, fact.wish, now)?;
            let message = format!("etcd is as it was in snapshot {}", fact.snapshot);
            ("cluster.restored", format!("cluster/{}", of.name), message)
        }
        Fact::Access(_) | Fact::Silence(_) | Fact::Commit(..) | Fact::Unresolved(..) => {
            let object = format!("cluster/{}", of.name);
            ("cluster.changed", object, said_of_cluster(fact))
        }
    };
    note(tx, (of.project, now), what, object, said);
    Ok(())
}

/// Whether a fact is no news where nothing was known before it: nothing is there.
fn tells_nothing(fact: &Fact) -> bool {
    match fact {
        Fact::Node(_, NodeFact::Absent) => true,
        Fact::Names(_, fact) => fact.names.is_empty(),
        Fact::Addons(fact) => fact.addons.is_empty(),
        Fact::Strays(fact) => fact.nodes.is_empty(),
        Fact::Silence(fact) => fact.silence.is_none(),
        Fact::Machine(..)
        | Fact::Node(..)
        | Fact::ControlPlane(_)
        | Fact::Host(..)
        | Fact::Access(_)
        | Fact::Certificates(..)
        | Fact::Snapshots(_)
        | Fact::Restored(_)
        | Fact::Port(..)
        | Fact::Commit(..)
        | Fact::Unresolved(..) => false,
    }
}

/// Lets lists and wishes know whether a machine is there; answers what it is called.
fn tell_lists(
    tx: &mut dyn Tx,
    of: Of<'_>,
    machine: MachineId,
    absent: bool,
    now: Timestamp,
) -> Result<String, Error> {
    let row = first(
        tx,
        "UPDATE machines SET absent = $2 WHERE id = $1 RETURNING name, leaving",
        &[machine.into(), absent.into()],
    )?;
    let (name, leaving) = match row {
        Some(mut row) => (row.take()?, row.take()?),
        None => (machine.to_string(), false),
    };
    if absent {
        // A machine takes its host with it: one made later under the same name starts anew. Its node
        // stays known until the API or who takes it out says otherwise, and serves nobody any more.
        unready(tx, of, machine)?;
        let with_it = [Source::Host, Source::Certificates, Source::Firewall];
        for source in with_it {
            tx.execute(
                "DELETE FROM observations WHERE cluster = $1 AND object = $2 AND source = $3",
                &[
                    of.cluster.into(),
                    machine.to_string().into(),
                    source.as_str().into(),
                ],
            )?;
        }
    }
    if absent && leaving {
        intents::fulfil_machine(tx, of.cluster, machine, now)?;
    }
    Ok(name)
}

/// Lets the node of a machine that is gone be not ready: the API may never say so, where it went with
/// the machine, and whoever is made under the same name is no node yet.
fn unready(tx: &mut dyn Tx, of: Of<'_>, machine: MachineId) -> Result<(), Error> {
    let key: [Value; 3] = [
        of.cluster.into(),
        machine.to_string().into(),
        Source::Kubernetes.as_str().into(),
    ];
    let row = first(
        tx,
        "SELECT format, fact FROM observations WHERE cluster = $1 AND object = $2 AND source = $3",
        &key,
    )?;
    let Some(mut row) = row else { return Ok(()) };
    let Some(mut fact) = row.readable::<Fact>()? else {
        return Ok(());
    };
    if let Fact::Node(_, NodeFact::Joined { ready, .. }) = &mut fact {
        *ready = false;
        let [cluster, object, source] = key;
        tx.execute(
            "UPDATE observations SET format = $4, fact = $5, since = NULL
             WHERE cluster = $1 AND object = $2 AND source = $3",
            &[cluster, object, source, FORMAT.into(), encode(&fact)?],
        )?;
    }
    Ok(())
}

fn machine_name(tx: &mut dyn Tx, machine: MachineId) -> Result<String, Error> {
    let row = first(
        tx,
        "SELECT name FROM machines WHERE id = $1",
        &[machine.into()],
    )?;
    row.map_or_else(|| Ok(machine.to_string()), |mut row| row.take())
}

/// What opens its machines, or what these are made from.
fn said_of_cluster(fact: &Fact) -> String {
    if let Fact::Commit(reference, fact) = fact {
        format!("{reference} leads to {}", fact.commit.short())
    } else if let Fact::Unresolved(reference, fact) = fact {
        format!("{reference} was not looked up: {}", fact.because)
    } else if let Fact::Silence(fact) = fact {
        said_of_silence(fact)
    } else {
        "the key that opens its machines was made".to_owned()
    }
}

fn said_of_machine(fact: &MachineFact) -> String {
    match fact {
        MachineFact::Absent => "the machine is gone".to_owned(),
        MachineFact::Booting { .. } => "the machine is booting".to_owned(),
        MachineFact::Running { address, .. } => format!("the machine runs at {address}"),
        MachineFact::Unreachable { .. } => "the machine does not answer".to_owned(),
    }
}

fn said_of_names(fact: &NamesFact) -> String {
    let names: Vec<_> = fact.names.iter().map(|of| of.name.as_str()).collect();
    if names.is_empty() {
        "no name leads to it any more".to_owned()
    } else {
        format!("it is called {}", names.join(", "))
    }
}

fn said_of_port(fact: PortFact) -> String {
    let how = if fact.open { "open" } else { "shut" };
    format!("the API's port on it is {how} to the world")
}

/// What happened to a control plane, where something did.
fn news_of_control_plane(
    before: Before,
    fact: &ControlPlaneFact,
) -> Option<(&'static str, String)> {
    match (before, &fact.wellbeing) {
        (Before::Nothing, _) if fact.initialised => {
            let message = "the control plane was started".to_owned();
            Some(("cluster.started", message))
        }
        (Before::Another, Some(wellbeing)) => {
            Some(("cluster.changed", said_of_control_plane(wellbeing)))
        }
        (Before::Nothing, _) | (Before::Another, None) => None,
    }
}

fn said_of_control_plane(wellbeing: &Wellbeing) -> String {
    let Wellbeing {
        failing,
        etcd,
        troubles,
        locks,
    } = wellbeing;
    let api = if failing.is_empty() {
        "the API is ready".to_owned()
    } else {
        format!("checks of the API fail: {}", failing.join(", "))
    };
    let well = etcd.iter().filter(|member| member.healthy).count();
    let mut said = vec![api];
    if !etcd.is_empty() {
        let all = etcd.len();
        said.push(format!("{well} of {all} members of etcd are healthy"));
    }
    let troubles = troubles.iter();
    said.extend(troubles.map(|(node, what)| format!("{node}: {what}")));
    let locks = locks.iter();
    said.extend(locks.map(|(node, label)| format!("{node} is locked by {label}")));
    said.join(", ")
}

fn said_of_silence(fact: &SilenceFact) -> String {
    match &fact.silence {
        Some(Silence { because, hint }) => format!("its API cannot be asked: {because}; {hint}"),
        None => "its API can be asked again".to_owned(),
    }
}

fn said_of_addons(fact: &AddonsFact) -> String {
    if fact.addons.is_empty() {
        return "no add-on is installed".to_owned();
    }
    let told = fact.addons.iter().map(|(name, fact)| {
        let version = &fact.version;
        match (&fact.wrong, fact.whole) {
            (_, false) => format!("{name} {version} is half there"),
            (Some(wrong), true) => format!("{name} {version} is not well: {wrong}"),
            (None, true) => format!("{name} {version} is well"),
        }
    });
    told.collect::<Vec<_>>().join(", ")
}

fn said_of_strays(fact: &StraysFact) -> String {
    if fact.nodes.is_empty() {
        return "every node is that of one of its machines".to_owned();
    }
    let told = fact.nodes.iter().map(|(node, stray)| match stray.machine {
        Some(machine) => format!("node {node} is left of {machine}"),
        None => format!("node {node} was joined by somebody else"),
    });
    told.collect::<Vec<_>>().join(", ")
}

fn said_of_host(fact: &HostFact) -> String {
    let mut said = vec![if fact.equipped.is_some() {
        "the host is equipped".to_owned()
    } else {
        "the host is bare".to_owned()
    }];
    if fact.mesh.is_some() {
        said.push("part of the mesh".to_owned());
    }
    if let Some(balance) = &fact.balance {
        let healthy = balance.healthy.iter();
        said.extend(healthy.map(|(role, count)| format!("{role}: {count} healthy")));
    }
    said.join(", ")
}

fn said_of_node(fact: &NodeFact) -> String {
    match fact {
        NodeFact::Absent => "the node left the cluster".to_owned(),
        NodeFact::Joined {
            ready,
            cordoned,
            version,
            care: _,
            asks: _,
            gated,
        } => {
            let ready = if *ready { "ready" } else { "not ready" };
            let cordoned = match (*gated, *cordoned) {
                (true, _) => ", waits at its gates",
                (false, true) => ", takes no new workloads",
                (false, false) => "",
            };
            format!("the node is {ready}{cordoned}, Kubernetes {version}")
        }
    }
}
