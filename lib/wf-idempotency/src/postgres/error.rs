//! When the machine failed. What a request may expect is a value of its module, never one of these.

use tokio_postgres::error::SqlState;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("failed to ask PostgreSQL")]
    Database(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Name(#[from] super::NameError),
    /// Repeats are fingerprinted with the secret that made the record: keep old secrets as long as records live.
    #[error("failed to compare with a record whose fingerprint was made with secret {0}, which was not given")]
    UnknownMacKey(i64),
    /// Under a stricter level the look-up would see what was there before the lock was granted.
    #[error(
        "failed to look up what was seen: the transaction is {0}, and only READ COMMITTED sees the last holder's rows"
    )]
    Isolation(String),
    #[error("failed to look up {0} keys in one transaction: {max} at most", max = super::seen::KEYS_MAX)]
    TooManyKeys(usize),
    #[error("failed to read a stored row: {0}")]
    Corrupt(&'static str),
}

impl Error {
    /// Begin the transaction again: it lost a race that the database decided (serialization, deadlock).
    pub fn is_retryable(&self) -> bool {
        self.is(&[SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED])
    }

    /// Somebody else's transaction holds the key longer than the caller's `lock_timeout`: the first request still runs.
    pub fn is_busy(&self) -> bool {
        self.is(&[SqlState::LOCK_NOT_AVAILABLE])
    }

    fn is(&self, states: &[SqlState]) -> bool {
        matches!(self, Error::Database(error) if error.code().is_some_and(|code| states.contains(code)))
    }
}
