-- name: get_definition
SELECT key, tenant, process_id, version, resource, checksum, deployed_at, xml
FROM onceflow.definition
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_definition
INSERT INTO onceflow.definition (partition, key, tenant, process_id, version, resource, checksum, deployed_at,
                                 xml)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]),
       unnest($6::text[]), unnest($7::bytea[]), unnest($8::int8[]), unnest($9::bytea[]);

-- name: update_definition
WITH met AS (
    UPDATE onceflow.definition AS t
    SET tenant = v.tenant, process_id = v.process_id, version = v.version, resource = v.resource,
        checksum = v.checksum, deployed_at = v.deployed_at, xml = v.xml
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]),
                 unnest($6::text[]), unnest($7::bytea[]), unnest($8::int8[]), unnest($9::bytea[]))
        AS v (partition, key, tenant, process_id, version, resource, checksum, deployed_at, xml)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_definition
WITH met AS (
    DELETE FROM onceflow.definition AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: versions
SELECT r.key, r.tenant, r.process_id, r.version, r.resource, r.checksum, r.deployed_at, r.xml, v.nth
FROM unnest($2::text[], $3::text[], $4::int8[], $5::int8[]) WITH ORDINALITY AS v (tenant, process_id, rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.definition AS t
    WHERE t.partition = $1::int2 AND t.tenant = v.tenant AND t.process_id = v.process_id
      AND (-t.version, t.key) > (v.rank, v.after)
    ORDER BY -t.version, t.key
    LIMIT $6::int8
) AS r;

-- name: get_start_subscription
SELECT t.tenant, t.message, t.process_id, t.definition, t.element
FROM (SELECT unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
    AS k (tenant, message, process_id)
JOIN onceflow.start_subscription AS t ON t.partition = $1::int2 AND t.tenant = k.tenant AND t.message = k.message AND t.process_id = k.process_id;

-- name: insert_start_subscription
INSERT INTO onceflow.start_subscription (partition, tenant, message, process_id, definition, element)
SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]),
       unnest($6::int8[]);

-- name: update_start_subscription
WITH met AS (
    UPDATE onceflow.start_subscription AS t
    SET definition = v.definition, element = v.element
    FROM (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]),
                 unnest($6::int8[]))
        AS v (partition, tenant, message, process_id, definition, element)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.message = v.message AND t.process_id = v.process_id
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_start_subscription
WITH met AS (
    DELETE FROM onceflow.start_subscription AS t
    USING (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
        AS v (partition, tenant, message, process_id)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.message = v.message AND t.process_id = v.process_id
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- After a name, or from the first one on where `excluded` is null: an empty name may be an entry.
-- name: message_starts
SELECT r.tenant, r.message, r.process_id, r.definition, r.element, v.nth
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS v (tenant, message, least, excluded, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.start_subscription AS t
    WHERE t.partition = $1::int2 AND t.tenant = v.tenant AND t.message = v.message
      AND t.process_id >= v.least AND t.process_id IS DISTINCT FROM v.excluded
    ORDER BY t.process_id
    LIMIT $6::int8
) AS r;
