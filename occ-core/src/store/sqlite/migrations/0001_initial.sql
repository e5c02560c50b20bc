-- Instants are milliseconds since the Unix epoch, by the database's clock. Ids are texts with their prefix.
-- What only code could break is guarded here a second time: shapes, states, immutability.

-- The latest change without an audit event: what tells, after a failed COMMIT, whether it took effect.
CREATE TABLE commit_marker (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    marker    TEXT NOT NULL
) STRICT;

CREATE TABLE installation (
    singleton  INTEGER PRIMARY KEY CHECK (singleton = 1),
    id         TEXT NOT NULL CHECK (id GLOB 'ins_*' AND length(id) = 40),
    name       TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    created_at INTEGER NOT NULL CHECK (created_at >= 0)
) STRICT;

-- A deleted Namespace stays as a tombstone: its id and its name, so that neither is used again.
CREATE TABLE namespaces (
    id                 TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'ns_*' AND length(id) = 39),
    name               TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    existing_namespace TEXT CHECK (length(existing_namespace) BETWEEN 1 AND 63),
    status             TEXT NOT NULL CHECK (status IN ('provisioning', 'ready', 'failed', 'deleting', 'deleted')),
    deletion_actor     TEXT,
    version            INTEGER NOT NULL CHECK (version >= 1),
    created_at         INTEGER CHECK (created_at >= 0),
    CHECK (deletion_actor IS NULL OR status = 'deleting'),
    CHECK ((created_at IS NULL) = (status = 'deleted')),
    CHECK (status <> 'deleted' OR existing_namespace IS NULL)
) STRICT;
CREATE TRIGGER namespaces_tombstone BEFORE UPDATE OF status ON namespaces WHEN NEW.status = 'deleted' AND (
    EXISTS (SELECT 1 FROM agents WHERE namespace_id = NEW.id)
    OR EXISTS (SELECT 1 FROM configurations WHERE namespace_id = NEW.id)
    OR EXISTS (SELECT 1 FROM secrets WHERE namespace_id = NEW.id)
    OR EXISTS (SELECT 1 FROM owned WHERE namespace_id = NEW.id)
)
BEGIN
    SELECT RAISE(ABORT, 'a Namespace that owns something is not removed');
END;
CREATE TRIGGER namespaces_gone BEFORE UPDATE ON namespaces WHEN OLD.status = 'deleted'
BEGIN
    SELECT RAISE(ABORT, 'a removed Namespace never comes back');
END;
CREATE UNIQUE INDEX namespaces_existing ON namespaces (existing_namespace) WHERE existing_namespace IS NOT NULL;

-- Who may act: a person, a service principal of the Installation or of one Namespace, or the one of an Agent.
CREATE TABLE principals (
    id           TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    kind         TEXT NOT NULL CHECK (kind IN ('human', 'service')),
    name         TEXT,
    namespace_id TEXT REFERENCES namespaces (id),
    agent_id     TEXT UNIQUE,
    CHECK (kind = 'service' OR (name IS NOT NULL AND namespace_id IS NULL AND agent_id IS NULL)),
    CHECK (agent_id IS NULL OR namespace_id IS NOT NULL)
) STRICT;
CREATE INDEX principals_namespace ON principals (namespace_id) WHERE namespace_id IS NOT NULL;

CREATE TABLE configurations (
    id              TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'cfg_*' AND length(id) = 40),
    namespace_id    TEXT NOT NULL REFERENCES namespaces (id),
    kind            TEXT NOT NULL CHECK (kind IN ('agent')),
    generation      INTEGER NOT NULL CHECK (generation >= 1),
    secret_bindings TEXT NOT NULL CHECK (json_type(secret_bindings) = 'object'),
    -- Its deletion was begun: nothing new may refer to it.
    deleting        INTEGER NOT NULL DEFAULT 0 CHECK (deleting IN (0, 1)),
    created_at      INTEGER NOT NULL CHECK (created_at >= 0)
) STRICT;
CREATE INDEX configurations_namespace ON configurations (namespace_id, created_at, id);

CREATE TABLE secrets (
    id           TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'sec_*' AND length(id) = 40),
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    driver_id    TEXT NOT NULL,
    backend_ref  TEXT NOT NULL CHECK (json_type(backend_ref) = 'object'),
    version      INTEGER NOT NULL CHECK (version >= 1),
    deleting     INTEGER NOT NULL DEFAULT 0 CHECK (deleting IN (0, 1)),
    created_at   INTEGER NOT NULL CHECK (created_at >= 0),
    UNIQUE (namespace_id, name)
) STRICT;

-- Small resources of a Namespace, whose content the engine alone interprets.
CREATE TABLE owned (
    id           TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 40),
    kind         TEXT NOT NULL CHECK (kind IN ('service_account', 'preset')),
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    body         TEXT NOT NULL CHECK (json_type(body) = 'object'),
    version      INTEGER NOT NULL CHECK (version >= 1),
    created_at   INTEGER NOT NULL CHECK (created_at >= 0),
    UNIQUE (namespace_id, kind, name)
) STRICT;

-- Which Secrets a small resource names, for looking up from the Secret.
CREATE TABLE owned_secrets (
    owned_id  TEXT NOT NULL REFERENCES owned (id) ON DELETE CASCADE,
    secret_id TEXT NOT NULL REFERENCES secrets (id),
    PRIMARY KEY (owned_id, secret_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX owned_secrets_secret ON owned_secrets (secret_id);

-- Which Secrets a Configuration binds: the same as its secret_bindings, for looking up from the Secret.
CREATE TABLE configuration_secrets (
    configuration_id TEXT NOT NULL REFERENCES configurations (id) ON DELETE CASCADE,
    secret_id        TEXT NOT NULL REFERENCES secrets (id),
    PRIMARY KEY (configuration_id, secret_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX configuration_secrets_secret ON configuration_secrets (secret_id);

CREATE TABLE agents (
    id                   TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'agt_*' AND length(id) = 40),
    namespace_id         TEXT NOT NULL REFERENCES namespaces (id),
    name                 TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    service_principal_id TEXT NOT NULL UNIQUE REFERENCES principals (id),
    configuration_id     TEXT NOT NULL REFERENCES configurations (id),
    backend_id           TEXT,
    harness_auth         TEXT CHECK (json_type(harness_auth) = 'object'),
    -- The Secret that harness_auth names, if it names one.
    secret_id            TEXT REFERENCES secrets (id),
    execution_mode       TEXT NOT NULL CHECK (execution_mode IN ('embedded', 'dedicated')),
    desired              TEXT NOT NULL CHECK (desired IN ('running', 'stopped')),
    active_revision_id   TEXT,
    status               TEXT NOT NULL CHECK (status IN ('active', 'deleting')),
    version              INTEGER NOT NULL CHECK (version >= 1),
    created_at           INTEGER NOT NULL CHECK (created_at >= 0),
    UNIQUE (namespace_id, name),
    CHECK (status = 'active' OR desired = 'stopped'),
    -- Only a version of its own may be selected.
    FOREIGN KEY (id, active_revision_id) REFERENCES revisions (agent_id, id)
) STRICT;
CREATE INDEX agents_configuration ON agents (configuration_id);
CREATE INDEX agents_secret ON agents (secret_id) WHERE secret_id IS NOT NULL;

CREATE TRIGGER agents_identity BEFORE UPDATE OF id, namespace_id, service_principal_id, created_at ON agents
BEGIN
    SELECT RAISE(ABORT, 'the identity of an Agent never changes');
END;

-- Initial workspace files that wait for the first deployment; without files when they were applied.
CREATE TABLE workspace_setups (
    agent_id    TEXT NOT NULL PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
    id          TEXT NOT NULL UNIQUE CHECK (length(id) = 36),
    defaults_id TEXT CHECK (length(defaults_id) = 64),
    files       TEXT CHECK (json_type(files) = 'object')
) STRICT;

CREATE TRIGGER workspace_setups_once BEFORE UPDATE ON workspace_setups WHEN OLD.files IS NULL AND NEW.files IS NOT NULL
BEGIN
    SELECT RAISE(ABORT, 'applied workspace files are never staged again');
END;

CREATE TABLE revisions (
    id           TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'rev_*' AND length(id) = 40),
    namespace_id TEXT NOT NULL REFERENCES namespaces (id),
    agent_id     TEXT NOT NULL REFERENCES agents (id),
    number       INTEGER NOT NULL CHECK (number >= 1),
    snapshot     BLOB NOT NULL,
    digest       TEXT NOT NULL CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
    -- Compute may still hold something of it.
    live         INTEGER NOT NULL CHECK (live IN (0, 1)),
    created_at   INTEGER NOT NULL CHECK (created_at >= 0),
    UNIQUE (agent_id, number),
    UNIQUE (agent_id, id)
) STRICT;
CREATE INDEX revisions_live ON revisions (agent_id, number) WHERE live = 1;

CREATE TRIGGER revisions_contiguous BEFORE INSERT ON revisions
WHEN NEW.number <> 1 + coalesce((SELECT max(number) FROM revisions WHERE agent_id = NEW.agent_id), 0)
BEGIN
    SELECT RAISE(ABORT, 'the versions of an Agent are numbered without gaps');
END;
CREATE TRIGGER revisions_immutable
BEFORE UPDATE OF id, namespace_id, agent_id, number, snapshot, digest, created_at ON revisions
BEGIN
    SELECT RAISE(ABORT, 'a version never changes');
END;
CREATE TRIGGER revisions_retired_once BEFORE UPDATE OF live ON revisions WHEN OLD.live = 0 AND NEW.live = 1
BEGIN
    SELECT RAISE(ABORT, 'a retired version never comes back');
END;
CREATE TRIGGER revisions_kept BEFORE DELETE ON revisions
WHEN NOT EXISTS (SELECT 1 FROM agents WHERE id = OLD.agent_id AND status = 'deleting')
BEGIN
    SELECT RAISE(ABORT, 'a version is removed only with its Agent');
END;

-- Which Secrets a version froze: the same as in its snapshot, without reading it.
CREATE TABLE revision_secrets (
    revision_id TEXT NOT NULL REFERENCES revisions (id) ON DELETE CASCADE,
    secret_id   TEXT NOT NULL,
    PRIMARY KEY (revision_id, secret_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE groups (
    id           TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id TEXT REFERENCES namespaces (id)
) STRICT;

-- Direct members of a group; people only.
CREATE TABLE memberships (
    group_id     TEXT NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    principal_id TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    PRIMARY KEY (principal_id, group_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_group ON memberships (group_id);

CREATE TABLE roles (
    id           TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id TEXT REFERENCES namespaces (id),
    permissions  TEXT NOT NULL CHECK (json_type(permissions) = 'array')
) STRICT;
CREATE TRIGGER roles_immutable BEFORE UPDATE ON roles
BEGIN
    SELECT RAISE(ABORT, 'a Role never changes');
END;

CREATE TABLE access_bindings (
    id            TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id  TEXT REFERENCES namespaces (id),
    subject_kind  TEXT NOT NULL CHECK (subject_kind IN ('identity', 'group')),
    subject_id    TEXT NOT NULL,
    role_id       TEXT NOT NULL REFERENCES roles (id),
    resource_kind TEXT,
    resource_id   TEXT,
    CHECK ((resource_kind IS NULL) = (resource_id IS NULL))
) STRICT;
CREATE INDEX access_bindings_subject ON access_bindings (subject_kind, subject_id);
CREATE INDEX access_bindings_resource ON access_bindings (resource_id) WHERE resource_id IS NOT NULL;
CREATE INDEX access_bindings_role ON access_bindings (role_id);
CREATE TRIGGER access_bindings_immutable BEFORE UPDATE ON access_bindings
BEGIN
    SELECT RAISE(ABORT, 'an access binding never changes');
END;

CREATE TABLE restrictions (
    id           TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id TEXT REFERENCES namespaces (id),
    action       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    resource_id  TEXT
) STRICT;
CREATE INDEX restrictions_resource ON restrictions (resource_id) WHERE resource_id IS NOT NULL;

-- Only the hash of a key's secret half.
CREATE TABLE service_keys (
    id           TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'key_*' AND length(id) = 40),
    principal_id TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    secret_hash  TEXT NOT NULL CHECK (length(secret_hash) = 64 AND secret_hash NOT GLOB '*[^0-9a-f]*'),
    namespace_id TEXT REFERENCES namespaces (id),
    expires_at   INTEGER,
    revoked_at   INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX service_keys_principal ON service_keys (principal_id);
CREATE INDEX service_keys_namespace ON service_keys (namespace_id) WHERE namespace_id IS NOT NULL;

-- Records of drivers; the bytes are theirs.
CREATE TABLE driver_state (
    driver  TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   BLOB NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    PRIMARY KEY (driver, key)
) STRICT;

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
    CHECK (CASE kind
        WHEN 'namespace_ready' THEN agent_id IS NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'namespace_deleted' THEN agent_id IS NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'agent_stopped' THEN agent_id IS NOT NULL AND revision_id IS NULL AND operation IS NOT NULL AND bucket IS NULL
        WHEN 'agent_deleted' THEN agent_id IS NOT NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'revision' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NULL AND bucket IS NULL
        WHEN 'maintenance' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NULL AND bucket >= 0
        ELSE FALSE
    END),
    CHECK ((state = 'claimed') = (claim_token IS NOT NULL)),
    CHECK ((state = 'claimed') = (lease_expires_at IS NOT NULL)),
    CHECK ((state = 'claimed') = (claimed_at IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed')) = (completed_at IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed')) = (code IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed')) = (result IS NOT NULL))
) STRICT;
-- Only live work is indexed for claiming: what is finished costs a claim nothing.
CREATE INDEX work_queued ON work (available_at, created_at, key) WHERE state = 'queued';
CREATE INDEX work_spent ON work (attempts - extra_attempts) WHERE state = 'queued';
CREATE UNIQUE INDEX work_claimed_lane ON work (lane) WHERE state = 'claimed';
CREATE INDEX work_lease ON work (lease_expires_at) WHERE state = 'claimed';
CREATE UNIQUE INDEX work_token ON work (claim_token) WHERE claim_token IS NOT NULL;
CREATE INDEX work_lane ON work (lane, state);

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
WHEN EXISTS (SELECT 1 FROM agents WHERE id = OLD.agent_id AND status <> 'deleting')
    OR (OLD.agent_id IS NULL AND EXISTS (SELECT 1 FROM namespaces WHERE id = OLD.namespace_id AND status <> 'deleted'))
BEGIN
    SELECT RAISE(ABORT, 'work is removed only with its Agent or Namespace');
END;

CREATE TABLE audit (
    sequence      INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE CHECK (id GLOB 'aud_*' AND length(id) = 40),
    occurred_at   INTEGER NOT NULL,
    kind          TEXT NOT NULL CHECK (kind IN ('bootstrap', 'mutation', 'authorization_denial')),
    actor         TEXT NOT NULL,
    action        TEXT NOT NULL,
    resource_kind TEXT NOT NULL,
    resource_id   TEXT NOT NULL,
    namespace_id  TEXT,
    outcome       TEXT NOT NULL CHECK (outcome IN ('success', 'failure', 'denied')),
    request_id    TEXT,
    authorization TEXT CHECK (json_type(authorization) = 'object'),
    reason_code   TEXT CHECK (length(reason_code) BETWEEN 1 AND 64 AND reason_code NOT GLOB '*[^A-Z0-9_]*'),
    details       TEXT NOT NULL CHECK (json_type(details) = 'object')
) STRICT;
CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit is append-only');
END;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'audit is append-only');
END;
CREATE INDEX audit_resource ON audit (resource_id, sequence);
CREATE INDEX audit_actor ON audit (actor, sequence);

-- The chain over the audit: each hash covers the record and the hash before it. Written behind the commits, in their order.
CREATE TABLE audit_seals (
    position INTEGER PRIMARY KEY CHECK (position >= 1),
    sequence INTEGER NOT NULL UNIQUE REFERENCES audit (sequence),
    hash     TEXT NOT NULL CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*')
) STRICT;
CREATE TRIGGER audit_seals_dense BEFORE INSERT ON audit_seals
WHEN NEW.position <> 1 + coalesce((SELECT max(position) FROM audit_seals), 0)
BEGIN
    SELECT RAISE(ABORT, 'the chain of seals has no gaps');
END;
CREATE TRIGGER audit_seals_immutable BEFORE UPDATE ON audit_seals
BEGIN
    SELECT RAISE(ABORT, 'a seal never changes');
END;
CREATE TRIGGER audit_seals_kept BEFORE DELETE ON audit_seals
BEGIN
    SELECT RAISE(ABORT, 'a seal never changes');
END;

-- The first results of requests that named themselves, for a day.
CREATE TABLE answers (
    principal   TEXT NOT NULL,
    key         TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint TEXT NOT NULL CHECK (length(fingerprint) = 64),
    answer      TEXT NOT NULL CHECK (json_valid(answer)),
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (principal, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_age ON answers (created_at);
