-- Retention (docs/adr/0011): what nothing reads any more may be removed, by these rules and no others.

-- Work that is over and that may be removed while its Agent or Namespace exists. How a deployment ended is not among it: its status is
-- read for as long as the version exists.
CREATE INDEX work_over ON work (completed_at)
    WHERE completed_at IS NOT NULL AND kind IN ('maintenance', 'agent_stopped', 'agent_deleted', 'namespace_deleted');

DROP TRIGGER work_kept;
CREATE TRIGGER work_kept BEFORE DELETE ON work
WHEN NOT (OLD.state IN ('succeeded', 'failed') AND OLD.kind IN ('maintenance', 'agent_stopped')) AND (
    EXISTS (SELECT 1 FROM agents WHERE id = OLD.agent_id AND status <> 'deleting')
    OR (OLD.agent_id IS NULL AND EXISTS (SELECT 1 FROM namespaces WHERE id = OLD.namespace_id AND status <> 'deleted'))
)
BEGIN
    SELECT RAISE(ABORT, 'work is removed only with its Agent or Namespace, or when it is over and nothing reads it');
END;

-- The last seal whose record was removed: the chain is followed from here on. Only forward, and never up to its head.
CREATE TABLE audit_anchor (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    position  INTEGER NOT NULL CHECK (position >= 1),
    hash      TEXT NOT NULL CHECK (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*')
) STRICT;
CREATE TRIGGER audit_anchor_set BEFORE INSERT ON audit_anchor
WHEN NOT EXISTS (SELECT 1 FROM audit_seals WHERE position = NEW.position AND hash = NEW.hash)
    OR NOT EXISTS (SELECT 1 FROM audit_seals WHERE position > NEW.position)
    OR EXISTS (SELECT 1 FROM audit_anchor)
BEGIN
    SELECT RAISE(ABORT, 'the anchor of the audit is a seal of its chain, and moves forward');
END;
CREATE TRIGGER audit_anchor_forward BEFORE UPDATE ON audit_anchor
WHEN NOT EXISTS (SELECT 1 FROM audit_seals WHERE position = NEW.position AND hash = NEW.hash)
    OR NOT EXISTS (SELECT 1 FROM audit_seals WHERE position > NEW.position)
    OR OLD.position >= NEW.position
BEGIN
    SELECT RAISE(ABORT, 'the anchor of the audit is a seal of its chain, and moves forward');
END;
CREATE TRIGGER audit_anchor_kept BEFORE DELETE ON audit_anchor
BEGIN
    SELECT RAISE(ABORT, 'the anchor of the audit stays');
END;

DROP TRIGGER audit_kept;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit
WHEN NOT EXISTS (
    SELECT 1 FROM audit_seals s JOIN audit_anchor a ON s.position <= a.position WHERE s.sequence = OLD.sequence
)
BEGIN
    SELECT RAISE(ABORT, 'audit is append-only');
END;
DROP TRIGGER audit_seals_kept;
CREATE TRIGGER audit_seals_kept BEFORE DELETE ON audit_seals
WHEN NOT EXISTS (SELECT 1 FROM audit_anchor WHERE position >= OLD.position)
BEGIN
    SELECT RAISE(ABORT, 'a seal never changes');
END;
