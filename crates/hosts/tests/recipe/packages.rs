//! Packages with the real apt and dpkg, out of a repository that the test makes.

use crate::world::{World, possible};
use hosts::recipe::item::{Item, Mirror, Source};
use hosts::recipe::{Kubernetes, kubernetes_packages, render};
use std::time::Duration;

const LIMIT: Duration = Duration::from_mins(2);

/// Makes a repository in `/srv/NAME` with packages `NAME VERSION DEPENDS` and their index.
pub(crate) fn repository(world: &World, name: &str, packages: &[(&str, &str, &str)]) {
    let mut text = format!("mkdir -p /srv/{name}; cd /srv/{name}; : >Packages\n");
    for (package, version, depends) in packages {
        text.push_str(&format!(
            "mkdir -p /tmp/b/DEBIAN /tmp/b/usr/share/{package}; echo x >/tmp/b/usr/share/{package}/x
printf 'Package: {package}\\nVersion: {version}\\nArchitecture: all\\nMaintainer: T <t@example.org>\\n{depends}Description: test\\n' >/tmp/b/DEBIAN/control
f={package}_{version}_all.deb
dpkg-deb --root-owner-group -Znone --build /tmp/b $f >/dev/null
{{ cat /tmp/b/DEBIAN/control; echo \"Filename: ./$f\"; echo \"Size: $(stat -c %s $f)\"; set -- $(sha256sum $f); echo \"SHA256: $1\"; echo; }} >>Packages
rm -r /tmp/b\n"
        ));
    }
    world.sh(&text);
}

/// Makes it the only source of the distribution's packages.
pub(crate) fn distribution(world: &World, name: &str) {
    world.sh(&format!(
        "rm -rf /etc/apt/sources.list.d /etc/apt/apt.conf.d/*proxy* /var/lib/apt/lists; \
         mkdir -p /etc/apt/sources.list.d /var/lib/apt/lists/partial; \
         echo 'deb [trusted=yes] file:/srv/{name} ./' >/etc/apt/sources.list"
    ));
}

fn installed(world: &World, package: &str) -> String {
    world.sh(&format!(
        "dpkg-query -W -f '${{db:Status-Status}} ${{Version}}' {package} 2>/dev/null || :"
    ))
}

fn packages(names: &[&str], source: Source) -> Item {
    Item::Packages {
        names: names.iter().map(|&name| name.to_owned()).collect(),
        source,
        held: false,
    }
}

#[test]
fn what_we_installed_goes_and_what_others_need_stays() {
    if !possible("what_we_installed_goes_and_what_others_need_stays") {
        return;
    }
    let world = World::new();
    let all = [
        ("sw-top", "1.0", "Depends: sw-low\n"),
        ("sw-low", "1.0", ""),
        ("sw-before", "1.0", ""),
        ("sw-theirs", "1.0", "Depends: sw-low\n"),
    ];
    repository(&world, "all", &all);
    distribution(&world, "all");
    world.sh("dpkg -i /srv/all/sw-before_1.0_all.deb >/dev/null");
    let wish = render(&[Item::packages(&["sw-top", "sw-before"])], "test", LIMIT);
    assert_eq!(world.apply(&wish), 1);
    // A second run asks dpkg alone.
    world.sh("mv /usr/bin/apt-get /usr/bin/apt-gone; printf '#!/bin/sh\\nexit 9\\n' >/usr/bin/apt-get; chmod 755 /usr/bin/apt-get");
    assert_eq!(world.apply(&wish), 0);
    world.sh(
        "mv /usr/bin/apt-gone /usr/bin/apt-get; dpkg -i /srv/all/sw-theirs_1.0_all.deb >/dev/null",
    );
    let gone = render(&[Item::Removed { names: None }], "test", LIMIT);
    assert_eq!(world.apply(&gone), 1);
    assert_eq!(world.apply(&gone), 0);
    assert!(!installed(&world, "sw-top").starts_with("installed"));
    for stays in ["sw-before", "sw-low", "sw-theirs"] {
        assert_eq!(installed(&world, stays), "installed 1.0", "{stays}");
    }
}

#[test]
fn packages_come_from_a_directory_or_a_mirror_and_stay_as_wished() {
    if !possible("packages_come_from_a_directory_or_a_mirror_and_stay_as_wished") {
        return;
    }
    let world = World::new();
    repository(&world, "none", &[]);
    distribution(&world, "none");
    repository(
        &world,
        "pushed",
        &[
            ("sw-top", "1.0", "Depends: sw-low\n"),
            ("sw-low", "1.0", ""),
        ],
    );
    let wish = packages(&["sw-top"], Source::Directory("/srv/pushed".to_owned()));
    let wish = render(&[wish], "test", LIMIT);
    assert_eq!(world.apply(&wish), 1);
    assert_eq!(world.apply(&wish), 0);
    assert_eq!(installed(&world, "sw-low"), "installed 1.0");

    let kube =
        |version: &'static str| ["kubelet", "kubeadm", "kubectl"].map(|name| (name, version, ""));
    let mut both = kube("1.34.1-1.1").to_vec();
    both.extend(kube("1.35.0-1.1"));
    repository(&world, "kube", &both);
    let source = Kubernetes::Packages(Source::Mirror(Mirror {
        name: "kubernetes".to_owned(),
        url: "file:/srv/kube".to_owned(),
        suite: "./".to_owned(),
        components: Vec::new(),
        key: None,
    }));
    for version in ["v1.34.1", "v1.35.0"] {
        let wish = render(&kubernetes_packages(version, &source), "test", LIMIT);
        assert!(world.apply(&wish) >= 1);
        assert_eq!(world.apply(&wish), 0);
        let is = installed(&world, "kubelet");
        assert_eq!(is, format!("installed {}-1.1", &version[1..]));
        assert_eq!(world.sh("apt-mark showhold"), "kubeadm\nkubectl\nkubelet");
    }
}

#[test]
fn programs_that_were_pushed_are_verified_and_placed() {
    if !possible("programs_that_were_pushed_are_verified_and_placed") {
        return;
    }
    let world = World::new();
    world.sh("rm -f /usr/bin/kube*; mkdir /srv/b; for p in kubelet kubeadm kubectl; do echo $p >/srv/b/$p; done; echo broken >/srv/b/kubectl");
    let digest = |name: &str| world.sh(&format!("echo {name} | sha256sum | cut -d' ' -f1"));
    let program = |name: &str| (name.to_owned(), digest(name), 8);
    let from = Kubernetes::Programs {
        directory: "/srv/b".to_owned(),
        programs: ["kubelet", "kubeadm", "kubectl"].map(program).to_vec(),
    };
    let wish = render(&kubernetes_packages("v1.34.1", &from), "test", LIMIT);
    assert_eq!(world.refuse(&wish).0, "HOST-019");
    world.sh("[ ! -e /usr/bin/kubectl ]; rm /srv/b/kubectl");
    assert_eq!(world.refuse(&wish).0, "HOST-008");
    world.sh("echo kubectl >/srv/b/kubectl");
    assert_eq!(world.apply(&wish), 3);
    assert_eq!(world.apply(&wish), 0);
    assert_eq!(
        world.sh("stat -c %a /usr/bin/kubelet; cat /usr/bin/kubelet"),
        "755\nkubelet"
    );
    world.sh("echo other >/usr/bin/kubelet");
    assert_eq!(world.apply(&wish), 1);
}

#[test]
fn a_killed_dpkg_is_mended_and_what_cannot_be_had_is_told() {
    if !possible("a_killed_dpkg_is_mended_and_what_cannot_be_had_is_told") {
        return;
    }
    let world = World::new();
    repository(
        &world,
        "all",
        &[
            ("sw-top", "1.0", "Depends: sw-low\n"),
            ("sw-low", "1.0", ""),
        ],
    );
    distribution(&world, "all");
    let (code, what) = world.refuse(&render(&[Item::packages(&["sw-nowhere"])], "test", LIMIT));
    assert_eq!(code, "HOST-014", "{what}");
    world.sh("dpkg --unpack /srv/all/sw-top_1.0_all.deb /srv/all/sw-low_1.0_all.deb >/dev/null");
    let wish = render(&[Item::packages(&["sw-top"])], "test", LIMIT);
    assert_eq!(world.apply(&wish), 1);
    assert_eq!(world.apply(&wish), 0);
    world.sh("dpkg --purge sw-top sw-low >/dev/null; mount -t tmpfs -o size=16k tmpfs /usr/share/sw-low 2>/dev/null || \
              { mkdir -p /usr/share/sw-low; mount -t tmpfs -o size=16k tmpfs /usr/share/sw-low; }; \
              head -c 100000 /dev/zero >/usr/share/sw-low/fill 2>/dev/null || :");
    let (code, what) = world.refuse(&wish);
    assert_eq!(code, "HOST-006", "{what}");
}
