-- The schema as statements that make it again, in an order that does not depend on how it came about.
WITH tables AS (
    SELECT c.oid, c.relname, c.relispartition, c.relkind, c.reloptions
    FROM pg_class AS c
    WHERE c.relnamespace = 'onceflow'::regnamespace AND c.relkind IN ('r', 'p')
), parts AS (
    SELECT 1 AS step, p.proname::text AS name, rtrim(pg_get_functiondef(p.oid), E'\n') AS text
    FROM pg_proc AS p
    WHERE p.pronamespace = 'onceflow'::regnamespace
    UNION ALL
    SELECT 2, t.relname,
           format(E'CREATE TABLE onceflow.%I (\n%s\n)%s%s', t.relname,
                  (SELECT string_agg(format('    %I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                                            CASE WHEN l.collname = 'C' THEN ' COLLATE "C"' ELSE '' END,
                                            CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END), E',\n' ORDER BY a.attnum)
                   FROM pg_attribute AS a LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
                   WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped),
                  coalesce(' PARTITION BY ' || pg_get_partkeydef(t.oid), ''),
                  coalesce(' WITH (' || array_to_string(t.reloptions, ', ') || ')', ''))
    FROM tables AS t
    WHERE NOT t.relispartition
    UNION ALL
    SELECT 3, t.relname,
           format('CREATE TABLE onceflow.%I PARTITION OF onceflow.%I %s', t.relname, p.relname,
                  (SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_class AS c WHERE c.oid = t.oid))
    FROM tables AS t
    JOIN pg_inherits AS i ON i.inhrelid = t.oid
    JOIN tables AS p ON p.oid = i.inhparent
    UNION ALL
    SELECT 4, t.relname || ' ' || c.conname,
           format('ALTER TABLE onceflow.%I ADD CONSTRAINT %I %s', t.relname, c.conname, pg_get_constraintdef(c.oid))
    FROM pg_constraint AS c JOIN tables AS t ON t.oid = c.conrelid
    WHERE c.contype IN ('p', 'u', 'f', 'c') AND NOT t.relispartition
    UNION ALL
    SELECT 5, x.relname, pg_get_indexdef(x.oid)
    FROM pg_index AS i
    JOIN pg_class AS x ON x.oid = i.indexrelid
    JOIN tables AS t ON t.oid = i.indrelid
    WHERE NOT x.relispartition AND NOT EXISTS (SELECT 1 FROM pg_constraint AS c WHERE c.conindid = x.oid)
    UNION ALL
    SELECT 6, t.relname || ' ' || g.tgname, pg_get_triggerdef(g.oid)
    FROM pg_trigger AS g JOIN tables AS t ON t.oid = g.tgrelid
    WHERE NOT g.tgisinternal AND g.tgparentid = 0
    UNION ALL
    SELECT 7, c.relname, format(E'CREATE VIEW onceflow.%I AS\n%s', c.relname, rtrim(pg_get_viewdef(c.oid, true), ';'))
    FROM pg_class AS c
    WHERE c.relnamespace = 'onceflow'::regnamespace AND c.relkind = 'v'
)
SELECT text FROM parts ORDER BY step, name COLLATE "C", text COLLATE "C"
