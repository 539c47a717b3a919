-- How long tasks took, by whose machines they were done to and what was done: the newest of each,
-- for plans that say how long something takes. Rows are only added and cleared away, so that those
-- who record wait for nobody.
CREATE TABLE paces (
    id     INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    whose  TEXT    NOT NULL,
    kind   TEXT    NOT NULL,
    millis INTEGER NOT NULL
) STRICT;
CREATE INDEX paces_by_kind ON paces (whose, kind, id);
