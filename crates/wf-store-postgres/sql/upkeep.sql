-- Time partitions: made ahead, dropped behind. The functions run with the rights of the schema's owner.
-- name: make_time_partitions
SELECT onceflow.make_time_partitions($1::int8);

-- name: drop_answers
SELECT onceflow.drop_answers($1::int8);
