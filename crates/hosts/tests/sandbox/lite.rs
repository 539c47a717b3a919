//! Hosts of the level `lite`.

use crate::apart::{apart, groups, keys};
use hosts::error::Kind;
use hosts::sandbox::{Ending, Level, Sandbox, State};
use std::time::Instant;
use tokio::task::JoinSet;

#[test]
fn a_host_is_made_found_entered_and_deleted() {
    apart(
        "lite::a_host_is_made_found_entered_and_deleted",
        Level::Lite,
        async |lab| {
            let sandbox = lab.open().await;
            let before = lab.world();
            let order = lab.order("one", Level::Lite);
            let made = sandbox.create(&order).await.unwrap();
            assert_eq!(made.address.to_string(), "10.77.0.2");
            let seen = sandbox.find("one").await.unwrap();
            assert_eq!((seen.address, seen.state), (made.address, State::Running));
            assert_eq!(lab.ssh(&made, "hostname; id -u").unwrap(), "host-one\n0");
            for tool in [
                "wg",
                "ip",
                "nft",
                "iptables",
                "curl",
                "wireguard-go",
                "sudo",
            ] {
                lab.ssh(&made, &format!("command -v {tool}")).unwrap();
            }
            lab.ssh(
                &made,
                "ip tuntap add mode tun dev probe0 && ip link del probe0",
            )
            .unwrap();
            assert_eq!(
                sandbox.create(&order).await.unwrap(),
                made,
                "it is there already"
            );

            let user = "useradd --create-home --shell /bin/sh somebody && \
                        echo 'somebody ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/somebody && \
                        cp -r /root/.ssh /home/somebody && chown -R somebody: /home/somebody";
            lab.ssh(&made, user).unwrap();
            assert_eq!(
                lab.ssh_as("somebody", &made, "id -un; sudo id -un")
                    .unwrap(),
                "somebody\nroot"
            );

            sandbox.delete("one").await.unwrap();
            sandbox.delete("one").await.unwrap();
            assert_eq!(sandbox.find("one").await, None);
            assert_eq!(lab.world(), before);
            sandbox.clear().await.unwrap();
        },
    );
}

#[test]
fn fifty_hosts_are_there_at_once() {
    apart(
        "lite::fifty_hosts_are_there_at_once",
        Level::Lite,
        async |lab| {
            let sandbox = lab.open().await;
            // The root filesystem is unpacked by the first.
            sandbox
                .create(&lab.order("first", Level::Lite))
                .await
                .unwrap();
            sandbox.delete("first").await.unwrap();
            let before = lab.world();
            let begun = Instant::now();
            let mut all = JoinSet::new();
            for number in 0..50 {
                let (sandbox, order) =
                    (sandbox.clone(), lab.order(&number.to_string(), Level::Lite));
                all.spawn(async move { sandbox.create(&order).await.unwrap() });
            }
            let made = all.join_all().await;
            println!(
                "50 lite hosts answer after {:.2} s",
                begun.elapsed().as_secs_f64()
            );
            let addresses: std::collections::BTreeSet<_> =
                made.iter().map(|host| host.address).collect();
            let keys: std::collections::BTreeSet<_> =
                made.iter().map(|host| &host.host_key).collect();
            assert_eq!((addresses.len(), keys.len()), (50, 50));
            assert_eq!(sandbox.list().await.len(), 50);

            let begun = Instant::now();
            let mut all = JoinSet::new();
            for number in 0..50 {
                let sandbox = sandbox.clone();
                all.spawn(async move { sandbox.delete(&number.to_string()).await.unwrap() });
            }
            all.join_all().await;
            println!(
                "50 lite hosts are gone after {:.2} s",
                begun.elapsed().as_secs_f64()
            );
            assert_eq!(lab.world(), before);
            sandbox.clear().await.unwrap();
        },
    );
}

#[test]
fn a_power_cut_keeps_the_disk_and_is_another_boot() {
    apart(
        "lite::a_power_cut_keeps_the_disk_and_is_another_boot",
        Level::Lite,
        async |lab| {
            let sandbox = lab.open().await;
            let made = sandbox
                .create(&lab.order("one", Level::Lite))
                .await
                .unwrap();
            let boot = "cat /proc/sys/kernel/random/boot_id";
            let first = lab.ssh(&made, boot).unwrap();
            assert_eq!(lab.ssh(&made, boot).unwrap(), first);
            let service = "mkdir -p /etc/slipway/boot.d; printf '#!/bin/sh\\ndate >/run/begun\\n' >/etc/slipway/boot.d/x; \
                       chmod +x /etc/slipway/boot.d/x; echo kept >/var/lib/note";
            lab.ssh(&made, service).unwrap();

            sandbox.power_off("one").await.unwrap();
            sandbox.power_off("one").await.unwrap();
            assert_eq!(sandbox.find("one").await.unwrap().state, State::Off);
            lab.ssh(&made, "true").unwrap_err();
            sandbox.power_on("one").await.unwrap();
            sandbox.power_on("one").await.unwrap();
            assert_eq!(lab.ssh(&made, "cat /var/lib/note").unwrap(), "kept");
            let second = lab.ssh(&made, boot).unwrap();
            assert_ne!(second, first);
            let begun =
                "for n in $(seq 500); do test -e /run/begun && exit; sleep 0.02; done; exit 1";
            lab.ssh(&made, begun).unwrap();

            sandbox.reboot("one").await.unwrap();
            assert_ne!(lab.ssh(&made, boot).unwrap(), second);
            sandbox.power_off("absent").await.unwrap_err();
            sandbox.clear().await.unwrap();
        },
    );
}

#[test]
fn a_partition_is_seen_from_both_sides_and_outlives_a_reboot() {
    let name = "lite::a_partition_is_seen_from_both_sides_and_outlives_a_reboot";
    apart(name, Level::Lite, async |lab| {
        let sandbox = lab.open().await;
        let one = sandbox
            .create(&lab.order("one", Level::Lite))
            .await
            .unwrap();
        let two = sandbox
            .create(&lab.order("two", Level::Lite))
            .await
            .unwrap();
        let ping = format!("ping -c 1 -W 2 {}", two.address);
        lab.ssh(&one, &ping).unwrap();
        sandbox.partition("two", true).await.unwrap();
        lab.ssh(&one, &ping).unwrap_err();
        assert!(sandbox.find("two").await.unwrap().partitioned);
        sandbox.reboot("two").await.unwrap();
        lab.ssh(&one, &ping).unwrap_err();
        sandbox.partition("two", false).await.unwrap();
        sandbox.partition("two", false).await.unwrap();
        // Its neighbours may remember for a second that nobody was there.
        let again = format!("for n in $(seq 20); do {ping} && exit; done; exit 1");
        lab.ssh(&one, &again).unwrap();
        lab.ssh(&two, "true").unwrap();
        sandbox.clear().await.unwrap();
    });
}

#[test]
fn another_key_may_log_in_when_it_is_ordered() {
    apart(
        "lite::another_key_may_log_in_when_it_is_ordered",
        Level::Lite,
        async |lab| {
            let sandbox = lab.open().await;
            let order = lab.order("one", Level::Lite);
            let mut other = order.clone();
            other.authorized_key =
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx0W1w0cUe9CgyIk1mxTSpVOvE6YFbdBYXO8nMnzHLT"
                    .to_owned();
            let made = sandbox.create(&other).await.unwrap();
            lab.ssh(&made, "true").unwrap_err();
            assert_eq!(sandbox.create(&order).await.unwrap(), made);
            lab.ssh(&made, "true").unwrap();
            sandbox.power_off("one").await.unwrap();
            sandbox.create(&other).await.unwrap();
            lab.ssh(&made, "true").unwrap_err();
            sandbox.clear().await.unwrap();
        },
    );
}

#[test]
fn a_network_in_use_is_refused_and_two_sandboxes_live_side_by_side() {
    let name = "lite::a_network_in_use_is_refused_and_two_sandboxes_live_side_by_side";
    apart(name, Level::Lite, async |lab| {
        let before = lab.world();
        let one = lab.open().await;
        let made = one.create(&lab.order("same", Level::Lite)).await.unwrap();
        let mut settings = lab.settings(Ending::Stay);
        settings.dir = lab.dir.join("other");
        let two = Sandbox::open(settings.clone()).await.unwrap();
        let refused = two.create(&lab.order("same", Level::Lite)).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind, Kind::SubnetTaken, "{refused}");
        assert!(!settings.dir.join("programs").exists(), "nothing is left");
        drop(two);
        settings.subnet = "10.78.0.0/29".parse().unwrap();
        let two = Sandbox::open(settings).await.unwrap();
        let other = two.create(&lab.order("same", Level::Lite)).await.unwrap();
        assert_ne!(made.address, other.address);
        for number in 0..4 {
            two.create(&lab.order(&number.to_string(), Level::Lite))
                .await
                .unwrap();
        }
        let full = two
            .create(&lab.order("more", Level::Lite))
            .await
            .unwrap_err();
        assert_eq!(full.kind, Kind::SubnetFull, "{full}");
        two.clear().await.unwrap();
        lab.ssh(&made, "true").unwrap();
        one.clear().await.unwrap();
        one.create(&lab.order("again", Level::Lite)).await.unwrap();
        one.clear().await.unwrap();
        assert_eq!(lab.world(), before);
    });
}

#[test]
fn hosts_can_stand_on_the_files_of_this_machine() {
    let name = "lite::hosts_can_stand_on_the_files_of_this_machine";
    if !std::path::Path::new("/usr/sbin/sshd").exists() {
        return lab::skip(name, "the program sshd is missing");
    }
    apart(name, Level::Lite, async |lab| {
        let before = lab.world();
        let mut settings = lab.settings(Ending::Stay);
        settings.rootfs = Some("/".into());
        let sandbox = Sandbox::open(settings.clone()).await.unwrap();
        let made = sandbox
            .create(&lab.order("one", Level::Lite))
            .await
            .unwrap();
        // The machine's people and their keys are not the host's business, nor its files theirs.
        assert_eq!(
            lab.ssh(&made, "ls -A /root /home").unwrap(),
            "/home:\n\n/root:\n.ssh"
        );
        lab.ssh(
            &made,
            "echo mine >/etc/slipway-probe; echo kept >/root/note",
        )
        .unwrap();
        assert!(!std::path::Path::new("/etc/slipway-probe").exists());
        sandbox.power_off("one").await.unwrap();
        drop(sandbox);
        let sandbox = Sandbox::open(settings).await.unwrap();
        sandbox.power_on("one").await.unwrap();
        assert_eq!(
            lab.ssh(&made, "cat /etc/slipway-probe /root/note").unwrap(),
            "mine\nkept"
        );
        sandbox.clear().await.unwrap();
        drop(sandbox);
        lab.settles_to(&before).await;
    });
}

#[test]
fn what_hosts_shared_goes_with_the_last_of_them() {
    let name = "lite::what_hosts_shared_goes_with_the_last_of_them";
    apart(name, Level::Lite, async |lab| {
        let before = lab.world();
        let sandbox = lab.open().await;
        assert_eq!(lab.world(), before, "nothing is laid until there is a host");
        for id in ["one", "two"] {
            sandbox.create(&lab.order(id, Level::Lite)).await.unwrap();
        }
        let keys = keys(&lab.dir);
        let (one, two) = tokio::join!(sandbox.delete("one"), sandbox.delete("two"));
        one.unwrap();
        two.unwrap();
        lab.settles_to(&before).await;
        assert_eq!(left(&lab.dir.join("sandbox")), ["lock"]);
        for key in keys {
            assert_eq!(groups(&key), Vec::<std::path::PathBuf>::new());
        }

        // Another sandbox may have the addresses now.
        let mut settings = lab.settings(Ending::Stay);
        settings.dir = lab.dir.join("other");
        let other = Sandbox::open(settings.clone()).await.unwrap();
        let order = lab.order("one", Level::Lite);
        other.create(&order).await.unwrap();
        let refused = sandbox.create(&order).await.unwrap_err();
        assert_eq!(refused.kind, Kind::SubnetTaken, "{refused}");
        assert_eq!(left(&lab.dir.join("sandbox")), ["lock"]);
        other.delete("one").await.unwrap();
        sandbox.create(&order).await.unwrap();

        // A host that cannot be made leaves no more than one that was deleted.
        sandbox.delete("one").await.unwrap();
        drop((sandbox, other));
        settings.rootfs = Some(lab.dir.join("key"));
        let broken = Sandbox::open(settings.clone()).await.unwrap();
        broken.create(&order).await.unwrap_err();
        assert_eq!(left(&settings.dir), ["lock"]);
        drop(broken);
        lab.settles_to(&before).await;
    });
}

#[test]
fn who_deletes_the_last_host_does_no_harm_to_who_makes_the_next() {
    let name = "lite::who_deletes_the_last_host_does_no_harm_to_who_makes_the_next";
    apart(name, Level::Lite, async |lab| {
        let before = lab.world();
        let sandbox = lab.open().await;
        let ids = ["one", "two"];
        let mut made = sandbox.create(&lab.order("one", Level::Lite)).await;
        for round in 1..30_u64 {
            let (old, new) = if round % 2 == 0 {
                (ids[1], ids[0])
            } else {
                (ids[0], ids[1])
            };
            let order = lab.order(new, Level::Lite);
            let begins = async {
                // Another moment every time, over the time that deleting takes.
                tokio::time::sleep(std::time::Duration::from_millis(round * 3)).await;
                sandbox.create(&order).await
            };
            let (deleted, next) = tokio::join!(sandbox.delete(old), begins);
            deleted.unwrap();
            made = next;
            lab.ssh(made.as_ref().unwrap(), "true").unwrap();
        }
        made.unwrap();
        // Two who want the same one gone, and one who wants to cut its power, agree too.
        let (one, two, _) = tokio::join!(
            sandbox.delete("two"),
            sandbox.delete("two"),
            sandbox.power_off("two")
        );
        one.unwrap();
        two.unwrap();
        lab.settles_to(&before).await;
    });
}

/// The names of what a directory holds.
fn left(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}
