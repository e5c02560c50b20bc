-- People who sign in, and their sessions (docs/adr/0014). Passwords, codes and sessions are here as hashes alone.

CREATE TABLE accounts (
    principal_id    text PRIMARY KEY REFERENCES principals (id) ON DELETE CASCADE,
    email           text NOT NULL CONSTRAINT accounts_email UNIQUE
        CHECK (length(email) BETWEEN 3 AND 254 AND email LIKE '%_@_%'),
    password_hash   text CHECK (password_hash LIKE '$argon2id$%'),
    code_hash       text CHECK (code_hash ~ '^[0-9a-f]{64}$'),
    code_expires_at bigint,
    disabled        boolean NOT NULL DEFAULT FALSE,
    version         bigint NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at      bigint NOT NULL CHECK (created_at >= 0),
    CHECK ((code_hash IS NULL) = (code_expires_at IS NULL))
);
CREATE FUNCTION refuse_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM occ.principals WHERE id = NEW.principal_id AND kind = 'human') THEN
        RAISE EXCEPTION 'only a person has an account' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER accounts_of_people BEFORE INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION refuse_account();

CREATE TABLE sessions (
    id           text PRIMARY KEY CHECK (id LIKE 'ses\_%' AND length(id) = 40),
    principal_id text NOT NULL REFERENCES accounts (principal_id) ON DELETE CASCADE,
    token_hash   text NOT NULL CHECK (token_hash ~ '^[0-9a-f]{64}$'),
    expires_at   bigint NOT NULL,
    -- Milliseconds without use after which it is over.
    idle         bigint NOT NULL CHECK (idle > 0),
    used_at      bigint NOT NULL,
    created_at   bigint NOT NULL
);
CREATE INDEX sessions_principal ON sessions (principal_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
-- It is used and it ends; whose it is and how long it lasts never changes.
CREATE TRIGGER sessions_immutable BEFORE UPDATE OF id, principal_id, token_hash, expires_at, idle, created_at ON sessions
    FOR EACH ROW EXECUTE FUNCTION refuse('a session does not change');

-- `holds` and `write` know accounts from here on, and hand everything else to what they were.
ALTER FUNCTION holds(jsonb, bigint) RENAME TO holds_of_resources;
CREATE FUNCTION holds(e jsonb, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF e->>'is' = 'account' THEN
        RETURN EXISTS (SELECT 1 FROM accounts WHERE principal_id = e->>'id' AND version = (e->>'version')::bigint);
    END IF;
    RETURN holds_of_resources(e, moment);
END $$;

ALTER FUNCTION write(jsonb, bytea[], bigint) RENAME TO write_of_resources;
CREATE FUNCTION write(w jsonb, bytes bytea[], moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
BEGIN
    IF w ? 'account' THEN
        RETURN write_account(w, moment);
    END IF;
    RETURN write_of_resources(w, bytes, moment);
END $$;

-- Writes one thing of the account that `w` names. False when it found nothing to change.
CREATE FUNCTION write_account(w jsonb, moment bigint) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    whose CONSTANT text := w->>'account';
BEGIN
    CASE w->>'op'
    WHEN 'account' THEN
        INSERT INTO accounts (principal_id, email, password_hash, code_hash, code_expires_at, created_at)
        VALUES (whose, w->>'email', w->>'password_hash', w->>'code_hash', moment + (w->>'lifetime')::bigint, moment);
    WHEN 'code' THEN
        UPDATE accounts SET code_hash = w->>'code_hash', code_expires_at = moment + (w->>'lifetime')::bigint,
            version = version + 1
        WHERE principal_id = whose;
        RETURN FOUND;
    WHEN 'password' THEN
        UPDATE accounts SET password_hash = w->>'password_hash', code_hash = NULL, code_expires_at = NULL,
            version = version + 1
        WHERE principal_id = whose;
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
        DELETE FROM sessions WHERE principal_id = whose;
    WHEN 'disabled' THEN
        UPDATE accounts SET disabled = (w->>'disabled')::boolean, version = version + 1 WHERE principal_id = whose;
        IF NOT FOUND THEN
            RETURN FALSE;
        END IF;
        IF (w->>'disabled')::boolean THEN
            DELETE FROM sessions WHERE principal_id = whose;
        END IF;
    WHEN 'session' THEN
        DELETE FROM sessions WHERE expires_at <= moment OR used_at + idle <= moment;
        INSERT INTO sessions (id, principal_id, token_hash, expires_at, idle, used_at, created_at)
        VALUES (w->>'id', whose, w->>'token_hash', moment + (w->>'lifetime')::bigint, (w->>'idle')::bigint, moment, moment);
    WHEN 'touch' THEN
        -- One that is over stays over.
        UPDATE sessions SET used_at = moment
        WHERE id = w->>'id' AND expires_at > moment AND used_at + idle > moment;
    WHEN 'end' THEN
        DELETE FROM sessions WHERE id = w->>'id';
    WHEN 'end_all' THEN
        DELETE FROM sessions WHERE principal_id = whose;
    END CASE;
    RETURN TRUE;
END $$;
