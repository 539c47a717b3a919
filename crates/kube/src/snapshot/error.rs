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
    /// The store of snapshots does not answer.
    StoreAway = "SNAPSHOT-009", Slipway, "tries again by itself; see that `endpoint` is right and can be reached from every server and worker";
    /// The store of snapshots refuses us.
    StoreRefuses = "SNAPSHOT-010", Person, "set the entries accessKeyId and secretAccessKey of the secret again, or have those keys list, read, write and delete in that bucket";
    /// There is no such bucket.
    NoBucket = "SNAPSHOT-011", Person, "make the bucket, or correct `bucket` in the manifest";
    /// The store of snapshots takes our signature for wrong.
    Unsigned = "SNAPSHOT-012", Person, "compare `region` and the entry secretAccessKey with what the store says, and the clock of the server with the right time";
    /// Nobody whom we trust vouches for the store of snapshots.
    Untrusted = "SNAPSHOT-013", Person, "give the certificate of its authority as `ca` in the manifest, or have this machine trust it";
    /// What answers there does not speak S3 as we know it.
    Strange = "SNAPSHOT-014", Person, "see that `endpoint` leads to a store that speaks S3, and not to a web page in front of it";
}
