//! Declaring, reading and removing manifests.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::world::{HELLO, PROJECT, TOKEN, World, request};

/// Submits `HELLO` with edits to a world that knows `HELLO`, and shows the answer.
async fn check(edits: &[(&str, &str)], expected: &Expect) {
    let world = World::with_hello().await;
    let mut text = HELLO.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?} is not in the manifest");
        text = text.replacen(from, to, 1);
    }
    let answer = world.submit(&text).await;
    let picture = if answer.status.is_success() {
        format!("{} {}\n", answer.status, answer.text)
    } else {
        answer.picture()
    };
    expected.assert_eq(&picture);
}

#[tokio::test]
async fn an_accepted_manifest_says_what_to_follow() {
    let world = World::new();
    let answer = world.submit(HELLO).await;
    expect![[r#"
        202 Accepted /api/v1/projects/default/manifests/hello
        {"manifest":"hello","generation":1,"changed":["first"],"unchanged":0,"follow":"/api/v1/projects/default/manifests/hello"}"#]].assert_eq(&format!("{} {}\n{}", answer.status, answer.header("location"), answer.text));
    let follow = world
        .send(request(Method::GET, answer.header("location")))
        .await;
    let view = follow.json();
    assert_eq!(view["state"], "pending");
    assert_eq!(view["text"], HELLO);
    assert_eq!(follow.header("etag"), "\"1\"");
    world.settle().await;
    let view = world.get("/manifests/hello").await.json();
    assert_eq!(view["state"], "done", "{view}");
}

#[tokio::test]
async fn the_same_manifest_again_changes_nothing() {
    check(&[], &expect![[r#"
        202 Accepted {"manifest":"hello","generation":1,"changed":[],"unchanged":1,"follow":"/api/v1/projects/default/manifests/hello"}
    "#]]).await;
}

#[tokio::test]
async fn all_faults_are_told_at_once_and_nothing_is_stored() {
    check(
        &[("count: 3", "count: 0"), ("count: 2", "count: many"), ("image: debian-12}\n      - {name: muscle", "imagee: debian-12}\n      - {name: muscle"), ("v1.34.1", "1.34")],
        &expect![[r#"
            422 INPUT-001: the manifest has 5 faults
              spec.nodePools.dynamic[0].image [required] found nothing; this field is required
              spec.nodePools.dynamic[0].count [range] found `0`, allowed: a whole number from 1 to 5000
              spec.nodePools.dynamic[0].imagee [unknown-field] unknown field; did you mean `image`? allowed: name, providerSpec, count, autoscaler, serverType, image, storageDiskSize, machineSpec, spot, disruption, labels, annotations, taints, replace, surge
              spec.nodePools.dynamic[1].count [type] found `many` (a text), allowed: a whole number from 1 to 5000
              spec.kubernetes.clusters[0].version [format] found `1.34`: version is not of the form v1.MINOR.PATCH
              hint: correct every place that is listed; nothing was stored
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_downgrade_is_a_fault_too() {
    let world = World::new();
    world.submit(&HELLO.replace("v1.34.1", "v1.35.0")).await;
    world.settle().await;
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.kubernetes.clusters[0].version [immutable] found v1.34.1, allowed: v1.35.0 or newer, which nodes run; Kubernetes cannot be downgraded
          hint: correct every place that is listed; nothing was stored
    "#]]
    .assert_eq(&world.submit(HELLO).await.picture());
}

#[tokio::test]
async fn what_is_not_yaml_is_refused_with_its_place() {
    let world = World::new();
    let mut told = String::new();
    for text in ["a: [1, 2", "\u{0}", "", "just a text"] {
        told.push_str(&world.submit(text).await.picture());
    }
    expect![[r#"
        400 INPUT-002: document cannot be read as YAML: unclosed bracket '[' at line 1, column 4
          hint: correct the text at the place that is named; nothing was stored
        400 INPUT-002: document cannot be read as YAML: unexpected character: `\u{0}' at line 1, column 1
          hint: correct the text at the place that is named; nothing was stored
        422 INPUT-001: the manifest has 1 fault
           [required] found no document of kind InputManifest, allowed: one
          hint: correct every place that is listed; nothing was stored
        422 INPUT-001: the manifest has 1 fault
           [type] found `just a text` (a text), allowed: a mapping
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&told);
    let bytes = Request::post(format!("{PROJECT}/manifests"))
        .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(Body::from(vec![0xff, 0xfe, 0xfd]))
        .unwrap();
    expect![[r#"
        400 INPUT-002: document cannot be read as YAML: it is not UTF-8
          hint: correct the text at the place that is named; nothing was stored
    "#]]
    .assert_eq(&world.send(bytes).await.picture());
}

#[tokio::test]
async fn removing_too_much_at_once_is_refused_unless_it_is_said_aloud() {
    let world = World::with_hello().await;
    world.settle().await;
    let smaller = HELLO.replace("count: 3", "count: 1");
    expect![[r#"
        409 PLAN-001: 2 of the 3 machines of the control plane of cluster first would be removed at once
          hint: if this is what you want, repeat it with `--allow-blast 67` (`allowBlast=67` of the API)
    "#]]
    .assert_eq(&world.submit(&smaller).await.picture());
    let aloud = world.post("/manifests?allowBlast=67", &smaller).await;
    assert_eq!(aloud.status, StatusCode::ACCEPTED, "{}", aloud.text);
    let beyond = world.post("/manifests?allowBlast=101", &smaller).await;
    expect![[r#"
        400 API-008: allowBlast: found 101, allowed: 0 to 100
          allowBlast [format] found 101, allowed: 0 to 100
          hint: compare the request with /openapi.json
    "#]]
    .assert_eq(&beyond.picture());
}

#[tokio::test]
async fn a_name_belongs_to_one_manifest() {
    check(
        &[("name: hello", "name: other")],
        &expect![[r#"
            409 API-011: cluster first belongs to manifest hello
              hint: choose another name for the cluster, the load balancer or the pool, or remove it from the other manifest first
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_repeat_with_the_same_key_gets_the_same_answer() {
    let world = World::new();
    let keyed = |text: &str| {
        Request::post(format!("{PROJECT}/manifests"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header("idempotency-key", "once")
            .body(Body::from(text.to_owned()))
            .unwrap()
    };
    let first = world.send(keyed(HELLO)).await;
    world.submit(&HELLO.replace("count: 2", "count: 3")).await;
    let second = world.send(keyed(HELLO)).await;
    assert_eq!((first.status, &first.text), (second.status, &second.text));
    let generation = world.get("/manifests/hello").await.json()["generation"].clone();
    assert_eq!(generation, 2, "the repeat stored nothing");
    let other = world
        .send(keyed(&HELLO.replace("count: 2", "count: 4")))
        .await;
    expect![[r#"
        409 API-012: the Idempotency-Key was used for another request
          hint: draw a new key for every new request and repeat it only with the same body
    "#]]
    .assert_eq(&other.picture());
}

#[tokio::test]
async fn a_change_based_on_an_old_generation_is_refused() {
    let world = World::with_hello().await;
    world.submit(&HELLO.replace("count: 2", "count: 3")).await;
    let based_on = |generation: &str| {
        Request::post(format!("{PROJECT}/manifests"))
            .header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
            .header(header::IF_MATCH, generation)
            .body(Body::from(HELLO.replace("count: 2", "count: 4")))
            .unwrap()
    };
    expect![[r#"
        412 API-004: the manifest is at generation 2, not at the one this was made for
          hint: read the manifest again, merge, and send the change with the current generation in If-Match
    "#]].assert_eq(&world.send(based_on("1")).await.picture());
    assert_eq!(
        world.send(based_on("latest")).await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        world.send(based_on("\"2\"")).await.status,
        StatusCode::ACCEPTED
    );
}

#[tokio::test]
async fn data_goes_only_when_that_is_said_and_plans_say_so_first() {
    let world = World::new();
    let disks = HELLO.replace("count: 2", "count: 2, storageDiskSize: 100");
    assert_eq!(world.submit(&disks).await.status, StatusCode::ACCEPTED);
    world.settle().await;
    let smaller = disks.replace("count: 2", "count: 1");
    expect![[r#"
        409 PLAN-003: cluster first would lose first-muscle-02 with what is on data disks
          hint: move what is on them first; then, or if this is what you want, repeat it with `--allow-data-loss` (`allowDataLoss=true` of the API)
    "#]].assert_eq(&world.submit(&smaller).await.picture());
    let plan = world.post("/plans", &smaller).await.json();
    assert_eq!(plan["refused"]["code"], "PLAN-003", "{plan}");
    let plan = world
        .post("/plans?allowDataLoss=true", &smaller)
        .await
        .json();
    assert!(plan.get("refused").is_none(), "{plan}");
    let aloud = world.post("/manifests?allowDataLoss=true", &smaller).await;
    assert_eq!(aloud.status, StatusCode::ACCEPTED, "{}", aloud.text);
}

#[tokio::test]
async fn a_cluster_that_can_be_read_is_not_recovered() {
    let world = World::with_hello().await;
    let answer = world.post("/clusters/first/recovery", "").await;
    expect![[r#"
        409 API-005: all that is stored of cluster first can be read
          hint: `slipway get cluster first` says what cannot be read of it; nothing was changed
    "#]]
    .assert_eq(&answer.picture());
    let nowhere = world.post("/clusters/nowhere/recovery", "").await;
    assert_eq!(nowhere.status, StatusCode::NOT_FOUND);
    let wrong = world.post("/clusters/first/recovery?leave=A", "").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST, "{}", wrong.text);
}

#[tokio::test]
async fn old_generations_stay_readable() {
    let world = World::with_hello().await;
    world.submit(&HELLO.replace("count: 2", "count: 3")).await;
    let history = world.get("/manifests/hello/generations").await.json();
    let told: Vec<_> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["generation"].clone())
        .collect();
    assert_eq!(told, [2, 1]);
    assert_eq!(history["items"][0]["changed"], "changed first");
    let history = world.get("/clusters/first/generations").await.json();
    assert_eq!(
        (
            &history["items"][0]["because"],
            &history["items"][0]["changed"]
        ),
        (
            &"manifest hello, generation 2, was applied".into(),
            &"+first-muscle-03".into()
        )
    );
    assert_eq!(
        world.get("/manifests/hello/generations/1").await.json()["text"],
        HELLO
    );
    assert_eq!(
        world.get("/clusters/first/generations/2").await.json()["machines"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    expect![[r#"
        404 API-002: there is no generation of the manifest `hello/9`
          hint: list its generations with `slipway history`
    "#]]
    .assert_eq(&world.get("/manifests/hello/generations/9").await.picture());
}

#[tokio::test]
async fn a_deleted_manifest_takes_its_clusters_with_it() {
    let world = World::with_hello().await;
    world.settle().await;
    let answer = world
        .send(request(
            Method::DELETE,
            &format!("{PROJECT}/manifests/hello"),
        ))
        .await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    let view = world.get("/manifests/hello").await.json();
    assert_eq!(
        (&view["deleted"], &view["state"]),
        (&true.into(), &"scheduled".into())
    );
    world.settle().await;
    let gone = world.get("/clusters/first").await;
    expect![[r#"
        404 API-002: there is no cluster `first`
          hint: list what there is with `slipway get cluster`
    "#]]
    .assert_eq(&gone.picture());
}

#[tokio::test]
async fn what_is_gone_can_still_be_read_and_is_not_mixed_with_what_follows() {
    let world = World::with_hello().await;
    world.settle().await;
    let delete = request(Method::DELETE, &format!("{PROJECT}/manifests/hello"));
    world.send(delete).await;
    world.settle().await;
    let history = world.get("/clusters/first/generations").await.json();
    let generations: Vec<_> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["generation"].clone(), item["deleted"].clone()))
        .collect();
    assert_eq!(
        generations,
        [(2.into(), true.into()), (1.into(), false.into())]
    );
    let first = world.get("/clusters/first/generations/1").await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text);

    // A new cluster of the same name has done nothing yet, whatever the old one did.
    world.submit(HELLO).await;
    world.plan().await;
    let view = world.get("/clusters/first").await.json();
    assert_eq!(view["incarnation"], 1);
    assert_eq!(view["openTasks"].as_array().unwrap().len(), 5);
    let page = world.look("/projects/default/clusters/first").await.text;
    assert!(page.contains("Nothing was finished lately."), "{page}");
}

#[tokio::test]
async fn a_machine_tells_how_it_was_seen_to_change() {
    let world = World::with_hello().await;
    world.settle().await;
    let changes = world.get("/machines/first-brain-01/changes").await.json();
    let told: Vec<_> = changes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            let (machine, node) = (&change["machine"]["state"], &change["node"]["ready"]);
            format!("{} {machine} {node}\n", change["source"])
        })
        .collect();
    expect![[r#"
        "kubernetes" null true
        "provider" "running" null
    "#]]
    .assert_eq(&told.concat());
    let nobody = world.get("/machines/nobody/changes").await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_protected_cluster_stays_until_somebody_says_otherwise() {
    let world = World::new();
    let protected = |word: &str| {
        let field = format!("version: v1.34.1\n        deletionProtection: {word}");
        HELLO.replacen("version: v1.34.1", &field, 1)
    };
    let delete = || request(Method::DELETE, &format!("{PROJECT}/manifests/hello"));
    assert_eq!(
        world.submit(&protected("true")).await.status,
        StatusCode::ACCEPTED
    );
    let kept = world.send(delete()).await;
    expect![[r#"
        409 API-021: cluster first is protected from deletion
          hint: apply the manifest once with `deletionProtection: false` for it, then delete
    "#]]
    .assert_eq(&kept.picture());
    let other = protected("true").replacen("name: first", "name: second", 1);
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.kubernetes.clusters [immutable] found no cluster first, which is protected, allowed: first; declare it once with deletionProtection: false, then take it out
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&world.submit(&other).await.picture());
    let free = world.submit(&protected("false")).await;
    assert_eq!(free.status, StatusCode::ACCEPTED, "{}", free.text);
    let gone = world.send(delete()).await;
    assert_eq!(gone.status, StatusCode::ACCEPTED, "{}", gone.text);
}

#[tokio::test]
async fn clusters_that_overlap_already_can_still_be_changed() {
    let overlap = format!(
        "{HELLO}      - {{name: second, version: v1.34.1, network: 10.8.0.128/25, pools: {{control: [brain], compute: []}}}}\n"
    );
    let world = World::new();
    world.submit_as_before(&overlap).await;
    let more = overlap.replace("count: 2", "count: 3");
    let shown = world.post("/plans", &more).await.json();
    let note = "spec.kubernetes.clusters[1].network: found 10.8.0.128/25, allowed: a network that does not overlap with 10.8.0.0/24 of cluster `first`; it stays so because the cluster lives with it, and no new one may have it";
    assert_eq!(shown["notes"], json!([note]), "{shown}");
    let accepted = world.submit(&more).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    assert_eq!(accepted.json()["notes"], json!([note]));
    // One that was not there is refused as ever, by both alike.
    let third = format!(
        "{more}      - {{name: third, version: v1.34.1, network: 10.8.0.64/26, pools: {{control: [brain], compute: []}}}}\n"
    );
    let refused = world.submit(&third).await.picture();
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.kubernetes.clusters[2].network [range] found 10.8.0.64/26, allowed: a network that does not overlap with 10.8.0.0/24 of cluster `first`
          hint: correct every place that is listed; nothing was stored
    "#]]
    .assert_eq(&refused);
    assert_eq!(world.post("/plans", &third).await.picture(), refused);
}

/// [`HELLO`] with a cluster of one machine beside it.
fn with_solo() -> String {
    let text = HELLO.replace("  kubernetes:", &format!("{LONE}  kubernetes:"));
    format!("{text}{SOLO}")
}

const LONE: &str = "      - {name: lone, providerSpec: {name: lab, region: north}, count: 1, serverType: small, image: debian-12}\n";
const SOLO: &str = "      - {name: solo, version: v1.34.1, network: 10.9.0.0/24, pools: {control: [lone], compute: []}}\n";

/// What is said to a dangerous edit of [`with_solo`].
async fn dangerous(edits: &[(&str, &str)], expected: &Expect) {
    edited(&with_solo(), edits, expected).await;
}

/// What is said to a dangerous edit, by the plan and by apply alike.
async fn edited(before: &str, edits: &[(&str, &str)], expected: &Expect) {
    let world = World::new();
    let accepted = world.submit(before).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    world.settle().await;
    let mut text = before.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from:?} is not in the manifest");
        text = text.replacen(from, to, 1);
    }
    let refused = world.submit(&text).await;
    expected.assert_eq(&refused.picture());
    let planned = world.post("/plans", &text).await;
    if planned.status.is_success() {
        // The journey is shown with the same refusal.
        let refusal = &planned.json()["refused"];
        assert_eq!(refusal["code"], refused.json()["code"], "{}", planned.text);
        assert_eq!(refusal["hint"], refused.json()["hint"], "{}", planned.text);
    } else {
        assert_eq!(planned.picture(), refused.picture());
    }
}

#[tokio::test]
async fn what_would_destroy_data_says_so_and_what_would_allow_it() {
    // A cluster of one machine, and all that was in it.
    dangerous(
        &[(SOLO, ""), (LONE, "")],
        &expect![[r#"
            409 PLAN-001: 1 of the 1 machines of cluster solo would be removed at once
              hint: if this is what you want, repeat it with `--allow-blast 100` (`allowBlast=100` of the API)
        "#]],
    )
    .await;
    // Machines of another kind in place of those that serve.
    dangerous(
        &[
            ("serverType: large", "serverType: huge"),
            (
                "count: 2, serverType: huge, image: debian-12",
                "count: 2, serverType: huge, image: debian-13",
            ),
        ],
        &expect![[r#"
            422 INPUT-001: the manifest has 1 fault
              spec.nodePools.dynamic[1] [immutable] found serverType huge, which was large, and image debian-13, which was debian-12 when first-muscle-01 was made; say replace: true to have the pool's machines replaced, one after the other
              hint: correct every place that is listed; nothing was stored
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_would_break_quorum_says_so_and_what_would_allow_it() {
    dangerous(&[("count: 3", "count: 2")], &expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.kubernetes.clusters[0].pools.control [range] found 2 control machines, allowed: 1, 3, 5 or 7
          hint: correct every place that is listed; nothing was stored
    "#]]).await;
    dangerous(
        &[("count: 3", "count: 1")],
        &expect![[r#"
            409 PLAN-001: 2 of the 3 machines of the control plane of cluster first would be removed at once
              hint: if this is what you want, repeat it with `--allow-blast 67` (`allowBlast=67` of the API)
        "#]],
    )
    .await;
    dangerous(
        &[(
            "control: [brain], compute: [muscle]",
            "control: [], compute: [brain, muscle]",
        )],
        &expect![[r#"
            422 INPUT-001: the manifest has 1 fault
              spec.kubernetes.clusters[0].pools.control [range] found 0 control machines, allowed: 1, 3, 5 or 7
              hint: correct every place that is listed; nothing was stored
        "#]],
    )
    .await;
    dangerous(
        &[(
            "control: [brain], compute: [muscle]",
            "control: [muscle, lone], compute: [brain]",
        )],
        &expect![[r#"
            409 PLAN-001: 5 of the 5 machines of cluster first would be removed at once
              hint: if this is what you want, repeat it with `--allow-blast 100` (`allowBlast=100` of the API)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_would_exceed_the_blast_limit_says_so_and_what_would_allow_it() {
    dangerous(
        &[
            ("compute: [muscle]", "compute: []"),
            ("      - {name: muscle, providerSpec: {name: lab, region: north}, count: 2, serverType: large, image: debian-12}\n", ""),
        ],
        &expect![[r#"
            409 PLAN-001: 2 of the 2 machines of cluster first that take workloads, and no other is left, would be removed at once
              hint: if this is what you want, repeat it with `--allow-blast 100` (`allowBlast=100` of the API)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_would_strand_a_cluster_says_so() {
    // Nobody would find its machines, nothing would run on them, or nobody would come in.
    dangerous(&[("10.8.0.0/24", "10.7.0.0/24")], &expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.kubernetes.clusters[0].network [immutable] found 10.7.0.0/24, allowed: 10.8.0.0/24, the network the cluster was made with
          hint: correct every place that is listed; nothing was stored
    "#]]).await;
    dangerous(
        &[("version: v1.34.1", "version: v1.33.1")],
        &expect![[r#"
            422 INPUT-001: the manifest has 1 fault
              spec.kubernetes.clusters[0].version [immutable] found v1.33.1, allowed: v1.34.1 or newer, which nodes run; Kubernetes cannot be downgraded
              hint: correct every place that is listed; nothing was stored
        "#]],
    )
    .await;
    // A load balancer that may have no machine is no way in.
    let door = format!(
        "{}  loadBalancers:
    roles: [{{name: api, protocol: tcp, port: 6443, targetPort: 6443, targetPools: [lone]}}]
    clusters: [{{name: front, roles: [api], targetedK8s: solo, pools: [door]}}]
",
        with_solo().replace(
            "  kubernetes:",
            "      - {name: door, providerSpec: {name: lab, region: north}, autoscaler: {min: 0, max: 2}, serverType: small, image: debian-12}\n  kubernetes:",
        )
    );
    let refused = World::new().submit(&door).await;
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.loadBalancers.clusters[0].pools [range] found no machine that is always there, allowed: at least one where a role leads to port 6443
          hint: correct every place that is listed; nothing was stored
    "#]].assert_eq(&refused.picture());
}

#[tokio::test]
async fn machines_that_nobody_has_discovered_take_nobodys_place() {
    const MUSCLE: &str = "      - {name: muscle, providerSpec: {name: lab, region: north}, count: 2, serverType: large, image: debian-12}\n";
    let iron = |count: u32| {
        format!(
            "    metal: [{{name: iron, selector: {{rack: a1}}, count: {count}}}]\n  kubernetes:"
        )
    };
    let small = HELLO
        .replace("count: 3", "count: 1")
        .replace("count: 2", "count: 1");
    edited(
        &small,
        &[
            (&MUSCLE.replace("count: 2", "count: 1"), ""),
            ("  kubernetes:", &iron(1)),
            ("compute: [muscle]", "compute: [iron]"),
        ],
        &expect![[r#"
            409 PLAN-001: 1 of the 1 machines of cluster first that take workloads, and no other is left, would be removed at once
              hint: if this is what you want, repeat it with `--allow-blast 100` (`allowBlast=100` of the API)
        "#]],
    )
    .await;
    edited(
        &HELLO.replace("count: 2", "count: 6"),
        &[
            ("count: 3", "count: 1"),
            ("  kubernetes:", &iron(2)),
            ("control: [brain]", "control: [brain, iron]"),
        ],
        &expect![[r#"
            409 PLAN-001: 2 of the 3 machines of the control plane of cluster first would be removed at once
              hint: if this is what you want, repeat it with `--allow-blast 67` (`allowBlast=67` of the API)
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_last_control_machine_cannot_go_before_another_can_come() {
    let world = World::new();
    let of = |control: &str| {
        format!(
            "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: attic}}
spec:
  nodePools:
    static:
      - {{name: {control}, nodes: [{{endpoint: 192.0.2.7}}]}}
  kubernetes:
    clusters:
      - {{name: attic, version: v1.34.1, network: 10.8.0.0/24, pools: {{control: [{control}], compute: []}}}}
"
        )
    };
    let accepted = world.submit(&of("first")).await;
    assert_eq!(accepted.status, StatusCode::ACCEPTED, "{}", accepted.text);
    world.settle().await;
    let refused = world.submit(&of("second")).await.picture();
    expect![[r#"
        422 INPUT-001: the manifest has 1 fault
          spec.kubernetes.clusters[0].pools.control [immutable] the last control machine cannot move to another pool: nobody is left to take over; keep its pool, or add another control machine first
          hint: correct every place that is listed; nothing was stored
    "#]]
    .assert_eq(&refused);
    assert_eq!(world.post("/plans", &of("second")).await.picture(), refused);
}

#[tokio::test]
async fn machines_of_two_manifests_are_not_called_alike() {
    let world = World::new();
    let first = HELLO.replace("brain", "up-brain");
    assert!(world.post("/manifests", &first).await.status.is_success());
    let other = HELLO
        .replace("name: hello", "name: other")
        .replace("10.8.0.0", "10.9.0.0");
    let apart = other.replace("name: first", "name: first-down");
    let apart = world.post("/plans", &apart).await;
    assert_eq!(apart.status, StatusCode::OK, "{}", apart.text);
    let alike = other.replace("name: first", "name: first-up");
    let told = expect![[r#"
        409 API-011: machines of first-up and its pool brain would be called as those of first and its pool up-brain, which belong to manifest hello
          hint: choose another name for the cluster, the load balancer or the pool, or remove it from the other manifest first
    "#]];
    let planned = world.post("/plans", &alike).await.picture();
    told.assert_eq(&planned);
    assert_eq!(world.post("/manifests", &alike).await.picture(), planned);
    let balancer = "  loadBalancers:
    roles: [{name: web, protocol: tcp, port: 80, targetPort: 80, targetPools: [muscle]}]
    clusters: [{name: first-up, roles: [web], targetedK8s: second, pools: [brain]}]
";
    let alike = format!("{}{balancer}", other.replace("name: first", "name: second"));
    expect![[r#"
        409 API-011: machines of first-up and its pool brain would be called as those of first and its pool up-brain, which belong to manifest hello
          hint: choose another name for the cluster, the load balancer or the pool, or remove it from the other manifest first
    "#]].assert_eq(&world.post("/plans", &alike).await.picture());
}

#[tokio::test]
async fn every_name_that_is_taken_is_told() {
    let world = World::new();
    let two = |name: &str| {
        let second = "      - {name: second, version: v1.34.1, network: 10.9.0.0/24, pools: {control: [brain], compute: [muscle]}}\n";
        format!("{HELLO}{second}").replace("{name: hello}", &format!("{{name: {name}}}"))
    };
    assert_eq!(
        world.submit(&two("hello")).await.status,
        StatusCode::ACCEPTED
    );
    expect![[r#"
        409 API-011: 2 names belong to other manifests
          spec.kubernetes.clusters [duplicate] cluster first belongs to manifest hello
          spec.kubernetes.clusters [duplicate] cluster second belongs to manifest hello
          hint: choose another name for the cluster, the load balancer or the pool, or remove it from the other manifest first
    "#]].assert_eq(&world.submit(&two("other")).await.picture());
}
