-- Stores with several partitions hand messages over to one another. This one has a single partition and no such rows; it
-- keeps them as every store does.
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

-- The API's ids name the partition.
DROP VIEW outbox_messages;

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
