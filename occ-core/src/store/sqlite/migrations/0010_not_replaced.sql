-- A row that INSERT OR REPLACE puts in the place of another removes that one without asking the triggers of a deletion. So what never
-- changes is not replaced either.
CREATE TRIGGER revisions_not_replaced BEFORE INSERT ON revisions WHEN EXISTS (SELECT 1 FROM revisions WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'a version never changes');
END;
CREATE TRIGGER audit_not_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE sequence = NEW.sequence) OR EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'audit is append-only');
END;
CREATE TRIGGER audit_seals_not_replaced BEFORE INSERT ON audit_seals
WHEN EXISTS (SELECT 1 FROM audit_seals WHERE sequence = NEW.sequence)
BEGIN
    SELECT RAISE(ABORT, 'a seal never changes');
END;
CREATE TRIGGER agents_not_replaced BEFORE INSERT ON agents WHEN EXISTS (SELECT 1 FROM agents WHERE id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'the identity of an Agent never changes');
END;
