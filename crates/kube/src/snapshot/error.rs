//! What can go wrong with snapshots of etcd: a code, a sentence, a hint, and who must act.

driver::kinds! {
    /// A host has no room for a snapshot.
    NoRoom = "SNAPSHOT-001", Person, "make room on that host's disk: a snapshot is as large as etcd, and two of them must fit besides it";
    /// What etcd has just written is damaged.
    Unverified = "SNAPSHOT-002", Slipway, "tries again by itself; if it stays so, look at the disk of that host";
    /// A snapshot that is kept is not as it was written.
    Damaged = "SNAPSHOT-003", Person, "choose another snapshot with `slipway backup etcd list`, and look at the disk that keeps them";
    /// A snapshot that was sealed with another key.
    WrongKey = "SNAPSHOT-004", Person, "it was sealed by another installation, or before this one was restored: bring back the backup of the installation that took it";
    /// Snapshots cannot be written where they should be kept.
    Unwritable = "SNAPSHOT-005", Person, "see that there is room, and that the server may write there: DATA_DIR/snapshots, or the directory in it that the manifest names";
    /// There is no such snapshot.
    Unknown = "SNAPSHOT-006", Person, "choose one of those that `slipway backup etcd list` shows; with several workers, keep snapshots where all of them reach them";
    /// etcd gave no snapshot.
    Silent = "SNAPSHOT-007", Slipway, "tries again by itself; see on that machine that etcd is healthy";
    /// A member could not be brought to what a snapshot says.
    Unrestored = "SNAPSHOT-008", Slipway, "tries again by itself, from the step that failed; the log of the task has all that was said";
}
