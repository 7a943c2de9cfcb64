//! P7: a row goes from one state to another by compare-and-swap. Of two that want the same step one does it, and the other
//! is told what it found. Works on your own table, whatever the types of its columns: values go as the database writes
//! them (`"17"`, `"paid"`, a uuid), and its indexes serve.
//!
//! A state that comes back (open → closed → open) does not tell one visit from the next: there compare a version column
//! that only grows.

use super::name::fill;
use super::value::AsText;
use super::{Column, Error, Table};
use tokio_postgres::GenericClient;
use tokio_postgres::types::Type;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// We did it.
    Done,
    /// It was there already: our own step, whose answer was lost, or another's.
    Already,
    /// It is in this state, which is neither; an absent text is NULL.
    Other(Option<String>),
    /// There is no such row.
    Missing,
}

/// The statements for one state column. Make it once.
#[derive(Clone, Debug)]
pub struct Transitions {
    swap: String,
    look: String,
}

impl Transitions {
    /// `key` must be unique: the primary key, or a column with an index that says so.
    pub fn new(table: &Table, key: &Column, state: &Column) -> Transitions {
        let filled = |sql: &str| fill(sql, &[("{table}", table), ("{key}", key), ("{state}", state)]);
        Transitions { swap: filled(SWAP), look: filled(LOOK) }
    }

    /// In your transaction, together with what the step means; or alone, where the step is all.
    pub async fn swap(
        &self,
        client: &(impl GenericClient + Sync),
        key: &str,
        from: &str,
        to: &str,
    ) -> Result<Swap, Error> {
        let [key, from, wanted] = [key, from, to].map(AsText);
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
            [(&key, Type::UNKNOWN), (&from, Type::UNKNOWN), (&wanted, Type::UNKNOWN)];
        if client.execute_typed(&self.swap, &parameters).await? > 0 {
            return Ok(Swap::Done);
        }
        // A statement of its own: it sees what the one that was faster has committed.
        let Some(row) = client.query_typed_opt(&self.look, &parameters[..1]).await? else { return Ok(Swap::Missing) };
        let found: Option<String> = row.try_get(0)?;
        Ok(if found.as_deref() == Some(to) { Swap::Already } else { Swap::Other(found) })
    }
}

/// One step, for those who take few.
pub async fn compare_and_swap(
    client: &(impl GenericClient + Sync),
    (table, key, state): (&Table, &Column, &Column),
    row: &str,
    from: &str,
    to: &str,
) -> Result<Swap, Error> {
    Transitions::new(table, key, state).swap(client, row, from, to).await
}

const SWAP: &str = "UPDATE {table} SET {state} = $3 WHERE {key} = $1 AND {state} = $2";
const LOOK: &str = "SELECT {state}::text FROM {table} WHERE {key} = $1";
