-- Whole weeks that leave the logs.

-- name: archivable_weeks
SELECT onceflow.archivable_weeks($1::text, $2::int8);

-- How far each partition's commands go that are older than this: never its last one, which says what the tables sum up to.
-- name: command_ends
SELECT e.partition, e.position, ''::bytea
FROM (SELECT p.id AS partition,
             (SELECT max(l.position) FROM onceflow.command_log AS l
              WHERE l.partition = p.id AND l.position < p.last_position AND l.id < onceflow.id_at($1::int8)::bytea) AS position
      FROM onceflow.partition AS p) AS e
WHERE e.position > coalesce((SELECT a.position FROM onceflow.archived AS a
                             WHERE a.log = 'command_log' AND a.partition = e.partition), 0)
ORDER BY e.partition;

-- name: audit_ends
SELECT l.partition, l.position, l.chain
FROM onceflow.partition AS p
     CROSS JOIN LATERAL (SELECT l.partition, l.position, l.chain FROM onceflow.audit_log AS l
                         WHERE l.partition = p.id AND l.time < $1::int8
                         ORDER BY l.position DESC
                         LIMIT 1) AS l
WHERE l.position > coalesce((SELECT a.position FROM onceflow.archived AS a
                             WHERE a.log = 'audit_log' AND a.partition = p.id), 0)
ORDER BY l.partition;

-- name: drop_weeks
SELECT onceflow.drop_weeks($1::text, $2::int8, $3::int2[], $4::int8[], $5::bytea[]);
