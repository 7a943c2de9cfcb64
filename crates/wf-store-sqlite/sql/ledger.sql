-- Whole tables and logs in their order, for replays and checks.

-- name: standing
SELECT id, epoch, last_position, next_counter, digest, chain, last_time, clock_now, clock_frozen
FROM partition
ORDER BY id
LIMIT 1;

-- What an interrupted archiving has not taken away yet is out of the log all the same.
-- name: scan_log
SELECT position, id, time, tenant, verb, payload, digest
FROM command_log
WHERE position >= max(?1, coalesce((SELECT value FROM meta WHERE name = 'archive_before'), 0))
ORDER BY position
LIMIT ?2;

-- name: count_log
SELECT count(*)
FROM command_log
WHERE position >= max(?1, coalesce((SELECT value FROM meta WHERE name = 'archive_before'), 0));

-- name: read_audit
SELECT position, time, tenant, actor, events, count, chain
FROM audit_log
WHERE position >= ?1
ORDER BY position
LIMIT ?2;

-- Says up to where rows may leave the log, to the triggers and to whoever looks later.
-- name: open_archive
INSERT INTO meta (name, value) VALUES ('archive_before', ?1)
ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value);

-- Where the log begins, if there are rows below that an interrupted archiving has left behind.
-- name: archive_begun
SELECT value
FROM meta
WHERE name = 'archive_before' AND EXISTS (SELECT 1 FROM command_log WHERE position < value);

-- The one statement that takes commands out of the log; never at or behind the position of `open_archive`.
-- name: archive_log
DELETE FROM command_log
WHERE position IN (
    SELECT position FROM command_log
    WHERE position < min(?1, (SELECT value FROM meta WHERE name = 'archive_before'))
    ORDER BY position
    LIMIT ?2
);

-- name: all_definitions
SELECT key, tenant, process_id, version, resource, checksum, deployed_at, xml FROM definition ORDER BY key;

-- name: all_start_subscriptions
SELECT tenant, message, process_id, definition, element FROM start_subscription ORDER BY tenant, message, process_id;

-- name: all_scopes
SELECT key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards,
       tenant, process_id, version, started_at, ended_at, started_position, ended_position,
       unique_variable, unique_value, start_correlation, steps
FROM scope
ORDER BY key;

-- name: all_elements
SELECT scope, key, root, element, phase, job, incident, has_locals, attached FROM element ORDER BY scope, key;

-- name: all_variables
SELECT scope, name, value FROM variable ORDER BY scope, name;

-- name: all_jobs
SELECT key, element_key, scope, root, definition, element, tenant, job_type, priority, state, retries, worker, lease,
       due, steps, headers, lineage, completion
FROM job
ORDER BY key;

-- name: all_steps
SELECT job, name, result FROM step ORDER BY job, name;

-- name: all_timers
SELECT key, host, scope, root, target, due, repeats, interval FROM timer ORDER BY key;

-- name: all_subscriptions
SELECT key, host, scope, root, tenant, process_id, message, correlation_key, target FROM subscription ORDER BY key;

-- name: all_messages
SELECT key, tenant, name, correlation_key, expires_at, correlated, variables FROM message ORDER BY key;

-- name: all_message_ids
SELECT tenant, name, message_id, key, content, expires_at FROM messages_received ORDER BY tenant, name, message_id;

-- name: all_start_locks
SELECT tenant, process_id, correlation_key, root FROM start_lock ORDER BY tenant, process_id, correlation_key;

-- name: all_uniques
SELECT tenant, process_id, variable, value, root FROM uniqueness ORDER BY tenant, process_id, variable, value;

-- name: all_incidents
SELECT key, tenant, root, scope, element_key, element_id, job, kind, message, created_at FROM incident ORDER BY key;

-- name: all_follow_ups
SELECT key, root, scope, work, element, flow, tenant, process_id, message, correlation_key FROM follow_up ORDER BY key;

-- name: all_handovers
SELECT subscription, message, root, tenant, process_id, name, correlation_key, expires_at, variables
FROM handover
ORDER BY subscription, message;
