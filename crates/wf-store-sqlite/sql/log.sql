-- A known id inserts nothing; the turn counts and is rolled back.
-- name: insert_command
INSERT INTO command_log (position, partition, id, time, tenant, verb, digest, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING;

-- name: has_command
SELECT 1 FROM command_log WHERE id = ?1;

-- name: insert_audit
INSERT INTO audit_log (position, partition, time, tenant, actor, count, chain, events)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING;

-- All tenants' rows are passed, so that the reader can stop after a bounded number of them.
-- name: scan_audit
SELECT position, tenant = ?1
FROM audit_log
WHERE position > ?2 AND position <= ?3
ORDER BY position
LIMIT ?4;

-- name: get_audit
SELECT partition, position, time, actor, events FROM audit_log WHERE position = ?1;
