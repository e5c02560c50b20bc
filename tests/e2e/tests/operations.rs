//! What an operator's probes and dashboards see.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
};

use occ_e2e::{Home, Model, Up, document, eventually};
use occ_test_support::model_server::Behaviour;

const KEY: &str = "sk-operations-tests-0123456789";

/// The status and the body of an answer.
fn get(base: &str, path: &str) -> (u16, String) {
    let address = base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// The sum of a metric's samples whose labels have all of these.
fn sample(metrics: &str, name: &str, labels: &[&str]) -> f64 {
    let samples = metrics.lines().filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let rest = series.strip_prefix(name)?;
        let whole = rest.is_empty() || rest.starts_with('{');
        (whole && labels.iter().all(|label| rest.contains(label))).then(|| value.parse::<f64>().unwrap())
    });
    samples.sum()
}

#[test]
fn probes_and_measures_have_a_listener_of_their_own() {
    let mut home = Home::quick();
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let up = Up::start(&home, ["--operations-listen", "127.0.0.1:0"]);
    home.set("OCC_API", up.api());
    let operations = up.said["operations"].as_str().unwrap().to_owned();
    for probe in ["/livez", "/readyz"] {
        eventually(probe, || {
            (get(&operations, probe) == (200, "ok\n".to_owned())).then_some(())
        });
    }
    assert_eq!(get(up.api(), "/metrics").0, 404, "callers of the API do not see it");

    eventually("the Namespace is ready", || {
        (home.json(["namespace", "show", "default"])["status"] == "ready").then_some(())
    });
    let draft = home.draft("one", &document(&model.base_url()), KEY, &[]);
    let revision = home.deploy(&draft);
    eventually("the deployment succeeds", || {
        (home.deployment(&draft, &revision)["status"] == "succeeded").then_some(())
    });
    let metrics = eventually("it is counted", || {
        let (status, metrics) = get(&operations, "/metrics");
        assert_eq!(status, 200);
        let labels = [
            "kind=\"revision\"",
            "outcome=\"completed\"",
            "code=\"REVISION_ACTIVATED\"",
        ];
        #[allow(clippy::float_cmp, reason = "a count")]
        (sample(&metrics, "occ_work_settled_total", &labels) == 1.0).then_some(metrics)
    });
    let deploys = ["method=\"POST\"", "/deploy\"", "status=\"202\""];
    for (name, labels) in [
        ("occ_http_requests_total", &deploys[..]),
        ("occ_claim_latency_seconds_count", &["kind=\"revision\""]),
        (
            "occ_pass_seconds_count",
            &["kind=\"namespace_ready\"", "outcome=\"completed\""],
        ),
    ] {
        assert!(sample(&metrics, name, labels) >= 1.0, "{name} {labels:?} in\n{metrics}");
    }
    // What is left is the next look at the selected version.
    let states = ["queued", "claimed"].map(|state| sample(&metrics, "occ_queue_depth", &[&format!("\"{state}\"")]));
    assert!(states.iter().sum::<f64>() <= 1.0, "{metrics}");
    assert!(metrics.contains("occ_queue_depth{state=\"queued\"}"), "{metrics}");
    // Nothing of one deployment waits for long, and no worker was lost over it.
    assert!(sample(&metrics, "occ_queue_overdue_seconds", &[]) < 30.0, "{metrics}");
    assert!(metrics.contains("occ_queue_overdue_seconds "), "{metrics}");
    for id in [&draft.agent, &revision, &draft.configuration] {
        assert!(!metrics.contains(id.as_str()), "{id} is a label in\n{metrics}");
    }
    up.stop();
}

#[test]
fn a_process_without_the_api_is_probed_as_well() {
    let home = Home::new();
    let up = Up::start(&home, ["--worker-only", "--operations-listen", "127.0.0.1:0"]);
    assert!(up.said["api"].is_null());
    let operations = up.said["operations"].as_str().unwrap().to_owned();
    eventually("it is ready", || (get(&operations, "/readyz").0 == 200).then_some(()));
    assert_eq!(get(&operations, "/livez").0, 200);
    up.stop();
}

#[test]
fn an_operations_address_in_use_is_said_before_anything_is_written() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = home.occ(["up", "--listen", "127.0.0.1:0", "--operations-listen", &address]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains(&address) && ran.stderr.contains("in use"),
        "{ran:?}"
    );
    assert!(!home.data().exists());
}
