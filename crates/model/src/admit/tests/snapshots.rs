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
            spec.kubernetes.clusters[0].etcdBackup.to.directory: found `../x`: name has '.' at position 0; allowed are a-z, 0-9 and, inside, hyphens
        "#]],
    );
    check(
        &[(
            "version: v1.34.1",
            "version: v1.34.1\n        etcdBackup: {every: 31d, to: {}}",
        )],
        &expect![[r#"
            spec.kubernetes.clusters[0].etcdBackup.every: found `31d`: etcd is saved every 1m to 30d
            spec.kubernetes.clusters[0].etcdBackup.to.directory: found nothing; this field is required
        "#]],
    );
}
