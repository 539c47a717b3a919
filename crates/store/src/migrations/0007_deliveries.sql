-- Messages to somebody outside: written with what they tell of, and sent by one server at a time.
-- Those of one lane are sent one after the other, in their order. What a message says is its body,
-- which only those who send its kind read.
CREATE TABLE environment_deliveries (
    seq         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    project     TEXT    NOT NULL,
    lane        TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    environment TEXT,
    name        TEXT,
    occasion    TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    tries       INTEGER NOT NULL,
    -- When it is sent next, and from when on its patience counts.
    due         INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    lease_until INTEGER,
    worker      TEXT,
    said        TEXT,
    created_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    format      INTEGER NOT NULL,
    body        TEXT    NOT NULL
) STRICT;
CREATE INDEX environment_deliveries_open ON environment_deliveries (lane, seq) WHERE ended_at IS NULL;
CREATE INDEX environment_deliveries_by_lease ON environment_deliveries (lease_until) WHERE state = 'sending';
CREATE INDEX environment_deliveries_by_project ON environment_deliveries (project, seq);
CREATE INDEX environment_deliveries_by_environment ON environment_deliveries (environment, seq);
CREATE INDEX environment_deliveries_ended ON environment_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- Of which end of an environment somebody was told.
CREATE TABLE environment_ends_told (
    environment TEXT    NOT NULL PRIMARY KEY,
    expires_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What came of the script that is run before all others, by project and place.
CREATE TABLE environment_inits (
    project TEXT    NOT NULL,
    place   TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    error   TEXT,
    PRIMARY KEY (project, place)
) STRICT, WITHOUT ROWID;
