-- The database's clock alone judges leases: what the nodes' clocks say does not matter.

-- An earlier run of the same name is gone, or fenced by the epoch: its partitions are free.
-- name: strike_off_name
WITH gone AS (DELETE FROM onceflow.node WHERE name = $1::text AND id <> $2::bytea RETURNING id)
UPDATE onceflow.partition AS p SET owner = NULL FROM gone WHERE p.owner = gone.id;

-- One that is renewing its lease just now, after a time in which none could, is not dead; two of them would wait for each other.
-- name: strike_off_dead
WITH dead AS MATERIALIZED (
    SELECT id FROM onceflow.node
    WHERE lease_until <= onceflow.clock_ms() AND id <> $1::bytea
    FOR UPDATE SKIP LOCKED
), gone AS (DELETE FROM onceflow.node AS n USING dead WHERE n.id = dead.id RETURNING n.id)
UPDATE onceflow.partition AS p SET owner = NULL FROM gone WHERE p.owner = gone.id;

-- name: enter
INSERT INTO onceflow.node AS n (id, name, address, version, joined_at, lease_until)
VALUES ($1::bytea, $2::text, $3::text, $4::text, onceflow.clock_ms(), onceflow.clock_ms() + $5::int8)
ON CONFLICT (id) DO UPDATE SET address = excluded.address, version = excluded.version, lease_until = excluded.lease_until;

-- name: list_nodes
SELECT id, name, address, version, joined_at, lease_until - onceflow.clock_ms()
FROM onceflow.node
WHERE lease_until > onceflow.clock_ms()
ORDER BY name;

-- An owner that is not in the list is none.
-- name: list_partitions
SELECT p.id, p.epoch, p.last_position,
       (SELECT n.id FROM onceflow.node AS n WHERE n.id = p.owner AND n.lease_until > onceflow.clock_ms())
FROM onceflow.partition AS p
ORDER BY p.id;

-- name: database_clock
SELECT onceflow.clock_ms();

-- name: release_partition
UPDATE onceflow.partition SET owner = NULL WHERE id = $1::int2 AND owner = $2::bytea;

-- name: release_all
UPDATE onceflow.partition SET owner = NULL WHERE owner = $1::bytea;

-- name: leave
DELETE FROM onceflow.node WHERE id = $1::bytea;
