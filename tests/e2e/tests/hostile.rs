//! An environment that does not help: terminals that close, logs that nobody reads, files that are gone, an API that hangs.

use std::{
    fs::{self, File},
    net::TcpListener,
    os::unix::process::ExitStatusExt as _,
    process::{Child, ExitStatus, Stdio},
    time::Duration,
};

use occ_e2e::{Draft, Home, Model, Up, binary, document, eventually, within};
use occ_test_support::model_server::Behaviour;
use rustix::process::{Pid, Signal, kill_process};

const KEY: &str = "sk-hostile-tests-0123456789";

fn namespace_ready(home: &Home) {
    eventually("the Namespace is ready", || {
        (home.json(["namespace", "show", "default"])["status"] == "ready").then_some(())
    });
}

/// An Agent whose first version is selected.
fn deployed(home: &mut Home) -> (Model, Up, Draft) {
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = Up::whole(home);
    namespace_ready(home);
    let draft = home.draft("one", &document(&model.base_url()), KEY, &[]);
    let deployed = home.occ(["agent", "deploy", "one", "--wait"]);
    assert_eq!(deployed.code, Some(0), "{deployed:?}");
    (model, up, draft)
}

fn ended(child: &mut Child) -> ExitStatus {
    eventually("it ends", || child.try_wait().unwrap())
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Whether the process has a handler of its own for the signal, as `/proc` says.
fn catches(child: &Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask & (1 << (signal.as_raw() - 1)) != 0
}

#[test]
fn a_log_that_cannot_be_written_stops_no_work() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    let nobody_reads = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    for log in [full(), nobody_reads()] {
        let mut home = Home::quick();
        let up = Up::logging_to(&home, [""; 0], log);
        home.set("OCC_API", up.api());
        home.json(["namespace", "create", "team", "--wait"]);
        namespace_ready(&home);
        up.stop();
    }
}

#[test]
fn a_command_whose_complaints_nobody_reads_ends_with_its_own_code() {
    let mut home = Home::quick();
    let model = Model::start(Behaviour::echo(), Some("another key"));
    let up = Up::whole(&mut home);
    namespace_ready(&home);
    home.draft("one", &document(&model.base_url()), KEY, &[]);
    let mut deploy = home.command(["agent", "deploy", "one", "--wait"]);
    deploy.stderr(File::options().write(true).open("/dev/full").unwrap());
    assert_eq!(deploy.status().unwrap().code(), Some(1));
    up.stop();
}

#[test]
fn a_stop_is_over_when_nothing_runs_any_more_also_of_a_version_that_failed() {
    let mut home = Home::quick();
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = Up::whole(&mut home);
    namespace_ready(&home);
    home.draft("one", &document(&model.base_url()), KEY, &[]);
    let refuses = home.write("refuses-to-start", "");
    for _ in 0..2 {
        let failed = home.occ(["agent", "deploy", "one", "--wait"]);
        assert_eq!(failed.code, Some(1), "{failed:?}");
        let stopped = home.occ(["agent", "stop", "one", "--wait"]);
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
        assert!(home.workload().is_empty(), "{:?}", home.workload());
    }
    fs::remove_file(refuses).unwrap();
    // Nor is it over while a deployment that it cut off still has a candidate.
    home.json(["agent", "deploy", "one"]);
    eventually("something runs", || (!home.workload().is_empty()).then_some(()));
    let stopped = home.occ(["agent", "stop", "one", "--wait"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(home.workload().is_empty(), "{:?}", home.workload());
    up.stop();
}

/// Starts `occ quickstart`, sends it this once its workload runs, and waits for its end.
fn cut_off(home: &Home, with: Signal) -> ExitStatus {
    let mut quickstart = home.command(["quickstart"]);
    quickstart.stdout(Stdio::null()).stderr(Stdio::null());
    let mut quickstart = quickstart.spawn().unwrap();
    eventually("its supervisor runs", || (!home.supervisors().is_empty()).then_some(()));
    signal(&quickstart, with);
    ended(&mut quickstart)
}

#[test]
fn a_quickstart_that_is_cut_off_leaves_nothing_running() {
    for how in [Signal::INT, Signal::TERM, Signal::HUP] {
        let home = Home::quick().with("OCC_MODEL_SERVER", &binary("occ-model-server").display().to_string());
        let status = cut_off(&home, how);
        assert_eq!(status.code(), Some(130), "{how:?}: {status:?}");
        assert!(home.workload().is_empty(), "{how:?}: {:?}", home.workload());
    }
}

#[test]
fn a_quickstart_that_fails_leaves_nothing_running() {
    let home = Home::quick().with("OCC_MODEL_SERVER", &binary("occ-model-server").display().to_string());
    home.write("refuses-to-start", "");
    let failed = home.occ(["quickstart"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("RUNTIME_STARTUP_FAILED"), "{failed:?}");
    assert!(home.workload().is_empty(), "{:?}", home.workload());
}

#[test]
fn a_database_that_is_gone_is_not_taken_for_a_new_installation() {
    let mut home = Home::quick();
    let (_model, up, _) = deployed(&mut home);
    up.stop();
    let (database, key) = (home.data().join("occ.db"), home.data().join("admin.key"));
    let (saved, before) = (home.path().join("saved.db"), fs::read(&key).unwrap());
    fs::rename(&database, &saved).unwrap();
    for emptied in [false, true] {
        if emptied {
            fs::write(&database, "").unwrap();
        }
        let refused = home.occ(["up", "--listen", "127.0.0.1:0"]);
        assert_eq!(refused.code, Some(5), "{refused:?}");
        assert!(refused.stderr.contains("its database is gone"), "{refused:?}");
        assert_eq!(fs::read(&key).unwrap(), before, "the key is as it was");
    }
    fs::rename(&saved, &database).unwrap();
    let up = Up::whole(&mut home);
    assert_eq!(home.json(["agent", "list"]).as_array().map(Vec::len), Some(1));
    up.stop();
}

#[test]
fn a_key_file_that_is_gone_is_not_made_anew() {
    let mut home = Home::quick();
    let (_model, up, _) = deployed(&mut home);
    up.stop();
    let file = home.data().join("drivers/secret/secret-local/keys.json");
    let saved = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let refused = home.occ(["up", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("keys.json is gone"), "{refused:?}");
    assert!(!file.exists());
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::write(&file, saved)
        .and_then(|()| fs::set_permissions(&file, private))
        .unwrap();
    Up::whole(&mut home).stop();
}

/// Any program of this machine can listen on the port of a gateway that died with its supervisor.
#[test]
fn a_stranger_on_a_dead_gateways_port_is_given_no_password() {
    let mut home = Home::quick();
    let (_model, up, draft) = deployed(&mut home);
    let gateway = home.json(["agent", "gateway", &draft.name]);
    let address = gateway["url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://")
        .unwrap()
        .to_owned();
    // Its own control plane would start it again.
    up.signal(Signal::STOP);
    home.supervisors().remove(0).kill();
    let stranger = eventually("the port is free", || TcpListener::bind(&address).ok());
    stranger.set_nonblocking(true).unwrap();
    up.signal(Signal::CONT);
    let chat = home.occ(["agent", "chat", &draft.name, "hello?"]);
    assert_ne!(chat.code, Some(0), "{chat:?}");
    assert!(stranger.accept().is_err(), "nobody came");
    up.stop();
}

#[test]
fn a_lost_workload_is_missed_and_started_again_while_the_control_plane_runs() {
    let mut home = Home::quick();
    let (_model, up, draft) = deployed(&mut home);
    for process in home.workload() {
        process.kill();
    }
    within(Duration::from_mins(2), "it answers again", || {
        (home.occ(["agent", "chat", &draft.name, "back?"]).code == Some(0)).then_some(())
    });
    assert_eq!((home.supervisors().len(), home.gateways().len()), (1, 1));
    up.stop();
}

#[test]
fn an_api_that_hangs_is_not_waited_for_without_end() {
    let mut home = Home::quick();
    let (_model, up, draft) = deployed(&mut home);
    up.signal(Signal::STOP);
    for command in [
        &["agent", "deployment-status", &draft.name, "1"][..],
        &["agent", "deploy", &draft.name],
    ] {
        let ran = home.occ([command, &["--wait", "--timeout", "2s"]].concat());
        assert!(matches!(ran.code, Some(3 | 4)), "{command:?}: {ran:?}");
    }
    up.signal(Signal::CONT);
    up.stop();
}

#[test]
fn an_interrupted_wait_says_what_goes_on() {
    let mut home = Home::quick();
    let (_model, up, draft) = deployed(&mut home);
    let mut wait = home.command(["namespace", "create", "team", "--wait"]);
    up.signal(Signal::STOP);
    let mut wait = wait.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    eventually("it listens for the signal", || {
        catches(&wait, Signal::TERM).then_some(())
    });
    signal(&wait, Signal::TERM);
    let status = ended(&mut wait);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut wait.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    up.signal(Signal::CONT);
    drop(draft);
    up.stop();
}

#[test]
fn an_empty_document_is_refused_before_it_is_sent() {
    let home = Home::new();
    let file = home.write("empty.json", "").display().to_string();
    let refused = home.occ(["configuration", "create", &file]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is empty"), "{refused:?}");
}
