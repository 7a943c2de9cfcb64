-- One request followed through all layers: every statement finds its rows by an index that is there for turns or sweeps.

-- name: filed_at
SELECT r.fingerprint, r.mac_key_id, r.created_at, r.expires_at, r.state, r.status, a.headers, a.body, r.subject, r.owner,
       r.lease_until, r.since, r.tenant, r.key, r.key_hash, r.route
FROM onceflow.api_idempotency AS r
LEFT JOIN onceflow.idempotency_answer AS a ON a.expires_at = r.expires_at AND a.id = r.answer_id
WHERE r.expires_at = $1::int8 AND r.tenant = $2::text AND r.created_at = $3::int8
ORDER BY r.key
LIMIT $4::int8;

-- name: logged_id
SELECT partition, position, id, time, verb, payload
FROM onceflow.command_log
WHERE id = $1::bytea AND tenant = $2::text;

-- name: logged_position
SELECT partition, position, id, time, verb, payload
FROM onceflow.command_log
WHERE partition = $1::int2 AND position = $2::int8 AND tenant = $3::text;

-- Ids begin with 6 bytes of time: $1 is that time alone, $2 the next one.
-- name: logged_at
SELECT partition, position, id, time, verb, payload
FROM onceflow.command_log
WHERE id >= $1::bytea AND id < $2::bytea AND tenant = $3::text AND verb = $4::text
ORDER BY partition, position
LIMIT $5::int8;

-- As the scans of lists.sql: those that are wanted, and the last one of a full slice.
-- name: scan_of_instance
SELECT position, time, is_wanted, nth
FROM (
    SELECT position, time, row_number() OVER (ORDER BY position) AS nth,
           tenant = $1::text AND strpos(events, $2::text) > 0 AS is_wanted
    FROM onceflow.audit_log
    WHERE partition = $3::int2 AND position >= $4::int8 AND position <= $5::int8
    ORDER BY position
    LIMIT $6::int8
) AS slice
WHERE is_wanted OR nth = $6
ORDER BY nth;

-- name: outbox_of
SELECT t.partition, t.position, t.n, t.sink, t.tenant, t.order_key, t.topic, t.event_id, t.created_at, t.state, t.attempts,
       t.last_error, t.retry_at, t.shipped_at, t.envelope
FROM unnest($1::int8[]) AS k (position)
JOIN onceflow.outbox AS t ON t.partition = $2::int2 AND t.position = k.position
WHERE t.tenant = $3::text
ORDER BY t.position, t.n, t.sink;

-- There is no index on the subject: from minute to minute, of which 30 days have few, and there to each subject.
-- name: repeats_of
WITH RECURSIVE minutes (minute) AS (
    SELECT (SELECT e.minute FROM onceflow.idempotency_event AS e WHERE e.minute >= $1::int8 ORDER BY e.minute LIMIT 1)
    UNION ALL
    SELECT (SELECT e.minute FROM onceflow.idempotency_event AS e WHERE e.minute > m.minute ORDER BY e.minute LIMIT 1)
    FROM minutes AS m
    WHERE m.minute IS NOT NULL
)
SELECT r.tenant, r.key_hash, r.kind, r.route, r.count, r.first, r.last, r.minute
FROM minutes AS m
CROSS JOIN unnest($2::bytea[]) AS s (key_hash)
CROSS JOIN LATERAL (
    SELECT e.* FROM onceflow.idempotency_event AS e
    WHERE e.minute = m.minute AND e.tenant = $3::text AND e.key_hash = s.key_hash
    ORDER BY e.kind, e.route
    LIMIT $4::int8
) AS r
ORDER BY r.minute, r.key_hash, r.kind, r.route
LIMIT $4;
