//! A Compute in memory, with one flaw or none.

mod abilities;
mod driver;
mod place;
mod step;
mod subject;

use occ_conformance::compute::suite;
use subject::Model;

/// What is wrong with a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    IdentityPerInstance,
    AbilityGoes,
    AdmissionWrites,
    AdmissionAlternates,
    RejectionHoldsValue,
    NamespaceMadeAnew,
    OtherNamespaceSeen,
    SecondRemovalFails,
    RemovalOfNothingFails,
    RemovalRemovesAll,
    ReadyOnce,
    OtherVersionSeen,
    StartsEachTime,
    ForgetsBoundSecret,
    BelievesMissingProgram,
    ForgetsWhatItStarted,
    SecondActivationFails,
    RouteAtPrepare,
    PrepareStopsPredecessor,
    BelievesRefusedCredential,
    RefusalStopsPredecessor,
    ActivationBlind,
    RouteInMemory,
    DeactivationOfNothingFails,
    DeactivationKeepsRoute,
    DeactivationStops,
    SecondStopFails,
    StopOfNothingFails,
    StopKeepsRoute,
    StopOfStartFails,
    StopRemovesWorkspace,
    StopRemovesCredentials,
    StopsItsOwnOnly,
    StopStopsSiblings,
    SecondRetireFails,
    RetireOfNothingFails,
    RetireStopsSuccessor,
    DeletionOfNothingFails,
    DeletionLeavesState,
    HalfDone,
    IgnoresCancellation,
    AdoptsForeign,
    ProvisionOverwrites,
    CredentialsSurvive,
    OnePasswordForAll,
    CredentialsAppear,
    ReplaysFiles,
    FilesAfterStart,
    DiscardOfNothingFails,
    RouteByGuess,
    SuccessWithoutEvidence,
    TooManyChecks,
    FirstLines,
    UnplannedImage,
    SecondBindingFails,
    NoInterval,
    LookingWrites,
    ForgetsHooks,
    ErrorHoldsSecret,
    KeepsSecret,
}

#[test]
fn a_compute_that_keeps_its_contract_keeps_every_rule() {
    super::keeps_every_rule(suite(|| Model::with(Flaw::None)));
}

#[test]
fn a_compute_with_exclusive_replacement_keeps_every_rule_that_concerns_it() {
    let (mine, skipped): (Vec<_>, Vec<_>) = suite(Model::exclusive)
        .into_iter()
        .partition(|case| case.skipped_because().is_none());
    super::keeps_every_rule(mine);
    let names: Vec<_> = skipped.iter().map(|case| case.name().rsplit("::").next()).collect();
    assert_eq!(
        names,
        [
            Some("the_predecessor_serves_until_the_activation"),
            Some("a_refused_candidate_leaves_its_predecessor_alone"),
        ]
    );
}

#[test]
fn every_rule_for_computes_has_teeth() {
    use Flaw::*;
    let table = [
        (IdentityPerInstance, "it_says_who_it_is"),
        (AbilityGoes, "abilities_do_not_come_and_go"),
        (AdmissionWrites, "what_admission_asks_has_no_effect_and_one_answer"),
        (AdmissionAlternates, "what_admission_asks_has_no_effect_and_one_answer"),
        (RejectionHoldsValue, "what_admission_asks_has_no_effect_and_one_answer"),
        (NamespaceMadeAnew, "a_namespace_is_provided_and_found_again"),
        (OtherNamespaceSeen, "a_namespace_is_provided_and_found_again"),
        (SecondRemovalFails, "a_namespace_is_removed_and_stays_removed"),
        (RemovalOfNothingFails, "a_namespace_that_never_was_is_removed"),
        (RemovalRemovesAll, "removing_a_namespace_leaves_the_others"),
        (ReadyOnce, "prepare_converges_and_repeats_its_answer"),
        (OtherVersionSeen, "prepare_converges_and_repeats_its_answer"),
        (StartsEachTime, "a_version_is_started_once"),
        (ForgetsBoundSecret, "the_component_receives_its_secrets"),
        (BelievesMissingProgram, "a_missing_program_is_never_ready"),
        (
            ForgetsWhatItStarted,
            "a_new_driver_goes_on_where_the_old_one_was_cut_off",
        ),
        (SecondActivationFails, "activation_may_be_repeated"),
        (RouteAtPrepare, "the_route_leads_to_the_active_version"),
        (PrepareStopsPredecessor, "the_predecessor_serves_until_the_activation"),
        (
            BelievesRefusedCredential,
            "a_refused_candidate_leaves_its_predecessor_alone",
        ),
        (
            RefusalStopsPredecessor,
            "a_refused_candidate_leaves_its_predecessor_alone",
        ),
        (ActivationBlind, "activation_believes_only_what_serves"),
        (RouteInMemory, "a_route_outlives_the_control_plane"),
        (
            DeactivationOfNothingFails,
            "deactivation_takes_the_version_off_the_route_and_may_be_repeated",
        ),
        (
            DeactivationKeepsRoute,
            "deactivation_takes_the_version_off_the_route_and_may_be_repeated",
        ),
        (
            DeactivationStops,
            "deactivation_takes_the_version_off_the_route_and_may_be_repeated",
        ),
        (SecondStopFails, "stop_may_be_repeated"),
        (StopOfNothingFails, "a_version_that_was_never_prepared_can_be_stopped"),
        (StopKeepsRoute, "stop_takes_the_route_away"),
        (StopOfStartFails, "stop_during_prepare_leaves_nothing_running"),
        (StopRemovesWorkspace, "stop_keeps_workspace_and_credentials"),
        (StopRemovesCredentials, "stop_keeps_workspace_and_credentials"),
        (StopsItsOwnOnly, "a_new_driver_stops_what_an_old_one_started"),
        (StopStopsSiblings, "stopping_an_agent_leaves_its_siblings"),
        (SecondRetireFails, "retire_may_be_repeated"),
        (RetireOfNothingFails, "a_version_that_was_never_prepared_can_be_retired"),
        (
            RetireStopsSuccessor,
            "retiring_a_predecessor_leaves_its_successor_serving",
        ),
        (DeletionOfNothingFails, "an_agent_that_never_ran_can_be_deleted"),
        (DeletionLeavesState, "a_deleted_agent_leaves_nothing"),
        (HalfDone, "effects_that_are_dropped_are_finished_by_their_repetition"),
        (HalfDone, "a_cancelled_effect_ends_and_is_finished_by_its_repetition"),
        (IgnoresCancellation, "nothing_is_begun_under_a_cancelled_context"),
        (AdoptsForeign, "a_foreign_object_is_refused_and_not_touched"),
        (ProvisionOverwrites, "credentials_are_made_once_and_never_overwritten"),
        (CredentialsSurvive, "credentials_are_deleted_and_stay_deleted"),
        (OnePasswordForAll, "a_password_is_the_agents_own"),
        (CredentialsAppear, "no_credentials_is_an_answer"),
        (
            ReplaysFiles,
            "initial_files_are_there_before_the_start_and_never_replayed",
        ),
        (
            FilesAfterStart,
            "initial_files_are_there_before_the_start_and_never_replayed",
        ),
        (DiscardOfNothingFails, "a_setup_is_discarded_and_may_be_discarded_again"),
        (RouteByGuess, "a_version_that_never_was_has_no_route"),
        (
            SuccessWithoutEvidence,
            "a_diagnosis_is_bounded_and_sees_nothing_where_nothing_is",
        ),
        (
            TooManyChecks,
            "a_diagnosis_is_bounded_and_sees_nothing_where_nothing_is",
        ),
        (FirstLines, "log_lines_are_the_last_ones_and_bounded"),
        (UnplannedImage, "images_are_of_planned_components"),
        (SecondBindingFails, "a_binding_may_be_repeated"),
        (NoInterval, "maintenance_has_an_interval"),
        (LookingWrites, "looking_changes_nothing"),
        (ForgetsHooks, "hooks_surround_a_workload"),
        (ErrorHoldsSecret, "no_error_holds_a_secret"),
        (KeepsSecret, "nothing_that_is_kept_holds_a_secret"),
    ];
    super::every_rule_has_teeth(&table, |flaw| suite(move || Model::with(flaw)));
}
