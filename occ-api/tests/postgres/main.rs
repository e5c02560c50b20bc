//! What must hold through HTTP on `PostgreSQL` as it does on the embedded database: the order of admission, and races.

#[path = "../api/admission/mod.rs"]
mod admission;
mod held;
#[path = "../api/impossible.rs"]
mod impossible;
mod lost;
#[path = "../api/races.rs"]
mod races;
#[allow(dead_code, reason = "the embedded database's tests use more of it")]
#[path = "../api/served.rs"]
mod served;

use std::{process::ExitCode, sync::Arc};

use admission::{
    scene::Credentials,
    walk::{Operation, walk},
};
use occ_conformance::{Case, run};
use occ_core::store::{Store, postgres::PostgresStore};
use occ_test_support::postgres::{Database, absent};

fn main() -> ExitCode {
    let cases = [
        Case::new("of_two_faults_of_a_deployment_the_earlier_check_refuses", || {
            on_a_server(|store| walk(Operation::Deploy, Credentials::Delivered, store))
        }),
        Case::new("of_two_faults_of_a_creation_the_earlier_check_refuses", || {
            on_a_server(|store| walk(Operation::Create, Credentials::Delivered, store))
        }),
        Case::new("of_two_faults_of_a_change_the_earlier_check_refuses", || {
            on_a_server(|store| walk(Operation::Update, Credentials::Delivered, store))
        }),
        Case::new(
            "of_two_faults_of_a_mediated_deployment_the_earlier_check_refuses",
            || on_a_server(|store| walk(Operation::Deploy, Credentials::Mediated, store)),
        ),
        Case::new(
            "of_two_faults_of_a_creation_with_mediated_credentials_the_earlier_check_refuses",
            || on_a_server(|store| walk(Operation::Create, Credentials::Mediated, store)),
        ),
        Case::new(
            "of_two_faults_of_a_change_of_mediated_credentials_the_earlier_check_refuses",
            || on_a_server(|store| walk(Operation::Update, Credentials::Mediated, store)),
        ),
        Case::new(
            "of_two_faults_of_a_deployment_with_an_issued_token_the_earlier_check_refuses",
            || on_a_server(|store| walk(Operation::Deploy, Credentials::Issued, store)),
        ),
        Case::new(
            "of_two_faults_of_a_creation_with_an_issued_token_the_earlier_check_refuses",
            || on_a_server(|store| walk(Operation::Create, Credentials::Issued, store)),
        ),
        Case::new(
            "of_two_faults_of_a_change_with_an_issued_token_the_earlier_check_refuses",
            || on_a_server(|store| walk(Operation::Update, Credentials::Issued, store)),
        ),
        Case::new("an_id_that_no_database_can_hold_is_not_found", || {
            on_a_server(impossible::are_not_found)
        }),
        Case::new("two_callers_at_one_agent_end_as_if_one_had_come_first", || {
            on_a_server(races::in_pairs)
        }),
        Case::new("many_callers_at_one_agent_leave_nothing_unfinished", || {
            on_a_server(races::all_at_once)
        }),
        Case::new(
            "a_deployment_that_waits_for_its_agent_keeps_no_other_waiting",
            held::a_deployment_that_waits_for_its_agent_keeps_no_other_waiting,
        ),
        Case::new(
            "a_deployment_whose_commit_is_not_answered_is_done_once_and_its_key_says_so",
            lost::a_deployment_whose_commit_is_not_answered_is_done_once_and_its_key_says_so,
        ),
        Case::new(
            "a_deployment_whose_commit_never_arrives_is_not_done_and_its_key_does_it",
            lost::a_deployment_whose_commit_never_arrives_is_not_done_and_its_key_does_it,
        ),
    ];
    match absent() {
        None => run(cases),
        Some(reason) => run(cases.map(|case| Case::skipped(case.name().to_owned(), reason))),
    }
}

/// Over an empty database of its own, which is there until the case is over.
async fn on_a_server<F: Future<Output = ()>>(case: impl FnOnce(Arc<dyn Store>) -> F) {
    let database = Database::fresh().await;
    let store = PostgresStore::open(&database.settings())
        .await
        .expect("the store opens");
    case(Arc::new(store)).await;
}
