use std::{fs::File, process::Command};

use occ_runtime::{
    identity::{ProcessIdentity, Signal},
    status::Exit,
};

use crate::workload::{Workload, eventually};

/// A gateway with a child, and with one that left its session.
fn family() -> (Workload, ProcessIdentity, Vec<ProcessIdentity>) {
    let workload = Workload::gateway(&["family"]);
    let supervisor = workload.launch();
    workload.until_ready();
    let children = eventually("the family", || {
        Some(workload.recorded("pause")).filter(|found| found.len() == 2)
    });
    let mut all = workload.recorded("gateway");
    all.extend(children);
    assert!(all.iter().all(ProcessIdentity::is_alive));
    (workload, supervisor, all)
}

fn gone(processes: &[ProcessIdentity]) -> Option<()> {
    processes.iter().all(|process| !process.is_alive()).then_some(())
}

#[test]
fn killing_the_supervisor_leaves_no_process_and_the_next_launch_serves() {
    let (workload, supervisor, processes) = family();
    let keeper = Workload::keeper(&supervisor);
    supervisor.signal(Signal::Kill).unwrap();
    eventually("no orphan", || gone(&processes));
    eventually("no keeper", || (!keeper.is_alive()).then_some(()));
    assert!(workload.tree_is_gone());
    let next = workload.launch();
    workload.until("ready again", |status| status.supervisor == next && status.ready());
    assert_eq!(
        workload
            .recorded("gateway")
            .iter()
            .filter(|gateway| gateway.is_alive())
            .count(),
        1
    );
}

#[test]
fn a_launch_right_after_a_kill_waits_for_the_old_tree() {
    let (workload, supervisor, processes) = family();
    supervisor.signal(Signal::Kill).unwrap();
    // The kernel frees the lock at the kill, and the old tree may still be there.
    eventually("the lock", || workload.launch_output().status.success().then_some(()));
    eventually("a new gateway", || {
        (workload.recorded("gateway").len() == 2).then_some(())
    });
    assert_eq!(
        gone(&processes),
        Some(()),
        "the new gateway may not overlap the old tree"
    );
    workload.until_ready();
}

#[test]
fn nothing_is_started_while_a_process_of_an_earlier_tree_lives() {
    let workload = Workload::gateway(&[]);
    // As the keeper of a tree that cannot be ended yet does.
    let tree = File::create(workload.path("lock.tree")).unwrap();
    tree.try_lock().unwrap();
    let supervisor = workload.launch();
    Workload::keeper(&supervisor);
    for _ in 0..5 {
        assert!(!workload.launch_output().status.success());
    }
    assert!(workload.recorded("gateway").is_empty());
    drop(tree);
    workload.until_ready();
}

#[test]
fn killing_the_keeper_leaves_no_process_and_the_component_is_started_again() {
    let (workload, supervisor, processes) = family();
    Workload::keeper(&supervisor).signal(Signal::Kill).unwrap();
    eventually("no orphan", || gone(&processes));
    let status = workload.until("restarted", |status| status.restarts == 1 && status.ready());
    assert_eq!(status.last_exit, Some(Exit::Signal(9)));
    assert!(supervisor.is_alive());
    assert_eq!(
        workload
            .recorded("gateway")
            .iter()
            .filter(|gateway| gateway.is_alive())
            .count(),
        1
    );
}

#[test]
fn killing_the_component_leaves_no_process_of_it_and_it_is_started_again() {
    let (workload, supervisor, processes) = family();
    processes[0].signal(Signal::Kill).unwrap();
    eventually("no orphan", || gone(&processes));
    let status = workload.until("restarted", |status| status.restarts == 1 && status.ready());
    assert_eq!(status.last_exit, Some(Exit::Signal(9)));
    assert!(supervisor.is_alive());
}

#[test]
fn killing_supervisor_and_keeper_at_once_ends_the_component() {
    let workload = Workload::gateway(&[]);
    let supervisor = workload.launch();
    workload.until_ready();
    let keeper = Workload::keeper(&supervisor);
    supervisor.signal(Signal::Kill).unwrap();
    let _ = keeper.signal(Signal::Kill);
    eventually("no orphan", || gone(&workload.recorded("gateway")));
}

#[test]
fn what_a_killed_supervisor_and_keeper_leave_is_ended_before_the_next_component_starts() {
    let (workload, supervisor, processes) = family();
    let keeper = Workload::keeper(&supervisor);
    // Neither sees the other one's end.
    for process in [&supervisor, &keeper] {
        let stopped = Command::new("kill").arg("-STOP").arg(process.pid.to_string()).status();
        assert!(stopped.unwrap().success());
    }
    keeper.signal(Signal::Kill).unwrap();
    supervisor.signal(Signal::Kill).unwrap();
    eventually("the component is gone", || gone(&processes[..1]));
    assert!(
        processes[1..].iter().all(ProcessIdentity::is_alive),
        "nobody ended these"
    );
    let next = eventually("the lock", || match workload.launch_output() {
        output if output.status.success() => ProcessIdentity::read(&workload.path("lock")),
        _ => None,
    });
    workload.until("ready again", |status| status.supervisor == next && status.ready());
    assert_eq!(gone(&processes), Some(()));
    assert_eq!(workload.recorded("gateway").len(), 2);
}

#[test]
fn a_crash_after_ready_is_restarted_and_counted() {
    let workload = Workload::gateway(&[]);
    workload.launch();
    workload.until_ready();
    let _ = workload.get("/exit/7");
    let status = workload.until("restarted", |status| status.restarts == 1 && status.ready());
    assert_eq!(status.last_exit, Some(Exit::Status(7)));
    let _ = workload.get("/exit/0");
    let status = workload.until("restarted again", |status| status.restarts == 2 && status.ready());
    assert_eq!(status.last_exit, Some(Exit::Status(0)));
    assert_eq!(workload.recorded("gateway").len(), 3);
}

#[test]
fn killing_the_supervisor_during_a_probe_leaves_no_process_and_the_next_check_starts_clean() {
    let workload = Workload::gateway(&[]).with_probe("openclaw-models-status/1", &["hang", "row:ok"]);
    let supervisor = workload.launch();
    let processes = eventually("the check", || {
        let mut all = workload.recorded("probe");
        all.extend(workload.recorded("pause"));
        (all.len() == 3).then_some(all)
    });
    supervisor.signal(Signal::Kill).unwrap();
    eventually("no orphan", || gone(&processes));
    let next = workload.launch();
    workload.until("ready", |status| status.supervisor == next && status.ready());
    assert!(!workload.path("lock.probe").exists());
}
