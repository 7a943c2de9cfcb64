-- name: insert_outbox
INSERT INTO outbox (position, n, sink, tenant, order_key, topic, event_id, created_at, state, attempts, retry_at,
                    shipped_at, claim_until, envelope)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', 0, 0, 0, 0, ?9)
ON CONFLICT DO NOTHING;

-- An operator's retry: as if it had never been tried. The event id, and with it the dedup key, stays; so does a claim,
-- as the row may be under way just now.
-- name: reset_outbox
UPDATE outbox
SET state = 'pending', attempts = 0, retry_at = 0, shipped_at = 0
WHERE position = ?1 AND n = ?2 AND sink = ?3;

-- name: get_outbox
SELECT position, n, sink, tenant, order_key, topic, event_id, created_at, state, attempts, last_error, retry_at, shipped_at,
       envelope
FROM outbox
WHERE position = ?1 AND n = ?2 AND sink = ?3;

-- What is unsent, in order: the reader takes the first of each order key that may go.
-- name: unsent
SELECT position, n, order_key, state = 'dead', state = 'pending' AND retry_at <= ?2 AND claim_until <= ?2
FROM outbox INDEXED BY outbox_unsent
WHERE sink = ?1 AND state <> 'shipped'
ORDER BY position, n;

-- The reader's choice is asked again: another claim may have been faster.
-- name: claim
UPDATE outbox
SET claim_owner = ?4, claim_until = ?5
WHERE position = ?1 AND n = ?2 AND sink = ?3 AND state = 'pending' AND claim_until <= ?6;

-- name: mark_shipped
UPDATE outbox
SET state = 'shipped', attempts = attempts + 1, shipped_at = ?5, claim_owner = NULL, claim_until = 0
WHERE position = ?1 AND n = ?2 AND sink = ?3 AND claim_owner = ?4 AND state = 'pending';

-- name: mark_retry
UPDATE outbox
SET attempts = attempts + 1, retry_at = ?5, last_error = ?6, claim_owner = NULL, claim_until = 0
WHERE position = ?1 AND n = ?2 AND sink = ?3 AND claim_owner = ?4 AND state = 'pending';

-- name: mark_dead
UPDATE outbox
SET state = 'dead', attempts = attempts + 1, last_error = ?5, claim_owner = NULL, claim_until = 0
WHERE position = ?1 AND n = ?2 AND sink = ?3 AND claim_owner = ?4 AND state = 'pending';

-- name: mark_released
UPDATE outbox
SET claim_owner = NULL, claim_until = 0
WHERE position = ?1 AND n = ?2 AND sink = ?3 AND claim_owner = ?4 AND state = 'pending';

-- name: outbox_stats
SELECT sink,
       sum(state = 'pending'),
       sum(state = 'dead'),
       min(iif(state = 'pending', created_at, NULL))
FROM outbox INDEXED BY outbox_unsent
WHERE state <> 'shipped'
GROUP BY sink
ORDER BY sink;

-- All rows are passed, so that the reader can stop after a bounded number of them.
-- name: scan_outbox
SELECT position, n, sink, tenant = ?1 AND (?2 IS NULL OR state = ?2)
FROM outbox
WHERE (position, n, sink) > (?3, ?4, ?5)
ORDER BY position, n, sink
LIMIT ?6;

-- name: sweep_outbox
DELETE FROM outbox
WHERE (position, n, sink) IN (
    SELECT position, n, sink FROM outbox INDEXED BY outbox_shipped
    WHERE state = 'shipped' AND shipped_at < ?1
    ORDER BY shipped_at
    LIMIT ?2
);

-- When the store is opened: the lock file says that whoever held these claims is gone. A crash between the broker's ack
-- and the mark is shipped again at once, not after the claim's time.
-- name: release_claims
UPDATE outbox INDEXED BY outbox_unsent
SET claim_owner = NULL, claim_until = 0
WHERE state <> 'shipped' AND claim_until > 0;
