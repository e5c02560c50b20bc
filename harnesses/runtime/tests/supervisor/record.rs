use std::fs;

use occ_runtime::spec::LogPolicy;

use crate::workload::{Workload, eventually};

#[test]
fn the_output_and_the_supervisor_s_own_events_are_in_one_log() {
    let workload = Workload::gateway(&["say-lines=3"]);
    workload.launch();
    workload.until_ready();
    let log = workload.until_logged("line 2 of many");
    let event = log
        .lines()
        .find(|line| line.contains("runtime.startup_phase"))
        .expect("an event");
    let event: serde_json::Value = serde_json::from_str(event).unwrap();
    assert_eq!(event["container"], "gateway");
    assert_eq!(event["phase"], "startup");
    assert_eq!(event["outcome"], "succeeded");
    assert!(event["ms"].is_u64() && event["sinceStartMs"].is_u64());
}

#[test]
fn a_log_that_has_grown_is_set_aside_and_the_oldest_lines_go() {
    let mut workload = Workload::gateway(&["say-lines=1000"]);
    workload.spec.log = LogPolicy {
        max_bytes: 8192,
        keep: 2,
    };
    workload.launch();
    workload.until_ready();
    workload.until_logged("line 999 of many");
    for (name, full) in [("log", false), ("log.1", true), ("log.2", true)] {
        let length = workload.text(name).len();
        assert!(length <= 8192 && (!full || length > 8000), "{name}: {length}");
        assert!(workload.text(name).ends_with('\n'), "{name} ends with a whole line");
    }
    assert!(!workload.path("log.3").exists());
    assert!(!workload.text("log.2").contains("line 0 of many"));
}

#[test]
fn a_long_line_is_cut() {
    let workload = Workload::gateway(&["say-long=100000"]);
    workload.launch();
    workload.until_ready();
    let log = workload.until_logged("\nafter the long line\n");
    assert_eq!(
        log.lines().find(|line| line.starts_with("xxx")).map(str::len),
        Some(16 * 1024)
    );
}

#[test]
fn a_status_that_could_not_be_written_is_written_as_soon_as_it_can_be() {
    let mut workload = Workload::gateway(&[]);
    let (here, away) = (workload.path("place"), workload.path("place-away"));
    fs::create_dir(&here).unwrap();
    workload.spec.files.status = here.join("status").display().to_string();
    workload.launch();
    workload.until_ready();
    fs::rename(&here, &away).unwrap();
    let _ = workload.get("/exit/9");
    eventually("a second start", || {
        (workload.recorded("gateway").len() == 2).then_some(())
    });
    fs::rename(&away, &here).unwrap();
    workload.until("restarted", |status| status.restarts == 1 && status.ready());
}
