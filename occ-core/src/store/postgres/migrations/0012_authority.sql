-- What allowed a change is looked at again in its transaction.
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
    ELSIF e->>'is' = 'access_binding' THEN
        RETURN EXISTS (SELECT 1 FROM access_bindings WHERE id = e->>'id');
    END IF;
    RETURN holds_of_resources(e, moment);
END $$;

-- What an Agent's owner asks of its runtime is written without its settings: those that cannot be read stay as they are saved.
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
    ELSIF w->>'op' = 'agent_state' THEN
        UPDATE agents SET version = version + 1, desired = w->>'desired', status = w->>'status' WHERE id = w->>'id';
        RETURN FOUND;
    END IF;
    RETURN write_of_resources(w, bytes, moment);
END $$;
