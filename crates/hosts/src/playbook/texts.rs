//! What Ansible reads: where the host is, which host key it has, and how to behave.

use super::{Opened, Scene};
use crate::ssh::Door;
use std::path::{Path, PathBuf};

/// The directory of one run.
#[derive(Clone, Copy)]
pub(super) struct Dir<'a>(pub(super) &'a Path);

impl Dir<'_> {
    pub(super) fn inventory(self) -> PathBuf {
        self.0.join("hosts.yml")
    }

    pub(super) fn playbook(self) -> PathBuf {
        self.0.join("playbook.yml")
    }

    pub(super) fn known_hosts(self) -> PathBuf {
        self.0.join("known_hosts")
    }

    pub(super) fn settings(self) -> PathBuf {
        self.0.join("ansible.cfg")
    }

    /// What the SSH client reads.
    pub(super) fn ssh(self) -> PathBuf {
        self.0.join("ssh_config")
    }

    /// The public half of the host's key.
    pub(super) fn public(self) -> PathBuf {
        self.0.join("host.pub")
    }

    /// The public half of the key of the host in front.
    pub(super) fn front_public(self) -> PathBuf {
        self.0.join("jump.pub")
    }

    /// Where Ansible may write.
    pub(super) fn scratch(self) -> PathBuf {
        self.0.join("tmp")
    }

    /// Where the agent listens that has the key.
    pub(super) fn agent(self) -> PathBuf {
        self.0.join("agent")
    }
}

/// The inventory: one host, under its name, in a group for its role, its pool and its cluster.
///
/// Roles are our words; pools and clusters are named by people, who may call them `all`.
pub(super) fn inventory(scene: &Scene<'_>) -> String {
    let machine = scene.machine;
    let Door {
        host, port, user, ..
    } = scene.host.door;
    let (name, pool, cluster) = (&machine.name, &machine.pool, scene.cluster);
    let role = machine.role;
    // A text of somebody's must not be taken for a template.
    let user = serde_json::Value::String(user.clone());
    let mut text = format!(
        "all:
  hosts:
    \"{name}\":
      ansible_host: \"{host}\"
      ansible_port: {port}
      ansible_user: !unsafe {user}
      slipway_cluster: \"{cluster}\"
      slipway_machine_id: \"{}\"
      slipway_mesh_address: \"{}\"
      slipway_pool: \"{pool}\"
      slipway_role: \"{role}\"
  children:
",
        machine.id, machine.address
    );
    let groups = [
        role.to_string(),
        format!("pool_{pool}"),
        format!("cluster_{cluster}"),
    ];
    for group in groups {
        text.push_str(&format!(
            "    \"{group}\": {{hosts: {{\"{name}\": {{}}}}}}\n"
        ));
    }
    text
}

/// The host keys that are accepted: one for each host on the way.
pub(super) fn known_hosts(scene: &Scene<'_>) -> String {
    let opened = std::iter::once(&scene.host).chain(&scene.front);
    let line = |opened: &Opened<'_>| {
        let Door { host, port, .. } = opened.door;
        let at = match port {
            22 => host.to_string(),
            port => format!("[{host}]:{port}"),
        };
        format!("{at} {}\n", opened.host_key.trim())
    };
    opened.map(line).collect()
}

/// What the jump host is called where its address could be that of another host.
const FRONT: &str = "slipway-jump-host";

/// How the SSH client gets to the host; nobody's own settings are read.
///
/// A jump host is entered by a client of its own, which reads the same text and is told nothing
/// else: each is asked for the one key that belongs to it, and shows the one that was pinned.
pub(super) fn ssh(dir: Dir<'_>, scene: &Scene<'_>) -> String {
    let Door { host, .. } = scene.host.door;
    let mut text = String::new();
    let mut jump = String::new();
    if let Some(Opened { door, .. }) = &scene.front {
        let Door {
            host, port, user, ..
        } = door;
        let key = dir.front_public();
        text.push_str(&format!(
            "Host {FRONT}
HostName {host}
Port {port}
User {user}
IdentityFile {key}
ControlPath none

",
            key = key.display()
        ));
        jump = format!("ProxyJump {FRONT}\n");
    }
    let (key, known_hosts, agent) = (dir.public(), dir.known_hosts(), dir.agent());
    text.push_str(&format!(
        "Host {host}
{jump}IdentityFile {key}

Host *
BatchMode yes
ConnectTimeout 20
GlobalKnownHostsFile /dev/null
IdentitiesOnly yes
IdentityAgent {agent}
ServerAliveCountMax 3
ServerAliveInterval 15
StrictHostKeyChecking yes
UserKnownHostsFile {known_hosts}
",
        key = key.display(),
        agent = agent.display(),
        known_hosts = known_hosts.display(),
    ));
    text
}

/// How Ansible behaves; nobody's own settings are read.
pub(super) fn settings(dir: Dir<'_>, door: &Door) -> String {
    let become_root = if door.user == "root" { "False" } else { "True" };
    format!(
        "[defaults]
forks = 1
force_valid_group_names = ignore
host_key_checking = True
interpreter_python = auto_silent
local_tmp = {scratch}
nocolor = True
nocows = True
retry_files_enabled = False
timeout = 20

[privilege_escalation]
become = {become_root}

[ssh_connection]
control_path_dir = {dir}/ssh
pipelining = True
ssh_args = -F {ssh} -o ControlMaster=auto -o ControlPersist=60s
",
        scratch = dir.scratch().display(),
        dir = dir.0.display(),
        ssh = dir.ssh().display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use model::cluster::{Machine, Origin, Role};
    use model::id::{self, MachineId};
    use model::secret::Secret;
    use std::net::Ipv4Addr;

    fn with_scene(user: &str, port: u16, read: impl FnOnce(&Scene<'_>) -> String) -> String {
        with(user, port, None, read)
    }

    fn with(
        user: &str,
        port: u16,
        front: Option<Door>,
        read: impl FnOnce(&Scene<'_>) -> String,
    ) -> String {
        let door = Door {
            host: Ipv4Addr::new(10, 0, 0, 5).into(),
            port,
            user: user.to_owned(),
            jump: front.map(Box::new),
        };
        let opened = |door, host_key: &str| Opened {
            door,
            host_key: host_key.to_owned(),
            key: Secret::from_text("a key".to_owned()),
        };
        let front = door.jump.as_deref();
        let front = front.map(|jump| opened(jump, "ssh-ed25519 BBBB\n"));
        let machine = Machine {
            id: MachineId::derive(id::Origin {
                parent: "edge",
                name: "brain",
                ordinal: 1,
                incarnation: 0,
            }),
            name: "edge-all-01".parse().unwrap(),
            pool: "all".parse().unwrap(),
            role: Role::Control,
            ordinal: 1,
            incarnation: 0,
            address: Ipv4Addr::new(10, 8, 0, 1),
            balancer: None,
            origin: Origin::Given {
                endpoint: Ipv4Addr::new(10, 0, 0, 5),
                ssh_port: port,
                username: user.to_owned(),
                secret: None,
                jump: None,
            },
        };
        read(&Scene {
            host: opened(&door, "ssh-ed25519 AAAA\n"),
            front,
            machine: &machine,
            cluster: &"edge".parse().unwrap(),
            path: "/bin".as_ref(),
        })
    }

    #[test]
    fn an_inventory_has_one_host_and_what_is_known_of_it() {
        expect![[r#"
            all:
              hosts:
                "edge-all-01":
                  ansible_host: "10.0.0.5"
                  ansible_port: 2222
                  ansible_user: !unsafe "{{ lookup('pipe', 'id') }}\""
                  slipway_cluster: "edge"
                  slipway_machine_id: "machine-d57ce5q9zbrtk"
                  slipway_mesh_address: "10.8.0.1"
                  slipway_pool: "all"
                  slipway_role: "control"
              children:
                "control": {hosts: {"edge-all-01": {}}}
                "pool_all": {hosts: {"edge-all-01": {}}}
                "cluster_edge": {hosts: {"edge-all-01": {}}}
        "#]]
        .assert_eq(&with_scene(
            "{{ lookup('pipe', 'id') }}\"",
            2_222,
            inventory,
        ));
    }

    #[test]
    fn the_host_key_is_known_by_where_it_is() {
        let told = [22, 2_222].map(|port| with_scene("root", port, known_hosts));
        assert_eq!(
            told,
            [
                "10.0.0.5 ssh-ed25519 AAAA\n",
                "[10.0.0.5]:2222 ssh-ed25519 AAAA\n"
            ]
        );
    }

    #[test]
    fn who_is_not_root_becomes_root() {
        for (user, line) in [("root", "become = False"), ("ann", "become = True")] {
            let text = with_scene(user, 22, |scene| {
                settings(Dir(Path::new("/d")), scene.host.door)
            });
            assert!(text.lines().any(|told| told == line), "{text}");
        }
    }

    #[test]
    fn each_host_on_the_way_has_its_own_key_and_is_known_by_its_own() {
        let told = |front: Option<Door>| {
            with("root", 22, front, |scene| {
                ssh(Dir(Path::new("/d")), scene) + "known hosts:\n" + &known_hosts(scene)
            })
        };
        let direct = told(None);
        assert!(!direct.contains("Proxy"), "{direct}");
        let front = Door {
            host: Ipv4Addr::new(192, 0, 2, 1).into(),
            port: 2_222,
            user: "ann".to_owned(),
            jump: None,
        };
        expect![[r#"
            Host slipway-jump-host
            HostName 192.0.2.1
            Port 2222
            User ann
            IdentityFile /d/jump.pub
            ControlPath none

            Host 10.0.0.5
            ProxyJump slipway-jump-host
            IdentityFile /d/host.pub

            Host *
            BatchMode yes
            ConnectTimeout 20
            GlobalKnownHostsFile /dev/null
            IdentitiesOnly yes
            IdentityAgent /d/agent
            ServerAliveCountMax 3
            ServerAliveInterval 15
            StrictHostKeyChecking yes
            UserKnownHostsFile /d/known_hosts
            known hosts:
            10.0.0.5 ssh-ed25519 AAAA
            [192.0.2.1]:2222 ssh-ed25519 BBBB
        "#]]
        .assert_eq(&told(Some(front)));
    }
}
