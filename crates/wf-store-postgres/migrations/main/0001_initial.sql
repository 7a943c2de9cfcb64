-- What the partitions know (partition .. follow_up), what happened (command_log, audit_log), what goes out (outbox), what
-- goes from one partition to another (partition_inbox), and what is remembered of requests (api_idempotency, ...).
-- Every logical row belongs to one partition: it stands first in primary keys and range indexes. Keys fit int8; times are
-- milliseconds since 1970 in UTC; hashes and ids of 16 or 32 bytes are bytea. Texts are compared by their bytes ("C"), as the
-- engine does. The views at the end show ids and times as text.
-- The name of the schema is a parameter: `onceflow` is replaced where another one was chosen.

-- How a statement fails its transaction: OF001 the partition is owned elsewhere, OF002 fewer rows were met than sent.
CREATE FUNCTION onceflow.fail(code text, what text) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = what;
END
$$;

-- For leases of nodes alone: everything else takes its time from commands.
CREATE FUNCTION onceflow.clock_ms() RETURNS bigint
LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Values of the store itself: 'secret:<name>'.
CREATE TABLE onceflow.meta (
    name  text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- Runs of nodes. lease_until is of the database's clock.
CREATE TABLE onceflow.node (
    id          bytea PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    address     text NOT NULL,
    version     text NOT NULL,
    joined_at   bigint NOT NULL,
    lease_until bigint NOT NULL
);

-- The fence: a turn is valid only while epoch and last_position are what its owner thinks they are. Each turn writes its row:
-- no column that changes is indexed and the pages stay empty enough, so that the row is replaced in its page.
CREATE TABLE onceflow.partition (
    id            smallint PRIMARY KEY,
    epoch         bigint NOT NULL,
    last_position bigint NOT NULL,
    next_counter  bigint NOT NULL,
    digest        bytea NOT NULL,
    chain         bytea NOT NULL,
    last_time     bigint NOT NULL,
    -- The test clock, where there is one.
    clock_now     bigint,
    clock_frozen  boolean,
    -- A run of a node; it may be gone.
    owner         bytea
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

-- Commands on their way from one partition to another. Nearly always nearly empty.
CREATE TABLE onceflow.partition_inbox (
    target   smallint NOT NULL,
    source   smallint NOT NULL,
    position bigint NOT NULL,
    n        bigint NOT NULL,
    time     bigint NOT NULL,
    payload  text NOT NULL,
    PRIMARY KEY (target, source, position, n)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);

CREATE INDEX partition_inbox_source ON onceflow.partition_inbox (source, position);

-- Executed commands, append-only. An id begins with 6 bytes of time: so the key that makes it unique over all partitions is
-- the key of the time partitions as well, and its index grows at one end.
CREATE TABLE onceflow.command_log (
    id        bytea NOT NULL,
    partition smallint NOT NULL,
    position  bigint NOT NULL,
    time      bigint NOT NULL,
    tenant    text COLLATE "C" NOT NULL,
    verb      text COLLATE "C" NOT NULL,
    digest    bytea NOT NULL,
    payload   text NOT NULL,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);

CREATE INDEX command_log_position ON onceflow.command_log (partition, position);

-- What has no time partition: a test's clock may stand anywhere.
CREATE TABLE onceflow.command_log_default PARTITION OF onceflow.command_log DEFAULT;

-- All events of one command in one row, append-only.
CREATE TABLE onceflow.audit_log (
    partition smallint NOT NULL,
    position  bigint NOT NULL,
    time      bigint NOT NULL,
    tenant    text COLLATE "C" NOT NULL,
    actor     text COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    chain     bytea NOT NULL,
    events    text NOT NULL,
    PRIMARY KEY (partition, position, time)
) PARTITION BY RANGE (time);

CREATE TABLE onceflow.audit_log_default PARTITION OF onceflow.audit_log DEFAULT;

CREATE TABLE onceflow.definition (
    partition   smallint NOT NULL,
    key         bigint NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    process_id  text COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    resource    text COLLATE "C" NOT NULL,
    checksum    bytea NOT NULL,
    deployed_at bigint NOT NULL,
    xml         bytea NOT NULL,
    PRIMARY KEY (partition, key)
);

CREATE INDEX definition_version ON onceflow.definition (partition, tenant, process_id, (-version), key);

CREATE TABLE onceflow.start_subscription (
    partition  smallint NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    message    text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    definition bigint NOT NULL,
    element    bigint NOT NULL,
    PRIMARY KEY (partition, tenant, message, process_id)
);

-- An instance is the scope with key = root and parent = 0; only there stand the columns from tenant on.
CREATE TABLE onceflow.scope (
    partition         smallint NOT NULL,
    key               bigint NOT NULL,
    root              bigint NOT NULL,
    parent            bigint NOT NULL,
    definition        bigint NOT NULL,
    element           bigint NOT NULL,
    state             text COLLATE "C" NOT NULL,
    active            bigint NOT NULL,
    -- [[flow, tokens], ...]
    joins             text NOT NULL,
    -- [[element, entered], ...]
    visits            text NOT NULL,
    lineage           bytea NOT NULL,
    -- NULL, 'CANCEL', 'COMPLETE' or 'CONTINUE <element>'
    afterwards        text,
    tenant            text COLLATE "C",
    process_id        text COLLATE "C",
    version           bigint,
    started_at        bigint,
    ended_at          bigint,
    started_position  bigint,
    ended_position    bigint,
    unique_variable   text COLLATE "C",
    unique_value      bytea,
    start_correlation text COLLATE "C",
    steps             bigint,
    PRIMARY KEY (partition, key)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX scope_inner ON onceflow.scope (partition, root, key) WHERE parent <> 0;
CREATE INDEX scope_started ON onceflow.scope (tenant, started_at, key) WHERE tenant IS NOT NULL;
CREATE INDEX scope_ended ON onceflow.scope (partition, ended_at, key)
    WHERE state IN ('COMPLETED', 'CANCELED') AND tenant IS NOT NULL;

CREATE TABLE onceflow.element (
    partition  smallint NOT NULL,
    scope      bigint NOT NULL,
    key        bigint NOT NULL,
    root       bigint NOT NULL,
    element    bigint NOT NULL,
    phase      text COLLATE "C" NOT NULL,
    job        bigint NOT NULL,
    incident   bigint NOT NULL,
    has_locals boolean NOT NULL,
    -- [["timer"|"subscription", key, target element], ...]
    attached   text NOT NULL,
    PRIMARY KEY (partition, scope, key)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

CREATE TABLE onceflow.variable (
    partition smallint NOT NULL,
    scope     bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    -- Compact JSON; numbers exactly as they came.
    value     text NOT NULL,
    PRIMARY KEY (partition, scope, name)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- Every job is written three times (made, activated, finished) and then deleted.
CREATE TABLE onceflow.jobs (
    partition   smallint NOT NULL,
    key         bigint NOT NULL,
    element_key bigint NOT NULL,
    scope       bigint NOT NULL,
    root        bigint NOT NULL,
    definition  bigint NOT NULL,
    element     bigint NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    job_type    text COLLATE "C" NOT NULL,
    -- The negated priority: the most urgent first.
    rank        bigint NOT NULL,
    state       text COLLATE "C" NOT NULL,
    retries     integer NOT NULL,
    worker      text COLLATE "C" NOT NULL,
    lease       bigint NOT NULL,
    due         bigint NOT NULL,
    steps       bigint NOT NULL,
    headers     text NOT NULL,
    lineage     bytea NOT NULL,
    completion  bytea,
    PRIMARY KEY (partition, key)
) WITH (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX jobs_root ON onceflow.jobs (partition, root, key);
CREATE INDEX jobs_ready ON onceflow.jobs (partition, tenant, job_type, rank, key) WHERE state = 'READY';
CREATE INDEX jobs_lease ON onceflow.jobs (partition, due, key) WHERE state = 'ACTIVATED';
CREATE INDEX jobs_backoff ON onceflow.jobs (partition, due, key) WHERE state = 'BACKOFF';
CREATE INDEX jobs_finished ON onceflow.jobs (partition, due, key) WHERE state IN ('COMPLETED', 'CANCELED');

CREATE TABLE onceflow.step (
    partition smallint NOT NULL,
    job       bigint NOT NULL,
    name      text COLLATE "C" NOT NULL,
    result    text NOT NULL,
    PRIMARY KEY (partition, job, name)
);

CREATE TABLE onceflow.timer (
    partition  smallint NOT NULL,
    key        bigint NOT NULL,
    host       bigint NOT NULL,
    scope      bigint NOT NULL,
    root       bigint NOT NULL,
    target     bigint NOT NULL,
    due        bigint NOT NULL,
    repeats    integer NOT NULL,
    "interval" text COLLATE "C" NOT NULL,
    PRIMARY KEY (partition, key)
);

CREATE INDEX timer_due ON onceflow.timer (partition, due, key);
CREATE INDEX timer_root ON onceflow.timer (partition, root, key);

CREATE TABLE onceflow.subscription (
    partition       smallint NOT NULL,
    key             bigint NOT NULL,
    host            bigint NOT NULL,
    scope           bigint NOT NULL,
    root            bigint NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    process_id      text COLLATE "C" NOT NULL,
    message         text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    target          bigint NOT NULL,
    PRIMARY KEY (partition, key)
);

CREATE INDEX subscription_message ON onceflow.subscription (partition, tenant, message, correlation_key, key);
CREATE INDEX subscription_root ON onceflow.subscription (partition, root, key);

-- Buffered messages.
CREATE TABLE onceflow.message (
    partition       smallint NOT NULL,
    key             bigint NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    name            text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    expires_at      bigint NOT NULL,
    -- [process id, ...]
    correlated      text NOT NULL,
    -- A JSON object; numbers exactly as they came.
    variables       text NOT NULL,
    PRIMARY KEY (partition, key)
);

CREATE INDEX message_buffered ON onceflow.message (partition, tenant, name, correlation_key, key);
CREATE INDEX message_expiry ON onceflow.message (partition, expires_at, key);

-- Message ids of each partition: a repeat of one correlates nothing until it expires.
CREATE TABLE onceflow.messages_received (
    partition  smallint NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    key        bigint NOT NULL,
    content    bytea NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (partition, tenant, name, message_id)
);

CREATE INDEX messages_received_expiry ON onceflow.messages_received (partition, expires_at, key);

-- Message ids over all partitions: which one holds each. Not partitioned by time, as it has to be unique.
CREATE TABLE onceflow.deduplication (
    tenant     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    partition  smallint NOT NULL,
    key        bigint NOT NULL,
    content    bytea NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant, name, message_id)
);

-- Messages that were handed to an instance of another partition and are not settled yet.
CREATE TABLE onceflow.handover (
    partition       smallint NOT NULL,
    subscription    bigint NOT NULL,
    message         bigint NOT NULL,
    root            bigint NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    process_id      text COLLATE "C" NOT NULL,
    name            text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    expires_at      bigint NOT NULL,
    -- A JSON object; numbers exactly as they came.
    variables       text NOT NULL,
    PRIMARY KEY (partition, subscription, message)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.01);

CREATE TABLE onceflow.start_lock (
    partition       smallint NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    process_id      text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    root            bigint NOT NULL,
    PRIMARY KEY (partition, tenant, process_id, correlation_key)
);

-- Unique over all partitions: starts are routed by the value, this is the backstop.
CREATE TABLE onceflow.uniqueness (
    tenant     text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    variable   text COLLATE "C" NOT NULL,
    value      bytea NOT NULL,
    partition  smallint NOT NULL,
    root       bigint NOT NULL,
    PRIMARY KEY (tenant, process_id, variable, value)
);

CREATE TABLE onceflow.incident (
    partition   smallint NOT NULL,
    key         bigint NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    root        bigint NOT NULL,
    scope       bigint NOT NULL,
    element_key bigint NOT NULL,
    element_id  text COLLATE "C" NOT NULL,
    job         bigint NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    message     text NOT NULL,
    created_at  bigint NOT NULL,
    PRIMARY KEY (partition, key)
);

CREATE INDEX incident_root ON onceflow.incident (partition, root, key);

-- Work over one command's budget.
CREATE TABLE onceflow.follow_up (
    partition       smallint NOT NULL,
    key             bigint NOT NULL,
    root            bigint NOT NULL,
    scope           bigint NOT NULL,
    -- 'ARRIVE', 'TERMINATE', 'START_NEXT' or 'MATCH_BUFFERED' (element: the subscription)
    work            text COLLATE "C" NOT NULL,
    element         bigint,
    flow            bigint,
    tenant          text COLLATE "C",
    process_id      text COLLATE "C",
    message         text COLLATE "C",
    correlation_key text COLLATE "C",
    PRIMARY KEY (partition, key)
);

-- Messages to the outside. state is 'pending', 'shipped' or 'dead'. Not partitioned by time: a dead letter or a late one
-- would keep its whole time partition, and marks come by the id, which has no time in it.
CREATE TABLE onceflow.outbox (
    partition   smallint NOT NULL,
    position    bigint NOT NULL,
    n           bigint NOT NULL,
    sink        text COLLATE "C" NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    order_key   bigint NOT NULL,
    topic       text COLLATE "C" NOT NULL,
    event_id    text COLLATE "C" NOT NULL,
    created_at  bigint NOT NULL,
    envelope    bytea NOT NULL,
    state       text COLLATE "C" NOT NULL,
    attempts    bigint NOT NULL,
    last_error  text,
    retry_at    bigint NOT NULL,
    shipped_at  bigint NOT NULL,
    claim_owner bytea,
    claim_until bigint NOT NULL,
    PRIMARY KEY (partition, position, n, sink)
) WITH (fillfactor = 80, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);

CREATE INDEX outbox_unsent ON onceflow.outbox (sink, partition, position, n) WHERE state <> 'shipped';
CREATE INDEX outbox_order ON onceflow.outbox (sink, partition, order_key, position, n) WHERE state <> 'shipped';
CREATE INDEX outbox_shipped ON onceflow.outbox (shipped_at) WHERE state = 'shipped';

-- The narrow table of keys. Not partitioned by time: (tenant, key) has to be unique whenever it was used.
CREATE TABLE onceflow.api_idempotency (
    tenant      text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    key_hash    bytea NOT NULL,
    route       text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    mac_key_id  bigint NOT NULL,
    created_at  bigint NOT NULL,
    expires_at  bigint NOT NULL,
    -- 'COMPLETED', 'STARTED', 'IN_PROGRESS' or 'UNKNOWN'
    state       text COLLATE "C" NOT NULL,
    -- COMPLETED: the rest of the answer stands in idempotency_answer.
    status      integer,
    answer_id   bytea,
    -- STARTED: the instance whose end gives the answer.
    subject     bigint,
    -- IN_PROGRESS: who runs it, and until when; UNKNOWN: since when.
    owner       bytea,
    lease_until bigint,
    since       bigint,
    PRIMARY KEY (tenant, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX api_idempotency_expiry ON onceflow.api_idempotency (expires_at);

-- The bytes of answers, dropped by time partitions when the last record in them has expired.
CREATE TABLE onceflow.idempotency_answer (
    expires_at bigint NOT NULL,
    -- Of tenant and key.
    id         bytea NOT NULL,
    -- [[name, value], ...]
    headers    text NOT NULL,
    body       bytea NOT NULL,
    PRIMARY KEY (expires_at, id)
) PARTITION BY RANGE (expires_at);

CREATE TABLE onceflow.idempotency_answer_default PARTITION OF onceflow.idempotency_answer DEFAULT;

-- Repeats and conflicts, counted per minute; they are not part of the log.
CREATE TABLE onceflow.idempotency_event (
    minute   bigint NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    key_hash bytea NOT NULL,
    -- 'REPLAY', 'CONFLICT', 'IN_PROGRESS', 'MESSAGE' or 'JOB'
    kind     text COLLATE "C" NOT NULL,
    route    text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    first    bigint NOT NULL,
    last     bigint NOT NULL,
    PRIMARY KEY (minute, tenant, key_hash, kind, route)
);

-- The logs are append-only, whoever writes. Whole time partitions leave by DROP, which is the schema's owner's act.
CREATE FUNCTION onceflow.refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'OF003';
END
$$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON onceflow.command_log
    FOR EACH ROW EXECUTE FUNCTION onceflow.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON onceflow.audit_log
    FOR EACH ROW EXECUTE FUNCTION onceflow.refuse_change();
-- A trigger of a statement is not inherited by time partitions: see make_time_partition.
CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.command_log
    FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();
CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.command_log_default
    FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();
CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();
CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.audit_log_default
    FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();

-- One time partition, attached so that writers of the others are not kept waiting; left out where the default partition
-- holds rows of its time already or has become big (it is read while nobody may write to it), or where the lock is not to be
-- had at once.
CREATE FUNCTION onceflow.make_time_partition(parent text, part text, lower text, upper text, is_log boolean)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
BEGIN
    IF to_regclass(format('onceflow.%I', part)) IS NOT NULL
       OR pg_relation_size(format('onceflow.%I', parent || '_default')::regclass) > 67108864 THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE onceflow.%I (LIKE onceflow.%I INCLUDING ALL)', part, parent);
    EXECUTE format('ALTER TABLE onceflow.%I ATTACH PARTITION onceflow.%I FOR VALUES FROM (%L) TO (%L)',
                   parent, part, lower, upper);
    IF is_log THEN
        EXECUTE format('CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.%I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change()', part);
    END IF;
    RETURN true;
EXCEPTION
    -- Rows of its time in the default partition; no lock; another node has made it.
    WHEN check_violation OR lock_not_available OR duplicate_table OR invalid_object_definition OR deadlock_detected THEN
        RETURN false;
END
$$;

-- 6 bytes of time at the begin of a command's id.
CREATE FUNCTION onceflow.id_at(ms bigint) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT '\x' || lpad(to_hex(ms), 12, '0') $$;

-- Makes what is missing from now on: logs by weeks, three ahead; answers by the days of their expiry, ten ahead (what is kept
-- for longer stands in the default partition and is swept row by row). The number made.
CREATE FUNCTION onceflow.make_time_partitions(now_ms bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    day_ms  CONSTANT bigint := 86400000;
    week_ms CONSTANT bigint := 7 * day_ms;
    made    bigint := 0;
    at      bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('onceflow'), 2) THEN
        RETURN 0;
    END IF;
    FOR i IN 0..2 LOOP
        at := (now_ms / week_ms + i) * week_ms;
        made := made + onceflow.make_time_partition('command_log', 'command_log_w' || at / week_ms,
                       onceflow.id_at(at), onceflow.id_at(at + week_ms), true)::integer;
        made := made + onceflow.make_time_partition('audit_log', 'audit_log_w' || at / week_ms,
                       at::text, (at + week_ms)::text, true)::integer;
    END LOOP;
    FOR i IN 0..9 LOOP
        at := (now_ms / day_ms + i) * day_ms;
        made := made + onceflow.make_time_partition('idempotency_answer', 'idempotency_answer_d' || at / day_ms,
                       at::text, (at + day_ms)::text, false)::integer;
    END LOOP;
    RETURN made;
END
$$;

-- Drops the answers of days that ended at or before this time. The number of days dropped.
CREATE FUNCTION onceflow.drop_answers(until_ms bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms' AS $$
DECLARE
    day_ms  CONSTANT bigint := 86400000;
    dropped bigint := 0;
    part    text;
BEGIN
    FOR part IN
        SELECT c.relname
        FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'onceflow.idempotency_answer'::regclass AND c.relname ~ '_d[0-9]+$'
          AND (substring(c.relname from '_d([0-9]+)$')::bigint + 1) * day_ms <= until_ms
        ORDER BY 1
    LOOP
        EXECUTE format('DROP TABLE onceflow.%I', part);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
EXCEPTION
    WHEN lock_not_available OR undefined_table OR deadlock_detected THEN
        RETURN 0;
END
$$;

-- For people with a shell. Nothing of the program reads these.
CREATE VIEW onceflow.audit_events AS
SELECT 'ev-' || a.partition || '-' || a.position || CASE WHEN e.n = 1 THEN '' ELSE '-' || e.n END AS event_id,
       to_timestamp(a.time / 1000.0) AS time,
       a.tenant,
       a.actor,
       e.event ->> 'type' AS type,
       e.event ->> 'resource' AS resource,
       e.event ->> 'root' AS root,
       e.event -> 'payload' AS payload
FROM onceflow.audit_log AS a, json_array_elements(a.events::json) WITH ORDINALITY AS e (event, n);

CREATE VIEW onceflow.commands AS
SELECT 'ev-' || partition || '-' || position AS event_id,
       encode(id, 'hex') AS command_id,
       to_timestamp(time / 1000.0) AS time,
       tenant,
       verb,
       payload,
       encode(digest, 'hex') AS digest
FROM onceflow.command_log;

CREATE VIEW onceflow.instances AS
SELECT s.key,
       s.tenant,
       s.process_id,
       s.version,
       CASE s.state WHEN 'TERMINATING' THEN 'ACTIVE' ELSE s.state END AS state,
       to_timestamp(s.started_at / 1000.0) AS started_at,
       CASE WHEN s.ended_at <> 0 THEN to_timestamp(s.ended_at / 1000.0) END AS ended_at,
       (SELECT json_object_agg(v.name, v.value::json)
        FROM onceflow.variable AS v
        WHERE v.partition = s.partition AND v.scope = s.key) AS variables
FROM onceflow.scope AS s
WHERE s.parent = 0;

CREATE VIEW onceflow.outbox_messages AS
SELECT partition || '-' || position || '-' || n || '-' || sink AS id,
       event_id,
       sink,
       tenant,
       topic,
       state,
       attempts,
       last_error,
       to_timestamp(created_at / 1000.0) AS created_at,
       CASE WHEN shipped_at <> 0 THEN to_timestamp(shipped_at / 1000.0) END AS shipped_at,
       convert_from(envelope, 'UTF8') AS envelope
FROM onceflow.outbox;
