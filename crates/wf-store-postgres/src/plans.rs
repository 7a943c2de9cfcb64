//! Every statement finds its rows by an index, in tables that hold something and in empty ones: a plan is made once and kept.
//! That all of them prepare is held by `migrate/tests.rs`.

use std::collections::{BTreeMap, BTreeSet};

use servers::Database;
use tokio_postgres::Client;

use crate::connect::plan_settings;
use crate::sql::{ALL, SCHEMA, Sql, Statements};

async fn migrated() -> (Database, Client) {
    let database = servers::database().await;
    crate::migrate(database.url()).await.unwrap();
    let client = servers::connect(database.url()).await;
    (database, client)
}

/// Whole tables or indexes, on purpose: a ledger's, what is unsent (a partial index), and gauges; an archive's look backward for
/// the last row before a time, which is a time partition's end.
const PASSES_ALL: &[&str] =
    &["all_uniques", "audit_ends", "outbox_stats", "count_incidents", "count_records", "list_tenants"];
/// A handful of rows each.
const SMALL: &[&str] = &["node", "partition", "database"];

/// P4: under load as in an empty store.
#[tokio::test(flavor = "multi_thread")]
async fn no_statement_scans_by_accident() {
    let (database, client) = migrated().await;
    database.execute(FILL);
    finds_by_an_index(&client).await;
}

/// A plan that was made while the tables were empty is kept until they are first analyzed, with all that came meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn no_statement_scans_what_was_empty_when_it_was_planned() {
    let (_database, client) = migrated().await;
    finds_by_an_index(&client).await;
}

async fn finds_by_an_index(client: &Client) {
    let settings = plan_settings().map(|(name, value)| format!("SET {name} = {value};"));
    client.batch_execute(&settings.concat()).await.unwrap();
    let statements = Statements::of_schema(SCHEMA);
    let indexes = indexes(client).await;
    let mut bad = Vec::new();
    for (sql, name) in ALL.iter().filter(|(_, name)| !PASSES_ALL.contains(name)) {
        let plan = plan(client, &statements, *sql, name).await;
        bad.extend(scans(&plan, &indexes).into_iter().map(|line| format!("{name}: {line}\n{}", plan.join("\n"))));
    }
    assert!(bad.is_empty(), "{} statements scan:\n{}", bad.len(), bad.join("\n\n"));
}

async fn plan(client: &Client, statements: &Statements, sql: Sql, name: &str) -> Vec<String> {
    let types: Vec<&str> = statements.types(sql).iter().map(|one| one.name()).collect();
    let nulls = vec!["NULL"; types.len()].join(", ");
    let (types, nulls) = match types.is_empty() {
        true => (String::new(), String::new()),
        false => (format!("({})", types.join(", ")), format!("({nulls})")),
    };
    client.batch_execute(&format!("PREPARE {name} {types} AS {}", statements.sql(sql))).await.unwrap();
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE {name} {nulls}");
    let lines = client.simple_query(&explain).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let line = |message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    lines.into_iter().filter_map(line).collect()
}

/// The columns of each index, in its order.
async fn indexes(client: &Client) -> BTreeMap<String, Vec<String>> {
    let sql = r"SELECT i.indexrelid::regclass::text,
                       array_agg(regexp_replace(pg_get_indexdef(i.indexrelid, a.attnum, true), '\W', '', 'g') ORDER BY a.attnum)
                FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indexrelid GROUP BY i.indexrelid";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get::<_, &str>(0).replace("onceflow.", ""), row.get(1))).collect()
}

/// Steps that read a table from its begin to its end, by its pages or along an index.
fn scans<'p>(plan: &'p [String], indexes: &BTreeMap<String, Vec<String>>) -> Vec<&'p str> {
    let mut found = Vec::new();
    for (at, line) in plan.iter().enumerate() {
        let table = line.split_once(" on ").map_or("", |(_, after)| after.split(' ').next().unwrap_or_default());
        let is_small = SMALL.contains(&table);
        let next = plan.get(at + 1).map_or("", |next| next.trim());
        let condition = next.strip_prefix("Index Cond: ").unwrap_or_default();
        let is_along_all = index_of(line).is_some_and(|index| !is_a_prefix(condition, &indexes[index]));
        if !is_small && (line.contains("Seq Scan") || is_along_all) {
            found.push(line.trim());
        }
    }
    found
}

fn index_of(line: &str) -> Option<&str> {
    let (_, after) = line.split_once("Index Scan").or_else(|| line.split_once("Index Only Scan"))?;
    after.split_once(" using ")?.1.split(' ').next()
}

/// Nothing is between the columns that are asked for: `key` alone of `(root, key)` would read all of it.
fn is_a_prefix(condition: &str, columns: &[String]) -> bool {
    let words: BTreeSet<&str> = condition.split(|c: char| !(c.is_alphanumeric() || "_.$".contains(c))).collect();
    let asked: Vec<bool> = columns.iter().map(|column| words.contains(column.as_str())).collect();
    asked.first() == Some(&true) && asked.is_sorted_by(|before, after| before >= after)
}

/// Rows enough that an index is worth its while: of every type something, partitions and states as they are.
const FILL: &str = "
DO $$
DECLARE
    one record;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN
        SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns,
               string_agg(CASE WHEN a.attname IN ('partition', 'source', 'target') AND t.typname = 'int2' THEN 'g % 8 + 1'
                               WHEN a.attname = 'state' AND c.relname = 'outbox' THEN 'CASE g % 2 WHEN 0 THEN ''pending'' ELSE ''shipped'' END'
                               WHEN a.attname = 'state' AND c.relname = 'jobs' THEN
                                    '(ARRAY[''READY'', ''ACTIVATED'', ''BACKOFF'', ''COMPLETED''])[g % 4 + 1]'
                               WHEN a.attname = 'state' THEN 'CASE g % 2 WHEN 0 THEN ''ACTIVE'' ELSE ''COMPLETED'' END'
                               WHEN a.attname IN ('tenant', 'sink', 'process_id', 'job_type') THEN '''t'' || g % 5'
                               WHEN a.attname = 'parent' THEN 'g % 2'
                               WHEN t.typname = 'bytea' THEN 'decode(md5(g::text), ''hex'')'
                               WHEN t.typname = 'bool' THEN 'false'
                               WHEN t.typname = 'text' THEN '''x'' || g'
                               ELSE 'g' END, ', ' ORDER BY a.attnum) AS values
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
        JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE c.relnamespace = 'onceflow'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND c.relname NOT IN ('node', 'partition', 'migration', 'meta', 'database', 'tenant')
        GROUP BY c.relname
    LOOP
        EXECUTE format('INSERT INTO onceflow.%I (%s) SELECT %s FROM generate_series(1, 2000) AS g', one.name, one.columns, one.values);
    END LOOP;
END
$$;
ANALYZE;
";
