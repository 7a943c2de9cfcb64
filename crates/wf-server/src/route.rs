//! The routes by name: who may use them, whether a key makes them repeatable, what their bodies are.
//! It does not serve them. Next: `routes/*.rs`; `openapi.rs` holds this list and the document together.

/// What a credential needs one role for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Definitions, instances, incidents.
    Read,
    ReadJobs,
    /// Audit, outbox, keys: what an operator or auditor looks at.
    Observe,
    /// Start, cancel, set variables, publish messages.
    Use,
    /// Take and finish jobs.
    Work,
    /// Deploy, resolve incidents, ship again, set the clock, look at the nodes.
    Operate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    None,
    Json,
    /// XML, or several files as `multipart/form-data`.
    Bpmn,
}

/// One method of one path template.
#[derive(Debug)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub permission: Permission,
    /// `Idempotency-Key` is honoured; elsewhere it is not even looked at.
    pub is_keyed: bool,
    pub media: Media,
}

const fn read(path: &'static str, permission: Permission) -> Route {
    Route { method: "GET", path, permission, is_keyed: false, media: Media::None }
}

const fn post(path: &'static str, permission: Permission) -> Route {
    Route { method: "POST", path, permission, is_keyed: true, media: Media::Json }
}

const fn put(path: &'static str, permission: Permission) -> Route {
    Route { method: "PUT", path, permission, is_keyed: false, media: Media::Json }
}

pub const DEPLOY: Route = Route { media: Media::Bpmn, ..post("/api/v1/definitions", Permission::Operate) };
pub const DEFINITIONS: Route = read("/api/v1/definitions", Permission::Read);
pub const DEFINITION: Route = read("/api/v1/definitions/{id}", Permission::Read);
pub const DEFINITION_XML: Route = read("/api/v1/definitions/{id}/xml", Permission::Read);

pub const START: Route = post("/api/v1/instances", Permission::Use);
pub const INSTANCES: Route = read("/api/v1/instances", Permission::Read);
pub const INSTANCE: Route = read("/api/v1/instances/{key}", Permission::Read);
pub const CANCEL: Route = post("/api/v1/instances/{key}/cancel", Permission::Use);
pub const SET_VARIABLES: Route = Route { is_keyed: true, ..put("/api/v1/instances/{key}/variables", Permission::Use) };

pub const ACTIVATE: Route = post("/api/v1/jobs/activate", Permission::Work);
pub const JOBS: Route = read("/api/v1/jobs", Permission::ReadJobs);
pub const COMPLETE: Route = post("/api/v1/jobs/{key}/complete", Permission::Work);
pub const COMPLETE_MANY: Route = post("/api/v1/jobs/complete", Permission::Work);
pub const FAIL: Route = post("/api/v1/jobs/{key}/fail", Permission::Work);
pub const ERROR: Route = post("/api/v1/jobs/{key}/error", Permission::Work);
pub const EXTEND: Route = post("/api/v1/jobs/{key}/extend", Permission::Work);
/// Repeatable by itself: the first write wins.
pub const STEP: Route = put("/api/v1/jobs/{key}/steps/{name}", Permission::Work);

pub const PUBLISH: Route = post("/api/v1/messages", Permission::Use);

pub const INCIDENTS: Route = read("/api/v1/incidents", Permission::Read);
pub const RESOLVE: Route = post("/api/v1/incidents/{key}/resolve", Permission::Operate);

pub const OUTBOX: Route = read("/api/v1/outbox", Permission::Observe);
pub const OUTBOX_RETRY: Route = post("/api/v1/outbox/{id}/retry", Permission::Operate);
pub const AUDIT: Route = read("/api/v1/audit", Permission::Observe);
pub const IDEMPOTENCY: Route = read("/api/v1/idempotency", Permission::Observe);
pub const IDEMPOTENCY_KEY: Route = read("/api/v1/idempotency/{key}", Permission::Observe);
pub const EXPLAIN: Route = read("/api/v1/explain", Permission::Observe);

pub const SET_CLOCK: Route = put("/api/v1/clock", Permission::Operate);
pub const THAW_CLOCK: Route =
    Route { method: "DELETE", media: Media::None, ..put("/api/v1/clock", Permission::Operate) };

pub const NODES: Route = read("/api/v1/nodes", Permission::Operate);

pub const PROVE_REPLAY: Route = read("/api/v1/proofs/replay", Permission::Operate);
pub const PROVE_TABLES: Route = read("/api/v1/proofs/tables", Permission::Operate);
pub const PROVE_AUDIT: Route = read("/api/v1/proofs/audit", Permission::Operate);

/// Those that a credential guards.
pub const ROUTES: [&Route; 32] = [
    &DEPLOY,
    &DEFINITIONS,
    &DEFINITION,
    &DEFINITION_XML,
    &START,
    &INSTANCES,
    &INSTANCE,
    &CANCEL,
    &SET_VARIABLES,
    &ACTIVATE,
    &JOBS,
    &COMPLETE,
    &COMPLETE_MANY,
    &FAIL,
    &ERROR,
    &EXTEND,
    &STEP,
    &PUBLISH,
    &INCIDENTS,
    &RESOLVE,
    &OUTBOX,
    &OUTBOX_RETRY,
    &AUDIT,
    &IDEMPOTENCY,
    &IDEMPOTENCY_KEY,
    &EXPLAIN,
    &SET_CLOCK,
    &THAW_CLOCK,
    &NODES,
    &PROVE_REPLAY,
    &PROVE_TABLES,
    &PROVE_AUDIT,
];
