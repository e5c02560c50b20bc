-- Who an identity provider says that a person is (docs/adr/0016): exactly this subject of exactly this issuer.
CREATE TABLE federated_identities (
    issuer       text NOT NULL CHECK (length(issuer) BETWEEN 1 AND 1024),
    subject      text NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    principal_id text NOT NULL REFERENCES accounts (principal_id) ON DELETE CASCADE,
    created_at   bigint NOT NULL,
    CONSTRAINT federated_identities_subject PRIMARY KEY (issuer, subject),
    CONSTRAINT federated_identities_principal UNIQUE (principal_id, issuer)
);
CREATE TRIGGER federated_identities_immutable BEFORE UPDATE ON federated_identities
    FOR EACH ROW EXECUTE FUNCTION refuse('an identity does not change');

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
    END IF;
    RETURN write_of_resources(w, bytes, moment);
END $$;
