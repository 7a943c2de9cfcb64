-- The least that a node needs: rights on rows, none on tables. Run it once after `wf migrate`, as somebody who may make roles
-- and owns the schema or is a superuser, and again as the owner after each upgrade of the schema; with another schema than
-- `onceflow`, put its name in the place of that one. Then let nodes log in as a role of their own that is a member of
-- `onceflow_app`:
--
--     CREATE ROLE onceflow_node LOGIN PASSWORD '...' IN ROLE onceflow_app;
--
-- A node then reads and writes, but cannot change or take away a line of the logs, switch their triggers off, or change the
-- schema: time partitions are made for it, and those of answers dropped, by functions that run with the owner's rights.
-- Weeks of the logs are dropped by `wf log archive` and `wf audit archive`, which want the owner's own.

DO $$
BEGIN
    -- Asked for first: who may not make roles may still run the rest again.
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'onceflow_app') THEN
        CREATE ROLE onceflow_app NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

REVOKE ALL ON SCHEMA onceflow FROM PUBLIC;
GRANT USAGE ON SCHEMA onceflow TO onceflow_app;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA onceflow TO onceflow_app;
REVOKE INSERT, UPDATE, DELETE ON onceflow.migration FROM onceflow_app;
REVOKE UPDATE, DELETE ON onceflow.meta FROM onceflow_app;
REVOKE DELETE ON onceflow.partition, onceflow.database FROM onceflow_app;
REVOKE UPDATE, DELETE ON onceflow.tenant FROM onceflow_app;
REVOKE UPDATE, DELETE ON onceflow.command_log, onceflow.audit_log FROM onceflow_app;
REVOKE INSERT, UPDATE, DELETE ON onceflow.archived FROM onceflow_app;
-- Time partitions are reached through their parent alone.
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN
        SELECT inhrelid FROM pg_inherits
        WHERE inhparent IN ('onceflow.command_log'::regclass, 'onceflow.audit_log'::regclass)
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM onceflow_app', part);
    END LOOP;
END
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA onceflow FROM PUBLIC;
GRANT EXECUTE ON FUNCTION onceflow.fail(text, text), onceflow.clock_ms(), onceflow.make_time_partitions(bigint),
                          onceflow.drop_answers(bigint) TO onceflow_app;
