//! Real workers in processes of their own, under real faults: killed, stopped, with a wrong clock, on a full disk, with a server that
//! crashes and connections that fail. Each time all work is done in the end, once each, and nothing needs a hand.

mod child;
mod clock;
mod deaths;
mod process;
mod runtime;
mod scene;
mod siege;
mod space;

use std::process::ExitCode;

use occ_conformance::{Case, run};
use occ_test_support::postgres::absent;

fn main() -> ExitCode {
    // The tests start this program again as a worker.
    if let Some(role) = child::role() {
        return child::run(role);
    }
    run(cases())
}

macro_rules! cases {
    ($($area:ident::$name:ident: $($unable:expr),*;)*) => {
        vec![$(case(
            concat!("workers::", stringify!($area), "::", stringify!($name)),
            [$($unable),*].into_iter().flatten().next(),
            || $area::$name(),
        ),)*]
    };
}

fn case<F>(name: &'static str, unable: Option<&'static str>, check: fn() -> F) -> Case
where
    F: Future<Output = ()> + 'static,
{
    match unable {
        None => Case::new(name, check),
        Some(reason) => Case::skipped(name, reason),
    }
}

fn cases() -> Vec<Case> {
    cases! {
        deaths::what_a_killed_worker_held_is_done_once_each_by_the_next: absent();
        deaths::a_worker_that_was_stopped_past_its_lease_activates_nothing_and_works_on: absent();
        siege::deployments_outlive_workers_that_are_killed_again_and_again: absent();
        siege::deployments_outlive_a_server_that_crashes_again_and_again: siege::no_own_server();
        siege::deployments_outlive_connections_that_freeze_and_break_again_and_again: absent();
        clock::a_worker_whose_clock_jumps_an_hour_keeps_its_claims: absent(), clock::unable();
        space::a_full_disk_of_the_server_stops_no_worker_for_good: absent(), space::unable(), space::no_own_server();
        space::a_full_disk_under_an_embedded_worker_stops_it_for_no_longer_than_it_is_full: space::unable();
    }
}
