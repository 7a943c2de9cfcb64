-- name: insert_outbox
INSERT INTO onceflow.outbox (partition, position, n, sink, tenant, order_key, topic, event_id, created_at, envelope,
                             state, attempts, retry_at, shipped_at, claim_until)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::text[]), unnest($5::text[]),
       unnest($6::int8[]), unnest($7::text[]), unnest($8::text[]), unnest($9::int8[]), unnest($10::bytea[]),
       'pending', 0, 0, 0, 0;

-- An operator's retry: as if it had never been tried. The event id, and with it the dedup key, stays; so does a claim,
-- as the row may be under way just now.
-- name: reset_outbox
WITH met AS (
    UPDATE onceflow.outbox AS t
    SET state = 'pending', attempts = 0, retry_at = 0, shipped_at = 0
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::text[]))
        AS v (partition, position, n, sink)
    WHERE t.partition = v.partition AND t.position = v.position AND t.n = v.n AND t.sink = v.sink
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0
            ELSE onceflow.fail('OF002', 'a message to ship again is gone') END
FROM met;

-- name: get_outbox
SELECT t.partition, t.position, t.n, t.sink, t.tenant, t.order_key, t.topic, t.event_id, t.created_at, t.state, t.attempts,
       t.last_error, t.retry_at, t.shipped_at, t.envelope
FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::text[]))
    AS k (partition, position, n, sink)
JOIN onceflow.outbox AS t
  ON t.partition = k.partition AND t.position = k.position AND t.n = k.n AND t.sink = k.sink;

-- name: sweep_outbox
WITH gone AS (
    DELETE FROM onceflow.outbox
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM onceflow.outbox
        WHERE state = 'shipped' AND shipped_at < $1::int8
        ORDER BY shipped_at
        LIMIT $2::int8
        FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM gone;

-- Beside the turns: claims, marks and counts.

-- The first unsent message of a sink and order key bars the later ones, whether it may go or not: also where another
-- transaction has locked it just now, as the look behind `first` takes no locks and sees it all the same. Dead ones bar
-- unless the sink lets them pass. What another claim or mark has locked is its own: it is left out. A window of the unsent
-- is looked through: those that are barred may be many.
-- name: claim
WITH free AS MATERIALIZED (
    SELECT o.partition, o.position, o.n, o.sink
    FROM (
        SELECT u.partition, u.position, u.n, u.order_key, u.state, u.retry_at, u.claim_until
        FROM onceflow.outbox AS u
        WHERE u.sink = $1::text AND u.state <> 'shipped' AND (u.partition, u.position, u.n) > ($2::int2, $3::int8, $4::int8)
        ORDER BY u.partition, u.position, u.n
        LIMIT $5::int8
    ) AS w
    CROSS JOIN LATERAL (
        SELECT e.position, e.n
        FROM onceflow.outbox AS e
        WHERE e.sink = $1 AND e.partition = w.partition AND e.order_key = w.order_key AND e.state <> 'shipped'
          AND (e.state = 'pending' OR NOT $6::bool)
        ORDER BY e.position, e.n
        LIMIT 1
    ) AS first
    JOIN onceflow.outbox AS o ON o.partition = w.partition AND o.position = w.position AND o.n = w.n AND o.sink = $1
    WHERE w.state = 'pending' AND w.retry_at <= $7::int8 AND w.claim_until <= $7
      AND first.position = w.position AND first.n = w.n
      -- Asked again of the row as it is when it is locked.
      AND o.state = 'pending' AND o.retry_at <= $7 AND o.claim_until <= $7
    ORDER BY w.partition, w.position, w.n
    LIMIT $8::int8
    FOR UPDATE OF o SKIP LOCKED
)
UPDATE onceflow.outbox AS t
SET claim_owner = $9::bytea, claim_until = $10::int8
FROM free
WHERE t.partition = free.partition AND t.position = free.position AND t.n = free.n AND t.sink = free.sink
RETURNING t.partition, t.position, t.n, t.sink, t.tenant, t.order_key, t.topic, t.event_id, t.created_at, t.state, t.attempts,
          t.last_error, t.retry_at, t.shipped_at, t.envelope;

-- The last one of a full window: the next begins behind it.
-- name: window_end
SELECT partition, position, n
FROM onceflow.outbox
WHERE sink = $1::text AND state <> 'shipped' AND (partition, position, n) > ($2::int2, $3::int8, $4::int8)
ORDER BY partition, position, n
OFFSET $5::int8 - 1
LIMIT 1;

-- A mark of somebody who no longer holds the claim meets no row. Only pending ones are claimed, and every mark ends the claim.
-- name: mark
UPDATE onceflow.outbox AS t
SET state = v.state, attempts = t.attempts + v.counts, retry_at = coalesce(v.retry_at, t.retry_at),
    shipped_at = coalesce(v.shipped_at, t.shipped_at), last_error = coalesce(v.error, t.last_error),
    claim_owner = NULL, claim_until = 0
FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::text[]), unnest($5::bytea[]),
             unnest($6::text[]), unnest($7::int8[]), unnest($8::int8[]), unnest($9::int8[]), unnest($10::text[]))
    AS v (partition, position, n, sink, owner, state, counts, retry_at, shipped_at, error)
WHERE t.partition = v.partition AND t.position = v.position AND t.n = v.n AND t.sink = v.sink
  AND t.claim_owner = v.owner;

-- name: outbox_stats
SELECT sink, count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'dead'),
       min(created_at) FILTER (WHERE state = 'pending')
FROM onceflow.outbox
WHERE state <> 'shipped'
GROUP BY sink
ORDER BY sink;
