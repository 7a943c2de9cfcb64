//! L2.3 and L6.2: what the proofs find when somebody has changed the store behind the engine's back. That they find nothing
//! where nobody has stands at the end of every other test (`common/whole.rs`).

use crate::common::book::Book;
use crate::common::whole::go_on;
use crate::common::*;
use wf_core::rows::JobState;
use wf_core::{Row, RowId};
use wf_engine::proof::{self, *};
use wf_store::memory::MemoryStore;
use wf_store::*;

/// Three orders: one untouched, one held by a worker, one done.
async fn a_days_work() -> Book {
    let world = World::new().await;
    for _ in 0..3 {
        world.start("order").await;
    }
    let held = world.activate("a").await[0];
    world.ok(complete(held)).await;
    world.start("order").await;
    world.activate("a").await;
    let book = Book::of(&*world.stage.inner).await;
    world.end().await;
    book
}

async fn replayed(book: &Book, range: Range) -> ReplayReport {
    let scratch = MemoryStore::new();
    replay(book.ledger(), &scratch, range, &mut go_on).await.unwrap()
}

fn first(report: &ReplayReport) -> (u64, String) {
    match &report.verdict {
        Verdict::Diverged { first: Some(first), .. } => (first.position, first.mismatch.to_string()),
        other => panic!("{other:?}"),
    }
}

/// The first of this verb.
fn place(book: &Book, verb: &str) -> usize {
    book.log.iter().position(|row| &*row.verb == verb).unwrap()
}

#[tokio::test]
async fn l2_3_an_untouched_store_is_identical() {
    let book = a_days_work().await;
    let report = replayed(&book, Range::default()).await;
    let last = book.log.last().unwrap().position;
    assert_eq!((report.is_identical(), report.position, report.commands), (true, last, book.log.len() as u64));
    assert!(report.tables.unwrap().rows > 5);
}

#[tokio::test]
async fn l2_3_a_changed_command_is_the_first_divergence() {
    let mut book = a_days_work().await;
    let at = place(&book, "start-instance") + 1;
    let position = book.log[at].position;
    book.log[at].payload = book.log[at].payload.replace("\"id\":1", "\"id\":7");
    let report = replayed(&book, Range::default()).await;
    let Verdict::Diverged { first: Some(first), differences, rows } = &report.verdict else { panic!("{report:?}") };
    assert!(matches!(first.mismatch, Mismatch::Digest { .. }), "{first:?}");
    assert_eq!(first.position, position);
    assert!(first.told.contains("\"id\":1") && first.tells.contains("\"id\":7"), "{first:?}");
    // Both states' difference: the variable that the command set.
    assert_eq!((*rows, differences.len()), (1, 1));
    assert!(matches!(&differences[0].id, RowId::Variable { name, .. } if &**name == "id"), "{differences:?}");
    let from_behind = replayed(&book, Range { from: position + 1, to: u64::MAX, ..Range::default() }).await;
    assert_eq!(self::first(&from_behind).0, position + 1, "what is compared begins there");
    let before = replayed(&book, Range { from: 0, to: position - 1, ..Range::default() }).await;
    assert!(before.is_identical() && before.tables.is_none(), "{before:?}");
}

#[tokio::test]
async fn l2_3_each_kind_of_damage_is_named() {
    let whole = a_days_work().await;
    let complete = place(&whole, "complete-job");
    for (want, damage) in [
        ("does not follow", Box::new(move |log: &mut Vec<LogRow>| drop(log.remove(complete))) as Damage),
        ("does not follow", Box::new(move |log| log[complete].position += 1)),
        ("its time lies before", Box::new(move |log| log[complete].time -= 100_000_000)),
        ("cannot be read", Box::new(move |log| log[complete].payload.truncate(20))),
        (
            "cannot be read",
            Box::new(move |log| log[complete].payload = log[complete].payload.replace("\"v\":1", "\"v\":9")),
        ),
        ("it is refused now", Box::new(move |log| log[complete].tenant = "other".into())),
        ("the digest after it", Box::new(move |log| log[complete].digest += 1)),
        ("the row says \"fail-job\"", Box::new(move |log| log[complete].verb = "fail-job".into())),
    ] {
        let mut book = whole.clone();
        damage(&mut book.log);
        let report = replayed(&book, Range::default()).await;
        assert!(!report.is_identical(), "{want}");
        let (_, mismatch) = first(&report);
        assert!(mismatch.contains(want), "{want}: {mismatch}");
    }
}

type Damage = Box<dyn Fn(&mut Vec<LogRow>)>;

#[tokio::test]
async fn l2_3_a_changed_row_is_found_without_and_with_a_replay() {
    let whole = a_days_work().await;
    let job = whole.rows.values().find_map(|row| match row {
        Row::Job(job) if job.state == JobState::Activated => Some(job.clone()),
        _ => None,
    });
    let job = job.unwrap();
    let id = RowId::Job(job.key);
    let mut ready = (*job).clone();
    ready.state = JobState::Ready;
    for change in [Some(Row::Job(ready.into())), None] {
        let mut book = whole.clone();
        match change.clone() {
            Some(row) => drop(book.rows.insert(id.clone(), row)),
            None => drop(book.rows.remove(&id)),
        }
        assert!(!verify_tables(&mut *book.ledger(), &mut go_on).unwrap().agrees());
        let report = replayed(&book, Range::default()).await;
        let Verdict::Diverged { first: None, differences, rows: 1 } = &report.verdict else { panic!("{report:?}") };
        let want = Difference { id: id.clone(), replayed: Some(Row::Job(job.clone())), stored: change };
        assert_eq!(differences, &[want]);
    }
    let mut book = whole.clone();
    let extra = whole.rows.values().find_map(|row| match row {
        Row::Variable(variable) => Some((**variable).clone()),
        _ => None,
    });
    let mut extra = extra.unwrap();
    extra.name = "smuggled".into();
    book.rows.insert(extra.id(), Row::Variable(extra.clone().into()));
    let report = replayed(&book, Range::default()).await;
    assert!(
        matches!(&report.verdict, Verdict::Diverged { differences, rows: 1, .. } if differences[0].replayed.is_none())
    );
}

#[tokio::test]
async fn l2_3_a_log_that_ends_too_early_is_no_proof() {
    let mut book = a_days_work().await;
    let stands = book.log.pop().unwrap().position;
    let report = replayed(&book, Range::default()).await;
    assert_eq!((report.verdict.clone(), report.is_identical()), (Verdict::CutOff { stands }, false));
}

/// Set back by one it would otherwise look like a replay that ended early, whose tables are nobody's business.
#[tokio::test]
async fn l2_3_a_partition_that_stands_before_the_logs_end_is_named() {
    let mut book = a_days_work().await;
    let position = book.log.last().unwrap().position;
    let stands = position - 1;
    book.standing.fence.new_position = stands;
    let report = replayed(&book, Range::default()).await;
    assert_eq!((report.verdict.clone(), report.is_identical()), (Verdict::CutOff { stands }, false));
    let fault = verify_audit(&mut *book.ledger(), &mut go_on).unwrap().fault;
    assert_eq!(fault, Some(AuditFault::Standing { position, stands }));
}

/// What is executed is the file, not the checksum beside it.
#[tokio::test]
async fn l2_3_a_definitions_changed_file_is_named() {
    let mut book = a_days_work().await;
    let id = book.rows.keys().find(|id| matches!(id, RowId::Definition(_))).unwrap().clone();
    let Some(Row::Definition(definition)) = book.rows.get_mut(&id) else { panic!("{id:?}") };
    let mut changed = (**definition).clone();
    changed.xml = [&changed.xml[..], b"<!-- -->"].concat().into();
    *definition = changed.into();
    assert!(!verify_tables(&mut *book.ledger(), &mut go_on).unwrap().agrees());
    let report = replayed(&book, Range::default()).await;
    let Verdict::Diverged { first: None, differences, rows: 1 } = &report.verdict else { panic!("{report:?}") };
    assert_eq!(differences[0].id, id);
}

/// Upgrade safety: a log written by an earlier version, with every verb in it but `quarantine`, comes to the same digests for ever.
#[tokio::test]
async fn l2_3_logs_of_earlier_formats_replay() {
    let book = Book::golden(include_str!("golden/log-1.jsonl"), include_str!("golden/audit-1.jsonl"));
    let audited = book.audit.last().unwrap().position;
    let first_part: Vec<LogRow> = book.log.iter().filter(|row| row.position <= audited).cloned().collect();
    let mut chained = book.clone();
    (chained.log, chained.standing.fence.new_position) = (first_part, audited);
    assert_eq!(verify_audit(&mut *chained.ledger(), &mut go_on).unwrap().fault, None, "a chain of the first format");
    // Without its tables: up to the last command but one.
    let to = book.log[book.log.len() - 2].position;
    let report = replayed(&book, Range { to, ..Range::default() }).await;
    assert!(report.is_identical(), "{report:#?}");
    assert_eq!(report.commands, book.log.len() as u64 - 1);
    let last = replayed(&book, Range::default()).await;
    assert!(matches!(&last.verdict, Verdict::Diverged { first: None, .. }), "only the tables are missing: {last:#?}");
}

/// A checkpoint is a store; what was archived before it is not needed.
#[tokio::test]
async fn l2_3_a_replay_begins_at_a_checkpoint() {
    let mut book = a_days_work().await;
    let at = place(&book, "activate-jobs");
    let base = book.log[at - 1].position;
    let checkpoint = MemoryStore::new();
    assert!(proof::checkpoint(book.ledger(), &checkpoint, base, &mut go_on).await.unwrap().is_identical());
    book.log.drain(..at);
    let report = replay(book.ledger(), &checkpoint, Range::default(), &mut go_on).await.unwrap();
    assert_eq!((report.is_identical(), report.base, report.commands), (true, base, book.log.len() as u64));
    let nothing = MemoryStore::new();
    let error = replay(book.ledger(), &nothing, Range::default(), &mut go_on).await.unwrap_err();
    assert!(matches!(error, ProofError::NoCheckpoint { first, .. } if first == book.log[0].position), "{error}");
    assert_eq!(verify_audit(&mut *book.ledger(), &mut go_on).unwrap().fault, None, "the audit is kept whole");
}

type Forgery = Box<dyn Fn(&mut Book)>;

/// L6.2: the first row that was changed, removed, inserted or moved is named.
#[tokio::test]
async fn l6_2_the_first_wrong_audit_row_is_named() {
    let whole = a_days_work().await;
    let at = 4;
    let position = whole.audit[at].position;
    let next = whole.audit[at + 1].position;
    let last = whole.audit.len() - 1;
    let forged = |forge: Forgery| {
        let mut book = whole.clone();
        forge(&mut book);
        verify_audit(&mut *book.ledger(), &mut go_on).unwrap().fault
    };
    let broken = |position| Some(AuditFault::Broken { partition: 1, position });
    let changed = forged(Box::new(move |book| book.audit[at].events = book.audit[at].events.replacen("\"", "\" ", 1)));
    assert!(matches!(changed, Some(AuditFault::Unreadable { .. } | AuditFault::Broken { .. })), "{changed:?}");
    assert_eq!(
        forged(Box::new(move |book| book.audit[at].events = book.audit[at].events.replace(':', ": "))),
        broken(position)
    );
    assert_eq!(forged(Box::new(move |book| book.audit[at].actor = "somebody".into())), broken(position));
    assert_eq!(forged(Box::new(move |book| book.audit[at].chain[0] ^= 1)), broken(position));
    let tenant = forged(Box::new(move |book| book.audit[at].tenant = "other".into()));
    assert!(matches!(tenant, Some(AuditFault::Foreign { position: found, .. }) if found == position), "{tenant:?}");
    let time = forged(Box::new(move |book| book.audit[at].time += 1));
    assert!(matches!(time, Some(AuditFault::Foreign { position: found, .. }) if found == position), "{time:?}");
    let missing = Some(AuditFault::Missing { partition: 1, position });
    assert_eq!(forged(Box::new(move |book| drop(book.audit.remove(at)))), missing);
    let removed_everywhere = forged(Box::new(move |book| {
        book.audit.remove(at);
        book.log.remove(at);
    }));
    assert_eq!(removed_everywhere, Some(AuditFault::Gap { position: next, previous: whole.audit[at - 1].position }));
    assert_eq!(
        forged(Box::new(move |book| drop(book.audit.remove(last)))),
        Some(AuditFault::Missing { partition: 1, position: whole.audit[last].position })
    );
    let cut_off = forged(Box::new(move |book| {
        book.audit.pop();
        book.log.pop();
    }));
    assert!(matches!(cut_off, Some(AuditFault::Head { .. })), "{cut_off:?}");
    let inserted = forged(Box::new(move |book| {
        let mut extra = book.audit[last].clone();
        extra.position += 1;
        book.audit.push(extra);
    }));
    assert_eq!(inserted, Some(AuditFault::Extra { partition: 1, position: whole.audit[last].position + 1 }));
    let swapped = forged(Box::new(move |book| {
        let events = book.audit[at].events.clone();
        book.audit[at].events = std::mem::replace(&mut book.audit[at + 1].events, events);
    }));
    assert_eq!(swapped, broken(position));
}

#[tokio::test]
async fn a_proof_ends_when_it_is_told_to() {
    let book = a_days_work().await;
    let scratch = MemoryStore::new();
    let stopped = replay(book.ledger(), &scratch, Range::default(), &mut |_| Visit::Break(())).await;
    assert!(matches!(stopped, Err(ProofError::Stopped)));
}
