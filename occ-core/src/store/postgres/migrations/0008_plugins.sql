-- The plugins that a draft selects, and who may approve for those that say nothing themselves.
ALTER TABLE agents
    ADD COLUMN plugins jsonb CHECK (jsonb_typeof(plugins) = 'object'),
    ADD COLUMN plugin_approvers jsonb CHECK (jsonb_typeof(plugin_approvers) = 'array');

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
            plugin_approvers = nullif(w->'row'->'plugin_approvers', 'null')
        WHERE id = w->'row'->>'id' AND namespace_id = w->'row'->>'namespace_id'
            AND (plugins, plugin_approvers) IS DISTINCT FROM
                (nullif(w->'row'->'plugins', 'null'), nullif(w->'row'->'plugin_approvers', 'null'));
    END IF;
    RETURN write_of_resources(w, bytes, moment);
END $$;
