//! One rule of a contract, as something that can be run by itself.

use std::{borrow::Cow, pin::Pin, process::ExitCode};

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::Runtime;

type Check = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// One rule of a contract over a subject of its own, or the reason why the rule does not concern this driver.
pub struct Case {
    name: Cow<'static, str>,
    work: Work,
}

enum Work {
    Check(Check),
    Skipped(String),
}

impl Case {
    /// A rule that `check` panics at when it is broken.
    pub fn new<F>(name: impl Into<Cow<'static, str>>, check: impl FnOnce() -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self {
            name: name.into(),
            work: Work::Check(Box::new(move || Box::pin(check()))),
        }
    }

    /// A rule that does not concern this driver, and why.
    pub fn skipped(name: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            work: Work::Skipped(reason.into()),
        }
    }

    /// The rule, as a sentence in snake case, after its suite and its area.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why it does not concern this driver; `None` when it does.
    pub fn skipped_because(&self) -> Option<&str> {
        match &self.work {
            Work::Check(_) => None,
            Work::Skipped(reason) => Some(reason),
        }
    }

    /// Checks the rule in a runtime of its own; a skipped one holds.
    ///
    /// # Panics
    /// When the rule is broken.
    pub fn check(self) {
        if let Work::Check(check) = self.work {
            runtime().block_on(async { check().await });
        }
    }

    fn trial(self) -> Trial {
        match self.skipped_because() {
            // Named, so that nobody takes it for passed.
            Some(reason) => {
                Trial::test(format!("{} (skipped: {reason})", self.name), || Ok(())).with_ignored_flag(true)
            }
            None => Trial::test(self.name.clone(), move || {
                self.check();
                Ok(())
            }),
        }
    }
}

/// The runtime that a case gets: timers, sockets, and two threads, so that what overlaps does overlap.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("the operating system starts threads")
}

/// Runs the cases as a test binary does, with its command line: filters, `--list`, `--ignored`. For a `tests/conformance.rs` with
/// `harness = false`.
pub fn run(cases: impl IntoIterator<Item = Case>) -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = cases.into_iter().map(Case::trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
