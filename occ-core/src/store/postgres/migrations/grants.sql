-- What the application may do: read every table, and write through the functions alone. Applied with every migration.
REVOKE ALL ON SCHEMA occ FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA occ FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA occ FROM PUBLIC;

DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'occ_application') THEN
        BEGIN
            CREATE ROLE occ_application NOLOGIN;
        EXCEPTION
            -- Two databases of one server may be migrated at once.
            WHEN duplicate_object OR unique_violation THEN NULL;
            -- An administrator creates it, and migrates once more.
            WHEN insufficient_privilege THEN RETURN;
        END;
    END IF;
    REVOKE ALL ON ALL TABLES IN SCHEMA occ FROM occ_application;
    GRANT USAGE ON SCHEMA occ TO occ_application;
    GRANT SELECT ON ALL TABLES IN SCHEMA occ TO occ_application;
    GRANT EXECUTE ON FUNCTION occ.present(), occ.agents_of_secret(text), occ.lost(integer, integer),
        occ.claim(integer, bigint, integer), occ.set_aside(uuid, bigint), occ.set_aside_lost, occ.renew(uuid, bigint),
        occ.recover(jsonb), occ.apply(jsonb, bytea[]), occ.admit, occ.settle, occ.postpone, occ.seal(bigint, jsonb) TO occ_application;
END $$;
