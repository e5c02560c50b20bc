-- What verifies the tokens of Agents (docs/adr/0015). What signs them is in no database.
CREATE TABLE agent_token_keys (
    id         TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'atk_*' AND length(id) = 40),
    public_key TEXT NOT NULL CHECK (length(public_key) = 64 AND public_key NOT GLOB '*[^0-9a-f]*'),
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TRIGGER agent_token_keys_immutable BEFORE UPDATE ON agent_token_keys
BEGIN
    SELECT RAISE(ABORT, 'a key does not change');
END;
