//! The suite of the Compute contract (spec/contracts 4 and 14.3).
//!
//! ```no_run
//! use std::{process::ExitCode, sync::Arc};
//!
//! use occ_conformance::compute::{self, Subject};
//! use occ_core::driver::ComputeDriver;
//!
//! struct MySubject { /* a directory of its own, a cluster namespace, ... */ }
//!
//! # fn build() -> Arc<dyn ComputeDriver> { unimplemented!() }
//! impl Subject for MySubject {
//!     fn driver(&self) -> Arc<dyn ComputeDriver> {
//!         build()
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     occ_conformance::run(compute::suite(|| MySubject {}))
//! }
//! ```
//!
//! Every rule runs over a fresh subject and removes what it made. Rules that look at a running component need the ability
//! `gateway_access`, and reach the gateway through [`Subject::get`].

mod activating;
mod calls;
mod credentials;
mod cut;
mod hooks;
mod http;
mod looking;
mod namespaces;
mod ownership;
pub mod plan;
mod preparing;
mod purity;
mod retiring;
mod scene;
mod secrecy;
mod secrets;
mod stopping;
mod subject;
mod workspace;

use std::{pin::Pin, sync::Arc};

use occ_core::driver::{Capability, capabilities};

use crate::case::{Case, runtime};
use scene::Scene;

pub use secrets::Canaries;
pub use subject::{Foreign, Inventory, Subject, Wish};

/// What a rule needs of the driver or of the subject.
#[derive(Clone, Copy)]
enum Need {
    /// An optional ability, by its name in the capability table.
    Ability(&'static str),
    /// Two versions at once: no exclusive replacement.
    Beside,
    /// See [`Subject::inventory`].
    Inventory,
    /// See [`Subject::foreign`].
    Foreign,
}

const GATEWAY: Need = Need::Ability("gateway_access");
const CREDENTIALS: Need = Need::Ability("runtime_credentials");
const SETUP: Need = Need::Ability("workspace_setup");
const BESIDE: Need = Need::Beside;
const INVENTORY: Need = Need::Inventory;
const FOREIGN: Need = Need::Foreign;

struct Rule {
    name: &'static str,
    needs: &'static [Need],
    check: for<'a> fn(&'a mut Scene) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
}

macro_rules! rules {
    ($($area:ident: $($name:ident $([$($need:expr),*])?),* $(,)?;)*) => {
        vec![$($(Rule {
            name: concat!("compute::", stringify!($area), "::", stringify!($name)),
            needs: &[$($($need),*)?],
            check: |scene| Box::pin($area::$name(scene)),
        },)*)*]
    };
}

fn rules() -> Vec<Rule> {
    rules! {
        purity:
            it_says_who_it_is,
            abilities_do_not_come_and_go,
            what_admission_asks_has_no_effect_and_one_answer;
        namespaces:
            a_namespace_is_provided_and_found_again,
            a_namespace_is_removed_and_stays_removed,
            a_namespace_that_never_was_is_removed,
            removing_a_namespace_leaves_the_others [INVENTORY];
        preparing:
            prepare_converges_and_repeats_its_answer,
            a_version_is_started_once [GATEWAY],
            the_component_receives_its_secrets [GATEWAY],
            a_missing_program_is_never_ready [GATEWAY],
            a_new_driver_goes_on_where_the_old_one_was_cut_off;
        activating:
            activation_may_be_repeated,
            the_route_leads_to_the_active_version [GATEWAY],
            the_predecessor_serves_until_the_activation [GATEWAY, BESIDE],
            a_refused_candidate_leaves_its_predecessor_alone [GATEWAY, BESIDE],
            activation_believes_only_what_serves [GATEWAY],
            a_route_outlives_the_control_plane [GATEWAY],
            deactivation_takes_the_version_off_the_route_and_may_be_repeated;
        stopping:
            stop_may_be_repeated,
            a_version_that_was_never_prepared_can_be_stopped,
            stop_takes_the_route_away [GATEWAY],
            stop_during_prepare_leaves_nothing_running,
            stop_keeps_workspace_and_credentials [GATEWAY],
            a_new_driver_stops_what_an_old_one_started [GATEWAY],
            stopping_an_agent_leaves_its_siblings [GATEWAY];
        retiring:
            retire_may_be_repeated,
            a_version_that_was_never_prepared_can_be_retired,
            retiring_a_predecessor_leaves_its_successor_serving [GATEWAY],
            an_agent_that_never_ran_can_be_deleted,
            a_deleted_agent_leaves_nothing [INVENTORY];
        calls:
            effects_that_are_dropped_are_finished_by_their_repetition,
            a_cancelled_effect_ends_and_is_finished_by_its_repetition,
            nothing_is_begun_under_a_cancelled_context [INVENTORY];
        ownership:
            a_foreign_object_is_refused_and_not_touched [FOREIGN];
        credentials:
            credentials_are_made_once_and_never_overwritten [CREDENTIALS],
            credentials_are_deleted_and_stay_deleted [CREDENTIALS],
            a_password_is_the_agents_own [CREDENTIALS, GATEWAY],
            no_credentials_is_an_answer [CREDENTIALS];
        workspace:
            initial_files_are_there_before_the_start_and_never_replayed [SETUP, GATEWAY],
            a_setup_is_discarded_and_may_be_discarded_again [SETUP];
        looking:
            a_version_that_never_was_has_no_route [GATEWAY],
            a_diagnosis_is_bounded_and_sees_nothing_where_nothing_is [Need::Ability("diagnostics")],
            log_lines_are_the_last_ones_and_bounded [Need::Ability("logs"), GATEWAY],
            images_are_of_planned_components [Need::Ability("images")],
            a_binding_may_be_repeated [Need::Ability("agent_binding")],
            maintenance_has_an_interval [Need::Ability("maintenance")],
            looking_changes_nothing [INVENTORY];
        hooks:
            hooks_surround_a_workload [Need::Ability("hook_host")];
        secrecy:
            no_error_holds_a_secret,
            nothing_that_is_kept_holds_a_secret [INVENTORY];
    }
}

/// What decides which rules concern a driver.
struct Facts {
    abilities: Vec<&'static str>,
    exclusive: bool,
    inventory: bool,
    foreign: bool,
}

impl Facts {
    fn of(subject: Arc<dyn Subject>) -> Self {
        let scene = Scene::new(subject);
        let abilities = capabilities(&*scene.driver);
        Self {
            abilities: abilities.into_iter().map(Capability::as_str).collect(),
            exclusive: scene.driver.requires_stopped_predecessors(&scene.version(2).target),
            inventory: scene.subject.inventory().is_some(),
            foreign: scene.subject.foreign().is_some(),
        }
    }

    /// Why the rule does not concern the driver.
    fn missing(&self, need: Need) -> Option<String> {
        match need {
            Need::Ability(name) => (!self.abilities.contains(&name)).then(|| format!("the driver has no {name}")),
            Need::Beside => self
                .exclusive
                .then(|| "the driver wants its predecessors stopped".to_owned()),
            Need::Inventory => (!self.inventory).then(|| "the subject has no inventory".to_owned()),
            Need::Foreign => (!self.foreign).then(|| "the subject plants nothing foreign".to_owned()),
        }
    }
}

/// Every rule, over subjects that `fresh` makes: one for each rule, and one to see which rules concern the driver.
pub fn suite<S: Subject + 'static>(fresh: impl Fn() -> S + Send + Sync + 'static) -> Vec<Case> {
    let fresh = Arc::new(fresh);
    let facts = runtime().block_on(async { Facts::of(Arc::new(fresh())) });
    let case = |rule: Rule| {
        if let Some(reason) = rule.needs.iter().find_map(|need| facts.missing(*need)) {
            return Case::skipped(rule.name, reason);
        }
        let fresh = Arc::clone(&fresh);
        Case::new(rule.name, move || async move {
            let mut scene = Scene::new(Arc::new(fresh()));
            (rule.check)(&mut scene).await;
            scene.cleared().await;
        })
    };
    rules().into_iter().map(case).collect()
}
