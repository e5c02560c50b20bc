-- Lists are read in parts, by creation.
CREATE INDEX namespaces_listed ON namespaces (created_at, id) WHERE status <> 'deleted';
CREATE INDEX secrets_listed ON secrets (namespace_id, created_at, id);
CREATE INDEX owned_listed ON owned (namespace_id, kind, created_at, id);
CREATE INDEX accounts_listed ON accounts (created_at, principal_id);
