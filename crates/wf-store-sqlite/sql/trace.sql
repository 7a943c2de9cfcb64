-- One request followed through all layers: every statement finds its rows by an index that is there for turns or sweeps.

-- name: get_filed
SELECT fingerprint, mac_key_id, created_at, expires_at, state, status, headers, body, subject, owner, lease_until, since,
       key, key_hash, route
FROM idempotency_record
WHERE id = ?1;

-- The slot is the time of expiry: see idempotency.sql.
-- name: filed_at
SELECT fingerprint, mac_key_id, created_at, expires_at, state, status, headers, body, subject, owner, lease_until, since,
       key, key_hash, route
FROM idempotency_record
WHERE slot >= ?1 AND slot < ?2 AND tenant = ?3 AND created_at = ?4
LIMIT ?5;

-- name: logged_id
SELECT partition, position, id, time, verb, payload FROM command_log WHERE id = ?1 AND tenant = ?2;

-- name: logged_position
SELECT partition, position, id, time, verb, payload FROM command_log WHERE position = ?1 AND tenant = ?2;

-- Ids begin with 6 bytes time: ?1 is that time alone, ?2 the next one.
-- name: logged_at
SELECT partition, position, id, time, verb, payload
FROM command_log
WHERE id >= ?1 AND id < ?2 AND tenant = ?3 AND verb = ?4
LIMIT ?5;

-- All rows are passed, so that the reader can stop after a bounded number of them.
-- name: scan_of_instance
SELECT position, tenant = ?1 AND instr(events, ?2) > 0
FROM audit_log
WHERE position >= ?3 AND position <= ?4
ORDER BY position
LIMIT ?5;

-- name: outbox_of
SELECT position, n, sink, tenant, order_key, topic, event_id, created_at, state, attempts, last_error, retry_at, shipped_at,
       envelope
FROM outbox
WHERE position = ?1 AND tenant = ?2
ORDER BY n, sink;

-- There is no index on the subject: the reader goes from minute to minute, of which 30 days have few.
-- name: next_minute
SELECT minute FROM idempotency_event WHERE minute >= ?1 ORDER BY minute LIMIT 1;

-- name: repeats_of
SELECT tenant, key_hash, kind, route, count, first, last
FROM idempotency_event
WHERE minute = ?1 AND tenant = ?2 AND key_hash = ?3
ORDER BY kind, route;
