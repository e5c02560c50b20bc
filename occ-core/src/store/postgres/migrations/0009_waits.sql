-- Puts off queued work of Agents that are as they were, and gives the keys of what it was. Waits for nobody: what somebody else has
-- hold of is left alone.
CREATE FUNCTION postpone(keys text[], agent_ids text[], versions bigint[], delays bigint[]) RETURNS SETOF text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment CONSTANT bigint := present();
BEGIN
    RETURN QUERY
    WITH waits AS MATERIALIZED (
        SELECT w.key, i.delay FROM unnest(keys, agent_ids, versions, delays) i(key, agent, version, delay)
        JOIN agents a ON a.id = i.agent AND a.version = i.version
        JOIN work w ON w.key = i.key
        WHERE w.state = 'queued' AND w.agent_id = i.agent
        FOR UPDATE OF w SKIP LOCKED
    )
    UPDATE work w SET available_at = moment + waits.delay FROM waits WHERE w.key = waits.key
    RETURNING w.key;
END $$;
