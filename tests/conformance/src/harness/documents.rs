//! What is accepted, and what is refused with which words (spec/contracts 10.3 and 10.4).

use occ_core::{
    driver::{DocumentProblem, Harness},
    resource::{Document, ExecutionMode},
};
use serde_json::Value;

use super::{
    LITERAL, Subject,
    sample::{LISTENS, plan},
};
use crate::canary::{self, spotless, spotless_error};

/// Most characters of a message that a user sees.
const MESSAGE_MAX: usize = 256;

/// A refusal that a user can act on: it says what is accepted, points to a place, and holds none of the document's values.
#[track_caller]
fn actionable(what: &str, problem: &DocumentProblem) {
    let length = problem.message.chars().count();
    assert!(
        (1..=MESSAGE_MAX).contains(&length),
        "{what}: a message of {length} characters"
    );
    let pointer = &problem.pointer;
    assert!(
        pointer.is_empty() || pointer.starts_with('/'),
        "{what}: no JSON pointer: {pointer}"
    );
    spotless_error(what, problem);
}

pub(super) fn what_it_runs_is_accepted(subject: &dyn Subject) {
    let harness = subject.harness();
    let accepted = subject.accepted();
    for mode in harness.modes() {
        let runs = accepted.iter().any(|sample| sample.mode == *mode);
        assert!(runs, "the subject has no document that the Harness runs {mode:?}");
    }
    for sample in accepted {
        let document = &sample.document;
        let selection = harness.select(document).expect("it selects a Harness");
        assert_eq!(selection.harness, harness.identity().id, "it selects this Harness");
        assert_eq!(harness.check_saved(document), Ok(()));
        assert_eq!(harness.validate(document, sample.mode, sample.method()), Ok(()));
        harness
            .gateway_settings(document)
            .expect("its gateway settings can be judged");
        for listen in LISTENS {
            plan(&*harness, &sample.snapshot(&*harness), listen).expect("it has a plan");
        }
    }
}

pub(super) fn what_it_refuses_is_refused(subject: &dyn Subject) {
    let harness = subject.harness();
    for (why, sample) in subject.refused() {
        let refused = harness.validate(&sample.document, sample.mode, sample.method());
        actionable(why, &refused.expect_err(why));
    }
}

pub(super) fn a_mode_that_it_does_not_have_is_refused(subject: &dyn Subject) {
    let harness = subject.harness();
    for mode in [ExecutionMode::Embedded, ExecutionMode::Dedicated] {
        if harness.modes().contains(&mode) {
            continue;
        }
        for sample in subject.accepted() {
            let refused = harness.validate(&sample.document, mode, sample.method());
            actionable(
                "a mode that it does not have",
                &refused.expect_err("the mode is refused"),
            );
        }
    }
}

pub(super) fn a_literal_credential_is_refused_when_it_is_saved(subject: &dyn Subject) {
    let harness = subject.harness();
    for (place, document) in subject.literal_credentials() {
        let written = serde_json::to_string(&document).expect("JSON");
        assert!(
            written.contains(LITERAL),
            "{place}: the subject's document has no literal credential"
        );
        actionable(place, &harness.check_saved(&document).expect_err(place));
    }
}

pub(super) fn no_refusal_repeats_a_value(subject: &dyn Subject) {
    let harness = subject.harness();
    let mut samples = subject.accepted();
    samples.extend(subject.refused().into_iter().map(|(_, sample)| sample));
    for sample in samples {
        for document in with_canaries(&sample.document) {
            let answers = [
                harness.select(&document).map(drop),
                harness.check_saved(&document),
                harness.validate(&document, sample.mode, sample.method()),
                harness.gateway_settings(&document).map(drop),
                planned(&*harness, &sample, &document),
            ];
            for problem in answers.into_iter().filter_map(Result::err) {
                spotless("a refusal", &format!("{problem} {problem:?}"));
            }
        }
    }
}

fn planned(harness: &dyn Harness, sample: &super::Sample, document: &Document) -> Result<(), DocumentProblem> {
    let mut snapshot = sample.snapshot(harness);
    snapshot.configuration.clone_from(document);
    LISTENS
        .iter()
        .try_for_each(|listen| plan(harness, &snapshot, *listen).map(drop))
}

/// The document with a canary in each place of a value, one at a time.
fn with_canaries(document: &Document) -> Vec<Document> {
    let mut all = Vec::new();
    for pointer in super::fuzz::places(document) {
        let mut changed = Value::Object(document.clone());
        if let Some(place) = changed.pointer_mut(&pointer) {
            *place = Value::from(canary::OTHER);
        }
        if let Value::Object(changed) = changed {
            all.push(changed);
        }
    }
    all
}
