//! The schema: migrations forward only, each in a transaction with its version. Nothing else makes or changes a table.
//! Next: `sql.rs`, the statements over it.

use rusqlite::{Connection, Result};
use wf_store::failpoint;

/// Numbered from 1 without gaps.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/main/0001_initial.sql"),
    include_str!("../migrations/main/0002_audit_stays.sql"),
    include_str!("../migrations/main/0003_partitions.sql"),
];

/// The schema that this program reads and writes.
pub const VERSION: u32 = MIGRATIONS.len() as u32;

pub fn version(connection: &Connection) -> Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Brings the store from whatever version to this program's.
pub fn migrate(connection: &mut Connection) -> Result<()> {
    let from = version(connection)?;
    for (migration, number) in MIGRATIONS.iter().zip(1..).skip(from as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        failpoint::hit("in-migration");
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{ALL, FILES};

    fn migrated() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection
    }

    fn schema(connection: &Connection) -> String {
        let mut rows =
            connection.prepare("SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").unwrap();
        let texts: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        texts.join("\n\n") + "\n"
    }

    /// `schema.sql` is what a reader looks at, whatever the migrations went through. `UPDATE_EXPECT=1` writes it.
    #[test]
    fn the_migrated_schema_is_the_golden_one() {
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.sql");
        let migrated = schema(&migrated());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&golden, &migrated).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&golden).unwrap(), migrated);
        let fresh = Connection::open_in_memory().unwrap();
        fresh.execute_batch(&migrated).unwrap();
        assert_eq!(schema(&fresh), migrated);
    }

    #[test]
    fn every_statement_prepares() {
        let connection = migrated();
        for (sql, name) in ALL {
            let statement = connection.prepare(sql.text()).unwrap_or_else(|error| panic!("{name}: {error}"));
            drop(statement);
        }
        let blocks: usize = FILES.iter().map(|file| file.matches("-- name: ").count()).sum();
        assert_eq!(blocks, ALL.len(), "a block of a .sql file is not listed in sql.rs");
    }

    /// Only statements that pass a table on purpose may scan it.
    #[test]
    fn no_statement_scans_by_accident() {
        const MAY_SCAN: &[&str] = &[
            "other_partition",
            "release_claims",
            "follow_ups",
            "count_incidents",
            "count_records",
            "count_jobs",
            "outbox_stats",
            "list_definitions",
            "release_claims",
        ];
        let connection = migrated();
        for (sql, name) in ALL {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", sql.text())).unwrap();
            let binds = plan.parameter_count();
            let steps: Vec<String> = plan
                .query_map(rusqlite::params_from_iter(vec![0; binds]), |row| row.get(3))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            // Whole tables in the order in which they stand.
            let scans = |step: &String| step.starts_with("SCAN") && !name.starts_with("all_") && *name != "standing";
            let bad = steps.iter().any(|step| scans(step) || step.contains("TEMP B-TREE"));
            let may = MAY_SCAN.contains(name) || name.starts_with("scan_events") || name.starts_with("sweep_");
            assert!(!bad || may, "{name}: {steps:?}");
        }
    }

    /// The writer's connection does not pay for the logs' triggers (see `open.rs`): so its statements obey by themselves.
    #[test]
    fn l6_1_no_statement_changes_a_log() {
        for (sql, name) in ALL {
            let text = sql.text().to_uppercase();
            for log in ["COMMAND_LOG", "AUDIT_LOG"].iter().filter(|log| text.contains(**log)) {
                let reads = text.starts_with("SELECT");
                let appends =
                    text.starts_with(&format!("INSERT INTO {log}")) && text.contains("ON CONFLICT DO NOTHING");
                // An operator's explicit act, of what is kept elsewhere.
                let archives = *name == "archive_log" && *log == "COMMAND_LOG";
                assert!(reads || appends || archives, "{name} touches {log}");
            }
        }
    }
}
