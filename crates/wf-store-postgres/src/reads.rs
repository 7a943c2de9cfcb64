//! Statements beside the turns' transactions: one alone, several in one snapshot, several in one small transaction of their
//! own. A connection comes back when all is answered, whatever the answers were. Next: `load.rs`.

use std::future::Future;
use std::time::Duration;

use tokio_postgres::{Error, Row};
use wf_store::StoreError;

use crate::connect::shown;
use crate::connection::{Pipeline, Values};
use crate::pool::Pool;
use crate::rows;
use crate::sql::Sql;

/// A statement with its values.
pub type Asked<'a> = (Sql, Values<'a>);

#[derive(Clone)]
pub struct Reader {
    pool: Pool,
    /// The server gives up before that, where it is there to give up.
    answer_max: Duration,
}

impl Reader {
    pub fn new(pool: Pool, answer_max: Duration) -> Reader {
        Reader { pool, answer_max }
    }

    pub async fn query(&self, sql: Sql, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        let connection = self.pool.get().await.map_err(store_error)?;
        let rows = self.in_time(connection.query(sql, values)).await?;
        connection.give_back();
        rows.map_err(|error| database_error(&error))
    }

    /// A connection on which no answer comes is thrown away.
    async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, StoreError> {
        let limit = self.answer_max;
        let answered = tokio::time::timeout(limit, answer).await;
        answered.map_err(|_| StoreError(format!("no answer came from the database for {limit:?}")))
    }

    /// Each by itself, in one round trip: what they see may be of different moments.
    pub async fn pipelined(&self, asked: Vec<Asked<'_>>) -> Result<Vec<Vec<Row>>, StoreError> {
        self.run(None, asked).await
    }

    /// All of one moment.
    pub async fn snapshot(&self, asked: Vec<Asked<'_>>) -> Result<Vec<Vec<Row>>, StoreError> {
        self.run(Some(&self.pool.begin().snapshot), asked).await
    }

    /// All or none of them.
    pub async fn write(&self, asked: Vec<Asked<'_>>) -> Result<Vec<Vec<Row>>, StoreError> {
        self.run(Some(&self.pool.begin().write), asked).await
    }

    async fn run(&self, begin: Option<&str>, asked: Vec<Asked<'_>>) -> Result<Vec<Vec<Row>>, StoreError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let connection = self.pool.get().await.map_err(store_error)?;
        let all: Vec<Sql> = asked.iter().map(|(sql, _)| *sql).collect();
        self.in_time(connection.prepare(&all)).await?.map_err(|error| database_error(&error))?;
        let mut pipeline = Pipeline::on(&connection);
        if let Some(begin) = begin {
            pipeline.send_text(begin);
        }
        for (sql, values) in asked {
            pipeline.send(sql, values);
        }
        if begin.is_some() {
            pipeline.send_text("COMMIT");
        }
        let answers = self.in_time(pipeline.answers()).await?;
        connection.give_back();
        let rows: Result<Vec<Vec<Row>>, Error> = answers.into_iter().collect();
        let mut rows = rows.map_err(|error| database_error(&error))?;
        if begin.is_some() {
            rows.pop();
            rows.remove(0);
        }
        Ok(rows)
    }
}

/// A value that is made once with the store and kept.
pub async fn secret(reader: &Reader, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
    let name = format!("secret:{name}");
    let insert = (Sql::InsertSecret, Values::none().with(name.clone()).with(fresh.to_vec()));
    reader.write(vec![insert]).await?;
    let found = reader.query(Sql::GetSecret, Values::none().with(name)).await?;
    rows::hash(one(&found)?, 0)
}

pub fn one(rows: &[Row]) -> Result<&Row, StoreError> {
    rows.first().ok_or_else(|| StoreError("a row was expected and none came".to_owned()))
}

pub fn database_error(error: &Error) -> StoreError {
    StoreError(shown(error))
}

pub fn store_error(error: impl std::fmt::Display) -> StoreError {
    StoreError(error.to_string())
}
