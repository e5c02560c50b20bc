-- Retention (docs/adr/0011): what nothing reads any more may be removed by the owner of the schema, by these rules and no others.

-- Work that is over and that may be removed while its Agent or Namespace exists. How a deployment ended is not among it: its status is
-- read for as long as the version exists.
CREATE INDEX work_over ON work (completed_at)
    WHERE completed_at IS NOT NULL AND kind IN ('maintenance', 'agent_stopped', 'agent_deleted', 'namespace_deleted');

CREATE OR REPLACE FUNCTION refuse_removal_of_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state IN ('succeeded', 'failed') AND OLD.kind IN ('maintenance', 'agent_stopped') THEN
        RETURN OLD;
    END IF;
    IF EXISTS (SELECT 1 FROM occ.agents WHERE id = OLD.agent_id AND status <> 'deleting')
        OR (OLD.agent_id IS NULL
            AND EXISTS (SELECT 1 FROM occ.namespaces WHERE id = OLD.namespace_id AND status <> 'deleted'))
    THEN
        RAISE EXCEPTION 'work is removed only with its Agent or Namespace, or when it is over and nothing reads it'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;

-- The last seal whose record was removed: the chain is followed from here on. Only forward, and never up to its head.
CREATE TABLE audit_anchor (
    singleton integer PRIMARY KEY DEFAULT 1 CHECK (singleton = 1),
    position  bigint NOT NULL CHECK (position >= 1),
    hash      text NOT NULL CHECK (hash ~ '^[0-9a-f]{64}$')
);
CREATE FUNCTION refuse_anchor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM occ.audit_seals WHERE position = NEW.position AND hash = NEW.hash)
        OR NOT EXISTS (SELECT 1 FROM occ.audit_seals WHERE position > NEW.position)
        OR EXISTS (SELECT 1 FROM occ.audit_anchor WHERE position >= NEW.position)
    THEN
        RAISE EXCEPTION 'the anchor of the audit is a seal of its chain, and moves forward'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audit_anchor_forward BEFORE INSERT OR UPDATE ON audit_anchor
    FOR EACH ROW EXECUTE FUNCTION refuse_anchor();
CREATE TRIGGER audit_anchor_kept BEFORE DELETE ON audit_anchor
    FOR EACH ROW EXECUTE FUNCTION refuse('the anchor of the audit stays');
CREATE TRIGGER audit_anchor_not_truncated BEFORE TRUNCATE ON audit_anchor
    FOR EACH STATEMENT EXECUTE FUNCTION refuse('the anchor of the audit stays');

CREATE FUNCTION refuse_removal_of_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM occ.audit_seals s JOIN occ.audit_anchor a ON s.position <= a.position WHERE s.sequence = OLD.sequence
    ) THEN
        RAISE EXCEPTION 'audit is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
DROP TRIGGER audit_append_only ON audit;
CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit
    FOR EACH ROW EXECUTE FUNCTION refuse('audit is append-only');
CREATE TRIGGER audit_pruned BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_removal_of_audit();

CREATE FUNCTION refuse_removal_of_seal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM occ.audit_anchor WHERE position >= OLD.position) THEN
        RAISE EXCEPTION 'a seal never changes' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN OLD;
END $$;
DROP TRIGGER audit_seals_immutable ON audit_seals;
CREATE TRIGGER audit_seals_immutable BEFORE UPDATE ON audit_seals
    FOR EACH ROW EXECUTE FUNCTION refuse('a seal never changes');
CREATE TRIGGER audit_seals_pruned BEFORE DELETE ON audit_seals FOR EACH ROW EXECUTE FUNCTION refuse_removal_of_seal();
-- A record goes before its seal, which says that it may.
ALTER TABLE audit_seals ALTER CONSTRAINT audit_seals_sequence_fkey DEFERRABLE INITIALLY IMMEDIATE;

-- Where a pruning of records that are older than `age` would leave the anchor, at most `most` seals further; null when nothing goes.
CREATE FUNCTION prunable_audit(age bigint, most bigint) RETURNS bigint
    LANGUAGE plpgsql AS $$
DECLARE
    cutoff CONSTANT bigint := present() - age;
    anchor CONSTANT bigint := coalesce((SELECT position FROM audit_anchor), 0);
    head CONSTANT bigint := (SELECT max(position) FROM audit_seals);
    young CONSTANT bigint := (
        SELECT s.position FROM audit_seals s JOIN audit a USING (sequence)
        WHERE s.position > anchor AND s.position <= anchor + most AND a.occurred_at > cutoff ORDER BY s.position LIMIT 1
    );
    last CONSTANT bigint := least(head - 1, young - 1, anchor + most);
BEGIN
    RETURN CASE WHEN head IS NOT NULL AND last > anchor THEN last END;
END $$;

-- Moves the anchor by at most `most` seals, and removes what is before it. Returns how many records. The application may not.
CREATE FUNCTION prune_audit(age bigint, most bigint) RETURNS integer
    LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
    removed integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('audit seals', 0));
    last := prunable_audit(age, most);
    IF last IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE audit_anchor a SET position = s.position, hash = s.hash FROM audit_seals s WHERE s.position = last;
    IF NOT FOUND THEN
        INSERT INTO audit_anchor (position, hash) SELECT position, hash FROM audit_seals WHERE position = last;
    END IF;
    SET CONSTRAINTS audit_seals_sequence_fkey DEFERRED;
    DELETE FROM audit WHERE sequence IN (SELECT sequence FROM audit_seals WHERE position <= last);
    GET DIAGNOSTICS removed = ROW_COUNT;
    DELETE FROM audit_seals WHERE position <= last;
    RETURN removed;
END $$;
