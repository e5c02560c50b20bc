//! The SQLite store against the suite of the Store contract, and what holds of SQLite alone.

mod child;
mod crash;
mod guards;
mod opening;
mod sharing;
mod space;
mod subject;

use std::{pin::Pin, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};
use occ_conformance::store::{Case, suite};
use subject::SqliteSubject;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    // The tests start this program again as the process that is killed, or that runs out of space.
    if let Some(role) = child::role() {
        return runtime().block_on(child::run(role));
    }
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = suite().into_iter().map(contract).collect();
    trials.extend(own());
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// One case of the contract over a fresh file.
fn contract(case: Case) -> Trial {
    Trial::test(format!("store::{}", case.name()), move || {
        runtime().block_on(async {
            case.run(Arc::new(SqliteSubject::new().await)).await;
        });
        Ok(())
    })
}

type Running = Pin<Box<dyn Future<Output = ()>>>;

fn trial(name: &str, run: fn() -> Running) -> Trial {
    Trial::test(name, move || {
        runtime().block_on(run());
        Ok(())
    })
}

macro_rules! own {
    ($($area:ident: $($name:ident),* $(,)?;)*) => {
        vec![$($(trial(
            concat!("sqlite::", stringify!($area), "::", stringify!($name)),
            || Box::pin($area::$name()),
        ),)*)*]
    };
}

/// What holds of SQLite alone.
fn own() -> Vec<Trial> {
    let mut trials = own! {
        guards:
            the_audit_is_append_only,
            a_version_never_changes,
            a_version_is_removed_only_with_its_agent,
            a_result_of_work_never_changes,
            only_possible_shapes_are_stored,
            undecodable_rows_are_named_and_their_siblings_read;
        opening:
            the_file_and_its_companions_are_private,
            a_missing_directory_is_named,
            a_directory_is_not_a_file,
            a_place_that_may_not_be_written_is_denied,
            garbage_is_no_database_and_stays_as_it_is,
            a_damaged_database_is_refused,
            another_programs_database_is_refused_and_stays_as_it_is,
            a_newer_schema_is_refused_and_stays_as_it_is,
            a_database_that_another_program_keeps_locked_is_refused,
            opening_at_once_in_two_handles_migrates_once,
            a_closed_store_leaves_one_file_and_answers_no_more,
            a_database_in_memory_is_a_store;
        sharing:
            a_write_waits_for_another_process_and_gives_up_cleanly,
            a_reader_sees_one_moment_while_another_writes,
            a_commit_whose_caller_went_away_is_still_whole;
        crash:
            a_killed_writer_leaves_only_whole_changes;
        space:
            a_full_file_system_refuses_the_change_and_recovers,
            a_full_file_system_takes_no_new_database,
            a_file_size_limit_refuses_the_change;
    };
    if let Err(reason) = space::mountable() {
        // Named, so that nobody takes them for passed.
        let skip = |trial: Trial| {
            let skipped = trial.name().contains("a_full_file_system");
            let name = format!("{} ({reason})", trial.name());
            if skipped {
                Trial::test(name, || Ok(())).with_ignored_flag(true)
            } else {
                trial
            }
        };
        trials = trials.into_iter().map(skip).collect();
    }
    trials
}
