-- Admissions that come at once are one statement: it costs the server little more than one of them. Gives the numbers of those that were
-- written; of the others something that they rest on does not hold, and `apply` says what. It waits for no lock for long: whoever must have one
-- waits in a call of `apply`, which is its own.
DROP FUNCTION admit;
CREATE FUNCTION admit(lock_names text[], lock_alone boolean[], admissions jsonb, snapshots bytea[]) RETURNS SETOF integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    moment bigint;
BEGIN
    PERFORM CASE WHEN l.alone THEN pg_advisory_xact_lock(hashtextextended(l.name, 0))
        ELSE pg_advisory_xact_lock_shared(hashtextextended(l.name, 0)) END
    FROM unnest(lock_names, lock_alone) l(name, alone);
    moment := present();
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(admissions) a(
            number integer, owner text, agent text, draft jsonb, version bigint, configuration text, generation bigint,
            secrets jsonb, earlier bigint, revision text, digest text, frozen_at bigint, frozen jsonb, key text, actor text,
            traceparent text, tracestate text, event jsonb
        )
    ), holds AS MATERIALIZED (
        SELECT asked.* FROM asked JOIN agents a ON a.id = asked.agent JOIN namespaces n ON n.id = a.namespace_id
        WHERE a.namespace_id = asked.owner AND a.version = asked.version AND n.status = 'ready'
            AND (asked.configuration IS NULL OR EXISTS (
                SELECT FROM configurations c
                WHERE c.id = asked.configuration AND c.generation = asked.generation AND NOT c.deleting
            ))
            AND coalesce((SELECT max(r.number) FROM revisions r WHERE r.agent_id = asked.agent), 0) = asked.earlier
            AND NOT EXISTS (
                SELECT FROM jsonb_each_text(asked.secrets) e(id, version)
                WHERE NOT EXISTS (SELECT FROM secrets s WHERE s.id = e.id AND s.version = e.version::bigint)
            )
    ), frozen_version AS (
        INSERT INTO revisions (id, namespace_id, agent_id, number, snapshot, digest, created_at)
        SELECT h.revision, h.owner, h.agent, h.earlier + 1, snapshots[h.number + 1], h.digest, h.frozen_at FROM holds h
    ), frozen_secrets AS (
        INSERT INTO revision_secrets (revision_id, secret_id)
        SELECT h.revision, o.id FROM holds h, jsonb_array_elements_text(h.frozen) o(id)
    ), wanted AS (
        UPDATE agents a SET version = a.version + 1, name = draft->>'name', configuration_id = draft->>'configuration_id',
            backend_id = draft->>'backend_id', harness_auth = nullif(draft->'harness_auth', 'null'),
            secret_id = draft->>'secret_id', execution_mode = draft->>'execution_mode', desired = draft->>'desired',
            status = draft->>'status', plugins = nullif(draft->'plugins', 'null'),
            plugin_approvers = nullif(draft->'plugin_approvers', 'null'),
            credential_sources = nullif(draft->'credential_sources', 'null')
        FROM holds h WHERE a.id = h.agent
    ), queued AS (
        INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, lane, actor, available_at, created_at, traceparent,
            tracestate)
        SELECT h.key, 'revision', h.owner, h.agent, h.revision, h.agent, h.actor, moment, moment, h.traceparent, h.tracestate
        FROM holds h
    ), recorded AS (
        INSERT INTO audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id, outcome, request_id,
            "authorization", reason_code, details)
        SELECT event->>'id', moment, event->>'kind', event->>'actor', event->>'action', event->>'resource_kind',
            event->>'resource_id', event->>'namespace_id', event->>'outcome', event->>'request_id',
            nullif(event->'authorization', 'null'), event->>'reason_code', event->'details'
        FROM holds h
    )
    SELECT h.number FROM holds h;
END $$;

-- Changes of passes that come at once, in the same way: under a live claim, and an Agent whose pointer and desired state are as they were, the
-- pointer moves, versions are retired, the claim ends, and all of it is recorded.
CREATE FUNCTION settle(lock_names text[], lock_alone boolean[], changes jsonb) RETURNS SETOF integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    moment bigint;
BEGIN
    PERFORM CASE WHEN l.alone THEN pg_advisory_xact_lock(hashtextextended(l.name, 0))
        ELSE pg_advisory_xact_lock_shared(hashtextextended(l.name, 0)) END
    FROM unnest(lock_names, lock_alone) l(name, alone);
    PERFORM FROM work
    WHERE state = 'claimed' AND claim_token = ANY (ARRAY(SELECT (c->>'token')::uuid FROM jsonb_array_elements(changes) c))
    ORDER BY key FOR UPDATE;
    moment := present();
    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(changes) c(
            number integer, token uuid, agent text, active text, desired text, selects boolean, selected text, retired jsonb,
            "end" jsonb, events jsonb
        )
    ), holds AS MATERIALIZED (
        SELECT asked.* FROM asked
        WHERE EXISTS (
                SELECT FROM work w
                WHERE w.claim_token = asked.token AND w.state = 'claimed' AND w.lease_expires_at > moment
            )
            AND (asked.agent IS NULL OR EXISTS (
                SELECT FROM agents a
                WHERE a.id = asked.agent AND a.active_revision_id IS NOT DISTINCT FROM asked.active AND a.desired = asked.desired
            ))
    ), pointed AS (
        UPDATE agents a SET version = a.version + 1, active_revision_id = h.selected FROM holds h WHERE a.id = h.agent AND h.selects
    ), retired AS (
        UPDATE revisions r SET live = FALSE FROM holds h, jsonb_array_elements_text(h.retired) o(id) WHERE r.id = o.id
    ), queued AS (
        UPDATE work w SET state = 'queued', available_at = moment + (h."end"->>'delay')::bigint,
            attempts = (h."end"->>'attempts')::integer, extra_attempts = (h."end"->>'extra_attempts')::integer,
            last_attempt = CASE WHEN (h."end"->>'news')::boolean
                THEN jsonb_set(h."end"->'last_attempt', '{at}', to_jsonb(instant(moment))) ELSE h."end"->'last_attempt' END,
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        FROM holds h WHERE w.claim_token = h.token AND w.state = 'claimed' AND h."end"->>'state' = 'queued'
    ), ended AS (
        UPDATE work w SET state = h."end"->>'state', code = h."end"->>'code', result = h."end"->'result', completed_at = moment,
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        FROM holds h WHERE w.claim_token = h.token AND w.state = 'claimed' AND h."end"->>'state' <> 'queued'
    ), recorded AS (
        INSERT INTO audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id, outcome, request_id,
            "authorization", reason_code, details)
        SELECT e->>'id', moment, e->>'kind', e->>'actor', e->>'action', e->>'resource_kind', e->>'resource_id', e->>'namespace_id',
            e->>'outcome', e->>'request_id', nullif(e->'authorization', 'null'), e->>'reason_code', e->'details'
        FROM holds h, jsonb_array_elements(h.events) e
    )
    SELECT h.number FROM holds h;
END $$;

-- One batch of a recovery, in one statement: what becomes of lost claims, and of work without an attempt left, with what follows from it.
-- What another recovery did first is left out. Returns how many were given back.
CREATE OR REPLACE FUNCTION recover(change jsonb) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment bigint;
    done integer;
BEGIN
    PERFORM hold(change);
    moment := present();
    WITH lost AS MATERIALIZED (
        SELECT * FROM jsonb_to_recordset(change->'writes') l(
            key text, token uuid, spent integer, state text, delay bigint, attempts integer, extra_attempts integer, news boolean,
            last_attempt jsonb, code text, result jsonb, namespace text, "row" jsonb, events jsonb
        )
    ), given_back AS (
        UPDATE work w SET state = l.state, code = l.code, result = l.result,
            available_at = coalesce(moment + l.delay, w.available_at), attempts = coalesce(l.attempts, w.attempts),
            extra_attempts = coalesce(l.extra_attempts, w.extra_attempts),
            last_attempt = CASE WHEN l.state <> 'queued' THEN w.last_attempt
                WHEN l.news THEN jsonb_set(l.last_attempt, '{at}', to_jsonb(instant(moment))) ELSE l.last_attempt END,
            completed_at = CASE WHEN l.state <> 'queued' THEN moment END,
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        FROM lost l
        WHERE w.key = l.key AND CASE WHEN l.token IS NULL THEN w.state = 'queued' AND w.attempts = l.spent
            ELSE w.state = 'claimed' AND w.claim_token = l.token AND w.lease_expires_at <= moment END
        RETURNING l.namespace, l."row", l.events
    ), recorded AS (
        INSERT INTO audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id, outcome, request_id,
            "authorization", reason_code, details)
        SELECT e->>'id', moment, e->>'kind', e->>'actor', e->>'action', e->>'resource_kind', e->>'resource_id', e->>'namespace_id',
            e->>'outcome', e->>'request_id', nullif(e->'authorization', 'null'), e->>'reason_code', e->'details'
        FROM given_back g, jsonb_array_elements(g.events) e
    ), failed AS (
        UPDATE namespaces n SET version = n.version + 1, status = 'failed'
        FROM given_back g WHERE n.id = g.namespace AND n.status = 'provisioning'
    ), next AS (
        INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, operation, bucket, lane, actor, available_at, created_at,
            traceparent, tracestate)
        SELECT r->>'key', r->>'kind', r->>'namespace_id', r->>'agent_id', r->>'revision_id', r->>'operation',
            (r->>'bucket')::bigint, r->>'lane', r->>'actor', moment + coalesce((r->>'delay')::bigint, 0), moment,
            r->>'traceparent', r->>'tracestate'
        FROM (SELECT g."row" AS r FROM given_back g WHERE g."row" IS NOT NULL) g
        ON CONFLICT (key) DO NOTHING
    )
    SELECT count(*) INTO done FROM given_back;
    RETURN done;
END $$;
DROP FUNCTION give_back(jsonb, bigint);
