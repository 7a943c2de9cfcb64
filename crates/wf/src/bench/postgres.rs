//! What this PostgreSQL can do without us: commits of one row each, and the rows of our starts in batches by `unnest`.
//! The tables are a calibration, not the store's schema: the same columns, bytes and indexes, no logic. They stand in a
//! schema of their own, which is dropped at the end.

use std::time::Instant;

use tokio_postgres::{Client, NoTls};

use crate::output::{self, Failure};

use super::load::Random;
use super::machine::{BATCH, MEASURE};

#[derive(Clone, Copy, Debug, Default)]
pub struct Postgres {
    /// Transactions of one row each, by as many connections as the bench has clients.
    pub commits: f64,
    /// Starts whose rows it takes in a second, 64 per transaction, one connection.
    pub starts: f64,
    /// Whole instances of one task: the rows of a start, then those of a completion.
    pub whole: f64,
}

const SCHEMA: &str = "
    DROP SCHEMA IF EXISTS wf_calibration CASCADE;
    CREATE SCHEMA wf_calibration;
    CREATE TABLE wf_calibration.one (id bytea PRIMARY KEY, body bytea NOT NULL);
    CREATE TABLE wf_calibration.record (tenant text, key text, fingerprint bytea NOT NULL, expires_at bigint NOT NULL,
        status int NOT NULL, headers text NOT NULL, body bytea NOT NULL, PRIMARY KEY (tenant, key));
    CREATE INDEX ON wf_calibration.record (expires_at);
    CREATE TABLE wf_calibration.command (position bigint PRIMARY KEY, id bytea NOT NULL UNIQUE, body bytea NOT NULL,
        digest bytea NOT NULL);
    CREATE TABLE wf_calibration.scope (key bigint PRIMARY KEY, tenant text NOT NULL, process text NOT NULL,
        state int NOT NULL, started_at bigint NOT NULL);
    CREATE TABLE wf_calibration.element (key bigint PRIMARY KEY, scope bigint NOT NULL, element_id text NOT NULL,
        state int NOT NULL);
    CREATE TABLE wf_calibration.variable (scope bigint, name text, value text NOT NULL, PRIMARY KEY (scope, name));
    CREATE TABLE wf_calibration.job (key bigint PRIMARY KEY, tenant text NOT NULL, type text NOT NULL, state int NOT NULL,
        priority int NOT NULL, retries int NOT NULL, element bigint NOT NULL) WITH (fillfactor = 70);
    CREATE INDEX ON wf_calibration.job (tenant, type, priority DESC, key) WHERE state = 0;
    CREATE TABLE wf_calibration.audit (position bigint PRIMARY KEY, time bigint NOT NULL, actor text NOT NULL,
        events text NOT NULL, hash bytea NOT NULL);";

const DROP: &str = "DROP SCHEMA IF EXISTS wf_calibration CASCADE";

/// $1 positions, $2 keys, $3 command ids.
const START: [&str; 7] = [
    "INSERT INTO wf_calibration.record
     SELECT 'default', k, decode(repeat('00', 32), 'hex'), p, 201, '', decode(repeat('00', 180), 'hex')
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
    "INSERT INTO wf_calibration.command
     SELECT p, i, decode(repeat('00', 160), 'hex'), decode(repeat('00', 16), 'hex')
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
    "INSERT INTO wf_calibration.scope
     SELECT p, 'default', 'bench-one-task', 0, p FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
    "INSERT INTO wf_calibration.element
     SELECT p, p, 'task', 0 FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
    "INSERT INTO wf_calibration.variable
     SELECT p, v.name, v.value FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i),
            (VALUES ('orderId', '\"o-1\"'), ('amount', '12.50')) AS v (name, value)",
    "INSERT INTO wf_calibration.job
     SELECT p, 'default', 'bench-task', 0, 0, 3, p FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
    "INSERT INTO wf_calibration.audit
     SELECT p, p, 'anonymous', repeat('00', 150), decode(repeat('00', 32), 'hex')
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
];

/// Positions and ids of completions lie beyond those of starts.
const COMPLETION: [&str; 6] = [
    "INSERT INTO wf_calibration.command
     SELECT p + (1::bigint << 40), i || '\\x01', decode(repeat('00', 120), 'hex'), decode(repeat('00', 16), 'hex')
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
    "INSERT INTO wf_calibration.variable
     SELECT p, 'paid', 'true' FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
    "UPDATE wf_calibration.job SET state = 2
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i) WHERE key = p",
    "DELETE FROM wf_calibration.element
     USING unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i) WHERE key = p",
    "UPDATE wf_calibration.scope SET state = 1
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i) WHERE key = p",
    "INSERT INTO wf_calibration.audit
     SELECT p + (1::bigint << 40), p, 'bench-1', repeat('00', 150), decode(repeat('00', 32), 'hex')
     FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS t (p, k, i)",
];

pub async fn measure(url: &str, clients: u32) -> Result<Postgres, Failure> {
    let bar = output::progress(1, "PostgreSQL alone");
    let client = connect(url).await?;
    client.batch_execute(SCHEMA).await.map_err(failed)?;
    let commits = commits(url, clients).await?;
    let starts = batches(&client, &START).await?;
    // The tables of the first run are not those of the second.
    client.batch_execute(SCHEMA).await.map_err(failed)?;
    let whole: Vec<&str> = START.iter().chain(&COMPLETION).copied().collect();
    let whole = batches(&client, &whole).await?;
    client.batch_execute(DROP).await.map_err(failed)?;
    bar.finish_and_clear();
    Ok(Postgres { commits, starts, whole })
}

/// Somebody worked on it: what is measured there would be measured on what they left, and written beside it.
pub async fn is_used(url: &str) -> Result<bool, Failure> {
    let client = connect(url).await?;
    let stands = "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'onceflow' AND tablename = 'command_log')";
    if !client.query_one(stands, &[]).await.map_err(failed)?.get::<_, bool>(0) {
        return Ok(false);
    }
    let used = "SELECT EXISTS (SELECT FROM onceflow.command_log WHERE verb <> 'open-epoch')";
    Ok(client.query_one(used, &[]).await.map_err(failed)?.get(0))
}

/// Bytes of the table of jobs with its indexes, and its dead rows as the statistics have them.
pub async fn size_of_jobs(url: &str) -> Result<(u64, u64), Failure> {
    let sql = "SELECT pg_total_relation_size(relid), n_dead_tup FROM pg_stat_user_tables
               WHERE schemaname = 'onceflow' AND relname = 'jobs'";
    let row = connect(url).await?.query_one(sql, &[]).await.map_err(failed)?;
    let number = |column: usize| u64::try_from(row.get::<_, i64>(column)).unwrap_or(0);
    Ok((number(0), number(1)))
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
    tokio::spawn(connection);
    Ok(client)
}

fn failed(error: tokio_postgres::Error) -> Failure {
    let reason = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
    Failure::work(format!("PostgreSQL alone: {reason}"))
}

/// One row per transaction and connection.
async fn commits(url: &str, clients: u32) -> Result<f64, Failure> {
    let mut tasks = Vec::new();
    for index in 0..clients {
        let client = connect(url).await?;
        tasks.push(tokio::spawn(single(client, index)));
    }
    let started = Instant::now();
    let mut rows = 0;
    for task in tasks {
        rows += task.await.map_err(Failure::work)??;
    }
    Ok(rows as f64 / started.elapsed().as_secs_f64())
}

async fn single(client: Client, index: u32) -> Result<u64, Failure> {
    let insert = "INSERT INTO wf_calibration.one VALUES ($1, decode(repeat('00', 200), 'hex'))";
    let insert = client.prepare(insert).await.map_err(failed)?;
    let (started, mut rows) = (Instant::now(), 0_u64);
    while started.elapsed() < MEASURE {
        let id = [&rows.to_be_bytes()[..], &index.to_be_bytes()].concat();
        rows += client.execute(&insert, &[&id]).await.map_err(failed)?;
    }
    Ok(rows)
}

/// All statements of a transaction go out at once.
async fn batches(client: &Client, statements: &[&str]) -> Result<f64, Failure> {
    let mut prepared = Vec::with_capacity(statements.len());
    for sql in statements {
        prepared.push(client.prepare(sql).await.map_err(failed)?);
    }
    let (begin, commit) =
        (client.prepare("BEGIN").await.map_err(failed)?, client.prepare("COMMIT").await.map_err(failed)?);
    let (mut random, mut next) = (Random(1), 1_u64);
    let started = Instant::now();
    while started.elapsed() < MEASURE {
        let positions: Vec<i64> = (next..next + BATCH).map(|position| position as i64).collect();
        let keys: Vec<String> = positions.iter().map(|_| random.key()).collect();
        let ids: Vec<Vec<u8>> = positions.iter().zip(&keys).map(|(position, key)| command_id(*position, key)).collect();
        let all = prepared.iter().map(|statement| {
            let (positions, keys, ids) = (&positions, &keys, &ids);
            async move { client.execute(statement, &[positions, keys, ids]).await }
        });
        let (begun, rows, committed) = tokio::join!(
            client.execute(&begin, &[]),
            futures_util::future::try_join_all(all),
            client.execute(&commit, &[])
        );
        begun.and(rows.map(drop)).and(committed.map(drop)).map_err(failed)?;
        next += BATCH;
    }
    Ok((next - 1) as f64 / started.elapsed().as_secs_f64())
}

/// Begins with its time, as ours does.
fn command_id(position: i64, key: &str) -> Vec<u8> {
    [&position.to_be_bytes()[..], &key.as_bytes()[..8]].concat()
}
