-- The fence, and the partition's head with it: no row matches when somebody else took the partition.
-- name: fence
UPDATE partition
SET last_position = ?4, next_counter = ?5, digest = ?6, chain = ?7, last_time = ?8, clock_now = ?9, clock_frozen = ?10
WHERE id = ?1 AND epoch = ?2 AND last_position = ?3;

-- The first opening makes the row, each later one raises the epoch: an earlier owner's fence fails from here on.
-- name: open_partition
INSERT INTO partition (id, epoch, last_position, next_counter, digest, chain, last_time)
VALUES (?1, 1, 0, 0, zeroblob(16), zeroblob(32), 0)
ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1
RETURNING epoch, last_position, next_counter, digest, chain, last_time, clock_now, clock_frozen;

-- A store has one partition: positions are the keys of its logs.
-- name: other_partition
SELECT id FROM partition WHERE id <> ?1;

-- name: get_secret
SELECT value FROM meta WHERE name = ?1;

-- name: insert_secret
INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING;
