//! What `slipway simulate` tells.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use expect_test::{Expect, expect};
use model::manifest::Manifest;
use model::name::Name;
use model::secret::Secret;
use model::time::Timestamp;
use sim::{Profile, Report, rehearse_blocking};
use std::fmt::Write as _;
use std::sync::Arc;
use store::Store;
use vault::{Changes, Vault};

fn manifest(clusters: usize, compute: usize, server_type: &str) -> Manifest {
    let mut declared = String::new();
    for n in 0..clusters {
        writeln!(
            declared,
            "      - {{name: c{n}, version: v1.34.0, network: 10.20.{n}.0/24, \
             pools: {{control: [brain], compute: [muscle]}}}}"
        )
        .unwrap();
    }
    let text = format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: edge}}
spec:
  providers: [{{name: lab, providerType: simulated}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: lab, region: n}}, count: 1, serverType: small, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: lab, region: n}}, count: {compute}, serverType: {server_type}, image: debian-12}}
  kubernetes:
    clusters:
{declared}"
    );
    let document = model::source::parse(&text).unwrap();
    model::admit::admit(&document).unwrap()
}

fn rehearse(twin: Store, manifest: Manifest, profile: Profile) -> Report {
    rehearse_blocking(twin, Name::default_project(), manifest, 7, profile).unwrap()
}

#[track_caller]
fn check(manifest: Manifest, profile: Profile, expected: &Expect) -> Report {
    let report = rehearse(Store::in_memory().unwrap(), manifest, profile);
    expected.assert_eq(&report.text);
    report
}

#[test]
fn a_rehearsal_tells_what_happens_and_how_it_ends() {
    let report = check(
        manifest(1, 2, "small"),
        Profile::None,
        &expect![[r#"
        rehearsal of edge with seed 7 and faults: none
        times are those of a virtual clock, hours before minutes where there are any

        02:00    create c0-brain-01, c0-muscle-01 and c0-muscle-02 … done
        05:00    init c0-brain-01 … done
        07:00    join c0-muscle-01 and c0-muscle-02 … done

                      done  failed  stuck    first     last
          create         3       0      0    02:00    02:00
          init           1       0      0    05:00    05:00
          join           2       0      0    07:00    07:00

        ends after 07:00: 1 of 1 clusters are as declared
    "#]],
    );
    assert!(report.converged);
    assert_eq!((report.clusters, report.machines), (1, 3));
    assert_eq!((report.tasks, report.attempts, report.failures), (6, 6, 0));
    assert_eq!(report.seconds, 420);
}

#[test]
fn a_rehearsal_that_waits_for_a_person_says_for_what() {
    let report = check(
        manifest(1, 1, "huge"),
        Profile::None,
        &expect![[r#"
        rehearsal of edge with seed 7 and faults: none
        times are those of a virtual clock, hours before minutes where there are any

        00:00    create c0-muscle-01 … stuck: the provider refuses server type `huge`; choose one of small, medium, large
        02:00    create c0-brain-01 … done
        05:00    init c0-brain-01 … done

                      done  failed  stuck    first     last
          create         1       0      1    00:00    02:00
          init           1       0      0    05:00    05:00

        ends after 05:00: 1 of 1 clusters wait
          c0 is error: create c0-muscle-01: stuck: the provider refuses server type `huge`; choose one of small, medium, large
            correct the manifest, or mend the cause and run `slipway task retry task-c2txqknp748g0`
    "#]],
    );
    assert!(!report.converged);
}

#[test]
fn a_rehearsal_begins_with_what_there_is() {
    let store = Store::in_memory().unwrap();
    rehearse(store.clone(), manifest(1, 2, "small"), Profile::None);
    let again = rehearse(store.clone(), manifest(1, 2, "small"), Profile::None);
    assert_eq!((again.tasks, again.machines), (0, 3), "{}", again.text);
    let report = rehearse(store, manifest(1, 3, "small"), Profile::None);
    expect![[r#"
        rehearsal of edge with seed 7 and faults: none
        times are those of a virtual clock, hours before minutes where there are any

        02:00    create c0-muscle-03 … done
        04:00    join c0-muscle-03 … done

                      done  failed  stuck    first     last
          create         1       0      0    02:00    02:00
          join           1       0      0    04:00    04:00

        ends after 04:00: 1 of 1 clusters are as declared
    "#]]
    .assert_eq(&report.text);
}

/// The same manifest under another name, with clusters of other names and networks.
fn of_others(manifest: &Manifest) -> Manifest {
    let text = serde_json::to_string(manifest).unwrap();
    let text = text
        .replace("\"edge\"", "\"others\"")
        .replace("\"c0\"", "\"o0\"");
    serde_json::from_str(&text.replace("10.20.", "10.30.")).unwrap()
}

#[test]
fn a_rehearsal_does_not_fail_because_of_somebody_elses_cluster() {
    let store = Store::in_memory().unwrap();
    let others = of_others(&manifest(1, 1, "huge"));
    let stuck = rehearse(store.clone(), others, Profile::None);
    assert!(!stuck.converged, "{}", stuck.text);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let ours = manifest(1, 1, "small");
    let twin = runtime
        .unwrap()
        .block_on(store.twin(&Name::default_project(), &ours.name));
    let report = rehearse(twin.unwrap(), ours, Profile::None);
    assert!(report.converged, "{}", report.text);
    assert_eq!(report.clusters, 1);
    assert!(
        report.text.ends_with("1 of 1 clusters are as declared\n"),
        "{}",
        report.text
    );
}

#[test]
fn a_long_rehearsal_in_a_storm_is_summarised() {
    let manifest = manifest(8, 3, "small");
    let tell = || {
        rehearse(
            Store::in_memory().unwrap(),
            manifest.clone(),
            Profile::Storm,
        )
    };
    let report = tell();
    assert!(report.converged, "{}", report.text);
    assert!(report.text.lines().count() <= 60, "{}", report.text);
    assert!(report.failures > 0);
    assert_eq!(report, tell(), "the same seed tells the same story");
}

/// The secrets of a manifest are stood in for: nobody opens the real ones to rehearse.
#[tokio::test]
async fn a_rehearsal_knows_which_secrets_are_set_and_opens_none() {
    let declared = "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {name: edge}
spec:
  providers: [{name: lab, providerType: simulated, secretRef: {name: cloud, key: token}}]
  nodePools:
    dynamic:
      - {name: brain, providerSpec: {name: lab, region: n}, count: 1, serverType: small, image: debian-12}
  kubernetes:
    clusters:
      - {name: c0, version: v1.34.0, network: 10.20.0.0/24, pools: {control: [brain], compute: []}}
";
    let project = Name::default_project();
    let store = Store::in_memory().unwrap();
    let now = || Timestamp::from_millis(1_000_000_000_000);
    let vault = Vault::in_memory(store.clone(), Arc::new(now)).await;
    let rehearsed = async || {
        let manifest = model::admit::admit(&model::source::parse(declared).unwrap()).unwrap();
        let twin = store.twin(&project, &manifest.name).await.unwrap();
        let rehearsal = move || rehearse(twin, manifest, Profile::None);
        tokio::task::spawn_blocking(rehearsal).await.unwrap()
    };
    let waits = rehearsed().await;
    assert!(!waits.converged);
    let hint = "run `slipway secret set cloud token`";
    assert!(waits.text.contains(hint), "{}", waits.text);

    let value = Secret::from_text("hunter2".to_owned());
    let changes = Changes {
        entries: vec![("token".parse().unwrap(), Some(value))],
        only: true,
    };
    let (name, actor) = ("cloud".parse().unwrap(), "ann".into());
    vault
        .set((&project, &name), &changes, &actor)
        .await
        .unwrap();
    let goes = rehearsed().await;
    assert!(goes.converged, "{}", goes.text);
    let audit = store.audit(None, store::Page::default()).await.unwrap();
    let actions: Vec<_> = audit
        .items
        .iter()
        .map(|entry| entry.action.as_str())
        .collect();
    assert_eq!(actions, ["secret.set", "key.use"]);
}

/// Three hosts and a load balancer in a sandbox.
fn sandboxed(compute: usize) -> Manifest {
    let text = format!(
        "apiVersion: slipway.dev/v1
kind: InputManifest
metadata: {{name: edge}}
spec:
  providers: [{{name: here, providerType: sandbox}}]
  nodePools:
    dynamic:
      - {{name: brain, providerSpec: {{name: here, region: n}}, count: 1, serverType: lite, image: debian-12}}
      - {{name: muscle, providerSpec: {{name: here, region: n}}, count: {compute}, serverType: lite, image: debian-12}}
      - {{name: door, providerSpec: {{name: here, region: n}}, count: 1, serverType: lite, image: debian-12}}
  kubernetes:
    clusters:
      - {{name: c0, version: v1.34.0, network: 10.20.0.0/24, pools: {{control: [brain], compute: [muscle]}}}}
  loadBalancers:
    roles:
      - {{name: web, protocol: tcp, port: 443, targetPort: 30443, targetPools: [muscle]}}
    clusters:
      - {{name: lb, targetedK8s: c0, roles: [web], pools: [door]}}
"
    );
    model::admit::admit(&model::source::parse(&text).unwrap()).unwrap()
}

#[test]
fn a_rehearsal_with_hosts_begins_with_what_they_told() {
    let store = Store::in_memory().unwrap();
    let built = rehearse(store.clone(), sandboxed(1), Profile::None);
    assert!(built.converged, "{}", built.text);
    let again = rehearse(store.clone(), sandboxed(1), Profile::None);
    assert_eq!((again.tasks, again.machines), (0, 3), "{}", again.text);
    let report = rehearse(store, sandboxed(2), Profile::None);
    expect![[r#"
        rehearsal of edge with seed 7 and faults: none
        times are those of a virtual clock, hours before minutes where there are any

        02:00    create c0-muscle-02 … done
        04:00    equip c0-muscle-02 … done
        05:00    mesh c0-brain-01 … done
        07:00    join c0-muscle-02 … done
        08:00    balance lb-door-01 … done

                      done  failed  stuck    first     last
          create         1       0      0    02:00    02:00
          equip          1       0      0    04:00    04:00
          mesh           1       0      0    05:00    05:00
          balance        1       0      0    08:00    08:00
          join           1       0      0    07:00    07:00

        ends after 08:00: 1 of 1 clusters are as declared
    "#]]
    .assert_eq(&report.text);
}
