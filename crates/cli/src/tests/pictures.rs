//! What tables and descriptions look like.

use crate::view;
use api::{
    ClusterHead, ClusterView, EventView, GenerationView, HeldView, IntentView, LogLine,
    MachineView, ManifestView, TaskView, Time,
};
use expect_test::{Expect, expect};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn now() -> Time {
    "2026-03-01T12:30:40Z".parse().unwrap()
}

fn wire<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

#[track_caller]
fn check(text: &str, expected: &Expect) {
    expected.assert_eq(text);
}

fn head() -> Value {
    json!({
        "id": "cluster-1", "project": "default", "manifest": "hello", "incarnation": 0,
        "generation": 3, "version": "v1.35.0", "name": "edge", "state": "scheduled",
        "control": {"ready": 3, "wanted": 3}, "compute": {"ready": 1, "wanted": 3},
        "leaving": 1, "tasks": 1, "message": "join edge-compute-02",
        "held": [held()], "observedAt": "2026-03-01T12:30:00Z", "updatedAt": "2026-03-01T12:30:30Z"
    })
}

fn held() -> Value {
    json!({
        "kind": "join", "machine": "edge-compute-03", "machines": 1, "reason": "turn",
        "text": "join edge-compute-03: one at a time, after edge-compute-02", "owner": "slipway",
        "nextAction": "continues after edge-compute-02"
    })
}

fn machine(name: &str, seen: &Value, node: &Value) -> Value {
    json!({
        "id": "machine-1", "name": name, "cluster": "edge", "pool": "compute", "role": "compute",
        "ordinal": 2, "address": "10.0.0.5", "leaving": false, "machine": seen, "node": node,
        "origin": {"made": {"provider": "lab", "region": "north", "zone": "a", "serverType": "small", "image": "debian-13"}}
    })
}

fn machines() -> Vec<Value> {
    let at = "2026-03-01T12:30:00Z";
    let running =
        json!({"state": "running", "reference": "vm-7", "address": "192.0.2.7", "observedAt": at});
    let booting = json!({"state": "booting", "reference": "vm-8", "observedAt": at});
    let ready = json!({"joined": true, "ready": true, "cordoned": true, "version": "v1.35.0", "observedAt": at});
    vec![
        machine("edge-compute-01", &running, &ready),
        machine("edge-compute-02", &booting, &Value::Null),
    ]
}

fn task() -> Value {
    json!({
        "id": "task-1", "cluster": "edge", "generation": 3, "machine": "edge-compute-02",
        "kind": "join", "effect": "create", "state": "waiting", "attempts": 2,
        "dueAt": "2026-03-01T12:31:10Z", "leaseUntil": null, "worker": null,
        "error": "the machine does not answer", "createdAt": "2026-03-01T12:20:00Z",
        "updatedAt": "2026-03-01T12:30:00Z"
    })
}

fn manifest() -> Value {
    json!({
        "project": "default", "name": "hello", "generation": 3, "author": "admin",
        "createdAt": "2026-03-01T10:00:00Z", "deleted": false, "state": "scheduled", "text": "",
        "clusters": [
            {"name": "edge", "state": "scheduled", "control": {"ready": 3, "wanted": 3},
             "compute": {"ready": 1, "wanted": 3}, "leaving": 0, "tasks": 1, "message": "join edge-compute-02"},
            {"name": "core", "state": "done", "control": {"ready": 1, "wanted": 1},
             "compute": {"ready": 0, "wanted": 0}, "leaving": 0, "tasks": 0, "message": "as declared"}
        ]
    })
}

fn intent() -> Value {
    json!({
        "id": "intent-1", "project": "default", "cluster": "edge",
        "wish": {"scale": {"pool": "compute", "count": 5, "was": 3}}, "author": "ann",
        "reason": "sale on Friday", "createdAt": "2026-03-01T12:00:00Z", "expiresAt": "2026-03-02T12:30:40Z"
    })
}

#[test]
fn manifests_and_clusters() {
    check(
        &view::manifests(&[wire::<ManifestView>(manifest())], now()),
        &expect![[r"
            NAME   STATE      DESIRED                 DECLARED BY  DECLARED  CLUSTERS DONE
            hello  scheduled  declared, generation 3  admin        2h ago    1/2
        "]],
    );
    check(
        &view::clusters(&[wire::<ClusterHead>(head())], now()),
        &expect![[r"
            NAME  MANIFEST  STATE      DESIRED                CONTROL  COMPUTE  OBSERVED  MESSAGE
            edge  hello     scheduled  v1.35.0, generation 3  3/3      1/3      40s ago   join edge-compute-02
        "]],
    );
}

#[test]
fn clusters_that_share_a_name_say_which_life_they_are() {
    let mut heads = [head(), head(), head()];
    heads[0]["incarnation"] = json!(1);
    heads[1]["state"] = json!("gone");
    heads[2]["name"] = json!("core");
    let heads: Vec<ClusterHead> = heads.into_iter().map(wire).collect();
    check(
        &view::clusters(&heads, now()),
        &expect![[r#"
        NAME           MANIFEST  STATE      DESIRED                CONTROL  COMPUTE  OBSERVED  MESSAGE
        edge (life 2)  hello     scheduled  v1.35.0, generation 3  3/3      1/3      40s ago   join edge-compute-02
        edge (life 1)  hello     gone       v1.35.0, generation 3  3/3      1/3      40s ago   join edge-compute-02
        core           hello     scheduled  v1.35.0, generation 3  3/3      1/3      40s ago   join edge-compute-02
    "#]],
    );
}

#[test]
fn machines_say_who_saw_what() {
    let views: Vec<MachineView> = machines().into_iter().map(wire).collect();
    check(
        &view::machines(&views, now()),
        &expect![[r"
        NAME             CLUSTER  POOL     ROLE     DESIRED  OBSERVED BY PROVIDER  OBSERVED BY KUBERNETES
        edge-compute-01  edge     compute  compute  to stay  running 40s ago       ready cordoned v1.35.0 40s ago
        edge-compute-02  edge     compute  compute  to stay  booting 40s ago       never looked
    "]],
    );
}

#[test]
fn machines_that_share_a_name_are_told_apart() {
    let [mut old, new] = [machines().remove(0), machines().remove(0)];
    let with = |mut machine: Value, id: &str, cluster: &str| {
        machine["id"] = id.into();
        machine["clusterId"] = cluster.into();
        wire::<MachineView>(machine)
    };
    old["leaving"] = true.into();
    let other = machines().remove(1);
    let views = [
        with(old, "machine-1", "cluster-1"),
        with(new, "machine-2", "cluster-2"),
        with(other, "machine-3", "cluster-2"),
    ];
    check(
        &view::machines(&views, now()),
        &expect![[r#"
        NAME                         CLUSTER           POOL     ROLE     DESIRED   OBSERVED BY PROVIDER  OBSERVED BY KUBERNETES
        edge-compute-01 (machine-1)  edge (cluster-1)  compute  compute  to leave  running 40s ago       ready cordoned v1.35.0 40s ago
        edge-compute-01 (machine-2)  edge (cluster-2)  compute  compute  to stay   running 40s ago       ready cordoned v1.35.0 40s ago
        edge-compute-02              edge              compute  compute  to stay   booting 40s ago       never looked
    "#]],
    );
}

#[test]
fn a_machine_behind_a_jump_host_tells_the_way() {
    let mut behind = machines().remove(1);
    behind["origin"] = json!({"given": {"endpoint": "10.1.2.3", "sshPort": 22, "username": "root",
        "jumpHost": {"endpoint": "192.0.2.1", "sshPort": 2222, "username": "ann"}}});
    let behind: MachineView = wire(behind);
    let full = view::machine(&behind, &[], now());
    let origin = full.lines().find(|line| line.starts_with("origin"));
    check(
        &format!(
            "{}{}\n",
            view::machines(&[behind], now()),
            origin.unwrap_or("")
        ),
        &expect![[r#"
            NAME             CLUSTER  POOL     ROLE     DESIRED  OBSERVED BY PROVIDER                           OBSERVED BY KUBERNETES
            edge-compute-02  edge     compute  compute  to stay  booting 40s ago, by way of ann@192.0.2.1:2222  never looked
            origin                  given: root@10.1.2.3:22, by way of ann@192.0.2.1:2222
        "#]],
    );
}

#[test]
fn tasks_intents_events_and_generations() {
    check(
        &view::tasks(&[wire::<TaskView>(task())], now()),
        &expect![[r"
            ID      CLUSTER  KIND  MACHINE          STATE         ATTEMPTS  CHANGED  LAST ERROR
            task-1  edge     join  edge-compute-02  again in 30s  2         40s ago  the machine does not answer
        "]],
    );
    check(
        &view::intents(&[wire::<IntentView>(intent())], now()),
        &expect![[r"
            ID        CLUSTER  WISH                       BY   SINCE    ENDS   REASON
            intent-1  edge     scale compute from 3 to 5  ann  30m ago  in 1d  sale on Friday
        "]],
    );
    let event: EventView = wire(json!({
        "id": 7, "at": "2026-03-01T12:30:00Z", "project": "default", "what": "cluster.ready", "kind": "cluster",
        "object": "edge", "message": "control plane\u{1b}[2J is ready"
    }));
    check(
        &view::event(&event),
        &expect![[r"
            2026-03-01T12:30:00.000Z  cluster edge: control plane [2J is ready
        "]],
    );
    check(
        &view::events(&[event], now()),
        &expect![[r"
        ID  WHEN     KIND     OBJECT  MESSAGE
        7   40s ago  cluster  edge    control plane [2J is ready
    "]],
    );
    let generation: GenerationView = wire(json!({
        "generation": 3, "author": null, "at": "2026-03-01T10:00:00Z", "deleted": true
    }));
    check(
        &view::generations(&[generation], now()),
        &expect![[r#"
            GENERATION  SINCE   BY  BECAUSE  CHANGED
            3           2h ago  -   deleted  -
        "#]],
    );
}

#[test]
fn a_cluster_in_full() {
    let mut cluster = head();
    cluster["machines"] = machines().into();
    cluster["openTasks"] = vec![task()].into();
    cluster["loadBalancers"] = json!([
        {"name": "front", "ports": {"web": "tcp/443", "api": "tcp/6443"}, "endpoint": "www.example.org",
         "alternativeEndpoints": ["shop.example.org"]},
        {"name": "back", "ports": {}}
    ]);
    check(
        &view::cluster(&wire::<ClusterView>(cluster), now()),
        &expect![[r#"
            cluster   edge
            id        cluster-1
            project   default
            manifest  hello
            state     scheduled: join edge-compute-02
            desired   v1.35.0, 3 control and 3 compute nodes, generation 3
            observed  40s ago: 3 control and 1 compute nodes ready, 1 machine leaving

            LOAD BALANCERS
              NAME   LISTENS TO                 CALLED
              front  api tcp/6443, web tcp/443  www.example.org, shop.example.org
              back

            HELD
              join edge-compute-03: one at a time, after edge-compute-02
                → continues after edge-compute-02

            OPEN TASKS
              ID      CLUSTER  KIND  MACHINE          STATE         ATTEMPTS  CHANGED  LAST ERROR
              task-1  edge     join  edge-compute-02  again in 30s  2         40s ago  the machine does not answer

            POOLS
              NAME     ROLE     MACHINES  MADE WITH
              compute  compute  2         small, debian-13

            MACHINES
              NAME             CLUSTER  POOL     ROLE     DESIRED  OBSERVED BY PROVIDER  OBSERVED BY KUBERNETES
              edge-compute-01  edge     compute  compute  to stay  running 40s ago       ready cordoned v1.35.0 40s ago
              edge-compute-02  edge     compute  compute  to stay  booting 40s ago       never looked
        "#]],
    );
}

#[test]
fn a_cluster_tells_of_its_kubernetes() {
    let at = "2026-03-01T12:30:00Z";
    let mut cluster = head();
    cluster["held"] = json!([]);
    cluster["machines"] = json!([]);
    cluster["openTasks"] = json!([]);
    cluster["kubernetes"] = json!({
        "cni": "routed", "kubeProxy": "iptables", "podNetwork": "10.244.0.0/16",
        "serviceNetwork": "10.96.0.0/12",
        "endpoint": {"name": "api.edge.slipway.internal", "port": 6443, "machines": [
            {"machine": "edge-gate-01", "address": "10.0.0.8", "outside": null},
            {"machine": "edge-gate-02", "address": "10.0.0.9", "outside": "192.0.2.9"}]},
        "controlPlane": {"failing": ["etcd", "informer-sync"], "etcd": [
            {"name": "edge-brain-01", "healthy": true, "learner": false},
            {"name": "edge-brain-02", "healthy": false, "learner": false},
            {"name": "edge-brain-03", "healthy": true, "learner": true}],
            "troubles": {"edge-compute-01": "DiskPressure (KubeletHasDiskPressure)"}, "observedAt": at},
        "certificates": [
            {"machine": "edge-brain-01", "end": "2027-02-28T00:00:00Z", "observedAt": at},
            {"machine": "edge-brain-02", "end": "2026-03-13T00:00:00Z", "observedAt": at}]
    });
    let full = view::cluster(&wire::<ClusterView>(cluster), now());
    let kubernetes = full.find("KUBERNETES\n").unwrap();
    check(
        &full[kubernetes..],
        &expect![[r#"
            KUBERNETES
              pods          10.244.0.0/16, routed
              services      10.96.0.0/12, kube-proxy: iptables
              endpoint      api.edge.slipway.internal:6443 leads to edge-gate-01 (10.0.0.8), edge-gate-02 (10.0.0.9, outside 192.0.2.9)
              API           checks fail 40s ago: etcd, informer-sync
              etcd          edge-brain-01 healthy, edge-brain-02 not healthy, edge-brain-03 healthy (learns)
              trouble       edge-compute-01: DiskPressure (KubeletHasDiskPressure)
              certificates  edge-brain-01 until 2027-02-28 (in 363d), edge-brain-02 until 2026-03-13 (in 11d)
              warning       certificates of edge-brain-02 end soon; Slipway renews them, `slipway why cluster` says what that waits for
        "#]],
    );
}

#[test]
fn a_manifest_in_full() {
    check(
        &view::manifest(&wire(manifest()), now()),
        &expect![[r"
        manifest    hello
        project     default
        state       scheduled
        desired     declared by admin 2h ago
        generation  3

        CLUSTERS
          NAME  STATE      CONTROL  COMPUTE  LEAVING  MESSAGE
          edge  scheduled  3/3      1/3      0        join edge-compute-02
          core  done       1/1      0/0      0        as declared
    "]],
    );
}

#[test]
fn a_machine_and_an_intent_in_full() {
    let at = "2026-03-01T12:30:00Z";
    let mut machine = machines().remove(0);
    machine["origin"]["made"]["hardware"] = json!({
        "disk": 50, "cpus": 8, "memory": 32, "gpus": 2, "gpuType": "big", "spot": true,
        "templates": "example.org/o/m@main", "templatesMove": true
    });
    check(
        &view::machine(
            &wire(machine),
            &[
                wire(
                    json!({"at": at, "source": "kubernetes", "node": {"joined": true, "ready": false, "cordoned": false, "version": "v1.35.0", "observedAt": at}}),
                ),
                wire(
                    json!({"at": at, "source": "provider", "machine": {"state": "booting", "observedAt": at}}),
                ),
            ],
            now(),
        ),
        &expect![[r#"
            machine                 edge-compute-01
            id                      machine-1
            cluster                 edge
            pool                    compute, place 2
            role                    compute
            desired                 to stay
            origin                  made by lab in north/a: small, debian-13
            made with               50 GB of disk, 8 processors, 32 GB of memory, 2 graphics processors (big), lent until it is taken back, modules of example.org/o/m@main, which may move
            private address         10.0.0.5
            observed by provider    running 40s ago
            known there as          vm-7
            answers at              192.0.2.7
            observed by kubernetes  ready cordoned v1.35.0 40s ago

            LAST CHANGES
              2026-03-01T12:30:00.000Z  kubernetes  not ready v1.35.0
              2026-03-01T12:30:00.000Z  provider    booting
        "#]],
    );
    check(
        &view::intent(&wire(intent()), now()),
        &expect![[r"
        intent   intent-1
        cluster  edge
        wish     scale compute from 3 to 5
        by       ann
        reason   sale on Friday
        since    30m ago
        ends     in 1d
    "]],
    );
}

#[test]
fn a_task_in_full_with_its_log() {
    let line: LogLine =
        wire(json!({"seq": 1, "attempt": 2, "at": "2026-03-01T12:29:00Z", "text": "dialling"}));
    check(
        &view::task(&wire(task()), &[line], now()),
        &expect![[r"
            task        task-1
            does        join edge-compute-02
            cluster     edge
            generation  3
            state       waiting
            attempts    2
            due         in 30s
            last error  the machine does not answer
            planned     10m ago
            changed     40s ago

            LOG
              2026-03-01T12:29:00.000Z  attempt 2  dialling
        "]],
    );
}

#[test]
fn what_is_held_names_its_way_out() {
    check(
        &view::held(&[wire::<HeldView>(held())]),
        &expect![[r"
        join edge-compute-03: one at a time, after edge-compute-02
          → continues after edge-compute-02
    "]],
    );
}
