-- name: get_scope
SELECT key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards, tenant,
       process_id, version, started_at, ended_at, started_position, ended_position, unique_variable, unique_value,
       start_correlation, steps
FROM onceflow.scope
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_scope
INSERT INTO onceflow.scope (partition, key, root, parent, definition, element, state, active, joins, visits,
                            lineage, afterwards, tenant, process_id, version, started_at, ended_at,
                            started_position, ended_position, unique_variable, unique_value, start_correlation,
                            steps)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
       unnest($6::int8[]), unnest($7::text[]), unnest($8::int8[]), unnest($9::text[]), unnest($10::text[]),
       unnest($11::bytea[]), unnest($12::text[]), unnest($13::text[]), unnest($14::text[]), unnest($15::int8[]),
       unnest($16::int8[]), unnest($17::int8[]), unnest($18::int8[]), unnest($19::int8[]), unnest($20::text[]),
       unnest($21::bytea[]), unnest($22::text[]), unnest($23::int8[]);

-- name: update_scope
WITH met AS (
    UPDATE onceflow.scope AS t
    SET root = v.root, parent = v.parent, definition = v.definition, element = v.element, state = v.state,
        active = v.active, joins = v.joins, visits = v.visits, lineage = v.lineage, afterwards = v.afterwards,
        tenant = v.tenant, process_id = v.process_id, version = v.version, started_at = v.started_at,
        ended_at = v.ended_at, started_position = v.started_position, ended_position = v.ended_position,
        unique_variable = v.unique_variable, unique_value = v.unique_value, start_correlation = v.start_correlation,
        steps = v.steps
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::int8[]), unnest($7::text[]), unnest($8::int8[]), unnest($9::text[]), unnest($10::text[]),
                 unnest($11::bytea[]), unnest($12::text[]), unnest($13::text[]), unnest($14::text[]),
                 unnest($15::int8[]), unnest($16::int8[]), unnest($17::int8[]), unnest($18::int8[]),
                 unnest($19::int8[]), unnest($20::text[]), unnest($21::bytea[]), unnest($22::text[]),
                 unnest($23::int8[]))
        AS v (partition, key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards,
              tenant, process_id, version, started_at, ended_at, started_position, ended_position, unique_variable,
              unique_value, start_correlation, steps)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_scope
WITH met AS (
    DELETE FROM onceflow.scope AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: due_ended
SELECT r.key, r.root, r.parent, r.definition, r.element, r.state, r.active, r.joins, r.visits, r.lineage,
       r.afterwards, r.tenant, r.process_id, r.version, r.started_at, r.ended_at, r.started_position,
       r.ended_position, r.unique_variable, r.unique_value, r.start_correlation, r.steps, v.nth
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS v (rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.scope AS t
    WHERE t.partition = $1::int2 AND t.state IN ('COMPLETED', 'CANCELED') AND t.tenant IS NOT NULL
      AND (t.ended_at, t.key) > (v.rank, v.after)
    ORDER BY t.ended_at, t.key
    LIMIT $4::int8
) AS r;

-- name: get_element
SELECT t.scope, t.key, t.root, t.element, t.phase, t.job, t.incident, t.has_locals, t.attached
FROM unnest($2::int8[], $3::int8[]) AS k (scope, key)
JOIN onceflow.element AS t ON t.partition = $1::int2 AND t.scope = k.scope AND t.key = k.key;

-- name: insert_element
INSERT INTO onceflow.element (partition, scope, key, root, element, phase, job, incident, has_locals, attached)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
       unnest($6::text[]), unnest($7::int8[]), unnest($8::int8[]), unnest($9::bool[]), unnest($10::text[]);

-- name: update_element
WITH met AS (
    UPDATE onceflow.element AS t
    SET root = v.root, element = v.element, phase = v.phase, job = v.job, incident = v.incident,
        has_locals = v.has_locals, attached = v.attached
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::text[]), unnest($7::int8[]), unnest($8::int8[]), unnest($9::bool[]), unnest($10::text[]))
        AS v (partition, scope, key, root, element, phase, job, incident, has_locals, attached)
    WHERE t.partition = v.partition AND t.scope = v.scope AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_element
WITH met AS (
    DELETE FROM onceflow.element AS t
    USING (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]))
        AS v (partition, scope, key)
    WHERE t.partition = v.partition AND t.scope = v.scope AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: elements
SELECT r.scope, r.key, r.root, r.element, r.phase, r.job, r.incident, r.has_locals, r.attached, v.nth
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS v (scope, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.element AS t
    WHERE t.partition = $1::int2 AND t.scope = v.scope AND t.key > v.after
    ORDER BY t.key
    LIMIT $4::int8
) AS r;

-- name: get_variable
SELECT t.scope, t.name, t.value
FROM unnest($2::int8[], $3::text[]) AS k (scope, name)
JOIN onceflow.variable AS t ON t.partition = $1::int2 AND t.scope = k.scope AND t.name = k.name;

-- name: insert_variable
INSERT INTO onceflow.variable (partition, scope, name, value)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]);

-- name: update_variable
WITH met AS (
    UPDATE onceflow.variable AS t
    SET value = v.value
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]))
        AS v (partition, scope, name, value)
    WHERE t.partition = v.partition AND t.scope = v.scope AND t.name = v.name
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_variable
WITH met AS (
    DELETE FROM onceflow.variable AS t
    USING (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]))
        AS v (partition, scope, name)
    WHERE t.partition = v.partition AND t.scope = v.scope AND t.name = v.name
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- After a name, or from the first one on where `excluded` is null.
-- name: variables
SELECT r.scope, r.name, r.value, v.nth
FROM unnest($2::int8[], $3::text[], $4::text[]) WITH ORDINALITY AS v (scope, least, excluded, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.variable AS t
    WHERE t.partition = $1::int2 AND t.scope = v.scope
      AND t.name >= v.least AND t.name IS DISTINCT FROM v.excluded
    ORDER BY t.name
    LIMIT $5::int8
) AS r;
