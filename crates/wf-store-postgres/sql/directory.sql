-- Several databases that share the tenants. What is here is read when a node starts and when a tenant is met for the first
-- time; nodes keep what they found.

-- Between nodes that start together.
-- name: lock_directory
SELECT pg_advisory_xact_lock(1868785255, 0);

-- name: list_databases
SELECT id, address, first_partition, partitions FROM onceflow.database ORDER BY first_partition;

-- Partitions that are there already ($3), else the next free numbers. Nothing where another database has some of them, where
-- there are none left, or where it would come to others while a node runs that does not know it.
-- name: enter_database
INSERT INTO onceflow.database (id, address, first_partition, partitions)
SELECT $1::bytea, $2::text, wanted.first, $4::int4
FROM (
    SELECT coalesce($3::int4, (SELECT coalesce(max(first_partition + partitions), 1) FROM onceflow.database)) AS first
) AS wanted
WHERE EXISTS (SELECT 1 FROM onceflow.database WHERE id = $1)
   OR (wanted.first + $4 <= 4096
       AND NOT EXISTS (
           SELECT 1 FROM onceflow.database AS other
           WHERE other.first_partition < wanted.first + $4 AND wanted.first < other.first_partition + other.partitions
       )
       AND (NOT EXISTS (SELECT 1 FROM onceflow.database)
            OR NOT EXISTS (SELECT 1 FROM onceflow.node WHERE lease_until > onceflow.clock_ms())))
ON CONFLICT (id) DO UPDATE SET address = excluded.address;

-- A node that knows one database alone ($1: it knows all) must not serve it once there are several.
-- name: check_alone
SELECT CASE WHEN $1::bool OR count(*) < 2 THEN 0
            ELSE onceflow.fail('OF004', 'tenants are shared with other databases: this node must be told of all') END
FROM onceflow.database;

-- name: home_of_tenant
SELECT database FROM onceflow.tenant WHERE name = $1::text;

-- Whether this database has worked for a tenant.
-- LIMIT: partition by partition along the index, where EXISTS alone would hash a whole table.
-- name: knows_tenant
SELECT EXISTS (SELECT 1 FROM onceflow.api_idempotency WHERE tenant = $1::text)
    OR EXISTS (SELECT 1 FROM onceflow.deduplication WHERE tenant = $1)
    OR EXISTS (SELECT 1 FROM onceflow.partition AS p CROSS JOIN LATERAL (
                   SELECT 1 FROM onceflow.definition AS d WHERE d.partition = p.id AND d.tenant = $1 LIMIT 1) AS found)
    OR EXISTS (SELECT 1 FROM onceflow.partition AS p CROSS JOIN LATERAL (
                   SELECT 1 FROM onceflow.message AS m WHERE m.partition = p.id AND m.tenant = $1 LIMIT 1) AS found);

-- In this database, or where there are the fewest.
-- name: settle_tenant
INSERT INTO onceflow.tenant (name, database)
SELECT $1::text, coalesce($2::bytea, (
    SELECT d.id FROM onceflow.database AS d
    ORDER BY (SELECT count(*) FROM onceflow.tenant AS t WHERE t.database = d.id), d.first_partition
    LIMIT 1
))
ON CONFLICT (name) DO NOTHING;

-- name: list_tenants
SELECT database, name FROM onceflow.tenant ORDER BY name;
