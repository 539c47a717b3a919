//! Hosts of the level `systemd`.

use crate::apart::{apart, groups, keys};
use hosts::sandbox::{Level, State};
use std::time::Instant;

#[test]
fn a_systemd_host_boots_reboots_and_leaves_nothing() {
    let name = "systemd::a_systemd_host_boots_reboots_and_leaves_nothing";
    apart(name, Level::Systemd, async |lab| {
        let before = lab.world();
        let sandbox = lab.open().await;
        let begun = Instant::now();
        let made = sandbox
            .create(&lab.order("one", Level::Systemd))
            .await
            .unwrap();
        println!(
            "a systemd host answers after {:.2} s",
            begun.elapsed().as_secs_f64()
        );
        let state = lab
            .ssh(&made, "systemctl is-system-running --wait || :")
            .unwrap();
        let failed = lab.ssh(&made, "systemctl --failed --no-legend").unwrap();
        assert!(
            matches!(state.as_str(), "running" | "degraded"),
            "{state}: {failed}"
        );
        println!("it is {state}; failed units: {failed:?}");
        assert_eq!(
            lab.ssh(&made, "cat /proc/1/comm; hostname").unwrap(),
            "systemd\nhost-one"
        );
        fit_for_kubernetes(&lab, &made);
        let key = keys(&lab.dir).pop_first().unwrap();
        assert!(!groups(&key).is_empty());

        let boot = "cat /proc/sys/kernel/random/boot_id";
        let first = lab.ssh(&made, boot).unwrap();
        lab.ssh(&made, "echo kept >/var/lib/note").unwrap();
        let begun = Instant::now();
        sandbox.reboot("one").await.unwrap();
        println!("it is back after {:.2} s", begun.elapsed().as_secs_f64());
        let second = lab.ssh(&made, boot).unwrap();
        assert_ne!(second, first);
        assert_eq!(lab.ssh(&made, "cat /var/lib/note").unwrap(), "kept");

        sandbox.power_off("one").await.unwrap();
        assert_eq!(sandbox.find("one").await.unwrap().state, State::Off);
        drop(sandbox);
        let sandbox = lab.open().await;
        sandbox.power_on("one").await.unwrap();
        assert_ne!(lab.ssh(&made, boot).unwrap(), second);
        sandbox.partition("one", true).await.unwrap();
        lab.ssh(&made, "true").unwrap_err();
        sandbox.partition("one", false).await.unwrap();
        sandbox
            .create(&lab.order("one", Level::Systemd))
            .await
            .unwrap();

        sandbox.clear().await.unwrap();
        drop(sandbox);
        lab.settles_to(&before).await;
        assert_eq!(groups(&key), Vec::<std::path::PathBuf>::new());
    });
}

/// What kubeadm and container runtimes ask of a machine.
fn fit_for_kubernetes(lab: &crate::apart::Lab, made: &hosts::sandbox::Made) {
    let settings =
        "cat /proc/sys/vm/overcommit_memory /proc/sys/kernel/panic /proc/sys/kernel/panic_on_oops";
    assert_eq!(lab.ssh(made, settings).unwrap(), "1\n10\n1");
    lab.ssh(made, "test -c /dev/kmsg && test -c /dev/net/tun")
        .unwrap();
    lab.ssh(made, "sysctl -w net.ipv4.ip_forward=1").unwrap();
    let group = "for g in /sys/fs/cgroup/memory /sys/fs/cgroup; do \
                 test -e $g/cgroup.procs || continue; mkdir $g/probe && rmdir $g/probe && exit; done; exit 1";
    lab.ssh(made, group).unwrap();
    let runtime = "systemctl is-active containerd && ctr version >/dev/null";
    assert_eq!(lab.ssh(made, runtime).unwrap(), "active");
    let container = "mkdir /mnt/root && mount --bind / /mnt/root && \
                     ctr run --rm --rootfs /mnt/root probe /bin/echo works && \
                     umount /mnt/root && rmdir /mnt/root";
    assert_eq!(lab.ssh(made, container).unwrap(), "works");
    // Overlay on overlay is refused: the runtime needs a disk of the machine.
    let layers = "cd /var/lib/containerd && mkdir -p p/l p/u p/w p/m && \
                  mount -t overlay o -o lowerdir=p/l,upperdir=p/u,workdir=p/w p/m && umount p/m && rm -r p";
    lab.ssh(made, layers).unwrap();
}
