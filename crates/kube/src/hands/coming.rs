//! Machines become nodes: the first starts a control plane, the others join it.

use super::{Done, Kube, Trouble, Until};
use crate::error::{Error, Kind};
use crate::kubeadm::{
    self, DISCOVERY, Discovery, Node, PKI, SHARED, Verb, init_config, join_config, secret_file,
};
use driver::Context;
use hosts::hands::{Stage, Staged};
use hosts::recipe::item::Item;
use model::care::Care;
use model::cluster::{Machine, Role};
use model::kubernetes::{API_PORT, api_name};
use model::observed::{ControlPlaneFact, Fact};
use model::snapshot::SnapshotsFact;
use model::task::{Around, Task};
use model::version::Version;
use std::collections::BTreeMap;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long an invitation is good for: longer than any join takes.
const INVITED: Duration = Duration::from_mins(30);

/// Where invitations are kept.
const SYSTEM: &str = "kube-system";

impl Kube {
    /// Starts the control plane of a cluster on its first machine.
    pub(super) async fn init(
        &self,
        cx: &Context,
        task: &Task,
        around: &Around,
        (version, care): (Version, &Care),
    ) -> Result<Done, Trouble> {
        let node = self.node(cx, task, around, (version, care)).await?;
        if self.marked(cx, task).await?.is_none() {
            let staged = self.staged(cx, task, version).await?;
            self.addon_images(cx, task, around).await?;
            let own = [task.machine.address];
            let before = node.before(&staged.programs, &own, &init_config(&node), Vec::new());
            self.items(cx, task, &before).await?;
            self.kubeadm(cx, task, &node, Verb::Init).await?;
            self.items(cx, task, &node.after()).await?;
        } else {
            cx.log("a control plane was started here already");
        }
        let kubeconfig = self.kubeconfig(cx, task).await?;
        let door = self
            .opened(cx, task.cluster, &task.machine, &kubeconfig.value)
            .await?;
        self.bring(cx, &door, &task.machine, (care, false)).await?;
        // Where somebody else connects pods, nobody can before there is an API to ask.
        let until = match around.kubernetes.through_mesh() {
            Some(_) => Until::Ready,
            None => Until::Known,
        };
        let waiting = self.ready(cx, &door, (&task.machine, version), until);
        let ready = waiting.await?;
        self.certify(cx, &door, &task.machine).await?;
        let at = cx.now();
        let facts = [
            Fact::ControlPlane(ControlPlaneFact::started()),
            Fact::Snapshots(SnapshotsFact::none_since(at)),
            Fact::Node(task.machine.id, ready),
        ];
        Ok((facts.map(|fact| (at, fact)).into(), vec![kubeconfig]))
    }

    /// Has a machine join the control plane that runs.
    pub(super) async fn join(
        &self,
        cx: &Context,
        (task, around): (&Task, &Around),
        (version, care): (Version, &Care),
        gated: bool,
    ) -> Result<Done, Trouble> {
        let (door, member) = self.door(cx, task.cluster, &around.through).await?;
        let node = self.node(cx, task, around, (version, care)).await?;
        if self.marked(cx, task).await?.is_none() {
            let staged = self.staged(cx, task, version).await?;
            self.addon_images(cx, task, around).await?;
            self.clear_the_way(cx, task, &door, &member).await?;
            let more = self.introduced(cx, task, &member).await?;
            let invitation = Invitation::new()?;
            door.apply_secret(
                SYSTEM,
                &invitation.name(),
                "bootstrap.kubernetes.io/token",
                &invitation.entries(cx),
            )
            .await?;
            let joined = self
                .joined(cx, task, &node, (&staged, &member), (&invitation, more))
                .await;
            // Nobody else is to come with it, whatever has become of this one.
            let withdrawn = door.remove(&invitation.object()).await;
            joined?;
            withdrawn?;
        } else {
            cx.log("it has joined already");
            self.registered(cx, task, &door).await?;
        }
        self.bring(cx, &door, &task.machine, (care, gated)).await?;
        let node = (&task.machine, version);
        let ready = self.ready(cx, &door, node, Until::Ready).await?;
        self.certify(cx, &door, &task.machine).await?;
        let outputs = match task.machine.role {
            Role::Control => {
                let own = self.kubeconfig(cx, task).await?;
                self.answers(cx, task.cluster, &task.machine, &own.value)
                    .await?;
                // It is good for longer than the one that is kept.
                vec![own]
            }
            Role::Compute | Role::Balancer => Vec::new(),
        };
        let fact = Fact::Node(task.machine.id, ready);
        Ok((vec![(cx.now(), fact)], outputs))
    }

    /// A node that somebody deleted, though its machine is one: kubelets make themselves known when
    /// they start and never again.
    async fn registered(
        &self,
        cx: &Context,
        task: &Task,
        door: &crate::api::Door,
    ) -> Result<(), Trouble> {
        match door.node(task.machine.name.as_str()).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == Kind::NoNode => {
                cx.log("the cluster knows it no more; its kubelet is started again");
                let program = kubeadm::make_known();
                self.visit(cx, task.cluster, &task.machine, &program)
                    .await?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn joined(
        &self,
        cx: &Context,
        task: &Task,
        node: &Node<'_>,
        (staged, member): (&Staged, &Machine),
        (invitation, mut more): (&Invitation, Introduced),
    ) -> Result<(), Trouble> {
        let discovery = Discovery {
            authority: &more.authority,
            server: format!("https://{}:{API_PORT}", api_name(node.cluster)),
            token: &invitation.token(),
        };
        let kubeconfig = discovery.kubeconfig();
        more.files
            .push(secret_file(DISCOVERY, kubeconfig.as_bytes()));
        let config = join_config(node, &invitation.token());
        // A member has no API of its own yet and asks the one that lets it in.
        let by = match task.machine.role {
            Role::Control => vec![member.address],
            Role::Compute | Role::Balancer => node.api(),
        };
        let before = node.before(&staged.programs, &by, &config, more.files);
        self.items(cx, task, &before).await?;
        self.kubeadm(cx, task, node, Verb::Join).await?;
        self.items(cx, task, &node.after()).await
    }

    async fn staged(&self, cx: &Context, task: &Task, version: Version) -> Result<Staged, Trouble> {
        let stage = stage(task.machine.role);
        let staging = self
            .hosts
            .stage(cx, task.cluster, &task.machine, version, stage);
        Ok(staging.await?)
    }

    async fn kubeadm(
        &self,
        cx: &Context,
        task: &Task,
        node: &Node<'_>,
        verb: Verb,
    ) -> Result<(), Trouble> {
        let program = node.run(verb);
        let machine = &task.machine;
        let report = self.visit(cx, task.cluster, machine, &program).await?;
        match kubeadm::trouble(&program.title, machine.name.as_str(), &report) {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// A machine that is no node yet has nothing in the cluster: what is there under its name was
    /// left by an attempt that died, and would be in the way of this one.
    async fn clear_the_way(
        &self,
        cx: &Context,
        task: &Task,
        door: &crate::api::Door,
        member: &Machine,
    ) -> Result<(), Trouble> {
        match task.machine.role {
            Role::Control => {
                let gone = Some((&task.machine).into());
                self.members(cx, task.cluster, member, gone).await?;
            }
            Role::Compute | Role::Balancer => {}
        }
        door.delete_node(task.machine.name.as_str(), None).await?;
        Ok(())
    }

    /// What a machine must have to be believed, and to believe: members of a control plane share
    /// their keys.
    async fn introduced(
        &self,
        cx: &Context,
        task: &Task,
        member: &Machine,
    ) -> Result<Introduced, Trouble> {
        let path = |name: &str| format!("{PKI}/{name}");
        let authority = self.read(cx, task.cluster, member, &path("ca.crt")).await?;
        let mut files = Vec::new();
        if task.machine.role == Role::Control {
            for name in SHARED {
                let path = path(name);
                let text = self.read(cx, task.cluster, member, &path).await?;
                files.push(secret_file(&path, &text));
            }
        }
        Ok(Introduced { authority, files })
    }
}

/// What machines of a role are brought.
pub(super) const fn stage(role: Role) -> Stage {
    match role {
        Role::Control => Stage::Control,
        Role::Compute | Role::Balancer => Stage::Worker,
    }
}

struct Introduced {
    authority: Zeroizing<Vec<u8>>,
    files: Vec<Item>,
}

/// What lets one machine in, for a short time.
struct Invitation {
    id: String,
    secret: Zeroizing<String>,
}

impl Invitation {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            id: letters(6)?,
            secret: Zeroizing::new(letters(16)?),
        })
    }

    fn token(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{}.{}", self.id, *self.secret))
    }

    fn name(&self) -> String {
        format!("bootstrap-token-{}", self.id)
    }

    fn entries(&self, cx: &Context) -> BTreeMap<String, model::secret::Secret> {
        let until = cx.now().plus(INVITED).to_rfc3339();
        let entries = [
            ("token-id", self.id.clone()),
            ("token-secret", (*self.secret).clone()),
            ("expiration", until),
            ("usage-bootstrap-authentication", "true".to_owned()),
            ("usage-bootstrap-signing", "true".to_owned()),
            (
                "auth-extra-groups",
                "system:bootstrappers:kubeadm:default-node-token".to_owned(),
            ),
        ];
        let entries = entries.into_iter();
        entries
            .map(|(name, value)| (name.to_owned(), model::secret::Secret::from_text(value)))
            .collect()
    }

    /// The object, as far as it takes to name it.
    fn object(&self) -> String {
        let name = self.name();
        format!("apiVersion: v1\nkind: Secret\nmetadata:\n  namespace: {SYSTEM}\n  name: {name}\n")
    }
}

/// Random letters and digits, as invitations have them.
fn letters(count: usize) -> Result<String, Error> {
    const ALL: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = Zeroizing::new(vec![0_u8; count]);
    getrandom::fill(&mut bytes).map_err(|error| {
        let what = format!("could not make an invitation, there is no randomness: {error}");
        Error::new(Kind::Busy, what)
    })?;
    let letter = |byte: &u8| char::from(ALL[usize::from(byte % 32)]);
    Ok(bytes.iter().map(letter).collect())
}
