-- Credential sources are small resources, too. What a small resource may be is a rule of its table, which is made anew for it.
DROP TRIGGER namespaces_tombstone;
ALTER TABLE owned RENAME TO owned_before;
ALTER TABLE owned_secrets RENAME TO owned_secrets_before;
DROP INDEX owned_secrets_secret;

CREATE TABLE owned (
    id           TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 40),
    kind         TEXT NOT NULL CHECK (kind IN ('service_account', 'preset', 'credential_source')),
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    body         TEXT NOT NULL CHECK (json_type(body) = 'object'),
    version      INTEGER NOT NULL CHECK (version >= 1),
    created_at   INTEGER NOT NULL CHECK (created_at >= 0),
    UNIQUE (namespace_id, kind, name)
) STRICT;

CREATE TABLE owned_secrets (
    owned_id  TEXT NOT NULL REFERENCES owned (id) ON DELETE CASCADE,
    secret_id TEXT NOT NULL REFERENCES secrets (id),
    PRIMARY KEY (owned_id, secret_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX owned_secrets_secret ON owned_secrets (secret_id);

INSERT INTO owned SELECT id, kind, namespace_id, name, body, version, created_at FROM owned_before;
INSERT INTO owned_secrets SELECT owned_id, secret_id FROM owned_secrets_before;
DROP TABLE owned_secrets_before;
DROP TABLE owned_before;
CREATE INDEX owned_listed ON owned (namespace_id, kind, created_at, id);

CREATE TRIGGER namespaces_tombstone BEFORE UPDATE OF status ON namespaces WHEN NEW.status = 'deleted' AND (
    EXISTS (SELECT 1 FROM agents WHERE namespace_id = NEW.id)
    OR EXISTS (SELECT 1 FROM configurations WHERE namespace_id = NEW.id)
    OR EXISTS (SELECT 1 FROM secrets WHERE namespace_id = NEW.id)
    OR EXISTS (SELECT 1 FROM owned WHERE namespace_id = NEW.id)
)
BEGIN
    SELECT RAISE(ABORT, 'a Namespace that owns something is not removed');
END;

-- Those that a draft uses.
ALTER TABLE agents ADD COLUMN credential_sources TEXT CHECK (json_type(credential_sources) = 'array');

-- A source is withdrawn from a version by work of its own. What work may be is a rule of its table, which is made anew for it.
ALTER TABLE work RENAME TO work_before;

CREATE TABLE work (
    key              TEXT NOT NULL PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 512),
    kind             TEXT NOT NULL,
    namespace_id     TEXT NOT NULL REFERENCES namespaces (id),
    agent_id         TEXT,
    revision_id      TEXT,
    operation        TEXT,
    bucket           INTEGER,
    -- What is serialised: the Agent, or the Namespace.
    lane             TEXT NOT NULL CHECK (lane = coalesce(agent_id, namespace_id)),
    actor            TEXT NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
    state            TEXT NOT NULL CHECK (state IN ('queued', 'claimed', 'succeeded', 'failed')),
    available_at     INTEGER NOT NULL,
    attempts         INTEGER NOT NULL CHECK (attempts >= 0),
    -- One more attempt was granted to finish a published version.
    extra_attempts   INTEGER NOT NULL DEFAULT 0 CHECK (extra_attempts IN (0, 1)),
    claim_token      TEXT CHECK (length(claim_token) = 36),
    claimed_at       INTEGER,
    lease_expires_at INTEGER,
    -- What the latest attempt recorded.
    last_attempt     TEXT CHECK (json_type(last_attempt) = 'object'),
    -- How it ended: the code, and the warnings of a success or the facts of a failure.
    code             TEXT CHECK (length(code) BETWEEN 1 AND 64 AND code NOT GLOB '*[^A-Z0-9_]*'),
    result           TEXT CHECK (json_type(result) = 'object'),
    completed_at     INTEGER,
    created_at       INTEGER NOT NULL,
    -- Where the request that asked for the work is in its trace (docs/adr/0013): the W3C headers of these names.
    traceparent      TEXT CHECK (length(traceparent) = 55 AND traceparent NOT GLOB '*[^0-9a-f-]*'),
    tracestate       TEXT CHECK (length(tracestate) BETWEEN 1 AND 512),
    CHECK (CASE kind
        WHEN 'namespace_ready' THEN agent_id IS NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'namespace_deleted' THEN agent_id IS NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'agent_stopped' THEN agent_id IS NOT NULL AND revision_id IS NULL AND operation IS NOT NULL AND bucket IS NULL
        WHEN 'agent_deleted' THEN agent_id IS NOT NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'revision' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'maintenance' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NULL AND bucket >= 0
        WHEN 'credentials_withdrawn' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NOT NULL AND bucket IS NULL
        ELSE FALSE
    END),
    CHECK ((state = 'claimed') = (claim_token IS NOT NULL)),
    CHECK ((state = 'claimed') = (lease_expires_at IS NOT NULL)),
    CHECK ((state = 'claimed') = (claimed_at IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed')) = (completed_at IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed')) = (code IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed')) = (result IS NOT NULL))
) STRICT;
INSERT INTO work
SELECT key, kind, namespace_id, agent_id, revision_id, operation, bucket, lane, actor, state, available_at, attempts,
    extra_attempts, claim_token, claimed_at, lease_expires_at, last_attempt, code, result, completed_at, created_at,
    traceparent, tracestate
FROM work_before;
DROP TABLE work_before;

-- Only live work is indexed for claiming: what is finished costs a claim nothing.
CREATE INDEX work_queued ON work (available_at, created_at, key) WHERE state = 'queued';
CREATE INDEX work_spent ON work (attempts - extra_attempts) WHERE state = 'queued';
CREATE UNIQUE INDEX work_claimed_lane ON work (lane) WHERE state = 'claimed';
CREATE INDEX work_lease ON work (lease_expires_at) WHERE state = 'claimed';
CREATE UNIQUE INDEX work_token ON work (claim_token) WHERE claim_token IS NOT NULL;
CREATE INDEX work_lane ON work (lane, state);
-- Work that is over and that may be removed while its Agent or Namespace exists.
CREATE INDEX work_over ON work (completed_at) WHERE completed_at IS NOT NULL
    AND kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn', 'agent_deleted', 'namespace_deleted');

CREATE TRIGGER work_target BEFORE UPDATE OF key, kind, namespace_id, agent_id, revision_id, operation, bucket, lane, created_at
ON work
BEGIN
    SELECT RAISE(ABORT, 'the target of work never changes');
END;
-- A failed lifecycle request may be repeated; how a deployment ended is never rewritten.
CREATE TRIGGER work_terminal BEFORE UPDATE ON work
WHEN OLD.state IN ('succeeded', 'failed') AND NOT (
    OLD.state = 'failed' AND NEW.state = 'queued' AND OLD.kind IN ('namespace_ready', 'namespace_deleted', 'agent_deleted')
)
BEGIN
    SELECT RAISE(ABORT, 'the result of work never changes');
END;
CREATE TRIGGER work_kept BEFORE DELETE ON work
WHEN NOT (OLD.state IN ('succeeded', 'failed') AND OLD.kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn')) AND (
    EXISTS (SELECT 1 FROM agents WHERE id = OLD.agent_id AND status <> 'deleting')
    OR (OLD.agent_id IS NULL AND EXISTS (SELECT 1 FROM namespaces WHERE id = OLD.namespace_id AND status <> 'deleted'))
)
BEGIN
    SELECT RAISE(ABORT, 'work is removed only with its Agent or Namespace, or when it is over and nothing reads it');
END;
