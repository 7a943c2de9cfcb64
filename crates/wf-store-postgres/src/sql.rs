//! The statements: blocks of the files under `sql/`, each with its name. They are found at compile time, so that a
//! misspelt name does not build. Each parameter says its type somewhere (`$1::int8[]`): behind PgBouncer nothing
//! stays prepared, and types must be sent along. Rows come as one array per column, which are unnested in a SELECT list, in
//! step: in FROM each would be a function of its own whose rows are put aside first, thrice as dear for a row or two. Pairs
//! of ids, and what needs ORDINALITY, stay in FROM. Next: `connection.rs`, which runs them.

use std::sync::Arc;

use tokio_postgres::types::Type;

use crate::runs::joined;

/// `Sql::X` for each block `-- name: x` of a file, and for each run of blocks; `ALL` for the test that prepares every one.
macro_rules! statements {
    ($($file:literal: { $($variant:ident = $name:literal),* $(,)? })*
     runs: { $($run:ident = $run_name:literal: [$($part:ident),*]),* $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sql { $($($variant),*),*, $($run),* }

        /// Blocks that often stand side by side, in the order in which a turn sends them: see `runs.rs`.
        pub const RUNS: &[(Sql, &[Sql])] = &[$((Sql::$run, &[$(Sql::$part),*])),*];

        const TEXTS: &[&str] = &[$($(const { block(include_str!(concat!("../sql/", $file)), $name) }),*),*];

        #[cfg(test)]
        pub const ALL: &[(Sql, &str)] = &[$($((Sql::$variant, $name)),*),*, $((Sql::$run, $run_name)),*];

        #[cfg(test)]
        pub const FILES: &[&str] = &[$(include_str!(concat!("../sql/", $file))),*];
    };
}

statements! {
    "partition.sql": {
        Fence = "fence", CheckFence = "check_fence", OpenPartition = "open_partition", OwnerOf = "owner_of",
        CountPartitions = "count_partitions", MakePartitions = "make_partitions", LowestTime = "lowest_time",
        GetSecret = "get_secret", InsertSecret = "insert_secret", Inbox = "inbox", Undelivered = "undelivered",
        InsertSent = "insert_sent", Notify = "notify", DeleteTaken = "delete_taken",
    }
    "directory.sql": {
        LockDirectory = "lock_directory", ListDatabases = "list_databases", EnterDatabase = "enter_database",
        HomeOfTenant = "home_of_tenant", KnowsTenant = "knows_tenant", SettleTenant = "settle_tenant",
        ListTenants = "list_tenants", CheckAlone = "check_alone",
    }
    "log.sql": {
        InsertCommand = "insert_command", HasCommand = "has_command", InsertAudit = "insert_audit",
    }
    "ledger.sql": {
        Standing = "standing", HoldLogs = "hold_logs", ScanLog = "scan_log", CountLog = "count_log", ReadAudit = "read_audit", AuditBegin = "audit_begin",
        AllDefinitions = "all_definitions", AllStartSubscriptions = "all_start_subscriptions",
        AllScopes = "all_scopes", AllElements = "all_elements", AllVariables = "all_variables",
        AllJobs = "all_jobs", AllSteps = "all_steps", AllTimers = "all_timers",
        AllSubscriptions = "all_subscriptions", AllMessages = "all_messages", AllMessageIds = "all_message_ids",
        AllStartLocks = "all_start_locks", AllUniques = "all_uniques", AllIncidents = "all_incidents",
        AllFollowUps = "all_follow_ups", AllHandovers = "all_handovers",
    }
    "definition.sql": {
        GetDefinition = "get_definition", InsertDefinition = "insert_definition",
        UpdateDefinition = "update_definition", DeleteDefinition = "delete_definition", Versions = "versions",
        GetStartSubscription = "get_start_subscription", InsertStartSubscription = "insert_start_subscription",
        UpdateStartSubscription = "update_start_subscription",
        DeleteStartSubscription = "delete_start_subscription", MessageStarts = "message_starts",
    }
    "scope.sql": {
        GetScope = "get_scope", InsertScope = "insert_scope", UpdateScope = "update_scope",
        DeleteScope = "delete_scope", DueEnded = "due_ended", GetElement = "get_element",
        InsertElement = "insert_element", UpdateElement = "update_element", DeleteElement = "delete_element",
        Elements = "elements", GetVariable = "get_variable", InsertVariable = "insert_variable",
        UpdateVariable = "update_variable", DeleteVariable = "delete_variable", Variables = "variables",
    }
    "job.sql": {
        GetJob = "get_job", InsertJob = "insert_job", UpdateJob = "update_job", DeleteJob = "delete_job",
        ReadyJobs = "ready_jobs", DueLeases = "due_leases", DueBackoffs = "due_backoffs",
        DueFinished = "due_finished", GetStep = "get_step", InsertStep = "insert_step",
        UpdateStep = "update_step", DeleteStep = "delete_step", Steps = "steps",
    }
    "wait.sql": {
        GetTimer = "get_timer", InsertTimer = "insert_timer", UpdateTimer = "update_timer",
        DeleteTimer = "delete_timer", DueTimers = "due_timers", GetStartLock = "get_start_lock",
        InsertStartLock = "insert_start_lock", UpdateStartLock = "update_start_lock",
        DeleteStartLock = "delete_start_lock", GetUnique = "get_unique", InsertUnique = "insert_unique",
        UpdateUnique = "update_unique", DeleteUnique = "delete_unique", GetIncident = "get_incident",
        InsertIncident = "insert_incident", UpdateIncident = "update_incident",
        DeleteIncident = "delete_incident", GetFollowUp = "get_follow_up", InsertFollowUp = "insert_follow_up",
        UpdateFollowUp = "update_follow_up", DeleteFollowUp = "delete_follow_up", FollowUps = "follow_ups",
    }
    "message.sql": {
        GetHandover = "get_handover", InsertHandover = "insert_handover", UpdateHandover = "update_handover",
        DeleteHandover = "delete_handover",
        GetSubscription = "get_subscription", InsertSubscription = "insert_subscription",
        UpdateSubscription = "update_subscription", DeleteSubscription = "delete_subscription",
        Subscriptions = "subscriptions", GetMessage = "get_message", InsertMessage = "insert_message",
        UpdateMessage = "update_message", DeleteMessage = "delete_message", Buffered = "buffered",
        DueMessages = "due_messages", GetMessageId = "get_message_id", InsertMessageId = "insert_message_id",
        UpdateMessageId = "update_message_id", DeleteMessageId = "delete_message_id",
        DueMessageIds = "due_message_ids", NoteMessageId = "note_message_id",
        ForgetMessageId = "forget_message_id", ReceivedElsewhere = "received_elsewhere",
    }
    "outbox.sql": {
        InsertOutbox = "insert_outbox", ResetOutbox = "reset_outbox", GetOutbox = "get_outbox",
        SweepOutbox = "sweep_outbox", Claim = "claim", WindowEnd = "window_end", Mark = "mark", OutboxStats = "outbox_stats",
    }
    "idempotency.sql": {
        PutRecord = "put_record", ClaimRecord = "claim_record", FinishRecord = "finish_record", PutAnswer = "put_answer", KnownKeys = "known_keys", GetRecord = "get_record",
        AddSuppressed = "add_suppressed", SweepRecords = "sweep_records", SweepAnswers = "sweep_answers",
        SweepEvents = "sweep_events",
    }
    "lists.sql": {
        ListDefinitions = "list_definitions", DefinitionByVersion = "definition_by_version",
        ScanInstances = "scan_instances", VariablesNamed = "variables_named", InstancesAt = "instances_at",
        FindInstance = "find_instance", InnerScopes = "inner_scopes", ElementsOfInstance = "elements_of_instance",
        VariablesOfInstance = "variables_of_instance", JobsOfInstance = "jobs_of_instance",
        TimersOfInstance = "timers_of_instance", SubscriptionsOfInstance = "subscriptions_of_instance",
        IncidentsOfInstance = "incidents_of_instance", ScanJobs = "scan_jobs",
        ScanJobsOfInstance = "scan_jobs_of_instance", JobsAt = "jobs_at", ScanIncidents = "scan_incidents",
        ScanIncidentsOfInstance = "scan_incidents_of_instance", IncidentsAt = "incidents_at",
        ScanOutbox = "scan_outbox", ScanAudit = "scan_audit", AuditAt = "audit_at",
    }
    "uses.sql": {
        RepeatsPerKey = "repeats_per_key", ScanRecords = "scan_records", CountJobs = "count_jobs",
        CountIncidents = "count_incidents", CountRecords = "count_records",
    }
    "trace.sql": {
        FiledAt = "filed_at", LoggedId = "logged_id", LoggedPosition = "logged_position", LoggedAt = "logged_at",
        ScanOfInstance = "scan_of_instance", OutboxOf = "outbox_of", RepeatsOf = "repeats_of",
    }
    "cluster.sql": {
        StrikeOffName = "strike_off_name", StrikeOffDead = "strike_off_dead", Enter = "enter",
        ListNodes = "list_nodes", ListPartitions = "list_partitions", DatabaseClock = "database_clock",
        ReleasePartition = "release_partition", ReleaseAll = "release_all", Leave = "leave",
    }
    "archive.sql": {
        ArchivableWeeks = "archivable_weeks", CommandEnds = "command_ends", AuditEnds = "audit_ends",
        DropWeeks = "drop_weeks",
    }
    "upkeep.sql": {
        MakeTimePartitions = "make_time_partitions", DropAnswers = "drop_answers",
    }
    runs: {
        BeginTurn = "begin_turn": [Fence, InsertCommand, InsertAudit],
        FinishTask = "finish_task": [DeleteElement, UpdateScope, UpdateJob],
        StartTask = "start_task": [InsertScope, InsertElement, InsertVariable, InsertJob],
        PutAnswered = "put_answered": [PutRecord, PutAnswer],
    }
}

/// The schema's name in the files.
pub const SCHEMA: &str = "onceflow";

/// All statements for a schema of some name.
pub struct Statements {
    texts: Vec<Text>,
}

struct Text {
    sql: String,
    types: Vec<Type>,
}

impl Statements {
    pub fn of_schema(schema: &str) -> Arc<Statements> {
        let text = |text: &str| Text { sql: in_schema(text, schema), types: types_of(text) };
        let runs =
            RUNS.iter().map(|(_, parts)| joined(&parts.iter().map(|part| TEXTS[*part as usize]).collect::<Vec<_>>()));
        let texts = TEXTS.iter().map(|block| text(block)).chain(runs.map(|run| text(&run)));
        Arc::new(Statements { texts: texts.collect() })
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn sql(&self, sql: Sql) -> &str {
        &self.texts[sql as usize].sql
    }

    pub fn types(&self, sql: Sql) -> &[Type] {
        &self.texts[sql as usize].types
    }
}

/// Everything is named with its schema: a search path would be state of a session.
pub fn in_schema(text: &str, schema: &str) -> String {
    match schema {
        SCHEMA => text.to_owned(),
        schema => text.replace(&format!("{SCHEMA}."), &format!("{schema}.")),
    }
}

/// The types of a statement's parameters by their numbers: each is told once, `$2::int8`, wherever that is.
pub fn types_of(text: &str) -> Vec<Type> {
    let mut types: Vec<Type> = Vec::new();
    for part in text.split('$').skip(1) {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        let (Ok(number), Some(name)) = (number.parse::<usize>(), rest.strip_prefix("::")) else { continue };
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(name.len());
        types.resize(types.len().max(number), Type::UNKNOWN);
        types[number - 1] = type_named(&name[..end], name[end..].starts_with("[]"));
    }
    types
}

fn type_named(name: &str, is_array: bool) -> Type {
    match (name, is_array) {
        ("int2", false) => Type::INT2,
        ("int2", true) => Type::INT2_ARRAY,
        ("int4", false) => Type::INT4,
        ("int4", true) => Type::INT4_ARRAY,
        ("int8", false) => Type::INT8,
        ("int8", true) => Type::INT8_ARRAY,
        ("text", false) => Type::TEXT,
        ("text", true) => Type::TEXT_ARRAY,
        ("bytea", false) => Type::BYTEA,
        ("bytea", true) => Type::BYTEA_ARRAY,
        ("bool", false) => Type::BOOL,
        ("bool", true) => Type::BOOL_ARRAY,
        // The test that prepares every statement finds it.
        _ => Type::UNKNOWN,
    }
}

/// The text behind `-- name: <name>` up to the next comment line or the file's end.
const fn block(file: &'static str, name: &str) -> &'static str {
    let bytes = file.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if let Some(begin) = name_line(bytes, at, name.as_bytes()) {
            return cut(file, begin, end_of(bytes, begin));
        }
        at = next_line(bytes, at);
    }
    panic!("no block of this name");
}

/// Where the line after `-- name: <name>` begins, if that line stands at `at`.
const fn name_line(bytes: &[u8], at: usize, name: &[u8]) -> Option<usize> {
    const PREFIX: &[u8] = b"-- name: ";
    let end = at + PREFIX.len() + name.len();
    if end >= bytes.len()
        || bytes[end] != b'\n'
        || !stands(bytes, at, PREFIX)
        || !stands(bytes, at + PREFIX.len(), name)
    {
        return None;
    }
    Some(end + 1)
}

const fn end_of(bytes: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while at < bytes.len() && !stands(bytes, at, b"-- ") {
        at = next_line(bytes, at);
    }
    at
}

const fn next_line(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'\n' {
        at += 1;
    }
    at + 1
}

const fn stands(bytes: &[u8], at: usize, what: &[u8]) -> bool {
    let mut i = 0;
    while i < what.len() {
        if at + i >= bytes.len() || bytes[at + i] != what[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn cut(file: &'static str, begin: usize, end: usize) -> &'static str {
    let end = if end > file.len() { file.len() } else { end };
    file.split_at(end).0.split_at(begin).1
}
