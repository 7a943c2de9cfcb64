//! What every store must do, as named cases over a fresh store each. A third party's store runs them as well:
//! `run_all(|| async { Arc::new(MyStore::create().await) as Arc<dyn Store> }).await`, and where nodes share it [`run_nodes`].
//! It knows no store and no runtime.
//! Next: `conformance/world.rs`, then `commits.rs`, `rows.rs`, `ranges.rs`, `records.rs`, `messages.rs`, `ledger.rs`, `lists.rs`, `uses.rs`,
//! `trace.rs`; of several partitions `partitions.rs`, `inboxes.rs`, `across.rs`; of nodes `nodes.rs`.

pub mod samples;
pub mod world;

mod across;
mod commits;
mod inboxes;
mod ledger;
mod lists;
mod messages;
mod nodes;
mod partitions;
mod ranges;
mod records;
mod rows;
mod trace;
mod uses;

use std::future::Future;
use std::sync::Arc;

use crate::conformance::world::{Failed, World};
use crate::store::{Later, Store};

pub use crate::conformance::nodes::Nodes;

/// One promise of the contract, held against a fresh store.
pub type Case = fn(Arc<dyn Store>) -> Later<'static, Result<(), Failed>>;
/// One promise to nodes that share a store.
pub type NodeCase = fn(Arc<dyn Nodes>) -> Later<'static, Result<(), Failed>>;

macro_rules! cases {
    ($as:ty, $open:path: $($module:ident: [$($name:ident),* $(,)?]),* $(,)?) => {
        vec![$($((
            concat!(stringify!($module), "::", stringify!($name)),
            (|store| Box::pin(async move { $module::$name($open(store).await?).await })) as $as,
        )),*),*]
    };
}

async fn itself<T>(it: T) -> Result<T, Failed> {
    Ok(it)
}

/// All cases in reading order. Each opens partition [`world::PARTITION`] of the store that it gets.
pub fn cases() -> Vec<(&'static str, Case)> {
    cases!(Case, World::open:
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
            a_key_is_claimed_once_and_finished_once,
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

/// Cases of a store that has one partition only.
pub fn lone_cases() -> Vec<(&'static str, Case)> {
    cases!(Case, World::open: inboxes: [a_lone_partition_has_no_inbox])
}

/// Cases of a store that has several partitions; three are enough.
pub fn partition_cases() -> Vec<(&'static str, Case)> {
    cases!(Case, itself:
        partitions: [
            partitions_are_numbered_from_one,
            rows_of_two_partitions_do_not_mix,
            ranges_hold_rows_of_their_own_partition,
            each_partition_has_its_own_fence,
            each_partition_is_summed_alone,
            unique_values_are_unique_over_partitions,
            message_ids_are_unique_over_partitions,
            what_another_partition_received_is_told,
            records_are_shared_over_partitions,
        ],
        inboxes: [
            commands_arrive_in_order,
            a_cut_page_holds_the_first_of_each_source,
            a_command_is_taken_exactly_once,
            an_inbox_is_its_partitions_own,
            a_void_turn_sends_and_takes_nothing,
            what_is_under_way_is_told,
        ],
        across: [
            messages_of_equal_positions_are_kept_apart,
            audit_is_read_over_partitions,
            definitions_are_those_of_the_first_partition,
            instances_are_listed_over_partitions,
            an_instance_is_shown_without_its_copies,
            jobs_and_incidents_are_listed_over_partitions,
            commands_are_found_in_their_partition,
            uses_and_gauges_are_summed_over_partitions,
        ],
    )
}

/// Cases of nodes that share a store.
pub fn node_cases() -> Vec<(&'static str, NodeCase)> {
    cases!(NodeCase, itself:
        nodes: [
            a_node_joins_and_is_listed,
            a_node_owns_what_it_opened,
            what_a_living_node_owns_is_refused,
            a_released_partition_is_free_at_once,
            who_leaves_owns_nothing,
            the_same_name_again_is_another_node,
        ],
    )
}

/// Those of them in which leases run out.
pub fn lease_cases() -> Vec<(&'static str, NodeCase)> {
    cases!(NodeCase, itself:
        nodes: [a_renewed_lease_lasts, a_lease_that_ran_out_frees_its_partitions, who_was_struck_off_enters_again],
    )
}

/// What a run of the suite left out, by name: the store has no such thing to be held to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub passed: Vec<&'static str>,
    pub not_applicable: Vec<&'static str>,
}

/// Runs every case that concerns such a store, each over one of its own, and panics at the end with the names of those that
/// failed. Those that do not concern it are said, and reported.
pub async fn run_all<F: Future<Output = Arc<dyn Store>>>(make: impl Fn() -> F) -> Report {
    let has_several = !make().await.partitions().is_one();
    let (concerns, does_not) =
        if has_several { (partition_cases(), lone_cases()) } else { (lone_cases(), partition_cases()) };
    let mut tried = Tried::default();
    for (name, case) in cases().into_iter().chain(concerns) {
        let named = Named(name);
        tried.note(name, case(make().await).await);
        drop(named);
    }
    tried.end(does_not.into_iter().map(|(name, _)| name).collect())
}

/// The same for nodes that share a store.
pub async fn run_nodes<F: Future<Output = Arc<dyn Nodes>>>(make: impl Fn() -> F) -> Report {
    let (concerns, does_not) =
        if make().await.has_time() { (lease_cases(), Vec::new()) } else { (Vec::new(), lease_cases()) };
    let mut tried = Tried::default();
    for (name, case) in node_cases().into_iter().chain(concerns) {
        let named = Named(name);
        tried.note(name, case(make().await).await);
        drop(named);
    }
    tried.end(does_not.into_iter().map(|(name, _)| name).collect())
}

#[derive(Default)]
struct Tried {
    passed: Vec<&'static str>,
    failures: Vec<String>,
}

impl Tried {
    fn note(&mut self, name: &'static str, result: Result<(), Failed>) {
        match result {
            Ok(()) => self.passed.push(name),
            Err(failed) => self.failures.push(format!("{name}: {failed}")),
        }
    }

    fn end(self, not_applicable: Vec<&'static str>) -> Report {
        let count = self.passed.len() + self.failures.len();
        eprintln!("{} of {count} cases passed; not applicable to this store: {not_applicable:?}", self.passed.len());
        assert!(
            self.failures.is_empty(),
            "{} of {count} cases failed:\n{}",
            self.failures.len(),
            self.failures.join("\n")
        );
        Report { passed: self.passed, not_applicable }
    }
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
