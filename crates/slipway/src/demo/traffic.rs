//! What a load balancer is for: pages on two hosts, and requests that reach all who answer.

use crate::aside;
use crate::roles::Installation;
use anyhow::{Context as _, bail};
use driver::Context;
use hosts::recipe::item::{Item, State, Unit};
use hosts::recipe::render;
use hosts::recipe::services::Definition;
use model::cluster::{Forward, Machine, Role};
use model::id::ClusterId;
use model::kubernetes::API_PORT;
use model::name::Name;
use model::observed::MachineFact;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use store::Actor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// How long the load balancer may take to find all targets healthy.
const WARMING_MAX: Duration = Duration::from_mins(1);

/// Requests that are counted, once all targets are taken in.
const REQUESTS: usize = 20;

/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// What the demo's own steps on machines get besides them.
pub(super) fn context(installation: &Installation) -> Context {
    let means = (
        &installation.store,
        &installation.vault,
        installation.clock(),
    );
    let who = (Name::default_project(), Actor::new("demo", "demo"));
    aside::context(means, who, CancellationToken::new())
}

/// Starts a page on every target, then asks the load balancer until each has answered.
pub(super) async fn show(installation: &Installation) -> anyhow::Result<String> {
    let example = Example::of(installation).await?;
    let mut names = BTreeMap::new();
    for machine in example.with(Role::Compute) {
        serve_page(
            installation,
            example.cluster,
            machine,
            example.role.target_port,
        )
        .await?;
        names.insert(machine.name.to_string(), machine.name.to_string());
    }
    example.asked(&names).await
}

/// The example's only cluster, its machines with where each answers, and what is balanced.
pub(super) struct Example {
    pub(super) cluster: ClusterId,
    machines: Vec<(Machine, Option<IpAddr>)>,
    role: Forward,
}

impl Example {
    /// As the store has it.
    pub(super) async fn of(installation: &Installation) -> anyhow::Result<Self> {
        let clusters = installation.store.live_clusters().await?;
        let cluster = clusters.first().context("the example has no cluster")?.id;
        let view = installation.store.cluster_view(cluster).await?;
        let view = view.context("the example's cluster is gone")?;
        let at = |machine: &Machine| {
            let seen = view.observed.machines.get(&machine.id)?;
            match &seen.machine.as_ref()?.0 {
                MachineFact::Running { address, .. } => Some(*address),
                MachineFact::Absent
                | MachineFact::Booting { .. }
                | MachineFact::Unreachable { .. } => None,
            }
        };
        let machines = view.desired.machines.iter();
        let roles = view.desired.balancers.iter().flat_map(|of| &of.roles);
        // The API is for nodes and programs.
        let mut roles = roles.filter(|role| role.port != API_PORT);
        Ok(Self {
            cluster,
            machines: machines.map(|of| (of.clone(), at(of))).collect(),
            role: roles
                .next()
                .context("the example balances nothing")?
                .clone(),
        })
    }

    /// The machines that do this.
    pub(super) fn with(&self, role: Role) -> impl Iterator<Item = &Machine> {
        let machines = self.machines.iter().map(|(machine, _)| machine);
        machines.filter(move |machine| machine.role == role)
    }

    /// The machine of the load balancer, and where it listens.
    pub(super) fn balancer(&self) -> anyhow::Result<(&Machine, SocketAddr)> {
        let mut machines = self.machines.iter();
        let balancer = machines.find(|(of, _)| of.role == Role::Balancer);
        let (machine, at) = balancer.context("the example has no load balancer")?;
        let at = at.context("the load balancer has no address")?;
        Ok((machine, SocketAddr::new(at, self.role.port)))
    }

    /// Asks the load balancer until everybody has answered who is there, then counts who answers;
    /// tells it in one sentence. `names` says for each answer what people call who gives it.
    pub(super) async fn asked(&self, names: &BTreeMap<String, String>) -> anyhow::Result<String> {
        let (balancer, at) = self.balancer()?;
        warm(at, names).await?;
        let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in 0..REQUESTS {
            let answered = tokio::time::timeout(REQUEST_MAX, request(at)).await;
            let answer = answered.with_context(|| format!("http://{at}/ did not answer"))??;
            let name = names.get(&answer);
            let name = name.with_context(|| format!("http://{at}/ answered {answer:?}"))?;
            *answers.entry(name).or_default() += 1;
        }
        let told = answers
            .iter()
            .map(|(name, count)| format!("{name} {count}×"));
        Ok(format!(
            "http://{at}/ is {}; over the mesh it was answered by {}",
            balancer.name,
            told.collect::<Vec<_>>().join(" and ")
        ))
    }
}

/// Asks until everybody has answered: they were started a moment ago, and the load balancer
/// takes them in one after the other, when they are found healthy.
async fn warm(at: SocketAddr, names: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let mut silent = names.clone();
    let began = tokio::time::Instant::now();
    while began.elapsed() < WARMING_MAX {
        if let Ok(Ok(answer)) = tokio::time::timeout(REQUEST_MAX, request(at)).await {
            silent.remove(&answer);
        }
        if silent.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let silent: Vec<String> = silent.into_values().collect();
    bail!(
        "{} did not answer through the load balancer at http://{at}/",
        silent.join(" and ")
    )
}

/// Has a host serve a page with its own name on it.
async fn serve_page(
    installation: &Installation,
    cluster: ClusterId,
    machine: &Machine,
    port: u16,
) -> anyhow::Result<()> {
    let root = "/srv/slipway-demo";
    let command = ["/usr/bin/python3", "-m", "http.server", "--directory", root];
    let mut command: Vec<String> = command.map(str::to_owned).into();
    command.push(port.to_string());
    let items = [
        Item::file(format!("{root}/index.html"), format!("{}\n", machine.name)),
        Item::Service {
            name: "slipway-demo".to_owned(),
            unit: Unit::Ours(Definition {
                description: "a page of the demo".to_owned(),
                command,
                reload: "HUP".to_owned(),
            }),
            state: State::Running,
            restart_when: Vec::new(),
        },
    ];
    let program = render(&items, "a page", Duration::from_mins(1));
    let cx = context(installation);
    let hosts = &installation.hosts;
    hosts.visit(&cx, cluster, machine, &program).await?;
    Ok(())
}

/// One request over a connection of its own; answers what the page says.
async fn request(at: SocketAddr) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(at).await?;
    let line = format!("GET / HTTP/1.0\r\nHost: {at}\r\n\r\n");
    stream.write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let page = answer.split_once("\r\n\r\n").map(|(_, page)| page.trim());
    match page {
        Some(page) if !page.is_empty() => Ok(page.to_owned()),
        Some(_) | None => bail!("the page is empty"),
    }
}
