//! SQL from a test, in an async test, in a plain one and in a drop: each call runs on a thread and a runtime of its own.

use std::hash::{BuildHasher, RandomState};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// A client whose connection is driven by a task of the current runtime.
pub async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    tokio::spawn(connection);
    client
}

/// Statements separated by semicolons; the rows of all of them as text. A NULL is an empty text.
pub fn execute(url: &str, sql: &str) -> Vec<Vec<String>> {
    try_execute(url, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

pub fn try_execute(url: &str, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let config: Config = url.parse()?;
    blocking(async { rows(&config, sql).await })
}

async fn rows(config: &Config, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let driver = tokio::spawn(connection);
    let messages = client.simple_query(sql).await;
    // The server has let go of the session when the line is closed: the next statement may need it gone.
    drop(client);
    let _ = driver.await;
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    };
    let texts = |row: tokio_postgres::SimpleQueryRow| {
        (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect()
    };
    Ok(messages?.into_iter().filter_map(row).map(texts).collect())
}

fn blocking<T: Send>(work: impl Future<Output = T> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(work)
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A name that no other test has, in whatever process.
pub fn unique(prefix: &str) -> String {
    format!("{prefix}_{}_{:016x}", std::process::id(), random())
}

pub fn random() -> u64 {
    RandomState::new().hash_one(0)
}
