//! Pools of machines that were discovered.

use super::{check, expect};

const METAL: (&str, &str) = (
    "    static:",
    "    metal:
      - {name: iron, selector: {rack: a1, example.org/size: big}, count: 2, taints: [{key: gpu, effect: NoSchedule}]}
    static:",
);
const USED: (&str, &str) = ("compute: [muscle, attic]", "compute: [muscle, attic, iron]");

#[test]
fn machines_are_chosen_by_their_labels() {
    check(
        &[METAL, USED],
        &expect![[r#"
        admitted: 1 clusters, 4 pools
    "#]],
    );
    check(
        &[
            METAL,
            (
                "{rack: a1, example.org/size: big}, count: 2,",
                "{Rack!: a1, size: [1], row: 'a b'}, count: 0, sshPort: 22,",
            ),
        ],
        &expect![[r#"
            spec.nodePools.metal[0].name: found `iron`, which no cluster and no load balancer uses; remove it or name it in one
            spec.nodePools.metal[0].selector[Rack!]: found `Rack!`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`, behind a domain and a slash if wished
            spec.nodePools.metal[0].selector[size]: found a list, allowed: a text
            spec.nodePools.metal[0].selector[row]: found `a b`, allowed: at most 63 letters, digits and, inside, `-`, `_` and `.`
            spec.nodePools.metal[0].count: found `0`, allowed: a whole number from 1 to 5000
            spec.nodePools.metal[0].sshPort: unknown field; allowed: name, count, selector, disruption, labels, annotations, taints
        "#]],
    );
    check(
        &[
            METAL,
            (
                "selector: {rack: a1, example.org/size: big}",
                "selector: {}",
            ),
            ("name: iron", "name: muscle"),
        ],
        &expect![[r#"
            spec.nodePools.metal[0].name: found `muscle` again; the pool at spec.nodePools.dynamic[1] has this name
            spec.nodePools.metal[0].selector: found nothing, allowed: at least one label that machines of the pool have
        "#]],
    );
}

#[test]
fn they_count_for_networks_and_for_the_control_plane() {
    check(
        &[
            METAL,
            ("count: 2, taints", "count: 300, taints"),
            ("control: [brain]", "control: [brain, iron]"),
        ],
        &expect![[r#"
            spec.kubernetes.clusters[0].podNetwork: found 10.244.0.0/16 with room for the pods of 255 machines, allowed: room for 306 machines and one replacement
            spec.kubernetes.clusters[0].network: found 10.8.0.0/24 with 254 addresses, allowed: room for 306 machines and one replacement
            spec.kubernetes.clusters[0].pools.control: found 303 control machines, allowed: 1, 3, 5 or 7
        "#]],
    );
}
