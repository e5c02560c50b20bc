-- Holds queued work of Agents that are as they were off until its moment lies between the two of its wait, and gives the keys of what
-- does. Nothing is written for what does already. Of an Agent that changed it is due at once. Waits for nobody: what somebody else has
-- hold of is left alone.
-- Each is looked up by its key: the planner, that knows a table of an hour ago, would go through all that is queued for each.
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
        CROSS JOIN LATERAL (SELECT * FROM work WHERE work.key = i.key OFFSET 0) w
        CROSS JOIN LATERAL (SELECT a.version = i.version AS holds FROM agents a WHERE a.id = i.agent OFFSET 0) same
        WHERE w.state = 'queued' AND w.agent_id = i.agent
    ), misplaced AS MATERIALIZED (
        SELECT w.key, waits.latest FROM waits
        CROSS JOIN LATERAL (
            SELECT work.key FROM work
            WHERE work.key = waits.key AND work.claim_token IS NULL AND work.completed_at IS NULL
                AND work.available_at NOT BETWEEN waits.earliest AND waits.latest
            OFFSET 0 FOR UPDATE SKIP LOCKED
        ) w
        WHERE waits.available_at NOT BETWEEN waits.earliest AND waits.latest
    ), placed AS (
        UPDATE work SET available_at = m.latest FROM misplaced m WHERE work.key = m.key
        RETURNING work.key
    )
    SELECT waits.key FROM waits
    WHERE waits.holds AND (waits.available_at BETWEEN waits.earliest AND waits.latest OR waits.key IN (SELECT placed.key FROM placed));
END $$;
