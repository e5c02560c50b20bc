//! `kill -9` at any moment: of the control plane, of a gateway, of what supervises it. The workload is a stand-in that is ready in a
//! moment, so that there can be many moments; `life` does the same with the real one.

use std::{fs, path::PathBuf, thread, time::Duration};

use occ_e2e::{Draft, Home, Model, Process, Up, document, eventually};
use occ_test_support::model_server::Behaviour;
use serde_json::Value;

const KEY: &str = "sk-crash-tests-0123456789";

/// A home in which a lost worker is missed soon.
fn home() -> Home {
    Home::quick()
        .with("OCC_WORKER_LEASE_DURATION_MS", "1000")
        .with("OCC_WORKER_POLL_INTERVAL_MS", "200")
}

fn started(home: &mut Home) -> (Model, Up, Draft) {
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = Up::whole(home);
    namespace_ready(home);
    let draft = home.draft("one", &document(&model.base_url()), KEY, &[]);
    (model, up, draft)
}

fn namespace_ready(home: &Home) {
    eventually("the Namespace is ready", || {
        (home.json(["namespace", "show", "default"])["status"] == "ready").then_some(())
    });
}

fn agent(home: &Home, draft: &Draft) -> Value {
    home.json(["agent", "show", &draft.name])
}

/// Where Compute keeps an Agent.
fn place(home: &Home, draft: &Draft) -> PathBuf {
    let namespaces = home.data().join("drivers/compute/compute-process/namespaces");
    let namespace = fs::read_dir(namespaces).unwrap().next().unwrap().unwrap().path();
    namespace.join("agents").join(&draft.agent)
}

/// The end that every deployment here has: this version is selected, and its gateway is the only one and answers.
fn ends_well(home: &Home, draft: &Draft, revision: &str, context: &str) {
    let over = eventually(&format!("the deployment is over ({context})"), || {
        let deployment = home.deployment(draft, revision);
        (deployment["progress"].is_null()).then_some(deployment)
    });
    assert_eq!(over["status"], "succeeded", "{context}: {over}");
    assert_eq!(agent(home, draft)["activeRevisionId"], revision, "{context}");
    one_gateway(home, revision, context);
    answers(home, draft, context);
}

fn one_gateway(home: &Home, revision: &str, context: &str) {
    let all = eventually(&format!("there is one gateway ({context})"), || {
        let all = home.gateways();
        (all.len() == 1 && home.supervisors().len() == 1).then_some(all)
    });
    let environment = String::from_utf8_lossy(&all[0].environment).into_owned();
    assert!(environment.contains(revision), "{context}: it is another version's");
}

fn answers(home: &Home, draft: &Draft, context: &str) {
    let ran = home.occ(["agent", "chat", &draft.name, "still there?"]);
    assert_eq!(ran.stdout.trim(), "heard: still there?", "{context}: {ran:?}");
}

fn nothing_runs(home: &Home) {
    eventually("nothing of the workload runs", || {
        home.workload().is_empty().then_some(())
    });
}

/// Waits without a pause: some of these moments are short. The deployment's end is the last of them.
fn at(moment: &str, home: &Home, draft: &Draft, revision: &str) {
    let version = place(home, draft).join("revisions").join(revision);
    let selected = place(home, draft).join("active");
    let names_it = |process: &Process| String::from_utf8_lossy(&process.arguments).contains(revision);
    let holds = |file: &PathBuf, text: &str| fs::read_to_string(file).is_ok_and(|content| content.contains(text));
    eventually(moment, || {
        let come = match moment {
            "admitted" => true,
            "claimed" => version.exists(),
            "staged" => version.join("spec.json").exists() || version.join("check-spec.json").exists(),
            "launched" => home.processes().iter().any(names_it),
            "checked" => ["logs/component.log", "logs/check.log"]
                .iter()
                .any(|log| holds(&version.join(log), "model_probe")),
            "started" => home
                .gateways()
                .iter()
                .any(|gateway| String::from_utf8_lossy(&gateway.environment).contains(revision)),
            "ready" => holds(&version.join("status.json"), "\"ready\""),
            "routed" => holds(&selected, revision),
            "selected" => agent(home, draft)["activeRevisionId"] == revision,
            moment => panic!("there is no moment {moment}"),
        };
        come.then_some(())
    });
}

const MOMENTS: [&str; 9] = [
    "admitted", "claimed", "staged", "launched", "checked", "started", "ready", "routed", "selected",
];

#[test]
fn a_control_plane_that_is_killed_at_any_moment_of_a_deployment_finishes_it() {
    let mut home = home();
    let (_model, mut up, draft) = started(&mut home);
    // The first round deploys the Agent's first version, the others replace a running one.
    for (number, moment) in (1..).zip(MOMENTS) {
        let revision = home.deploy(&draft);
        at(moment, &home, &draft, &revision);
        up.kill();
        up = Up::whole(&mut home);
        ends_well(&home, &draft, &revision, &format!("killed when it was {moment}"));
        let versions = home.json(["revision", "list", &draft.name]);
        assert_eq!(versions.as_array().map(Vec::len), Some(number), "{moment}");
    }
    up.stop();
    // And a clean end leaves the workload alone.
    assert_eq!(home.gateways().len(), 1);
    let up = Up::whole(&mut home);
    answers(&home, &draft, "after a restart");
    up.stop();
}

#[test]
fn a_control_plane_that_is_killed_again_and_again_gets_there() {
    let mut home = home();
    let (_model, up, draft) = started(&mut home);
    let revision = home.deploy(&draft);
    up.kill();
    for millis in [50, 200, 400, 700, 1100, 1500] {
        let up = Up::whole(&mut home);
        thread::sleep(Duration::from_millis(millis));
        up.kill();
    }
    let up = Up::whole(&mut home);
    ends_well(&home, &draft, &revision, "killed again and again");
    up.stop();
}

#[test]
fn a_control_plane_that_is_killed_while_an_agent_stops_finishes_the_stop() {
    let mut home = home();
    home.write("drains-slowly", "");
    let (_model, mut up, draft) = started(&mut home);
    for moment in ["stopping.json", "nothing"] {
        let revision = home.deploy(&draft);
        ends_well(&home, &draft, &revision, moment);
        let version = place(&home, &draft).join("revisions").join(&revision);
        home.json(["agent", "stop", &draft.name]);
        if moment == "stopping.json" {
            eventually(moment, || version.join(moment).exists().then_some(()));
        }
        up.kill();
        up = Up::whole(&mut home);
        eventually("the Agent is stopped", || {
            agent(&home, &draft)["activeRevisionId"].is_null().then_some(())
        });
        assert_eq!(agent(&home, &draft)["desiredRuntimeState"], "stopped");
        nothing_runs(&home);
    }
    up.stop();
}

#[test]
fn a_control_plane_that_is_killed_while_an_agent_is_deleted_leaves_nothing_of_it() {
    let mut home = home();
    home.write("drains-slowly", "");
    let (_model, mut up, draft) = started(&mut home);
    let mut draft = draft;
    for moment in ["at once", "stopping", "no gateway"] {
        let revision = home.deploy(&draft);
        ends_well(&home, &draft, &revision, moment);
        let place = place(&home, &draft);
        home.json(["agent", "delete", &draft.name]);
        match moment {
            "stopping" => {
                let stopping = place.join("revisions").join(&revision).join("stopping.json");
                eventually(moment, || stopping.exists().then_some(()));
            }
            "no gateway" => eventually(moment, || home.gateways().is_empty().then_some(())),
            _ => {}
        }
        up.kill();
        up = Up::whole(&mut home);
        eventually("the Agent is gone", || {
            (home.json(["agent", "list"]).as_array()?.is_empty()).then_some(())
        });
        nothing_runs(&home);
        let beside = fs::read_dir(place.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 0, "{moment}: nothing of it is left on disk");
        // The name is free, and what it shared with others is still there.
        draft = home.agent("one", &draft.configuration, &[]);
    }
    up.stop();
}

#[test]
fn a_killed_gateway_is_started_again_and_replaced_by_the_next_version() {
    let mut home = home();
    let (_model, up, draft) = started(&mut home);
    let revision = home.deploy(&draft);
    ends_well(&home, &draft, &revision, "at first");
    let gateway = home.gateways().remove(0);
    gateway.kill();
    let again = eventually("another gateway runs", || {
        home.gateways().into_iter().find(|it| it.pid != gateway.pid)
    });
    assert!(!gateway.lives());
    one_gateway(&home, &revision, "started again");
    // Whoever asks is told.
    let checks = home.json(["agent", "diagnostics", &draft.name]);
    let restarts = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["check"] == "restarts");
    assert_eq!(restarts.unwrap()["status"], "failed", "{checks}");
    let next = home.deploy(&draft);
    ends_well(&home, &draft, &next, "the next version");
    assert!(!again.lives());
    up.stop();
}

#[test]
fn a_killed_supervisor_leaves_no_orphan_and_the_next_version_runs() {
    let mut home = home();
    let (_model, up, draft) = started(&mut home);
    let first = home.deploy(&draft);
    ends_well(&home, &draft, &first, "at first");
    let (supervisor, gateway) = (home.supervisors().remove(0), home.gateways().remove(0));
    supervisor.kill();
    eventually("its gateway ends with it", || (!gateway.lives()).then_some(()));
    let next = home.deploy(&draft);
    ends_well(&home, &draft, &next, "the next version");
    up.stop();
}

#[test]
fn a_workload_that_is_lost_as_a_whole_is_started_again_by_itself() {
    let mut home = home();
    let (_model, up, draft) = started(&mut home);
    let revision = home.deploy(&draft);
    ends_well(&home, &draft, &revision, "at first");
    // As after the machine was off: nothing of it runs, and nobody deploys.
    up.kill();
    for process in home.workload() {
        process.kill();
    }
    nothing_runs(&home);
    let up = Up::whole(&mut home);
    one_gateway(&home, &revision, "looked after");
    eventually("it answers", || {
        (home.occ(["agent", "chat", &draft.name, "back?"]).code == Some(0)).then_some(())
    });
    let versions = home.json(["revision", "list", &draft.name]);
    assert_eq!(versions.as_array().map(Vec::len), Some(1), "no version was made for it");
    up.stop();
}

fn over(home: &Home, draft: &Draft, revision: &str) -> Value {
    eventually("the deployment is over", || {
        let deployment = home.deployment(draft, revision);
        deployment["progress"].is_null().then_some(deployment)
    })
}

#[test]
fn a_version_that_fails_its_check_leaves_the_running_one_alone() {
    let mut home = home();
    let (_model, up, draft) = started(&mut home);
    let good = home.deploy(&draft);
    ends_well(&home, &draft, &good, "at first");
    let gateway = home.gateways().remove(0);
    assert_eq!(
        home.pipe(["secret", "update", &draft.name], "sk-another-0123456789")
            .code,
        Some(0)
    );
    let bad = home.deploy(&draft);
    let failed = over(&home, &draft, &bad);
    assert_eq!(failed["error"]["code"], "RUNTIME_AUTHENTICATION_FAILED", "{failed}");
    assert_eq!(agent(&home, &draft)["activeRevisionId"], good);
    assert!(gateway.lives());
    ends_well(&home, &draft, &good, "after the failed one");
    assert_eq!(home.pipe(["secret", "update", &draft.name], KEY).code, Some(0));
    let next = home.deploy(&draft);
    ends_well(&home, &draft, &next, "the third version");
    assert_eq!(
        home.deployment(&draft, &bad)["error"],
        failed["error"],
        "a terminal result is never rewritten"
    );
    up.stop();
}

/// Two gateways cannot share an Agent's state: the earlier one has ended when the next one turns out not to start. There is no
/// silent rollback.
#[test]
fn a_version_that_fails_when_it_takes_over_is_replaced_by_the_next() {
    let mut home = home();
    let (_model, up, draft) = started(&mut home);
    let good = home.deploy(&draft);
    ends_well(&home, &draft, &good, "at first");
    let refuses = home.write("refuses-to-start", "");
    let bad = home.deploy(&draft);
    let failed = over(&home, &draft, &bad);
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["error"]["code"], "RUNTIME_STARTUP_FAILED", "{failed}");
    assert!(home.gateways().is_empty());
    fs::remove_file(refuses).unwrap();
    let next = home.deploy(&draft);
    ends_well(&home, &draft, &next, "the third version");
    assert_eq!(
        home.deployment(&draft, &bad)["error"],
        failed["error"],
        "a terminal result is never rewritten"
    );
    up.stop();
}
