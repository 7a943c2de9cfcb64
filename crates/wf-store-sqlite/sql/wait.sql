-- name: get_timer
SELECT key, host, scope, root, target, due, repeats, interval FROM timer WHERE key = ?1;

-- name: insert_timer
INSERT INTO timer (key, host, scope, root, target, due, repeats, interval) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);

-- name: update_timer
UPDATE timer
SET host = ?2, scope = ?3, root = ?4, target = ?5, due = ?6, repeats = ?7, interval = ?8
WHERE key = ?1;

-- name: delete_timer
DELETE FROM timer WHERE key = ?1;

-- name: due_timers
SELECT due, key, '' FROM timer INDEXED BY timer_due WHERE (due, key) > (?1, ?2) ORDER BY due, key LIMIT ?3;

-- name: timers_of_instance
SELECT key FROM timer WHERE root = ?1 ORDER BY key;

-- name: get_incident
SELECT key, tenant, root, scope, element_key, element_id, job, kind, message, created_at FROM incident WHERE key = ?1;

-- name: insert_incident
INSERT INTO incident (key, tenant, root, scope, element_key, element_id, job, kind, message, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: update_incident
UPDATE incident
SET tenant = ?2, scope = ?4, element_key = ?5, element_id = ?6, job = ?7, kind = ?8, message = ?9, created_at = ?10,
    root = ?3
WHERE key = ?1;

-- name: delete_incident
DELETE FROM incident WHERE key = ?1;

-- name: list_incidents
SELECT key FROM incident WHERE tenant = ?1 AND key > ?2 ORDER BY key LIMIT ?3;

-- name: list_incidents_of_instance
SELECT key
FROM incident INDEXED BY incident_root
WHERE tenant = ?1 AND key > ?2 AND root = ?4
ORDER BY key
LIMIT ?3;

-- name: incidents_of_instance
SELECT key FROM incident WHERE root = ?1 ORDER BY key;

-- name: count_incidents
SELECT count(*) FROM incident;

-- name: get_follow_up
SELECT key, root, scope, work, element, flow, tenant, process_id, message, correlation_key
FROM follow_up
WHERE key = ?1;

-- name: insert_follow_up
INSERT INTO follow_up (key, root, scope, work, element, flow, tenant, process_id, message, correlation_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- name: update_follow_up
UPDATE follow_up
SET root = ?2, scope = ?3, work = ?4, element = ?5, flow = ?6, tenant = ?7, process_id = ?8, message = ?9,
    correlation_key = ?10
WHERE key = ?1;

-- name: delete_follow_up
DELETE FROM follow_up WHERE key = ?1;

-- name: follow_ups
SELECT 0, key, '' FROM follow_up WHERE key > ?1 ORDER BY key LIMIT ?2;

-- name: get_start_lock
SELECT tenant, process_id, correlation_key, root
FROM start_lock
WHERE tenant = ?1 AND process_id = ?2 AND correlation_key = ?3;

-- name: insert_start_lock
INSERT INTO start_lock (tenant, process_id, correlation_key, root) VALUES (?1, ?2, ?3, ?4);

-- name: update_start_lock
UPDATE start_lock SET root = ?4 WHERE tenant = ?1 AND process_id = ?2 AND correlation_key = ?3;

-- name: delete_start_lock
DELETE FROM start_lock WHERE tenant = ?1 AND process_id = ?2 AND correlation_key = ?3;

-- name: get_unique
SELECT tenant, process_id, variable, value, root
FROM uniqueness
WHERE tenant = ?1 AND process_id = ?2 AND variable = ?3 AND value = ?4;

-- name: insert_unique
INSERT INTO uniqueness (tenant, process_id, variable, value, root) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: update_unique
UPDATE uniqueness SET root = ?5 WHERE tenant = ?1 AND process_id = ?2 AND variable = ?3 AND value = ?4;

-- name: delete_unique
DELETE FROM uniqueness WHERE tenant = ?1 AND process_id = ?2 AND variable = ?3 AND value = ?4;
