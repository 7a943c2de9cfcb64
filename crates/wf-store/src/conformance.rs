//! What every store must do, as named cases over a fresh store each. A third party's store runs them as well:
//! `run_all(|| async { Arc::new(MyStore::create().await) as Arc<dyn Store> }).await`. It knows no store and no runtime.
//! Next: `conformance/world.rs`, then `commits.rs`, `rows.rs`, `ranges.rs`, `records.rs`, `messages.rs`, `ledger.rs`, `lists.rs`, `uses.rs`, `trace.rs`.

pub mod samples;
pub mod world;

mod commits;
mod ledger;
mod lists;
mod messages;
mod ranges;
mod records;
mod rows;
mod trace;
mod uses;

use std::future::Future;
use std::sync::Arc;

use crate::conformance::world::{Failed, World};
use crate::store::{Later, Store};

/// One promise of the contract, held against a fresh store.
pub type Case = fn(Arc<dyn Store>) -> Later<'static, Result<(), Failed>>;

macro_rules! cases {
    ($($module:ident: [$($name:ident),* $(,)?]),* $(,)?) => {
        vec![$($((
            concat!(stringify!($module), "::", stringify!($name)),
            (|store| Box::pin(async move { $module::$name(World::open(store).await?).await })) as Case,
        )),*),*]
    };
}

/// All cases in reading order. Each opens partition [`world::PARTITION`] of the store that it gets.
pub fn cases() -> Vec<(&'static str, Case)> {
    cases!(
        commits: [
            a_fresh_partition_stands_at_zero,
            opening_raises_the_epoch_and_keeps_the_head,
            an_old_epoch_is_fenced,
            an_old_position_is_fenced,
            two_owners_take_turns,
            a_fence_is_checked_without_a_commit,
            a_turn_without_commands_keeps_its_position,
            positions_may_jump,
            known_commands_are_told,
            a_known_command_voids_its_whole_batch,
            a_row_that_is_there_already_voids_the_batch,
            a_secret_is_made_once,
        ],
        rows: [every_row_comes_back_exactly, one_turn_inserts_updates_and_deletes, a_need_of_a_process_is_its_definition],
        ranges: [
            ready_jobs_stand_by_priority_then_key,
            names_stand_by_their_bytes,
            due_rows_stand_by_time_then_key,
            a_job_moves_through_its_ranges,
            every_range_follows_its_rows,
            long_ranges_come_in_pages,
            a_full_page_may_be_the_last,
            a_page_begins_behind_an_entry_that_is_gone,
        ],
        records: [
            answers_come_back_byte_for_byte,
            an_unexpired_record_is_never_replaced,
            an_expired_record_is_replaced,
            an_unfinished_record_is_finished_by_its_own_request,
            tenants_share_no_keys,
            expired_records_are_swept,
        ],
        messages: [
            the_oldest_unsent_of_an_order_key_goes_first,
            positions_order_by_number,
            a_claim_lasts_for_its_lease,
            a_stale_owners_marks_are_ignored,
            a_retry_waits_for_its_time,
            dead_letters_block_or_let_pass,
            released_messages_are_free_at_once,
            an_operator_ships_again,
            sinks_are_counted,
            old_shipped_messages_are_swept,
        ],
        ledger: [
            it_tells_where_the_partition_stands,
            logs_are_read_by_position,
            every_row_is_visited_once,
            a_frozen_ledger_sees_one_state,
        ],
        lists: [
            audit_is_read_by_position_and_tenant,
            definitions_are_listed,
            instances_are_listed_the_newest_first,
            instances_are_found_by_their_variables,
            an_instance_is_shown_whole,
            jobs_and_incidents_are_listed,
            messages_are_listed,
            malformed_cursors_are_empty_pages,
        ],
        uses: [
            repeats_are_counted_per_key,
            uses_are_asked_by_time_and_tenant,
            old_counts_are_swept,
            gauges_count_rows,
        ],
        trace: [
            a_record_is_shown_as_it_was_filed,
            a_command_is_found_by_id_position_and_time,
            a_trail_names_its_instance,
            messages_are_found_by_position,
            repeats_are_found_by_subject,
        ],
    )
}

/// Runs every case over a store of its own and panics at the end with the names of those that failed.
pub async fn run_all<F: Future<Output = Arc<dyn Store>>>(make: impl Fn() -> F) {
    let mut failures = Vec::new();
    for (name, case) in cases() {
        let named = Named(name);
        if let Err(failed) = case(make().await).await {
            failures.push(format!("{name}: {failed}"));
        }
        drop(named);
    }
    assert!(failures.is_empty(), "{} of {} cases failed:\n{}", failures.len(), cases().len(), failures.join("\n"));
}

/// A store that panics takes the case's name with it.
struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the store panicked in case {}", self.0);
        }
    }
}
