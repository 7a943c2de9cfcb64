-- id = hash of tenant and key; slot = expires_at << 20 | tie breaker.

-- A record gives way when it is expired, or when its own request finishes it: a completed one never changes.
-- name: put_record
INSERT INTO idempotency_record (slot, id, tenant, key, key_hash, route, fingerprint, mac_key_id, created_at,
                                expires_at, state, status, headers, body, subject, owner, lease_until, since)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
ON CONFLICT (id) DO UPDATE
SET slot = excluded.slot, key_hash = excluded.key_hash, route = excluded.route, fingerprint = excluded.fingerprint,
    mac_key_id = excluded.mac_key_id, created_at = excluded.created_at, expires_at = excluded.expires_at,
    state = excluded.state, status = excluded.status, headers = excluded.headers, body = excluded.body,
    subject = excluded.subject, owner = excluded.owner, lease_until = excluded.lease_until, since = excluded.since
WHERE idempotency_record.expires_at <= excluded.created_at
   OR (idempotency_record.state IN ('IN_PROGRESS', 'STARTED')
       AND idempotency_record.fingerprint = excluded.fingerprint
       AND idempotency_record.created_at = excluded.created_at);

-- name: get_record
SELECT fingerprint, mac_key_id, created_at, expires_at, state, status, headers, body, subject, owner, lease_until, since
FROM idempotency_record
WHERE id = ?1;

-- All rows are passed, so that the reader can stop after a bounded number of them.
-- name: scan_records
SELECT slot, ?2 IS NULL OR tenant = ?2, tenant, key_hash, route, created_at, expires_at, state
FROM idempotency_record
WHERE slot > ?1
ORDER BY slot
LIMIT ?3;

-- name: count_records
SELECT count(*) FROM idempotency_record;

-- name: sweep_records
DELETE FROM idempotency_record WHERE slot IN (SELECT slot FROM idempotency_record WHERE slot < ?1 ORDER BY slot LIMIT ?2);

-- name: add_suppressed
INSERT INTO idempotency_event (minute, tenant, key_hash, kind, route, count, first, last)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO UPDATE
SET count = count + excluded.count, first = min(first, excluded.first), last = max(last, excluded.last);

-- name: scan_events
SELECT tenant, key_hash, kind, route, count, first, last
FROM idempotency_event
WHERE minute >= ?1 / 60000 - 1 AND last >= ?1 AND (?2 IS NULL OR tenant = ?2)
ORDER BY last;

-- name: sweep_events
DELETE FROM idempotency_event
WHERE (minute, tenant, key_hash, kind, route) IN (
    SELECT minute, tenant, key_hash, kind, route
    FROM idempotency_event
    WHERE minute <= ?1 / 60000 AND last < ?1
    ORDER BY minute
    LIMIT ?2
);
