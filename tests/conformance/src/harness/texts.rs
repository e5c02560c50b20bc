//! What a plan does not say: where things lie on a host, and what a Secret Driver knows.

use occ_core::plan::Segment;

use super::{Subject, plans::texts, sample::plans};
use crate::canary::{spotless, spotless_bytes};

/// Paths that every Unix has, and no host chooses.
const UNIVERSAL: [&str; 3] = ["/dev/null", "/dev/stdout", "/dev/stderr"];

pub(super) fn a_plan_names_no_path_of_a_host(subject: &dyn Subject) {
    let here = std::env::current_dir().expect("the test has a directory");
    let here = here.to_str().unwrap_or("/").to_owned();
    for (_, planned) in plans(subject) {
        for component in &planned.components {
            for (_, text) in texts(component) {
                if let Some(Segment::Literal(start)) = text.0.first() {
                    let host = start.starts_with('/') && !UNIVERSAL.contains(&start.as_str());
                    assert!(
                        !host,
                        "{}: a text begins with a path of a host: {start}",
                        component.name
                    );
                }
            }
            let written = serde_json::to_string(component).expect("a plan is JSON");
            assert!(
                here.len() < 2 || !written.contains(&here),
                "{}: this machine's directory",
                component.name
            );
        }
    }
}

pub(super) fn a_plan_holds_nothing_of_a_secret(subject: &dyn Subject) {
    for (_, planned) in plans(subject) {
        let written = serde_json::to_string(&planned).expect("a plan is JSON");
        spotless("a plan", &written);
        spotless("a plan", &format!("{planned:?}"));
        spotless_bytes("a plan", written.as_bytes());
    }
}
