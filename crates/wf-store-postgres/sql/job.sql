-- name: get_job
SELECT key, element_key, scope, root, definition, element, tenant, job_type, rank, state, retries, worker, lease,
       due, steps, headers, lineage, completion
FROM onceflow.jobs
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_job
INSERT INTO onceflow.jobs (partition, key, element_key, scope, root, definition, element, tenant, job_type, rank,
                           state, retries, worker, lease, due, steps, headers, lineage, completion)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
       unnest($6::int8[]), unnest($7::int8[]), unnest($8::text[]), unnest($9::text[]), unnest($10::int8[]),
       unnest($11::text[]), unnest($12::int4[]), unnest($13::text[]), unnest($14::int8[]), unnest($15::int8[]),
       unnest($16::int8[]), unnest($17::text[]), unnest($18::bytea[]), unnest($19::bytea[]);

-- name: update_job
WITH met AS (
    UPDATE onceflow.jobs AS t
    SET element_key = v.element_key, scope = v.scope, root = v.root, definition = v.definition, element = v.element,
        tenant = v.tenant, job_type = v.job_type, rank = v.rank, state = v.state, retries = v.retries,
        worker = v.worker, lease = v.lease, due = v.due, steps = v.steps, headers = v.headers, lineage = v.lineage,
        completion = v.completion
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::int8[]), unnest($7::int8[]), unnest($8::text[]), unnest($9::text[]), unnest($10::int8[]),
                 unnest($11::text[]), unnest($12::int4[]), unnest($13::text[]), unnest($14::int8[]),
                 unnest($15::int8[]), unnest($16::int8[]), unnest($17::text[]), unnest($18::bytea[]),
                 unnest($19::bytea[]))
        AS v (partition, key, element_key, scope, root, definition, element, tenant, job_type, rank, state, retries,
              worker, lease, due, steps, headers, lineage, completion)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_job
WITH met AS (
    DELETE FROM onceflow.jobs AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: ready_jobs
SELECT r.key, r.element_key, r.scope, r.root, r.definition, r.element, r.tenant, r.job_type, r.rank, r.state,
       r.retries, r.worker, r.lease, r.due, r.steps, r.headers, r.lineage, r.completion, v.nth
FROM unnest($2::text[], $3::text[], $4::int8[], $5::int8[]) WITH ORDINALITY AS v (tenant, job_type, rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.jobs AS t
    WHERE t.partition = $1::int2 AND t.state = 'READY' AND t.tenant = v.tenant AND t.job_type = v.job_type
      AND (t.rank, t.key) > (v.rank, v.after)
    ORDER BY t.rank, t.key
    LIMIT $6::int8
) AS r;

-- name: due_leases
SELECT r.key, r.element_key, r.scope, r.root, r.definition, r.element, r.tenant, r.job_type, r.rank, r.state,
       r.retries, r.worker, r.lease, r.due, r.steps, r.headers, r.lineage, r.completion, v.nth
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS v (rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.jobs AS t
    WHERE t.partition = $1::int2 AND t.state = 'ACTIVATED' AND (t.due, t.key) > (v.rank, v.after)
    ORDER BY t.due, t.key
    LIMIT $4::int8
) AS r;

-- name: due_backoffs
SELECT r.key, r.element_key, r.scope, r.root, r.definition, r.element, r.tenant, r.job_type, r.rank, r.state,
       r.retries, r.worker, r.lease, r.due, r.steps, r.headers, r.lineage, r.completion, v.nth
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS v (rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.jobs AS t
    WHERE t.partition = $1::int2 AND t.state = 'BACKOFF' AND (t.due, t.key) > (v.rank, v.after)
    ORDER BY t.due, t.key
    LIMIT $4::int8
) AS r;

-- name: due_finished
SELECT r.key, r.element_key, r.scope, r.root, r.definition, r.element, r.tenant, r.job_type, r.rank, r.state,
       r.retries, r.worker, r.lease, r.due, r.steps, r.headers, r.lineage, r.completion, v.nth
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS v (rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.jobs AS t
    WHERE t.partition = $1::int2 AND t.state IN ('COMPLETED', 'CANCELED') AND (t.due, t.key) > (v.rank, v.after)
    ORDER BY t.due, t.key
    LIMIT $4::int8
) AS r;

-- name: get_step
SELECT t.job, t.name, t.result
FROM unnest($2::int8[], $3::text[]) AS k (job, name)
JOIN onceflow.step AS t ON t.partition = $1::int2 AND t.job = k.job AND t.name = k.name;

-- name: insert_step
INSERT INTO onceflow.step (partition, job, name, result)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]);

-- name: update_step
WITH met AS (
    UPDATE onceflow.step AS t
    SET result = v.result
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]))
        AS v (partition, job, name, result)
    WHERE t.partition = v.partition AND t.job = v.job AND t.name = v.name
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_step
WITH met AS (
    DELETE FROM onceflow.step AS t
    USING (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]))
        AS v (partition, job, name)
    WHERE t.partition = v.partition AND t.job = v.job AND t.name = v.name
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: steps
SELECT r.job, r.name, r.result, v.nth
FROM unnest($2::int8[], $3::text[], $4::text[]) WITH ORDINALITY AS v (job, least, excluded, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.step AS t
    WHERE t.partition = $1::int2 AND t.job = v.job
      AND t.name >= v.least AND t.name IS DISTINCT FROM v.excluded
    ORDER BY t.name
    LIMIT $5::int8
) AS r;
