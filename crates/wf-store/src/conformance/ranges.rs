//! Ranges: their order, their pages, and that they follow their rows. Next: `records.rs`.

use std::sync::Arc;

use wf_core::ranges::Due;
use wf_core::rows::*;
use wf_core::{Key, RangeId, Row, SortKey};

use crate::conformance::samples::*;
use crate::conformance::world::*;
use crate::load::RANGE_MAX;

fn ready() -> RangeId {
    RangeId::Ready { tenant: TENANT.into(), job_type: "pay".into() }
}

/// The entries of a range, all its pages.
async fn entries(world: &World, range: &RangeId) -> Result<Vec<SortKey>, Failed> {
    Ok(world.pages(range).await?.into_iter().flat_map(|page| page.entries).collect())
}

async fn keys(world: &World, range: &RangeId) -> Result<Vec<Key>, Failed> {
    Ok(entries(world, range).await?.into_iter().map(|sort| sort.key).collect())
}

pub async fn ready_jobs_stand_by_priority_then_key(mut world: World) -> Result<(), Failed> {
    let prioritized = |key, priority| row(Job { priority, ..job(key) });
    let mine = [(1, 0), (2, i32::MIN), (3, -1), (4, 0), (5, i32::MAX), (6, 1), (10, 0), (KEY_MAX, 0)];
    world.put(mine.map(|(key, priority)| prioritized(key, priority))).await?;
    let others = [
        Job { tenant: "other".into(), ..job(20) },
        Job { job_type: "Pay".into(), ..job(21) },
        Job { state: JobState::Failed, ..job(22) },
    ];
    world.put(others.map(row)).await?;
    same("order", keys(&world, &ready()).await?, vec![5, 6, 1, 4, 10, KEY_MAX, 3, 2])?;
    world.check_ranges([]).await
}

/// Not by a language's rules, not by UTF-16, not without regard to case.
pub async fn names_stand_by_their_bytes(mut world: World) -> Result<(), Failed> {
    let sorted = ["", "\u{1}", " ", "10", "9", "A", "Z", "a", "a\u{1}", "ab", "e\u{301}", "é", "\u{fffd}", "🦀"];
    let shuffled = sorted.iter().rev().map(|name| row(variable(5, name, "1")));
    world.put(shuffled.chain([row(variable(4, "b", "1")), row(variable(6, "b", "1"))])).await?;
    let names: Vec<Text> = entries(&world, &RangeId::Variables(5)).await?.into_iter().map(|sort| sort.name).collect();
    same("names", names, sorted.map(Text::from).to_vec())?;
    let steps = sorted.iter().rev().map(|name| row(step(5, name)));
    world.put(steps).await?;
    world.check_ranges([RangeId::Steps(4)]).await
}

pub async fn due_rows_stand_by_time_then_key(mut world: World) -> Result<(), Failed> {
    let timers = [(5, 10), (3, 10), (KEY_MAX, 10), (1, i64::MAX), (2, i64::MIN), (6, -1), (7, 0), (8, 9)];
    world.put(timers.map(|(key, due)| row(timer(key, due)))).await?;
    let range = RangeId::Due(Due::Timers);
    same("order", keys(&world, &range).await?, vec![2, 6, 7, 8, 3, 5, KEY_MAX, 1])?;
    let ids = ["b", "a", "é", ""].map(|id| row(message_id(9, "paid", id)));
    world.put(ids.into_iter().chain([row(message_id(2, "paid", "z"))])).await?;
    let names: Vec<Text> =
        entries(&world, &RangeId::Due(Due::MessageIds)).await?.into_iter().map(|sort| sort.name).collect();
    let want = ["z", "", "a", "b", "é"].map(|id| Text::from(format!("{TENANT}\u{1f}paid\u{1f}{id}")));
    same("message ids", names, want.to_vec())?;
    world.check_ranges([]).await
}

pub async fn a_job_moves_through_its_ranges(mut world: World) -> Result<(), Failed> {
    world.put([row(job(1)), row(job(2))]).await?;
    let due = [Due::Leases, Due::Backoffs, Due::FinishedJobs].map(RangeId::Due);
    let order = JobState::ALL.into_iter().chain(JobState::ALL.into_iter().rev());
    for (at, state) in order.enumerate() {
        world.put([row(Job { state, due: at as i64, lease: at as u64, ..job(1) })]).await?;
        let where_it_stands = match state {
            JobState::Ready => [vec![1, 2], vec![], vec![], vec![]],
            JobState::Activated => [vec![2], vec![1], vec![], vec![]],
            JobState::Backoff => [vec![2], vec![], vec![1], vec![]],
            JobState::Completed | JobState::Canceled => [vec![2], vec![], vec![], vec![1]],
            JobState::Failed | JobState::ErrorThrown => [vec![2], vec![], vec![], vec![]],
        };
        for (range, want) in [ready()].iter().chain(&due).zip(where_it_stands) {
            same(&format!("{state:?} in {range:?}"), keys(&world, range).await?, want)?;
        }
    }
    Ok(())
}

/// Every kind of range, filled, changed and emptied, with neighbours of other tenants, names and scopes.
pub async fn every_range_follows_its_rows(mut world: World) -> Result<(), Failed> {
    let mut all = Vec::new();
    for key in [3, 1, 2] {
        all.extend(rows_in_ranges(key, TENANT));
        all.extend(rows_in_ranges(key + 10, "other"));
    }
    world.put(all.clone()).await?;
    world.check_ranges([]).await?;
    let before: Vec<RangeId> = all.iter().flat_map(ranges_of).collect();
    world.put(all.iter().filter_map(moved)).await?;
    world.check_ranges(before.clone()).await?;
    world.delete(all.iter().map(Row::id).step_by(2)).await?;
    world.check_ranges(before.clone()).await?;
    world.delete(world.mirror.keys().cloned().collect::<Vec<_>>()).await?;
    world.check_ranges(before).await
}

fn ranges_of(row: &Row) -> Vec<RangeId> {
    let mut ids = Vec::new();
    wf_core::ranges::entries(row, |id, _| ids.push(id));
    ids
}

fn rows_in_ranges(key: Key, tenant: &str) -> Vec<Row> {
    let of = || Text::from(tenant);
    let name = format!("n{key}");
    let ended = Instance { ended_at: 5, tenant: of(), ..instance() };
    vec![
        row(Definition { tenant: of(), ..definition(key, "order", key as u32) }),
        row(StartSubscription {
            tenant: of(),
            message: "m".into(),
            process_id: name.as_str().into(),
            definition: key,
            element: 1,
        }),
        row(Scope { state: ScopeState::Canceled, instance: Some(Arc::new(ended)), ..root(key) }),
        row(element(7, key)),
        row(variable(7, &name, "1")),
        row(Job { tenant: of(), ..job(key) }),
        row(Job { state: JobState::Activated, due: 5, ..job(key + 100) }),
        row(Job { state: JobState::Backoff, due: 5, ..job(key + 200) }),
        row(Job { state: JobState::Completed, due: 5, ..job(key + 300) }),
        row(step(7, &name)),
        row(timer(key, 5)),
        row(Subscription { tenant: of(), ..subscription(key, "m", "c") }),
        row(Message { tenant: of(), ..message(key, "m", "c") }),
        row(MessageId { tenant: of(), ..message_id(key, "m", &name) }),
        row(follow_up(key, Work::Terminate)),
    ]
}

/// The same row in another place, where it has one.
fn moved(old: &Row) -> Option<Row> {
    Some(match old {
        Row::Scope(old) => row(Scope { state: ScopeState::Active, ..(**old).clone() }),
        Row::Job(old) => row(Job { priority: 1, due: 4, job_type: "Pay".into(), ..(**old).clone() }),
        Row::Timer(old) => row(Timer { due: -(old.key as i64), ..(**old).clone() }),
        Row::Subscription(old) => row(Subscription { correlation_key: "".into(), ..(**old).clone() }),
        Row::Message(old) => row(Message { name: "M".into(), expires_at: 1, ..(**old).clone() }),
        Row::MessageId(old) => row(MessageId { expires_at: -(old.key as i64), ..(**old).clone() }),
        Row::Definition(old) => row(Definition { version: 50 - old.version, ..(**old).clone() }),
        _ => return None,
    })
}

pub async fn long_ranges_come_in_pages(mut world: World) -> Result<(), Failed> {
    let count = 2 * RANGE_MAX as u64 + 1;
    world.put((1..=count).map(|key| row(timer(key, (key % 3) as i64)))).await?;
    world.put((1..=count).map(|key| row(Job { priority: (key % 3) as i32 - 1, ..job(key) }))).await?;
    world.put((1..=count).map(|key| row(variable(5, &format!("é{key}"), "1")))).await?;
    world.put((1..=count).map(|key| row(message_id(key / 2, "m", &format!("{key}"))))).await?;
    world.put((1..=count).map(|key| row(element(5, key)))).await?;
    let due = [Due::Timers, Due::MessageIds].map(RangeId::Due);
    for range in due.into_iter().chain([ready(), RangeId::Variables(5), RangeId::Elements(5)]) {
        let pages = world.pages(&range).await?;
        let sizes: Vec<(usize, bool)> = pages.iter().map(|page| (page.entries.len(), page.complete)).collect();
        same(&format!("{range:?}"), sizes, vec![(RANGE_MAX, false), (RANGE_MAX, false), (1, true)])?;
    }
    world.check_ranges([]).await
}

pub async fn a_full_page_may_be_the_last(mut world: World) -> Result<(), Failed> {
    world.put((1..=RANGE_MAX as u64).map(|key| row(timer(key, 0)))).await?;
    let range = RangeId::Due(Due::Timers);
    let page = world.page(&range, None).await?;
    same("a full page without more", (page.entries.len(), page.complete), (RANGE_MAX, true))?;
    let behind = world.page(&range, page.entries.last().cloned()).await?;
    same("behind the end", (behind.entries.len(), behind.complete), (0, true))?;
    let nothing = world.page(&RangeId::Due(Due::Leases), None).await?;
    same("an empty range", (nothing.entries.len(), nothing.complete), (0, true))
}

/// A frontier outlives the row that it was.
pub async fn a_page_begins_behind_an_entry_that_is_gone(mut world: World) -> Result<(), Failed> {
    world.put([1, 2, 3].map(|key| row(timer(key, 7)))).await?;
    world.put(["a", "b", "c"].map(|name| row(variable(5, name, "1")))).await?;
    world.put([1, 2, 3].map(|key| row(Job { priority: -5, ..job(key) }))).await?;
    let gone = [row(timer(2, 7)), row(variable(5, "b", "1")), row(job(2))];
    world.delete(gone.iter().map(Row::id)).await?;
    let timers = world.page(&RangeId::Due(Due::Timers), Some(SortKey::by_rank(7, 2))).await?;
    same("timers", timers.entries, vec![SortKey::by_rank(7, 3)])?;
    let names = world.page(&RangeId::Variables(5), Some(SortKey::by_name(&"b".into()))).await?;
    same("variables", names.entries, vec![SortKey::by_name(&"c".into())])?;
    let jobs = world.page(&ready(), Some(SortKey::by_rank(5, 2))).await?;
    same("jobs", jobs.entries, vec![SortKey::by_rank(5, 3)])?;
    let earlier = world.page(&RangeId::Due(Due::Timers), Some(SortKey::by_rank(i64::MIN, KEY_MAX))).await?;
    same("from before the first", earlier.entries.len(), 2)
}
