-- Why a generation came, and what it changed in short; what was stored before says nothing of it.
ALTER TABLE desired ADD COLUMN because TEXT NOT NULL DEFAULT '';
ALTER TABLE desired ADD COLUMN brief TEXT NOT NULL DEFAULT '';
ALTER TABLE manifest_generations ADD COLUMN because TEXT NOT NULL DEFAULT '';
ALTER TABLE manifest_generations ADD COLUMN brief TEXT NOT NULL DEFAULT '';

-- What names of machines begin with, by the manifest that declares them: whoever declares more is
-- judged by its own names, however many manifests there are. Of a manifest that is not listed yet
-- the document is read, until the next change of the project lists it.
ALTER TABLE manifests ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX manifests_unlisted ON manifests (project, name) WHERE listed = 0;
CREATE TABLE stems (
    project  TEXT NOT NULL,
    stem     TEXT NOT NULL,
    manifest TEXT NOT NULL,
    owner    TEXT NOT NULL,
    pool     TEXT NOT NULL,
    PRIMARY KEY (project, stem, manifest)
) STRICT, WITHOUT ROWID;
CREATE INDEX stems_by_manifest ON stems (project, manifest);
