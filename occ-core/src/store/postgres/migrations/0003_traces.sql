-- Where the request that asked for the work is in its trace (docs/adr/0013): the W3C headers of these names.
ALTER TABLE work
    ADD COLUMN traceparent text CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
    ADD COLUMN tracestate text CHECK (length(tracestate) BETWEEN 1 AND 512);

-- Queues work; false when work of its key exists.
CREATE OR REPLACE FUNCTION enqueue(r jsonb, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO work (key, kind, namespace_id, agent_id, revision_id, operation, bucket, lane, actor, available_at, created_at,
        traceparent, tracestate)
    VALUES (r->>'key', r->>'kind', r->>'namespace_id', r->>'agent_id', r->>'revision_id', r->>'operation',
        (r->>'bucket')::bigint, r->>'lane', r->>'actor', moment + coalesce((r->>'delay')::bigint, 0), moment,
        r->>'traceparent', r->>'tracestate')
    ON CONFLICT (key) DO NOTHING;
    RETURN FOUND;
END $$;

-- One change, whole or not at all. Returns the index of the first expectation that does not hold, or -1.
-- Only after everything is locked is the present read and anything looked at: what was seen before may be over.
CREATE OR REPLACE FUNCTION apply(change jsonb, bytes bytea[]) RETURNS integer
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
        -- What is repeated is in the trace of who repeats it.
        IF item->>'op' = 'requeue' THEN
            UPDATE work SET traceparent = item->>'traceparent', tracestate = item->>'tracestate' WHERE key = item->>'key';
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
