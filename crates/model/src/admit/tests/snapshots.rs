//! What manifests say of how etcd is saved.

use super::{HELLO, admit, check, source};
use crate::manifest::Manifest;
use crate::snapshot::{Destination, EtcdBackup};
use expect_test::expect;
use std::time::Duration;

fn with(more: &str) -> Manifest {
    let more = format!("version: v1.34.1\n        etcdBackup: {more}");
    let text = HELLO.replacen("version: v1.34.1", &more, 1);
    admit(&source::parse(&text).unwrap()).unwrap()
}

fn backup(manifest: &Manifest) -> Option<&EtcdBackup> {
    manifest.clusters[0].etcd_backup.as_ref()
}

#[test]
fn etcd_is_saved_as_is_said_and_every_day_where_nothing_is() {
    let usual = EtcdBackup::default();
    let said_nothing = admit(&source::parse(HELLO).unwrap()).unwrap();
    assert_eq!(backup(&said_nothing), Some(&usual));
    assert_eq!(backup(&with("{}")), Some(&usual));
    assert_eq!(backup(&with("{mode: off, every: 6h}")), None);
    let said = with("{every: 6h, keep: {count: 10, age: 14d}, to: {directory: vault}}");
    let said = backup(&said).unwrap();
    assert_eq!(said.every, Duration::from_hours(6));
    assert_eq!(
        (said.keep.count, said.keep.age),
        (10, Some(Duration::from_hours(14 * 24)))
    );
    let name = Some("vault".parse().unwrap());
    assert_eq!(said.to, Destination::Directory { name });
    let by_age = with("{keep: {age: 1h}}");
    assert_eq!(backup(&by_age).unwrap().keep.count, 1_000);
}

#[test]
fn what_makes_no_sense_is_refused_at_once() {
    check(
        &[(
            "version: v1.34.1",
            "version: v1.34.1\n        etcdBackup: {mode: maybe, every: 10s, keep: {count: 0, age: 59m, size: 1}, to: {directory: ../x}}",
        )],
        &expect![[r#"
            spec.kubernetes.clusters[0].etcdBackup.mode: found `maybe`, allowed: on or off
            spec.kubernetes.clusters[0].etcdBackup.every: found `10s`: a time is a whole number of minutes, hours or days, such as 30m, 6h or 14d
            spec.kubernetes.clusters[0].etcdBackup.keep.count: found `0`, allowed: a whole number from 1 to 1000
            spec.kubernetes.clusters[0].etcdBackup.keep.age: found `59m`: snapshots are kept for 1h to 3650d
            spec.kubernetes.clusters[0].etcdBackup.keep.size: unknown field; allowed: count, age
            spec.kubernetes.clusters[0].etcdBackup.to.directory: found `../x`: name has `.`; allowed are a-z, 0-9 and, inside, hyphens
        "#]],
    );
    check(
        &[(
            "version: v1.34.1",
            "version: v1.34.1\n        etcdBackup: {every: 31d, to: {}}",
        )],
        &expect![[r#"
            spec.kubernetes.clusters[0].etcdBackup.every: found `31d`: etcd is saved every 1m to 30d
            spec.kubernetes.clusters[0].etcdBackup.to: found nothing, allowed: directory or s3
        "#]],
    );
}

/// What a manifest says of a bucket, with more behind it.
fn s3(more: &str) -> String {
    format!(
        "{{to: {{s3: {{endpoint: https://s3.example.org:9000, bucket: etcd-of-edge, secretRef: {{name: store}}{more}}}}}}}"
    )
}

#[test]
fn etcd_is_saved_in_a_bucket_that_a_secret_opens() {
    let said = with(&s3(""));
    let named = said.clusters[0].backup_secret.as_ref().unwrap();
    assert_eq!(
        (
            named.path.as_str(),
            named.secret.to_string(),
            &named.namespace
        ),
        (
            "spec.kubernetes.clusters[0].etcdBackup.to.s3.secretRef",
            "store".to_owned(),
            &None
        )
    );
    let to = &backup(&said).unwrap().to;
    let secrets: Vec<_> = to.secrets().map(ToString::to_string).collect();
    assert_eq!(secrets, ["store/accessKeyId", "store/secretAccessKey"]);
    let Destination::S3(bucket) = to else {
        panic!("no bucket: {to:?}");
    };
    assert_eq!(bucket.endpoint, "https://s3.example.org:9000");
    assert_eq!(
        (bucket.bucket.as_str(), bucket.region.as_str()),
        ("etcd-of-edge", "us-east-1")
    );
    assert_eq!((&bucket.prefix, &bucket.ca), (&None, &None));
    let whole = with(&s3(
        ", region: eu-central-1, prefix: a/b.c, ca: \"-----BEGIN CERTIFICATE-----\\nMIIB\\n\"",
    ));
    let to = &backup(&whole).unwrap().to;
    let Destination::S3(bucket) = to else {
        panic!("no bucket: {to:?}");
    };
    assert_eq!(bucket.region, "eu-central-1");
    assert_eq!(bucket.prefix.as_deref(), Some("a/b.c"));
    assert!(bucket.ca.as_ref().unwrap().ends_with("MIIB\n"));
    let stored = serde_json::to_string(to).unwrap();
    assert_eq!(serde_json::from_str::<Destination>(&stored).unwrap(), *to);
}

#[test]
fn a_bucket_that_cannot_be_reached_is_refused() {
    let version = "version: v1.34.1";
    let check_to = |to: &str, expected: &expect_test::Expect| {
        let more = format!("{version}\n        etcdBackup: {{to: {to}}}");
        check(&[(version, &more)], expected);
    };
    check_to(
        "{s3: {endpoint: https://s3.example.org/path, bucket: Caps, region: EU, prefix: /a, ca: secret, secretRef: {name: store, key: token}, acl: public}}",
        &expect![[r#"
            spec.kubernetes.clusters[0].etcdBackup.to.s3.endpoint: found `https://s3.example.org/path`, allowed: http:// or https://, a host, perhaps a port, and nothing behind them, such as https://s3.example.org:9000
            spec.kubernetes.clusters[0].etcdBackup.to.s3.bucket: found `Caps`: the name of a bucket has 3 to 63 of a-z, 0-9, `-` and `.`, begins and ends with a letter or digit, and has no two dots in a row
            spec.kubernetes.clusters[0].etcdBackup.to.s3.region: found `EU`: the name of a region has 1 to 63 of a-z, 0-9 and `-`
            spec.kubernetes.clusters[0].etcdBackup.to.s3.prefix: found `/a`: a prefix has 1 to 200 of a-z, A-Z, 0-9, `-`, `_`, `.` and, inside, `/`, and no part of it is empty, `.` or `..`
            spec.kubernetes.clusters[0].etcdBackup.to.s3.ca: found no certificate, allowed: certificates in PEM
            spec.kubernetes.clusters[0].etcdBackup.to.s3.secretRef.key: unknown field; allowed: name, namespace
            spec.kubernetes.clusters[0].etcdBackup.to.s3.acl: unknown field; allowed: endpoint, bucket, region, prefix, ca, secretRef
        "#]],
    );
    check_to(
        "{s3: {endpoint: 'https://me:hunter2@s3.example.org', bucket: abc, ca: '-----BEGIN CERTIFICATE----- -----BEGIN PRIVATE KEY-----', secretRef: {name: store}}}",
        &expect![[r#"
            spec.kubernetes.clusters[0].etcdBackup.to.s3.endpoint: found a user or a password, which a manifest must not hold, allowed: http:// or https://, a host, perhaps a port, and nothing behind them, such as https://s3.example.org:9000
            spec.kubernetes.clusters[0].etcdBackup.to.s3.ca: found a private key, allowed: certificates in PEM
        "#]],
    );
    check_to(
        "{s3: {}, directory: vault}",
        &expect![[r#"
        spec.kubernetes.clusters[0].etcdBackup.to.s3.endpoint: found nothing; this field is required
        spec.kubernetes.clusters[0].etcdBackup.to.s3.bucket: found nothing; this field is required
        spec.kubernetes.clusters[0].etcdBackup.to.s3.secretRef: found nothing; this field is required
        spec.kubernetes.clusters[0].etcdBackup.to.directory: found a directory and a bucket, allowed: one of them
    "#]],
    );
}
