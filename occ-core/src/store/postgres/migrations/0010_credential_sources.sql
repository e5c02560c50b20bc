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
