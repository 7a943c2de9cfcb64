//! One request on its way to the engine: entered (key syntax, authentication, media type, body), then submitted.
//! It does not know what is asked. Next: `wf_engine::Engine::submit`, or `spread.rs` where there are several partitions;
//! `door.rs` for what comes back.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::http::request::Parts;
use bytes::Bytes;
use wf_api::answer::JSON;
use wf_api::{Code, Problem};
use wf_core::Command;
use wf_core::rows::Text;
use wf_engine::{Answered, Ask, Passport, Refusal, Render, Request as EngineRequest};
use wf_idempotency::key::{self, Key};

use crate::app::{Doors, Shared};
use crate::auth::Visitor;
use crate::body;
use crate::door::{self, Refused, Reply};
use crate::peers::{Mark, Sent};
use crate::route::Route;
use crate::spread;

pub(crate) struct Call {
    pub app: Shared,
    pub route: &'static Route,
    pub visitor: Visitor,
    pub key: Option<Key>,
    pub head: Parts,
    pub body: Bytes,
    /// Another node sent it.
    pub mark: Option<Mark>,
}

/// The order is the contract: key syntax, then who asks, then what.
pub(crate) async fn enter(doors: &Doors, route: &'static Route, request: Request) -> Result<Call, Refused> {
    let (head, body) = request.into_parts();
    let key = doors.keys.read(route, &head.headers)?;
    let visitor = doors.auth.admit(&head.headers, route.permission)?;
    body::content_type(&head.headers, route.media)?;
    let body = body::read(&head.headers, body).await?;
    // Also where it may come to nothing: all nodes must look for it in one place.
    let app = doors.of_tenant(&visitor.tenant, true).await?.clone();
    let mark = marked(&app, &head, &body)?;
    Ok(Call { app, route, visitor, key, head, body, mark })
}

/// Whether another node sent it. Who only claims to be one is told so.
pub(crate) fn marked(app: &Shared, head: &Parts, body: &Bytes) -> Result<Option<Mark>, Problem> {
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let sent = Sent { method: &head.method, path, headers: &head.headers, body };
    app.wire
        .mark(sent)
        .map_err(|()| Problem::new(Code::Forbidden, "only a node of this store can mark a request as forwarded"))
}

impl Call {
    pub async fn command(self, command: Command, render: Render) -> Reply {
        self.submit(Ask::Command(command), Duration::ZERO, render).await
    }

    /// A client that goes away does not undo what it asked for: from here on the engine has it.
    pub async fn submit(self, ask: Ask, wait: Duration, render: Render) -> Reply {
        let request = EngineRequest {
            actor: actor(&self.visitor, &ask),
            tenant: self.visitor.tenant.clone(),
            ask,
            passport: self.passport(),
            wait,
            render,
        };
        match (self.app.node.only_engine(), self.mark) {
            (Some(engine), _) => self.answer(engine.submit(request).await),
            (None, None) => spread::submit(&self, request).await,
            (None, Some(mark)) => spread::submit_marked(&self, request, mark).await,
        }
    }

    pub fn answer(&self, answered: Result<Answered, Refusal>) -> Reply {
        let answered = answered.map_err(|refusal| self.refused(refusal))?;
        if answered.replayed {
            wf_store::failpoint::hit("before-replay");
        }
        Ok(door::respond(answered.answer, answered.replayed))
    }

    pub fn refused(&self, refusal: Refusal) -> Refused {
        Refused(door::of_refusal(refusal, self.app.keys.of(self.route).mismatch_status))
    }

    /// A body without a type was read as JSON, so it counts as JSON.
    fn content_type(&self) -> &str {
        match body::content_type(&self.head.headers, self.route.media) {
            Ok("") | Err(_) => JSON,
            Ok(content_type) => content_type,
        }
    }

    fn passport(&self) -> Option<Passport> {
        let key = self.key.clone()?;
        let content_type = self.content_type();
        let path = self.head.uri.path_and_query().map_or("/", |path| path.as_str());
        let fingerprint =
            wf_idempotency::fingerprint(&self.app.mac, self.head.method.as_str(), path, content_type, &self.body);
        let key_hash = key::hash_for_logs(&self.app.mac_secret, &self.visitor.tenant, &key);
        if key::looks_time_based(&key) {
            warn_of_clock(self.route, &self.visitor.tenant, &key_hash);
        }
        let ttl_ms = self.app.keys.of(self.route).ttl_ms;
        let mac_key_id = self.app.mac.id();
        Some(Passport { key, fingerprint, mac_key_id, key_hash, route: self.route.path, ttl_ms })
    }
}

/// For the audit: the credential, else the worker's own name.
fn actor(visitor: &Visitor, ask: &Ask) -> Text {
    match (&visitor.name, ask) {
        (Some(name), _) => name.clone(),
        (None, Ask::Command(command)) => worker(command).cloned().unwrap_or_else(|| Text::from("anonymous")),
        (None, _) => Text::from("anonymous"),
    }
}

fn worker(command: &Command) -> Option<&Text> {
    match command {
        Command::ActivateJobs { worker, .. } | Command::CompleteJobs { worker, .. } => Some(worker),
        Command::CompleteJob { holder, .. }
        | Command::FailJob { holder, .. }
        | Command::ThrowError { holder, .. }
        | Command::ExtendLease { holder, .. }
        | Command::RecordStep { holder, .. } => Some(&holder.worker),
        _ => None,
    }
}

/// A key made from the clock is new at every retry. Said once a minute at most: a client that does it does it always.
fn warn_of_clock(route: &Route, tenant: &str, key_hash: &[u8; 16]) {
    static LAST_MINUTE: AtomicI64 = AtomicI64::new(0);
    metrics::counter!("wf_api_idempotency_clock_keys_total", "path" => route.path).increment(1);
    let minute = minute_now();
    if LAST_MINUTE.swap(minute, Ordering::Relaxed) != minute {
        let key_hash = key::hex(key_hash);
        tracing::warn!(tenant, route = route.path, key_hash, "an idempotency key looks as if made from the clock");
    }
}

fn minute_now() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (since_1970.as_secs() / 60) as i64
}
