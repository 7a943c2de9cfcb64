//! Proofs over the live store, told line by line while they go on: each on a thread of its own, one at a time.
//! They concern all tenants, so they are an operator's. Next: `wf_engine::proof`.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use wf_api::proofs::{AuditProofOut, ProofLine, ReplayOut, TablesOut};
use wf_api::{Code, Problem};
use wf_engine::proof::{self, Progress, ProofError, Range};
use wf_store::{Ledger, Visit};

use super::health::of_type;
use crate::app::{Doors, ScratchStore, Shared};
use crate::door::{self, Refused};
use crate::params::Params;
use crate::route::{self, Route};

const LINES_TYPE: &str = "application/x-ndjson";
/// Lines that wait for a slow client.
const LINES_MAX: usize = 16;

/// Executes the command log again and compares the digest after every command, and the tables at the end.
#[utoipa::path(get, path = "/api/v1/proofs/replay", tag = "operation",
    params(
        ("partition" = Option<u16>, Query, description = "The first where absent"),
        ("from" = Option<u64>, Query, description = "The first position that is compared"),
        ("to" = Option<u64>, Query, description = "The last one; the tables are compared only at the log's end")
    ),
    responses((status = 200, description = "Lines of JSON", body = ProofLine, content_type = "application/x-ndjson")))]
pub(crate) async fn replay(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let mut params = admitted(&doors, &request, &route::PROVE_REPLAY)?;
    let position = |text: &str| text.parse().ok().filter(|position| *position <= i64::MAX as u64);
    let from = params.parsed("from", position, "a position");
    let to = params.parsed("to", position, "a position");
    let (app, partition) = place(&doors, &mut params);
    params.finish()?;
    let range = Range { from: from.unwrap_or(0), to: to.unwrap_or(u64::MAX), ..Range::default() };
    let scratch = app.scratch.clone().ok_or_else(|| door::not_found("this server keeps no scratch stores"))?;
    start(app, partition, move |mut ledger, tell| {
        let first = ledger.log_begin()?.unwrap_or(0);
        let ScratchStore { store, guard } =
            scratch.open(partition, range.from.max(first)).map_err(ProofError::Scratch)?;
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(ProofError::Thread)?;
        let report = runtime.block_on(proof::replay(ledger, &*store, range, tell));
        drop(store);
        drop(guard);
        Ok(ProofLine::Replay(ReplayOut::from(&report?)))
    })
    .await
}

/// Sums all tables and compares with the digest that the last command left.
#[utoipa::path(get, path = "/api/v1/proofs/tables", tag = "operation",
    params(("partition" = Option<u16>, Query, description = "The first where absent")),
    responses((status = 200, description = "Lines of JSON", body = ProofLine, content_type = "application/x-ndjson")))]
pub(crate) async fn tables(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let mut params = admitted(&doors, &request, &route::PROVE_TABLES)?;
    let (app, partition) = place(&doors, &mut params);
    params.finish()?;
    start(app, partition, |mut ledger, tell| {
        Ok(ProofLine::Tables(TablesOut::from(&proof::verify_tables(&mut *ledger, tell)?)))
    })
    .await
}

/// Holds the audit against the command log, and its hash chain against its head.
#[utoipa::path(get, path = "/api/v1/proofs/audit", tag = "operation",
    params(("partition" = Option<u16>, Query, description = "The first where absent")),
    responses((status = 200, description = "Lines of JSON", body = ProofLine, content_type = "application/x-ndjson")))]
pub(crate) async fn audit(State(doors): State<Doors>, request: Request) -> Result<Response, Refused> {
    let mut params = admitted(&doors, &request, &route::PROVE_AUDIT)?;
    let (app, partition) = place(&doors, &mut params);
    params.finish()?;
    start(app, partition, |mut ledger, tell| {
        Ok(ProofLine::Audit(AuditProofOut::from(&proof::verify_audit(&mut *ledger, tell)?)))
    })
    .await
}

fn admitted(doors: &Doors, request: &Request, route: &Route) -> Result<Params, Refused> {
    doors.auth.admit(request.headers(), route.permission)?;
    Ok(Params::of(request.uri())?)
}

/// Each partition is proven alone; whichever node is asked reads it from the store.
fn place<'d>(doors: &'d Doors, params: &mut Params) -> (&'d Shared, u16) {
    let known = |text: &str| {
        let partition = text.parse().ok()?;
        Some((doors.of_partition(partition)?, partition))
    };
    let first = doors.any();
    params.parsed("partition", known, "a partition's number").unwrap_or((first, first.node.partitions().first()))
}

async fn start<P>(app: &Shared, partition: u16, prove: P) -> Result<Response, Refused>
where
    P: FnOnce(Box<dyn Ledger>, proof::Tell<'_>) -> Result<ProofLine, ProofError> + Send + 'static,
{
    let busy = || Problem::new(Code::Overloaded, "another proof is under way: one at a time").retry_after_ms(1_000);
    let permit = app.proving.clone().try_acquire_owned().map_err(|_| busy())?;
    let ledger = app.node.store().ledger(partition).await?;
    let (lines, told) = mpsc::channel(LINES_MAX);
    let thread = std::thread::Builder::new().name("wf-proof".to_owned());
    let run = move || run(ledger, prove, &lines, permit);
    thread.spawn(run).map_err(|_| Problem::new(Code::Unavailable, "no thread can be started"))?;
    let body = futures_util::stream::unfold(told, |mut told| async move { Some((told.recv().await?, told)) });
    Ok(of_type(LINES_TYPE, Body::from_stream(body)))
}

fn run<P>(
    ledger: Box<dyn Ledger>,
    prove: P,
    lines: &mpsc::Sender<Result<Bytes, std::io::Error>>,
    permit: OwnedSemaphorePermit,
) where
    P: FnOnce(Box<dyn Ledger>, proof::Tell<'_>) -> Result<ProofLine, ProofError>,
{
    // A slow client misses a word about the progress; one that has gone away ends the proof.
    let mut tell = |progress: Progress| match lines.try_send(Ok(encoded(&ProofLine::Progress(progress.into())))) {
        Err(TrySendError::Closed(_)) => Visit::Break(()),
        Ok(()) | Err(TrySendError::Full(_)) => Visit::Continue(()),
    };
    let line = prove(ledger, &mut tell).unwrap_or_else(|error| ProofLine::Failed(error.to_string()));
    // The next one may begin as soon as the client has read the end of this one.
    drop(permit);
    let _ = lines.blocking_send(Ok(encoded(&line)));
}

fn encoded(line: &ProofLine) -> Bytes {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text.into()
}
