-- Reads see one snapshot and end at once, so that no reader stops a checkpoint.
-- name: begin_read
BEGIN;

-- The write lock at the begin: nothing read in the transaction can be stale.
-- name: begin_write
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- One job of several in a transaction may fail alone.
-- name: savepoint
SAVEPOINT job;

-- name: release
RELEASE job;

-- name: rollback_to
ROLLBACK TO job;
