use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    process::{Command, Stdio},
};

use occ_runtime::{
    exit::{self, LaunchFailed, Launched},
    identity::{ProcessIdentity, Signal},
    status::{State, Status},
};

use crate::workload::{RUNTIME, Workload, eventually, get};

#[test]
fn a_launch_prints_who_the_supervisor_is_and_the_supervisor_outlives_it() {
    let workload = Workload::gateway(&[]);
    let supervisor = workload.launch();
    let status = workload.until_ready();
    assert!(supervisor.is_alive());
    assert_eq!(status.supervisor, supervisor);
    assert_eq!(status.revision_id, workload.spec.revision_id);
    assert_eq!(status.restarts, 0);
    assert_eq!(status.child_pid, Some(workload.recorded("gateway")[0].pid));
    assert_eq!(
        ProcessIdentity::read(workload.spec.files.lock.as_ref()),
        Some(supervisor.clone())
    );
    // A session of its own: the end of the launcher's session does not reach it.
    let stat = fs::read_to_string(format!("/proc/{}/stat", supervisor.pid)).unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, supervisor.pid.to_string());
}

#[test]
fn a_second_launch_is_refused_and_names_the_holder_also_for_another_version() {
    let mut workload = Workload::gateway(&[]);
    let supervisor = workload.launch();
    workload.until_ready();
    workload.spec.revision_id = occ_core::id::RevisionId::random();
    workload.spec.files.status = workload.path("status-of-another-version").display().to_string();
    let output = workload.launch_output();
    assert_eq!(output.status.code(), Some(i32::from(exit::HELD)));
    assert_eq!(
        exit::read(output.status.code(), &output.stdout),
        Ok(Launched::Held(Some(supervisor)))
    );
    assert!(workload.status().is_none(), "a refused supervisor writes no status");
    assert_eq!(workload.recorded("gateway").len(), 1);
}

#[test]
fn many_launches_at_once_start_one_supervisor() {
    let workload = Workload::gateway(&[]);
    let mut codes: Vec<_> = std::thread::scope(|scope| {
        let launches: Vec<_> = (0..6).map(|_| scope.spawn(|| workload.launch_output())).collect();
        launches
            .into_iter()
            .map(|launch| launch.join().unwrap().status.code().unwrap())
            .collect()
    });
    codes.sort_unstable();
    assert_eq!(codes, [&[0][..], &[i32::from(exit::HELD); 5]].concat());
    workload.until_ready();
    assert_eq!(workload.recorded("gateway").len(), 1);
}

#[test]
fn a_launch_after_a_stop_starts_again() {
    let workload = Workload::gateway(&[]);
    let first = workload.launch();
    workload.until_ready();
    first.signal(Signal::Terminate).unwrap();
    eventually("the first one's end", || (!first.is_alive()).then_some(()));
    let second = workload.launch();
    assert_ne!(first, second);
    workload.until_ready();
}

#[test]
fn a_garbage_spec_is_refused_with_the_place_and_without_its_text() {
    let workload = Workload::gateway(&[]);
    let path = workload.path("garbage.json");
    for (text, says) in [
        ("", "line 1, column 0"),
        ("{\n  \"component\": \"canary-9172\", \"x\": 1", "line 2"),
        ("[]", "line 1"),
    ] {
        fs::write(&path, text).unwrap();
        let output = Command::new(RUNTIME)
            .args(["launch", "--spec"])
            .arg(&path)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(i32::from(exit::INVALID_SPEC)), "{text}");
        assert_eq!(
            exit::read(output.status.code(), &output.stdout),
            Err(LaunchFailed::Spec)
        );
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(says) && !said.contains("canary"), "{said}");
    }
    let absent = Command::new(RUNTIME)
        .args(["launch", "--spec", "/nonexistent"])
        .output()
        .unwrap();
    assert_eq!(absent.status.code(), Some(i32::from(exit::INVALID_SPEC)));
    let mut value = serde_json::to_value(&workload.spec).unwrap();
    value["surprise"] = true.into();
    fs::write(&path, value.to_string()).unwrap();
    let unknown = Command::new(RUNTIME)
        .args(["launch", "--spec"])
        .arg(&path)
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(i32::from(exit::INVALID_SPEC)));
}

#[test]
fn values_that_no_process_can_be_given_are_refused() {
    let mut workload = Workload::gateway(&[]);
    workload.spec.command[0] = "a\0b".to_owned();
    assert_eq!(
        workload.launch_output().status.code(),
        Some(i32::from(exit::INVALID_SPEC))
    );
    let mut workload = Workload::gateway(&[]).with_probe("report/1", &["text:x"]);
    workload.spec.probe.as_mut().unwrap().files = [("../outside".to_owned(), String::new())].into();
    assert_eq!(
        workload.launch_output().status.code(),
        Some(i32::from(exit::INVALID_SPEC))
    );
}

#[test]
fn files_that_cannot_be_used_are_said_to_be_the_reason() {
    for file in ["lock", "log", "status"] {
        let mut workload = Workload::gateway(&[]);
        let files = &mut workload.spec.files;
        let path = match file {
            "lock" => &mut files.lock,
            "log" => &mut files.log,
            _ => &mut files.status,
        };
        *path = "/nonexistent/directory/file".to_owned();
        let output = workload.launch_output();
        assert_eq!(output.status.code(), Some(i32::from(exit::STORAGE)), "{file}");
        assert_eq!(
            exit::read(output.status.code(), &output.stdout),
            Err(LaunchFailed::Storage)
        );
    }
}

#[test]
fn the_status_is_served_over_http_too() {
    let mut workload = Workload::gateway(&["unready"]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    workload.spec.status_listen = Some(([127, 0, 0, 1], port).into());
    workload.launch();
    workload.until("starting", |status| {
        status.state == State::Starting && status.child_pid.is_some()
    });
    assert!(get(port, "/readyz").unwrap().starts_with("HTTP/1.1 503"));
    let answer = get(port, "/openclaw/runtime/status").unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(
        Status::parse(body.as_bytes()).map(|status| status.state),
        Some(State::Starting)
    );
    fs::write(workload.path("serve"), "").unwrap();
    workload.until_ready();
    assert!(get(port, "/readyz").unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn a_status_address_in_use_starts_nothing() {
    let mut workload = Workload::gateway(&[]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    workload.spec.status_listen = Some(taken.local_addr().unwrap());
    let output = workload.launch_output();
    assert_eq!(output.status.code(), Some(i32::from(exit::START_FAILED)));
    assert!(workload.text("log").contains("cannot listen on the status address"));
    assert!(workload.recorded("gateway").is_empty());
}

#[test]
fn a_run_that_only_checks_ends_with_what_it_found_and_starts_nothing() {
    for (behaviour, checked) in [("row:ok", true), ("row:auth", false)] {
        let mut workload = Workload::gateway(&[])
            .with_workspace(&[])
            .with_probe("openclaw-models-status/1", &[behaviour]);
        workload.spec.check_only = true;
        let supervisor = workload.launch();
        eventually("its end", || (!supervisor.is_alive()).then_some(()));
        let state = workload.status().unwrap().state;
        assert_eq!(matches!(state, State::Checked), checked, "{state:?}");
        assert_eq!(matches!(state, State::Held { .. }), !checked, "{state:?}");
        assert!(workload.recorded("setup").is_empty() && workload.recorded("gateway").is_empty());
        assert!(!workload.path("workspace").exists());
    }
}

#[test]
fn a_supervisor_in_the_foreground_runs_until_it_is_stopped() {
    let workload = Workload::gateway(&[]);
    let spec = workload.path("spec.json");
    fs::write(&spec, serde_json::to_vec(&workload.spec).unwrap()).unwrap();
    let mut child = Command::new(RUNTIME)
        .args(["supervise", "--spec"])
        .arg(&spec)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    workload.until_ready();
    ProcessIdentity::of(child.id())
        .unwrap()
        .signal(Signal::Terminate)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(matches!(workload.status().unwrap().state, State::Stopped));
}

#[test]
fn the_help_names_every_command_and_exit_code() {
    let output = Command::new(RUNTIME).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in [
        "launch",
        "supervise",
        "keep",
        "exec",
        "another supervisor runs this component",
    ] {
        assert!(help.contains(word), "{word}");
    }
    let wrong = Command::new(RUNTIME).arg("dance").output().unwrap();
    assert_eq!(wrong.status.code(), Some(i32::from(exit::USAGE)));
}
