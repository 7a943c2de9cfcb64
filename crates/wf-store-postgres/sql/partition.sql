-- The fences of all turns of a transaction, and the partitions' heads with them. One that does not meet its row fails the
-- transaction: a pipeline would go on after an answer without rows. Nothing is written by a deposed owner's transaction, as
-- a take-over updates the same row.
-- name: fence
WITH met AS (
    UPDATE onceflow.partition AS p
    SET last_position = v.new_position, next_counter = v.next_counter, digest = v.digest, chain = v.chain,
        last_time = v.last_time, clock_now = v.clock_now, clock_frozen = v.clock_frozen
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::bytea[]), unnest($7::bytea[]), unnest($8::int8[]), unnest($9::int8[]), unnest($10::bool[]))
        AS v (id, epoch, old_position, new_position, next_counter, digest, chain, last_time, clock_now, clock_frozen)
    WHERE p.id = v.id AND p.epoch = v.epoch AND p.last_position = v.old_position
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0
            ELSE onceflow.fail('OF001', 'the partition is owned elsewhere') END
FROM met;

-- name: check_fence
SELECT 1 FROM onceflow.partition WHERE id = $1::int2 AND epoch = $2::int8;

-- A partition that is free, this node's own, or of a node that is no longer alive. The row is the fence's: a transaction of
-- the former owner that is still under way is waited for, and one that comes later fails.
-- name: open_partition
UPDATE onceflow.partition AS p
SET epoch = p.epoch + 1, owner = $2::bytea
WHERE p.id = $1::int2
  AND (p.owner IS NULL OR p.owner = $2
       OR NOT EXISTS (SELECT 1 FROM onceflow.node AS n
                      WHERE n.id = p.owner AND n.lease_until > onceflow.clock_ms()))
RETURNING p.id, p.epoch, p.last_position, p.next_counter, p.digest, p.chain, p.last_time, p.clock_now, p.clock_frozen;

-- name: owner_of
SELECT n.name FROM onceflow.partition AS p LEFT JOIN onceflow.node AS n ON n.id = p.owner WHERE p.id = $1::int2;

-- name: count_partitions
SELECT coalesce(min(id), 0)::int4, count(*)::int4 FROM onceflow.partition;

-- Once, when the store is made.
-- name: make_partitions
INSERT INTO onceflow.partition (id, epoch, last_position, next_counter, digest, chain, last_time)
SELECT n, 0, 0, 0, decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'), 0
FROM generate_series($1::int4, $2::int4) AS n
WHERE NOT EXISTS (SELECT 1 FROM onceflow.partition);

-- name: lowest_time
SELECT min(last_time) FROM onceflow.partition;

-- name: get_secret
SELECT value FROM onceflow.meta WHERE name = $1::text;

-- name: insert_secret
INSERT INTO onceflow.meta (name, value) VALUES ($1::text, $2::bytea) ON CONFLICT (name) DO NOTHING;

-- name: inbox
SELECT source, position, n, time, payload
FROM onceflow.partition_inbox
WHERE target = $1::int2
ORDER BY source, position, n
LIMIT $2::int8;

-- name: undelivered
SELECT DISTINCT position
FROM onceflow.partition_inbox
WHERE source = $1::int2 AND position = ANY($2::int8[]);

-- name: insert_sent
INSERT INTO onceflow.partition_inbox (target, source, position, n, time, payload)
SELECT unnest($1::int2[]), unnest($2::int2[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
       unnest($6::text[]);

-- One that is gone was dealt with by another turn: this one is void.
-- name: delete_taken
WITH met AS (
    DELETE FROM onceflow.partition_inbox AS t
    USING (SELECT unnest($1::int2[]), unnest($2::int2[]), unnest($3::int8[]), unnest($4::int8[]))
        AS v (target, source, position, n)
    WHERE t.target = v.target AND t.source = v.source AND t.position = v.position AND t.n = v.n
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0
            ELSE onceflow.fail('OF002', 'a row of the inbox is gone') END
FROM met;

-- name: notify
SELECT pg_notify($1::text, $2::text);
