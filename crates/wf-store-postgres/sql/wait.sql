-- name: get_timer
SELECT key, host, scope, root, target, due, repeats, interval
FROM onceflow.timer
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_timer
INSERT INTO onceflow.timer (partition, key, host, scope, root, target, due, repeats, interval)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
       unnest($6::int8[]), unnest($7::int8[]), unnest($8::int4[]), unnest($9::text[]);

-- name: update_timer
WITH met AS (
    UPDATE onceflow.timer AS t
    SET host = v.host, scope = v.scope, root = v.root, target = v.target, due = v.due, repeats = v.repeats,
        interval = v.interval
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::int8[]), unnest($7::int8[]), unnest($8::int4[]), unnest($9::text[]))
        AS v (partition, key, host, scope, root, target, due, repeats, interval)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_timer
WITH met AS (
    DELETE FROM onceflow.timer AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: due_timers
SELECT r.key, r.host, r.scope, r.root, r.target, r.due, r.repeats, r.interval, v.nth
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS v (rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.timer AS t
    WHERE t.partition = $1::int2 AND (t.due, t.key) > (v.rank, v.after)
    ORDER BY t.due, t.key
    LIMIT $4::int8
) AS r;

-- name: get_start_lock
SELECT t.tenant, t.process_id, t.correlation_key, t.root
FROM (SELECT unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
    AS k (tenant, process_id, correlation_key)
JOIN onceflow.start_lock AS t ON t.partition = $1::int2 AND t.tenant = k.tenant AND t.process_id = k.process_id AND t.correlation_key = k.correlation_key;

-- name: insert_start_lock
INSERT INTO onceflow.start_lock (partition, tenant, process_id, correlation_key, root)
SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]);

-- name: update_start_lock
WITH met AS (
    UPDATE onceflow.start_lock AS t
    SET root = v.root
    FROM (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]))
        AS v (partition, tenant, process_id, correlation_key, root)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.process_id = v.process_id AND t.correlation_key = v.correlation_key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_start_lock
WITH met AS (
    DELETE FROM onceflow.start_lock AS t
    USING (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
        AS v (partition, tenant, process_id, correlation_key)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.process_id = v.process_id AND t.correlation_key = v.correlation_key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: get_unique
SELECT t.tenant, t.process_id, t.variable, t.value, t.root
FROM (SELECT unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::bytea[]))
    AS k (tenant, process_id, variable, value)
JOIN onceflow.uniqueness AS t ON t.partition = $1::int2 AND t.tenant = k.tenant AND t.process_id = k.process_id AND t.variable = k.variable AND t.value = k.value;

-- name: insert_unique
INSERT INTO onceflow.uniqueness (partition, tenant, process_id, variable, value, root)
SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::bytea[]),
       unnest($6::int8[]);

-- name: update_unique
WITH met AS (
    UPDATE onceflow.uniqueness AS t
    SET root = v.root
    FROM (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::bytea[]),
                 unnest($6::int8[]))
        AS v (partition, tenant, process_id, variable, value, root)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.process_id = v.process_id AND t.variable = v.variable AND t.value = v.value
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_unique
WITH met AS (
    DELETE FROM onceflow.uniqueness AS t
    USING (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::bytea[]))
        AS v (partition, tenant, process_id, variable, value)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.process_id = v.process_id AND t.variable = v.variable AND t.value = v.value
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: get_incident
SELECT key, tenant, root, scope, element_key, element_id, job, kind, message, created_at
FROM onceflow.incident
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_incident
INSERT INTO onceflow.incident (partition, key, tenant, root, scope, element_key, element_id, job, kind, message,
                               created_at)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::int8[]), unnest($5::int8[]),
       unnest($6::int8[]), unnest($7::text[]), unnest($8::int8[]), unnest($9::text[]), unnest($10::text[]),
       unnest($11::int8[]);

-- name: update_incident
WITH met AS (
    UPDATE onceflow.incident AS t
    SET tenant = v.tenant, root = v.root, scope = v.scope, element_key = v.element_key, element_id = v.element_id,
        job = v.job, kind = v.kind, message = v.message, created_at = v.created_at
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::int8[]), unnest($7::text[]), unnest($8::int8[]), unnest($9::text[]), unnest($10::text[]),
                 unnest($11::int8[]))
        AS v (partition, key, tenant, root, scope, element_key, element_id, job, kind, message, created_at)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_incident
WITH met AS (
    DELETE FROM onceflow.incident AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: get_follow_up
SELECT key, root, scope, work, element, flow, tenant, process_id, message, correlation_key
FROM onceflow.follow_up
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_follow_up
INSERT INTO onceflow.follow_up (partition, key, root, scope, work, element, flow, tenant, process_id, message,
                                correlation_key)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::text[]),
       unnest($6::int8[]), unnest($7::int8[]), unnest($8::text[]), unnest($9::text[]), unnest($10::text[]),
       unnest($11::text[]);

-- name: update_follow_up
WITH met AS (
    UPDATE onceflow.follow_up AS t
    SET root = v.root, scope = v.scope, work = v.work, element = v.element, flow = v.flow, tenant = v.tenant,
        process_id = v.process_id, message = v.message, correlation_key = v.correlation_key
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::text[]),
                 unnest($6::int8[]), unnest($7::int8[]), unnest($8::text[]), unnest($9::text[]), unnest($10::text[]),
                 unnest($11::text[]))
        AS v (partition, key, root, scope, work, element, flow, tenant, process_id, message, correlation_key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_follow_up
WITH met AS (
    DELETE FROM onceflow.follow_up AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: follow_ups
SELECT r.key, r.root, r.scope, r.work, r.element, r.flow, r.tenant, r.process_id, r.message, r.correlation_key,
       v.nth
FROM unnest($2::int8[]) WITH ORDINALITY AS v (after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.follow_up AS t
    WHERE t.partition = $1::int2 AND t.key > v.after
    ORDER BY t.key
    LIMIT $3::int8
) AS r;
