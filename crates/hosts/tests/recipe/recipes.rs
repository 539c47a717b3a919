//! Whole recipes: a second run changes nothing, and what is given back is as it was.

use crate::packages::{distribution, repository};
use crate::world::{World, possible, same};
use hosts::program::Program;
use hosts::recipe::{
    Level, container_runtime, kubeadm_requirements, mesh_tools, node_requirements, package_names,
    prepare, proxy, removal, render, storage,
};
use model::host::{Proxy, Purpose, Recipe};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(2);

/// A world in which every package of the recipes is to be had.
fn supplied() -> World {
    let world = World::new();
    let names = package_names();
    let packages: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), "9:1.0", ""))
        .collect();
    repository(&world, "all", &packages);
    distribution(&world, "all");
    world
}

fn wish(endpoint: &str) -> Proxy {
    Proxy {
        endpoint: endpoint.to_owned(),
        except: ["127.0.0.1/8", "localhost", ".svc", "10.0.0.7"]
            .map(str::to_owned)
            .to_vec(),
    }
}

fn prepared(purpose: Purpose, proxy: Option<Proxy>, level: Level) -> Program {
    let recipe = Recipe {
        purpose,
        proxy,
        playbooks: Vec::new(),
    };
    render(&prepare(&recipe, level), "test", LIMIT)
}

#[test]
fn a_second_run_of_every_recipe_changes_nothing() {
    if !possible("a_second_run_of_every_recipe_changes_nothing") {
        return;
    }
    let world = supplied();
    for level in [Level::Systemd, Level::Lite] {
        let recipes = [
            node_requirements(level),
            kubeadm_requirements(),
            container_runtime(level, &[]),
            storage(),
            mesh_tools(),
            proxy(Some(&wish("http://a.example:1")), level),
            proxy(Some(&wish("http://b.example:1")), level),
            proxy(None, level),
        ];
        for recipe in recipes {
            let program = render(&recipe, "test", LIMIT);
            world.apply(&program);
            assert_eq!(world.apply(&program), 0);
        }
        for purpose in [Purpose::Node, Purpose::Balancer] {
            let program = prepared(purpose, Some(wish("http://a.example:1")), level);
            assert!(world.apply(&program) > 0);
            assert_eq!(world.apply(&program), 0);
        }
    }
}

#[test]
fn what_cannot_be_set_here_is_told_and_no_failure() {
    if !possible("what_cannot_be_set_here_is_told_and_no_failure") {
        return;
    }
    let world = World::new();
    let report = world.run(&render(&node_requirements(Level::Lite), "test", LIMIT));
    assert!(hosts::recipe::done(&report).is_ok(), "{report:#?}");
    // The network is the namespace's own; the rest of the kernel is not.
    assert_eq!(world.sh("cat /proc/sys/net/ipv4/tcp_fin_timeout"), "30");
    assert_eq!(world.sh("cat /proc/sys/net/ipv4/ip_forward"), "1");
    assert!(report.fact("swap").is_some());
    assert_eq!(
        report.fact("sysctl.net.ipv4.ip_local_port_range"),
        None,
        "it was set"
    );
    if world.sh("cat /proc/sys/fs/inotify/max_queued_events") != "65535" {
        let told = report.fact("sysctl.fs.inotify.max_queued_events").unwrap();
        assert!(told.starts_with("cannot be set here"), "{told}");
    }
}

#[test]
fn the_proxy_goes_without_a_trace() {
    if !possible("the_proxy_goes_without_a_trace") {
        return;
    }
    let world = World::new();
    world.sh(
        "printf 'PATH=/bin\\n' >/etc/environment; rm -rf /etc/systemd/system/kubelet.service.d",
    );
    // What is remembered is not a trace: the first run makes its place.
    let off = render(&proxy(None, Level::Systemd), "test", LIMIT);
    assert_eq!(world.apply(&off), 0);
    let before = world.snapshot();
    let on = |endpoint| render(&proxy(Some(&wish(endpoint)), Level::Systemd), "test", LIMIT);
    assert_eq!(world.apply(&on("http://a.example:1")), 4);
    assert_eq!(world.apply(&on("http://b.example:1")), 2);
    let environment = world.sh("cat /etc/environment");
    for line in [
        "PATH=/bin",
        "HTTPS_PROXY=\"http://b.example:1\"",
        "https_proxy=\"http://b.example:1\"",
        "no_proxy=\"127.0.0.1/8,localhost,.svc,10.0.0.7\"",
    ] {
        assert!(environment.lines().any(|one| one == line), "{environment}");
    }
    assert!(!environment.contains("a.example"), "{environment}");
    assert!(
        world
            .sh("apt-config dump")
            .contains("Acquire::http::Proxy \"http://b.example:1\"")
    );
    assert_eq!(world.apply(&off), 4);
    assert_eq!(world.apply(&off), 0);
    world.sh("rm -r /var/lib/slipway");
    same(&world.snapshot(), &before, "the proxy is off");
}

#[test]
fn a_host_that_is_given_back_is_as_it_was() {
    if !possible("a_host_that_is_given_back_is_as_it_was") {
        return;
    }
    let world = supplied();
    world.sh("mkdir -p /etc/containerd; echo theirs >/etc/containerd/config.toml; echo A=1 >/etc/environment");
    let before = world.snapshot();
    let port_range = "cat /proc/sys/net/ipv4/ip_local_port_range /proc/sys/net/ipv4/ip_forward";
    let settings = world.sh(port_range);
    let program = prepared(
        Purpose::Node,
        Some(wish("http://a.example:1")),
        Level::Systemd,
    );
    assert!(world.apply(&program) > 20);
    assert_ne!(world.sh(port_range), settings);
    let gone = render(&removal(Level::Systemd), "test", LIMIT);
    assert!(world.apply(&gone) > 10);
    same(&world.snapshot(), &before, "given back");
    assert_eq!(world.sh(port_range), settings);
    assert_eq!(world.apply(&gone), 0);
    same(&world.snapshot(), &before, "given back twice");
}

/// A swap device and a swap file, and the programs that turn them off and on.
const SWAPPING: &str = r#"
mkdir -p /usr/local/sbin; touch /swapfile
printf 'Filename Type Size Used Priority\n/dev/null partition 1 0 -2\n/swapfile file 1 0 -3\n/not/here file 1 0 -4\n' >/tmp/swaps
mount --bind /tmp/swaps /proc/swaps
cat >/usr/local/sbin/swapoff <<'END'
#!/bin/sh
sed "\\|^$1 |d" /proc/swaps >/tmp/new && cat /tmp/new >/proc/swaps
END
cat >/usr/local/sbin/swapon <<'END'
#!/bin/sh
echo "$1 any 1 0 0" >>/proc/swaps
END
chmod 755 /usr/local/sbin/swap*
printf '# swap was here\nUUID=1 / ext4 rw 0 1\n/dev/null none swap sw 0 0\n\t/swapfile\tswap\tswap\tdefaults 0 0\n' >/etc/fstab
"#;

#[test]
fn swap_is_off_now_and_later_and_is_given_back() {
    if !possible("swap_is_off_now_and_later_and_is_given_back") {
        return;
    }
    let world = supplied();
    world.sh(SWAPPING);
    let before = world.sh("cat /etc/fstab; sort /proc/swaps | cut -d' ' -f1");
    let program = prepared(Purpose::Node, None, Level::Systemd);
    world.apply(&program);
    assert_eq!(world.apply(&program), 0);
    assert_eq!(
        world.sh("cat /etc/fstab; cut -d' ' -f1 /proc/swaps"),
        "# swap was here\nUUID=1 / ext4 rw 0 1\n# slipway: /dev/null none swap sw 0 0\n\
         # slipway: \t/swapfile\tswap\tswap\tdefaults 0 0\nFilename\n/not/here"
    );
    let gone = render(&removal(Level::Systemd), "test", LIMIT);
    world.apply(&gone);
    assert_eq!(
        world.sh("cat /etc/fstab; sort /proc/swaps | cut -d' ' -f1"),
        before
    );
    assert_eq!(world.apply(&gone), 0);
}

#[test]
fn programs_of_pod_networks_are_linked_beside_those_of_others() {
    if !possible("programs_of_pod_networks_are_linked_beside_those_of_others") {
        return;
    }
    let plugins = "mkdir -p /usr/lib/cni; rm -rf /usr/lib/cni/* /opt/cni; \
        for p in bridge loopback; do echo $p >/usr/lib/cni/$p; chmod 755 /usr/lib/cni/$p; done";
    let shown = "cd /opt/cni/bin; for p in *; do echo \"$p $(readlink $p)\"; done";
    let program = prepared(Purpose::Node, None, Level::Systemd);
    let gone = render(&removal(Level::Systemd), "test", LIMIT);
    let world = supplied();
    world.sh(plugins);
    world.apply(&program);
    let ours = "bridge /usr/lib/cni/bridge\nloopback /usr/lib/cni/loopback";
    assert_eq!(world.sh(shown), ours);
    // What a pod puts there goes with the directory that we made for it.
    world.sh("echo x >/opt/cni/bin/flannel");
    assert_eq!(world.apply(&program), 0);
    world.apply(&gone);
    world.sh("[ ! -e /opt/cni ]");
    // What was there before us stays.
    world.sh("mkdir -p /opt/cni/bin; echo theirs >/opt/cni/bin/bridge");
    world.apply(&program);
    assert_eq!(world.sh(shown), "bridge \nloopback /usr/lib/cni/loopback");
    world.apply(&gone);
    assert_eq!(world.sh(shown), "bridge ");
    assert_eq!(world.apply(&gone), 0);
}

#[test]
fn systems_that_we_do_not_know_are_refused_in_one_sentence() {
    if !possible("systems_that_we_do_not_know_are_refused_in_one_sentence") {
        return;
    }
    let world = supplied();
    let program = prepared(Purpose::Balancer, None, Level::Lite);
    let system = |text: &str| {
        world.sh(&format!(
            "rm /etc/os-release; printf '{text}' >/etc/os-release"
        ))
    };
    let before = world.sh("ls /etc");
    for text in [
        "ID=fedora\\nVERSION_ID=41\\n",
        "ID=debian\\nVERSION_ID=\"11\"\\n",
        "ID=ubuntu\\nVERSION_ID=\"20.04\"\\n",
        "ID=ubuntu\\nVERSION_ID=\"later\"\\n",
        "",
    ] {
        system(text);
        let (code, what) = world.refuse(&program);
        assert_eq!(code, "HOST-009", "{what}");
    }
    assert_eq!(world.sh("ls /etc"), before, "nothing was changed");
    for text in [
        "ID=debian\\nVERSION_ID=\"12\"\\n",
        "ID=ubuntu\\nVERSION_ID=\"22.04\"\\n",
        "ID='debian'\\nVERSION_CODENAME=forky\\n",
    ] {
        system(text);
        world.apply(&program);
    }
}

#[test]
fn a_marker_is_believed_only_as_far_as_it_holds() {
    if !possible("a_marker_is_believed_only_as_far_as_it_holds") {
        return;
    }
    let world = World::new();
    world.sh("printf 'ID=flatcar\\nVERSION_ID=4000\\n' >/tmp/r; rm /etc/os-release; mv /tmp/r /etc/os-release; mkdir -p /etc/slipway/prepared.d");
    let program = prepared(Purpose::Balancer, None, Level::Lite);
    let marker = |lines: &str| {
        world.sh(&format!("printf '{lines}' >/etc/slipway/prepared.d/image"));
    };
    let good = "slipway-prepared-1\\npurpose balancer\\nprogram ip\\nprogram wg\\nfile /etc/passwd\\nsysctl net.ipv4.tcp_syncookies 1\\n";
    world.sh("for p in wg containerd; do printf '#!/bin/sh\\n' >/usr/local/bin/$p; chmod 755 /usr/local/bin/$p; done");
    for lines in [
        "",
        "prepared\\n",
        "slipway-prepared-1\\npurpose node\\nprogram ip\\nprogram wg\\nprogram containerd\\n",
        "slipway-prepared-1\\npurpose balancer\\nprogram ip\\n",
        &format!("{good}program not-there\\n"),
        &format!("{good}file /not/there\\n"),
        &format!("{good}sysctl net.ipv4.tcp_syncookies 7\\n"),
        &format!("{good}module not_there\\n"),
        &format!("{good}wonders many\\n"),
    ] {
        marker(lines);
        let (code, what) = world.refuse(&program);
        assert_eq!(code, "HOST-016", "{lines}: {what}");
    }
    marker(good);
    let report = world.run(&program);
    assert!(hosts::recipe::done(&report).is_ok(), "{report:#?}");
    assert_eq!(report.fact("prepared-by"), Some("image"));
    // Its stamp is all that was written.
    assert_eq!(report.changed(), 1, "{report:#?}");
    assert_eq!(world.apply(&program), 0);
    world.sh("[ ! -e /etc/security/limits.d/90-slipway.conf ]");
}
