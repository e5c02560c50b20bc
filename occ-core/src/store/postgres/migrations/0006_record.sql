-- Records events, as of then. In PL/pgSQL, which keeps its plan: a function in SQL is planned anew by each call, and every change
-- calls this one.
DROP FUNCTION record(jsonb, bigint);
CREATE FUNCTION record(events jsonb, moment bigint) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (id, occurred_at, kind, actor, action, resource_kind, resource_id, namespace_id, outcome, request_id,
        "authorization", reason_code, details)
    SELECT e->>'id', moment, e->>'kind', e->>'actor', e->>'action', e->>'resource_kind', e->>'resource_id', e->>'namespace_id',
        e->>'outcome', e->>'request_id', nullif(e->'authorization', 'null'), e->>'reason_code', e->'details'
    FROM jsonb_array_elements(events) e;
END $$;
