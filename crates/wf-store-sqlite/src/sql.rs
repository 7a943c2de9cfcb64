//! The statements: blocks of the files under `sql/`, each with its name. They are found at compile time, so that a
//! misspelt name does not build. `Statements` hands them out prepared. Next: `rows.rs`, which binds them.

use rusqlite::{CachedStatement, Connection};

/// `Sql::X` for each block `-- name: x` of a file; `ALL` for the test that prepares every one.
macro_rules! statements {
    ($($file:literal: { $($variant:ident = $name:literal),* $(,)? })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sql { $($($variant),*),* }

        const TEXTS: &[&str] = &[$($(block(include_str!(concat!("../sql/", $file)), $name)),*),*];

        #[cfg(test)]
        pub const ALL: &[(Sql, &str)] = &[$($((Sql::$variant, $name)),*),*];

        #[cfg(test)]
        pub const FILES: &[&str] = &[$(include_str!(concat!("../sql/", $file))),*];
    };
}

statements! {
    "transaction.sql": {
        BeginRead = "begin_read", BeginWrite = "begin_write", Commit = "commit", Rollback = "rollback",
        Savepoint = "savepoint", Release = "release", RollbackTo = "rollback_to",
    }
    "partition.sql": {
        Fence = "fence", OpenPartition = "open_partition", OtherPartition = "other_partition",
        GetSecret = "get_secret", InsertSecret = "insert_secret",
    }
    "log.sql": {
        InsertCommand = "insert_command", HasCommand = "has_command", InsertAudit = "insert_audit", ScanAudit = "scan_audit",
        GetAudit = "get_audit",
    }
    "ledger.sql": {
        Standing = "standing", ScanLog = "scan_log", CountLog = "count_log", OpenArchive = "open_archive", ArchiveLog = "archive_log",
        ArchiveBegun = "archive_begun", ReadAudit = "read_audit",
        AllDefinitions = "all_definitions", AllStartSubscriptions = "all_start_subscriptions", AllScopes = "all_scopes",
        AllElements = "all_elements", AllVariables = "all_variables", AllJobs = "all_jobs", AllSteps = "all_steps",
        AllTimers = "all_timers", AllSubscriptions = "all_subscriptions", AllMessages = "all_messages",
        AllMessageIds = "all_message_ids", AllStartLocks = "all_start_locks", AllUniques = "all_uniques",
        AllIncidents = "all_incidents", AllFollowUps = "all_follow_ups", AllHandovers = "all_handovers",
    }
    "definition.sql": {
        GetDefinition = "get_definition", InsertDefinition = "insert_definition", UpdateDefinition = "update_definition",
        DeleteDefinition = "delete_definition", DefinitionVersions = "definition_versions",
        DefinitionByVersion = "definition_by_version", ListDefinitions = "list_definitions",
        GetStartSubscription = "get_start_subscription", InsertStartSubscription = "insert_start_subscription",
        UpdateStartSubscription = "update_start_subscription", DeleteStartSubscription = "delete_start_subscription",
        MessageStarts = "message_starts",
    }
    "scope.sql": {
        GetScope = "get_scope", InsertScope = "insert_scope", UpdateScope = "update_scope", DeleteScope = "delete_scope",
        DueEnded = "due_ended", InnerScopes = "inner_scopes", ScanInstances = "scan_instances",
        GetElement = "get_element", InsertElement = "insert_element", UpdateElement = "update_element",
        DeleteElement = "delete_element", Elements = "elements",
        GetVariable = "get_variable", InsertVariable = "insert_variable", UpdateVariable = "update_variable",
        DeleteVariable = "delete_variable", Variables = "variables",
    }
    "job.sql": {
        GetJob = "get_job", InsertJob = "insert_job", UpdateJob = "update_job",
        ReplaceJob = "replace_job", DeleteJob = "delete_job",
        ReadyJobs = "ready_jobs", DueLeases = "due_leases", DueBackoffs = "due_backoffs", DueFinished = "due_finished",
        ScanJobs = "scan_jobs", ScanJobsOfInstance = "scan_jobs_of_instance", JobsOfInstance = "jobs_of_instance",
        CountJobs = "count_jobs", SliceOfJobs = "slice_of_jobs",
        GetStep = "get_step", InsertStep = "insert_step", UpdateStep = "update_step", DeleteStep = "delete_step",
        Steps = "steps",
    }
    "wait.sql": {
        GetTimer = "get_timer", InsertTimer = "insert_timer", UpdateTimer = "update_timer", DeleteTimer = "delete_timer",
        DueTimers = "due_timers", TimersOfInstance = "timers_of_instance",
        GetIncident = "get_incident", InsertIncident = "insert_incident", UpdateIncident = "update_incident",
        DeleteIncident = "delete_incident", ListIncidents = "list_incidents",
        ListIncidentsOfInstance = "list_incidents_of_instance", IncidentsOfInstance = "incidents_of_instance",
        CountIncidents = "count_incidents",
        GetFollowUp = "get_follow_up", InsertFollowUp = "insert_follow_up", UpdateFollowUp = "update_follow_up",
        DeleteFollowUp = "delete_follow_up", FollowUps = "follow_ups",
        GetStartLock = "get_start_lock", InsertStartLock = "insert_start_lock", UpdateStartLock = "update_start_lock",
        DeleteStartLock = "delete_start_lock",
        GetUnique = "get_unique", InsertUnique = "insert_unique", UpdateUnique = "update_unique",
        DeleteUnique = "delete_unique",
    }
    "message.sql": {
        GetSubscription = "get_subscription", InsertSubscription = "insert_subscription",
        UpdateSubscription = "update_subscription", DeleteSubscription = "delete_subscription",
        Subscriptions = "subscriptions", SubscriptionsOfInstance = "subscriptions_of_instance",
        GetMessage = "get_message", InsertMessage = "insert_message", UpdateMessage = "update_message",
        DeleteMessage = "delete_message", Buffered = "buffered", DueMessages = "due_messages",
        GetMessageId = "get_message_id", InsertMessageId = "insert_message_id", UpdateMessageId = "update_message_id",
        DeleteMessageId = "delete_message_id", DueMessageIds = "due_message_ids",
        GetHandover = "get_handover", InsertHandover = "insert_handover", UpdateHandover = "update_handover",
        DeleteHandover = "delete_handover",
    }
    "outbox.sql": {
        InsertOutbox = "insert_outbox", ResetOutbox = "reset_outbox", ReleaseClaims = "release_claims", GetOutbox = "get_outbox", Unsent = "unsent",
        Claim = "claim", MarkShipped = "mark_shipped", MarkRetry = "mark_retry", MarkDead = "mark_dead",
        MarkReleased = "mark_released", OutboxStats = "outbox_stats", ScanOutbox = "scan_outbox",
        SweepOutbox = "sweep_outbox",
    }
    "idempotency.sql": {
        PutRecord = "put_record", GetRecord = "get_record", ScanRecords = "scan_records", CountRecords = "count_records",
        SweepRecords = "sweep_records", AddSuppressed = "add_suppressed", ScanEvents = "scan_events",
        SweepEvents = "sweep_events",
    }
    "trace.sql": {
        GetFiled = "get_filed", FiledAt = "filed_at", LoggedId = "logged_id", LoggedPosition = "logged_position",
        LoggedAt = "logged_at", ScanOfInstance = "scan_of_instance", OutboxOf = "outbox_of", NextMinute = "next_minute",
        RepeatsOf = "repeats_of",
    }
}

impl Sql {
    pub fn text(self) -> &'static str {
        TEXTS[self as usize]
    }
}

/// More than there are statements: none is ever prepared twice on a connection.
pub const CACHE_CAPACITY: usize = 192;
const _: () = assert!(CACHE_CAPACITY > TEXTS.len());

/// Statements of one connection while a job runs: each is looked up in the connection's cache once, not once per row.
pub struct Statements<'c> {
    connection: &'c Connection,
    open: [Option<CachedStatement<'c>>; TEXTS.len()],
}

impl<'c> Statements<'c> {
    pub fn new(connection: &'c Connection) -> Statements<'c> {
        Statements { connection, open: [const { None }; TEXTS.len()] }
    }

    pub fn get(&mut self, sql: Sql) -> rusqlite::Result<&mut CachedStatement<'c>> {
        let slot = &mut self.open[sql as usize];
        match slot {
            Some(statement) => Ok(statement),
            None => Ok(slot.insert(self.connection.prepare_cached(sql.text())?)),
        }
    }

    /// For statements without parameters.
    pub fn run(&mut self, sql: Sql) -> rusqlite::Result<usize> {
        self.get(sql)?.execute([])
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
