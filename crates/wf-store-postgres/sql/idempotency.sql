-- A record gives way when it is expired, or when its own request finishes it: a completed one never changes. Rows come
-- sorted by tenant and key: transactions of several nodes lock them in one order.
-- name: put_record
WITH met AS (
    INSERT INTO onceflow.api_idempotency AS r (tenant, key, key_hash, route, fingerprint, mac_key_id, created_at,
                                               expires_at, state, status, answer_id, subject, owner, lease_until, since)
    SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::bytea[]), unnest($4::text[]), unnest($5::bytea[]),
           unnest($6::int8[]), unnest($7::int8[]), unnest($8::int8[]), unnest($9::text[]), unnest($10::int4[]),
           unnest($11::bytea[]), unnest($12::int8[]), unnest($13::bytea[]), unnest($14::int8[]), unnest($15::int8[])
    ON CONFLICT (tenant, key) DO UPDATE
    SET key_hash = excluded.key_hash, route = excluded.route, fingerprint = excluded.fingerprint,
        mac_key_id = excluded.mac_key_id, created_at = excluded.created_at, expires_at = excluded.expires_at,
        state = excluded.state, status = excluded.status, answer_id = excluded.answer_id, subject = excluded.subject,
        owner = excluded.owner, lease_until = excluded.lease_until, since = excluded.since
    WHERE r.expires_at <= excluded.created_at
       OR (r.state IN ('IN_PROGRESS', 'STARTED') AND r.fingerprint = excluded.fingerprint
           AND r.created_at = excluded.created_at)
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0
            ELSE onceflow.fail('OF002', 'a record has not expired') END
FROM met;

-- The record before it is what lets one answer take the place of another: that one is nobody's any more.
-- name: put_answer
INSERT INTO onceflow.idempotency_answer (expires_at, id, headers, body)
SELECT unnest($1::int8[]), unnest($2::bytea[]), unnest($3::text[]), unnest($4::bytea[])
ON CONFLICT (expires_at, id) DO UPDATE SET headers = excluded.headers, body = excluded.body;

-- Of a request that several partitions answer together: as put_record, and nothing fails where one stands in its way.
-- name: claim_record
WITH met AS (
    INSERT INTO onceflow.api_idempotency AS r (tenant, key, key_hash, route, fingerprint, mac_key_id, created_at,
                                               expires_at, state, status, answer_id, subject, owner, lease_until, since)
    SELECT unnest($1::text[]), unnest($2::text[]), unnest($3::bytea[]), unnest($4::text[]), unnest($5::bytea[]),
           unnest($6::int8[]), unnest($7::int8[]), unnest($8::int8[]), unnest($9::text[]), unnest($10::int4[]),
           unnest($11::bytea[]), unnest($12::int8[]), unnest($13::bytea[]), unnest($14::int8[]), unnest($15::int8[])
    ON CONFLICT (tenant, key) DO UPDATE
    SET key_hash = excluded.key_hash, route = excluded.route, fingerprint = excluded.fingerprint,
        mac_key_id = excluded.mac_key_id, created_at = excluded.created_at, expires_at = excluded.expires_at,
        state = excluded.state, status = excluded.status, answer_id = excluded.answer_id, subject = excluded.subject,
        owner = excluded.owner, lease_until = excluded.lease_until, since = excluded.since
    WHERE r.expires_at <= excluded.created_at
       OR (r.state IN ('IN_PROGRESS', 'STARTED') AND r.fingerprint = excluded.fingerprint
           AND r.created_at = excluded.created_at)
    RETURNING 1
)
SELECT count(*) FROM met;

-- Only what was claimed under this key, for this request, is finished; the answer stands if and only if it was.
-- name: finish_record
WITH met AS (
    UPDATE onceflow.api_idempotency AS r
    SET expires_at = $5::int8, state = 'COMPLETED', status = $6::int4, answer_id = $7::bytea, owner = NULL, lease_until = NULL
    WHERE r.tenant = $1::text AND r.key = $2::text AND r.fingerprint = $3::bytea AND r.created_at = $4::int8
      AND r.state IN ('IN_PROGRESS', 'STARTED')
    RETURNING 1
), answer AS (
    INSERT INTO onceflow.idempotency_answer (expires_at, id, headers, body)
    SELECT $5, $7, $8::text, $9::bytea FROM met
    ON CONFLICT (expires_at, id) DO UPDATE SET headers = excluded.headers, body = excluded.body
)
SELECT count(*) FROM met;

-- Most keys that are asked for are new. Asking for their answers too would open all time partitions of these, each time.
-- name: known_keys
SELECT r.tenant, r.key
FROM unnest($1::text[], $2::text[]) AS k (tenant, key)
JOIN onceflow.api_idempotency AS r ON r.tenant = k.tenant AND r.key = k.key;

-- name: get_record
SELECT r.fingerprint, r.mac_key_id, r.created_at, r.expires_at, r.state, r.status, a.headers, a.body, r.subject, r.owner,
       r.lease_until, r.since, r.tenant, r.key, r.key_hash, r.route
FROM unnest($1::text[], $2::text[]) AS k (tenant, key)
JOIN onceflow.api_idempotency AS r ON r.tenant = k.tenant AND r.key = k.key
LEFT JOIN onceflow.idempotency_answer AS a ON a.expires_at = r.expires_at AND a.id = r.answer_id;

-- name: add_suppressed
INSERT INTO onceflow.idempotency_event AS e (minute, tenant, key_hash, kind, route, count, first, last)
SELECT v.minute, v.tenant, v.key_hash, v.kind, v.route, sum(v.count), min(v.first), max(v.last)
FROM (SELECT unnest($1::int8[]), unnest($2::text[]), unnest($3::bytea[]), unnest($4::text[]), unnest($5::text[]),
             unnest($6::int8[]), unnest($7::int8[]), unnest($8::int8[]))
    AS v (minute, tenant, key_hash, kind, route, count, first, last)
GROUP BY v.minute, v.tenant, v.key_hash, v.kind, v.route
ORDER BY v.minute, v.tenant, v.key_hash, v.kind, v.route
ON CONFLICT (minute, tenant, key_hash, kind, route) DO UPDATE
SET count = e.count + excluded.count, first = least(e.first, excluded.first), last = greatest(e.last, excluded.last);

-- Rows that another node sweeps just now are its own.
-- name: sweep_records
WITH gone AS (
    DELETE FROM onceflow.api_idempotency
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM onceflow.api_idempotency
        WHERE expires_at <= $1::int8
        ORDER BY expires_at
        LIMIT $2::int8
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;

-- Answers are dropped by whole time partitions; these stand in none.
-- name: sweep_answers
WITH gone AS (
    DELETE FROM onceflow.idempotency_answer_default
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM onceflow.idempotency_answer_default WHERE expires_at <= $1::int8 LIMIT $2::int8 FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: sweep_events
WITH gone AS (
    DELETE FROM onceflow.idempotency_event
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM onceflow.idempotency_event
        WHERE minute <= $1::int8 / 60000 AND last < $1
        ORDER BY minute
        LIMIT $2::int8
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;
