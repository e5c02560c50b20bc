//! The suite of the IAM contract (spec/engine 11, spec/contracts 12.1).
//!
//! A driver that decides by the Installation's own policy is compared with a model of it, question by question. One with a policy of its own
//! is asked what holds of every driver.

mod answers;
mod model;
mod native;
mod policy;
mod questions;

use std::{pin::Pin, sync::Arc};

use occ_core::{driver::IamDriver, iam::PolicyReader};

use crate::case::Case;

/// How a driver is made.
pub trait Subject: Send + Sync {
    /// A driver over this policy. Each call makes another one, as the control plane does when it starts again.
    fn driver(&self, policy: Arc<dyn PolicyReader>) -> Arc<dyn IamDriver>;

    /// Whether it decides by that policy, and by nothing else.
    fn decides_by_native_policy(&self) -> bool {
        true
    }
}

type Check = for<'a> fn(&'a dyn Subject) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

struct Rule {
    name: &'static str,
    native: bool,
    check: Check,
}

macro_rules! rules {
    ($($area:ident ($native:literal): $($name:ident),* $(,)?;)*) => {
        vec![$($(Rule {
            name: concat!("iam::", stringify!($area), "::", stringify!($name)),
            native: $native,
            check: |subject| Box::pin($area::$name(subject)),
        },)*)*]
    };
}

fn rules() -> Vec<Rule> {
    rules! {
        answers (false):
            it_says_who_it_is,
            every_decision_is_signed,
            nobody_is_allowed_nothing,
            what_cannot_exist_is_denied,
            several_questions_are_answered_as_each_alone;
        native (true):
            every_decision_is_the_models,
            more_restrictions_or_fewer_bindings_never_allow_more,
            several_questions_rest_on_one_state_of_the_policy,
            a_change_of_policy_counts_at_once,
            a_policy_that_cannot_be_read_is_an_error_and_not_an_answer,
            a_lookup_gives_the_identity_and_never_another;
    }
}

/// Every rule, over subjects that `fresh` makes: one for each rule, and one to see which rules concern the driver.
pub fn suite<S: Subject + 'static>(fresh: impl Fn() -> S + Send + Sync + 'static) -> Vec<Case> {
    let fresh = Arc::new(fresh);
    let native = fresh().decides_by_native_policy();
    let case = |rule: Rule| {
        if rule.native && !native {
            return Case::skipped(rule.name, "the driver decides by a policy of its own");
        }
        let fresh = Arc::clone(&fresh);
        Case::new(rule.name, move || async move {
            (rule.check)(&fresh()).await;
        })
    };
    rules().into_iter().map(case).collect()
}
