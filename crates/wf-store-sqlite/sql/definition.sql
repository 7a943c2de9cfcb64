-- name: get_definition
SELECT key, tenant, process_id, version, resource, checksum, deployed_at, xml
FROM definition
WHERE key = ?1;

-- name: insert_definition
INSERT INTO definition (key, tenant, process_id, version, resource, checksum, deployed_at, xml)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- name: update_definition
UPDATE definition
SET tenant = ?2, process_id = ?3, version = ?4, resource = ?5, checksum = ?6, deployed_at = ?7, xml = ?8
WHERE key = ?1;

-- name: delete_definition
DELETE FROM definition WHERE key = ?1;

-- name: definition_versions
SELECT -version, key, ''
FROM definition
WHERE tenant = ?1 AND process_id = ?2 AND (-version, key) > (?3, ?4)
ORDER BY version DESC, key
LIMIT ?5;

-- name: definition_by_version
SELECT key
FROM definition
WHERE tenant = ?1 AND process_id = ?2 AND (?3 IS NULL OR version = ?3)
ORDER BY version DESC, key
LIMIT 1;

-- name: list_definitions
SELECT key, process_id, version, resource, deployed_at
FROM definition
WHERE tenant = ?1 AND (?2 IS NULL OR process_id = ?2) AND key > ?3
ORDER BY key
LIMIT ?4;

-- name: get_start_subscription
SELECT tenant, message, process_id, definition, element
FROM start_subscription
WHERE tenant = ?1 AND message = ?2 AND process_id = ?3;

-- name: insert_start_subscription
INSERT INTO start_subscription (tenant, message, process_id, definition, element)
VALUES (?1, ?2, ?3, ?4, ?5);

-- name: update_start_subscription
UPDATE start_subscription
SET definition = ?4, element = ?5
WHERE tenant = ?1 AND message = ?2 AND process_id = ?3;

-- name: delete_start_subscription
DELETE FROM start_subscription WHERE tenant = ?1 AND message = ?2 AND process_id = ?3;

-- name: message_starts
SELECT 0, 0, process_id
FROM start_subscription
WHERE tenant = ?1 AND message = ?2 AND process_id >= ?3 AND process_id IS NOT ?4
ORDER BY process_id
LIMIT ?5;
