use occ_runtime::{
    identity::{ProcessIdentity, Signal},
    status::{Exit, State},
};

use crate::workload::{Workload, eventually};

#[test]
fn a_stop_lets_the_component_end_by_itself() {
    let workload = Workload::gateway(&["family"]);
    let supervisor = workload.launch();
    workload.until_ready();
    eventually("the family", || (workload.recorded("pause").len() == 2).then_some(()));
    supervisor.signal(Signal::Terminate).unwrap();
    eventually("the supervisor's end", || (!supervisor.is_alive()).then_some(()));
    let status = workload.status().unwrap();
    assert_eq!(status.state, State::Stopped);
    assert_eq!(status.last_exit, Some(Exit::Status(0)));
    assert_eq!(status.child_pid, None);
    assert!(workload.text("log").contains("told to terminate"));
    // What a component leaves behind when it ends well is ended too.
    assert!(workload.recorded("pause").iter().all(|process| !process.is_alive()));
    assert_eq!(workload.get("/readyz"), None);
}

#[test]
fn a_component_that_ignores_a_stop_is_killed_after_its_grace() {
    let mut workload = Workload::gateway(&["stubborn", "family"]);
    workload.spec.stop_grace_ms = 700;
    let supervisor = workload.launch();
    workload.until_ready();
    supervisor.signal(Signal::Terminate).unwrap();
    workload.until("draining", |status| {
        matches!(status.state, State::Stopping | State::Stopped)
    });
    eventually("the supervisor's end", || (!supervisor.is_alive()).then_some(()));
    let status = workload.status().unwrap();
    assert_eq!(
        (status.state, status.last_exit),
        (State::Stopped, Some(Exit::Signal(9)))
    );
    let mut all = workload.recorded("gateway");
    all.extend(workload.recorded("pause"));
    assert!(all.iter().all(|process| !process.is_alive()));
}

#[test]
fn a_draining_component_is_shown_as_stopping_and_a_kill_cuts_it_short() {
    let workload = Workload::gateway(&["stubborn"]);
    let supervisor = workload.launch();
    workload.until_ready();
    supervisor.signal(Signal::Terminate).unwrap();
    workload.until("draining", |status| status.state == State::Stopping);
    assert!(workload.recorded("gateway").iter().all(ProcessIdentity::is_alive));
    supervisor.signal(Signal::Kill).unwrap();
    eventually("its end", || {
        workload
            .recorded("gateway")
            .iter()
            .all(|process| !process.is_alive())
            .then_some(())
    });
}

#[test]
fn a_stop_during_a_probe_ends_it_at_once() {
    let workload = Workload::gateway(&[]).with_probe("openclaw-models-status/1", &["hang"]);
    let supervisor = workload.launch();
    eventually("the check", || (workload.recorded("pause").len() == 2).then_some(()));
    supervisor.signal(Signal::Terminate).unwrap();
    eventually("the supervisor's end", || (!supervisor.is_alive()).then_some(()));
    assert_eq!(workload.status().unwrap().state, State::Stopped);
    assert!(workload.recorded("probe").iter().all(|process| !process.is_alive()));
    assert!(workload.recorded("pause").iter().all(|process| !process.is_alive()));
    assert!(workload.recorded("gateway").is_empty());
    assert!(!workload.path("lock.probe").exists());
}

#[test]
fn a_stop_during_the_setup_ends_it_at_once() {
    let workload = Workload::gateway(&[]).with_workspace(&["block=1"]);
    let supervisor = workload.launch();
    eventually("the setup", || (!workload.recorded("setup").is_empty()).then_some(()));
    supervisor.signal(Signal::Terminate).unwrap();
    eventually("the supervisor's end", || (!supervisor.is_alive()).then_some(()));
    assert_eq!(workload.status().unwrap().state, State::Stopped);
    assert!(workload.recorded("setup").iter().all(|process| !process.is_alive()));
}

#[test]
fn a_held_failure_stays_readable_until_the_stop() {
    let workload = Workload::gateway(&["exit=2"]);
    let supervisor = workload.launch();
    workload.until_held();
    assert!(supervisor.is_alive());
    supervisor.signal(Signal::Terminate).unwrap();
    eventually("the supervisor's end", || (!supervisor.is_alive()).then_some(()));
    assert_eq!(workload.status().unwrap().state, State::Stopped);
}
