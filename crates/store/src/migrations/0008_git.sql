-- Requests of git services, as they were last told; what is made of each is decided by somebody who
-- looks at those that wait.
CREATE TABLE git_requests (
    project     TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    not_before  INTEGER NOT NULL,
    tries       INTEGER NOT NULL,
    environment TEXT,
    told_at     INTEGER NOT NULL,
    said        TEXT    NOT NULL,
    format      INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    PRIMARY KEY (project, source, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX git_requests_waiting ON git_requests (not_before) WHERE state = 'waiting';
CREATE INDEX git_requests_by_environment ON git_requests (environment) WHERE environment IS NOT NULL;
CREATE INDEX git_requests_by_age ON git_requests (told_at) WHERE state = 'settled';

-- What was told already, so that nobody is told twice.
CREATE TABLE git_deliveries (
    project  TEXT    NOT NULL,
    source   TEXT    NOT NULL,
    delivery TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (project, source, delivery)
) STRICT, WITHOUT ROWID;
CREATE INDEX git_deliveries_by_age ON git_deliveries (at);
