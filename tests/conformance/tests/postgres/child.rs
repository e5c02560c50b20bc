//! This program as a worker in another process, which is stopped or killed.

use std::{
    io::Write as _,
    process::{ExitCode, Stdio},
    time::Duration,
};

use occ_core::{
    reason::Success,
    store::{
        Change, Expect, Store as _, Write,
        postgres::{PostgresSettings, PostgresStore},
    },
    work::{Lease, Transition},
};
use tokio::process::Command;

const WORKER: &str = "OCC_POSTGRES_TEST_WORKER";
/// How long the worker's claims last.
pub const LEASE: Lease = Lease {
    duration: Duration::from_secs(4),
    max_attempts: 5,
};

/// The database of a worker, if this process is one.
pub fn database() -> Option<String> {
    std::env::var(WORKER).ok()
}

/// A worker that claims all that is due and says `claimed N`; told so by a line, it publishes its claims, and says `published N`.
pub fn command(url: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program's path"));
    command
        .env(WORKER, url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("somebody listens");
}

pub fn run(url: &str) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let settings = PostgresSettings::from_url(url).expect("a URL");
        let store = PostgresStore::open(&settings).await.expect("the store opens");
        let claims = store.claim(10_000, LEASE).await.expect("a claim");
        say(&format!("claimed {}", claims.len()));
        std::io::stdin().read_line(&mut String::new()).expect("a line");
        let mut published = 0;
        for claim in claims {
            let transition = Transition::Complete {
                code: Success::RevisionActivated,
                warnings: Vec::new(),
            };
            let change = Change::new()
                .expect(Expect::ClaimHeld(claim.token))
                .write(Write::Settle(claim.token, transition));
            published += usize::from(store.commit(change).await.is_ok());
        }
        say(&format!("published {published}"));
    });
    ExitCode::SUCCESS
}
