-- name: get_subscription
SELECT key, host, scope, root, tenant, process_id, message, correlation_key, target FROM subscription WHERE key = ?1;

-- name: insert_subscription
INSERT INTO subscription (key, host, scope, root, tenant, process_id, message, correlation_key, target)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: update_subscription
UPDATE subscription
SET host = ?2, scope = ?3, root = ?4, tenant = ?5, process_id = ?6, message = ?7, correlation_key = ?8, target = ?9
WHERE key = ?1;

-- name: delete_subscription
DELETE FROM subscription WHERE key = ?1;

-- name: subscriptions
SELECT 0, key, ''
FROM subscription INDEXED BY subscription_message
WHERE tenant = ?1 AND message = ?2 AND correlation_key = ?3 AND key > ?4
ORDER BY key
LIMIT ?5;

-- name: subscriptions_of_instance
SELECT key FROM subscription WHERE root = ?1 ORDER BY key;

-- name: get_message
SELECT key, tenant, name, correlation_key, expires_at, correlated, variables FROM message WHERE key = ?1;

-- name: insert_message
INSERT INTO message (key, tenant, name, correlation_key, expires_at, correlated, variables)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: update_message
UPDATE message
SET tenant = ?2, name = ?3, correlation_key = ?4, expires_at = ?5, correlated = ?6, variables = ?7
WHERE key = ?1;

-- name: delete_message
DELETE FROM message WHERE key = ?1;

-- name: buffered
SELECT 0, key, ''
FROM message INDEXED BY message_buffered
WHERE tenant = ?1 AND name = ?2 AND correlation_key = ?3 AND key > ?4
ORDER BY key
LIMIT ?5;

-- name: due_messages
SELECT expires_at, key, ''
FROM message INDEXED BY message_expiry
WHERE (expires_at, key) > (?1, ?2)
ORDER BY expires_at, key
LIMIT ?3;

-- name: get_message_id
SELECT tenant, name, message_id, key, content, expires_at
FROM messages_received
WHERE tenant = ?1 AND name = ?2 AND message_id = ?3;

-- name: insert_message_id
INSERT INTO messages_received (tenant, name, message_id, key, content, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: update_message_id
UPDATE messages_received
SET key = ?4, content = ?5, expires_at = ?6
WHERE tenant = ?1 AND name = ?2 AND message_id = ?3;

-- name: delete_message_id
DELETE FROM messages_received WHERE tenant = ?1 AND name = ?2 AND message_id = ?3;

-- The entry's name joins the parts of the primary key as wf_core does.
-- name: due_message_ids
SELECT expires_at, key, tenant || char(31) || name || char(31) || message_id
FROM messages_received INDEXED BY messages_received_expiry
WHERE (expires_at, key, tenant, name, message_id) > (?1, ?2, ?3, ?4, ?5)
ORDER BY expires_at, key, tenant, name, message_id
LIMIT ?6;

-- name: get_handover
SELECT subscription, message, root, tenant, process_id, name, correlation_key, expires_at, variables
FROM handover
WHERE subscription = ?1 AND message = ?2;

-- name: insert_handover
INSERT INTO handover (subscription, message, root, tenant, process_id, name, correlation_key, expires_at, variables)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: update_handover
UPDATE handover
SET root = ?3, tenant = ?4, process_id = ?5, name = ?6, correlation_key = ?7, expires_at = ?8, variables = ?9
WHERE subscription = ?1 AND message = ?2;

-- name: delete_handover
DELETE FROM handover WHERE subscription = ?1 AND message = ?2;
