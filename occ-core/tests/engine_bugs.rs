//! Faults that the reference's engine had (docs/engine-bugs.md): those of the pure core that no other test names, and the table itself.
#![cfg(feature = "engine")]

mod pass_fixture;

use std::{fs, path::Path};

use occ_core::{
    driver::{EffectError, RevisionObservation},
    reason::{Dependency, Failure, Pending},
    work::Transition,
    worker::Authority,
};
use pass_fixture::{Answers, Scene};

/// D330: waits of the activation collapsed into one generic code.
#[test]
fn waits_of_the_activation_keep_their_own_codes() {
    for code in [Pending::WorkspaceNodeBindingPending, Pending::WorkspaceNodePending] {
        let answers = Answers::default().activated(move |target| Ok(RevisionObservation::pending(target, code)));
        let transition = Scene::first().run(&answers).transition();
        assert!(
            matches!(transition, Transition::Defer { reason, .. } if reason == code),
            "{transition:?}"
        );
    }
    let away = Answers::default().activated(|_| Err(EffectError::Transient(Dependency::AgentGateway)));
    assert!(matches!(
        Scene::first().run(&away).transition(),
        Transition::Defer {
            reason: Pending::AgentGatewayUnavailable,
            ..
        }
    ));
}

/// Findings 990 and 991: the pointer names a predecessor that was stopped for the candidate; refused, the candidate went on serving.
#[test]
fn a_refused_exclusive_replacement_is_stopped_before_the_refusal_is_recorded() {
    let mut scene = Scene::replacement();
    scene.exclusive = true;
    let run = scene.run(&Answers {
        authority: Ok(Authority::ActorGone),
        ..Answers::default()
    });
    assert_eq!(run.steps, ["Authorize", "Stop 2", "Finish"]);
    assert!(matches!(
        run.transition(),
        Transition::Fail {
            failure: Failure::ActorRevoked,
            ..
        }
    ));
}

/// The fields between the bars of a row.
fn row(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(inner.split(" | ").map(str::trim).collect())
}

#[test]
fn every_fault_of_the_table_has_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let table = fs::read_to_string(root.join("docs/engine-bugs.md")).expect("the table");
    let rows: Vec<_> = table.lines().filter_map(row).skip(1).collect();
    assert!(rows.len() >= 27, "{} rows", rows.len());
    for row in rows {
        let [fault, _, _, tests] = row[..] else {
            panic!("four fields: {row:?}")
        };
        let mut named = 0;
        for test in tests.split('`').skip(1).step_by(2) {
            let (file, name) = test.split_once(": ").expect("a file and a test");
            let source = fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("{fault}: no file {file}"));
            assert!(
                source.contains(&format!("fn {name}(")),
                "{fault}: no test {name} in {file}"
            );
            named += 1;
        }
        assert!(named > 0 || tests == "not built", "{fault} has no test");
    }
}
