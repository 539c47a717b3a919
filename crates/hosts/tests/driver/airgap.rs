//! Hosts without a network get their packages from a mirror: real packages, by the real apt.

use crate::apart::{apart, runtime};
use crate::host::Host;
use hosts::artifacts::{Source, mirror, packages, quiet};
use hosts::recipe::package_names;
use hosts::sandbox::Level;
use model::host::Fingerprint;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Whether it could be made: the tests of this program begin together, and apt lets nobody else in.
static MADE: OnceLock<Result<(), String>> = OnceLock::new();

/// A mirror of all packages that hosts may need, made once; a test is skipped where it cannot be.
pub(crate) fn collected(test: &str) -> Option<PathBuf> {
    let names: Vec<String> = package_names().into_iter().collect();
    let mark = Fingerprint::of_text(&names.join(" "));
    let at = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("packages-{mark}"));
    // Inside there is no network to make it from; and it is never half there.
    if lab::within().is_some() || at.join("index.json").exists() {
        return Some(at);
    }
    let made = MADE.get_or_init(|| {
        let names = package_names();
        let made = runtime().block_on(packages::collect(&at, &names, &quiet));
        made.map(drop).map_err(|error| error.to_string())
    });
    match made {
        Ok(()) => Some(at),
        Err(error) => {
            lab::skip(test, &format!("there are no packages here: {error}"));
            None
        }
    }
}

/// The only directory with packages in a mirror.
fn shelf(mirror: &Path) -> PathBuf {
    let mut at = mirror.join("deb");
    for _ in 0..2 {
        at = std::fs::read_dir(at)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
    }
    at
}

/// A mirror with copies of these packages alone; the last ones are listed and not there.
async fn smaller(from: &Path, to: &Path, names: &[&str], gone: &[&str]) -> Source {
    let from = shelf(from);
    let system = from.strip_prefix(from.ancestors().nth(3).unwrap()).unwrap();
    let at = to.join(system);
    std::fs::create_dir_all(&at).unwrap();
    let all = std::fs::read_to_string(from.join("Packages")).unwrap();
    let mut kept = String::new();
    for stanza in all.split_inclusive("\n\n") {
        let field = |key: &str| {
            let line = stanza.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_default().trim().to_owned()
        };
        let (name, file) = (field("Package:"), field("Filename:"));
        if names.contains(&name.as_str()) || gone.contains(&name.as_str()) {
            kept.push_str(stanza);
        }
        if names.contains(&name.as_str()) {
            std::fs::copy(from.join(&file), at.join(&file)).unwrap();
        }
    }
    std::fs::write(at.join("Packages"), kept).unwrap();
    mirror::index(to, &quiet).await.unwrap();
    Source::Directory(to.to_owned())
}

#[test]
fn a_host_without_sources_gets_its_packages_from_a_mirror() {
    let name = "airgap::a_host_without_sources_gets_its_packages_from_a_mirror";
    let Some(all) = collected(name) else {
        return;
    };
    apart(name, Level::Lite, async |lab| {
        let dir = lab.dir.clone();
        let mut host = Host::new(lab).await;
        let (ended, log) = host.equip().await;
        assert!(ended.starts_with("retry"), "{ended}");
        assert!(log.contains("the host's own sources"), "{log}");

        // A mirror without packages says nothing about packages.
        let other = dir.join("other");
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("tool"), "tool").unwrap();
        mirror::index(&other, &quiet).await.unwrap();
        host.mirrors(vec![Source::Directory(other.clone())]);
        let (ended, log) = host.equip().await;
        assert!(ended.contains("HOST-014"), "{ended}");
        assert!(log.contains("no mirror has packages for debian"), "{log}");

        host.mirrors([other, all].map(Source::Directory).to_vec());
        let (ended, log) = host.equip().await;
        assert_eq!(ended, "done", "{log}");
        assert!(log.contains("from the mirror, deb/debian-"), "{log}");
        assert!(log.contains("packages: 2 brought"), "{log}");
        assert_eq!(host.on_host("wg --version | cut -c1-15"), "wireguard-tools");
        let left = host.on_host("ls -d /var/lib/slipway/debs /etc/apt/sources.list.d 2>&1 | wc -l; cat /etc/apt/sources.list");
        assert!(left.starts_with('2'), "{left}");
        let picture = host.picture();
        let (ended, log) = host.equip().await;
        assert_eq!(ended, "done", "{log}");
        assert!(log.contains("packages: none is missing"), "{log}");
        assert!(log.contains("equip: 0 changed"), "{log}");
        assert_eq!(host.picture(), picture);
        host.sandbox.clear().await.unwrap();
    });
}

/// Turns one bit of each package.
fn spoil(mirror: &Path) {
    for entry in std::fs::read_dir(shelf(mirror)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "deb") {
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn what_is_wrong_with_a_mirror_is_told() {
    let name = "airgap::what_is_wrong_with_a_mirror_is_told";
    let Some(all) = collected(name) else {
        return;
    };
    apart(name, Level::Lite, async |lab| {
        let dir = lab.dir.clone();
        let mut host = Host::new(lab).await;
        let before = host.packages();
        let both = ["wireguard-go", "wireguard-tools"];

        let lacking = smaller(&all, &dir.join("lacking"), &both[1..], &[]).await;
        host.mirrors(vec![lacking]);
        let (ended, log) = host.equip().await;
        assert!(ended.starts_with("stuck"), "{log}");
        assert!(
            ended.contains("the mirror lacks wireguard-go (ARTIFACT-006)"),
            "{ended}"
        );
        assert!(
            ended.contains("; make them anew with `slipway mirror packages`"),
            "{ended}"
        );

        let unmet = dir.join("unmet");
        let source = smaller(&all, &unmet, &both, &[]).await;
        let index = shelf(&unmet).join("Packages");
        let text = std::fs::read_to_string(&index).unwrap();
        let more = text.replace("\nDepends: ", "\nDepends: sw-nowhere, ");
        assert_ne!(more, text);
        std::fs::write(&index, more).unwrap();
        mirror::index(&unmet, &quiet).await.unwrap();
        host.mirrors(vec![source]);
        let (ended, log) = host.equip().await;
        assert!(
            ended.contains("the mirror lacks sw-nowhere (ARTIFACT-006)"),
            "{ended}\n{log}"
        );

        let gone = smaller(&all, &dir.join("gone"), &both[1..], &both[..1]).await;
        host.mirrors(vec![gone]);
        let (ended, _) = host.equip().await;
        assert!(
            ended.contains("could not get deb/debian-") && ended.contains("wireguard-go_"),
            "{ended}"
        );
        assert!(ended.contains("(ARTIFACT-002)"), "{ended}");

        let damaged = dir.join("damaged");
        let source = smaller(&all, &damaged, &both, &[]).await;
        spoil(&damaged);
        host.mirrors(vec![source]);
        let (ended, _) = host.equip().await;
        assert!(ended.starts_with("stuck"), "{ended}");
        assert!(
            ended.contains("(ARTIFACT-001); the mirror holds another file"),
            "{ended}"
        );

        host.mirrors(vec!["http://127.0.0.1:1/".parse().unwrap()]);
        let (ended, _) = host.equip().await;
        assert!(
            ended.starts_with("retry") && ended.contains("ARTIFACT-003"),
            "{ended}"
        );

        // None of this has installed anything.
        assert_eq!(host.packages(), before);
        let good = smaller(&all, &dir.join("good"), &both, &[]).await;
        host.mirrors(vec![good]);
        let (ended, log) = host.equip().await;
        assert_eq!(ended, "done", "{log}");
        host.sandbox.clear().await.unwrap();
    });
}

#[test]
fn a_host_that_was_killed_while_it_got_packages_ends_in_the_same_world() {
    let name = "airgap::a_host_that_was_killed_while_it_got_packages_ends_in_the_same_world";
    let Some(all) = collected(name) else {
        return;
    };
    apart(name, Level::Lite, async |lab| {
        let mut host = Host::new(lab).await;
        let sources = vec![Source::Directory(all)];
        host.mirrors(sources.clone());
        let (ended, log) = host.equip().await;
        assert_eq!(ended, "done", "{log}");
        let picture = host.picture();
        let moments = [
            "from the mirror",
            "brought wireguard",
            "packages: 2 brought",
            "Unpacking wireguard-tools",
            "Setting up wireguard-tools",
            "Unpacking wireguard-go",
            "Setting up wireguard-go",
        ];
        for (at, moment) in moments.into_iter().enumerate() {
            host.strip();
            host.mirrors(sources.clone());
            assert!(host.equip_until(moment).await, "it never said {moment:?}");
            // Our own end and that of the host, in turn.
            if at % 2 == 1 {
                host.sandbox.power_off(Host::ID).await.unwrap();
                host.sandbox.power_on(Host::ID).await.unwrap();
            }
            host.mirrors(sources.clone());
            let (ended, log) = host.equip().await;
            assert_eq!(ended, "done", "killed at {moment:?}: {log}");
            assert_eq!(host.picture(), picture, "killed at {moment:?}");
            let (_, log) = host.equip().await;
            assert!(
                log.contains("equip: 0 changed"),
                "killed at {moment:?}: {log}"
            );
        }
        host.sandbox.clear().await.unwrap();
    });
}
