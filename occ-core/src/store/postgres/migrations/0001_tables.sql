-- Instants are milliseconds since the Unix epoch, by the database's clock. Ids are texts with their prefix.
-- What only code could break is guarded here a second time: shapes, states, immutability.

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TABLE installation (
    singleton  integer PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    id         text NOT NULL CHECK (id LIKE 'ins\_%' AND length(id) = 40),
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    created_at bigint NOT NULL CHECK (created_at >= 0)
);

-- A deleted Namespace stays as a tombstone: its id and its name, so that neither is used again.
CREATE TABLE namespaces (
    id                 text PRIMARY KEY CHECK (id LIKE 'ns\_%' AND length(id) = 39),
    name               text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    existing_namespace text CHECK (length(existing_namespace) BETWEEN 1 AND 63),
    status             text NOT NULL CHECK (status IN ('provisioning', 'ready', 'failed', 'deleting', 'deleted')),
    deletion_actor     text,
    version            bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at         bigint CHECK (created_at >= 0),
    CONSTRAINT namespaces_name UNIQUE (name),
    CHECK (deletion_actor IS NULL OR status = 'deleting'),
    CHECK ((created_at IS NULL) = (status = 'deleted')),
    CHECK (status <> 'deleted' OR existing_namespace IS NULL)
);
CREATE UNIQUE INDEX namespaces_existing ON namespaces (existing_namespace) WHERE existing_namespace IS NOT NULL;
CREATE TRIGGER namespaces_gone BEFORE UPDATE ON namespaces FOR EACH ROW WHEN (OLD.status = 'deleted')
    EXECUTE FUNCTION refuse('a removed Namespace never comes back');
CREATE TRIGGER namespaces_kept BEFORE DELETE ON namespaces FOR EACH ROW
    EXECUTE FUNCTION refuse('a Namespace leaves a tombstone');

-- Who may act: a person, a service principal of the Installation or of one Namespace, or the one of an Agent.
CREATE TABLE principals (
    id           text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    kind         text NOT NULL CHECK (kind IN ('human', 'service')),
    name         text,
    namespace_id text REFERENCES namespaces (id),
    agent_id     text UNIQUE,
    CHECK (kind = 'service' OR (name IS NOT NULL AND namespace_id IS NULL AND agent_id IS NULL)),
    CHECK (agent_id IS NULL OR namespace_id IS NOT NULL)
);
CREATE INDEX principals_namespace ON principals (namespace_id) WHERE namespace_id IS NOT NULL;

CREATE TABLE configurations (
    id              text PRIMARY KEY CHECK (id LIKE 'cfg\_%' AND length(id) = 40),
    namespace_id    text NOT NULL REFERENCES namespaces (id),
    kind            text NOT NULL CHECK (kind IN ('agent')),
    generation      bigint NOT NULL CHECK (generation >= 1),
    secret_bindings jsonb NOT NULL CHECK (jsonb_typeof(secret_bindings) = 'object'),
    -- Its deletion was begun: nothing new may refer to it.
    deleting        boolean NOT NULL DEFAULT FALSE,
    created_at      bigint NOT NULL CHECK (created_at >= 0)
);
CREATE INDEX configurations_namespace ON configurations (namespace_id, created_at, id);

CREATE TABLE secrets (
    id           text PRIMARY KEY CHECK (id LIKE 'sec\_%' AND length(id) = 40),
    namespace_id text NOT NULL REFERENCES namespaces (id),
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    driver_id    text NOT NULL,
    backend_ref  jsonb NOT NULL CHECK (jsonb_typeof(backend_ref) = 'object'),
    version      bigint NOT NULL CHECK (version >= 1),
    deleting     boolean NOT NULL DEFAULT FALSE,
    created_at   bigint NOT NULL CHECK (created_at >= 0),
    CONSTRAINT secrets_name UNIQUE (namespace_id, name)
);

-- Small resources of a Namespace, whose content the engine alone interprets.
CREATE TABLE owned (
    id           text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 40),
    kind         text NOT NULL CHECK (kind IN ('service_account', 'preset')),
    namespace_id text NOT NULL REFERENCES namespaces (id),
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    body         jsonb NOT NULL CHECK (jsonb_typeof(body) = 'object'),
    version      bigint NOT NULL CHECK (version >= 1),
    created_at   bigint NOT NULL CHECK (created_at >= 0),
    CONSTRAINT owned_name UNIQUE (namespace_id, kind, name)
);

-- Which Secrets a small resource names, for looking up from the Secret.
CREATE TABLE owned_secrets (
    owned_id  text NOT NULL REFERENCES owned (id) ON DELETE CASCADE,
    secret_id text NOT NULL REFERENCES secrets (id),
    PRIMARY KEY (owned_id, secret_id)
);
CREATE INDEX owned_secrets_secret ON owned_secrets (secret_id);

-- Which Secrets a Configuration binds: the same as its secret_bindings, for looking up from the Secret.
CREATE TABLE configuration_secrets (
    configuration_id text NOT NULL REFERENCES configurations (id) ON DELETE CASCADE,
    secret_id        text NOT NULL REFERENCES secrets (id),
    PRIMARY KEY (configuration_id, secret_id)
);
CREATE INDEX configuration_secrets_secret ON configuration_secrets (secret_id);

CREATE TABLE agents (
    id                   text PRIMARY KEY CHECK (id LIKE 'agt\_%' AND length(id) = 40),
    namespace_id         text NOT NULL REFERENCES namespaces (id),
    name                 text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    service_principal_id text NOT NULL UNIQUE REFERENCES principals (id),
    configuration_id     text NOT NULL REFERENCES configurations (id),
    backend_id           text,
    harness_auth         jsonb CHECK (jsonb_typeof(harness_auth) = 'object'),
    -- The Secret that harness_auth names, if it names one.
    secret_id            text REFERENCES secrets (id),
    execution_mode       text NOT NULL CHECK (execution_mode IN ('embedded', 'dedicated')),
    desired              text NOT NULL CHECK (desired IN ('running', 'stopped')),
    active_revision_id   text,
    status               text NOT NULL CHECK (status IN ('active', 'deleting')),
    version              bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at           bigint NOT NULL CHECK (created_at >= 0),
    CONSTRAINT agents_name UNIQUE (namespace_id, name),
    CHECK (status = 'active' OR desired = 'stopped')
) WITH (fillfactor = 80);
CREATE INDEX agents_configuration ON agents (configuration_id);
CREATE INDEX agents_secret ON agents (secret_id) WHERE secret_id IS NOT NULL;
CREATE INDEX agents_namespace ON agents (namespace_id, created_at, id);
CREATE TRIGGER agents_identity BEFORE UPDATE OF id, namespace_id, service_principal_id, created_at ON agents
    FOR EACH ROW EXECUTE FUNCTION refuse('the identity of an Agent never changes');

CREATE FUNCTION refuse_tombstone_of_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM occ.agents WHERE namespace_id = NEW.id)
        OR EXISTS (SELECT 1 FROM occ.configurations WHERE namespace_id = NEW.id)
        OR EXISTS (SELECT 1 FROM occ.secrets WHERE namespace_id = NEW.id)
        OR EXISTS (SELECT 1 FROM occ.owned WHERE namespace_id = NEW.id)
    THEN
        RAISE EXCEPTION 'a Namespace that owns something is not removed'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER namespaces_tombstone BEFORE UPDATE OF status ON namespaces
    FOR EACH ROW WHEN (NEW.status = 'deleted') EXECUTE FUNCTION refuse_tombstone_of_owner();

-- Initial workspace files that wait for the first deployment; without files when they were applied.
CREATE TABLE workspace_setups (
    agent_id    text PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
    id          text NOT NULL UNIQUE CHECK (length(id) = 36),
    defaults_id text CHECK (length(defaults_id) = 64),
    files       jsonb CHECK (jsonb_typeof(files) = 'object')
);
CREATE TRIGGER workspace_setups_once BEFORE UPDATE ON workspace_setups
    FOR EACH ROW WHEN (OLD.files IS NULL AND NEW.files IS NOT NULL)
    EXECUTE FUNCTION refuse('applied workspace files are never staged again');

CREATE TABLE revisions (
    id           text PRIMARY KEY CHECK (id LIKE 'rev\_%' AND length(id) = 40),
    namespace_id text NOT NULL,
    agent_id     text NOT NULL REFERENCES agents (id),
    number       bigint NOT NULL CHECK (number >= 1),
    snapshot     bytea NOT NULL,
    digest       text NOT NULL CHECK (digest = encode(sha256(snapshot), 'hex')),
    -- Compute may still hold something of it.
    live         boolean NOT NULL DEFAULT true,
    created_at   bigint NOT NULL CHECK (created_at >= 0),
    UNIQUE (agent_id, number),
    UNIQUE (agent_id, id)
);
CREATE INDEX revisions_live ON revisions (agent_id, number) WHERE live;
-- Only a version of its own may be selected.
ALTER TABLE agents ADD CONSTRAINT agents_active FOREIGN KEY (id, active_revision_id) REFERENCES revisions (agent_id, id);

CREATE FUNCTION refuse_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.number <> 1 + coalesce((SELECT max(number) FROM occ.revisions WHERE agent_id = NEW.agent_id), 0) THEN
        RAISE EXCEPTION 'the versions of an Agent are numbered without gaps'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER revisions_contiguous BEFORE INSERT ON revisions FOR EACH ROW EXECUTE FUNCTION refuse_gap();
CREATE TRIGGER revisions_immutable
    BEFORE UPDATE OF id, namespace_id, agent_id, number, snapshot, digest, created_at ON revisions
    FOR EACH ROW EXECUTE FUNCTION refuse('a version never changes');
CREATE TRIGGER revisions_retired_once BEFORE UPDATE OF live ON revisions
    FOR EACH ROW WHEN (NEW.live AND NOT OLD.live) EXECUTE FUNCTION refuse('a retired version never comes back');
CREATE FUNCTION refuse_removal_of_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM occ.agents WHERE id = OLD.agent_id AND status = 'deleting') THEN
        RAISE EXCEPTION 'a version is removed only with its Agent' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER revisions_kept BEFORE DELETE ON revisions
    FOR EACH ROW EXECUTE FUNCTION refuse_removal_of_version();

-- Which Secrets a version froze: the same as in its snapshot, without reading it.
CREATE TABLE revision_secrets (
    revision_id text NOT NULL REFERENCES revisions (id) ON DELETE CASCADE,
    secret_id   text NOT NULL,
    PRIMARY KEY (revision_id, secret_id)
);

CREATE TABLE groups (
    id           text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id text REFERENCES namespaces (id)
);

-- Direct members of a group; people only.
CREATE TABLE memberships (
    group_id     text NOT NULL REFERENCES groups (id) ON DELETE CASCADE,
    principal_id text NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    PRIMARY KEY (principal_id, group_id)
);
CREATE INDEX memberships_group ON memberships (group_id);

CREATE TABLE roles (
    id           text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id text REFERENCES namespaces (id),
    permissions  jsonb NOT NULL CHECK (jsonb_typeof(permissions) = 'array')
);
CREATE TRIGGER roles_immutable BEFORE UPDATE ON roles
    FOR EACH ROW EXECUTE FUNCTION refuse('a Role never changes');

CREATE TABLE access_bindings (
    id            text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id  text REFERENCES namespaces (id),
    subject_kind  text NOT NULL CHECK (subject_kind IN ('identity', 'group')),
    subject_id    text NOT NULL,
    role_id       text NOT NULL REFERENCES roles (id),
    resource_kind text,
    resource_id   text,
    CHECK ((resource_kind IS NULL) = (resource_id IS NULL))
);
CREATE INDEX access_bindings_subject ON access_bindings (subject_kind, subject_id);
CREATE INDEX access_bindings_resource ON access_bindings (resource_id) WHERE resource_id IS NOT NULL;
CREATE INDEX access_bindings_role ON access_bindings (role_id);
CREATE TRIGGER access_bindings_immutable BEFORE UPDATE ON access_bindings
    FOR EACH ROW EXECUTE FUNCTION refuse('an access binding never changes');

CREATE TABLE restrictions (
    id           text PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 200),
    namespace_id text REFERENCES namespaces (id),
    action       text NOT NULL,
    kind         text NOT NULL,
    resource_id  text
);
CREATE INDEX restrictions_resource ON restrictions (resource_id) WHERE resource_id IS NOT NULL;

-- Only the hash of a key's secret half.
CREATE TABLE service_keys (
    id           text PRIMARY KEY CHECK (id LIKE 'key\_%' AND length(id) = 40),
    principal_id text NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    name         text NOT NULL,
    secret_hash  text NOT NULL CHECK (secret_hash ~ '^[0-9a-f]{64}$'),
    namespace_id text REFERENCES namespaces (id),
    expires_at   bigint,
    revoked_at   bigint,
    created_at   bigint NOT NULL
);
CREATE INDEX service_keys_principal ON service_keys (principal_id);
CREATE INDEX service_keys_namespace ON service_keys (namespace_id) WHERE namespace_id IS NOT NULL;

-- Records of drivers; the bytes are theirs.
CREATE TABLE driver_state (
    driver  text NOT NULL,
    key     text NOT NULL,
    value   bytea NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    PRIMARY KEY (driver, key)
);

CREATE TABLE work (
    key              text PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 512),
    kind             text NOT NULL,
    -- No foreign key: a Namespace is never deleted, and the check would write to its one row at every deployment.
    namespace_id     text NOT NULL,
    agent_id         text,
    revision_id      text,
    operation        text,
    bucket           bigint,
    -- What is serialised: the Agent, or the Namespace.
    lane             text NOT NULL CHECK (lane = coalesce(agent_id, namespace_id)),
    actor            text NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
    state            text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'claimed', 'succeeded', 'failed')),
    available_at     bigint NOT NULL,
    attempts         integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- One more attempt was granted to finish a published version.
    extra_attempts   integer NOT NULL DEFAULT 0 CHECK (extra_attempts IN (0, 1)),
    claim_token      uuid,
    claimed_at       bigint,
    lease_expires_at bigint,
    -- What the latest attempt recorded.
    last_attempt     jsonb CHECK (jsonb_typeof(last_attempt) = 'object'),
    -- How it ended: the code, and the warnings of a success or the facts of a failure.
    code             text CHECK (code ~ '^[A-Z0-9_]{1,64}$'),
    result           jsonb CHECK (jsonb_typeof(result) = 'object'),
    completed_at     bigint,
    created_at       bigint NOT NULL,
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
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- Only live work is indexed for claiming: what is finished costs a claim nothing.
CREATE INDEX work_queued ON work (available_at, created_at, key) WHERE state = 'queued';
CREATE INDEX work_queued_lane ON work (lane, available_at, created_at, key) WHERE state = 'queued';
-- Spent work is among what was ever attempted, which is little.
CREATE INDEX work_attempted ON work (attempts) WHERE state = 'queued' AND attempts > 0;
CREATE UNIQUE INDEX work_claimed_lane ON work (lane) WHERE state = 'claimed';
CREATE UNIQUE INDEX work_token ON work (claim_token) WHERE state = 'claimed';
CREATE INDEX work_lease ON work (lease_expires_at) WHERE state = 'claimed';
CREATE INDEX work_lane ON work (lane);

CREATE TRIGGER work_target
    BEFORE UPDATE OF key, kind, namespace_id, agent_id, revision_id, operation, bucket, lane, created_at ON work
    FOR EACH ROW EXECUTE FUNCTION refuse('the target of work never changes');
-- A failed lifecycle request may be repeated; how a deployment ended is never rewritten.
CREATE TRIGGER work_terminal BEFORE UPDATE ON work
    FOR EACH ROW WHEN (OLD.state IN ('succeeded', 'failed') AND NOT (
        OLD.state = 'failed' AND NEW.state = 'queued'
        AND OLD.kind IN ('namespace_ready', 'namespace_deleted', 'agent_deleted')
    ))
    EXECUTE FUNCTION refuse('the result of work never changes');
CREATE FUNCTION refuse_removal_of_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM occ.agents WHERE id = OLD.agent_id AND status <> 'deleting')
        OR (OLD.agent_id IS NULL
            AND EXISTS (SELECT 1 FROM occ.namespaces WHERE id = OLD.namespace_id AND status <> 'deleted'))
    THEN
        RAISE EXCEPTION 'work is removed only with its Agent or Namespace'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER work_kept BEFORE DELETE ON work FOR EACH ROW EXECUTE FUNCTION refuse_removal_of_work();

CREATE TABLE audit (
    sequence      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            text NOT NULL UNIQUE CHECK (id LIKE 'aud\_%' AND length(id) = 40),
    occurred_at   bigint NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('bootstrap', 'mutation', 'authorization_denial')),
    actor         text NOT NULL,
    action        text NOT NULL,
    resource_kind text NOT NULL,
    resource_id   text NOT NULL,
    namespace_id  text,
    outcome       text NOT NULL CHECK (outcome IN ('success', 'failure', 'denied')),
    request_id    text,
    "authorization" jsonb CHECK (jsonb_typeof("authorization") = 'object'),
    reason_code   text CHECK (reason_code ~ '^[A-Z0-9_]{1,64}$'),
    details       jsonb NOT NULL CHECK (jsonb_typeof(details) = 'object')
);
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse('audit is append-only');
CREATE TRIGGER audit_kept BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('audit is append-only');
CREATE INDEX audit_resource ON audit (resource_id, sequence);
CREATE INDEX audit_actor ON audit (actor, sequence);

-- The chain over the audit: each hash covers the record and the hash before it. Written behind the commits, in their order.
CREATE TABLE audit_seals (
    position bigint PRIMARY KEY CHECK (position >= 1),
    sequence bigint NOT NULL UNIQUE REFERENCES audit (sequence),
    hash     text NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$')
);
CREATE FUNCTION refuse_gap_of_seals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.position <> 1 + coalesce((SELECT max(position) FROM occ.audit_seals), 0) THEN
        RAISE EXCEPTION 'the chain of seals has no gaps' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_seals_dense BEFORE INSERT ON audit_seals FOR EACH ROW EXECUTE FUNCTION refuse_gap_of_seals();
CREATE TRIGGER audit_seals_immutable BEFORE UPDATE OR DELETE ON audit_seals
    FOR EACH ROW EXECUTE FUNCTION refuse('a seal never changes');
CREATE TRIGGER audit_seals_kept BEFORE TRUNCATE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('a seal never changes');

-- The first results of requests that named themselves, for a day.
CREATE TABLE answers (
    principal   text NOT NULL,
    key         text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint text NOT NULL CHECK (length(fingerprint) = 64),
    answer      jsonb NOT NULL,
    created_at  bigint NOT NULL,
    PRIMARY KEY (principal, key)
);
CREATE INDEX answers_age ON answers (created_at);

CREATE TRIGGER revisions_not_truncated BEFORE TRUNCATE ON revisions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('a version never changes');
