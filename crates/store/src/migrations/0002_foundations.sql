-- Who owns things. A limit that is absent is no limit.
CREATE TABLE projects (
    name             TEXT    NOT NULL PRIMARY KEY,
    clusters_max     INTEGER,
    machines_max     INTEGER,
    environments_max INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
) STRICT;
INSERT INTO projects (name, created_at, updated_at) VALUES ('default', 0, 0);
INSERT INTO projects (name, created_at, updated_at)
    SELECT DISTINCT project, 0, 0 FROM manifests WHERE project <> 'default';

-- Who may speak: digests of random values, never the values. A token without a project is
-- good for all of them.
CREATE TABLE tokens (
    id           TEXT    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL,
    project      TEXT,
    role         TEXT    NOT NULL,
    digest       TEXT    NOT NULL UNIQUE,
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;
CREATE INDEX tokens_by_name ON tokens (name, id);

-- Data keys, each wrapped by the master key, which is never here.
CREATE TABLE seal_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    wrapped_by TEXT    NOT NULL,
    wrapped    TEXT    NOT NULL,
    in_use     INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX seal_keys_in_use ON seal_keys (in_use) WHERE in_use = 1;

-- Sealed values: entries of named secrets (`secret/NAME`) and outputs of tasks (`cluster/ID`).
CREATE TABLE sealed (
    project    TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    entry      TEXT    NOT NULL,
    seal_key   TEXT    NOT NULL,
    sealed     TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    updated_by TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (project, owner, entry)
) STRICT;
CREATE INDEX sealed_by_key ON sealed (seal_key);

-- Who did what. Each entry's digest covers the one before it; numbers have no gaps.
CREATE TABLE audit (
    seq        INTEGER NOT NULL PRIMARY KEY,
    at         INTEGER NOT NULL,
    project    TEXT,
    actor      TEXT    NOT NULL,
    origin     TEXT    NOT NULL,
    action     TEXT    NOT NULL,
    object     TEXT    NOT NULL,
    was        INTEGER,
    became     INTEGER,
    detail     TEXT    NOT NULL,
    previous   TEXT    NOT NULL,
    digest     TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_by_project ON audit (project, seq);

-- Claims of things that there are several of have a unit each; exclusive ones have none.
CREATE TABLE claims_by_unit (
    thing        TEXT    NOT NULL,
    unit         TEXT    NOT NULL,
    project      TEXT    NOT NULL,
    cluster      TEXT    NOT NULL,
    cluster_name TEXT    NOT NULL,
    machine      TEXT    NOT NULL,
    machine_name TEXT    NOT NULL,
    since        INTEGER NOT NULL,
    PRIMARY KEY (thing, unit)
) STRICT;
INSERT INTO claims_by_unit (thing, unit, project, cluster, cluster_name, machine, machine_name, since)
    SELECT thing, '', project, cluster, cluster_name, machine, machine_name, since FROM claims;
-- Machines that may be there have a unit of their project's quota each.
INSERT INTO claims_by_unit (thing, unit, project, cluster, cluster_name, machine, machine_name, since)
    SELECT 'quota/machines/' || m.project, m.id, m.project, m.cluster, m.cluster_name, m.id, m.name, 0
    FROM machines m
    WHERE NOT (m.leaving = 1 AND m.absent = 1)
      AND (EXISTS (SELECT 1 FROM observations o WHERE o.cluster = m.cluster AND o.object = m.id)
           OR EXISTS (SELECT 1 FROM tasks t WHERE t.cluster = m.cluster AND t.machine = m.id
                                              AND t.state IN ('waiting', 'running', 'stuck')));
DROP TABLE claims;
ALTER TABLE claims_by_unit RENAME TO claims;
CREATE INDEX claims_by_cluster ON claims (cluster);

-- Budgets are counted per cluster, pool and group.
ALTER TABLE ledger ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
ALTER TABLE ledger ADD COLUMN cluster_name TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN pool TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger ADD COLUMN disruption_group TEXT;
UPDATE ledger SET
    project = COALESCE((SELECT c.project FROM clusters c WHERE c.id = ledger.cluster), project),
    cluster_name = COALESCE((SELECT c.name FROM clusters c WHERE c.id = ledger.cluster), cluster_name);
-- Machines are called CLUSTER-POOL-NUMBER, and the number is hexadecimal.
UPDATE ledger SET pool = SUBSTR(RTRIM(name, '0123456789abcdef'), LENGTH(cluster_name) + 2,
                                LENGTH(RTRIM(name, '0123456789abcdef')) - LENGTH(cluster_name) - 2);
CREATE INDEX ledger_by_group ON ledger (project, disruption_group);

-- How long each log is: beside the log, because every line would otherwise touch the queue.
CREATE TABLE task_log_lengths (
    task  TEXT    NOT NULL PRIMARY KEY,
    lines INTEGER NOT NULL,
    at    INTEGER NOT NULL
) STRICT;
INSERT INTO task_log_lengths (task, lines, at) SELECT id, log_lines, updated_at FROM tasks WHERE log_lines > 0;
CREATE INDEX task_log_lengths_by_age ON task_log_lengths (at);
ALTER TABLE tasks DROP COLUMN log_lines;

-- Nobody asks for the tasks of a worker, and every attempt would touch it twice.
DROP INDEX tasks_by_worker;

-- Clusters whose lanes are to be computed anew by whoever claims next, where several write at
-- once: who records adds a row and waits for nobody.
CREATE TABLE lane_changes (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    cluster TEXT    NOT NULL
) STRICT;

-- When a cluster is to be planned again although nothing happens: a window opens.
ALTER TABLE clusters ADD COLUMN wake_at INTEGER;
CREATE INDEX clusters_waking ON clusters (wake_at) WHERE wake_at IS NOT NULL;
