-- name: get_scope
SELECT key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards,
       tenant, process_id, version, started_at, ended_at, started_position, ended_position,
       unique_variable, unique_value, start_correlation, steps
FROM scope
WHERE key = ?1;

-- name: insert_scope
INSERT INTO scope (key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards,
                   tenant, process_id, version, started_at, ended_at, started_position, ended_position,
                   unique_variable, unique_value, start_correlation, steps)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22);

-- The partial indexes hold no active instance: writing all columns touches none of them until it ends.
-- name: update_scope
UPDATE scope
SET root = ?2, parent = ?3, definition = ?4, element = ?5, state = ?6, active = ?7, joins = ?8, visits = ?9, lineage = ?10,
    afterwards = ?11, tenant = ?12, process_id = ?13, version = ?14, started_at = ?15, ended_at = ?16,
    started_position = ?17, ended_position = ?18, unique_variable = ?19, unique_value = ?20, start_correlation = ?21,
    steps = ?22
WHERE key = ?1;

-- name: delete_scope
DELETE FROM scope WHERE key = ?1;

-- name: due_ended
SELECT ended_at, key, ''
FROM scope INDEXED BY scope_ended
WHERE state IN ('COMPLETED', 'CANCELED') AND tenant IS NOT NULL AND (ended_at, key) > (?1, ?2)
ORDER BY ended_at, key
LIMIT ?3;

-- name: inner_scopes
SELECT key FROM scope WHERE root = ?1 AND parent <> 0 ORDER BY key;

-- Newest first. All rows are passed, so that the reader can stop after a bounded number of them.
-- An inner scope has no tenant. A scope that is being cleaned is still an active instance for those who look.
-- name: scan_instances
SELECT key,
       tenant IS ?1
       AND (?2 IS NULL OR iif(state = 'TERMINATING', 'ACTIVE', state) = ?2)
       AND (?3 IS NULL OR process_id = ?3)
       AND (?4 IS NULL OR started_at > ?4)
FROM scope
WHERE key <= ?5
ORDER BY key DESC
LIMIT ?6;

-- name: get_element
SELECT scope, key, root, element, phase, job, incident, has_locals, attached
FROM element
WHERE scope = ?1 AND key = ?2;

-- name: insert_element
INSERT INTO element (scope, key, root, element, phase, job, incident, has_locals, attached)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: update_element
UPDATE element
SET root = ?3, element = ?4, phase = ?5, job = ?6, incident = ?7, has_locals = ?8, attached = ?9
WHERE scope = ?1 AND key = ?2;

-- name: delete_element
DELETE FROM element WHERE scope = ?1 AND key = ?2;

-- name: elements
SELECT scope, key, root, element, phase, job, incident, has_locals, attached
FROM element
WHERE scope = ?1 AND key > ?2
ORDER BY key
LIMIT ?3;

-- name: get_variable
SELECT scope, name, value FROM variable WHERE scope = ?1 AND name = ?2;

-- name: insert_variable
INSERT INTO variable (scope, name, value) VALUES (?1, ?2, ?3);

-- name: update_variable
UPDATE variable SET value = ?3 WHERE scope = ?1 AND name = ?2;

-- name: delete_variable
DELETE FROM variable WHERE scope = ?1 AND name = ?2;

-- After a name (?3) or from the first one on (?2 empty, ?3 null).
-- name: variables
SELECT scope, name, value
FROM variable
WHERE scope = ?1 AND name >= ?2 AND name IS NOT ?3
ORDER BY name
LIMIT ?4;
