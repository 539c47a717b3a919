//! Whether a change leaves a cluster without what it cannot do without.

use crate::blast::Blast;
use model::cluster::{Desired, Role};
use model::manifest::{Manifest, Pool};

/// What would be left too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranded {
    /// Whose machines go: of the control plane, or all those that take workloads.
    pub role: Role,
    /// How many of them, of how many.
    pub blast: Blast,
}

/// What `next` strands of a cluster whose machines are these: a control plane of which fewer stay than
/// decide now, or workloads that have nowhere to go. A pool that is scaled may be empty, where the manifest
/// has it take workloads, and a cluster that goes as a whole was asked for. Machines that nobody has discovered
/// take nobody's place.
pub fn stranded(there: &Desired, next: &Desired, manifest: &Manifest) -> Option<Stranded> {
    if next.tombstone {
        return None;
    }
    let control = Blast::of_role(there, next, Role::Control);
    let members = size(next, Role::Control);
    if control.of > 0 && members < control.of / 2 + 1 {
        let role = Role::Control;
        return Some(Stranded {
            role,
            blast: control,
        });
    }
    let compute = Blast::of_role(there, next, Role::Compute);
    let none = size(next, Role::Compute) == 0 && !may_grow(next, manifest);
    (compute.removed > 0 && none).then_some(Stranded {
        role: Role::Compute,
        blast: compute,
    })
}

/// Whether a pool that takes workloads is scaled: machines may come to it without another word.
fn may_grow(desired: &Desired, manifest: &Manifest) -> bool {
    let mut clusters = manifest.clusters.iter();
    let cluster = clusters.find(|cluster| cluster.name == desired.name);
    let mut compute = cluster.into_iter().flat_map(|cluster| &cluster.compute);
    compute.any(|pool| match manifest.pools.get(pool) {
        Some(Pool::Dynamic(pool)) => pool.autoscaler.is_some(),
        Some(Pool::Static(_) | Pool::Metal(_)) | None => false,
    })
}

/// How many machines of a role there should be of which anybody knows.
fn size(desired: &Desired, role: Role) -> u32 {
    let machines = desired.machines.iter().filter(|of| of.role == role);
    u32::try_from(machines.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use model::admit::admit;
    use model::cluster::MetalWanted;
    use model::source;

    /// A manifest of a cluster with these pools for workloads, and a load balancer whose pool is scaled.
    fn manifest(compute: &str) -> Manifest {
        let pool = |name: &str, size: &str| {
            format!(
                "{{name: {name}, providerSpec: {{name: lab, region: n}}, {size}, serverType: lite, image: i}}"
            )
        };
        let (brain, door) = (
            pool("brain", "count: 1"),
            pool("door", "autoscaler: {min: 1, max: 2}"),
        );
        let muscle = pool("muscle", "autoscaler: {min: 0, max: 2}");
        let muscle = if compute.is_empty() {
            String::new()
        } else {
            muscle
        };
        let text = format!(
            "
apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: m}}
spec:
  providers: [{{name: lab, providerType: sandbox}}]
  nodePools: {{dynamic: [{brain}, {door}, {muscle}]}}
  kubernetes: {{clusters: [{{name: edge, version: 1.34.0, network: 10.8.0.0/24, pools: {{control: [brain], compute: [{compute}]}}}}]}}
  loadBalancers:
    roles: [{{name: web, protocol: tcp, port: 443, targetPort: 30443, targetPools: [brain]}}]
    clusters: [{{name: front, targetedK8s: edge, pools: [door], roles: [web]}}]
"
        );
        admit(&source::parse(&text).unwrap()).unwrap()
    }

    /// What is stranded when these machines become those, and pools for workloads are these.
    fn check_of(before: &str, after: &str, compute: &str) -> Option<(Role, u32)> {
        let world = |want| {
            let mut desired = World::new("1.34.0", want, "").desired;
            let door = "door".parse().unwrap();
            let scaled = model::scaling::Autoscaler { min: 1, max: 2 };
            desired.autoscalers.insert(door, scaled);
            desired
        };
        let found = stranded(&world(before), &world(after), &manifest(compute));
        found.map(|found| (found.role, found.blast.percent()))
    }

    fn check(before: &str, after: &str) -> Option<(Role, u32)> {
        check_of(before, after, "")
    }

    #[test]
    fn a_control_plane_does_not_shrink_below_those_that_decide() {
        assert_eq!(check("c1 c2 c3 w1", "c1 w1"), Some((Role::Control, 67)));
        assert_eq!(check("c1 c2 c3 c4 c5", "c1 c2 c3"), None);
        assert_eq!(check("c1 c2 c3 c4 c5", "c1"), Some((Role::Control, 80)));
        // Others come in their place.
        assert_eq!(check("c1 w1", "c2 w1"), None);
    }

    #[test]
    fn the_last_machine_for_workloads_goes_only_when_that_is_said() {
        assert_eq!(check("c1 w1", "c1"), Some((Role::Compute, 100)));
        assert_eq!(check("c1 w1 w2", "c1 w1"), None);
        assert_eq!(check("c1 w1", "c1 w2"), None);
        assert_eq!(check("c1", "c1"), None);
        // The whole cluster goes.
        assert_eq!(check("c1 w1", ""), None);
    }

    #[test]
    fn machines_that_nobody_has_discovered_take_nobodys_place() {
        let metal = |before: &str, after: &str, role| {
            let mut next = World::new("1.34.0", after, "").desired;
            next.metal.push(MetalWanted {
                pool: "iron".parse().unwrap(),
                role,
                balancer: None,
                count: 3,
                selector: [("rack".to_owned(), "a1".to_owned())].into(),
            });
            let there = World::new("1.34.0", before, "").desired;
            stranded(&there, &next, &manifest("")).map(|found| found.role)
        };
        let (control, compute) = (Role::Control, Role::Compute);
        assert_eq!(metal("c1 c2 c3 w1", "c1 c2 c3", compute), Some(compute));
        assert_eq!(metal("c1 c2 c3 w1", "c1 w1", control), Some(control));
        // They come beside those that stay, or where nobody was.
        assert_eq!(metal("c1 w1", "c1 w1", compute), None);
        assert_eq!(metal("c1", "c1", compute), None);
        assert_eq!(metal("w1", "w1", control), None);
    }

    #[test]
    fn a_pool_of_a_load_balancer_that_is_scaled_takes_no_workloads() {
        assert_eq!(check_of("c1 w1", "c1", ""), Some((Role::Compute, 100)));
        assert_eq!(check_of("c1 w1", "c1", "muscle"), None);
    }
}
