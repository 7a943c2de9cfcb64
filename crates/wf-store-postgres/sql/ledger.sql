-- Whole tables and logs in their order, for replays and checks.

-- name: standing
SELECT id, epoch, last_position, next_counter, digest, chain, last_time, clock_now, clock_frozen
FROM onceflow.partition
WHERE id = $1::int2;

-- Reads nothing: as long as the transaction lasts no week of a log is dropped.
-- name: hold_logs
SELECT 1 FROM onceflow.command_log, onceflow.audit_log WHERE false;

-- What was archived is left out, whatever of it still stands.
-- name: scan_log
SELECT position, id, time, tenant, verb, payload, digest
FROM onceflow.command_log
WHERE partition = $1::int2 AND position >= greatest($2::int8, (
    SELECT a.position + 1 FROM onceflow.archived AS a WHERE a.log = 'command_log' AND a.partition = $1::int2))
ORDER BY position
LIMIT $3::int8;

-- name: count_log
SELECT count(*)
FROM onceflow.command_log
WHERE partition = $1::int2 AND position >= greatest($2::int8, (
    SELECT a.position + 1 FROM onceflow.archived AS a WHERE a.log = 'command_log' AND a.partition = $1::int2));

-- name: read_audit
SELECT position, time, tenant, actor, events, count, chain
FROM onceflow.audit_log
WHERE partition = $1::int2 AND position >= greatest($2::int8, (
    SELECT a.position + 1 FROM onceflow.archived AS a WHERE a.log = 'audit_log' AND a.partition = $1::int2))
ORDER BY position
LIMIT $3::int8;

-- name: audit_begin
SELECT position, chain FROM onceflow.archived WHERE log = 'audit_log' AND partition = $1::int2;

-- name: all_definitions
SELECT key, tenant, process_id, version, resource, checksum, deployed_at, xml
FROM onceflow.definition
WHERE partition = $1::int2
ORDER BY key;

-- name: all_start_subscriptions
SELECT tenant, message, process_id, definition, element
FROM onceflow.start_subscription
WHERE partition = $1::int2
ORDER BY tenant, message, process_id;

-- name: all_scopes
SELECT key, root, parent, definition, element, state, active, joins, visits, lineage, afterwards, tenant,
       process_id, version, started_at, ended_at, started_position, ended_position, unique_variable, unique_value,
       start_correlation, steps
FROM onceflow.scope
WHERE partition = $1::int2
ORDER BY key;

-- name: all_elements
SELECT scope, key, root, element, phase, job, incident, has_locals, attached
FROM onceflow.element
WHERE partition = $1::int2
ORDER BY scope, key;

-- name: all_variables
SELECT scope, name, value
FROM onceflow.variable
WHERE partition = $1::int2
ORDER BY scope, name;

-- name: all_jobs
SELECT key, element_key, scope, root, definition, element, tenant, job_type, rank, state, retries, worker, lease,
       due, steps, headers, lineage, completion
FROM onceflow.jobs
WHERE partition = $1::int2
ORDER BY key;

-- name: all_steps
SELECT job, name, result
FROM onceflow.step
WHERE partition = $1::int2
ORDER BY job, name;

-- name: all_timers
SELECT key, host, scope, root, target, due, repeats, interval
FROM onceflow.timer
WHERE partition = $1::int2
ORDER BY key;

-- name: all_subscriptions
SELECT key, host, scope, root, tenant, process_id, message, correlation_key, target
FROM onceflow.subscription
WHERE partition = $1::int2
ORDER BY key;

-- name: all_messages
SELECT key, tenant, name, correlation_key, expires_at, correlated, variables
FROM onceflow.message
WHERE partition = $1::int2
ORDER BY key;

-- name: all_message_ids
SELECT tenant, name, message_id, key, content, expires_at
FROM onceflow.messages_received
WHERE partition = $1::int2
ORDER BY tenant, name, message_id;

-- name: all_start_locks
SELECT tenant, process_id, correlation_key, root
FROM onceflow.start_lock
WHERE partition = $1::int2
ORDER BY tenant, process_id, correlation_key;

-- name: all_uniques
SELECT tenant, process_id, variable, value, root
FROM onceflow.uniqueness
WHERE partition = $1::int2
ORDER BY tenant, process_id, variable, value;

-- name: all_incidents
SELECT key, tenant, root, scope, element_key, element_id, job, kind, message, created_at
FROM onceflow.incident
WHERE partition = $1::int2
ORDER BY key;

-- name: all_follow_ups
SELECT key, root, scope, work, element, flow, tenant, process_id, message, correlation_key
FROM onceflow.follow_up
WHERE partition = $1::int2
ORDER BY key;

-- name: all_handovers
SELECT subscription, message, root, tenant, process_id, name, correlation_key, expires_at, variables
FROM onceflow.handover
WHERE partition = $1::int2
ORDER BY subscription, message;
