use occ_core::reason::{Preparation, PreparationReason, PreparationStage, RuntimeCode, RuntimeFailure, Token};
use occ_runtime::status::State;

use crate::workload::{FIXTURE, Workload, eventually};

fn held(workload: &Workload) -> (RuntimeFailure, Option<Preparation>) {
    match workload.until_held().state {
        State::Held { failure, preparation } => (failure, preparation),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_component_that_exits_at_once_is_tried_twice_and_held_with_its_status() {
    let workload = Workload::gateway(&["exit=42"]);
    workload.launch();
    let (failure, preparation) = held(&workload);
    assert_eq!(
        (failure.check.as_str(), failure.code, failure.cause),
        ("startup", RuntimeCode::Unavailable, None)
    );
    let preparation = preparation.unwrap();
    assert_eq!(preparation.reason, PreparationReason::ComponentExited);
    assert_eq!((preparation.exit_status, preparation.signal), (Some(42), None));
    assert_eq!(preparation.component, Some(Token::known("gateway")));
    assert_eq!(workload.recorded("gateway").len(), 2);
}

#[test]
fn a_component_that_is_killed_at_once_is_held_with_the_signal() {
    let mut workload = Workload::gateway(&[]);
    workload.spec.command = vec![FIXTURE.to_owned(), "killed".to_owned()];
    workload.launch();
    let (failure, preparation) = held(&workload);
    assert_eq!(failure.code, RuntimeCode::Unavailable);
    let preparation = preparation.unwrap();
    assert_eq!(
        (preparation.exit_status, preparation.signal),
        (None, Some(Token::known("SIGKILL")))
    );
}

#[test]
fn a_missing_program_is_held_before_anything_is_started() {
    let missing = "/nonexistent/program";
    let mut command = Workload::gateway(&[]).with_workspace(&[]);
    command.spec.command[0] = missing.to_owned();
    let mut package = Workload::gateway(&[]).with_workspace(&[]);
    package.spec.requires.push("/nonexistent/package/main.js".to_owned());
    let mut check = Workload::gateway(&[])
        .with_workspace(&[])
        .with_probe("report/1", &["text:x"]);
    check.spec.probe.as_mut().unwrap().command[0] = missing.to_owned();
    let mut not_executable = Workload::gateway(&[]).with_workspace(&[]);
    not_executable.spec.command[0] = not_executable.path("templates/USER.md").display().to_string();
    for workload in [command, package, check, not_executable] {
        workload.launch();
        let (failure, preparation) = held(&workload);
        assert_eq!(
            (failure.check.as_str(), failure.code),
            ("startup", RuntimeCode::Unavailable)
        );
        let preparation = preparation.unwrap();
        assert_eq!(preparation.stage, PreparationStage::Launch);
        assert_eq!(preparation.reason, PreparationReason::ExecutableMissing);
        assert!(workload.recorded("setup").is_empty() && workload.recorded("gateway").is_empty());
    }
}

#[test]
fn a_program_is_found_in_the_component_s_own_path() {
    let mut workload = Workload::gateway(&[]);
    let directory = std::path::Path::new(FIXTURE).parent().unwrap().display().to_string();
    workload.spec.command[0] = "occ-runtime-fixture".to_owned();
    workload.spec.environment.insert(
        "PATH".into(),
        occ_runtime::spec::EnvSource::Text(format!("/nonexistent:{directory}")),
    );
    workload.launch();
    workload.until_ready();
}

#[test]
fn a_directory_that_cannot_be_entered_is_held_as_such() {
    let mut workload = Workload::gateway(&[]);
    workload.spec.working_directory = "/nonexistent".to_owned();
    workload.launch();
    let (failure, preparation) = held(&workload);
    assert_eq!(failure.code, RuntimeCode::Unavailable);
    assert_eq!(preparation.map(|p| p.reason), Some(PreparationReason::StorageDenied));
}

#[test]
fn a_page_instead_of_json_is_an_incompatible_response() {
    let workload = Workload::gateway(&["html"]);
    workload.launch();
    let (failure, _) = held(&workload);
    assert_eq!(
        (failure.check.as_str(), failure.code),
        ("readiness", RuntimeCode::IncompatibleResponse)
    );
    let gateways = workload.recorded("gateway");
    assert_eq!(gateways.len(), 1);
    assert!(!gateways[0].is_alive());
}

#[test]
fn another_program_s_answer_on_the_component_s_port_is_no_readiness() {
    let other = Workload::gateway(&[]);
    other.launch();
    other.until_ready();
    let mut workload = Workload::gateway(&["unready"]);
    workload.spec.readiness.url = other.spec.readiness.url.clone();
    workload.launch();
    let (failure, _) = held(&workload);
    assert_eq!(
        (failure.check.as_str(), failure.code),
        ("readiness", RuntimeCode::IncompatibleResponse)
    );
}

#[test]
fn a_component_that_never_reports_ready_is_held_after_its_time() {
    let mut workload = Workload::gateway(&["unready"]);
    workload.spec.readiness.start_timeout_ms = 1500;
    workload.launch();
    let (failure, _) = held(&workload);
    assert_eq!(
        (failure.check.as_str(), failure.code),
        ("readiness", RuntimeCode::Unavailable)
    );
    assert!(!workload.recorded("gateway")[0].is_alive());
}

#[test]
fn the_component_gets_exactly_its_environment_and_its_limits() {
    let mut workload = Workload::gateway(&[]);
    workload.spec.limits.open_files = Some(321);
    workload.spec.limits.memory_bytes = Some(4 << 30);
    workload.launch();
    let status = workload.until_ready();
    assert!(workload.get("/environment/PLAIN").unwrap().ends_with("plain"));
    let pid = status.child_pid.unwrap();
    let environment = eventually("its environment", || {
        std::fs::read_to_string(format!("/proc/{pid}/environ")).ok()
    });
    let tree = format!("OCC_TREE={}.tree", workload.spec.files.lock);
    assert_eq!(
        environment,
        format!("{tree}\0PLAIN=plain\0"),
        "its own, and the tree's mark"
    );
    let limits = workload.get("/limits").unwrap();
    let limit = |name: &str| {
        limits
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .split_whitespace()
            .rev()
            .nth(1)
            .map(str::to_owned)
    };
    assert_eq!(limit("Max open files").as_deref(), Some("321"));
    assert_eq!(limit("Max data size").as_deref(), Some("4294967296"));
    assert_eq!(limit("Max core file size").as_deref(), Some("0"));
}

#[test]
fn a_cgroup_that_cannot_be_entered_starts_nothing() {
    let mut workload = Workload::gateway(&[]);
    workload.spec.limits.cgroup = Some("/nonexistent/cgroup".to_owned());
    workload.launch();
    let (failure, _) = held(&workload);
    assert_eq!(
        (failure.check.as_str(), failure.code),
        ("startup", RuntimeCode::Unavailable)
    );
    assert!(workload.recorded("gateway").is_empty());
}
