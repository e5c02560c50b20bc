//! The suite of the [`Store`] contract.
//!
//! ```no_run
//! use std::{process::ExitCode, sync::Arc};
//!
//! use occ_conformance::{run, store::{Subject, suite}};
//! # async fn fresh() -> Arc<dyn Subject> { unimplemented!() }
//!
//! // tests/conformance.rs, with `harness = false`
//! fn main() -> ExitCode {
//!     run(suite(fresh))
//! }
//! ```
//!
//! Where a case waits, it polls for a condition within a generous bound.

mod accounts;
mod admissions;
mod claims;
mod commits;
mod deployments;
mod lists;
mod names;
mod owned;
mod policy;
mod recovery;
mod references;
mod removal;
mod retention;
mod settling;
mod together;
mod versions;
mod waits;
mod world;

use std::sync::Arc;

use async_trait::async_trait;
use occ_core::store::Store;
use serde_json::{Map, Value};

use crate::Case;

/// A recorded audit event, as far as the suite looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its id.
    pub id: String,
    /// What was done.
    pub action: String,
    /// `success`, `failure` or `denied`.
    pub outcome: String,
    /// The code.
    pub reason_code: Option<String>,
    /// Ids, codes and counts.
    pub details: Map<String, Value>,
}

/// A fresh, empty store under test.
#[async_trait]
pub trait Subject: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Another handle on the same data, as a second process would have it.
    async fn second(&self) -> Arc<dyn Store>;

    /// Every audit event, the oldest first, by whatever means the database has: the contract itself does not read them.
    async fn audit(&self) -> Vec<Recorded>;
}

macro_rules! cases {
    ($fresh:ident; $($area:ident: $($name:ident),* $(,)?;)*) => {
        vec![$($({
            let fresh = $fresh.clone();
            Case::new(concat!("store::", stringify!($area), "::", stringify!($name)), move || async move {
                $area::$name(fresh().await).await;
            })
        },)*)*]
    };
}

/// Every case, each over a store that `fresh` makes.
// A list.
#[allow(clippy::too_many_lines)]
pub fn suite<F>(fresh: impl Fn() -> F + Clone + Send + 'static) -> Vec<Case>
where
    F: Future<Output = Arc<dyn Subject>> + 'static,
{
    cases! {
        fresh;
        commits:
            an_installation_exists_once,
            what_is_written_reads_back,
            each_expectation_holds_or_names_itself,
            a_conflict_leaves_nothing_of_the_change,
            a_write_that_fails_late_leaves_nothing_of_the_change,
            driver_records_commit_with_the_change_or_not_at_all,
            driver_records_are_fenced_by_their_version,
            an_update_of_something_absent_is_refused,
            what_an_owner_asks_is_written_without_the_settings,
            an_event_is_recorded_once,
            concurrent_changes_of_one_agent_let_one_through,
            changes_that_expect_the_same_in_any_order_do_not_wait_in_a_circle;
        admissions:
            an_admission_is_written_whole,
            an_admission_names_what_no_longer_holds,
            an_admission_that_breaks_a_rule_leaves_nothing;
        together:
            admissions_at_once_are_judged_each_by_itself,
            passes_at_once_end_each_by_itself,
            recoveries_at_once_give_each_back_once,
            reads_at_once_are_answered_each_by_itself;
        waits:
            a_wait_is_put_off_and_keeps_what_it_recorded,
            a_wait_between_its_two_moments_is_left_as_it_is,
            of_what_is_due_at_one_moment_the_oldest_is_claimed_first,
            what_changed_is_not_put_off;
        names:
            an_agents_name_is_unique_in_its_namespace,
            a_secrets_name_is_unique_in_its_namespace,
            a_namespaces_name_is_unique_in_the_installation,
            a_deleted_agents_name_is_free_again;
        lists:
            lists_are_read_in_parts_that_follow_each_other;
        references:
            a_secret_is_consumed_by_drafts_bindings_and_live_versions_only,
            a_configuration_is_consumed_by_its_agents,
            what_is_referred_to_is_not_deleted,
            a_namespace_lists_what_it_owns;
        owned:
            small_resources_read_back_and_are_fenced_by_their_version,
            what_a_small_resource_names_and_what_names_it_is_seen,
            a_credential_source_reads_back_and_whoever_names_it_is_seen,
            a_first_answer_is_kept_once,
            a_deletion_that_was_begun_lets_nothing_new_refer,
            the_audit_is_read_newest_first_and_filtered,
            seals_follow_the_audit_without_gaps;
        policy:
            grants_are_those_of_the_principal,
            of_the_policy_of_a_namespace_what_is_asked_for_is_found,
            the_policy_of_the_installation_is_confined_to_no_namespace,
            admission_reads_the_policy_and_the_records_that_it_would_ask_for,
            policy_of_a_removed_resource_goes_with_it,
            a_service_key_ends_by_the_databases_clock,
            a_role_in_use_is_not_deleted;
        accounts:
            an_account_is_one_of_a_person,
            an_accounts_changes_are_counted_and_fenced,
            a_session_ends_by_the_databases_clock,
            sessions_end_with_what_they_rest_on,
            the_keys_of_a_disabled_account_say_so,
            what_verifies_tokens_of_agents_ends_by_the_databases_clock,
            an_identity_is_linked_to_one_account;
        versions:
            versions_are_numbered_without_gaps,
            a_versions_bytes_read_back_with_their_digest,
            an_agent_selects_only_its_own_versions,
            a_retired_version_leaves_the_live_ones,
            a_pass_reads_what_its_target_needs,
            admission_reads_what_the_draft_names,
            workspace_files_are_forgotten_once_applied,
            selected_versions_that_should_run_are_looked_after;
        deployments:
            a_deployment_is_read_only_under_its_own_parents,
            a_deployment_waits_runs_and_succeeds,
            a_lapsed_claim_reads_as_queued,
            a_failure_keeps_its_facts,
            what_compute_still_holds_is_pending_cleanup,
            queued_work_that_cleans_up_says_when_it_is_due,
            later_deployments_leave_a_result_as_it_was;
        claims:
            the_oldest_due_work_is_claimed_first,
            one_piece_of_work_a_lane,
            lanes_are_disjoint_between_concurrent_claimers,
            one_agent_never_runs_twice,
            deferred_work_is_not_claimed_before_it_is_due,
            spent_work_is_not_claimed,
            a_renewed_claim_outlives_its_first_lease,
            a_lapsed_or_unknown_claim_is_not_renewed,
            work_keeps_its_place_in_a_trace,
            the_next_due_work_is_that_of_a_free_lane,
            the_next_lapse_is_that_of_the_shortest_lease,
            the_depth_of_the_queue_counts_what_is_live,
            enqueued_work_wakes_a_waiting_worker,
            whatever_moves_work_is_heard_by_who_waits_for_news,
            work_enqueued_twice_is_the_work_that_exists,
            work_of_another_actor_is_not_taken_over;
        settling:
            a_deferral_gives_the_attempt_back,
            a_retry_spends_the_attempt,
            the_same_deferral_is_recorded_once,
            a_repeated_refused_stop_is_recorded_each_time,
            a_retry_keeps_a_waiting_refusal,
            every_settlement_is_evidence,
            a_stale_token_publishes_nothing,
            a_settled_claim_is_over,
            a_result_is_never_rewritten,
            a_failed_deletion_is_repeated_with_fresh_attempts;
        recovery:
            nothing_lapsed_is_nothing_recovered,
            a_lost_claim_is_queued_again_with_its_attempt_spent,
            a_lost_claim_is_due_again_within_half_a_second,
            the_last_attempt_lost_ends_the_work,
            a_published_version_gets_exactly_one_more_attempt,
            a_live_claim_is_left_alone_beside_one_that_lapsed,
            a_refused_candidates_stop_costs_no_attempt,
            spent_queued_work_ends,
            a_namespace_fails_with_the_work_that_provides_it,
            exhausted_maintenance_of_the_selected_version_goes_on,
            recovery_in_two_processes_recovers_once;
        removal:
            a_removed_agent_leaves_only_its_audit,
            a_removal_and_its_settlement_are_one_change,
            a_stale_claim_removes_nothing,
            an_agent_that_is_not_deleting_is_not_removed,
            a_tombstone_keeps_the_id_and_the_name,
            a_namespace_in_use_has_no_tombstone;
        retention:
            work_that_nothing_reads_is_removed_and_the_rest_stays,
            the_work_of_what_was_removed_goes_too,
            the_chain_of_the_audit_is_followed_from_where_it_was_pruned,
            a_pruning_is_recorded_and_goes_on_in_batches_beside_live_work;
    }
}
