-- An admission is the change that callers wait for: a version, the Agent that should run, the work and the audit. What `apply` does in
-- a dozen statements is one here. False when something that it rests on does not hold; then nothing was written, and `apply` says what.
CREATE FUNCTION admit(
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
            plugin_approvers = nullif(draft->'plugin_approvers', 'null')
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

-- The same locks in the same order, in one statement.
CREATE OR REPLACE FUNCTION hold(change jsonb) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    PERFORM CASE WHEN (l.value->>1)::boolean THEN pg_advisory_xact_lock(hashtextextended(l.value->>0, 0))
        ELSE pg_advisory_xact_lock_shared(hashtextextended(l.value->>0, 0)) END
    FROM jsonb_array_elements(change->'locks') l;
    IF change ? 'tokens' THEN
        PERFORM 1 FROM work
        WHERE state = 'claimed' AND claim_token = ANY (ARRAY(SELECT t::uuid FROM jsonb_array_elements_text(change->'tokens') t))
        ORDER BY key FOR UPDATE;
    END IF;
    IF change ? 'keys' THEN
        PERFORM 1 FROM work WHERE key = ANY (ARRAY(SELECT k FROM jsonb_array_elements_text(change->'keys') k))
        ORDER BY key FOR UPDATE;
    END IF;
END $$;
