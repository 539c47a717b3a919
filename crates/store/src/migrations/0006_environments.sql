-- What each project says of its environments.
CREATE TABLE environment_settings (
    project    TEXT    NOT NULL PRIMARY KEY,
    version    INTEGER NOT NULL,
    updated_by TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    format     INTEGER NOT NULL,
    body       TEXT    NOT NULL
) STRICT;

-- One row per environment and life; the row outlives the environment, so that no id comes twice.
-- What is looked at often is beside it, so that a look rewrites little.
CREATE TABLE environments (
    id           TEXT    NOT NULL PRIMARY KEY,
    project      TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    incarnation  INTEGER NOT NULL,
    generation   INTEGER NOT NULL,
    status       TEXT    NOT NULL,
    status_since INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    protected    INTEGER NOT NULL,
    gone         INTEGER NOT NULL,
    owner        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    archived_at  INTEGER,
    expires_at   INTEGER,
    -- When somebody last wanted something of it, and why it rests where nobody did.
    used_at      INTEGER NOT NULL,
    asleep       TEXT,
    format       INTEGER NOT NULL,
    body         TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX environments_by_life ON environments (project, name, incarnation);
-- A name has one bearer, also while it rests.
CREATE UNIQUE INDEX environments_by_name ON environments (project, name) WHERE gone = 0;
-- Lists find what they filter by here, and read only the rows that they show.
CREATE INDEX environments_listed_by_name ON environments (project, name, status, owner, id) WHERE gone = 0;
CREATE INDEX environments_listed_by_change ON environments (project, updated_at, id, status, owner, name)
    WHERE gone = 0;
CREATE INDEX environments_by_status ON environments (project, status, name, owner, id) WHERE gone = 0;
CREATE INDEX environments_expiring ON environments (expires_at) WHERE gone = 0 AND expires_at IS NOT NULL;
CREATE INDEX environments_resting ON environments (project, archived_at) WHERE gone = 0 AND status = 'archived';

CREATE INDEX environments_unused ON environments (project, used_at)
    WHERE gone = 0 AND status NOT IN ('archived', 'archive-pending', 'cleanup-failed');
CREATE INDEX environments_asleep ON environments (project, archived_at)
    WHERE gone = 0 AND status = 'archived' AND asleep = 'hours';

CREATE TABLE environment_labels (
    environment TEXT NOT NULL,
    label       TEXT NOT NULL,
    value       TEXT NOT NULL,
    project     TEXT NOT NULL,
    PRIMARY KEY (environment, label)
) STRICT, WITHOUT ROWID;
CREATE INDEX environment_labels_by_value ON environment_labels (project, label, value, environment);

-- When each environment is looked at next, and what the last look showed. Nobody looks at one
-- that is busy.
CREATE TABLE environment_checks (
    environment TEXT    NOT NULL PRIMARY KEY,
    due         INTEGER,
    at          INTEGER,
    seen        TEXT,
    said        TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX environment_checks_due ON environment_checks (due) WHERE due IS NOT NULL;

-- The body never changes; what changes beside it is the queue.
CREATE TABLE environment_actions (
    seq         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    project     TEXT    NOT NULL,
    environment TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    deed        TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    cancel      INTEGER NOT NULL,
    not_before  INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    lease_until INTEGER,
    worker      TEXT,
    begun_at    TEXT,
    deadline    INTEGER,
    exit_status INTEGER,
    error       TEXT,
    author      TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    ended_at    INTEGER,
    format      INTEGER NOT NULL,
    body        TEXT    NOT NULL
) STRICT;
-- One environment, one open action.
CREATE UNIQUE INDEX environment_actions_open ON environment_actions (environment)
    WHERE state IN ('waiting', 'running');
CREATE INDEX environment_actions_by_environment ON environment_actions (environment, seq);
CREATE INDEX environment_actions_waiting ON environment_actions (project, seq) WHERE state = 'waiting';
CREATE INDEX environment_actions_due ON environment_actions (not_before) WHERE state = 'waiting';
CREATE INDEX environment_actions_by_lease ON environment_actions (lease_until) WHERE state = 'running';
CREATE INDEX environment_actions_ended ON environment_actions (ended_at) WHERE ended_at IS NOT NULL;

-- What actions printed, in the order in which it came; and how much that is, by stream.
CREATE TABLE environment_output (
    action TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    stream TEXT    NOT NULL,
    line   INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    text   TEXT    NOT NULL,
    PRIMARY KEY (action, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE environment_output_lengths (
    action TEXT    NOT NULL PRIMARY KEY,
    lines  INTEGER NOT NULL,
    out    INTEGER NOT NULL,
    err    INTEGER NOT NULL,
    at     INTEGER NOT NULL
) STRICT;
CREATE INDEX environment_output_lengths_by_age ON environment_output_lengths (at);

-- How environments became what they are, the newest changes of each.
CREATE TABLE environment_changes (
    id          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    environment TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    was         TEXT,
    became      TEXT    NOT NULL,
    because     TEXT    NOT NULL
) STRICT;
CREATE INDEX environment_changes_by_environment ON environment_changes (environment, id);
