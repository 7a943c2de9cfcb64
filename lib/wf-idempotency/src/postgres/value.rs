//! What goes to the database besides names: the time, and values of a type that only the database knows.

use std::error::Error;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

/// Whose clock counts. All callers of one table must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Now {
    /// The database's: the one clock that all machines share. Read when the statement starts, not when the transaction
    /// did, so that time passes in a long one.
    #[default]
    Database,
    /// The caller's, in Unix milliseconds: for tests, and for services that have one clock of their own.
    At(i64),
}

impl Now {
    /// The parameter that `{now}` reads.
    pub(super) fn given(self) -> Option<i64> {
        match self {
            Now::Database => None,
            Now::At(ms) => Some(ms),
        }
    }
}

/// The time in Unix milliseconds, as an expression over the parameter of that number. It is stable within a statement, so
/// an index serves.
pub(super) fn now_sql(parameter: usize) -> String {
    format!("coalesce(${parameter}, (extract(epoch FROM statement_timestamp()) * 1000)::int8)")
}

/// A value as the database writes it, for a column of any type: uuid, bigint, an enum. With the type `UNKNOWN` the
/// database takes the type from where the value stands, so an index on the column serves.
#[derive(Debug)]
pub(super) struct AsText<'a>(pub &'a str);

impl ToSql for AsText<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}
