//! A ledger on a connection and a thread of its own, as its callers block: the logs and all tables in order, frozen in one
//! snapshot where asked. A frozen one keeps the server from clearing old rows away: it is for checks, not for living in.
//! Every one holds the logs, from its opening to its end: what it reads of them page by page is not dropped meanwhile.
//! Next: `rows.rs` for the columns.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tokio_postgres::Row as SqlRow;
use wf_core::{Partitions, Row, RowId};
use wf_store::{AuditEntry, Ledger, LogRow, Opened, StoreError, Visit};

use crate::connect::{Begin, ConnectError, Connector, Limits, Purpose, Url};
use crate::connection::{Connection, Values};
use crate::open::{OpenError, PostgresStore, partitions_of};
use crate::reads::{database_error, one, store_error};
use crate::rows::{self, TABLES, Table, sql_partition, table_of};
use crate::sql::{Sql, Statements};

impl PostgresStore {
    pub(crate) async fn open_ledger(&self, partition: u16) -> Result<Box<dyn Ledger>, StoreError> {
        let (opened, outcome) = oneshot::channel();
        let ledger =
            PostgresLedger::spawn(vec![self.ledgers.clone()], partition, move |result| drop(opened.send(result)))?;
        outcome.await.unwrap_or_else(|_| Err(gone()))?;
        Ok(Box::new(ledger))
    }
}

/// One partition of a store, to be read only, without a node's part in it. It blocks; no runtime is needed.
pub fn read_only(url: &str, partition: u16) -> Result<PostgresLedger, OpenError> {
    let url = Url::parse(url)?;
    // Whether PgBouncer stands before the server shows when it is spoken to.
    let behind_bouncer = Url { is_bouncer: true, ..url.clone() };
    let connector = |url: &Url| {
        let statements = Statements::of_schema(&url.schema);
        Connector::new(url, "ledger", Purpose::Ledger, Limits::default(), statements).map(Arc::new)
    };
    let (opened, outcome) = mpsc::channel();
    let ways = vec![connector(&url)?, connector(&behind_bouncer)?];
    let ledger = PostgresLedger::spawn(ways, partition, move |result| drop(opened.send(result)))?;
    outcome.recv().unwrap_or_else(|_| Err(gone()))?;
    Ok(ledger)
}

pub struct PostgresLedger {
    asks: Option<mpsc::Sender<Ask>>,
    thread: Option<JoinHandle<()>>,
}

type Ask = Box<dyn for<'s> FnOnce(&'s mut Session) -> Pin<Box<dyn Future<Output = ()> + 's>> + Send>;

fn gone() -> StoreError {
    StoreError("the ledger is closed".to_owned())
}

impl PostgresLedger {
    fn spawn(
        ways: Vec<Arc<Connector>>,
        partition: u16,
        opened: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) -> Result<PostgresLedger, StoreError> {
        let (asks, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new().name("wf-ledger".into());
        let thread = thread.spawn(move || serve(&ways, partition, opened, &inbox)).map_err(store_error)?;
        Ok(PostgresLedger { asks: Some(asks), thread: Some(thread) })
    }

    /// Runs this in the ledger's thread and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, result) = mpsc::channel();
        let ask: Ask = Box::new(move |session| {
            Box::pin(async move {
                let _ = answer.send(work(session).await);
            })
        });
        self.asks.as_ref().ok_or_else(gone)?.send(ask).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())?
    }
}

impl Drop for PostgresLedger {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The first way, and where that one meets PgBouncer the next.
async fn connect(ways: &[Arc<Connector>]) -> Result<(Connection, Begin), ConnectError> {
    let mut ways = ways.iter().peekable();
    loop {
        let Some(way) = ways.next() else { return Err(ConnectError::Url("there is no way to it".to_owned())) };
        match way.connect().await {
            Err(error) if error.is_of_a_bouncer() && ways.peek().is_some() => (),
            made => return Ok((made?, way.begin().clone())),
        }
    }
}

fn serve(
    ways: &[Arc<Connector>],
    partition: u16,
    opened: impl FnOnce(Result<(), StoreError>),
    inbox: &mpsc::Receiver<Ask>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let session = runtime.map_err(store_error).and_then(|runtime| {
        let (connection, begin) = runtime.block_on(connect(ways)).map_err(store_error)?;
        Ok((runtime, Session { connection, partition, begin, within: Within::Nothing }))
    });
    match session {
        Err(error) => opened(Err(error)),
        Ok((runtime, mut session)) => {
            opened(Ok(()));
            while let Ok(ask) = inbox.recv() {
                runtime.block_on(ask(&mut session));
            }
            // Its driver belongs to the runtime.
            runtime.block_on(async { drop(session) });
        }
    }
}

struct Session {
    connection: Connection,
    partition: u16,
    begin: Begin,
    within: Within,
}

/// The transaction that a session is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// The logs cannot be dropped; each statement sees the latest.
    Held,
    /// The same, and all statements see one state.
    Frozen,
}

/// Rows that one step of a walk over a table brings.
const STEP_ROWS: usize = 1000;

impl Session {
    async fn query(&self, sql: Sql, values: Values<'_>) -> Result<Vec<SqlRow>, StoreError> {
        let partition = Values::none().with(sql_partition(self.partition));
        let rows = self.connection.query(sql, partition.and(values)).await;
        rows.map_err(|error| database_error(&error))
    }

    /// As [`Session::query`], of a log: from the first read on none of it is dropped.
    async fn query_log(&mut self, sql: Sql, values: Values<'_>) -> Result<Vec<SqlRow>, StoreError> {
        if self.within == Within::Nothing {
            self.run(&self.begin.write).await?;
            self.hold().await?;
            self.within = Within::Held;
        }
        self.query(sql, values).await
    }

    async fn hold(&self) -> Result<(), StoreError> {
        let held = self.connection.query(Sql::HoldLogs, Values::none()).await;
        held.map(drop).map_err(|error| database_error(&error))
    }

    async fn freeze(&mut self) -> Result<(), StoreError> {
        self.thaw().await?;
        self.run(&self.begin.snapshot).await?;
        // The snapshot is taken by the first read, and with the lock: a log that is dropped before is gone for it as well.
        self.hold().await?;
        self.within = Within::Frozen;
        Ok(())
    }

    async fn thaw(&mut self) -> Result<(), StoreError> {
        if self.within != Within::Nothing {
            self.within = Within::Nothing;
            self.run("ROLLBACK").await?;
        }
        Ok(())
    }

    async fn run(&self, text: &str) -> Result<(), StoreError> {
        self.connection.client().batch_execute(text).await.map_err(|error| database_error(&error))
    }

    /// A cursor over a whole table, in a transaction: of its own, unless everything stands still anyway.
    async fn walk(&self, all: Sql) -> Result<(), StoreError> {
        if self.within == Within::Nothing {
            self.run(&self.begin.snapshot).await?;
        }
        let text = self.connection.statements().sql(all).replace("$1::int2", &self.partition.to_string());
        self.run(&format!("DECLARE walk NO SCROLL CURSOR FOR {text}")).await
    }

    async fn step(&self, table: Table) -> Result<Vec<Row>, StoreError> {
        let fetch = format!("FETCH FORWARD {STEP_ROWS} FROM walk");
        let found = self.connection.client().query_typed(&fetch, &[]).await;
        found.map_err(|error| database_error(&error))?.iter().map(|row| rows::read(table, row)).collect()
    }

    async fn end_walk(&self) -> Result<(), StoreError> {
        self.run(if self.within == Within::Nothing { "COMMIT" } else { "CLOSE walk" }).await
    }
}

impl Ledger for PostgresLedger {
    fn standing(&mut self) -> Result<Opened, StoreError> {
        self.ask(async |session| {
            let found = session.query(Sql::Standing, Values::none()).await?;
            let opened = found.first().map(rows::opened).transpose()?.filter(|opened| opened.fence.epoch > 0);
            opened.ok_or_else(|| StoreError("no server has run on this partition yet".to_owned()))
        })
    }

    fn partitions(&mut self) -> Result<Partitions, StoreError> {
        self.ask(async |session| {
            let found = session.connection.query(Sql::CountPartitions, Values::none()).await;
            let found = found.map_err(|error| database_error(&error))?;
            partitions_of(one(&found)?)?.ok_or_else(|| StoreError("there is no store in this database".to_owned()))
        })
    }

    fn freeze(&mut self) -> Result<(), StoreError> {
        self.ask(async |session| session.freeze().await)
    }

    fn thaw(&mut self) -> Result<(), StoreError> {
        self.ask(async |session| session.thaw().await)
    }

    fn log(&mut self, from: u64, limit: usize) -> Result<Vec<LogRow>, StoreError> {
        self.ask(async move |session| {
            session.query_log(Sql::ScanLog, page(from, limit)).await?.iter().map(log_row).collect()
        })
    }

    fn count_log(&mut self, from: u64) -> Result<u64, StoreError> {
        self.ask(async move |session| {
            let found = session.query_log(Sql::CountLog, Values::none().with(from as i64)).await?;
            found.first().map_or(Ok(0), |row| rows::key(row, 0))
        })
    }

    fn audit(&mut self, from: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.ask(async move |session| {
            session.query_log(Sql::ReadAudit, page(from, limit)).await?.iter().map(audit_entry).collect()
        })
    }

    fn audit_begin(&mut self) -> Result<(u64, [u8; 32]), StoreError> {
        self.ask(async |session| {
            let found = session.query_log(Sql::AuditBegin, Values::none()).await?;
            found.first().map_or(Ok((0, [0; 32])), |row| Ok((rows::key(row, 0)?, rows::hash(row, 1)?)))
        })
    }

    fn rows(&mut self, visit: &mut dyn FnMut(Row) -> Visit) -> Result<(), StoreError> {
        for access in &TABLES {
            let (table, all) = (access.table, access.all);
            self.ask(async move |session| session.walk(all).await)?;
            let is_ended = self.visit(table, visit);
            self.ask(async |session| session.end_walk().await)?;
            if is_ended? {
                break;
            }
        }
        Ok(())
    }

    fn row(&mut self, id: &RowId) -> Result<Option<Row>, StoreError> {
        let id = id.clone();
        self.ask(async move |session| {
            let table = table_of(&id);
            let found = session.query(TABLES[table as usize].get, rows::ids(table, &[&id])).await?;
            found.first().map(|row| rows::read(table, row)).transpose()
        })
    }
}

impl PostgresLedger {
    /// Whether the visit wants no more.
    fn visit(&self, table: Table, visit: &mut dyn FnMut(Row) -> Visit) -> Result<bool, StoreError> {
        loop {
            let rows = self.ask(async move |session| session.step(table).await)?;
            let count = rows.len();
            if rows.into_iter().any(|row| visit(row).is_break()) {
                return Ok(true);
            }
            if count < STEP_ROWS {
                return Ok(false);
            }
        }
    }
}

fn page(from: u64, limit: usize) -> Values<'static> {
    Values::none().with(from as i64).with(i64::try_from(limit).unwrap_or(i64::MAX))
}

fn log_row(row: &SqlRow) -> Result<LogRow, StoreError> {
    Ok(LogRow {
        position: rows::key(row, 0)?,
        id: rows::hash(row, 1)?,
        time: rows::get(row, 2)?,
        tenant: rows::text(row, 3)?,
        verb: rows::text(row, 4)?,
        payload: rows::get(row, 5)?,
        digest: u128::from_be_bytes(rows::hash(row, 6)?),
    })
}

fn audit_entry(row: &SqlRow) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        position: rows::key(row, 0)?,
        time: rows::get(row, 1)?,
        tenant: rows::text(row, 2)?,
        actor: rows::text(row, 3)?,
        events: rows::get(row, 4)?,
        count: rows::number(row, 5)?,
        chain: rows::hash(row, 6)?,
    })
}
