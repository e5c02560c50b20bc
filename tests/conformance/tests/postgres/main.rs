//! The `PostgreSQL` store against the suite of the Store contract, and what holds of `PostgreSQL` alone.

mod child;
mod faults;
mod guards;
mod locks;
mod subject;
#[path = "../world/mod.rs"]
mod world;

use std::{process::ExitCode, sync::Arc};

use occ_conformance::{
    Case, run,
    store::{Subject, suite},
};
use occ_test_support::postgres::absent;
use subject::PostgresSubject;

fn main() -> ExitCode {
    // The tests start this program again as the worker that is stopped or killed.
    if let Some(url) = child::database() {
        return child::run(&url);
    }
    let fresh = || async { Arc::new(PostgresSubject::new().await) as Arc<dyn Subject> };
    let given = std::env::var_os("DATABASE_URL").is_some();
    let cases = suite(fresh).into_iter().chain(own()).map(move |case| {
        if given && case.name() == CRASH {
            Case::skipped(CRASH, "a server that was given is not ours to crash")
        } else {
            case
        }
    });
    match absent() {
        None => run(cases),
        Some(reason) => run(cases.map(|case| Case::skipped(case.name().to_owned(), reason))),
    }
}

const CRASH: &str = "postgres::faults::a_crash_of_the_server_loses_nothing_that_was_acknowledged";

macro_rules! own {
    ($($area:ident: $($name:ident),* $(,)?;)*) => {
        vec![$($(Case::new(
            concat!("postgres::", stringify!($area), "::", stringify!($name)),
            $area::$name,
        ),)*)*]
    };
}

/// What holds of `PostgreSQL` alone.
fn own() -> Vec<Case> {
    own! {
        guards:
            the_audit_is_append_only,
            a_version_never_changes,
            a_version_is_removed_only_with_its_agent,
            a_result_of_work_never_changes,
            only_possible_shapes_are_stored,
            a_spoilt_piece_of_work_keeps_no_other_back,
            a_pass_reads_what_is_left_of_spoilt_rows,
            codes_of_another_version_are_read,
            a_spoilt_claim_is_taken_back,
            spent_work_that_is_spoilt_is_left_alone,
            a_spoilt_row_takes_no_other_claim_with_it,
            the_application_writes_only_through_the_functions,
            only_what_the_anchor_passed_leaves_the_audit,
            the_application_prunes_nothing;
        locks:
            a_change_waits_for_whoever_has_what_it_rests_on,
            what_moves_under_a_claim_waits_for_whoever_takes_it_back,
            what_somebody_has_hold_of_is_not_put_off;
        faults:
            a_frozen_connection_does_not_stop_claims,
            cut_connections_are_replaced,
            a_commit_whose_answer_is_lost_is_of_unknown_outcome_and_happens_once,
            a_commit_whose_request_is_lost_is_of_unknown_outcome_and_never_happens,
            work_of_another_process_wakes_this_one,
            a_crash_of_the_server_loses_nothing_that_was_acknowledged,
            a_worker_that_was_stopped_past_its_lease_publishes_nothing,
            a_thousand_claims_of_a_killed_worker_are_all_claimed_again,
            the_queue_does_not_wait_behind_what_passes_ask;
    }
}
