-- Lists and details. A scan passes rows in their order, wanted or not, so that the reader can stop after a bounded number
-- of them: it answers those that are wanted, by their ids, and the last one of a full slice (nth = LIMIT), where the next
-- slice begins.

-- Every partition has a copy of each definition; the first one's stand for all.
-- name: list_definitions
SELECT key, process_id, version, resource, deployed_at
FROM onceflow.definition
WHERE partition = $5::int2 AND key > $1::int8 AND tenant = $2::text AND ($3::text IS NULL OR process_id = $3)
ORDER BY key
LIMIT $4::int8;

-- name: definition_by_version
SELECT key, tenant, process_id, version, resource, checksum, deployed_at, xml
FROM onceflow.definition
WHERE partition = $4::int2 AND tenant = $1::text AND process_id = $2::text AND ($3::int8 IS NULL OR version = $3)
ORDER BY (-version), key
LIMIT 1;

-- The newest first: partitions count their keys apart, so the start comes first. A scope that is being cleaned is still an
-- active instance for those who look.
-- name: scan_instances
SELECT partition, started_at, key, is_wanted, nth
FROM (
    SELECT partition, started_at, key, row_number() OVER (ORDER BY started_at DESC, key DESC) AS nth,
           ($1::text IS NULL OR CASE state WHEN 'TERMINATING' THEN 'ACTIVE' ELSE state END = $1)
           AND ($2::text IS NULL OR process_id = $2) AS is_wanted
    FROM onceflow.scope
    WHERE tenant = $3::text AND (started_at, key) < ($4::int8, $5::int8) AND started_at > $6::int8
    ORDER BY started_at DESC, key DESC
    LIMIT $7::int8
) AS slice
WHERE is_wanted OR nth = $7
ORDER BY nth;

-- name: variables_named
SELECT v.scope, v.name, v.value
FROM unnest($1::int2[], $2::int8[]) AS k (partition, scope)
JOIN onceflow.variable AS v ON v.partition = k.partition AND v.scope = k.scope
WHERE v.name = ANY($3::text[]);

-- name: instances_at
SELECT t.key, t.root, t.parent, t.definition, t.element, t.state, t.active, t.joins, t.visits, t.lineage, t.afterwards,
       t.tenant, t.process_id, t.version, t.started_at, t.ended_at, t.started_position, t.ended_position,
       t.unique_variable, t.unique_value, t.start_correlation, t.steps
FROM unnest($1::int2[], $2::int8[]) WITH ORDINALITY AS k (partition, key, nth)
JOIN onceflow.scope AS t ON t.partition = k.partition AND t.key = k.key
ORDER BY k.nth;

-- An instance lives whole in one partition; which one, its key says to the engine alone.
-- name: find_instance
SELECT key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards, tenant, process_id,
       version, started_at, ended_at, started_position, ended_position, unique_variable, unique_value,
       start_correlation, steps
FROM onceflow.scope
WHERE partition = ANY($1::int2[]) AND key = $2::int8;

-- name: inner_scopes
SELECT key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards, tenant, process_id,
       version, started_at, ended_at, started_position, ended_position, unique_variable, unique_value,
       start_correlation, steps
FROM onceflow.scope
WHERE partition = ANY($1::int2[]) AND root = $2::int8 AND parent <> 0
ORDER BY key;

-- name: elements_of_instance
SELECT e.scope, e.key, e.root, e.element, e.phase, e.job, e.incident, e.has_locals, e.attached
FROM (
    SELECT partition, key FROM onceflow.scope
    WHERE partition = ANY($1::int2[]) AND root = $2::int8 AND parent <> 0
    UNION ALL
    SELECT p.partition, $2 FROM unnest($1) AS p (partition)
) AS s
JOIN onceflow.element AS e ON e.partition = s.partition AND e.scope = s.key
ORDER BY e.key;

-- name: variables_of_instance
SELECT scope, name, value
FROM onceflow.variable
WHERE partition = ANY($1::int2[]) AND scope = $2::int8
ORDER BY name;

-- name: jobs_of_instance
SELECT key, element_key, scope, root, definition, element, tenant, job_type, rank, state, retries, worker, lease, due,
       steps, headers, lineage, completion
FROM onceflow.jobs
WHERE partition = ANY($1::int2[]) AND root = $2::int8
ORDER BY key;

-- name: timers_of_instance
SELECT key, host, scope, root, target, due, repeats, interval
FROM onceflow.timer
WHERE partition = ANY($1::int2[]) AND root = $2::int8
ORDER BY key;

-- Those with scope 0 are copies, at their messages' partitions.
-- name: subscriptions_of_instance
SELECT key, host, scope, root, tenant, process_id, message, correlation_key, target
FROM onceflow.subscription
WHERE partition = ANY($1::int2[]) AND root = $2::int8 AND scope <> 0
ORDER BY key;

-- name: incidents_of_instance
SELECT key, tenant, root, scope, element_key, element_id, job, kind, message, created_at
FROM onceflow.incident
WHERE partition = ANY($1::int2[]) AND root = $2::int8
ORDER BY key;

-- A key begins with its partition: this is the order of the keys.
-- name: scan_jobs
SELECT partition, key, is_wanted, nth
FROM (
    SELECT partition, key, row_number() OVER (ORDER BY partition, key) AS nth,
           tenant = $1::text AND ($2::text IS NULL OR job_type = $2) AND ($3::text IS NULL OR state = $3) AS is_wanted
    FROM onceflow.jobs
    WHERE (partition, key) > ($4::int2, $5::int8)
    ORDER BY partition, key
    LIMIT $6::int8
) AS slice
WHERE is_wanted OR nth = $6
ORDER BY nth;

-- name: scan_jobs_of_instance
SELECT partition, key, is_wanted, nth
FROM (
    SELECT j.partition, j.key, row_number() OVER (ORDER BY j.partition, j.key) AS nth,
           j.tenant = $1::text AND ($2::text IS NULL OR j.job_type = $2) AND ($3::text IS NULL OR j.state = $3) AS is_wanted
    FROM unnest($4::int2[]) AS p (partition)
    CROSS JOIN LATERAL (
        SELECT t.* FROM onceflow.jobs AS t
        WHERE t.partition = p.partition AND t.root = $5::int8
          AND t.key > CASE WHEN p.partition = $6::int2 THEN $7::int8 ELSE -1 END
        ORDER BY t.key
        LIMIT $8::int8
    ) AS j
    WHERE p.partition >= $6
    ORDER BY j.partition, j.key
    LIMIT $8
) AS slice
WHERE is_wanted OR nth = $8
ORDER BY nth;

-- name: jobs_at
SELECT t.key, t.element_key, t.scope, t.root, t.definition, t.element, t.tenant, t.job_type, t.rank, t.state, t.retries,
       t.worker, t.lease, t.due, t.steps, t.headers, t.lineage, t.completion
FROM unnest($1::int2[], $2::int8[]) WITH ORDINALITY AS k (partition, key, nth)
JOIN onceflow.jobs AS t ON t.partition = k.partition AND t.key = k.key
ORDER BY k.nth;

-- name: scan_incidents
SELECT partition, key, is_wanted, nth
FROM (
    SELECT partition, key, row_number() OVER (ORDER BY partition, key) AS nth, tenant = $1::text AS is_wanted
    FROM onceflow.incident
    WHERE (partition, key) > ($2::int2, $3::int8)
    ORDER BY partition, key
    LIMIT $4::int8
) AS slice
WHERE is_wanted OR nth = $4
ORDER BY nth;

-- name: scan_incidents_of_instance
SELECT partition, key, is_wanted, nth
FROM (
    SELECT i.partition, i.key, row_number() OVER (ORDER BY i.partition, i.key) AS nth, i.tenant = $1::text AS is_wanted
    FROM unnest($2::int2[]) AS p (partition)
    CROSS JOIN LATERAL (
        SELECT t.* FROM onceflow.incident AS t
        WHERE t.partition = p.partition AND t.root = $3::int8
          AND t.key > CASE WHEN p.partition = $4::int2 THEN $5::int8 ELSE -1 END
        ORDER BY t.key
        LIMIT $6::int8
    ) AS i
    WHERE p.partition >= $4
    ORDER BY i.partition, i.key
    LIMIT $6
) AS slice
WHERE is_wanted OR nth = $6
ORDER BY nth;

-- name: incidents_at
SELECT t.key, t.tenant, t.root, t.scope, t.element_key, t.element_id, t.job, t.kind, t.message, t.created_at
FROM unnest($1::int2[], $2::int8[]) WITH ORDINALITY AS k (partition, key, nth)
JOIN onceflow.incident AS t ON t.partition = k.partition AND t.key = k.key
ORDER BY k.nth;

-- name: scan_outbox
SELECT partition, position, n, sink, is_wanted, nth
FROM (
    SELECT partition, position, n, sink, row_number() OVER (ORDER BY partition, position, n, sink) AS nth,
           tenant = $1::text AND ($2::text IS NULL OR state = $2) AS is_wanted
    FROM onceflow.outbox
    WHERE (partition, position, n, sink) > ($3::int2, $4::int8, $5::int8, $6::text)
    ORDER BY partition, position, n, sink
    LIMIT $7::int8
) AS slice
WHERE is_wanted OR nth = $7
ORDER BY nth;

-- Through all partitions, or to the last place that is wanted.
-- name: scan_audit
SELECT partition, position, time, is_wanted, nth
FROM (
    SELECT partition, position, time, row_number() OVER (ORDER BY partition, position) AS nth,
           tenant = $1::text AS is_wanted
    FROM onceflow.audit_log
    WHERE (partition, position) > ($2::int2, $3::int8) AND (partition, position) <= ($4::int2, $5::int8)
    ORDER BY partition, position
    LIMIT $6::int8
) AS slice
WHERE is_wanted OR nth = $6
ORDER BY nth;

-- The time names the one time partition that each stands in.
-- name: audit_at
SELECT a.partition, a.position, a.time, a.actor, a.events
FROM unnest($1::int2[], $2::int8[], $3::int8[]) WITH ORDINALITY AS k (partition, position, time, nth)
JOIN onceflow.audit_log AS a ON a.partition = k.partition AND a.position = k.position AND a.time = k.time
ORDER BY k.nth;
