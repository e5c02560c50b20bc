//! The suite of the Secret contract (spec/contracts 9, and the cases of 9.9).
//!
//! A driver that keeps its records through the operation's context needs nothing else than itself: the suite commits what it stages. One
//! with a backend of its own works against that backend.

mod damage;
mod ownership;
mod scene;
mod secrecy;
mod swaps;
mod values;

use std::{pin::Pin, sync::Arc};

use async_trait::async_trait;
use occ_core::{
    driver::{MemoryState, SecretDriver, SecretIdentity, capabilities},
    resource::BackendRef,
};

use crate::case::{Case, runtime};
use scene::Scene;

pub use damage::RecordDamage;

/// One fresh place for a Secret Driver to keep values in; gone with the value.
pub trait Subject: Send + Sync {
    /// A driver over this place. Each call makes another one, as the control plane does when it starts again.
    fn driver(&self) -> Arc<dyn SecretDriver>;

    /// A driver of another instance id over the same place, when there can be one.
    fn another(&self) -> Option<Arc<dyn SecretDriver>> {
        None
    }

    /// A way to spoil what is stored. A driver that keeps its records through the context has [`RecordDamage`].
    fn damage(&self) -> Option<&dyn Damage> {
        None
    }
}

/// Spoils what is stored, past the driver.
#[async_trait]
pub trait Damage: Send + Sync {
    /// How many ways of spoiling there are.
    fn ways(&self) -> usize;

    /// Spoils the stored form of this Secret in the way of this number, from 0. `records` are those that were kept through the context.
    async fn spoil(&self, way: usize, records: &MemoryState, secret: &SecretIdentity, at: &BackendRef);
}

#[derive(Clone, Copy)]
enum Need {
    Swap,
    Another,
    Damage,
}

struct Rule {
    name: &'static str,
    need: Option<Need>,
    check: for<'a> fn(&'a Scene) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
}

macro_rules! rules {
    (@need) => { None };
    (@need $need:ident) => { Some(Need::$need) };
    ($($area:ident: $($name:ident $([$need:ident])?),* $(,)?;)*) => {
        vec![$($(Rule {
            name: concat!("secret::", stringify!($area), "::", stringify!($name)),
            need: rules!(@need $($need)?),
            check: |scene| Box::pin($area::$name(scene)),
        },)*)*]
    };
}

fn rules() -> Vec<Rule> {
    rules! {
        values:
            it_says_who_it_is,
            a_look_ahead_may_be_repeated,
            a_value_comes_back_to_the_last_byte,
            the_longest_value_comes_back,
            a_new_driver_reads_what_an_old_one_stored,
            a_repeated_create_adopts_its_own_object,
            a_repeated_create_keeps_the_value_that_is_there,
            an_update_replaces_the_value_and_keeps_the_object,
            a_reference_is_resolved_to_itself,
            secrets_keep_apart,
            deletion_may_be_repeated,
            what_does_not_exist_is_an_error;
        ownership:
            what_is_created_anew_is_another_object,
            every_part_of_a_reference_counts,
            another_namespace_is_refused,
            another_secret_is_refused,
            another_instance_neither_reads_nor_removes [Another];
        swaps:
            a_swap_happens_only_if_the_value_is_the_expected_one [Swap],
            of_two_swaps_of_one_value_one_happens [Swap],
            a_swap_of_another_object_is_refused [Swap];
        damage:
            a_spoilt_object_is_never_another_value [Damage];
        secrecy:
            no_value_is_in_a_reference_or_a_record,
            no_error_holds_a_value;
    }
}

/// Every rule, over subjects that `fresh` makes: one for each rule, and one to see which rules concern the driver.
pub fn suite<S: Subject + 'static>(fresh: impl Fn() -> S + Send + Sync + 'static) -> Vec<Case> {
    let fresh = Arc::new(fresh);
    let (swaps, another, damage) = runtime().block_on(async {
        let subject = fresh();
        let abilities = capabilities(&*subject.driver());
        let swaps = abilities.iter().any(|ability| ability.as_str() == "compare_and_swap");
        (swaps, subject.another().is_some(), subject.damage().is_some())
    });
    let missing = |need| match need {
        Need::Swap => (!swaps).then_some("the driver has no compare_and_swap"),
        Need::Another => (!another).then_some("the subject has no other instance"),
        Need::Damage => (!damage).then_some("the subject spoils nothing"),
    };
    let case = |rule: Rule| {
        if let Some(reason) = rule.need.and_then(missing) {
            return Case::skipped(rule.name, reason);
        }
        let fresh = Arc::clone(&fresh);
        Case::new(rule.name, move || async move {
            (rule.check)(&Scene::new(Box::new(fresh()))).await;
        })
    };
    rules().into_iter().map(case).collect()
}
