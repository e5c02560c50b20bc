//! The `SQLite` store against the suite of the Store contract, and what holds of `SQLite` alone.

mod child;
mod copy;
mod crash;
mod guards;
mod opening;
mod sharing;
mod space;
mod subject;
#[path = "../world/mod.rs"]
mod world;

use std::{process::ExitCode, sync::Arc};

use occ_conformance::{
    Case, run,
    store::{Subject, suite},
};
use subject::SqliteSubject;

fn main() -> ExitCode {
    // The tests start this program again as the process that is killed, or that runs out of space.
    if let Some(role) = child::role() {
        return child::run(role);
    }
    let fresh = || async { Arc::new(SqliteSubject::new().await) as Arc<dyn Subject> };
    run(suite(fresh).into_iter().chain(own()))
}

macro_rules! own {
    ($($area:ident: $($name:ident),* $(,)?;)*) => {
        vec![$($(Case::new(
            concat!("sqlite::", stringify!($area), "::", stringify!($name)),
            $area::$name,
        ),)*)*]
    };
}

/// What holds of `SQLite` alone.
fn own() -> Vec<Case> {
    let mut cases = own! {
        guards:
            the_audit_is_append_only,
            a_version_never_changes,
            a_version_is_removed_only_with_its_agent,
            a_result_of_work_never_changes,
            only_possible_shapes_are_stored,
            undecodable_rows_are_named_and_their_siblings_read,
            a_spoilt_piece_of_work_keeps_no_other_back,
            a_pass_reads_what_is_left_of_spoilt_rows,
            codes_of_another_version_are_read,
            a_spoilt_claim_is_taken_back,
            spent_work_that_is_spoilt_is_left_alone,
            a_spoilt_row_takes_no_other_claim_with_it,
            only_what_the_anchor_passed_leaves_the_audit;
        opening:
            the_file_and_its_companions_are_private,
            a_missing_directory_is_named,
            a_directory_is_not_a_file,
            a_place_that_may_not_be_written_is_denied,
            garbage_is_no_database_and_stays_as_it_is,
            a_damaged_database_is_refused,
            another_programs_database_is_refused_and_stays_as_it_is,
            a_newer_schema_is_refused_and_stays_as_it_is,
            a_schema_without_a_version_is_damage_and_stays_as_it_is,
            a_schema_that_is_not_what_its_version_says_is_refused_and_stays_as_it_is,
            a_database_that_another_program_keeps_locked_is_refused,
            opening_at_once_in_two_handles_migrates_once,
            a_closed_store_leaves_one_file_and_answers_no_more,
            a_database_in_memory_is_a_store;
        copy:
            a_backup_of_a_database_in_use_is_of_one_moment_and_private,
            a_backup_replaces_no_file,
            a_restored_database_is_the_backup,
            a_database_that_is_open_or_knows_more_is_not_replaced,
            what_is_no_backup_of_ours_restores_nothing;
        sharing:
            a_write_waits_for_another_process_and_gives_up_cleanly,
            a_reader_sees_one_moment_while_another_writes,
            a_worker_that_has_nothing_to_do_waits_for_nobody,
            a_commit_whose_caller_went_away_is_still_whole;
        crash:
            a_killed_writer_leaves_only_whole_changes;
        space:
            a_file_size_limit_refuses_the_change;
    };
    match space::mountable() {
        Ok(()) => cases.extend(own! {
            space:
                a_full_file_system_refuses_the_change_and_recovers,
                a_full_file_system_takes_no_new_database;
        }),
        Err(reason) => cases.push(Case::skipped("sqlite::space::a_full_file_system", reason)),
    }
    cases
}
