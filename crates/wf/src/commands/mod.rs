//! The commands that are clients of a running server. One file per noun; each calls, then shows.
//! They know the API through `wf_client` only.

mod debug;
mod definitions;
mod explain;
mod instances;
mod jobs;
mod messages;
mod nodes;
mod outbox;
pub mod picture;
mod worker;

use std::time::Duration;

use wf_client::{Client, ClientError, Credentials, Page, Retry};

use crate::cli::{AuditCommand, Command, DebugCommand, LogCommand, OutboxCommand, Remote};
use crate::output::{self, Done, Failure};
use crate::proofs;

pub async fn run(command: Command) -> Done {
    match command {
        Command::Deploy(args) => definitions::deploy(args).await,
        Command::Start(args) => instances::start(args).await,
        Command::Instances(args) => instances::list(args).await,
        Command::Instance(args) => picture::show_instance(args).await,
        Command::Cancel(args) => instances::cancel(args).await,
        Command::Jobs(args) => jobs::list(args).await,
        Command::Worker(args) => worker::run(args).await,
        Command::Message(args) => messages::publish(args).await,
        Command::Incidents(args) => messages::incidents(args).await,
        Command::Resolve(args) => messages::resolve(args).await,
        Command::Nodes(args) => nodes::list(args).await,
        Command::Outbox(args) => match args.command {
            Some(OutboxCommand::Retry(retry)) => outbox::retry(retry).await,
            None => outbox::list(args.state, args.list).await,
        },
        Command::Debug(args) => match args.command {
            DebugCommand::IdempotencyCheck(args) => debug::idempotency_check(args).await,
            DebugCommand::Replay(args) => proofs::replay(args).await,
            DebugCommand::Verify(args) => proofs::verify(args).await,
            DebugCommand::Explain(args) => explain::explain(args).await,
        },
        Command::Audit(args) => match args.command {
            AuditCommand::Verify(args) => proofs::verify_audit(args).await,
            AuditCommand::Export(args) => proofs::export(args).await,
            AuditCommand::Archive(args) => proofs::archive_audit(args).await,
        },
        Command::Log(args) => match args.command {
            LogCommand::Archive(args) => proofs::archive_log(args).await,
        },
        Command::Dev(_)
        | Command::Server(_)
        | Command::Migrate(_)
        | Command::Tenants(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Demo(_)
        | Command::Bench(_)
        | Command::BenchBare(_) => Err(Failure::usage("this command is no client")),
    }
}

/// For somebody who waits at a terminal: long enough for a restart, short enough to hear that nobody is there.
const PATIENCE: Retry = Retry {
    attempts_max: 10,
    elapsed_max: Duration::from_secs(4),
    pause: Duration::from_millis(50),
    pause_max: Duration::from_secs(1),
};

pub(crate) fn connect(remote: &Remote) -> Result<Client, Failure> {
    Ok(patient(remote)?.retry(PATIENCE))
}

/// For workers, which have nothing better to do than to wait.
fn patient(remote: &Remote) -> Result<Client, Failure> {
    let credentials = Credentials { tenant: remote.tenant.clone(), api_key: remote.api_key.clone() };
    Ok(Client::with(&remote.server, &credentials)?)
}

/// Follows a list's pages until `limit` rows; says on stderr where there are more.
async fn pages<T, F>(limit: usize, mut page: impl FnMut(Option<String>) -> F) -> Result<Vec<T>, Failure>
where
    F: Future<Output = Result<Page<T>, ClientError>>,
{
    let (mut rows, mut cursor) = (Vec::new(), None);
    loop {
        let next = page(cursor).await?;
        rows.extend(next.items);
        cursor = next.next_cursor;
        if rows.len() > limit || (rows.len() == limit && cursor.is_some()) {
            rows.truncate(limit);
            output::say(&format!("{limit} rows are shown, there are more (--limit)"));
            return Ok(rows);
        }
        if cursor.is_none() {
            return Ok(rows);
        }
    }
}
