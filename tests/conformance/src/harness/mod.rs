//! The suite of the Harness contract (spec/contracts 10): every method is pure, and a plan names nothing that only a host or a Secret
//! Driver knows.

mod documents;
mod fuzz;
mod plans;
mod purity;
mod roles;
mod sample;
mod texts;

use std::sync::Arc;

use occ_core::{driver::Harness, resource::Document};

use crate::case::Case;

pub use sample::Sample;

/// A Harness, with documents to give it.
pub trait Subject: Send + Sync {
    /// The Harness. Each call makes another one, as the control plane does when it starts again.
    fn harness(&self) -> Arc<dyn Harness>;

    /// What it can run, at least one for each mode.
    fn accepted(&self) -> Vec<Sample>;

    /// What it refuses to deploy, each by a name that says why.
    fn refused(&self) -> Vec<(&'static str, Sample)>;

    /// Documents with a literal credential where a reference belongs: refused already when they are saved. The credential is
    /// [`LITERAL`].
    fn literal_credentials(&self) -> Vec<(&'static str, Document)>;

    /// The names of the tools that its plans ask Computes for.
    fn tools(&self) -> Vec<&'static str>;
}

/// The literal credential of [`Subject::literal_credentials`]; the suite looks for it in refusals.
pub const LITERAL: &str = crate::canary::CREDENTIAL;

type Check = fn(&dyn Subject);

struct Rule {
    name: &'static str,
    check: Check,
}

macro_rules! rules {
    ($($area:ident: $($name:ident),* $(,)?;)*) => {
        vec![$($(Rule {
            name: concat!("harness::", stringify!($area), "::", stringify!($name)),
            check: $area::$name,
        },)*)*]
    };
}

fn rules() -> Vec<Rule> {
    rules! {
        purity:
            it_says_who_it_is,
            a_document_has_one_answer,
            a_plan_is_the_same_each_time;
        documents:
            what_it_runs_is_accepted,
            what_it_refuses_is_refused,
            a_mode_that_it_does_not_have_is_refused,
            a_literal_credential_is_refused_when_it_is_saved,
            no_refusal_repeats_a_value;
        plans:
            a_plan_has_components_of_its_mode,
            every_place_can_be_filled,
            names_of_files_stay_below_their_directory,
            every_limit_of_time_is_one;
        texts:
            a_plan_names_no_path_of_a_host,
            a_plan_holds_nothing_of_a_secret;
        roles:
            credentials_follow_the_role,
            bound_secrets_reach_the_gateway_alone;
        fuzz:
            a_damaged_document_is_refused_or_planned_and_never_a_panic;
    }
}

/// Every rule, over subjects that `fresh` makes: one for each.
pub fn suite<S: Subject + 'static>(fresh: impl Fn() -> S + Send + Sync + 'static) -> Vec<Case> {
    let fresh = Arc::new(fresh);
    let case = |rule: Rule| {
        let fresh = Arc::clone(&fresh);
        // On a thread without a runtime: what is pure needs none.
        let check = move || {
            let thread = std::thread::spawn(move || (rule.check)(&fresh()));
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        };
        Case::new(rule.name, move || async move { check() })
    };
    rules().into_iter().map(case).collect()
}
