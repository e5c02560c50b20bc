//! The program, run as continuous integration runs it.

use std::process::Command;

use serde_json::Value;

/// What one quick run printed and wrote.
fn quick() -> (String, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("numbers.json");
    let mut program = Command::new(env!("CARGO_BIN_EXE_occ-bench"));
    program.args(["--quick", "--directory"]).arg(directory.path());
    program.args(["--history", "200", "--pending", "20", "--unwatched", "--settle", "1"]);
    let output = program.arg("--json").arg(&file).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let numbers = std::fs::read(&file).expect("it wrote the numbers");
    let table = String::from_utf8(output.stdout).expect("text");
    (table, serde_json::from_slice(&numbers).expect("JSON"))
}

fn numbers<'a>(value: &'a Value, pointer: &str) -> Vec<f64> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    let number = |value: &'a Value| value.as_f64().expect("a number");
    list.unwrap_or_else(|| panic!("no list at {pointer}"))
        .iter()
        .map(number)
        .collect()
}

fn number(value: &Value, pointer: &str) -> f64 {
    let found = value.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {pointer}"))
}

// One test: the run takes its time, and a test runner gives each test a process of its own.
#[test]
fn the_quick_run_measures_everything_on_every_store() {
    let (table, report) = quick();
    assert_eq!(
        (&report["version"], &report["quick"]),
        (&Value::from(3), &Value::from(true))
    );
    assert!(number(&report, "/processors") >= 1.0);
    let stores = report["stores"].as_array().expect("a list");
    let name = |store: &Value| store["store"].as_str().expect("a name").to_owned();
    let names: Vec<_> = stores.iter().map(name).collect();
    assert_eq!(names, ["sqlite-file", "sqlite-memory", "postgres"]);
    for store in stores {
        everything_is_measured(store);
        an_admission_is_one_transaction(store);
        a_deployment_costs_no_more_statements_as_deployments_add_up(store);
    }
    // One statement writes several tables on PostgreSQL alone.
    for store in stores {
        let by_hand = store["store"] == "postgres";
        for at in 0..2 {
            let pointer = format!("/admissions/{at}/ofByHand");
            assert_eq!(
                store.pointer(&pointer).is_some_and(Value::is_number),
                by_hand,
                "{pointer}"
            );
        }
    }
    under_load(&report);
    for line in [
        "GET of an Agent",
        "by one statement",
        "floor",
        "admissions/s",
        "deployments/s",
        "202 to claim",
        "idle worker",
        "SQLite file",
        "200 finished revisions",
        "20 revisions that wait",
    ] {
        assert!(table.contains(line), "{line} is not in the table:\n{table}");
    }
}

fn under_load(report: &Value) {
    assert_eq!(report.pointer("/history/0/revisions"), Some(&Value::from(200)));
    for positive in [
        "/history/0/deploymentsPerSecond",
        "/history/0/peakMemory",
        "/pending/revisions",
        "/pending/passesPerSecond",
        "/pending/processor",
        "/pending/serverProcessor",
    ] {
        assert!(number(report, positive) > 0.0, "{positive}");
    }
    for latency in ["/history/0/claimLatency", "/pending/claimLatency"] {
        assert!(number(report, &format!("{latency}/samples")) > 0.0, "{latency}");
    }
}

fn everything_is_measured(store: &Value) {
    for positive in [
        "/floor/commitsPerSecondBefore",
        "/floor/commitsPerSecondAfter",
        "/admissions/0/perSecond",
        "/admissions/1/perSecond",
        "/admissions/2/perSecond",
        "/answers/read/p50Ms",
        "/answers/deploy/p99Ms",
        "/deployments/perSecond",
        "/deployments/transactions/readsEach",
        "/claimLatency/samples",
        "/idle/seconds",
    ] {
        assert!(number(store, positive) > 0.0, "{positive}");
    }
    let latency = ["p50Ms", "p99Ms", "maxMs"].map(|name| number(store, &format!("/claimLatency/{name}")));
    assert!(latency.is_sorted() && latency[0] >= 0.0, "{latency:?}");
    assert_eq!(store["admissions"][0]["callers"], 1);
    assert_eq!(store["growth"]["agents"], 100);
    for list in ["msEach", "writesEach", "readsEach"] {
        assert_eq!(numbers(store, &format!("/growth/{list}")).len(), 10, "{list}");
    }
}

fn an_admission_is_one_transaction(store: &Value) {
    let each = number(store, "/admissions/0/transactions/writesEach");
    assert!((each - 1.0).abs() < 1e-9, "{each}");
}

fn a_deployment_costs_no_more_statements_as_deployments_add_up(store: &Value) {
    for list in ["/growth/writesEach", "/growth/readsEach"] {
        let each = numbers(store, list);
        // A busy machine adds a renewal or a look now and then; growth with history would add up.
        assert!(each[9] < each[0] * 1.5 + 1.0, "{list}: {each:?}");
    }
}

#[test]
fn a_directory_that_does_not_exist_is_named() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_occ-bench"));
    let output = program
        .args(["--quick", "--directory", "/no/such/place"])
        .output()
        .expect("it starts");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("/no/such/place") && said.contains("--directory"),
        "{said}"
    );
}
