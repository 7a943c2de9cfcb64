-- A command id that is known voids the transaction by the primary key.
-- name: insert_command
INSERT INTO onceflow.command_log (partition, position, id, time, tenant, verb, digest, payload)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::bytea[]), unnest($4::int8[]), unnest($5::text[]),
       unnest($6::text[]), unnest($7::bytea[]), unnest($8::text[]);

-- Id by id, so that each looks into the one time partition that it can stand in.
-- name: has_command
SELECT v.id
FROM unnest($1::bytea[]) AS v (id)
WHERE EXISTS (SELECT 1 FROM onceflow.command_log AS l WHERE l.id = v.id);

-- name: insert_audit
INSERT INTO onceflow.audit_log (partition, position, time, tenant, actor, count, chain, events)
SELECT unnest($1::int2[]), unnest($2::int8[]), unnest($3::int8[]), unnest($4::text[]), unnest($5::text[]),
       unnest($6::int8[]), unnest($7::bytea[]), unnest($8::text[]);
