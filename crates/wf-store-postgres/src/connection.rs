//! One connection and what it is asked: statements run prepared, or, behind PgBouncer, unnamed with their types. A pipeline
//! sends many before the first answer comes; each is sent at the moment it is added, so that none overtakes another.
//! It knows no table. Next: `pool.rs`, which lends connections out.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::TryStreamExt;
use tokio::task::AbortHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use crate::sql::{Sql, Statements};

/// A value of a parameter; a `Vec` is an array.
pub type Value<'a> = Box<dyn ToSql + Sync + Send + 'a>;

/// The values of a statement's parameters.
#[derive(Default)]
pub struct Values<'a>(pub Vec<Value<'a>>);

impl<'a> Values<'a> {
    pub fn none() -> Values<'a> {
        Values::default()
    }

    pub fn with(mut self, value: impl ToSql + Sync + Send + 'a) -> Values<'a> {
        self.0.push(Box::new(value));
        self
    }

    pub fn and(mut self, more: Values<'a>) -> Values<'a> {
        self.0.extend(more.0);
        self
    }
}

pub struct Connection {
    client: Client,
    statements: Arc<Statements>,
    /// By number; `None` behind PgBouncer, where the next transaction may run on another connection.
    prepared: Option<Mutex<Vec<Option<Statement>>>>,
    driver: AbortHandle,
}

impl Connection {
    pub fn new(client: Client, driver: AbortHandle, statements: Arc<Statements>, keeps_prepared: bool) -> Connection {
        let prepared = keeps_prepared.then(|| Mutex::new(vec![None; statements.len()]));
        Connection { client, statements, prepared, driver }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn statements(&self) -> &Arc<Statements> {
        &self.statements
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether a transaction's settings must be set in it, as the session keeps none.
    pub fn is_bare(&self) -> bool {
        self.prepared.is_none()
    }

    /// One statement by itself.
    pub async fn query(&self, sql: Sql, values: Values<'_>) -> Result<Vec<Row>, Error> {
        self.prepare(&[sql]).await?;
        self.run(sql, values).await
    }

    /// Prepares those that are not yet, so that a pipeline sends each of them at once.
    pub async fn prepare(&self, all: &[Sql]) -> Result<(), Error> {
        let Some(prepared) = &self.prepared else { return Ok(()) };
        let missing: Vec<Sql> = {
            let prepared = prepared.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().copied().filter(|sql| prepared[*sql as usize].is_none()).collect()
        };
        let prepare = |sql| self.client.prepare_typed(self.statements.sql(sql), self.statements.types(sql));
        let made = futures_util::future::try_join_all(missing.iter().map(|sql| prepare(*sql))).await?;
        let mut prepared = prepared.lock().unwrap_or_else(PoisonError::into_inner);
        for (sql, statement) in missing.into_iter().zip(made) {
            prepared[sql as usize] = Some(statement);
        }
        Ok(())
    }

    fn prepared(&self, sql: Sql) -> Option<Statement> {
        let prepared = self.prepared.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        prepared[sql as usize].clone()
    }

    async fn run(&self, sql: Sql, values: Values<'_>) -> Result<Vec<Row>, Error> {
        let rows = match self.prepared(sql) {
            Some(statement) => self.client.query_raw(&statement, values.0).await?,
            None => {
                let typed = values.0.into_iter().zip(self.statements.types(sql).iter().cloned());
                self.client.query_typed_raw(self.statements.sql(sql), typed).await?
            }
        };
        rows.try_collect().await
    }
}

impl Drop for Connection {
    /// Ends the socket at once, whatever was still under way on it.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

type Answer<'c> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'c>>;

enum Slot<'c> {
    Waiting(Answer<'c>),
    Answered(Result<Vec<Row>, Error>),
}

/// Statements under way, in order. Those that it is given must be prepared already.
pub struct Pipeline<'c> {
    connection: &'c Connection,
    slots: Vec<Slot<'c>>,
}

impl<'c> Pipeline<'c> {
    pub fn on(connection: &'c Connection) -> Pipeline<'c> {
        Pipeline { connection, slots: Vec::new() }
    }

    pub fn send(&mut self, sql: Sql, values: Values<'c>) {
        debug_assert!(self.connection.is_bare() || self.connection.prepared(sql).is_some(), "{sql:?} is not prepared");
        let connection = self.connection;
        self.push(Box::pin(connection.run(sql, values)));
    }

    /// Statements without parameters and rows.
    pub fn send_text(&mut self, text: &'c str) {
        let client = &self.connection.client;
        self.push(Box::pin(async move { client.batch_execute(text).await.map(|()| Vec::new()) }));
    }

    /// A future of this client sends when it is first polled, and that is now.
    fn push(&mut self, mut answer: Answer<'c>) {
        let mut context = Context::from_waker(Waker::noop());
        self.slots.push(match answer.as_mut().poll(&mut context) {
            Poll::Pending => Slot::Waiting(answer),
            Poll::Ready(result) => Slot::Answered(result),
        });
    }

    /// All answers, in order. An error of one is not the end of the others: whoever sent them knows what they mean.
    pub async fn answers(self) -> Vec<Result<Vec<Row>, Error>> {
        let mut answers = Vec::with_capacity(self.slots.len());
        for slot in self.slots {
            answers.push(match slot {
                Slot::Waiting(answer) => answer.await,
                Slot::Answered(result) => result,
            });
        }
        answers
    }
}
