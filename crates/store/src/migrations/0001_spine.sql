CREATE TABLE schema_version (
    version INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- The current generation of each manifest.
CREATE TABLE manifests (
    project    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    deleted    INTEGER NOT NULL,
    PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;

-- Every generation there ever was: the text as written, the document as admitted.
CREATE TABLE manifest_generations (
    project    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    author     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    deleted    INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    format     INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    PRIMARY KEY (project, name, generation)
) STRICT;

-- Answers to submissions that carried a key, to be repeated.
CREATE TABLE idempotency_keys (
    project    TEXT    NOT NULL,
    idempotency_key TEXT NOT NULL,
    at         INTEGER NOT NULL,
    manifest   TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    format     INTEGER NOT NULL,
    answer     TEXT    NOT NULL,
    PRIMARY KEY (project, idempotency_key)
) STRICT;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (at);

-- One row per cluster and life; the row outlives the cluster, so that no id comes twice.
CREATE TABLE clusters (
    id          TEXT    NOT NULL PRIMARY KEY,
    project     TEXT    NOT NULL,
    manifest    TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    incarnation INTEGER NOT NULL,
    generation  INTEGER NOT NULL,
    version     TEXT    NOT NULL,
    tombstone   INTEGER NOT NULL,
    phase       TEXT    NOT NULL,
    plans       INTEGER NOT NULL,
    unplanned   INTEGER NOT NULL,
    format      INTEGER NOT NULL,
    summary     TEXT    NOT NULL,
    held        TEXT    NOT NULL,
    probed_at   INTEGER,
    updated_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX clusters_by_name ON clusters (project, name, incarnation);
CREATE INDEX clusters_by_manifest ON clusters (project, manifest, name, incarnation);
CREATE INDEX clusters_by_phase ON clusters (phase, project, name, incarnation);
CREATE INDEX clusters_unplanned ON clusters (id) WHERE unplanned = 1;
CREATE INDEX clusters_alive ON clusters (id) WHERE phase <> 'gone';

-- Every generation of every cluster's desired state.
CREATE TABLE desired (
    cluster    TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    author     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    tombstone  INTEGER NOT NULL,
    format     INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    PRIMARY KEY (cluster, generation)
) STRICT;

-- The machines of the current desired state of clusters that are not gone, for lists.
CREATE TABLE machines (
    id           TEXT    NOT NULL PRIMARY KEY,
    project      TEXT    NOT NULL,
    cluster      TEXT    NOT NULL,
    cluster_name TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    leaving      INTEGER NOT NULL,
    absent       INTEGER NOT NULL,
    format       INTEGER NOT NULL,
    body         TEXT    NOT NULL
) STRICT;
CREATE INDEX machines_by_name ON machines (project, name, id);
CREATE INDEX machines_by_cluster_name ON machines (project, cluster_name, name, id);
CREATE INDEX machines_by_cluster ON machines (cluster);
CREATE INDEX machines_wanted ON machines (leaving, absent);

-- Wishes outside the manifest. Task and machine name what ends a wish: that the task was
-- done, or that the machine is gone. A wish with a task alone asks for another attempt.
CREATE TABLE intents (
    seq          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    project      TEXT    NOT NULL,
    cluster      TEXT    NOT NULL,
    task         TEXT,
    machine      TEXT,
    open         INTEGER NOT NULL,
    expires_at   INTEGER,
    updated_at   INTEGER NOT NULL,
    format       INTEGER NOT NULL,
    body         TEXT    NOT NULL
) STRICT;
CREATE INDEX intents_open_by_project ON intents (project, seq) WHERE open = 1;
CREATE INDEX intents_open_by_cluster ON intents (cluster, seq) WHERE open = 1;
CREATE INDEX intents_open_by_task ON intents (task) WHERE open = 1;
CREATE INDEX intents_open_by_machine ON intents (machine) WHERE open = 1;
CREATE INDEX intents_ending ON intents (expires_at) WHERE open = 1;
CREATE INDEX intents_ended ON intents (updated_at) WHERE open = 0;

-- The body never changes; what changes beside it is the queue.
CREATE TABLE tasks (
    seq          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL UNIQUE,
    project      TEXT    NOT NULL,
    cluster      TEXT    NOT NULL,
    cluster_name TEXT    NOT NULL,
    machine      TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    attempts     INTEGER NOT NULL,
    fence        INTEGER NOT NULL,
    not_before   INTEGER NOT NULL,
    lease_until  INTEGER,
    worker       TEXT,
    lost         INTEGER NOT NULL,
    error        TEXT,
    log_lines    INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    format       INTEGER NOT NULL,
    body         TEXT    NOT NULL
) STRICT;
CREATE INDEX tasks_by_cluster ON tasks (cluster, state, not_before);
CREATE INDEX tasks_by_project ON tasks (project, seq);
CREATE INDEX tasks_by_cluster_name ON tasks (project, cluster_name, seq);
CREATE INDEX tasks_by_state ON tasks (state, project, seq);
CREATE INDEX tasks_by_worker ON tasks (worker) WHERE state = 'running';
CREATE INDEX tasks_by_lease ON tasks (lease_until) WHERE state = 'running';
-- One machine, one open task.
CREATE UNIQUE INDEX tasks_open_by_machine ON tasks (machine) WHERE state IN ('waiting', 'running', 'stuck');
CREATE INDEX tasks_finished ON tasks (updated_at) WHERE state IN ('done', 'withdrawn');

-- How busy each cluster is and when its next task is due: what a fair choice needs to
-- know without reading the tasks. Always recomputed from the tasks in the same transaction.
CREATE TABLE lanes (
    cluster TEXT    NOT NULL PRIMARY KEY,
    running INTEGER NOT NULL,
    due     INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_by_load ON lanes (running, due) WHERE due IS NOT NULL;
CREATE INDEX lanes_by_due ON lanes (due) WHERE due IS NOT NULL;

CREATE TABLE task_logs (
    task    TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    text    TEXT    NOT NULL,
    PRIMARY KEY (task, seq)
) STRICT, WITHOUT ROWID;

-- Exclusive rights to things that clusters share.
CREATE TABLE claims (
    thing        TEXT    NOT NULL PRIMARY KEY,
    project      TEXT    NOT NULL,
    cluster      TEXT    NOT NULL,
    cluster_name TEXT    NOT NULL,
    machine      TEXT    NOT NULL,
    machine_name TEXT    NOT NULL,
    since        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_cluster ON claims (cluster);

-- The disruption ledger: machines that are out of service because of us.
CREATE TABLE ledger (
    cluster TEXT    NOT NULL,
    machine TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    since   INTEGER NOT NULL,
    PRIMARY KEY (cluster, machine)
) STRICT, WITHOUT ROWID;

-- The latest fact per object and source, and a log of the changes.
CREATE TABLE observations (
    cluster TEXT    NOT NULL,
    object  TEXT    NOT NULL,
    source  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    format  INTEGER NOT NULL,
    fact    TEXT    NOT NULL,
    PRIMARY KEY (cluster, object, source)
) STRICT, WITHOUT ROWID;
CREATE TABLE observation_changes (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    cluster TEXT    NOT NULL,
    object  TEXT    NOT NULL,
    source  TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    format  INTEGER NOT NULL,
    fact    TEXT    NOT NULL
) STRICT;
CREATE INDEX observation_changes_by_object ON observation_changes (object, id);

CREATE TABLE events (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    project TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    object  TEXT    NOT NULL,
    message TEXT    NOT NULL
) STRICT;
CREATE INDEX events_by_project ON events (project, id);

-- Journeys that were shown to somebody, for a day.
CREATE TABLE journeys (
    project TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    PRIMARY KEY (project, id)
) STRICT;
CREATE INDEX journeys_by_age ON journeys (at);
