-- Who an identity provider says that a person is (docs/adr/0016): exactly this subject of exactly this issuer.
CREATE TABLE federated_identities (
    issuer       TEXT NOT NULL CHECK (length(issuer) BETWEEN 1 AND 1024),
    subject      TEXT NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    principal_id TEXT NOT NULL REFERENCES accounts (principal_id) ON DELETE CASCADE,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (principal_id, issuer)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER federated_identities_immutable BEFORE UPDATE ON federated_identities
BEGIN
    SELECT RAISE(ABORT, 'an identity does not change');
END;
