//! The suite of the Configuration contract (spec/contracts 12.2).
//!
//! A driver that keeps its records through the operation's context needs nothing else than itself: the suite commits what it stages.

mod documents;
mod generations;
mod scene;

use std::{pin::Pin, sync::Arc};

use occ_core::driver::ConfigurationDriver;

use crate::case::Case;
use scene::Scene;

/// One fresh place for a Configuration Driver to keep documents in; gone with the value.
pub trait Subject: Send + Sync {
    /// A driver over this place. Each call makes another one, as the control plane does when it starts again.
    fn driver(&self) -> Arc<dyn ConfigurationDriver>;
}

struct Rule {
    name: &'static str,
    check: for<'a> fn(&'a Scene) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
}

macro_rules! rules {
    ($($area:ident: $($name:ident),* $(,)?;)*) => {
        vec![$($(Rule {
            name: concat!("configuration::", stringify!($area), "::", stringify!($name)),
            check: |scene| Box::pin($area::$name(scene)),
        },)*)*]
    };
}

fn rules() -> Vec<Rule> {
    rules! {
        documents:
            it_says_who_it_is,
            a_document_reads_back_as_it_was_written,
            a_new_driver_reads_what_an_old_one_stored,
            documents_keep_apart,
            another_namespace_neither_reads_nor_changes_a_document,
            what_does_not_exist_is_none,
            a_repeated_deletion_is_well,
            a_deleted_document_may_be_created_anew;
        generations:
            generations_start_at_one_and_grow_by_one,
            a_repeated_call_reports_that_it_is_done,
            a_create_does_not_replace_another_document,
            a_stale_generation_changes_nothing,
            of_two_updates_of_one_generation_one_happens,
            an_update_makes_nothing,
            an_operation_sees_its_own_write;
    }
}

/// Every rule, over subjects that `fresh` makes: one for each.
pub fn suite<S: Subject + 'static>(fresh: impl Fn() -> S + Send + Sync + 'static) -> Vec<Case> {
    let fresh = Arc::new(fresh);
    let case = |rule: Rule| {
        let fresh = Arc::clone(&fresh);
        Case::new(rule.name, move || async move {
            (rule.check)(&Scene::new(Box::new(fresh()))).await;
        })
    };
    rules().into_iter().map(case).collect()
}
