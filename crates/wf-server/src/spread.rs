//! Requests among partitions and nodes: passed on to the owner, looked for from one partition to the next, or done in parts.
//! What another node sent is done here or refused; it never goes on. Next: `peers.rs` for the wire, `wf_cluster` for who
//! owns what.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Limited};
use wf_api::jobs::{self, Part};
use wf_api::{Code, Problem, clock};
use wf_cluster::many::{self, Claim};
use wf_cluster::route::{Parts, Route};
use wf_cluster::{Owner, Patience, Peer, QueueId, Reply as NodeReply, Step};
use wf_core::{Command, Key, Outcome};
use wf_engine::{Answered, Ask, ClockChange, ClockRefusal, Engine, Refusal, Request};
use wf_idempotency::record::Answer;

use crate::call::Call;
use crate::door::{self, Refused, Reply};
use crate::peers::{Mark, NOT_HERE, Passed, Role, Sent};

/// A part's answer is no longer than that of the largest batch.
const PART_BYTES_MAX: usize = 8 << 20;

/// Where an answer came from.
enum Came {
    Here(Answered),
    There(Response),
}

/// Of a request that came from a client.
pub(crate) async fn submit(call: &Call, request: Request) -> Reply {
    match call.app.node.route(&request) {
        Route::At(partition) => call.respond(at(call, partition, &request).await),
        Route::Anywhere { home } => call.respond(at(call, call.app.node.nearest(home), &request).await),
        Route::Search { home } => search(call, request, home).await,
        Route::Parts { leader: Some(leader), .. } => call.respond(lead(call, leader, &request).await),
        Route::Parts { leader: None, parts } => call.respond(split(call, &request, &parts).await.map(Came::Here)),
        Route::Everywhere => call.respond(everywhere(call, &request).await.map(Came::Here)),
    }
}

/// Of a request that another node sent.
pub(crate) async fn submit_marked(call: &Call, request: Request, mark: Mark) -> Reply {
    let node = &call.app.node;
    let patience = node.patience_of_forwarded();
    let here = match (mark.role, node.route(&request)) {
        (Role::Lead, _) => match node.owner(mark.partition, &patience).await {
            Ok(Owner::Here(engine)) => lead_here(call, &engine, &request).await.map(NodeReply::Answered),
            _ => Ok(NodeReply::NotHere),
        },
        (Role::Part, Route::Search { .. }) => return look(call, request, mark.partition, &patience).await,
        (Role::Part, Route::Parts { .. }) => {
            let part = many::part(&request, mark.partition, node.partitions()).unwrap_or(request);
            node.submit(mark.partition, part, &patience).await
        }
        (Role::Part, _) => node.submit(mark.partition, request, &patience).await,
    };
    match here {
        Ok(NodeReply::Answered(answered)) => call.respond(Ok(Came::Here(answered))),
        Ok(NodeReply::Elsewhere(_) | NodeReply::NotHere) => Ok(not_here()),
        Err(refusal) => call.respond(Err(refusal)),
    }
}

fn not_here() -> Response {
    use axum::response::IntoResponse;
    let problem = Problem::new(Code::Unavailable, "the partition is not at this node").retry_after_ms(1_000);
    let mut response = Refused(problem).into_response();
    response.headers_mut().insert(NOT_HERE, axum::http::HeaderValue::from_static("1"));
    response
}

impl Call {
    fn respond(&self, came: Result<Came, Refusal>) -> Reply {
        match came {
            Ok(Came::There(response)) => Ok(response),
            Ok(Came::Here(answered)) => self.answer(Ok(answered)),
            Err(refusal) => self.answer(Err(refusal)),
        }
    }

    fn sent(&self) -> Sent<'_> {
        let path = self.head.uri.path_and_query().map_or("/", |path| path.as_str());
        Sent { method: &self.head.method, path, headers: &self.head.headers, body: &self.body }
    }

    /// `None`: nothing was done there, and the partition has moved.
    async fn pass(
        &self,
        peer: &Peer,
        mark: Mark,
        body: &Bytes,
        patience: &Patience,
    ) -> Result<Option<Response>, Refusal> {
        let node = &self.app.node;
        let left = node.left(mark.partition, peer);
        match self.app.wire.pass(Sent { body, ..self.sent() }, peer, mark, left).await {
            Passed::Answer(response) => Ok(Some(response)),
            Passed::Lost(_) => Err(Refusal::OutcomeUnknown),
            Passed::NotThere(_) => node.moved_from(mark.partition, peer, patience).await.map(|()| None),
        }
    }
}

/// At its partition, wherever that is.
async fn at(call: &Call, partition: u16, request: &Request) -> Result<Came, Refusal> {
    at_within(call, partition, request, &call.body, &call.app.node.patience()).await
}

/// `body`: as it is sent on.
async fn at_within(
    call: &Call,
    partition: u16,
    request: &Request,
    body: &Bytes,
    patience: &Patience,
) -> Result<Came, Refusal> {
    loop {
        let peer = match call.app.node.submit(partition, request.clone(), patience).await? {
            NodeReply::Answered(answered) => return Ok(Came::Here(answered)),
            NodeReply::Elsewhere(peer) => peer,
            NodeReply::NotHere => return Err(unavailable("the partition is not here")),
        };
        let mark = Mark { partition, role: Role::Part };
        if let Some(response) = call.pass(&peer, mark, body, patience).await? {
            return Ok(Came::There(response));
        }
    }
}

/// From one partition to the next, until one has a job or the time is over.
async fn search(call: &Call, mut request: Request, home: Option<u16>) -> Reply {
    let Some(queue) = queue_of(&request) else { return Err(Refused(door::internal("no search"))) };
    let node = &call.app.node;
    let mut search = node.search(queue, home, std::mem::take(&mut request.wait));
    while let Step::Look(partition) = search.next().await {
        match at_within(call, partition, &request, &call.body, &node.impatience()).await {
            Ok(Came::Here(answered)) if is_empty(&answered.answer) => search.found_none(),
            Ok(Came::There(response)) if response.status() == StatusCode::NO_CONTENT => search.found_none(),
            // It changes hands now. Its next owner says when there is something.
            Err(Refusal::Unavailable { .. }) => search.found_none(),
            came => return call.respond(came),
        }
    }
    Ok(door::respond(jobs::render_none(), false))
}

/// One look, for another node's search.
async fn look(call: &Call, mut request: Request, partition: u16, patience: &Patience) -> Reply {
    let Some(queue) = queue_of(&request) else { return Err(Refused(door::internal("no search"))) };
    request.wait = Duration::ZERO;
    let mut search = call.app.node.search(queue, Some(partition), Duration::ZERO);
    // Its home: where it is looked first, and nowhere else.
    search.next().await;
    match call.app.node.submit(partition, request, patience).await {
        Ok(NodeReply::Answered(answered)) if is_empty(&answered.answer) => {
            search.found_none();
            let mut response = Response::default();
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok(response)
        }
        Ok(NodeReply::Answered(answered)) => call.respond(Ok(Came::Here(answered))),
        Ok(NodeReply::Elsewhere(_) | NodeReply::NotHere) => Ok(not_here()),
        Err(refusal) => call.respond(Err(refusal)),
    }
}

fn queue_of(request: &Request) -> Option<QueueId> {
    let Ask::Command(Command::ActivateJobs { job_type, .. }) = &request.ask else { return None };
    Some(QueueId { tenant: request.tenant.clone(), job_type: job_type.clone() })
}

fn is_empty(answer: &Answer) -> bool {
    answer.body == jobs::render_none().body
}

/// A batch without a key over several partitions: each item stands alone, also where its partition cannot be reached.
async fn split(call: &Call, request: &Request, parts: &Parts) -> Result<Answered, Refusal> {
    let done = do_parts(call, request, parts).await;
    if done.iter().all(|(_, part)| part.is_err()) {
        let first = done.into_iter().find_map(|(_, part)| part.err());
        return Err(first.unwrap_or(Refusal::OutcomeUnknown));
    }
    let shown = |part| match part {
        Ok(body) => Part::Done(body),
        Err(refusal) => Part::Refused(String::from_utf8_lossy(&call.refused(refusal).0.to_json()).into_owned()),
    };
    let parts: Vec<_> = done.into_iter().map(|(places, part)| (places, shown(part))).collect();
    let answer = merged(request, &parts)?;
    Ok(Answered { answer, replayed: false })
}

/// Who leads keeps the record.
async fn lead(call: &Call, leader: u16, request: &Request) -> Result<Came, Refusal> {
    let patience = call.app.node.patience();
    loop {
        let peer = match call.app.node.owner(leader, &patience).await? {
            Owner::Here(engine) => return lead_here(call, &engine, request).await.map(Came::Here),
            Owner::Elsewhere(peer) => peer,
            Owner::NotHere => return Err(unavailable("the partition is not here")),
        };
        let mark = Mark { partition: leader, role: Role::Lead };
        if let Some(response) = call.pass(&peer, mark, &call.body, &patience).await? {
            return Ok(Came::There(response));
        }
    }
}

/// Claim, do all parts, finish. What fails on the way is taken up by a repeat: what is done replays.
async fn lead_here(call: &Call, leader: &Engine, request: &Request) -> Result<Answered, Refusal> {
    let Route::Parts { parts, .. } = call.app.node.route(request) else { return Err(Refusal::OutcomeUnknown) };
    let Some(passport) = &request.passport else { return Err(Refusal::OutcomeUnknown) };
    let held = match many::claim(leader, request, passport).await? {
        Claim::Replay(answered) => return Ok(answered),
        Claim::Held(held) => held,
    };
    wf_store::failpoint::hit("after-lead");
    let mut done = Vec::new();
    for (places, part) in do_parts(call, request, &parts).await {
        match part {
            Ok(body) => done.push((places, Part::Done(body))),
            Err(refusal @ (Refusal::InProgress { .. } | Refusal::Conflict)) => return Err(refusal),
            Err(_) => return Err(Refusal::OutcomeUnknown),
        }
    }
    wf_store::failpoint::hit("before-finish");
    many::finish(&**call.app.node.store(), held, merged(request, &done)?).await
}

/// All parts at once. Each is its partition's own request.
async fn do_parts(call: &Call, request: &Request, parts: &Parts) -> Vec<(Vec<usize>, Result<Bytes, Refusal>)> {
    let partitions = call.app.node.partitions();
    let each = parts.iter().map(|(partition, places)| async move {
        let part = many::part(request, *partition, partitions).ok_or(Refusal::OutcomeUnknown);
        let done = async { body_of(at(call, *partition, &part?).await?).await }.await;
        (places.clone(), done)
    });
    join_all(each).await
}

async fn body_of(came: Came) -> Result<Bytes, Refusal> {
    let response = match came {
        Came::Here(answered) => return Ok(answered.answer.body),
        Came::There(response) => response,
    };
    let status = response.status();
    let body = Limited::new(response.into_body(), PART_BYTES_MAX).collect().await;
    let body = body.map_err(|_| Refusal::OutcomeUnknown)?.to_bytes();
    match status {
        StatusCode::OK => Ok(body),
        _ => Err(refusal_of(&body)),
    }
}

/// What another node's problem means here.
fn refusal_of(body: &[u8]) -> Refusal {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    match problem["code"].as_str() {
        Some("overloaded") => Refusal::Overloaded,
        Some("unavailable") => unavailable("another node refused"),
        Some("idempotency-in-progress") => Refusal::InProgress { retry_after_ms: 1_000 },
        Some("idempotency-conflict") => Refusal::Conflict,
        _ => Refusal::OutcomeUnknown,
    }
}

fn merged(request: &Request, parts: &[(Vec<usize>, Part)]) -> Result<Answer, Refusal> {
    let keys: Vec<Key> = match &request.ask {
        Ask::Command(Command::CompleteJobs { items, .. }) => items.iter().map(|item| item.job).collect(),
        _ => Vec::new(),
    };
    jobs::merge_completed_many(&keys, parts).ok_or(Refusal::OutcomeUnknown)
}

/// The test clock: the first partition says what time it is, the others are set to that.
async fn everywhere(call: &Call, request: &Request) -> Result<Answered, Refusal> {
    let node = &call.app.node;
    let first = match at(call, node.partitions().first(), request).await? {
        Came::There(response) if response.status() == StatusCode::BAD_REQUEST => {
            return Err(Refusal::Clock(ClockRefusal::Past));
        }
        came => body_of(came).await?,
    };
    let now = clock::read_set(&first).ok().and_then(|set| set.now).ok_or(Refusal::OutcomeUnknown)?;
    let (ask, body) = match &request.ask {
        Ask::SetClock(ClockChange::Thaw) => (request.ask.clone(), call.body.clone()),
        _ => (Ask::SetClock(ClockChange::To { now }), first),
    };
    let request = &Request { ask, ..request.clone() };
    let (body, patience) = (&body, &node.patience());
    let others = node.partitions().iter().skip(1).map(|partition| at_within(call, partition, request, body, patience));
    for other in join_all(others).await {
        match other {
            Ok(Came::There(response)) if response.status().is_server_error() => return Err(Refusal::OutcomeUnknown),
            // It is later there: it has met a command of its own.
            Ok(_) | Err(Refusal::Clock(ClockRefusal::Past)) => (),
            Err(_) => return Err(Refusal::OutcomeUnknown),
        }
    }
    Ok(Answered { answer: clock::render_set(&Outcome::ClockSet { now }), replayed: false })
}

fn unavailable(reason: &str) -> Refusal {
    Refusal::Unavailable { reason: reason.to_owned() }
}
