//! How long hosts take from their first sight to a mesh, and how long one more takes.
//!
//! `cargo xtask bench hosts` runs it as root, in a network namespace of its own:
//!
//! - `fleet ready` has the root filesystem of hosts there; this alone needs the world.
//! - `fleet race DIRECTORY COUNT [COMMAND]...` prepares and meshes that many fresh hosts with the
//!   driver, then as many others with the command, then others with the driver again. The command
//!   runs in the directory and finds an `inventory` there. Whoever did it, hosts must look the same
//!   afterwards: a rival that does less is no rival.
//! - `fleet grow DIRECTORY COUNT` prepares and meshes that many, and then adds one more.
//!
//! What is measured is what a person would wait for: connections are opened within. Making hosts
//! is not. The answers are lines of a name and seconds. Nothing is left of the hosts in the end.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for people; what it prints is its result"
)]

use std::error::Error;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::{Clock, Context, Driver as _, Keeping, Log, Open, Opening, Outcome, Unopened};
use hosts::program::{Mark, Program, Report};
use hosts::sandbox::{
    Ending, Level, Means, Order, Sandbox, Settings, default_cache, ensure_rootfs, means,
};
use hosts::{Hosts, Parts, ssh};
use model::cluster::{Generation, Machine, Origin, Role};
use model::host::{Purpose, Recipe};
use model::id::{self, ClusterId, MachineId, TaskId};
use model::mesh::{Member, Mesh};
use model::name::Name;
use model::observed::{Fact, Observation};
use model::provider::Provider;
use model::sealed::Owner;
use model::secret::{EntryName, Secret, SecretRef};
use model::task::{Action, Task};
use model::time::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

/// The addresses at which hosts answer, and those they have in the mesh.
const LAN: &str = "10.77.0.0/24";
const MESH: &str = "10.8.0.0/24";

/// What a host shows when it is done, in facts that name no key and no process. Its last words
/// are those of peers that answered through the tunnel: as many as it has, ten at most.
const PICTURE: &str = r#"
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
tell() { printf '::slipway fact %s %s\n' "$1" "$2"; }
for file in /etc/security/limits.d/90-slipway.conf /etc/slipway/prepared /etc/slipway/boot.d/mesh; do
    tell "$file" "$(stat -c '%a %U:%G' "$file") $(sha256sum <"$file")"
done
for file in /etc/wireguard/slipway.key /etc/wireguard/wg0.conf; do
    tell "$file" "$(stat -c '%a %U:%G' "$file")"
done
tell modules "$(sort /etc/modules-load.d/slipway*.conf | tr '\n' ' ')"
for knob in net.core.somaxconn net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports \
    net.ipv4.tcp_fin_timeout net.ipv4.ip_forward; do
    tell "$knob" "$(sysctl -n "$knob")"
    tell "kept-$knob" "$(sed -n "s/^-\{0,1\}$knob *= *//p" /etc/sysctl.d/90-slipway*.conf)"
done
for gone in /etc/apt/apt.conf.d/90slipway-proxy /etc/systemd/system/containerd.service.d/90-slipway-proxy.conf \
    /etc/systemd/system/kubelet.service.d/90-slipway-proxy.conf; do
    [ ! -e "$gone" ] || tell "$gone" there
done
tell link "$(ip -o link show dev wg0 | sed -n 's/.*mtu \([0-9]*\).*/\1/p')"
tell address "$(ip -4 -o address show dev wg0 | awk '{ print $4 }')"
tell port "$(wg show wg0 listen-port)"
tell peers "$(wg show wg0 allowed-ips | cut -f 2 | sort | tr '\n' ' ')"
tell kept-peers "$(sed -n 's/^AllowedIPs = //p' /etc/wireguard/wg0.conf | sort | tr '\n' ' ')"
tell keepalive "$(wg show wg0 persistent-keepalive | cut -f 2 | sort | uniq -c | tr -s ' ')"
tell answering "$(wg show wg0 allowed-ips | cut -f 2 | sort | head -n 10 | while read -r peer; do
    ping -q -c 1 -w 30 "${peer%/32}" >/dev/null && printf '%s ' "$peer"
done)"
"#;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match words.as_slice() {
            ["ready"] => ready().await,
            ["race", directory, count, command @ ..] => {
                race(Path::new(directory), count.parse()?, command).await
            }
            ["grow", directory, count] => grow(Path::new(directory), count.parse()?).await,
            _ => Err("usage: fleet ready | race DIRECTORY COUNT [COMMAND]... | \
                      grow DIRECTORY COUNT"
                .into()),
        }
    })
}

async fn ready() -> Result<(), Failed> {
    match means()? {
        Means::Here => {}
        Means::ByEntering => return Err("it takes root".into()),
    }
    ensure_rootfs(Level::Lite, &default_cache(), &|line| eprintln!("{line}")).await?;
    Ok(())
}

/// Ours, the rival, and ours again: whatever else this machine does, both meet it.
async fn race(directory: &Path, count: u8, command: &[&str]) -> Result<(), Failed> {
    let fleet = Fleet::open(directory).await?;
    let first = fleet.raced("ours", count).await?;
    if let [program, arguments @ ..] = command {
        let all = fleet.made(1..=count).await?;
        fleet.inventory(&all).await?;
        let mut rival = Command::new(program);
        rival.args(arguments).current_dir(directory);
        let began = Instant::now();
        let ended = tokio::task::block_in_place(|| rival.output())?;
        let took = began.elapsed();
        if !ended.status.success() {
            let said = [ended.stdout, ended.stderr]
                .map(|said| String::from_utf8_lossy(&said).into_owned());
            return Err(format!("{program}: {}\n{}", ended.status, said.concat()).into());
        }
        tell("rival", took);
        let theirs = fleet.pictures(&fleet.driver(), &all).await?;
        same(&first, &theirs)?;
        fleet.sandbox.clear().await?;
        fleet.raced("ours", count).await?;
    }
    Ok(())
}

/// Many, and then one more: first while connections are open, as a server has them, then another
/// one when none is.
async fn grow(directory: &Path, count: u8) -> Result<(), Failed> {
    let fleet = Fleet::open(directory).await?;
    let mut all = fleet.made(1..=count).await?;
    fleet.acquaint(&all).await?;
    let hosts = fleet.driver();
    let began = Instant::now();
    let mut members = fleet.equipped(&hosts, &all).await?;
    tell("many-equipped", began.elapsed());
    fleet.mesh(&hosts, &members).await?;
    tell("many", began.elapsed());
    fleet.checked(&hosts, &all).await?;
    let mut last = hosts;
    for (name, number) in [("one-more", count + 1), ("one-more-cold", count + 2)] {
        let one = fleet.made(number..=number).await?;
        all.extend(one.iter().cloned());
        fleet.acquaint(&all).await?;
        let began = Instant::now();
        members.extend(fleet.equipped(&last, &one).await?);
        tell(&format!("{name}-equipped"), began.elapsed());
        fleet.mesh(&last, &members).await?;
        tell(name, began.elapsed());
        fleet.checked(&last, &all).await?;
        last = fleet.driver();
    }
    Ok(fleet.sandbox.clear().await?)
}

fn tell(name: &str, took: Duration) {
    println!("{name} {:.3}", took.as_secs_f64());
}

/// The machines of one cluster, whoever prepares them.
struct Fleet {
    directory: PathBuf,
    sandbox: Sandbox,
    cluster: ClusterId,
    name: Name,
    key: Arc<Key>,
    recipe: Recipe,
}

impl Fleet {
    async fn open(directory: &Path) -> Result<Self, Failed> {
        let directory = directory.canonicalize()?;
        let settings = Settings {
            dir: directory.join("sandbox"),
            rootfs: None,
            cache: None,
            subnet: LAN.parse()?,
            ending: Ending::WithUs,
        };
        let (private, public) = ssh::new_key("fleet")?;
        Ok(Self {
            sandbox: Sandbox::open(settings).await?,
            directory,
            cluster: ClusterId::derive(origin("bench", "fleet")),
            name: "fleet".parse()?,
            key: Arc::new(Key { private, public }),
            recipe: Recipe {
                purpose: Purpose::Node,
                proxy: None,
                playbooks: Vec::new(),
            },
        })
    }

    /// A driver that has met nobody yet.
    fn driver(&self) -> Hosts {
        Hosts::new(Parts {
            sandbox: self.sandbox.clone().into(),
            cache: self.directory.join("cache"),
            sources: Vec::new(),
            playbooks: true,
        })
    }

    fn context(&self) -> Context {
        let secrets: Arc<dyn Open> = self.key.clone();
        let cancel = CancellationToken::new();
        Context::new(Clock::System, Arc::new(Unread), secrets, cancel, 1)
    }

    /// Fresh hosts, which nobody but the sandbox has touched.
    async fn made(&self, numbers: std::ops::RangeInclusive<u8>) -> Result<Vec<Machine>, Failed> {
        let mut making = JoinSet::new();
        let mut machines = Vec::new();
        for number in numbers {
            let machine = machine(self.cluster, number)?;
            let order = Order {
                id: machine.id.to_string(),
                name: machine.name.to_string(),
                level: Level::Lite,
                authorized_key: self.key.public.clone(),
            };
            let sandbox = self.sandbox.clone();
            making.spawn(async move { sandbox.create(&order).await });
            machines.push(machine);
        }
        while let Some(made) = making.join_next().await {
            made??;
        }
        Ok(machines)
    }

    /// Prepares and meshes fresh hosts with the driver; answers how they look, and leaves none.
    async fn raced(&self, name: &str, count: u8) -> Result<Vec<String>, Failed> {
        let all = self.made(1..=count).await?;
        let hosts = self.driver();
        let began = Instant::now();
        let members = self.equipped(&hosts, &all).await?;
        tell(&format!("{name}-equipped"), began.elapsed());
        self.mesh(&hosts, &members).await?;
        tell(name, began.elapsed());
        let pictures = self.pictures(&hosts, &all).await?;
        self.sandbox.clear().await?;
        Ok(pictures)
    }

    /// Equips machines, all at once; answers what they are in the mesh.
    async fn equipped(&self, hosts: &Hosts, all: &[Machine]) -> Result<Vec<Member>, Failed> {
        let mut equipping = JoinSet::new();
        for machine in all.iter().cloned() {
            let recipe = self.recipe.clone();
            let task = self.task(&machine, Action::Equip { recipe });
            let (hosts, cx) = (hosts.clone(), self.context());
            equipping.spawn(async move {
                let seen = done(&task, hosts.apply(&cx, &task).await)?;
                member(machine, &seen)
            });
        }
        let mut members = Vec::new();
        while let Some(equipped) = equipping.join_next().await {
            members.push(equipped??);
        }
        members.sort_by_key(|member| member.machine.address);
        Ok(members)
    }

    /// Connects everybody with everybody.
    async fn mesh(&self, hosts: &Hosts, members: &[Member]) -> Result<(), Failed> {
        let Some(first) = members.first() else {
            return Err("there is nobody to connect".into());
        };
        let mesh = Mesh {
            network: MESH.parse()?,
            pods: None,
            members: members.to_vec(),
            to: members.iter().map(|member| member.machine.id).collect(),
        };
        let task = self.task(&first.machine, Action::Mesh { mesh });
        done(&task, hosts.apply(&self.context(), &task).await)?;
        Ok(())
    }

    fn task(&self, machine: &Machine, action: Action) -> Task {
        Task {
            id: TaskId::derive(origin(&machine.id.to_string(), action.kind().as_str())),
            project: Name::default_project(),
            cluster: self.cluster,
            cluster_name: self.name.clone(),
            generation: Generation(1),
            machine: machine.clone(),
            action,
            around: None,
        }
    }

    /// Runs a program on every host; answers their reports in the order of their addresses.
    async fn ask(
        &self,
        hosts: &Hosts,
        all: &[Machine],
        text: &str,
    ) -> Result<Vec<(Machine, Report)>, Failed> {
        let mut asking = JoinSet::new();
        for machine in all.iter().cloned() {
            let (hosts, cx, cluster) = (hosts.clone(), self.context(), self.cluster);
            let program = Program {
                title: "look".to_owned(),
                text: Zeroizing::new(text.to_owned()),
                limit: Duration::from_mins(2),
            };
            asking.spawn(async move {
                let report = hosts.visit(&cx, cluster, &machine, &program).await;
                report.map(|report| (machine, report))
            });
        }
        let mut reports = Vec::new();
        while let Some(asked) = asking.join_next().await {
            reports.push(asked??);
        }
        reports.sort_by_key(|(machine, _)| machine.address);
        Ok(reports)
    }

    /// Tells every host the link address of every other. Hosts of the sandbox have one kernel, and
    /// it remembers a thousand neighbours for all of them together: too few for a mesh of fifty.
    /// What it was told does not count.
    async fn acquaint(&self, all: &[Machine]) -> Result<(), Failed> {
        let hosts = self.driver();
        let link = "read -r link </sys/class/net/eth0/address\n\
                    printf '::slipway fact link %s\\n' \"$link\"\n";
        let mut lines = String::new();
        for (machine, report) in self.ask(&hosts, all, link).await? {
            let seen = self.sandbox.find(&machine.id.to_string()).await;
            let (Some(seen), Some(link)) = (seen, report.fact("link")) else {
                return Err(format!("{} does not tell its link address", machine.name).into());
            };
            let at = seen.address;
            lines.push_str(&format!(
                "neigh replace {at} lladdr {link} nud permanent dev eth0\n"
            ));
        }
        let text = format!("ip -batch - <<'END'\n{lines}END\n");
        self.ask(&hosts, all, &text).await.map(drop)
    }

    /// Has every host show what it has; fails where a peer does not answer through the mesh.
    async fn pictures(&self, hosts: &Hosts, all: &[Machine]) -> Result<Vec<String>, Failed> {
        let answering = all.len().saturating_sub(1).min(10);
        let mut pictures = Vec::new();
        for (machine, report) in self.ask(hosts, all, PICTURE).await? {
            let mut picture = format!("{}\n", machine.name);
            for mark in &report.marks {
                if let Mark::Fact(key, value) = mark {
                    picture.push_str(&format!("{key} {value}\n"));
                }
            }
            let answer = report.fact("answering").unwrap_or_default();
            let answer = answer.split_whitespace().count();
            if answer != answering {
                return Err(format!("{answer} of {answering} peers answer:\n{picture}").into());
            }
            pictures.push(picture);
        }
        Ok(pictures)
    }

    async fn checked(&self, hosts: &Hosts, all: &[Machine]) -> Result<(), Failed> {
        self.pictures(hosts, all).await.map(drop)
    }

    /// What the rival needs to find the hosts, to trust them and to enter them.
    async fn inventory(&self, all: &[Machine]) -> Result<(), Failed> {
        let (mut inventory, mut known) = ("[all]\n".to_owned(), String::new());
        for machine in all {
            let seen = self.sandbox.find(&machine.id.to_string()).await;
            let seen = seen.ok_or_else(|| format!("{} is not there", machine.name))?;
            inventory.push_str(&format!(
                "{} ansible_host={} mesh_address={}\n",
                machine.name, seen.address, machine.address
            ));
            known.push_str(&format!("{} {}\n", seen.address, seen.host_key));
        }
        let (network, directory) = (MESH.parse::<model::network::Network>()?, &self.directory);
        inventory.push_str(&format!(
            "\n[all:vars]\nansible_user=root\nansible_ssh_private_key_file={0}/key\n\
             ansible_ssh_common_args=-o UserKnownHostsFile={0}/known\n\
             mesh_prefix={1}\nfingerprint={2}\n",
            directory.display(),
            network.prefix(),
            self.recipe.fingerprint()
        ));
        std::fs::write(directory.join("inventory"), inventory)?;
        std::fs::write(directory.join("known"), known)?;
        let key = directory.join("key");
        std::fs::write(&key, [])?;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
        Ok(std::fs::write(&key, self.key.private.expose())?)
    }
}

/// Says where two worlds that should be the same differ.
fn same(ours: &[String], theirs: &[String]) -> Result<(), Failed> {
    for (ours, theirs) in ours.iter().zip(theirs) {
        let differ = |(ours, theirs): &(&str, &str)| ours != theirs;
        if let Some((ours, theirs)) = ours.lines().zip(theirs.lines()).find(differ) {
            return Err(format!("ours has\n{ours}\nand the rival's\n{theirs}").into());
        }
    }
    Ok(())
}

/// What an attempt saw that had to work.
fn done(task: &Task, outcome: Outcome) -> Result<Vec<Observation>, Failed> {
    match outcome {
        Outcome::Done(seen, _) => Ok(seen),
        Outcome::Retry(error) | Outcome::Stuck(error) => Err(format!(
            "{} {}: {error}",
            task.action.kind().as_str(),
            task.machine.name
        )
        .into()),
    }
}

/// What a machine is in the mesh, by what it told when it was equipped.
fn member(machine: Machine, seen: &[Observation]) -> Result<Member, Failed> {
    for observation in seen {
        if let Fact::Host(_, host) = &observation.fact
            && let (Some(key), Some(at)) = (host.mesh_key.clone(), host.at)
        {
            return Ok(Member {
                machine,
                key,
                at,
                pods: None,
            });
        }
    }
    Err(format!("{} did not tell its key", machine.name).into())
}

fn machine(cluster: ClusterId, number: u8) -> Result<Machine, Failed> {
    let name = format!("host-{number:03}");
    Ok(Machine {
        id: MachineId::derive(origin(&cluster.to_string(), &name)),
        name: name.parse()?,
        pool: "pool".parse()?,
        role: Role::Compute,
        ordinal: number.into(),
        incarnation: 0,
        address: Ipv4Addr::new(10, 8, 0, number),
        balancer: None,
        origin: Origin::Made {
            provider: "here".parse()?,
            via: Provider::Sandbox,
            region: "local".to_owned(),
            zone: None,
            server_type: "lite".to_owned(),
            image: hosts::sandbox::IMAGE.to_owned(),
            hardware: model::hardware::Hardware::default(),
            secret: None,
        },
    })
}

fn origin<'a>(parent: &'a str, name: &'a str) -> id::Origin<'a> {
    id::Origin {
        parent,
        name,
        ordinal: 0,
        incarnation: 0,
    }
}

/// The key of the cluster, for whoever asks.
struct Key {
    private: Secret,
    public: String,
}

impl Open for Key {
    fn open<'a>(&'a self, secret: &'a SecretRef) -> Opening<'a> {
        let error = driver::Error {
            attempted: format!("could not open secret {secret}, there are none here"),
            hint: "hosts of the sandbox need none".to_owned(),
        };
        Box::pin(std::future::ready(Err(Unopened::Stuck(error))))
    }

    fn kept<'a>(&'a self, _: &'a Owner, _: &'a EntryName) -> Keeping<'a> {
        let key = Secret::from(self.private.expose().to_vec());
        Box::pin(std::future::ready(Ok(Some(key))))
    }
}

/// Takes the lines that nobody reads: why an attempt failed is in its outcome.
struct Unread;

impl Log for Unread {
    fn line(&self, _: Timestamp, _: &str) {}
}
