-- name: get_job
SELECT key, element_key, scope, root, definition, element, tenant, job_type, priority, state, retries, worker, lease,
       due, steps, headers, lineage, completion
FROM job
WHERE key = ?1;

-- name: insert_job
INSERT INTO job (key, element_key, scope, root, definition, element, tenant, job_type, priority, state, retries, worker,
                 lease, due, steps, headers, lineage, completion)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18);

-- The index on root is left alone: an index whose column stands in SET is written again, and a job's root never changes.
-- The ready index is written anyway, as its condition reads the state.
-- name: update_job
UPDATE job
SET element_key = ?2, scope = ?3, definition = ?5, element = ?6, tenant = ?7, job_type = ?8, priority = ?9, state = ?10,
    retries = ?11, worker = ?12, lease = ?13, due = ?14, steps = ?15, headers = ?16, lineage = ?17, completion = ?18
WHERE key = ?1 AND root = ?4;

-- For a row that replaces one of another root: the contract allows it, the engine never does it.
-- name: replace_job
UPDATE job
SET element_key = ?2, scope = ?3, root = ?4, definition = ?5, element = ?6, tenant = ?7, job_type = ?8, priority = ?9,
    state = ?10, retries = ?11, worker = ?12, lease = ?13, due = ?14, steps = ?15, headers = ?16, lineage = ?17,
    completion = ?18
WHERE key = ?1;

-- name: delete_job
DELETE FROM job WHERE key = ?1;

-- name: ready_jobs
SELECT rank, key, ''
FROM job INDEXED BY job_ready
WHERE state = 'READY' AND tenant = ?1 AND job_type = ?2 AND (rank, key) > (?3, ?4)
ORDER BY rank, key
LIMIT ?5;

-- name: due_leases
SELECT due, key, ''
FROM job INDEXED BY job_lease
WHERE state = 'ACTIVATED' AND (due, key) > (?1, ?2)
ORDER BY due, key
LIMIT ?3;

-- name: due_backoffs
SELECT due, key, ''
FROM job INDEXED BY job_backoff
WHERE state = 'BACKOFF' AND (due, key) > (?1, ?2)
ORDER BY due, key
LIMIT ?3;

-- name: due_finished
SELECT due, key, ''
FROM job INDEXED BY job_finished
WHERE state IN ('COMPLETED', 'CANCELED') AND (due, key) > (?1, ?2)
ORDER BY due, key
LIMIT ?3;

-- All rows are passed, so that the reader can stop after a bounded number of them.
-- name: scan_jobs
SELECT key, tenant = ?1 AND (?2 IS NULL OR job_type = ?2) AND (?3 IS NULL OR state = ?3)
FROM job
WHERE key > ?4
ORDER BY key
LIMIT ?5;

-- name: scan_jobs_of_instance
SELECT key, tenant = ?1 AND (?2 IS NULL OR job_type = ?2) AND (?3 IS NULL OR state = ?3)
FROM job INDEXED BY job_root
WHERE root = ?6 AND key > ?4
ORDER BY key
LIMIT ?5;

-- name: jobs_of_instance
SELECT key FROM job WHERE root = ?1 ORDER BY key;

-- name: count_jobs
SELECT job_type, state, count(*) FROM job WHERE key > ?1 AND key <= ?2 GROUP BY job_type, state;

-- The end of a slice, for scans that must not hold a snapshot for long.
-- name: slice_of_jobs
SELECT max(key) FROM (SELECT key FROM job WHERE key > ?1 ORDER BY key LIMIT ?2);

-- name: get_step
SELECT job, name, result FROM step WHERE job = ?1 AND name = ?2;

-- name: insert_step
INSERT INTO step (job, name, result) VALUES (?1, ?2, ?3);

-- name: update_step
UPDATE step SET result = ?3 WHERE job = ?1 AND name = ?2;

-- name: delete_step
DELETE FROM step WHERE job = ?1 AND name = ?2;

-- name: steps
SELECT job, name, result
FROM step
WHERE job = ?1 AND name >= ?2 AND name IS NOT ?3
ORDER BY name
LIMIT ?4;
