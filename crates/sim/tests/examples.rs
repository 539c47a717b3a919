//! Every example is admitted and becomes what it declares, once its secrets are set.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use model::admit::admit_all;
use model::dns::Names;
use model::manifest::Manifest;
use model::name::Name;
use model::provider::{Cloud, Provider};
use model::secret::{EntryName, Secret, SecretRef};
use model::time::Timestamp;
use plan::expand;
use sim::{Profile, rehearse_blocking};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use vault::{Changes, Vault};

const NOW: Timestamp = Timestamp::from_millis(1_772_787_600_000);

/// What is no manifest of ours.
const OTHERS: [&str; 1] = ["echo.yaml"];

fn examples() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = [top.join("providers"), top];
    let files = files.iter().flat_map(|at| std::fs::read_dir(at).unwrap());
    let files = files.map(|file| file.unwrap().path());
    let ours = |path: &PathBuf| {
        path.is_file() && !OTHERS.contains(&path.file_name().unwrap().to_str().unwrap())
    };
    let mut ours: Vec<_> = files.filter(ours).collect();
    ours.sort();
    ours
}

fn manifest(path: &Path) -> Manifest {
    let text = std::fs::read_to_string(path).unwrap();
    let admitted = admit_all(&model::source::parse_all(&text).unwrap());
    assert!(admitted.is_ok(), "{}: {admitted:?}", path.display());
    admitted.unwrap()
}

/// The secrets that machines and snapshots of a manifest need.
fn secrets(manifest: &Manifest) -> BTreeSet<SecretRef> {
    let project = Name::default_project();
    let expanded = expand(&project, manifest, &[], &BTreeMap::new(), NOW).unwrap();
    let clusters = expanded.iter().map(|expansion| &expansion.desired);
    let of_cluster = |desired: &model::cluster::Desired| {
        let machines = desired.all().flat_map(|machine| machine.origin.secrets());
        let backup = desired.etcd_backup.iter();
        let backup = backup.flat_map(|backup| backup.to.secrets()).cloned();
        let names = desired.balancers.iter();
        let names = names.filter_map(|balancer| balancer.dns.as_ref());
        let names = names.flat_map(Names::secrets);
        machines.chain(backup).chain(names).collect::<Vec<_>>()
    };
    clusters.flat_map(of_cluster).collect()
}

/// The twin of a store in which those are set.
async fn twin(manifest: &Name, secrets: &BTreeSet<SecretRef>) -> Store {
    let store = Store::in_memory().unwrap();
    let vault = Vault::in_memory(store.clone(), Arc::new(|| NOW)).await;
    for secret in secrets {
        let usual = || "token".parse::<EntryName>().unwrap();
        let entry = secret.key.clone().unwrap_or_else(usual);
        let changes = Changes {
            entries: vec![(entry, Some(Secret::from_text("made up".to_owned())))],
            only: false,
        };
        let place = (&Name::default_project(), &secret.name);
        vault.set(place, &changes, &"ann".into()).await.unwrap();
    }
    let project = Name::default_project();
    store.twin(&project, manifest).await.unwrap()
}

#[test]
fn every_example_becomes_what_it_declares() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    for path in examples() {
        let manifest = manifest(&path);
        let store = runtime.block_on(twin(&manifest.name, &secrets(&manifest)));
        let project = Name::default_project();
        let report = rehearse_blocking(store, project, manifest, 7, Profile::None).unwrap();
        assert!(report.converged, "{}: {}", path.display(), report.text);
        assert!(report.machines > 0, "{}", path.display());
    }
}

#[test]
fn every_provider_has_an_example() {
    let shown: BTreeSet<_> = examples()
        .iter()
        .flat_map(|path| manifest(path).providers.into_values())
        .map(|account| account.via.as_str())
        .collect();
    for provider in Cloud::ALL.map(Provider::Cloud) {
        assert!(shown.contains(provider.as_str()), "{provider:?}");
    }
}
