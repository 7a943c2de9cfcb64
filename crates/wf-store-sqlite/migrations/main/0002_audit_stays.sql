-- An archive takes commands out of the log, never events out of the audit: that stays whole, whatever was archived.
DROP TRIGGER audit_log_no_delete;

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
BEGIN
    SELECT raise(ABORT, 'audit_log is append-only');
END;
