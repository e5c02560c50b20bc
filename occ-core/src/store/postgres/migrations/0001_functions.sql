-- The only ways in which the application writes: it reads the tables, and calls claim, renew and apply (see grants.sql), each in one
-- round trip and one transaction. These run with the rights of their owner; the others are their parts.

-- The database's present, in milliseconds: the only clock. Not now(), which stands still while a transaction waits for locks.
CREATE FUNCTION present() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- An instant as it is spelled in JSON.
CREATE FUNCTION instant(millis bigint) RETURNS text LANGUAGE sql STABLE
    AS $$ SELECT to_char(to_timestamp(millis / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;

-- Claims due work of free lanes, the oldest first. Of a lane only its oldest due work can be claimed, so that two claimers
-- meet at the same row, which one of them skips; the unique index on claimed lanes ends what is left of the race.
CREATE FUNCTION claim(most integer, lease bigint, max_attempts integer) RETURNS SETOF work
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment CONSTANT bigint := present();
BEGIN
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT q.key FROM work q
        WHERE q.state = 'queued' AND q.available_at <= moment AND q.attempts - q.extra_attempts < max_attempts
            -- OFFSET 0 keeps it a look at one lane: as a join it would read all of the queue.
            AND NOT EXISTS (SELECT 1 FROM work c WHERE c.lane = q.lane AND c.state = 'claimed' OFFSET 0)
            AND q.key = (
                SELECT e.key FROM work e
                WHERE e.lane = q.lane AND e.state = 'queued' AND e.attempts - e.extra_attempts < max_attempts
                ORDER BY e.available_at, e.created_at, e.key LIMIT 1
            )
        ORDER BY q.available_at, q.created_at, q.key
        LIMIT most
        FOR UPDATE SKIP LOCKED
    )
    UPDATE work w SET state = 'claimed', attempts = w.attempts + 1, claim_token = gen_random_uuid(), claimed_at = moment,
        lease_expires_at = moment + lease
    FROM due WHERE w.key = due.key
    RETURNING w.*;
END $$;

-- Leaves claimed work alone for a while and gives the attempt back: for rows that do not decode.
CREATE FUNCTION set_aside(token uuid, pause bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
    UPDATE work SET state = 'queued', available_at = present() + pause, attempts = attempts - 1,
        claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
    WHERE claim_token = token AND state = 'claimed'
$$;

-- Extends a live claim.
CREATE FUNCTION renew(token uuid, lease bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
BEGIN
    UPDATE work SET lease_expires_at = present() + lease
    WHERE claim_token = token AND state = 'claimed' AND lease_expires_at > present();
    RETURN FOUND;
END $$;

-- Claims whose lease has lapsed and queued work without an attempt left, at most so much of each. `published`: it is about the
-- version that its Agent's pointer names and that should run.
CREATE FUNCTION lost(most integer, max_attempts integer) RETURNS SETOF json
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment CONSTANT bigint := present();
BEGIN
    RETURN QUERY
    SELECT row_to_json(l) FROM (
        SELECT w.*, EXISTS (
            SELECT 1 FROM agents a JOIN namespaces n ON n.id = a.namespace_id
            WHERE a.id = w.agent_id AND a.active_revision_id = w.revision_id AND a.desired = 'running'
                AND n.status = 'ready'
        ) AS published
        FROM (
            (SELECT * FROM work WHERE state = 'claimed' AND lease_expires_at <= moment ORDER BY lease_expires_at LIMIT most)
            UNION ALL
            (SELECT * FROM work WHERE state = 'queued' AND attempts > 0 AND attempts - extra_attempts >= max_attempts
                LIMIT most)
        ) w
    ) l;
END $$;

-- Queues work; false when work of its key exists.
CREATE FUNCTION enqueue(r jsonb, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, operation, bucket, lane, actor, available_at, created_at)
    VALUES (r->>'key', r->>'kind', r->>'namespace_id', r->>'agent_id', r->>'revision_id', r->>'operation',
        (r->>'bucket')::bigint, r->>'lane', r->>'actor', moment + coalesce((r->>'delay')::bigint, 0), moment)
    ON CONFLICT (key) DO NOTHING;
    RETURN FOUND;
END $$;

-- Records events, as of then.
CREATE FUNCTION record(events jsonb, moment bigint) RETURNS void
    LANGUAGE sql AS $$
    INSERT INTO audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id, outcome, request_id,
        "authorization", reason_code, details)
    SELECT e->>'id', moment, e->>'kind', e->>'actor', e->>'action', e->>'resource_kind', e->>'resource_id', e->>'namespace_id',
        e->>'outcome', e->>'request_id', nullif(e->'authorization', 'null'), e->>'reason_code', e->'details'
    FROM jsonb_array_elements(events) e
$$;

-- Publishes what becomes of a claim: live, or lapsed. False when it is not that any more. A new attempt's moment is the present.
CREATE FUNCTION publish(next jsonb, lapsed boolean, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF next->>'state' = 'queued' THEN
        UPDATE work SET state = 'queued', available_at = moment + (next->>'delay')::bigint,
            attempts = (next->>'attempts')::integer, extra_attempts = (next->>'extra_attempts')::integer,
            last_attempt = CASE WHEN (next->>'news')::boolean
                THEN jsonb_set(next->'last_attempt', '{at}', to_jsonb(instant(moment))) ELSE next->'last_attempt' END,
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        WHERE claim_token = (next->>'token')::uuid AND state = 'claimed' AND (lease_expires_at <= moment) = lapsed;
    ELSE
        UPDATE work SET state = next->>'state', code = next->>'code', result = next->'result', completed_at = moment,
            claim_token = NULL, claimed_at = NULL, lease_expires_at = NULL
        WHERE claim_token = (next->>'token')::uuid AND state = 'claimed' AND (lease_expires_at <= moment) = lapsed;
    END IF;
    RETURN FOUND;
END $$;

-- Agents whose draft, or whose selected or pending version, names the Secret. Looks at no finished version.
CREATE FUNCTION agents_of_secret(secret text) RETURNS TABLE (agent_id text, namespace_id text)
    LANGUAGE sql STABLE AS $$
    SELECT a.id, a.namespace_id FROM agents a
    WHERE a.namespace_id = (SELECT s.namespace_id FROM secrets s WHERE s.id = secret) AND (
        a.secret_id = secret
        OR EXISTS (SELECT 1 FROM revision_secrets s WHERE s.revision_id = a.active_revision_id AND s.secret_id = secret)
        OR EXISTS (
            SELECT 1 FROM work w JOIN revision_secrets s ON s.revision_id = w.revision_id AND s.secret_id = secret
            WHERE w.lane = a.id AND w.state IN ('queued', 'claimed')
        )
    )
$$;

-- Whether something holds now, in the transaction that would commit the change.
CREATE FUNCTION holds(e jsonb, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    CASE e->>'is'
    WHEN 'claim_held' THEN
        RETURN EXISTS (SELECT 1 FROM work
            WHERE claim_token = (e->>'token')::uuid AND state = 'claimed' AND lease_expires_at > moment);
    WHEN 'namespace' THEN
        RETURN EXISTS (SELECT 1 FROM namespaces
            WHERE id = e->>'id' AND version = (e->>'version')::bigint AND status <> 'deleted');
    WHEN 'namespace_status' THEN
        RETURN EXISTS (SELECT 1 FROM namespaces WHERE id = e->>'id' AND status <> 'deleted' AND e->'statuses' ? status);
    WHEN 'agent' THEN
        RETURN EXISTS (SELECT 1 FROM agents WHERE id = e->>'id' AND version = (e->>'version')::bigint);
    WHEN 'agent_runtime' THEN
        RETURN EXISTS (SELECT 1 FROM agents
            WHERE id = e->>'id' AND active_revision_id IS NOT DISTINCT FROM e->>'active' AND desired = e->>'desired');
    WHEN 'configuration' THEN
        RETURN EXISTS (SELECT 1 FROM configurations WHERE id = e->>'id' AND generation = (e->>'version')::bigint AND NOT deleting);
    WHEN 'configuration_deleting' THEN
        RETURN EXISTS (SELECT 1 FROM configurations WHERE id = e->>'id' AND deleting);
    WHEN 'owned' THEN
        RETURN EXISTS (SELECT 1 FROM owned WHERE id = e->>'id' AND version = (e->>'version')::bigint);
    WHEN 'owned_unreferenced' THEN
        RETURN NOT EXISTS (SELECT 1 FROM agents
            WHERE namespace_id = (SELECT namespace_id FROM owned WHERE id = e->>'id')
                AND harness_auth->'source'->>'id' = e->>'id');
    WHEN 'no_answer' THEN
        RETURN NOT EXISTS (SELECT 1 FROM answers
            WHERE principal = e->>'principal' AND key = e->>'key' AND created_at > moment - 86400000);
    WHEN 'secret' THEN
        RETURN EXISTS (SELECT 1 FROM secrets WHERE id = e->>'id' AND version = (e->>'version')::bigint);
    WHEN 'revision_count' THEN
        RETURN coalesce((SELECT max(number) FROM revisions WHERE agent_id = e->>'id'), 0) = (e->>'version')::bigint;
    WHEN 'secret_unreferenced' THEN
        RETURN NOT EXISTS (SELECT 1 FROM agents_of_secret(e->>'id'))
            AND NOT EXISTS (SELECT 1 FROM configuration_secrets WHERE secret_id = e->>'id')
            AND NOT EXISTS (SELECT 1 FROM owned_secrets WHERE secret_id = e->>'id');
    WHEN 'configuration_unreferenced' THEN
        RETURN NOT EXISTS (SELECT 1 FROM agents WHERE configuration_id = e->>'id');
    WHEN 'namespace_empty' THEN
        RETURN NOT EXISTS (SELECT 1 FROM agents WHERE namespace_id = e->>'id')
            AND NOT EXISTS (SELECT 1 FROM configurations WHERE namespace_id = e->>'id')
            AND NOT EXISTS (SELECT 1 FROM secrets WHERE namespace_id = e->>'id')
            AND NOT EXISTS (SELECT 1 FROM owned WHERE namespace_id = e->>'id');
    WHEN 'no_installation' THEN
        RETURN NOT EXISTS (SELECT 1 FROM installation);
    WHEN 'role' THEN
        RETURN EXISTS (SELECT 1 FROM roles WHERE id = e->>'id');
    WHEN 'role_unreferenced' THEN
        RETURN NOT EXISTS (SELECT 1 FROM access_bindings WHERE role_id = e->>'id');
    WHEN 'work_failed' THEN
        RETURN EXISTS (SELECT 1 FROM work WHERE key = e->>'key' AND state = 'failed');
    WHEN 'work_actor' THEN
        RETURN NOT EXISTS (SELECT 1 FROM work WHERE key = e->>'key' AND actor <> e->>'actor');
    END CASE;
END $$;

-- Bindings and restrictions of exactly this resource.
CREATE FUNCTION remove_policy_of(resource text, its_kind text) RETURNS void
    LANGUAGE sql AS $$
    DELETE FROM access_bindings WHERE resource_id = resource AND resource_kind = its_kind;
    DELETE FROM restrictions WHERE resource_id = resource AND kind = its_kind;
$$;

-- What an Agent leaves: its audit, and the claimed work that removes it, which is settled in the same change.
CREATE FUNCTION remove_agent(agent text) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    principal text;
BEGIN
    SELECT service_principal_id INTO principal FROM agents WHERE id = agent;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    PERFORM remove_policy_of(agent, 'agent');
    DELETE FROM access_bindings WHERE resource_kind = 'agent_revision'
        AND resource_id IN (SELECT id FROM revisions WHERE agent_id = agent);
    DELETE FROM restrictions WHERE kind = 'agent_revision'
        AND resource_id IN (SELECT id FROM revisions WHERE agent_id = agent);
    UPDATE agents SET active_revision_id = NULL WHERE id = agent;
    DELETE FROM revisions WHERE agent_id = agent;
    DELETE FROM work WHERE lane = agent AND key <> 'agent:' || agent || ':reconcile:deleted';
    DELETE FROM agents WHERE id = agent;
    DELETE FROM access_bindings WHERE subject_kind = 'identity' AND subject_id = principal;
    -- Its keys go with it.
    DELETE FROM principals WHERE id = principal;
    RETURN TRUE;
END $$;

-- Leaves the id and the name. The work that removes the Namespace is settled in the same change.
CREATE FUNCTION remove_namespace(namespace text) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE namespaces SET version = version + 1, status = 'deleted', existing_namespace = NULL, deletion_actor = NULL,
        created_at = NULL
    WHERE id = namespace AND status = 'deleting';
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    PERFORM remove_policy_of(namespace, 'namespace');
    DELETE FROM access_bindings WHERE namespace_id = namespace;
    DELETE FROM access_bindings WHERE subject_kind = 'identity'
        AND subject_id IN (SELECT id FROM principals WHERE namespace_id = namespace);
    DELETE FROM access_bindings WHERE subject_kind = 'group'
        AND subject_id IN (SELECT id FROM groups WHERE namespace_id = namespace);
    DELETE FROM roles WHERE namespace_id = namespace;
    DELETE FROM restrictions WHERE namespace_id = namespace;
    DELETE FROM groups WHERE namespace_id = namespace;
    DELETE FROM service_keys WHERE namespace_id = namespace;
    DELETE FROM principals WHERE namespace_id = namespace;
    DELETE FROM work WHERE namespace_id = namespace AND key <> 'namespace:' || namespace || ':reconcile:deleted';
    RETURN TRUE;
END $$;

-- Writes one thing. False when it found nothing to change.
CREATE FUNCTION write(w jsonb, bytes bytea[], moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    r CONSTANT jsonb := w->'row';
BEGIN
    CASE w->>'op'
    WHEN 'settle' THEN
        RETURN publish(w, FALSE, moment);
    WHEN 'enqueue' THEN
        RETURN enqueue(r, moment) OR EXISTS (SELECT 1 FROM work WHERE key = r->>'key' AND actor = r->>'actor');
    WHEN 'revision' THEN
        INSERT INTO revisions (id, namespace_id, agent_id, number, snapshot, digest, created_at)
        VALUES (r->>'id', r->>'namespace_id', r->>'agent_id', (r->>'number')::bigint, bytes[(w->>'bytes')::integer],
            r->>'digest', (r->>'created_at')::bigint);
        INSERT INTO revision_secrets SELECT r->>'id', s FROM jsonb_array_elements_text(w->'secrets') s;
    WHEN 'update_agent' THEN
        UPDATE agents SET version = version + 1, name = r->>'name', configuration_id = r->>'configuration_id',
            backend_id = r->>'backend_id', harness_auth = nullif(r->'harness_auth', 'null'),
            secret_id = r->>'secret_id', execution_mode = r->>'execution_mode', desired = r->>'desired',
            status = r->>'status'
        WHERE id = r->>'id' AND namespace_id = r->>'namespace_id';
    WHEN 'active_revision' THEN
        UPDATE agents SET version = version + 1, active_revision_id = w->>'revision' WHERE id = w->>'id';
    WHEN 'revision_retired' THEN
        UPDATE revisions SET live = FALSE WHERE id = w->>'id';
    WHEN 'requeue' THEN
        UPDATE work SET state = 'queued', actor = w->>'actor', available_at = moment, attempts = 0, extra_attempts = 0,
            last_attempt = NULL, code = NULL, result = NULL, completed_at = NULL
        WHERE key = w->>'key' AND state = 'failed';
    WHEN 'installation' THEN
        INSERT INTO installation SELECT * FROM jsonb_populate_record(NULL::installation, r || '{"singleton": 1}');
    WHEN 'principal' THEN
        INSERT INTO principals SELECT * FROM jsonb_populate_record(NULL::principals, r);
    WHEN 'role' THEN
        INSERT INTO roles SELECT * FROM jsonb_populate_record(NULL::roles, r);
    WHEN 'access_binding' THEN
        INSERT INTO access_bindings SELECT * FROM jsonb_populate_record(NULL::access_bindings, r);
    WHEN 'delete_role' THEN
        DELETE FROM roles WHERE id = w->>'id';
    WHEN 'delete_access_binding' THEN
        DELETE FROM access_bindings WHERE id = w->>'id';
        RETURN TRUE;
    WHEN 'service_key' THEN
        INSERT INTO service_keys
        SELECT * FROM jsonb_populate_record(NULL::service_keys, r || jsonb_build_object('created_at', moment));
    WHEN 'revoke_service_key' THEN
        UPDATE service_keys SET revoked_at = coalesce(revoked_at, moment) WHERE id = w->>'id';
    WHEN 'namespace' THEN
        INSERT INTO namespaces SELECT * FROM jsonb_populate_record(NULL::namespaces, r || '{"version": 1}');
    WHEN 'namespace_status' THEN
        -- Whoever asked first stays, unless somebody takes over.
        UPDATE namespaces SET version = version + 1, status = w->>'status',
            deletion_actor = CASE w->>'status' WHEN 'deleting' THEN coalesce(w->>'actor', deletion_actor) END
        WHERE id = w->>'id' AND status <> 'deleted';
    WHEN 'namespace_tombstone' THEN
        RETURN remove_namespace(w->>'id');
    WHEN 'configuration' THEN
        INSERT INTO configurations SELECT * FROM jsonb_populate_record(NULL::configurations, r);
        INSERT INTO configuration_secrets SELECT r->>'id', s FROM jsonb_array_elements_text(w->'secrets') s;
    WHEN 'update_configuration' THEN
        UPDATE configurations SET generation = (r->>'generation')::bigint, secret_bindings = r->'secret_bindings',
            deleting = (r->>'deleting')::boolean
        WHERE id = r->>'id' AND namespace_id = r->>'namespace_id';
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
        DELETE FROM configuration_secrets WHERE configuration_id = r->>'id';
        INSERT INTO configuration_secrets SELECT r->>'id', s FROM jsonb_array_elements_text(w->'secrets') s;
        RETURN TRUE;
    WHEN 'delete_configuration' THEN
        PERFORM remove_policy_of(w->>'id', 'configuration');
        DELETE FROM configurations WHERE id = w->>'id';
    WHEN 'secret' THEN
        INSERT INTO secrets SELECT * FROM jsonb_populate_record(NULL::secrets, r);
    WHEN 'update_secret' THEN
        UPDATE secrets SET name = r->>'name', driver_id = r->>'driver_id', backend_ref = r->'backend_ref',
            version = (r->>'version')::bigint, deleting = (r->>'deleting')::boolean
        WHERE id = r->>'id' AND namespace_id = r->>'namespace_id';
    WHEN 'delete_secret' THEN
        PERFORM remove_policy_of(w->>'id', 'secret');
        DELETE FROM secrets WHERE id = w->>'id';
    WHEN 'owned' THEN
        INSERT INTO owned SELECT * FROM jsonb_populate_record(NULL::owned, r);
        INSERT INTO owned_secrets SELECT r->>'id', s FROM jsonb_array_elements_text(w->'secrets') s;
    WHEN 'update_owned' THEN
        UPDATE owned SET name = r->>'name', body = r->'body', version = (r->>'version')::bigint
        WHERE id = r->>'id' AND namespace_id = r->>'namespace_id' AND kind = r->>'kind';
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
        DELETE FROM owned_secrets WHERE owned_id = r->>'id';
        INSERT INTO owned_secrets SELECT r->>'id', s FROM jsonb_array_elements_text(w->'secrets') s;
        RETURN TRUE;
    WHEN 'delete_owned' THEN
        PERFORM remove_policy_of(w->>'id', w->>'kind');
        DELETE FROM owned WHERE id = w->>'id';
    WHEN 'answer' THEN
        DELETE FROM answers WHERE created_at <= moment - 86400000;
        INSERT INTO answers SELECT * FROM jsonb_populate_record(NULL::answers, r || jsonb_build_object('created_at', moment));
    WHEN 'agent' THEN
        INSERT INTO principals (id, kind, namespace_id, agent_id)
        VALUES (r->>'service_principal_id', 'service', r->>'namespace_id', r->>'id');
        INSERT INTO agents SELECT * FROM jsonb_populate_record(NULL::agents, r || '{"version": 1}');
        IF w ? 'setup' THEN
            INSERT INTO workspace_setups SELECT * FROM jsonb_populate_record(NULL::workspace_setups, w->'setup');
        END IF;
        RETURN TRUE;
    WHEN 'drop_workspace_setup' THEN
        DELETE FROM workspace_setups WHERE agent_id = w->>'id' AND files IS NOT NULL;
        RETURN TRUE;
    WHEN 'complete_workspace_setup' THEN
        UPDATE workspace_setups SET files = NULL WHERE agent_id = w->>'id';
        RETURN TRUE;
    WHEN 'remove_agent' THEN
        RETURN remove_agent(w->>'id');
    END CASE;
    -- Of an INSERT that does not fail something was written.
    RETURN FOUND OR w ? 'secrets';
END $$;

-- Writes a driver's record, fenced by the version that was read. False when that is not its version.
CREATE FUNCTION stage(s jsonb, bytes bytea[]) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    expected CONSTANT bigint := (s->>'expected')::bigint;
    fresh CONSTANT bytea := bytes[(s->>'bytes')::integer];
BEGIN
    IF expected IS NULL AND fresh IS NULL THEN
        RETURN NOT EXISTS (SELECT 1 FROM driver_state WHERE driver = s->>'driver' AND key = s->>'key');
    ELSIF expected IS NULL THEN
        INSERT INTO driver_state (driver, key, value, version) VALUES (s->>'driver', s->>'key', fresh, 1)
        ON CONFLICT DO NOTHING;
    ELSIF fresh IS NULL THEN
        DELETE FROM driver_state WHERE driver = s->>'driver' AND key = s->>'key' AND version = expected;
    ELSE
        UPDATE driver_state SET value = fresh, version = version + 1
        WHERE driver = s->>'driver' AND key = s->>'key' AND version = expected;
    END IF;
    RETURN FOUND;
END $$;

-- Locks what `locks` names, in its order, Namespace before Agent before the rest; then work by its tokens and keys, by key.
CREATE FUNCTION hold(change jsonb) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    item jsonb;
BEGIN
    FOR item IN SELECT value FROM jsonb_array_elements(change->'locks') LOOP
        IF (item->>1)::boolean THEN
            PERFORM pg_advisory_xact_lock(hashtextextended(item->>0, 0));
        ELSE
            PERFORM pg_advisory_xact_lock_shared(hashtextextended(item->>0, 0));
        END IF;
    END LOOP;
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

-- Publishes what becomes of one lost claim, or of one piece of work without an attempt left, with what follows from it. False when
-- another recovery came first: then nothing of it is left to do.
CREATE FUNCTION give_back(w jsonb, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF w ? 'token' THEN
        IF NOT publish(w, TRUE, moment) THEN
            RETURN FALSE;
        END IF;
    ELSE
        UPDATE work SET state = w->>'state', code = w->>'code', result = w->'result', completed_at = moment
        WHERE key = w->>'key' AND state = 'queued' AND attempts = (w->>'spent')::integer;
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
    END IF;
    PERFORM record(w->'events', moment);
    UPDATE namespaces SET version = version + 1, status = 'failed'
    WHERE id = w->>'namespace' AND status = 'provisioning';
    IF w ? 'row' THEN
        PERFORM enqueue(w->'row', moment);
    END IF;
    RETURN TRUE;
END $$;

-- One batch of a recovery. Returns how many were given back.
CREATE FUNCTION recover(change jsonb) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment bigint;
    item jsonb;
    done integer := 0;
BEGIN
    PERFORM hold(change);
    moment := present();
    FOR item IN SELECT value FROM jsonb_array_elements(change->'writes') LOOP
        done := done + give_back(item, moment)::integer;
    END LOOP;
    RETURN done;
END $$;

-- One change, whole or not at all. Returns the index of the first expectation that does not hold, or -1.
-- Only after everything is locked is the present read and anything looked at: what was seen before may be over.
CREATE FUNCTION apply(change jsonb, bytes bytea[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment bigint;
    item jsonb;
    index integer := 0;
BEGIN
    PERFORM hold(change);
    moment := present();
    FOR item IN SELECT value FROM jsonb_array_elements(change->'expects') LOOP
        IF NOT holds(item, moment) THEN
            RETURN index;
        END IF;
        index := index + 1;
    END LOOP;
    index := 0;
    FOR item IN SELECT value FROM jsonb_array_elements(change->'writes') LOOP
        IF NOT write(item, bytes, moment) THEN
            RAISE EXCEPTION 'a write found nothing to change' USING ERRCODE = 'OCC01', DETAIL = index::text;
        END IF;
        index := index + 1;
    END LOOP;
    FOR item IN SELECT value FROM jsonb_array_elements(change->'state') LOOP
        IF NOT stage(item, bytes) THEN
            RAISE EXCEPTION 'the record of a driver changed meanwhile' USING ERRCODE = 'OCC02';
        END IF;
    END LOOP;
    PERFORM record(change->'audit', moment);
    RETURN -1;
END $$;

-- Appends seals to the chain, and says how many; none when somebody else has appended some since `after` was the last.
CREATE FUNCTION seal(after bigint, seals jsonb) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('audit seals', 0));
    IF after <> coalesce((SELECT max(position) FROM audit_seals), 0) THEN
        RETURN 0;
    END IF;
    INSERT INTO audit_seals (position, sequence, hash)
    SELECT (s->>0)::bigint, (s->>1)::bigint, s->>2 FROM jsonb_array_elements(seals) s ORDER BY (s->>0)::bigint;
    RETURN jsonb_array_length(seals);
END $$;
