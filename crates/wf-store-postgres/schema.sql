CREATE OR REPLACE FUNCTION onceflow.archivable_weeks(log text, until_ms bigint)
 RETURNS SETOF bigint
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
DECLARE
    parent regclass := format('onceflow.%I', log);
BEGIN
    -- Said before anything is written to files, which takes its time.
    IF NOT (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = parent) THEN
        RAISE EXCEPTION 'must be owner of %', parent USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
    SELECT w.week
    FROM pg_inherits AS i
         JOIN pg_class AS c ON c.oid = i.inhrelid
         CROSS JOIN LATERAL (SELECT substring(c.relname from '_w([0-9]+)$')::bigint AS week) AS w
    WHERE i.inhparent = parent
      AND (w.week + 1) * 604800000 <= least(until_ms, onceflow.clock_ms() - 86400000)
    ORDER BY 1;
END
$function$;

CREATE OR REPLACE FUNCTION onceflow.clock_ms()
 RETURNS bigint
 LANGUAGE sql
AS $function$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $function$;

CREATE OR REPLACE FUNCTION onceflow.drop_answers(until_ms bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '500ms'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION onceflow.drop_weeks(log text, until_week bigint, partitions smallint[], positions bigint[], chains bytea[])
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '1200ms'
 SET enable_seqscan TO 'off'
AS $function$
DECLARE
    dropped bigint := 0;
    week    bigint;
    part    text;
BEGIN
    EXECUTE format('LOCK TABLE ONLY onceflow.%I IN ACCESS EXCLUSIVE MODE', log);
    INSERT INTO onceflow.archived AS a (log, partition, position, chain)
    SELECT log, unnest(partitions), unnest(positions), unnest(chains)
    ON CONFLICT ON CONSTRAINT archived_pkey DO UPDATE SET position = excluded.position, chain = excluded.chain
    WHERE a.position < excluded.position;
    FOR week IN SELECT onceflow.archivable_weeks(log, until_week * 604800000) LOOP
        part := log || '_w' || week;
        EXECUTE format('ALTER TABLE onceflow.%I DETACH PARTITION onceflow.%I', log, part);
        EXECUTE format('INSERT INTO onceflow.%I SELECT w.* FROM onceflow.partition AS p CROSS JOIN LATERAL ('
                       'SELECT * FROM onceflow.%I AS w WHERE w.partition = p.id AND w.position > coalesce(('
                       'SELECT a.position FROM onceflow.archived AS a WHERE a.log = $1 AND a.partition = p.id), 0)) AS w',
                       log, part) USING log;
        EXECUTE format('DROP TABLE onceflow.%I', part);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$function$;

CREATE OR REPLACE FUNCTION onceflow.fail(code text, what text)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = what;
END
$function$;

CREATE OR REPLACE FUNCTION onceflow.id_at(ms bigint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT '\x' || lpad(to_hex(ms), 12, '0') $function$;

CREATE OR REPLACE FUNCTION onceflow.make_time_partition(parent text, part text, lower text, upper text, is_log boolean)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '500ms'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION onceflow.make_time_partitions(now_ms bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION onceflow.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'OF003';
END
$function$;

CREATE TABLE onceflow.api_idempotency (
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    key_hash bytea NOT NULL,
    route text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    mac_key_id bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    status integer,
    answer_id bytea,
    subject bigint,
    owner bytea,
    lease_until bigint,
    since bigint
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

CREATE TABLE onceflow.archived (
    log text COLLATE "C" NOT NULL,
    partition smallint NOT NULL,
    "position" bigint NOT NULL,
    chain bytea NOT NULL
);

CREATE TABLE onceflow.audit_log (
    partition smallint NOT NULL,
    "position" bigint NOT NULL,
    "time" bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    chain bytea NOT NULL,
    events text NOT NULL
) PARTITION BY RANGE ("time");

CREATE TABLE onceflow.command_log (
    id bytea NOT NULL,
    partition smallint NOT NULL,
    "position" bigint NOT NULL,
    "time" bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    digest bytea NOT NULL,
    payload text NOT NULL
) PARTITION BY RANGE (id);

CREATE TABLE onceflow.database (
    id bytea NOT NULL,
    address text NOT NULL,
    first_partition integer NOT NULL,
    partitions integer NOT NULL
);

CREATE TABLE onceflow.deduplication (
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    partition smallint NOT NULL,
    key bigint NOT NULL,
    content bytea NOT NULL,
    expires_at bigint NOT NULL
);

CREATE TABLE onceflow.definition (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    resource text COLLATE "C" NOT NULL,
    checksum bytea NOT NULL,
    deployed_at bigint NOT NULL,
    xml bytea NOT NULL
);

CREATE TABLE onceflow.element (
    partition smallint NOT NULL,
    scope bigint NOT NULL,
    key bigint NOT NULL,
    root bigint NOT NULL,
    element bigint NOT NULL,
    phase text COLLATE "C" NOT NULL,
    job bigint NOT NULL,
    incident bigint NOT NULL,
    has_locals boolean NOT NULL,
    attached text NOT NULL
) WITH (fillfactor=90, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05);

CREATE TABLE onceflow.follow_up (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    root bigint NOT NULL,
    scope bigint NOT NULL,
    work text COLLATE "C" NOT NULL,
    element bigint,
    flow bigint,
    tenant text COLLATE "C",
    process_id text COLLATE "C",
    message text COLLATE "C",
    correlation_key text COLLATE "C"
);

CREATE TABLE onceflow.handover (
    partition smallint NOT NULL,
    subscription bigint NOT NULL,
    message bigint NOT NULL,
    root bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    variables text NOT NULL
) WITH (autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE onceflow.idempotency_answer (
    expires_at bigint NOT NULL,
    id bytea NOT NULL,
    headers text NOT NULL,
    body bytea NOT NULL
) PARTITION BY RANGE (expires_at);

CREATE TABLE onceflow.idempotency_event (
    minute bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    key_hash bytea NOT NULL,
    kind text COLLATE "C" NOT NULL,
    route text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL
);

CREATE TABLE onceflow.incident (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    root bigint NOT NULL,
    scope bigint NOT NULL,
    element_key bigint NOT NULL,
    element_id text COLLATE "C" NOT NULL,
    job bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    message text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE onceflow.jobs (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    element_key bigint NOT NULL,
    scope bigint NOT NULL,
    root bigint NOT NULL,
    definition bigint NOT NULL,
    element bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    job_type text COLLATE "C" NOT NULL,
    rank bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    retries integer NOT NULL,
    worker text COLLATE "C" NOT NULL,
    lease bigint NOT NULL,
    due bigint NOT NULL,
    steps bigint NOT NULL,
    headers text NOT NULL,
    lineage bytea NOT NULL,
    completion bytea
) WITH (fillfactor=70, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.01, autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_cost_delay=0);

CREATE TABLE onceflow.message (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    correlated text NOT NULL,
    variables text NOT NULL
);

CREATE TABLE onceflow.messages_received (
    partition smallint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    content bytea NOT NULL,
    expires_at bigint NOT NULL
);

CREATE TABLE onceflow.meta (
    name text COLLATE "C" NOT NULL,
    value bytea NOT NULL
);

CREATE TABLE onceflow.migration (
    version integer NOT NULL,
    name text NOT NULL,
    oldest integer NOT NULL,
    applied_at timestamp with time zone NOT NULL
);

CREATE TABLE onceflow.node (
    id bytea NOT NULL,
    name text COLLATE "C" NOT NULL,
    address text NOT NULL,
    version text NOT NULL,
    joined_at bigint NOT NULL,
    lease_until bigint NOT NULL
);

CREATE TABLE onceflow.outbox (
    partition smallint NOT NULL,
    "position" bigint NOT NULL,
    n bigint NOT NULL,
    sink text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    order_key bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    envelope bytea NOT NULL,
    state text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL,
    last_error text,
    retry_at bigint NOT NULL,
    shipped_at bigint NOT NULL,
    claim_owner bytea,
    claim_until bigint NOT NULL
) WITH (fillfactor=80, autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0);

CREATE TABLE onceflow.partition (
    id smallint NOT NULL,
    epoch bigint NOT NULL,
    last_position bigint NOT NULL,
    next_counter bigint NOT NULL,
    digest bytea NOT NULL,
    chain bytea NOT NULL,
    last_time bigint NOT NULL,
    clock_now bigint,
    clock_frozen boolean,
    owner bytea
) WITH (fillfactor=10, autovacuum_vacuum_threshold=500, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_cost_delay=0);

CREATE TABLE onceflow.partition_inbox (
    target smallint NOT NULL,
    source smallint NOT NULL,
    "position" bigint NOT NULL,
    n bigint NOT NULL,
    "time" bigint NOT NULL,
    payload text NOT NULL
) WITH (autovacuum_vacuum_threshold=1000, autovacuum_vacuum_scale_factor=0.01);

CREATE TABLE onceflow.scope (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    root bigint NOT NULL,
    parent bigint NOT NULL,
    definition bigint NOT NULL,
    element bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    active bigint NOT NULL,
    joins text NOT NULL,
    visits text NOT NULL,
    lineage bytea NOT NULL,
    afterwards text,
    tenant text COLLATE "C",
    process_id text COLLATE "C",
    version bigint,
    started_at bigint,
    ended_at bigint,
    started_position bigint,
    ended_position bigint,
    unique_variable text COLLATE "C",
    unique_value bytea,
    start_correlation text COLLATE "C",
    steps bigint
) WITH (fillfactor=85, autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05);

CREATE TABLE onceflow.start_lock (
    partition smallint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    root bigint NOT NULL
);

CREATE TABLE onceflow.start_subscription (
    partition smallint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    definition bigint NOT NULL,
    element bigint NOT NULL
);

CREATE TABLE onceflow.step (
    partition smallint NOT NULL,
    job bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    result text NOT NULL
);

CREATE TABLE onceflow.subscription (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    host bigint NOT NULL,
    scope bigint NOT NULL,
    root bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    message text COLLATE "C" NOT NULL,
    correlation_key text COLLATE "C" NOT NULL,
    target bigint NOT NULL
);

CREATE TABLE onceflow.tenant (
    name text COLLATE "C" NOT NULL,
    database bytea NOT NULL
);

CREATE TABLE onceflow.timer (
    partition smallint NOT NULL,
    key bigint NOT NULL,
    host bigint NOT NULL,
    scope bigint NOT NULL,
    root bigint NOT NULL,
    target bigint NOT NULL,
    due bigint NOT NULL,
    repeats integer NOT NULL,
    "interval" text COLLATE "C" NOT NULL
);

CREATE TABLE onceflow.uniqueness (
    tenant text COLLATE "C" NOT NULL,
    process_id text COLLATE "C" NOT NULL,
    variable text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    partition smallint NOT NULL,
    root bigint NOT NULL
);

CREATE TABLE onceflow.variable (
    partition smallint NOT NULL,
    scope bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    value text NOT NULL
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_analyze_scale_factor=0.05);

CREATE TABLE onceflow.audit_log_default PARTITION OF onceflow.audit_log DEFAULT;

CREATE TABLE onceflow.command_log_default PARTITION OF onceflow.command_log DEFAULT;

CREATE TABLE onceflow.idempotency_answer_default PARTITION OF onceflow.idempotency_answer DEFAULT;

ALTER TABLE onceflow.api_idempotency ADD CONSTRAINT api_idempotency_pkey PRIMARY KEY (tenant, key);

ALTER TABLE onceflow.archived ADD CONSTRAINT archived_pkey PRIMARY KEY (log, partition);

ALTER TABLE onceflow.audit_log ADD CONSTRAINT audit_log_pkey PRIMARY KEY (partition, "position", "time");

ALTER TABLE onceflow.command_log ADD CONSTRAINT command_log_pkey PRIMARY KEY (id);

ALTER TABLE onceflow.database ADD CONSTRAINT database_first_partition_key UNIQUE (first_partition);

ALTER TABLE onceflow.database ADD CONSTRAINT database_has_numbers CHECK (((first_partition > 0) AND (partitions > 0) AND ((first_partition + partitions) <= 4096)));

ALTER TABLE onceflow.database ADD CONSTRAINT database_pkey PRIMARY KEY (id);

ALTER TABLE onceflow.deduplication ADD CONSTRAINT deduplication_pkey PRIMARY KEY (tenant, name, message_id);

ALTER TABLE onceflow.definition ADD CONSTRAINT definition_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.element ADD CONSTRAINT element_pkey PRIMARY KEY (partition, scope, key);

ALTER TABLE onceflow.follow_up ADD CONSTRAINT follow_up_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.handover ADD CONSTRAINT handover_pkey PRIMARY KEY (partition, subscription, message);

ALTER TABLE onceflow.idempotency_answer ADD CONSTRAINT idempotency_answer_pkey PRIMARY KEY (expires_at, id);

ALTER TABLE onceflow.idempotency_event ADD CONSTRAINT idempotency_event_pkey PRIMARY KEY (minute, tenant, key_hash, kind, route);

ALTER TABLE onceflow.incident ADD CONSTRAINT incident_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.jobs ADD CONSTRAINT jobs_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.message ADD CONSTRAINT message_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.messages_received ADD CONSTRAINT messages_received_pkey PRIMARY KEY (partition, tenant, name, message_id);

ALTER TABLE onceflow.meta ADD CONSTRAINT meta_pkey PRIMARY KEY (name);

ALTER TABLE onceflow.migration ADD CONSTRAINT migration_pkey PRIMARY KEY (version);

ALTER TABLE onceflow.node ADD CONSTRAINT node_name_key UNIQUE (name);

ALTER TABLE onceflow.node ADD CONSTRAINT node_pkey PRIMARY KEY (id);

ALTER TABLE onceflow.outbox ADD CONSTRAINT outbox_pkey PRIMARY KEY (partition, "position", n, sink);

ALTER TABLE onceflow.partition ADD CONSTRAINT partition_pkey PRIMARY KEY (id);

ALTER TABLE onceflow.partition_inbox ADD CONSTRAINT partition_inbox_pkey PRIMARY KEY (target, source, "position", n);

ALTER TABLE onceflow.scope ADD CONSTRAINT scope_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.start_lock ADD CONSTRAINT start_lock_pkey PRIMARY KEY (partition, tenant, process_id, correlation_key);

ALTER TABLE onceflow.start_subscription ADD CONSTRAINT start_subscription_pkey PRIMARY KEY (partition, tenant, message, process_id);

ALTER TABLE onceflow.step ADD CONSTRAINT step_pkey PRIMARY KEY (partition, job, name);

ALTER TABLE onceflow.subscription ADD CONSTRAINT subscription_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.tenant ADD CONSTRAINT tenant_database_fkey FOREIGN KEY (database) REFERENCES onceflow.database(id);

ALTER TABLE onceflow.tenant ADD CONSTRAINT tenant_pkey PRIMARY KEY (name);

ALTER TABLE onceflow.timer ADD CONSTRAINT timer_pkey PRIMARY KEY (partition, key);

ALTER TABLE onceflow.uniqueness ADD CONSTRAINT uniqueness_pkey PRIMARY KEY (tenant, process_id, variable, value);

ALTER TABLE onceflow.variable ADD CONSTRAINT variable_pkey PRIMARY KEY (partition, scope, name);

CREATE INDEX api_idempotency_expiry ON onceflow.api_idempotency USING btree (expires_at);

CREATE INDEX command_log_position ON ONLY onceflow.command_log USING btree (partition, "position");

CREATE INDEX definition_version ON onceflow.definition USING btree (partition, tenant, process_id, ((- version)), key);

CREATE INDEX incident_root ON onceflow.incident USING btree (partition, root, key);

CREATE INDEX jobs_backoff ON onceflow.jobs USING btree (partition, due, key) WHERE (state = 'BACKOFF'::text);

CREATE INDEX jobs_finished ON onceflow.jobs USING btree (partition, due, key) WHERE (state = ANY (ARRAY['COMPLETED'::text, 'CANCELED'::text]));

CREATE INDEX jobs_lease ON onceflow.jobs USING btree (partition, due, key) WHERE (state = 'ACTIVATED'::text);

CREATE INDEX jobs_ready ON onceflow.jobs USING btree (partition, tenant, job_type, rank, key) WHERE (state = 'READY'::text);

CREATE INDEX jobs_root ON onceflow.jobs USING btree (root, key);

CREATE INDEX message_buffered ON onceflow.message USING btree (partition, tenant, name, correlation_key, key);

CREATE INDEX message_expiry ON onceflow.message USING btree (partition, expires_at, key);

CREATE INDEX messages_received_expiry ON onceflow.messages_received USING btree (partition, expires_at, key);

CREATE INDEX outbox_order ON onceflow.outbox USING btree (sink, partition, order_key, "position", n) WHERE (state <> 'shipped'::text);

CREATE INDEX outbox_shipped ON onceflow.outbox USING btree (shipped_at) WHERE (state = 'shipped'::text);

CREATE INDEX outbox_unsent ON onceflow.outbox USING btree (sink, partition, "position", n) WHERE (state <> 'shipped'::text);

CREATE INDEX partition_inbox_source ON onceflow.partition_inbox USING btree (source, "position");

CREATE INDEX scope_ended ON onceflow.scope USING btree (partition, ended_at, key) WHERE ((state = ANY (ARRAY['COMPLETED'::text, 'CANCELED'::text])) AND (tenant IS NOT NULL));

CREATE INDEX scope_inner ON onceflow.scope USING btree (partition, root, key) WHERE (parent <> 0);

CREATE INDEX scope_started ON onceflow.scope USING btree (tenant, started_at, key) WHERE (tenant IS NOT NULL);

CREATE INDEX subscription_message ON onceflow.subscription USING btree (partition, tenant, message, correlation_key, key);

CREATE INDEX subscription_root ON onceflow.subscription USING btree (partition, root, key);

CREATE INDEX tenant_by_database ON onceflow.tenant USING btree (database);

CREATE INDEX timer_due ON onceflow.timer USING btree (partition, due, key);

CREATE INDEX timer_root ON onceflow.timer USING btree (partition, root, key);

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON onceflow.audit_log FOR EACH ROW EXECUTE FUNCTION onceflow.refuse_change();

CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.audit_log FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();

CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.audit_log_default FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON onceflow.command_log FOR EACH ROW EXECUTE FUNCTION onceflow.refuse_change();

CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.command_log FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();

CREATE TRIGGER not_truncated BEFORE TRUNCATE ON onceflow.command_log_default FOR EACH STATEMENT EXECUTE FUNCTION onceflow.refuse_change();

CREATE VIEW onceflow.audit_events AS
 SELECT ((('ev-'::text || a.partition) || '-'::text) || a."position") ||
        CASE
            WHEN e.n = 1 THEN ''::text
            ELSE '-'::text || e.n
        END AS event_id,
    to_timestamp((a."time"::numeric / 1000.0)::double precision) AS "time",
    a.tenant,
    a.actor,
    e.event ->> 'type'::text AS type,
    e.event ->> 'resource'::text AS resource,
    e.event ->> 'root'::text AS root,
    e.event -> 'payload'::text AS payload
   FROM onceflow.audit_log a,
    LATERAL json_array_elements(a.events::json) WITH ORDINALITY e(event, n);

CREATE VIEW onceflow.commands AS
 SELECT (('ev-'::text || command_log.partition) || '-'::text) || command_log."position" AS event_id,
    encode(command_log.id, 'hex'::text) AS command_id,
    to_timestamp((command_log."time"::numeric / 1000.0)::double precision) AS "time",
    command_log.tenant,
    command_log.verb,
    command_log.payload,
    encode(command_log.digest, 'hex'::text) AS digest
   FROM onceflow.command_log;

CREATE VIEW onceflow.instances AS
 SELECT s.key,
    s.tenant,
    s.process_id,
    s.version,
        CASE s.state
            WHEN 'TERMINATING'::text THEN 'ACTIVE'::text
            ELSE s.state
        END AS state,
    to_timestamp((s.started_at::numeric / 1000.0)::double precision) AS started_at,
        CASE
            WHEN s.ended_at <> 0 THEN to_timestamp((s.ended_at::numeric / 1000.0)::double precision)
            ELSE NULL::timestamp with time zone
        END AS ended_at,
    ( SELECT json_object_agg(v.name, v.value::json) AS json_object_agg
           FROM onceflow.variable v
          WHERE v.partition = s.partition AND v.scope = s.key) AS variables
   FROM onceflow.scope s
  WHERE s.parent = 0;

CREATE VIEW onceflow.outbox_messages AS
 SELECT (((((outbox.partition || '-'::text) || outbox."position") || '-'::text) || outbox.n) || '-'::text) || outbox.sink AS id,
    outbox.event_id,
    outbox.sink,
    outbox.tenant,
    outbox.topic,
    outbox.state,
    outbox.attempts,
    outbox.last_error,
    to_timestamp((outbox.created_at::numeric / 1000.0)::double precision) AS created_at,
        CASE
            WHEN outbox.shipped_at <> 0 THEN to_timestamp((outbox.shipped_at::numeric / 1000.0)::double precision)
            ELSE NULL::timestamp with time zone
        END AS shipped_at,
    convert_from(outbox.envelope, 'UTF8'::name) AS envelope
   FROM onceflow.outbox;
