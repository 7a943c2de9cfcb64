CREATE TABLE meta (
    name  TEXT PRIMARY KEY NOT NULL,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE partition (
    id            INTEGER PRIMARY KEY,
    epoch         INTEGER NOT NULL,
    last_position INTEGER NOT NULL,
    next_counter  INTEGER NOT NULL,
    digest        BLOB NOT NULL,
    chain         BLOB NOT NULL,
    last_time     INTEGER NOT NULL,
    -- The test clock, where there is one.
    clock_now     INTEGER,
    clock_frozen  INTEGER
) STRICT;

CREATE TABLE command_log (
    position  INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL,
    -- 6 bytes time, 10 bytes hash: unique over the log, and append-like in its index.
    id        BLOB NOT NULL,
    time      INTEGER NOT NULL,
    tenant    TEXT NOT NULL,
    verb      TEXT NOT NULL,
    digest    BLOB NOT NULL,
    payload   TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX command_log_id ON command_log (id);

CREATE TABLE audit_log (
    position  INTEGER PRIMARY KEY,
    partition INTEGER NOT NULL,
    time      INTEGER NOT NULL,
    tenant    TEXT NOT NULL,
    actor     TEXT NOT NULL,
    count     INTEGER NOT NULL,
    chain     BLOB NOT NULL,
    events    TEXT NOT NULL
) STRICT;

CREATE TABLE definition (
    key         INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    process_id  TEXT NOT NULL,
    version     INTEGER NOT NULL,
    resource    TEXT NOT NULL,
    checksum    BLOB NOT NULL,
    deployed_at INTEGER NOT NULL,
    xml         BLOB NOT NULL
) STRICT;

CREATE INDEX definition_version ON definition (tenant, process_id, version DESC);

CREATE TABLE start_subscription (
    tenant     TEXT NOT NULL,
    message    TEXT NOT NULL,
    process_id TEXT NOT NULL,
    definition INTEGER NOT NULL,
    element    INTEGER NOT NULL,
    PRIMARY KEY (tenant, message, process_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE scope (
    key               INTEGER PRIMARY KEY,
    root              INTEGER NOT NULL,
    parent            INTEGER NOT NULL,
    definition        INTEGER NOT NULL,
    element           INTEGER NOT NULL,
    state             TEXT NOT NULL,
    active            INTEGER NOT NULL,
    -- [[flow, tokens], ...]
    joins             TEXT NOT NULL,
    -- [[element, entered], ...]
    visits            TEXT NOT NULL,
    lineage           BLOB NOT NULL,
    -- NULL, 'CANCEL', 'COMPLETE' or 'CONTINUE <element>'
    afterwards        TEXT,
    tenant            TEXT,
    process_id        TEXT,
    version           INTEGER,
    started_at        INTEGER,
    ended_at          INTEGER,
    started_position  INTEGER,
    ended_position    INTEGER,
    unique_variable   TEXT,
    unique_value      BLOB,
    start_correlation TEXT,
    steps             INTEGER
) STRICT;

CREATE INDEX scope_inner ON scope (root) WHERE parent <> 0;

CREATE INDEX scope_ended ON scope (ended_at) WHERE state IN ('COMPLETED', 'CANCELED') AND tenant IS NOT NULL;

CREATE TABLE element (
    scope      INTEGER NOT NULL,
    key        INTEGER NOT NULL,
    root       INTEGER NOT NULL,
    element    INTEGER NOT NULL,
    phase      TEXT NOT NULL,
    job        INTEGER NOT NULL,
    incident   INTEGER NOT NULL,
    has_locals INTEGER NOT NULL,
    -- [["timer"|"subscription", key, target element], ...]
    attached   TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE variable (
    scope INTEGER NOT NULL,
    name  TEXT NOT NULL,
    -- Compact JSON; numbers exactly as they came.
    value TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
    key         INTEGER PRIMARY KEY,
    element_key INTEGER NOT NULL,
    scope       INTEGER NOT NULL,
    root        INTEGER NOT NULL,
    definition  INTEGER NOT NULL,
    element     INTEGER NOT NULL,
    tenant      TEXT NOT NULL,
    job_type    TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    rank        INTEGER NOT NULL GENERATED ALWAYS AS (-priority) VIRTUAL,
    state       TEXT NOT NULL,
    retries     INTEGER NOT NULL,
    worker      TEXT NOT NULL,
    lease       INTEGER NOT NULL,
    due         INTEGER NOT NULL,
    steps       INTEGER NOT NULL,
    headers     TEXT NOT NULL,
    lineage     BLOB NOT NULL,
    completion  BLOB
) STRICT;

CREATE INDEX job_root ON job (root);

CREATE INDEX job_ready ON job (tenant, job_type, rank) WHERE state = 'READY';

CREATE INDEX job_lease ON job (due) WHERE state = 'ACTIVATED';

CREATE INDEX job_backoff ON job (due) WHERE state = 'BACKOFF';

CREATE INDEX job_finished ON job (due) WHERE state IN ('COMPLETED', 'CANCELED');

CREATE TABLE step (
    job    INTEGER NOT NULL,
    name   TEXT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE timer (
    key      INTEGER PRIMARY KEY,
    host     INTEGER NOT NULL,
    scope    INTEGER NOT NULL,
    root     INTEGER NOT NULL,
    target   INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    repeats  INTEGER NOT NULL,
    interval TEXT NOT NULL
) STRICT;

CREATE INDEX timer_due ON timer (due);

CREATE INDEX timer_root ON timer (root);

CREATE TABLE subscription (
    key             INTEGER PRIMARY KEY,
    host            INTEGER NOT NULL,
    scope           INTEGER NOT NULL,
    root            INTEGER NOT NULL,
    tenant          TEXT NOT NULL,
    process_id      TEXT NOT NULL,
    message         TEXT NOT NULL,
    correlation_key TEXT NOT NULL,
    target          INTEGER NOT NULL
) STRICT;

CREATE INDEX subscription_message ON subscription (tenant, message, correlation_key);

CREATE INDEX subscription_root ON subscription (root);

CREATE TABLE message (
    key             INTEGER PRIMARY KEY,
    tenant          TEXT NOT NULL,
    name            TEXT NOT NULL,
    correlation_key TEXT NOT NULL,
    expires_at      INTEGER NOT NULL,
    -- [process id, ...]
    correlated      TEXT NOT NULL,
    -- A JSON object; numbers exactly as they came.
    variables       TEXT NOT NULL
) STRICT;

CREATE INDEX message_buffered ON message (tenant, name, correlation_key);

CREATE INDEX message_expiry ON message (expires_at);

CREATE TABLE messages_received (
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    message_id TEXT NOT NULL,
    key        INTEGER NOT NULL,
    content    BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name, message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_received_expiry ON messages_received (expires_at, key);

CREATE TABLE start_lock (
    tenant          TEXT NOT NULL,
    process_id      TEXT NOT NULL,
    correlation_key TEXT NOT NULL,
    root            INTEGER NOT NULL,
    PRIMARY KEY (tenant, process_id, correlation_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE uniqueness (
    tenant     TEXT NOT NULL,
    process_id TEXT NOT NULL,
    variable   TEXT NOT NULL,
    value      BLOB NOT NULL,
    root       INTEGER NOT NULL,
    PRIMARY KEY (tenant, process_id, variable, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE incident (
    key         INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    root        INTEGER NOT NULL,
    scope       INTEGER NOT NULL,
    element_key INTEGER NOT NULL,
    element_id  TEXT NOT NULL,
    job         INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    message     TEXT NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX incident_root ON incident (root);

CREATE TABLE follow_up (
    key             INTEGER PRIMARY KEY,
    root            INTEGER NOT NULL,
    scope           INTEGER NOT NULL,
    -- 'ARRIVE', 'TERMINATE', 'START_NEXT' or 'MATCH_BUFFERED' (element: the subscription)
    work            TEXT NOT NULL,
    element         INTEGER,
    flow            INTEGER,
    tenant          TEXT,
    process_id      TEXT,
    message         TEXT,
    correlation_key TEXT
) STRICT;

CREATE TABLE outbox (
    position    INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    sink        TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    order_key   INTEGER NOT NULL,
    topic       TEXT NOT NULL,
    event_id    TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    state       TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    last_error  TEXT,
    retry_at    INTEGER NOT NULL,
    shipped_at  INTEGER NOT NULL,
    claim_owner BLOB,
    claim_until INTEGER NOT NULL,
    envelope    BLOB NOT NULL,
    PRIMARY KEY (position, n, sink)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_unsent ON outbox (sink, position, n) WHERE state <> 'shipped';

CREATE INDEX outbox_shipped ON outbox (shipped_at) WHERE state = 'shipped';

CREATE TABLE idempotency_record (
    slot        INTEGER PRIMARY KEY,
    id          BLOB NOT NULL,
    tenant      TEXT NOT NULL,
    key         TEXT NOT NULL,
    key_hash    BLOB NOT NULL,
    route       TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    mac_key_id  INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    -- 'COMPLETED', 'STARTED', 'IN_PROGRESS' or 'UNKNOWN'
    state       TEXT NOT NULL,
    -- COMPLETED: the answer; headers as [[name, value], ...].
    status      INTEGER,
    headers     TEXT,
    body        BLOB,
    -- STARTED: the instance whose end gives the answer.
    subject     INTEGER,
    -- IN_PROGRESS: who runs it, and until when; UNKNOWN: since when.
    owner       BLOB,
    lease_until INTEGER,
    since       INTEGER
) STRICT;

CREATE UNIQUE INDEX idempotency_record_id ON idempotency_record (id);

CREATE TABLE idempotency_event (
    minute   INTEGER NOT NULL,
    tenant   TEXT NOT NULL,
    key_hash BLOB NOT NULL,
    -- 'REPLAY', 'CONFLICT', 'IN_PROGRESS', 'MESSAGE' or 'JOB'
    kind     TEXT NOT NULL,
    route    TEXT NOT NULL,
    count    INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    PRIMARY KEY (minute, tenant, key_hash, kind, route)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER command_log_no_update BEFORE UPDATE ON command_log
BEGIN
    SELECT raise(ABORT, 'command_log is append-only');
END;

CREATE TRIGGER command_log_no_delete BEFORE DELETE ON command_log
WHEN old.position >= coalesce((SELECT value FROM meta WHERE name = 'archive_before'), 0)
BEGIN
    SELECT raise(ABORT, 'command_log is append-only');
END;

CREATE TRIGGER command_log_no_replace BEFORE INSERT ON command_log
WHEN EXISTS (SELECT 1 FROM command_log WHERE position = new.position OR id = new.id)
BEGIN
    SELECT raise(IGNORE);
END;

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
BEGIN
    SELECT raise(ABORT, 'audit_log is append-only');
END;

CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log
WHEN EXISTS (SELECT 1 FROM audit_log WHERE position = new.position)
BEGIN
    SELECT raise(IGNORE);
END;

CREATE VIEW audit_events AS
SELECT 'ev-' || a.partition || '-' || a.position || iif(e.key = 0, '', '-' || (e.key + 1)) AS event_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', a.time / 1000.0, 'unixepoch') AS time,
       a.tenant,
       a.actor,
       json_extract(e.value, '$.type') AS type,
       json_extract(e.value, '$.resource') AS resource,
       json_extract(e.value, '$.root') AS root,
       json_extract(e.value, '$.payload') AS payload
FROM audit_log AS a, json_each(a.events) AS e;

CREATE VIEW commands AS
SELECT 'ev-' || partition || '-' || position AS event_id,
       lower(hex(id)) AS command_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time,
       tenant,
       verb,
       payload,
       lower(hex(digest)) AS digest
FROM command_log;

CREATE VIEW instances AS
SELECT key,
       tenant,
       process_id,
       version,
       iif(state = 'TERMINATING', 'ACTIVE', state) AS state,
       strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
       iif(ended_at = 0, NULL, strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000.0, 'unixepoch')) AS ended_at,
       (SELECT json_group_object(name, json(value)) FROM variable WHERE variable.scope = scope.key) AS variables
FROM scope
WHERE parent = 0;

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
BEGIN
    SELECT raise(ABORT, 'audit_log is append-only');
END;

CREATE TABLE handover (
    subscription    INTEGER NOT NULL,
    message         INTEGER NOT NULL,
    root            INTEGER NOT NULL,
    tenant          TEXT NOT NULL,
    process_id      TEXT NOT NULL,
    name            TEXT NOT NULL,
    correlation_key TEXT NOT NULL,
    expires_at      INTEGER NOT NULL,
    -- A JSON object; numbers exactly as they came.
    variables       TEXT NOT NULL,
    PRIMARY KEY (subscription, message)
) STRICT, WITHOUT ROWID;

CREATE VIEW outbox_messages AS
SELECT '1-' || position || '-' || n || '-' || sink AS id,
       event_id,
       sink,
       tenant,
       topic,
       state,
       attempts,
       last_error,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
       iif(shipped_at = 0, NULL, strftime('%Y-%m-%dT%H:%M:%fZ', shipped_at / 1000.0, 'unixepoch')) AS shipped_at,
       CAST(envelope AS TEXT) AS envelope
FROM outbox;
