-- The logs get an end at the back: whole weeks leave them, once they are kept elsewhere. Only the schema's owner may do that.

-- What has left: for each partition the last position, of an audit with the chain after it. What still stands at or before it
-- is left out by ledgers: a command stands in the week of its id, which is not quite the order of positions.
CREATE TABLE onceflow.archived (
    -- 'command_log' or 'audit_log'
    log       text COLLATE "C" NOT NULL,
    partition smallint NOT NULL,
    position  bigint NOT NULL,
    chain     bytea NOT NULL,
    PRIMARY KEY (log, partition)
);

-- The weeks of a log that have ended long enough ago: nobody repeats a command of them any more whose fate is unknown.
CREATE FUNCTION onceflow.archivable_weeks(log text, until_ms bigint) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent regclass := format('onceflow.%I', log);
BEGIN
    -- Said before anything is written to files, which takes its time.
    IF NOT (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = parent) THEN
        RAISE EXCEPTION 'must be owner of %', parent USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    SELECT w.week
    FROM pg_inherits AS i
         JOIN pg_class AS c ON c.oid = i.inhrelid
         CROSS JOIN LATERAL (SELECT substring(c.relname from '_w([0-9]+)$')::bigint AS week) AS w
    WHERE i.inhparent = parent
      AND (w.week + 1) * 604800000 <= least(until_ms, onceflow.clock_ms() - 86400000)
    ORDER BY 1;
END
$$;

-- Drops the weeks before this one, and notes in the same transaction how far what they held is kept elsewhere. Rows behind
-- that stay: they go into the default partition. Whoever writes to the log waits meanwhile, so it is called week by week. The
-- lock is waited for a little longer than an autovacuum that holds it is let alone.
CREATE FUNCTION onceflow.drop_weeks(log text, until_week bigint, partitions smallint[], positions bigint[], chains bytea[])
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1200ms' SET enable_seqscan = off AS $$
DECLARE
    dropped bigint := 0;
    week    bigint;
    part    text;
BEGIN
    EXECUTE format('LOCK TABLE ONLY onceflow.%I IN ACCESS EXCLUSIVE MODE', log);
    INSERT INTO onceflow.archived AS a (log, partition, position, chain)
    SELECT log, unnest(partitions), unnest(positions), unnest(chains)
    ON CONFLICT ON CONSTRAINT archived_pkey DO UPDATE SET position = excluded.position, chain = excluded.chain
    WHERE a.position < excluded.position;
    FOR week IN SELECT onceflow.archivable_weeks(log, until_week * 604800000) LOOP
        part := log || '_w' || week;
        EXECUTE format('ALTER TABLE onceflow.%I DETACH PARTITION onceflow.%I', log, part);
        EXECUTE format('INSERT INTO onceflow.%I SELECT w.* FROM onceflow.partition AS p CROSS JOIN LATERAL ('
                       'SELECT * FROM onceflow.%I AS w WHERE w.partition = p.id AND w.position > coalesce(('
                       'SELECT a.position FROM onceflow.archived AS a WHERE a.log = $1 AND a.partition = p.id), 0)) AS w',
                       log, part) USING log;
        EXECUTE format('DROP TABLE onceflow.%I', part);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;
