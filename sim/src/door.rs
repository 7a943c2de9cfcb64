//! From a request as a client writes it to the engine and back: JSON read by the real readers, the key's fingerprint, the
//! rendered answer, refusals as the door names them. On the way things get lost. Next: `client.rs`.

use std::sync::Arc;
use std::time::Duration;

use wf_api::{Code, Problem};
use wf_core::rows::Text;
use wf_core::{Command, Key, ids};
use wf_engine::{Ask, OutboxRefusal, Passport, Refusal, Render, Request};
use wf_idempotency::fingerprint::{Fingerprint, MacKey};
use wf_idempotency::record::Answer;
use wf_store::OutboxId;

use crate::node::Life;
use crate::world::{TENANT, World};

/// How long message ids are remembered.
pub const DEDUP_MS: i64 = 3_600_000;

/// What is asked, with the numbers that stand in its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Start,
    Cancel(Key),
    SetVariables(Key),
    Activate,
    Complete(Key),
    CompleteMany,
    Fail(Key),
    Publish,
    Resolve(Key),
    RetryOutbox(OutboxId),
}

/// One request; the same again is the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Credential or worker, as the audit names it.
    pub actor: String,
    pub route: Route,
    pub body: String,
    pub key: Option<String>,
}

/// What the caller gets to hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nobody was there: nothing was sent.
    NoConnection,
    /// Sent, and no answer came: done or not.
    Nothing,
    Answer(Reply),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// A problem's code; empty on success.
    pub code: &'static str,
    pub body: String,
    pub is_replay: bool,
}

impl Reply {
    pub fn is_done(&self) -> bool {
        self.status < 300
    }

    /// It says that trying again with the same key is right.
    pub fn is_passing(&self) -> bool {
        self.status >= 500 || self.code == Code::IdempotencyInProgress.as_str()
    }

    /// It promises that nothing was done.
    pub fn denies_effect(&self) -> bool {
        [Code::Unavailable, Code::Overloaded].iter().any(|code| code.as_str() == self.code)
    }
}

impl Route {
    /// Method, template and path.
    fn names(&self) -> (&'static str, &'static str, String) {
        let keyed = |template: &'static str, key: &Key| ("POST", template, template.replace("{key}", &key.to_string()));
        match self {
            Route::Start => ("POST", "/api/v1/instances", "/api/v1/instances".to_owned()),
            Route::Cancel(key) => keyed("/api/v1/instances/{key}/cancel", key),
            Route::SetVariables(key) => {
                let (_, template, path) = keyed("/api/v1/instances/{key}/variables", key);
                ("PUT", template, path)
            }
            Route::Activate => ("POST", "/api/v1/jobs/activate", "/api/v1/jobs/activate".to_owned()),
            Route::Complete(key) => keyed("/api/v1/jobs/{key}/complete", key),
            Route::CompleteMany => ("POST", "/api/v1/jobs/complete", "/api/v1/jobs/complete".to_owned()),
            Route::Fail(key) => keyed("/api/v1/jobs/{key}/fail", key),
            Route::Publish => ("POST", "/api/v1/messages", "/api/v1/messages".to_owned()),
            Route::Resolve(key) => keyed("/api/v1/incidents/{key}/resolve", key),
            Route::RetryOutbox(id) => {
                let id = wf_api::outbox::id_text(id);
                ("POST", "/api/v1/outbox/{id}/retry", format!("/api/v1/outbox/{id}/retry"))
            }
        }
    }

    fn render(&self) -> Render {
        match self {
            Route::Start => wf_api::instances::render_started,
            Route::Cancel(_) => wf_api::instances::render_canceled,
            Route::SetVariables(_) => wf_api::instances::render_variables_set,
            Route::Activate => wf_api::jobs::render_activated,
            Route::Complete(_) => wf_api::jobs::render_completed,
            Route::CompleteMany => wf_api::jobs::render_completed_many,
            Route::Fail(_) => wf_api::jobs::render_failed,
            Route::Publish => wf_api::messages::render_published,
            Route::Resolve(_) => wf_api::incidents::render_resolved,
            Route::RetryOutbox(_) => wf_api::outbox::render_retried,
        }
    }

    fn read(&self, body: &[u8]) -> Result<(Ask, Duration), Problem> {
        let command: Command = match self {
            Route::Start => wf_api::instances::read_start(body)?,
            Route::Cancel(key) => wf_api::instances::read_cancel(*key, body)?,
            Route::SetVariables(key) => wf_api::instances::read_set_variables(*key, body)?,
            Route::Activate => {
                let poll = wf_api::jobs::read_activate(body)?;
                return Ok((Ask::Command(poll.command), poll.wait));
            }
            Route::Complete(key) => wf_api::jobs::read_complete(*key, body)?,
            Route::CompleteMany => wf_api::jobs::read_complete_many(body)?,
            Route::Fail(key) => wf_api::jobs::read_fail(*key, body)?,
            Route::Publish => wf_api::messages::read_publish(body, DEDUP_MS)?,
            Route::Resolve(key) => wf_api::incidents::read_resolve(*key, body)?,
            Route::RetryOutbox(id) => {
                let force = wf_api::outbox::read_retry(body)?;
                return Ok((Ask::RetryOutbox { id: id.clone(), force }, Duration::ZERO));
            }
        };
        Ok((Ask::Command(command), Duration::ZERO))
    }
}

impl Call {
    /// As the door makes it of method, path and body.
    pub fn fingerprint(&self) -> Fingerprint {
        let (method, _, path) = self.route.names();
        wf_idempotency::fingerprint(&MacKey::new(1, [7; 32]), method, &path, "application/json", self.body.as_bytes())
    }

    /// Where the log says that a command came from this request: see `Context::origin`.
    pub fn origin(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        Some(ids::hex(&ids::hash16(&[key.as_bytes(), &self.fingerprint().0])).to_string())
    }

    fn request(&self, ttl_ms: i64) -> Result<Request, Problem> {
        let (ask, wait) = self.route.read(self.body.as_bytes())?;
        let passport = self.key.as_ref().map(|text| -> Result<Passport, Problem> {
            let key = wf_idempotency::Key::new(text).map_err(|_| Problem::validation("key", text.as_str()))?;
            let key_hash = ids::hash16(&[text.as_bytes()]);
            let (_, route, _) = self.route.names();
            Ok(Passport { key, fingerprint: self.fingerprint(), mac_key_id: 1, key_hash, route, ttl_ms })
        });
        Ok(Request {
            tenant: TENANT.into(),
            actor: Text::from(self.actor.as_str()),
            ask,
            passport: passport.transpose()?,
            wait,
            render: self.route.render(),
        })
    }
}

/// Asks a node, whichever, and waits as long as the caller's patience lasts.
pub async fn ask(world: &Arc<World>, call: &Call, patience_ms: u64) -> Heard {
    let lives: Vec<Life> = world.nodes.iter().filter_map(|node| node.life()).collect();
    if lives.is_empty() {
        return Heard::NoConnection;
    }
    let life = &lives[world.below(lives.len() as u64) as usize];
    world.count("requests");
    let heard = ask_node(world, life, call, patience_ms).await;
    world.say(&call.actor, format_args!("{} {} -> {}", life.pulse.name, call.shown(), heard.shown()));
    heard
}

async fn ask_node(world: &Arc<World>, life: &Life, call: &Call, patience_ms: u64) -> Heard {
    world.sleep(world.below(5)).await;
    if !life.pulse.is_alive() {
        return Heard::NoConnection;
    }
    let asking = async {
        match call.request(world.plan.ttl_ms) {
            Ok(request) => life.engine.submit(request).await.map_err(of_refusal),
            Err(problem) => Err(problem),
        }
    };
    let Ok(result) = tokio::time::timeout(Duration::from_millis(patience_ms), asking).await else {
        world.count("client timeout");
        return Heard::Nothing;
    };
    world.sleep(world.below(5)).await;
    // Its connections ended with it.
    if !life.pulse.is_alive() {
        world.count("connection reset");
        return Heard::Nothing;
    }
    if world.fault("answer lost", 50) {
        return Heard::Nothing;
    }
    Heard::Answer(match result {
        Ok(answered) => reply(&answered.answer, answered.replayed),
        Err(problem) => Reply {
            status: problem.status,
            code: problem.code.as_str(),
            body: String::from_utf8_lossy(&problem.to_json()).into_owned(),
            is_replay: false,
        },
    })
}

fn reply(answer: &Answer, is_replay: bool) -> Reply {
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    Reply { status: answer.status, code: "", body, is_replay }
}

fn of_refusal(refusal: Refusal) -> Problem {
    let code = match &refusal {
        Refusal::Rejected(rejection) => return Problem::from(rejection),
        Refusal::Outbox(OutboxRefusal::PastWindow) => return Problem::validation("force", "must be true"),
        Refusal::Outbox(OutboxRefusal::NotFound) => Code::NotFound,
        Refusal::Clock(_) => Code::NotFound,
        Refusal::Conflict => Code::IdempotencyConflict,
        Refusal::InProgress { .. } => Code::IdempotencyInProgress,
        Refusal::Overloaded => Code::Overloaded,
        Refusal::Unavailable { .. } => Code::Unavailable,
        Refusal::OutcomeUnknown => Code::OutcomeUnknown,
        Refusal::Internal { .. } => Code::Internal,
    };
    Problem::new(code, format!("{refusal:?}"))
}

impl Call {
    fn shown(&self) -> String {
        let (method, _, path) = self.route.names();
        let key = self.key.as_deref().unwrap_or("-");
        format!("{method} {} key={key} {}", path.trim_start_matches("/api/v1"), self.body)
    }
}

impl Heard {
    fn shown(&self) -> String {
        match self {
            Heard::NoConnection => "no connection".to_owned(),
            Heard::Nothing => "no answer".to_owned(),
            Heard::Answer(reply) if reply.is_done() => {
                format!("{}{} {}", reply.status, if reply.is_replay { " replayed" } else { "" }, reply.body)
            }
            Heard::Answer(reply) => format!("{} {}", reply.status, reply.code),
        }
    }
}
