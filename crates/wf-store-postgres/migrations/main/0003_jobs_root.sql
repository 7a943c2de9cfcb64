-- A plan that was made while the table was empty could take this index for a key of a partition, and walk through the whole
-- partition for each row. Without the partition in front it fits nothing but an instance. A root's jobs are in its partition.
-- The new one first: reads go on while it is built.

CREATE INDEX jobs_of_root ON onceflow.jobs (root, key);
DROP INDEX onceflow.jobs_root;
ALTER INDEX onceflow.jobs_of_root RENAME TO jobs_root;
