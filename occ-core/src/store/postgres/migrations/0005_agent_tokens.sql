-- What verifies the tokens of Agents (docs/adr/0015). What signs them is in no database.
CREATE TABLE agent_token_keys (
    id         text PRIMARY KEY CHECK (id LIKE 'atk\_%' AND length(id) = 40),
    public_key text NOT NULL CHECK (public_key ~ '^[0-9a-f]{64}$'),
    expires_at bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TRIGGER agent_token_keys_immutable BEFORE UPDATE ON agent_token_keys
    FOR EACH ROW EXECUTE FUNCTION refuse('a key does not change');

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
    END IF;
    RETURN write_of_resources(w, bytes, moment);
END $$;
