//! The same question has the same answer, from whichever instance and on whichever thread.

use std::{sync::Arc, thread};

use occ_core::driver::{CONTRACT_VERSION, DriverKind, Harness};

use super::{
    Subject,
    sample::{LISTENS, Sample, plan},
};

pub(super) fn it_says_who_it_is(subject: &dyn Subject) {
    let harness = subject.harness();
    let mine = harness.identity();
    assert_eq!(mine.kind, DriverKind::Harness);
    assert!(!mine.id.is_empty() && !mine.implementation.is_empty() && !harness.version().is_empty());
    assert!(CONTRACT_VERSION.accepts(mine.contract));
    assert!(!harness.modes().is_empty(), "it runs in some mode");
    let again = subject.harness();
    let facts = |harness: &dyn Harness| {
        let defaults = harness.workspace_defaults().map(str::to_owned);
        (
            harness.identity().clone(),
            harness.version().to_owned(),
            harness.modes().to_vec(),
            defaults,
        )
    };
    assert_eq!(
        facts(&*again),
        facts(&*harness),
        "revisions pin these, so they outlive a restart"
    );
    if let Some(defaults) = harness.workspace_defaults() {
        let hexadecimal = defaults.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        assert!(defaults.len() == 64 && hexadecimal, "it is a SHA-256 in hexadecimal");
    }
}

/// All that the Harness says of a document.
fn answers(harness: &dyn Harness, sample: &Sample) -> String {
    let document = &sample.document;
    format!(
        "{:?} {:?} {:?} {:?}",
        harness.select(document),
        harness.check_saved(document),
        harness.validate(document, sample.mode, sample.method()),
        harness.gateway_settings(document),
    )
}

pub(super) fn a_document_has_one_answer(subject: &dyn Subject) {
    let harness = subject.harness();
    let mut samples = subject.accepted();
    samples.extend(subject.refused().into_iter().map(|(_, sample)| sample));
    let first: Vec<String> = samples.iter().map(|sample| answers(&*harness, sample)).collect();
    // In the other order, so that an answer that depends on an earlier question differs.
    let mut again: Vec<String> = samples.iter().rev().map(|sample| answers(&*harness, sample)).collect();
    again.reverse();
    assert_eq!(again, first, "asked again");
    let (another, elsewhere) = (subject.harness(), samples.clone());
    let asked = thread::spawn(move || {
        elsewhere
            .iter()
            .map(|sample| answers(&*another, sample))
            .collect::<Vec<_>>()
    });
    assert_eq!(
        asked.join().expect("it refuses instead of panicking"),
        first,
        "another instance"
    );
}

pub(super) fn a_plan_is_the_same_each_time(subject: &dyn Subject) {
    let harness = subject.harness();
    for sample in subject.accepted() {
        let snapshot = sample.snapshot(&*harness);
        for listen in LISTENS {
            let written = |harness: &Arc<dyn Harness>| {
                let planned = plan(&**harness, &snapshot, listen).expect("what the Harness runs has a plan");
                serde_json::to_string(&planned).expect("a plan is JSON")
            };
            let first = written(&harness);
            assert_eq!(written(&harness), first, "planned again");
            assert_eq!(written(&subject.harness()), first, "planned by another instance");
        }
    }
}
