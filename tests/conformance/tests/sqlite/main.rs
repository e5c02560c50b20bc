//! The SQLite store against the suite of the Store contract, and what holds of SQLite alone.

mod subject;

use std::sync::Arc;

use libtest_mimic::{Arguments, Conclusion, Trial};
use occ_conformance::store::{Case, suite};
use subject::SqliteSubject;
use tokio::runtime::Runtime;

fn main() {
    conclusion().exit();
}

fn conclusion() -> Conclusion {
    let arguments = Arguments::from_args();
    let trials = suite().into_iter().map(contract).collect();
    libtest_mimic::run(&arguments, trials)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// One case of the contract over a fresh file.
fn contract(case: Case) -> Trial {
    Trial::test(format!("store::{}", case.name()), move || {
        runtime().block_on(async {
            case.run(Arc::new(SqliteSubject::new().await)).await;
        });
        Ok(())
    })
}
