-- Credential sources are small resources, too; a draft names those that it uses.
ALTER TABLE owned DROP CONSTRAINT owned_kind_check;
ALTER TABLE owned ADD CONSTRAINT owned_kind_check CHECK (kind IN ('service_account', 'preset', 'credential_source'));
ALTER TABLE agents ADD COLUMN credential_sources jsonb CHECK (jsonb_typeof(credential_sources) = 'array');

CREATE OR REPLACE FUNCTION holds(e jsonb, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF e->>'is' = 'account' THEN
        RETURN EXISTS (SELECT 1 FROM accounts WHERE principal_id = e->>'id' AND version = (e->>'version')::bigint);
    ELSIF e->>'is' = 'owned_unreferenced' THEN
        RETURN NOT EXISTS (SELECT 1 FROM agents
            WHERE namespace_id = (SELECT namespace_id FROM owned WHERE id = e->>'id')
                AND (harness_auth->'source'->>'id' = e->>'id'
                    OR harness_auth->>'sourceId' = e->>'id'
                    OR credential_sources @> jsonb_build_array(jsonb_build_object('sourceId', e->>'id'))));
    END IF;
    RETURN holds_of_resources(e, moment);
END $$;

CREATE OR REPLACE FUNCTION write(w jsonb, bytes bytea[], moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF w ? 'account' THEN
        RETURN write_account(w, moment);
    ELSIF w->>'op' = 'agent_token_key' THEN
        DELETE FROM agent_token_keys WHERE expires_at <= moment;
        INSERT INTO agent_token_keys (id, public_key, expires_at, created_at)
        VALUES (w->>'id', w->>'public_key', moment + (w->>'lifetime')::bigint, moment);
        RETURN TRUE;
    ELSIF w->>'op' = 'federated_identity' THEN
        INSERT INTO federated_identities (issuer, subject, principal_id, created_at)
        VALUES (w->>'issuer', w->>'subject', w->>'principal', moment);
        RETURN TRUE;
    ELSIF w->>'op' = 'unlink' THEN
        -- A sign-in that is under way has seen the version before.
        UPDATE accounts SET version = version + 1 WHERE principal_id = w->>'principal';
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
        DELETE FROM federated_identities WHERE principal_id = w->>'principal';
        DELETE FROM sessions WHERE principal_id = w->>'principal';
        RETURN TRUE;
    ELSIF w->>'op' = 'update_agent' THEN
        -- Most changes are not of these: then the row is written once.
        UPDATE agents SET plugins = nullif(w->'row'->'plugins', 'null'),
            plugin_approvers = nullif(w->'row'->'plugin_approvers', 'null'),
            credential_sources = nullif(w->'row'->'credential_sources', 'null')
        WHERE id = w->'row'->>'id' AND namespace_id = w->'row'->>'namespace_id'
            AND (plugins, plugin_approvers, credential_sources) IS DISTINCT FROM
                (nullif(w->'row'->'plugins', 'null'), nullif(w->'row'->'plugin_approvers', 'null'),
                nullif(w->'row'->'credential_sources', 'null'));
    END IF;
    RETURN write_of_resources(w, bytes, moment);
END $$;

-- An admission writes the same row of the draft.
CREATE OR REPLACE FUNCTION admit(
    lock_names text[], lock_alone boolean[],
    owner text, agent text, draft jsonb, agent_version bigint, configuration text, configuration_generation bigint,
    secret_ids text[], secret_versions bigint[], earlier bigint,
    version_id text, bytes bytea, version_digest text, frozen_at bigint, frozen_secrets text[],
    work_key text, work_actor text, work_traceparent text, work_tracestate text,
    event jsonb
) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment bigint;
BEGIN
    PERFORM CASE WHEN l.alone THEN pg_advisory_xact_lock(hashtextextended(l.name, 0))
        ELSE pg_advisory_xact_lock_shared(hashtextextended(l.name, 0)) END
    FROM unnest(lock_names, lock_alone) l(name, alone);
    moment := present();
    WITH holds AS MATERIALIZED (
        SELECT FROM agents a JOIN namespaces n ON n.id = a.namespace_id
        WHERE a.id = admit.agent AND a.namespace_id = owner AND a.version = agent_version AND n.status = 'ready'
            AND (admit.configuration IS NULL OR EXISTS (
                SELECT FROM configurations c
                WHERE c.id = admit.configuration AND c.generation = configuration_generation AND NOT c.deleting
            ))
            AND coalesce((SELECT max(r.number) FROM revisions r WHERE r.agent_id = admit.agent), 0) = earlier
            AND NOT EXISTS (
                SELECT FROM unnest(secret_ids, secret_versions) e(id, version)
                WHERE NOT EXISTS (SELECT FROM secrets s WHERE s.id = e.id AND s.version = e.version)
            )
    ), version AS (
        INSERT INTO revisions (id, namespace_id, agent_id, number, snapshot, digest, created_at)
        SELECT version_id, owner, admit.agent, earlier + 1, bytes, version_digest, frozen_at FROM holds
    ), frozen AS (
        INSERT INTO revision_secrets (revision_id, secret_id)
        SELECT version_id, s FROM holds, unnest(frozen_secrets) s
    ), wanted AS (
        UPDATE agents a SET version = a.version + 1, name = draft->>'name', configuration_id = draft->>'configuration_id',
            backend_id = draft->>'backend_id', harness_auth = nullif(draft->'harness_auth', 'null'),
            secret_id = draft->>'secret_id', execution_mode = draft->>'execution_mode', desired = draft->>'desired',
            status = draft->>'status', plugins = nullif(draft->'plugins', 'null'),
            plugin_approvers = nullif(draft->'plugin_approvers', 'null'),
            credential_sources = nullif(draft->'credential_sources', 'null')
        FROM holds WHERE a.id = admit.agent
    ), queued AS (
        INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, lane, actor, available_at, created_at, traceparent,
            tracestate)
        SELECT work_key, 'revision', owner, admit.agent, version_id, admit.agent, work_actor, moment, moment, work_traceparent,
            work_tracestate
        FROM holds
    )
    INSERT INTO audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id, outcome, request_id,
        "authorization", reason_code, details)
    SELECT event->>'id', moment, event->>'kind', event->>'actor', event->>'action', event->>'resource_kind',
        event->>'resource_id', event->>'namespace_id', event->>'outcome', event->>'request_id',
        nullif(event->'authorization', 'null'), event->>'reason_code', event->'details'
    FROM holds;
    RETURN FOUND;
END $$;

-- A source is withdrawn from a version by work of its own.
DO $$
DECLARE
    shapes text;
BEGIN
    SELECT conname INTO STRICT shapes FROM pg_constraint
    WHERE conrelid = 'work'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%namespace_ready%';
    EXECUTE format('ALTER TABLE work DROP CONSTRAINT %I', shapes);
END $$;
ALTER TABLE work ADD CONSTRAINT work_shapes CHECK (CASE kind
    WHEN 'namespace_ready' THEN agent_id IS NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
    WHEN 'namespace_deleted' THEN agent_id IS NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
    WHEN 'agent_stopped' THEN agent_id IS NOT NULL AND revision_id IS NULL AND operation IS NOT NULL AND bucket IS NULL
    WHEN 'agent_deleted' THEN agent_id IS NOT NULL AND revision_id IS NULL AND operation IS NULL AND bucket IS NULL
    WHEN 'revision' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NULL AND bucket IS NULL
    WHEN 'maintenance' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NULL AND bucket >= 0
    WHEN 'credentials_withdrawn' THEN agent_id IS NOT NULL AND revision_id IS NOT NULL AND operation IS NOT NULL AND bucket IS NULL
    ELSE FALSE
END);

DROP INDEX work_over;
CREATE INDEX work_over ON work (completed_at) WHERE completed_at IS NOT NULL
    AND kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn', 'agent_deleted', 'namespace_deleted');
CREATE OR REPLACE FUNCTION refuse_removal_of_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state IN ('succeeded', 'failed') AND OLD.kind IN ('maintenance', 'agent_stopped', 'credentials_withdrawn') THEN
        RETURN OLD;
    END IF;
    IF EXISTS (SELECT 1 FROM occ.agents WHERE id = OLD.agent_id AND status <> 'deleting')
        OR (OLD.agent_id IS NULL
            AND EXISTS (SELECT 1 FROM occ.namespaces WHERE id = OLD.namespace_id AND status <> 'deleted'))
    THEN
        RAISE EXCEPTION 'work is removed only with its Agent or Namespace, or when it is over and nothing reads it'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
