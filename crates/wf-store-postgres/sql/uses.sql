-- What is counted: the uses of keys, and gauges. None of it is for a turn.

-- Per key, over the minutes that are asked for; the latest row names the route.
-- name: repeats_per_key
SELECT tenant, key_hash, (array_agg(route ORDER BY last DESC, route))[1], min(first), max(last),
       coalesce(sum(count) FILTER (WHERE kind IN ('REPLAY', 'MESSAGE', 'JOB')), 0)::int8,
       coalesce(sum(count) FILTER (WHERE kind = 'CONFLICT'), 0)::int8,
       coalesce(sum(count) FILTER (WHERE kind = 'IN_PROGRESS'), 0)::int8
FROM onceflow.idempotency_event
WHERE minute >= $1::int8 / 60000 - 1 AND last >= $1 AND ($2::text IS NULL OR tenant = $2)
GROUP BY tenant, key_hash;

-- A slice of the records, of one tenant or of all: those made since then or repeated, and the last one.
-- name: scan_records
SELECT tenant, key, key_hash, route, created_at, expires_at, state, is_wanted, nth
FROM (
    SELECT tenant, key, key_hash, route, created_at, expires_at, state, row_number() OVER (ORDER BY tenant, key) AS nth,
           created_at >= $1::int8 OR key_hash = ANY($2::bytea[]) AS is_wanted
    FROM onceflow.api_idempotency
    WHERE (tenant, key) > ($3::text, $4::text) AND tenant <= coalesce($5::text, chr(1114111))
    ORDER BY tenant, key
    LIMIT $6::int8
) AS slice
WHERE is_wanted OR nth = $6
ORDER BY nth;

-- Slice by slice: how many of what, and where the next one begins.
-- name: count_jobs
WITH slice AS MATERIALIZED (
    SELECT partition, key, job_type, state
    FROM onceflow.jobs
    WHERE (partition, key) > ($1::int2, $2::int8)
    ORDER BY partition, key
    LIMIT $3::int8
)
SELECT job_type, state, count(*), (SELECT max(partition) FROM slice),
       (SELECT max(key) FROM slice WHERE partition = (SELECT max(partition) FROM slice))
FROM slice
GROUP BY job_type, state;

-- name: count_incidents
SELECT count(*) FROM onceflow.incident;

-- name: count_records
SELECT count(*) FROM onceflow.api_idempotency;
