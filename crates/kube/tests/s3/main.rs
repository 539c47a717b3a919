//! Snapshots in a store that speaks S3: moto, which checks every signature with the code of the
//! SDK that most people use.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod site;
mod trouble;

use kube::snapshot::Kind;
use kube::snapshot::seal::Sealer;
use site::{PART, Site, bytes, id, task};
use tokio::io::AsyncReadExt as _;

#[tokio::test]
async fn what_is_kept_is_listed_read_and_removed() {
    let Some(mut site) = Site::new("what_is_kept_is_listed_read_and_removed") else {
        return;
    };
    let shelf = site.shelf(Some("deep/inside"));
    assert_eq!(shelf.list().await.unwrap(), []);
    let before = Some("v1.35.8".parse().unwrap());
    site::put(&shelf, 2, b"second", before).await.unwrap();
    site::put(&shelf, 1, b"first", None).await.unwrap();
    let kept = shelf.list().await.unwrap();
    let told: Vec<_> = kept.iter().map(|kept| (&kept.snapshot, kept.by)).collect();
    assert_eq!(
        (&told[0].0.id, told[0].0.size, told[0].0.before, told[0].1),
        (&id(1), 5, None, task(1))
    );
    assert_eq!((&told[1].0.id, told[1].0.before), (&id(2), before));
    assert_eq!(shelf.find(&id(2)).await.unwrap(), kept[1]);
    let objects = site.store.objects().unwrap();
    let cluster = site.cluster.to_string();
    for (name, _) in &objects {
        assert!(
            name.starts_with(&format!("deep/inside/{cluster}/")),
            "{name}"
        );
    }
    let mut read = Vec::new();
    let mut open = shelf.open(&kept[0]).await.unwrap();
    open.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"first");
    shelf.remove(&kept[0]).await.unwrap();
    shelf.remove(&kept[0]).await.unwrap();
    assert_eq!(shelf.list().await.unwrap(), kept[1..]);
    let unknown = shelf.find(&id(1)).await.unwrap_err();
    assert_eq!(unknown.kind, Kind::Unknown);
    let gone = shelf.open(&kept[0]).await.err().unwrap();
    assert_eq!(gone.kind, Kind::Unknown);
}

#[tokio::test]
async fn of_several_clusters_and_of_others_each_sees_its_own() {
    let Some(mut site) = Site::new("of_several_clusters_and_of_others_each_sees_its_own") else {
        return;
    };
    site::put(&site.shelf(None), 1, b"ours", None)
        .await
        .unwrap();
    site::put(&site.shelf(Some("other")), 2, b"other", None)
        .await
        .unwrap();
    site.cluster = site::cluster("west");
    site::put(&site.shelf(None), 3, b"theirs", None)
        .await
        .unwrap();
    let kept = site.shelf(None).list().await.unwrap();
    let told: Vec<_> = kept.iter().map(|kept| kept.snapshot.id.clone()).collect();
    assert_eq!(told, [id(3)]);
    assert_eq!(site.store.objects().unwrap().len(), 3);
}

#[tokio::test]
async fn lists_go_on_where_a_page_ends() {
    let Some(mut site) = Site::new("lists_go_on_where_a_page_ends") else {
        return;
    };
    site.limits.page = 2;
    let shelf = site.shelf(None);
    for second in 0..5 {
        site::put(&shelf, second, b"sealed", None).await.unwrap();
    }
    let kept = shelf.list().await.unwrap();
    let told: Vec<_> = kept.iter().map(|kept| kept.snapshot.id.clone()).collect();
    assert_eq!(told, [id(0), id(1), id(2), id(3), id(4)]);
}

/// Sealed, sent in parts, brought back and opened: what comes is what went.
#[tokio::test]
async fn large_ones_are_sent_in_parts_and_come_back_whole() {
    let Some(mut site) = Site::new("large_ones_are_sent_in_parts_and_come_back_whole") else {
        return;
    };
    let shelf = site.shelf(None);
    let key = kube::snapshot::seal::new_key().unwrap();
    let sealer = Sealer::new(&key, site.cluster).unwrap();
    for (second, size) in [(1, PART - 1024), (2, 2 * PART + 77)] {
        let plain = bytes(size);
        let mut coming = shelf.begin(task(second)).await.unwrap();
        sealer.seal(&plain[..], &mut coming.file).await.unwrap();
        let version = "v1.34.4".parse().unwrap();
        let told = (&id(second), version, None, task(second));
        shelf.keep(coming, told).await.unwrap();
        let kept = shelf.find(&id(second)).await.unwrap();
        assert!(kept.snapshot.size > u64::try_from(size).unwrap());
        let open = shelf.open(&kept).await.unwrap();
        assert_eq!(sealer.knows(open).await, Ok(true));
        let mut back = Vec::new();
        let open = shelf.open(&kept).await.unwrap();
        sealer.open(open, &mut back).await.unwrap();
        assert!(back == plain, "{size} bytes came back otherwise");
    }
    assert_eq!(site.store.uploads().unwrap(), []);
    assert_eq!(site.store.objects().unwrap().len(), 2);
}
