//! Weeks that leave the logs, seen from below: what is left of them, and who holds them. Next: `schema.rs`.

use servers::Database;
use wf_store::Ledger;
use wf_store_postgres::{Archive, ArchiveError, End, Log, migrate, read_only};

const WEEK_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Any two weeks that are long over.
const FIRST: i64 = 2_900;

/// Commands of partition 1 in two weeks. One of the second week has a lower position than the last of the first week: its id was
/// made earlier than those of the commands that were executed before it.
async fn logged() -> Database {
    let database = servers::database().await;
    migrate(database.url()).await.unwrap();
    database.execute(&format!("SELECT onceflow.make_time_partitions({})", FIRST * WEEK_MS));
    database.execute("INSERT INTO onceflow.meta VALUES ('secret:database', decode(repeat('01', 32), 'hex'))");
    database.execute(
        "INSERT INTO onceflow.partition (id, epoch, last_position, next_counter, digest, chain, last_time)
         VALUES (1, 1, 6, 1, decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'), 0)",
    );
    for (position, week) in [(1, FIRST), (2, FIRST), (3, FIRST + 1), (4, FIRST + 1), (5, FIRST), (6, FIRST + 1)] {
        let time = week * WEEK_MS + position;
        database.execute(&format!(
            "INSERT INTO onceflow.command_log (id, partition, position, time, tenant, verb, digest, payload)
             VALUES ((onceflow.id_at({time}) || repeat('00', 10))::bytea, 1, {position}, {time}, 't', 'v',
                     decode(repeat('00', 16), 'hex'), '{{}}')"
        ));
    }
    database
}

fn stands(database: &Database) -> Vec<String> {
    database.execute("SELECT position FROM onceflow.command_log ORDER BY position").concat()
}

fn read(database: &Database) -> Vec<u64> {
    let mut ledger = read_only(database.url(), 1).unwrap();
    let rows = ledger.log(0, 100).unwrap();
    assert_eq!(ledger.count_log(0).unwrap(), rows.len() as u64);
    rows.iter().map(|row| row.position).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn l2_1_what_still_stands_of_an_archived_log_is_left_out() {
    let database = logged().await;
    let archive = Archive::open(database.url()).await.unwrap();
    let weeks = archive.weeks(Log::Commands, i64::MAX).await.unwrap();
    assert_eq!(weeks.iter().map(|week| week.end() / WEEK_MS).collect::<Vec<_>>(), [FIRST + 1, FIRST + 2, FIRST + 3]);
    let ends = archive.ends(Log::Commands, weeks[0]).await.unwrap();
    assert_eq!(ends, [End { partition: 1, position: 5, chain: vec![] }]);
    archive.drop(Log::Commands, weeks[0], &ends).await.unwrap();
    assert_eq!((stands(&database), read(&database)), (vec!["3".to_owned(), "4".to_owned(), "6".to_owned()], vec![6]));
    // What is left out goes with its week; the last command of all goes nowhere.
    let ends = archive.ends(Log::Commands, weeks[2]).await.unwrap();
    assert_eq!(ends, []);
    archive.drop(Log::Commands, weeks[2], &ends).await.unwrap();
    assert_eq!((stands(&database), read(&database)), (vec!["6".to_owned()], vec![6]));
    assert_eq!(archive.weeks(Log::Commands, i64::MAX).await.unwrap(), []);
}

/// Nor is a log dropped that somebody reads page by page, whether all pages are of one state or not.
#[tokio::test(flavor = "multi_thread")]
async fn l2_1_a_log_is_held_by_whoever_reads_it() {
    let database = logged().await;
    let archive = Archive::open(database.url()).await.unwrap();
    let weeks = archive.weeks(Log::Commands, i64::MAX).await.unwrap();
    let ends = archive.ends(Log::Commands, weeks[0]).await.unwrap();
    let mut ledger = read_only(database.url(), 1).unwrap();
    assert_eq!(ledger.log(0, 1).unwrap().len(), 1);
    let refused = archive.drop(Log::Commands, weeks[0], &ends).await;
    assert!(matches!(refused, Err(ArchiveError::Busy)), "{refused:?}");
    ledger.freeze().unwrap();
    let refused = archive.drop(Log::Commands, weeks[0], &ends).await;
    assert!(matches!(refused, Err(ArchiveError::Busy)), "{refused:?}");
    assert_eq!(ledger.log(0, 100).unwrap().len(), 6);
    ledger.thaw().unwrap();
    archive.drop(Log::Commands, weeks[0], &ends).await.unwrap();
    assert_eq!(ledger.log(0, 100).unwrap().len(), 1);
}
