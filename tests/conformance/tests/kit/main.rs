//! The suites against drivers that keep their contract, and against drivers that each break one rule of it: a suite that lets a broken
//! driver pass proves nothing.

mod compute;
mod configuration;
mod harness;
mod iam;
mod secret;

use std::{
    collections::BTreeSet,
    fmt::Debug,
    panic::{AssertUnwindSafe, catch_unwind},
};

use occ_conformance::Case;

/// Whether the rule is broken.
fn breaks(case: Case) -> bool {
    catch_unwind(AssertUnwindSafe(|| case.check())).is_err()
}

/// Every rule of the suite holds, and concerns the driver.
fn keeps_every_rule(cases: Vec<Case>) {
    for case in cases {
        let name = case.name().to_owned();
        assert_eq!(case.skipped_because(), None, "{name}");
        assert!(!breaks(case), "{name} is broken by a driver that keeps it");
    }
}

/// Each flaw breaks the rule beside it, and each rule is broken by some flaw.
fn every_rule_has_teeth<F: Copy + Debug>(table: &[(F, &str)], suite: impl Fn(F) -> Vec<Case>) {
    let mut untried: BTreeSet<String> = suite(table[0].0).iter().map(|case| case.name().to_owned()).collect();
    let mut toothless = Vec::new();
    for (flaw, rule) in table {
        let cases = suite(*flaw);
        let case = cases
            .into_iter()
            .find(|case| case.name().ends_with(&format!("::{rule}")));
        let case = case.unwrap_or_else(|| panic!("there is no rule {rule}"));
        untried.remove(case.name());
        if case.skipped_because().is_some() || !breaks(case) {
            toothless.push(format!("{rule} holds with the flaw {flaw:?}"));
        }
    }
    assert!(toothless.is_empty(), "{toothless:#?}");
    assert!(untried.is_empty(), "no flaw is known that breaks {untried:#?}");
}
