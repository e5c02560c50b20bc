-- People who sign in, and their sessions (docs/adr/0014). Passwords, codes and sessions are here as hashes alone.

CREATE TABLE accounts (
    principal_id    TEXT NOT NULL PRIMARY KEY REFERENCES principals (id) ON DELETE CASCADE,
    email           TEXT NOT NULL UNIQUE CHECK (length(email) BETWEEN 3 AND 254 AND email LIKE '%_@_%'),
    password_hash   TEXT CHECK (password_hash GLOB '$argon2id$*'),
    code_hash       TEXT CHECK (length(code_hash) = 64 AND code_hash NOT GLOB '*[^0-9a-f]*'),
    code_expires_at INTEGER,
    disabled        INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    version         INTEGER NOT NULL DEFAULT 1 CHECK (version >= 1),
    created_at      INTEGER NOT NULL CHECK (created_at >= 0),
    CHECK ((code_hash IS NULL) = (code_expires_at IS NULL))
) STRICT;
CREATE TRIGGER accounts_of_people BEFORE INSERT ON accounts
WHEN NOT EXISTS (SELECT 1 FROM principals WHERE id = NEW.principal_id AND kind = 'human')
BEGIN
    SELECT RAISE(ABORT, 'only a person has an account');
END;

CREATE TABLE sessions (
    id           TEXT NOT NULL PRIMARY KEY CHECK (id GLOB 'ses_*' AND length(id) = 40),
    principal_id TEXT NOT NULL REFERENCES accounts (principal_id) ON DELETE CASCADE,
    token_hash   TEXT NOT NULL CHECK (length(token_hash) = 64 AND token_hash NOT GLOB '*[^0-9a-f]*'),
    expires_at   INTEGER NOT NULL,
    -- Milliseconds without use after which it is over.
    idle         INTEGER NOT NULL CHECK (idle > 0),
    used_at      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_principal ON sessions (principal_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
-- It is used and it ends; whose it is and how long it lasts never changes.
CREATE TRIGGER sessions_immutable BEFORE UPDATE OF id, principal_id, token_hash, expires_at, idle, created_at ON sessions
BEGIN
    SELECT RAISE(ABORT, 'a session does not change');
END;
