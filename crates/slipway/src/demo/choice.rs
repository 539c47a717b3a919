//! How much of the demo is real on this machine: looked at first, then decided in one place.

use super::world::{KUBERNETES, World};
use crate::roles::Options;
use anyhow::Context as _;
use hosts::artifacts::{Index, Name, Patience, Platform, Source, envoy, kubernetes, mirror};
use hosts::sandbox::{self, Means};
use model::manifest::Cluster;
use model::version::Version;
use std::path::Path;

/// What six machines with Kubernetes take of the disk: each has its own images.
const DISK_MIN: u64 = 8 << 30;

/// What they take of the memory.
const MEMORY_MIN: u64 = 4 << 30;

/// How people have Kubernetes built.
const HOW: &str = "`make demo KUBERNETES=1` builds it first, once and in some minutes (or `cargo \
                   xtask kubernetes`, then `make demo` again)";

/// What was found on this machine.
#[derive(Debug, Clone)]
struct Found {
    /// Whether a mirror has the proxy of load balancers.
    envoy: bool,
    /// How hosts can be made of this machine, or why not.
    means: Result<Means, String>,
    /// Why hosts with systemd cannot be.
    no_systemd: Option<String>,
    /// What is missing in all mirrors of what the example's Kubernetes is made of.
    missing: Vec<String>,
    /// How many bytes are free where the demo has its files, and of the memory, as far as we know.
    disk: Option<u64>,
    memory: Option<u64>,
    /// Which Kubernetes the example has.
    version: Version,
    /// Whether somebody asked for a simulated one.
    simulated: bool,
}

/// The most real world that this machine can have, or less where less was asked for.
pub(super) async fn find(options: &Options, simulated: bool) -> anyhow::Result<World> {
    let mut indexes = Vec::new();
    for source in &options.mirror {
        indexes.extend(listed(source).await);
    }
    let version = example()?.version;
    let platform = Platform::of_machine(std::env::consts::ARCH);
    let proxy = platform.and_then(|platform| envoy(platform).parse().ok());
    let lists = |name: &Name| indexes.iter().any(|index| index.get(name).is_some());
    let missing = match platform {
        Some(platform) => parts(version, platform)
            .filter(|name| !lists(name))
            .map(|name| name.to_string())
            .collect(),
        None => vec![format!("Kubernetes for {}", std::env::consts::ARCH)],
    };
    let told = |error: hosts::error::Error| error.to_string();
    Ok(choose(Found {
        envoy: proxy.is_some_and(|name| lists(&name)),
        means: sandbox::means().map_err(told),
        no_systemd: sandbox::fits_systemd().err().map(|error| error.what),
        missing,
        disk: free(&std::env::temp_dir()),
        memory: available(),
        version,
        simulated,
    }))
}

/// How many bytes are free in a directory.
fn free(directory: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(directory).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

/// How much memory programs can have without others losing theirs, in bytes.
fn available() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let mut lines = told.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes.saturating_mul(1024))
}

/// What a mirror has; one that cannot be read has nothing.
async fn listed(source: &Source) -> Option<Index> {
    mirror::list(source, Patience::default()).await.ok()
}

/// The cluster of the example.
fn example() -> anyhow::Result<Cluster> {
    let parsed = model::source::parse(KUBERNETES).ok();
    let manifest = parsed.and_then(|parsed| model::admit::admit(&parsed).ok());
    let cluster = manifest.and_then(|manifest| manifest.clusters.into_iter().next());
    cluster.context("the example with Kubernetes cannot be read")
}

/// All that the example takes of a mirror besides Envoy.
fn parts(version: Version, platform: Platform) -> impl Iterator<Item = Name> {
    let programs = kubernetes::PROGRAMS.into_iter();
    let programs = programs.filter_map(move |name| kubernetes::program(version, platform, name));
    let images = kubernetes::CONTROL_IMAGES.into_iter();
    let images = images.chain(kubernetes::IMAGES);
    let images = images.filter_map(move |name| kubernetes::image(version, platform, name));
    let echo = format!("{}/echo.tar", pods(platform)).parse().ok();
    programs.chain(images).chain(echo)
}

/// Below which a mirror has the images of the demo's pods.
pub(super) fn pods(platform: Platform) -> String {
    format!("lab/{}/images", platform.as_str())
}

/// Decides; whatever is not real has its reason.
fn choose(found: Found) -> World {
    if !found.envoy {
        let why = "no mirror is named that has Envoy for the load balancer; `make demo` makes one";
        return World::Simulated(why.to_owned());
    }
    let means = match found.means {
        Ok(means) => means,
        Err(why) => return World::Simulated(why),
    };
    let why = if found.simulated {
        "it was asked for".to_owned()
    } else if let Some(why) = found.no_systemd {
        format!("{why}; `make demo` as root has what it takes")
    } else if let Some(first) = found.missing.first() {
        let version = found.version;
        format!("no mirror has all of {version}, such as {first};\n{HOW}")
    } else if let Some(why) = narrow(found.disk, found.memory) {
        why
    } else {
        return World::Kubernetes;
    };
    World::Hosts(means, why)
}

/// Why there is no room for a real Kubernetes.
fn narrow(disk: Option<u64>, memory: Option<u64>) -> Option<String> {
    let short = |has: Option<u64>, least: u64| has.filter(|has| *has < least);
    let told = |what: &str, has: u64, least: u64| {
        let (has, least) = (has >> 20, least >> 20);
        format!("a real one takes {least} MiB of {what} and {has} are free")
    };
    if let Some(has) = short(disk, DISK_MIN) {
        let why = told("the disk", has, DISK_MIN);
        return Some(format!("{why}; TMPDIR names a directory on another one"));
    }
    short(memory, MEMORY_MIN).map(|has| told("memory", has, MEMORY_MIN))
}

#[cfg(test)]
mod tests {
    use super::super::world::CLUSTER;
    use super::*;

    /// A machine that can have everything.
    fn best() -> Found {
        Found {
            envoy: true,
            means: Ok(Means::Here),
            no_systemd: None,
            missing: Vec::new(),
            disk: Some(DISK_MIN),
            memory: Some(MEMORY_MIN),
            version: example().unwrap().version,
            simulated: false,
        }
    }

    /// What is chosen, and why it is not more.
    fn chosen(found: Found) -> (&'static str, String) {
        match choose(found) {
            World::Kubernetes => ("kubernetes", String::new()),
            World::Hosts(Means::Here, why) => ("hosts", why),
            World::Hosts(Means::ByEntering, why) => ("hosts by entering", why),
            World::Simulated(why) => ("simulated", why),
        }
    }

    #[test]
    fn what_can_be_real_is() {
        assert_eq!(chosen(best()).0, "kubernetes");
        // Who does not know how much room there is tries.
        let (disk, memory) = (None, None);
        let unknown = Found {
            disk,
            memory,
            ..best()
        };
        assert_eq!(chosen(unknown).0, "kubernetes");
    }

    #[test]
    fn without_room_kubernetes_is_simulated() {
        let disk = Some(DISK_MIN - 1);
        let (world, why) = chosen(Found { disk, ..best() });
        assert_eq!(world, "hosts");
        assert!(why.contains("8192 MiB of the disk and 8191"), "{why}");
        assert!(why.contains("TMPDIR"), "{why}");
        let memory = Some(MEMORY_MIN - 1);
        let (world, why) = chosen(Found { memory, ..best() });
        assert_eq!(world, "hosts");
        assert!(why.contains("4096 MiB of memory and 4095"), "{why}");
    }

    #[test]
    fn this_machine_knows_how_much_room_it_has() {
        assert!(free(Path::new("/")).is_some());
        assert!(available().is_some_and(|memory| memory > 0));
    }

    #[test]
    fn without_its_parts_kubernetes_is_simulated_and_how_to_get_them_is_told() {
        let missing = vec!["kubernetes/v1.34.4/linux-amd64/kubelet".to_owned()];
        let (world, why) = chosen(Found { missing, ..best() });
        assert_eq!(world, "hosts");
        for word in [
            "v1.34.4/linux-amd64/kubelet",
            "make demo KUBERNETES=1",
            "cargo xtask kubernetes",
        ] {
            assert!(why.contains(word), "{word}: {why}");
        }
    }

    #[test]
    fn who_is_not_root_is_told_so_before_what_is_missing() {
        let (world, why) = chosen(Found {
            means: Ok(Means::ByEntering),
            no_systemd: Some("it takes root of the machine".to_owned()),
            missing: vec!["everything".to_owned()],
            ..best()
        });
        assert_eq!(world, "hosts by entering");
        assert!(why.starts_with("it takes root"), "{why}");
        assert!(
            why.contains("as root") && !why.contains("everything"),
            "{why}"
        );
    }

    #[test]
    fn less_is_shown_where_less_was_asked_for() {
        let simulated = true;
        let (world, why) = chosen(Found {
            simulated,
            ..best()
        });
        assert_eq!((world, why.as_str()), ("hosts", "it was asked for"));
    }

    #[test]
    fn without_hosts_or_a_load_balancer_everything_is_simulated() {
        let means = Err("no namespaces".to_owned());
        let told = chosen(Found { means, ..best() });
        assert_eq!(told, ("simulated", "no namespaces".to_owned()));
        let envoy = false;
        let (world, why) = chosen(Found { envoy, ..best() });
        assert_eq!(world, "simulated");
        assert!(why.contains("Envoy"), "{why}");
    }

    #[test]
    fn the_example_is_what_we_say_and_what_the_lab_builds() {
        let Cluster { name, version, .. } = example().unwrap();
        assert_eq!(name.as_str(), CLUSTER);
        assert_eq!(version.to_string(), lab::kubernetes::VERSIONS[0]);
        let names: Vec<_> = parts(version, Platform::Amd64).collect();
        assert_eq!(names.len(), 11, "{names:?}");
        let last = names.last().unwrap();
        assert_eq!(last.as_str(), "lab/linux-amd64/images/echo.tar");
    }
}
