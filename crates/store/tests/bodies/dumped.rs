//! Everything as one file, and back: whole, of one moment, or not at all.

use crate::behind::Place;
use crate::fixture::{LEASE, at, cluster, name, plan, project, settle, submit, text};
use crate::furnished::{furnish, token, wrapped};
use model::id::{JourneyId, Origin};
use model::name::Name;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{DumpError, FORMAT, Page, Quota, Store, TaskFilter};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A directory for files.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with these contents.
    fn with(&self, name: &str, contents: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), contents).unwrap();
        self.path(name)
    }
}

/// Everything in a store, as its file has it. The time is always the same, so that equal
/// stores have equal files.
async fn contents(store: &Store, files: &Files) -> Vec<u8> {
    let path = files.path("contents");
    store.dump(&path, at(1234)).await.unwrap();
    std::fs::read(path).unwrap()
}

/// How many rows each table has in a file.
fn rows(contents: &[u8]) -> BTreeMap<String, usize> {
    let mut rows = BTreeMap::new();
    let mut table = String::new();
    for line in std::str::from_utf8(contents).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(next) = line.get("table") {
            next.as_str().unwrap().clone_into(&mut table);
            rows.insert(table.clone(), 0);
        } else if line.is_array() {
            *rows.get_mut(&table).unwrap() += 1;
        }
    }
    rows
}

/// The same file with other lines, and with the end that belongs to them.
fn forged(contents: &[u8], edit: impl FnOnce(&mut Vec<String>)) -> Vec<u8> {
    let text = std::str::from_utf8(contents).unwrap();
    let mut lines: Vec<_> = text.lines().map(|line| format!("{line}\n")).collect();
    lines.pop();
    edit(&mut lines);
    let rows = lines.iter().filter(|line| line.starts_with('[')).count();
    let digest = Sha256::digest(lines.concat());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    lines.push(format!("{{\"rows\":{rows},\"sha256\":\"{digest}\"}}\n"));
    lines.concat().into_bytes()
}

#[tokio::test]
async fn everything_goes_from_every_body_to_every_other() {
    let files = Files::new();
    let mut from = Store::in_memory().unwrap();
    furnish(&from).await;
    let first = contents(&from, &files).await;
    let rows = rows(&first).into_iter();
    let empty: Vec<_> = rows.filter(|(_, rows)| *rows == 0).collect();
    // Where one writes alone nobody has to be told of changed lanes.
    let expected = [("lane_changes".to_owned(), 0)];
    assert_eq!(empty, expected, "every table must prove something");

    // To disk, from disk to disk, to a server, and back from there.
    let mut places = vec![Place::directory(), Place::directory()];
    places.extend(Place::database(
        "everything_goes_from_every_body_to_every_other",
    ));
    places.push(Place::directory());
    for place in &places {
        let to = place.open();
        moved(&from, &to, &first, &files).await;
        from = to;
    }
    moved(&from, &Store::in_memory().unwrap(), &first, &files).await;
}

async fn moved(from: &Store, to: &Store, first: &[u8], files: &Files) {
    let path = files.path("moved");
    let written = from.dump(&path, at(1234)).await.unwrap();
    let read = to.load(&path).await.unwrap();
    assert_eq!(written, read);
    let after = contents(to, files).await;
    let after = std::str::from_utf8(&after).unwrap().lines();
    for (line, (after, first)) in after
        .zip(std::str::from_utf8(first).unwrap().lines())
        .enumerate()
    {
        assert_eq!(after, first, "line {line}");
    }
    assert!(contents(to, files).await == first);
}

#[tokio::test]
async fn life_goes_on_where_it_was() {
    const YEAR: i64 = 365 * 24 * 60 * 60;
    let files = Files::new();
    let store = Store::in_memory().unwrap();
    furnish(&store).await;
    let path = files.path("backup");
    store.dump(&path, at(5)).await.unwrap();
    for place in Place::each("life_goes_on_where_it_was") {
        let to = place.open();
        to.load(&path).await.unwrap();
        goes_on(&store, &to).await;
    }
    what_waits_goes_along(&files).await;
    // Nor does a number come twice when all that had one was swept away since.
    let before = store.events(None, 0, 1000).await.unwrap().pop().unwrap().id;
    store.sweep(at(YEAR)).await.unwrap();
    assert_eq!(store.events(None, 0, 1000).await.unwrap(), []);
    store.dump(&path, at(YEAR)).await.unwrap();
    for place in Place::each("life_goes_on_where_it_was") {
        let to = place.open();
        to.load(&path).await.unwrap();
        cluster(&to, "next", 1).await;
        let next = to.events(None, before, 1000).await.unwrap();
        assert_eq!(
            next.len(),
            2,
            "on {place}: whoever resumes after {before} misses nothing"
        );
    }
}

/// Who plans on a server leaves it to whoever claims next to see what is due. That may be
/// somebody elsewhere.
async fn what_waits_goes_along(files: &Files) {
    let Some(source) = Place::database("what_waits_goes_along") else {
        return;
    };
    let (from, path) = (source.open(), files.path("waiting"));
    let east = cluster(&from, "east", 2).await;
    plan(&from, east, at(1)).await;
    from.dump(&path, at(2)).await.unwrap();
    for place in Place::each("what_waits_goes_along") {
        let to = place.open();
        to.load(&path).await.unwrap();
        assert_eq!(to.next_due().await.unwrap(), Some(at(1)), "on {place}");
        let claims = to.claim("w", 100, 100, LEASE, at(3)).await.unwrap();
        assert_eq!(claims.len(), 3, "on {place}");
    }
}

/// Numbers continue, work is taken over, the chain is whole.
async fn goes_on(before: &Store, to: &Store) {
    let newest = async |store: &Store| store.events(None, 0, 1000).await.unwrap().pop().unwrap().id;
    let old = newest(before).await;
    assert_eq!(newest(to).await, old);
    let chain = to.verify_audit().await.unwrap();
    assert_eq!(chain, before.verify_audit().await.unwrap());
    assert_eq!(chain.broken, None);

    let next = cluster(to, "next", 1).await;
    plan(to, next, at(200)).await;
    let after = to.events(None, old, 1000).await.unwrap();
    assert!(after.len() >= 3 && after.is_sorted_by(|a, b| a.id < b.id));
    assert_eq!(to.verify_audit().await.unwrap().entries, chain.entries + 1);
    let tasks = to
        .tasks(&project(), TaskFilter::default(), Page::default())
        .await
        .unwrap()
        .items;
    let newest: BTreeSet<_> = tasks[..2].iter().map(|row| row.task.cluster).collect();
    assert_eq!(newest, [next].into(), "later tasks have later numbers");

    // Who worked before the move is unknown here, and its leases end like any other's.
    assert!(!to.expire(at(200)).await.unwrap().is_empty());
    let claims = to.claim("other", 100, 100, LEASE, at(200)).await.unwrap();
    assert!(claims.iter().any(|claim| claim.lost));
    assert!(claims.iter().any(|claim| claim.task.cluster == next));
    for claim in claims {
        let ended = to.record(claim, store::Ended::Yield, vec![], vec![], vec![], at(200));
        assert_eq!(ended.await.unwrap(), store::Recorded::Yes);
    }
    settle(to, next, at(300)).await;
    let found = to
        .token_by_digest(&token("ana").digest, at(201))
        .await
        .unwrap();
    assert_eq!(found.unwrap().last_used_at, Some(at(2)));
}

/// Counts in a project's limit, which is written together with an entry of the audit. They are
/// in the first and in the last table of a file, as far apart as can be.
async fn count_up(store: Store, project: Name, stop: Arc<AtomicBool>, counted: watch::Sender<u64>) {
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let quota = Quota {
            clusters: Some(number),
            ..Quota::default()
        };
        store
            .put_project(&project, quota, "ana".into(), at(1))
            .await
            .unwrap();
        counted.send_modify(|counted| *counted += 1);
    }
}

#[tokio::test]
async fn a_file_is_of_one_moment_while_others_write() {
    for place in Place::each("a_file_is_of_one_moment_while_others_write") {
        let store = place.open();
        let (files, stop) = (Files::new(), Arc::new(AtomicBool::new(false)));
        let counter = watch::Sender::new(0);
        let projects: Vec<_> = (0..4).map(|writer| name(&format!("p{writer}"))).collect();
        let mut writers = JoinSet::new();
        for project in projects.iter().cloned() {
            writers.spawn(count_up(
                store.clone(),
                project,
                stop.clone(),
                counter.clone(),
            ));
        }
        let mut counted = counter.subscribe();
        let mut entries = 0;
        for number in 1..=5 {
            // Something was written since the last one, and goes on being written.
            let before = *counted.borrow_and_update();
            let more = counted.wait_for(|count| *count >= before + 8);
            more.await.unwrap();
            let path = files.path(&format!("backup-{number}"));
            store.dump(&path, at(number)).await.unwrap();
            let copy = Store::in_memory().unwrap();
            copy.load(&path).await.unwrap();
            for project in &projects {
                assert_eq!(limit(&copy, project).await, entered(&copy, project).await);
            }
            let chain = copy.verify_audit().await.unwrap();
            assert_eq!(chain.broken, None);
            let later = chain.entries > entries;
            assert!(later, "on {place}: each is later than the one before");
            entries = chain.entries;
        }
        stop.store(true, Ordering::Relaxed);
        writers.join_all().await;
    }
}

async fn limit(store: &Store, project: &Name) -> usize {
    let found = store.project(project).await.unwrap();
    let limit = found.and_then(|row| row.quota.clusters).unwrap_or(0);
    usize::try_from(limit).unwrap()
}

/// How many entries of the audit are about a project.
async fn entered(store: &Store, project: &Name) -> usize {
    let entries = store.audit_after(0, 10_000).await.unwrap();
    let own = entries
        .iter()
        .filter(|entry| entry.project.as_deref() == Some(project.as_str()));
    own.count()
}

/// Loads a file that must be refused, and says how.
async fn refused(to: &Store, path: &Path) -> &'static str {
    let refused = to.load(path).await.unwrap_err();
    assert!(!refused.hint().is_empty());
    refused.code()
}

/// A file with a little of much, and the length of its first line.
async fn small(files: &Files) -> (Vec<u8>, usize) {
    let store = Store::in_memory().unwrap();
    let east = cluster(&store, "east", 1).await;
    plan(&store, east, at(1)).await;
    store
        .add_token(token("ana"), "root".into(), at(1))
        .await
        .unwrap();
    let whole = contents(&store, files).await;
    let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    (whole, head)
}

/// A file that was cut off anywhere is refused before anything is read from it.
#[tokio::test]
async fn a_file_that_was_cut_off_is_refused() {
    let files = Files::new();
    let (whole, head) = small(&files).await;
    let places = Place::each("a_file_that_was_cut_off_is_refused");
    for (place, every) in places.iter().zip([101_usize, 2003]) {
        let to = place.open();
        let pristine = contents(&to, &files).await;
        // The last line has about a hundred bytes.
        let near_the_end = (whole.len() - 120..whole.len()).step_by(every.div_ceil(100));
        for length in (head..whole.len()).step_by(every).chain(near_the_end) {
            let cut = files.with("cut", &whole[..length]);
            let code = refused(&to, &cut).await;
            assert_eq!(code, "BACKUP-005", "{length} bytes on {place}");
        }
        // Before its first line has ended nobody can say what it was to become.
        for length in [0, 1, head / 2, head - 1] {
            let cut = files.with("cut", &whole[..length]);
            let code = refused(&to, &cut).await;
            assert_eq!(code, "BACKUP-003", "{length} bytes on {place}");
        }
        let after = contents(&to, &files).await;
        assert!(after == pristine, "nothing is half done on {place}");
        to.load(&files.with("whole", &whole)).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_with_one_wrong_byte_is_refused() {
    let files = Files::new();
    let (whole, head) = small(&files).await;
    let places = Place::each("a_file_with_one_wrong_byte_is_refused");
    for (place, every) in places.iter().zip([103_usize, 2011]) {
        let to = place.open();
        let pristine = contents(&to, &files).await;
        let wrong = |at: usize| {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            files.with("damaged", &damaged)
        };
        let last = whole.len() - 1;
        let near_the_end = (last - 120..last).step_by(every.div_ceil(100));
        for at in (head..last).step_by(every).chain(near_the_end) {
            let code = refused(&to, &wrong(at)).await;
            assert_eq!(code, "BACKUP-006", "byte {at} on {place}");
        }
        for at in (0..head).step_by(every.div_ceil(100)) {
            let code = refused(&to, &wrong(at)).await;
            let codes = ["BACKUP-003", "BACKUP-004", "BACKUP-006"];
            assert!(codes.contains(&code), "byte {at} on {place}: {code}");
        }
        let after = contents(&to, &files).await;
        assert!(after == pristine, "nothing is half done on {place}");
        to.load(&files.with("whole", &whole)).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_something_else_is_refused() {
    let files = Files::new();
    let store = Store::in_memory().unwrap();
    cluster(&store, "east", 1).await;
    let whole = contents(&store, &files).await;
    let to = Store::in_memory().unwrap();
    let pristine = contents(&to, &files).await;
    for other in [
        &b""[..],
        b"\n",
        b"Dear database\n",
        b"\x7fELF\x02\x01\x01\0",
        b"{}\n",
        b"[1, 2]\n",
        b"{\"slipway\":\"story\",\"format\":1,\"at\":0}\n",
        b"{\"table\":\"projects\"}\n",
        b"{\"rows\":0,\"sha256\":\"\"}\n",
    ] {
        let path = files.with("other", other);
        let shown = String::from_utf8_lossy(other);
        assert_eq!(refused(&to, &path).await, "BACKUP-003", "{shown:?}");
    }
    let newer = forged(&whole, |lines| {
        lines[0] = "{\"slipway\":\"backup\",\"format\":99,\"at\":0}\n".to_owned();
    });
    let newer = to.load(&files.with("newer", &newer)).await.unwrap_err();
    assert!(matches!(
        newer,
        DumpError::Newer {
            found: 99,
            known: FORMAT
        }
    ));
    assert_eq!(newer.code(), "BACKUP-004");
    assert_eq!(refused(&to, &files.path("not-there")).await, "BACKUP-002");
    assert_eq!(refused(&to, files.0.path()).await, "BACKUP-002");
    assert!(contents(&to, &files).await == pristine);
}

/// Whole by its own account, and yet not what a store can hold.
#[tokio::test]
async fn a_file_that_cannot_be_true_leaves_nothing_behind() {
    let files = Files::new();
    let store = Store::in_memory().unwrap();
    furnish(&store).await;
    let whole = contents(&store, &files).await;
    let position = |lines: &[String], begins: &str| {
        lines
            .iter()
            .position(|line| line.starts_with(begins))
            .unwrap()
    };
    let unknown = forged(&whole, |lines| {
        let at = position(lines, "{\"table\":\"journeys\"");
        lines[at] = "{\"table\":\"recipes\"}\n".to_owned();
    });
    let twice = forged(&whole, |lines| {
        let at = position(lines, "{\"table\":\"tokens\"");
        lines.insert(at + 2, lines[at + 1].clone());
    });
    let short = forged(&whole, |lines| {
        let at = position(lines, "{\"table\":\"events\"");
        lines[at + 1] = "[1]\n".to_owned();
    });
    let mut longer = whole.clone();
    longer.extend(b"{\"table\":\"tokens\"}\n[\"mine\"]\n");
    for place in Place::each("a_file_that_cannot_be_true_leaves_nothing_behind") {
        let to = place.open();
        let pristine = contents(&to, &files).await;
        assert_eq!(
            refused(&to, &files.with("unknown", &unknown)).await,
            "BACKUP-006"
        );
        assert_eq!(
            refused(&to, &files.with("longer", &longer)).await,
            "BACKUP-006"
        );
        refused(&to, &files.with("twice", &twice)).await;
        refused(&to, &files.with("short", &short)).await;
        assert!(contents(&to, &files).await == pristine, "on {place}");
        to.load(&files.with("whole", &whole)).await.unwrap();
    }
}

#[tokio::test]
async fn nothing_is_read_over_what_is_there() {
    let files = Files::new();
    let backup = files.path("backup");
    let store = Store::in_memory().unwrap();
    furnish(&store).await;
    store.dump(&backup, at(1)).await.unwrap();
    let place = Place::directory();
    let mut stores = vec![place.open()];
    let database = Place::database("nothing_is_read_over_what_is_there");
    stores.extend(database.iter().map(Place::open));
    // However little somebody has done there.
    stores.extend((0..5).map(|_| Store::in_memory().unwrap()));
    for (number, to) in stores.iter().enumerate() {
        match number % 5 {
            0 => drop(submit(to, &text("mine", &["mine"], 1, 1)).await.unwrap()),
            1 => {
                let added = to.add_token(token("mine"), "root".into(), at(1));
                added.await.unwrap();
            }
            2 => {
                let used = to.use_seal_key(wrapped(9), true, "root".into(), at(1));
                used.await.unwrap();
            }
            3 => {
                let (mine, quota) = (name("mine"), Quota::default());
                let put = to.put_project(&mine, quota, "root".into(), at(1));
                put.await.unwrap();
            }
            _ => {
                let origin = Origin {
                    parent: "mine",
                    name: "",
                    ordinal: 0,
                    incarnation: 0,
                };
                let (id, mine) = (JourneyId::derive(origin), "mine".to_owned());
                to.save_journey(id, &project(), mine, at(1)).await.unwrap();
            }
        }
        let before = contents(to, &files).await;
        assert_eq!(refused(to, &backup).await, "BACKUP-007", "{number}");
        assert!(contents(to, &files).await == before);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_said_to_be_so() {
    let files = Files::new();
    let store = Store::in_memory().unwrap();
    furnish(&store).await;
    for path in [
        files.path("no/such/directory"),
        "/dev/full".into(),
        files.0.path().to_owned(),
    ] {
        let refused = store.dump(&path, at(1)).await.unwrap_err();
        assert_eq!(refused.code(), "BACKUP-001", "{}", path.display());
        assert!(std::error::Error::source(&refused).is_some());
    }
}

/// It holds what the database holds, so nobody else may read it either.
#[tokio::test]
async fn a_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let files = Files::new();
    let path = files.path("backup");
    Store::in_memory()
        .unwrap()
        .dump(&path, at(1))
        .await
        .unwrap();
    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// The file as a version wrote it that knew less: no stems, and fewer columns in some tables.
fn of_format_two(contents: &[u8]) -> Vec<u8> {
    let fewer = [
        ("observations", 1),
        ("manifests", 1),
        ("manifest_generations", 2),
        ("desired", 2),
        ("environment_actions", 2),
    ];
    forged(contents, |lines| {
        let mut head: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        head["format"] = 2.into();
        lines[0] = format!("{head}\n");
        let mut table = String::new();
        for line in std::mem::take(lines) {
            let mut read: serde_json::Value = serde_json::from_str(&line).unwrap();
            if let Some(next) = read.get("table") {
                next.as_str().unwrap().clone_into(&mut table);
            }
            if table == "stems" || table == "paces" {
                continue;
            }
            let cells = read.as_array_mut();
            let lacks = fewer.iter().find(|(of, _)| *of == table);
            if let (Some(cells), Some((_, lacks))) = (cells, lacks) {
                cells.truncate(cells.len() - lacks);
            }
            lines.push(format!("{read}\n"));
        }
    })
}

#[tokio::test]
async fn a_backup_of_an_earlier_format_is_restored() {
    let files = Files::new();
    let from = Store::in_memory().unwrap();
    furnish(&from).await;
    let old = of_format_two(&contents(&from, &files).await);
    let old = files.with("old", &old);
    for place in Place::each("a_backup_of_an_earlier_format_is_restored") {
        let store = place.open();
        store.restore(&old, at(5)).await.unwrap();
        let again = store
            .cluster(&project(), &name("again"))
            .await
            .unwrap()
            .unwrap();
        let rows = store.desired_generations(again.id, Page::default()).await;
        let rows = rows.unwrap().items;
        assert!(rows.iter().all(|row| row.because.is_empty()), "{rows:?}");
        submit(&store, &text("again", &["again"], 1, 4))
            .await
            .unwrap();
        let rows = store.desired_generations(again.id, Page::default()).await;
        assert_eq!(
            rows.unwrap().items[0].because,
            "manifest again, generation 2, was applied"
        );
    }
}
