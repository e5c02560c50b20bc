-- Holds queued work of Agents that are as they were off until its moment lies between the two of its wait, and gives the keys of what
-- does. Nothing is written for what does already. Of an Agent that changed it is due at once. Waits for nobody: what somebody else has
-- hold of is left alone.
DROP FUNCTION postpone(text[], text[], bigint[], bigint[]);
CREATE FUNCTION postpone(keys text[], agent_ids text[], versions bigint[], leasts bigint[], mosts bigint[]) RETURNS SETOF text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = occ, pg_temp AS $$
DECLARE
    moment CONSTANT bigint := present();
BEGIN
    RETURN QUERY
    WITH waits AS MATERIALIZED (
        SELECT w.key, w.available_at, same.holds,
            CASE WHEN same.holds THEN moment + i.least ELSE 0 END AS earliest,
            CASE WHEN same.holds THEN moment + i.most ELSE moment END AS latest
        FROM unnest(keys, agent_ids, versions, leasts, mosts) i(key, agent, version, least, most)
        JOIN work w ON w.key = i.key
        JOIN agents a ON a.id = w.agent_id
        CROSS JOIN LATERAL (SELECT a.version = i.version AS holds) same
        WHERE w.state = 'queued' AND w.agent_id = i.agent
    ), misplaced AS MATERIALIZED (
        SELECT w.key, waits.latest FROM waits JOIN work w ON w.key = waits.key
        WHERE w.state = 'queued' AND w.available_at NOT BETWEEN waits.earliest AND waits.latest
        FOR UPDATE OF w SKIP LOCKED
    ), placed AS (
        UPDATE work w SET available_at = m.latest FROM misplaced m WHERE w.key = m.key
        RETURNING w.key
    )
    SELECT waits.key FROM waits LEFT JOIN placed ON placed.key = waits.key
    WHERE waits.holds AND (placed.key IS NOT NULL OR waits.available_at BETWEEN waits.earliest AND waits.latest);
END $$;
