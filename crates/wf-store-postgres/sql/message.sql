-- name: get_subscription
SELECT key, host, scope, root, tenant, process_id, message, correlation_key, target
FROM onceflow.subscription
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_subscription
INSERT INTO onceflow.subscription (partition, key, host, scope, root, tenant, process_id, message,
                                   correlation_key, target)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
       unnest($6::text[]), unnest($7::text[]), unnest($8::text[]), unnest($9::text[]), unnest($10::int8[]);

-- name: update_subscription
WITH met AS (
    UPDATE onceflow.subscription AS t
    SET host = v.host, scope = v.scope, root = v.root, tenant = v.tenant, process_id = v.process_id,
        message = v.message, correlation_key = v.correlation_key, target = v.target
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::int8[]),
                 unnest($6::text[]), unnest($7::text[]), unnest($8::text[]), unnest($9::text[]), unnest($10::int8[]))
        AS v (partition, key, host, scope, root, tenant, process_id, message, correlation_key, target)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_subscription
WITH met AS (
    DELETE FROM onceflow.subscription AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: subscriptions
SELECT r.key, r.host, r.scope, r.root, r.tenant, r.process_id, r.message, r.correlation_key, r.target, v.nth
FROM unnest($2::text[], $3::text[], $4::text[], $5::int8[]) WITH ORDINALITY AS v (tenant, message, correlation_key, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.subscription AS t
    WHERE t.partition = $1::int2 AND t.tenant = v.tenant AND t.message = v.message
      AND t.correlation_key = v.correlation_key AND t.key > v.after
    ORDER BY t.key
    LIMIT $6::int8
) AS r;

-- name: get_message
SELECT key, tenant, name, correlation_key, expires_at, correlated, variables
FROM onceflow.message
WHERE partition = $1::int2 AND key = ANY($2::int8[]);

-- name: insert_message
INSERT INTO onceflow.message (partition, key, tenant, name, correlation_key, expires_at, correlated, variables)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]), unnest($5::text[]),
       unnest($6::int8[]), unnest($7::text[]), unnest($8::text[]);

-- name: update_message
WITH met AS (
    UPDATE onceflow.message AS t
    SET tenant = v.tenant, name = v.name, correlation_key = v.correlation_key, expires_at = v.expires_at,
        correlated = v.correlated, variables = v.variables
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::text[]), unnest($4::text[]), unnest($5::text[]),
                 unnest($6::int8[]), unnest($7::text[]), unnest($8::text[]))
        AS v (partition, key, tenant, name, correlation_key, expires_at, correlated, variables)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_message
WITH met AS (
    DELETE FROM onceflow.message AS t
    USING unnest($1::int2[], $2::int8[]) AS v (partition, key)
    WHERE t.partition = v.partition AND t.key = v.key
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: buffered
SELECT r.key, r.tenant, r.name, r.correlation_key, r.expires_at, r.correlated, r.variables, v.nth
FROM unnest($2::text[], $3::text[], $4::text[], $5::int8[]) WITH ORDINALITY AS v (tenant, message, correlation_key, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.message AS t
    WHERE t.partition = $1::int2 AND t.tenant = v.tenant AND t.name = v.message
      AND t.correlation_key = v.correlation_key AND t.key > v.after
    ORDER BY t.key
    LIMIT $6::int8
) AS r;

-- name: due_messages
SELECT r.key, r.tenant, r.name, r.correlation_key, r.expires_at, r.correlated, r.variables, v.nth
FROM unnest($2::int8[], $3::int8[]) WITH ORDINALITY AS v (rank, after, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.message AS t
    WHERE t.partition = $1::int2 AND (t.expires_at, t.key) > (v.rank, v.after)
    ORDER BY t.expires_at, t.key
    LIMIT $4::int8
) AS r;

-- name: get_message_id
SELECT t.tenant, t.name, t.message_id, t.key, t.content, t.expires_at
FROM (SELECT unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
    AS k (tenant, name, message_id)
JOIN onceflow.messages_received AS t ON t.partition = $1::int2 AND t.tenant = k.tenant AND t.name = k.name AND t.message_id = k.message_id;

-- name: insert_message_id
INSERT INTO onceflow.messages_received (partition, tenant, name, message_id, key, content, expires_at)
SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]),
       unnest($6::bytea[]), unnest($7::int8[]);

-- name: update_message_id
WITH met AS (
    UPDATE onceflow.messages_received AS t
    SET key = v.key, content = v.content, expires_at = v.expires_at
    FROM (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]),
                 unnest($6::bytea[]), unnest($7::int8[]))
        AS v (partition, tenant, name, message_id, key, content, expires_at)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.name = v.name AND t.message_id = v.message_id
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_message_id
WITH met AS (
    DELETE FROM onceflow.messages_received AS t
    USING (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
        AS v (partition, tenant, name, message_id)
    WHERE t.partition = v.partition AND t.tenant = v.tenant AND t.name = v.name AND t.message_id = v.message_id
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: due_message_ids
SELECT r.tenant, r.name, r.message_id, r.key, r.content, r.expires_at, v.nth
FROM unnest($2::int8[], $3::int8[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY AS v (rank, after, tenant, name, message_id, nth)
CROSS JOIN LATERAL (
    SELECT t.* FROM onceflow.messages_received AS t
    WHERE t.partition = $1::int2 AND (t.expires_at, t.key, t.tenant, t.name, t.message_id)
          > (v.rank, v.after, v.tenant, v.name, v.message_id)
    ORDER BY t.expires_at, t.key, t.tenant, t.name, t.message_id
    LIMIT $7::int8
) AS r;

-- Message ids over all partitions, beside the rows of each: whoever holds one that has not expired keeps it.
-- name: note_message_id
WITH met AS (
    INSERT INTO onceflow.deduplication AS d (partition, tenant, name, message_id, key, content, expires_at)
    SELECT partition, tenant, name, message_id, key, content, expires_at
    FROM (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]), unnest($5::int8[]),
                 unnest($6::bytea[]), unnest($7::int8[]))
        AS v (partition, tenant, name, message_id, key, content, expires_at)
    ON CONFLICT (tenant, name, message_id) DO UPDATE
    SET partition = excluded.partition, key = excluded.key, content = excluded.content, expires_at = excluded.expires_at
    WHERE d.partition = excluded.partition
       OR d.expires_at <= (SELECT max(now) FROM unnest($1, $8::int8[]) AS c (partition, now)
                           WHERE c.partition = excluded.partition)
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0
            ELSE onceflow.fail('OF002', 'another partition has received this message id') END
FROM met;

-- An expired one that another partition has taken over stays.
-- name: forget_message_id
DELETE FROM onceflow.deduplication AS d
USING (SELECT unnest($1::int2[]), unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
    AS v (partition, tenant, name, message_id)
WHERE d.tenant = v.tenant AND d.name = v.name AND d.message_id = v.message_id AND d.partition = v.partition;

-- name: received_elsewhere
SELECT d.tenant, d.name, d.message_id, d.key, d.content, d.expires_at
FROM (SELECT unnest($2::text[]), unnest($3::text[]), unnest($4::text[]))
    AS k (tenant, name, message_id)
JOIN onceflow.deduplication AS d ON d.tenant = k.tenant AND d.name = k.name AND d.message_id = k.message_id
WHERE d.partition <> $1::int2;

-- name: get_handover
SELECT t.subscription, t.message, t.root, t.tenant, t.process_id, t.name, t.correlation_key, t.expires_at, t.variables
FROM unnest($2::int8[], $3::int8[]) AS k (subscription, message)
JOIN onceflow.handover AS t ON t.partition = $1::int2 AND t.subscription = k.subscription AND t.message = k.message;

-- name: insert_handover
INSERT INTO onceflow.handover (partition, subscription, message, root, tenant, process_id, name, correlation_key, expires_at, variables)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::text[]),
       unnest($6::text[]), unnest($7::text[]), unnest($8::text[]), unnest($9::int8[]), unnest($10::text[]);

-- name: update_handover
WITH met AS (
    UPDATE onceflow.handover AS t
    SET root = v.root, tenant = v.tenant, process_id = v.process_id, name = v.name, correlation_key = v.correlation_key,
        expires_at = v.expires_at, variables = v.variables
    FROM (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::int8[]), unnest($5::text[]),
                 unnest($6::text[]), unnest($7::text[]), unnest($8::text[]), unnest($9::int8[]), unnest($10::text[]))
        AS v (partition, subscription, message, root, tenant, process_id, name, correlation_key, expires_at, variables)
    WHERE t.partition = v.partition AND t.subscription = v.subscription AND t.message = v.message
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;

-- name: delete_handover
WITH met AS (
    DELETE FROM onceflow.handover AS t
    USING (SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]))
        AS v (partition, subscription, message)
    WHERE t.partition = v.partition AND t.subscription = v.subscription AND t.message = v.message
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($1) THEN 0 ELSE onceflow.fail('OF002', 'a row is gone') END FROM met;
