use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    process::Command,
};

use occ_core::reason::{Cause, PreparationReason, PreparationStage, ProbeStatus, ProcessExit, RuntimeCode, Token};
use occ_runtime::{spec::EnvSource, status::State};

use crate::workload::Workload;

const OPENCLAW: &str = "openclaw-models-status/1";

fn outcome(workload: &Workload) -> (RuntimeCode, Option<Cause>) {
    workload.launch();
    match workload.until_held().state {
        State::Held { failure, .. } => {
            assert_eq!(failure.check.as_str(), "model-probe");
            assert_eq!(failure.validate(), Ok(()));
            assert!(
                workload.recorded("gateway").is_empty(),
                "nothing serves without a model"
            );
            assert!(!workload.path("lock.probe").exists(), "the check's directories vanish");
            (failure.code, failure.cause)
        }
        other => panic!("{other:?}"),
    }
}

fn failed(cause: Cause) -> (RuntimeCode, Option<Cause>) {
    (RuntimeCode::ModelProbeFailed, Some(cause))
}

#[test]
fn every_way_in_which_a_check_can_end_has_its_code_and_cause() {
    let exit = |exit| failed(Cause::ProcessExit(Some(exit)));
    let status = |status| failed(Cause::ProbeStatus(status));
    let table = [
        (OPENCLAW, "row:auth", (RuntimeCode::AuthenticationFailed, None)),
        (OPENCLAW, "row:timeout", (RuntimeCode::ModelProbeTimeout, None)),
        (OPENCLAW, "row:format", status(ProbeStatus::Format)),
        (OPENCLAW, "row:rate_limit", status(ProbeStatus::RateLimit)),
        (OPENCLAW, "row:billing", status(ProbeStatus::Billing)),
        (OPENCLAW, "row:unknown", status(ProbeStatus::Unknown)),
        (OPENCLAW, "row:no_model", status(ProbeStatus::NoModel)),
        (OPENCLAW, "row:later-word", status(ProbeStatus::Other)),
        (OPENCLAW, "text:Error: no such command", failed(Cause::InvalidJson)),
        (OPENCLAW, "text:{}", failed(Cause::InvalidShape)),
        (OPENCLAW, "exit:3", exit(ProcessExit::Status(3))),
        (OPENCLAW, "killed", exit(ProcessExit::Signal(Token::known("SIGKILL")))),
        (
            OPENCLAW,
            "print:100000",
            exit(ProcessExit::Errno(Token::known("ENOBUFS"))),
        ),
        (OPENCLAW, "print:257", exit(ProcessExit::Errno(Token::known("ENOBUFS")))),
        (
            "report/1",
            "text:{\"status\":\"auth\"}",
            (RuntimeCode::AuthenticationFailed, None),
        ),
        (
            "report/1",
            "text:{\"status\":\"rate_limit-attempt2\"}",
            status(ProbeStatus::RateLimitRetried),
        ),
        ("report/1", "text:{\"status\":1}", failed(Cause::InvalidShape)),
        ("nobody-knows/1", "row:ok", failed(Cause::WrapperError)),
    ];
    for (reader, behaviour, expected) in table {
        let workload = Workload::gateway(&[]).with_probe(reader, &[behaviour]);
        assert_eq!(outcome(&workload), expected, "{reader} {behaviour}");
    }
}

#[test]
fn output_of_256_kib_is_still_read() {
    let workload = Workload::gateway(&[]).with_probe(OPENCLAW, &["print:256"]);
    assert_eq!(outcome(&workload), failed(Cause::InvalidJson));
}

#[test]
fn a_check_that_hangs_times_out_and_leaves_nothing() {
    let mut workload = Workload::gateway(&[]).with_probe(OPENCLAW, &["hang"]);
    workload.spec.probe.as_mut().unwrap().base_timeout_ms = 6000;
    assert_eq!(outcome(&workload), (RuntimeCode::ModelProbeTimeout, None));
    let mut all = workload.recorded("probe");
    all.extend(workload.recorded("pause"));
    assert!(all.iter().all(|process| !process.is_alive()));
    assert_eq!(
        workload.recorded("probe").len(),
        1,
        "the cap was time enough; it is not spent twice"
    );
    assert!(workload.text("log").contains("\"event\":\"openclaw.model_probe\""));
}

#[test]
fn a_check_without_cpu_time_is_starved_where_the_kernel_counts_it() {
    let counted = fs::read_to_string("/proc/self/schedstat").is_ok();
    if !counted {
        eprintln!("skipped: this kernel has no /proc/PID/schedstat");
        return;
    }
    let mut workload = Workload::gateway(&[]).with_probe(OPENCLAW, &["spin"]);
    workload.spec.probe.as_mut().unwrap().base_timeout_ms = 2500;
    assert_eq!(outcome(&workload), (RuntimeCode::ModelProbeCpuStarved, None));
    assert!(workload.text("log").contains("cpuWaitMs"));
}

#[test]
fn a_reported_timeout_is_repeated_once_and_may_succeed() {
    let workload = Workload::gateway(&[]).with_probe(OPENCLAW, &["row:timeout", "row:ok"]);
    workload.launch();
    workload.until_ready();
    assert_eq!(workload.recorded("probe").len(), 2);
    let twice = Workload::gateway(&[]).with_probe(OPENCLAW, &["row:timeout"]);
    assert_eq!(outcome(&twice), (RuntimeCode::ModelProbeTimeout, None));
    assert_eq!(twice.recorded("probe").len(), 2);
}

#[test]
fn a_check_sees_its_own_directories_and_environment_only_and_is_not_repeated_after_a_restart() {
    let workload = Workload::gateway(&[]).with_probe(OPENCLAW, &["row:ok", "row:auth"]);
    fs::create_dir(workload.path("lock.probe")).unwrap();
    fs::write(workload.path("lock.probe/leftover"), "of a killed check").unwrap();
    workload.launch();
    workload.until_ready();
    let saw = workload.text("probe-saw");
    let mut lines = saw.lines();
    assert_eq!(lines.next(), workload.path("lock.probe/home").to_str());
    assert_eq!(lines.next(), Some("HOME OCC_TREE STATE"));
    assert_eq!(lines.next(), Some("{\"setting\":1}"));
    assert!(!workload.path("lock.probe").exists());
    let _ = workload.get("/exit/1");
    workload.until("restarted", |status| status.restarts == 1 && status.ready());
    assert_eq!(workload.recorded("probe").len(), 1);
}

#[test]
fn directories_that_cannot_be_made_are_the_wrapper_s_error() {
    let mut workload = Workload::gateway(&[]).with_probe(OPENCLAW, &["row:ok"]);
    workload.spec.probe.as_mut().unwrap().directory = "/proc/no-directory-here".to_owned();
    assert_eq!(outcome(&workload), failed(Cause::WrapperError));
}

/// Whether this machine lets a test mount something.
fn mountable() -> bool {
    let works = Command::new("unshare")
        .args(["-r", "-m", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    let mountable = works.is_ok_and(|output| output.status.success());
    if !mountable {
        eprintln!("skipped: this machine lets nobody mount a file system");
    }
    mountable
}

#[test]
fn a_check_that_finds_the_disk_full_keeps_its_code_and_says_so() {
    if !mountable() {
        return;
    }
    // No room for what the check is given; then room for that, and none for what it writes.
    for (file, cause) in [
        (300, Cause::WrapperError),
        (1, Cause::ProcessExit(Some(ProcessExit::Status(3)))),
    ] {
        let mut workload = Workload::gateway(&[])
            .with_probe(OPENCLAW, &["fill"])
            .with_little_space("small");
        let directory = workload.path("small/probe").display().to_string();
        let probe = workload.spec.probe.as_mut().unwrap();
        probe.files.insert("large".to_owned(), "x".repeat(file * 1024));
        for (name, place) in [("HOME", "home"), ("STATE", "state")] {
            let text = EnvSource::Text(format!("{directory}/{place}"));
            probe.environment.insert(name.to_owned(), text);
        }
        probe.directory = directory;
        assert_eq!(outcome(&workload), failed(cause));
        let State::Held { preparation, .. } = workload.until_held().state else {
            unreachable!("it was held")
        };
        let preparation = preparation.expect("what was found");
        assert_eq!(
            (preparation.stage, preparation.reason),
            (PreparationStage::Layout, PreparationReason::StorageFull)
        );
    }
}

/// A provider that answers every request with this status; gives each request's head.
fn provider(status: u16) -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
            let _ = sender.send(head);
        }
    });
    (port, receiver)
}

fn with_preflight(port: u16, auth: &str) -> Workload {
    let mut workload = Workload::gateway(&[]).with_probe(OPENCLAW, &["row:ok"]);
    workload
        .secrets
        .insert("harnessCredential".into(), "sk-canary-preflight".into());
    let probe = workload.spec.probe.as_mut().unwrap();
    probe
        .environment
        .insert("OPENAI_API_KEY".into(), EnvSource::Secret("harnessCredential".into()));
    probe
        .expect
        .insert("preflight".into(), format!("http://127.0.0.1:{port}/v1/responses"));
    probe.expect.insert("preflightAuth".into(), auth.into());
    probe.expect.insert("credentialEnv".into(), "OPENAI_API_KEY".into());
    workload
}

#[test]
fn a_401_to_the_quick_question_ends_the_check_at_once() {
    for (auth, header) in [
        ("bearer", "authorization: Bearer sk-canary-preflight"),
        ("x-api-key", "x-api-key: sk-canary-preflight"),
    ] {
        let (port, asked) = provider(401);
        let workload = with_preflight(port, auth);
        assert_eq!(outcome(&workload), (RuntimeCode::AuthenticationFailed, None));
        let head = asked.recv().unwrap();
        assert!(
            head.starts_with("POST /v1/responses ") && head.contains(header),
            "{auth}"
        );
        assert!(workload.recorded("probe").is_empty());
        assert!(!workload.text("log").contains("canary"));
    }
}

#[test]
fn any_other_answer_to_the_quick_question_proves_nothing() {
    for status in [200, 400, 403, 429, 500] {
        let workload = with_preflight(provider(status).0, "bearer");
        workload.launch();
        workload.until_ready();
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let workload = with_preflight(closed, "bearer");
    workload.launch();
    workload.until_ready();
}
