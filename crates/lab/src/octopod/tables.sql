-- The tables of an Octopod that its last version has, as far as somebody reads them.
CREATE TYPE statuses AS ENUM ('Running');
CREATE TABLE deployments (
    id                   bigserial   PRIMARY KEY,
    name                 text        NOT NULL,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    archived_at          timestamptz,
    status               text        NOT NULL,
    status_updated_at    timestamptz NOT NULL DEFAULT now(),
    checked_at           timestamptz NOT NULL DEFAULT now(),
    app_overrides        jsonb       NOT NULL,
    deployment_overrides jsonb       NOT NULL,
    links                jsonb       NOT NULL
);
CREATE UNIQUE INDEX deployments_name_key ON deployments (name);
CREATE INDEX deployments_checked_at_idx ON deployments (checked_at);
CREATE TABLE deployment_logs (
    id                   bigserial   PRIMARY KEY,
    deployment_id        bigint      NOT NULL REFERENCES deployments (id),
    action               text,
    exit_code            smallint    NOT NULL,
    created_at           timestamptz NOT NULL DEFAULT now(),
    archived             boolean     NOT NULL DEFAULT false,
    duration             interval    NOT NULL,
    stdout               text        NOT NULL DEFAULT '',
    stderr               text        NOT NULL DEFAULT '',
    deployment_overrides jsonb       NOT NULL,
    app_overrides        jsonb       NOT NULL
);
