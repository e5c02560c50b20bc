//! The check of the model that runs once, before the component (spec/drivers 7.1).
//!
//! Nothing that a check printed is kept: it may hold parts of a credential, or a provider's words.

mod attempt;
mod budget;
mod openclaw;
mod preflight;
mod report;

use std::time::Duration;

use attempt::{Attempt, Outcome};
use occ_core::reason::{Cause, PreparationReason, PreparationStage, ProcessExit, RuntimeCode, Token};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    spec::Probe,
    status::Exit,
    supervise::{End, Held, Supervisor, millis, signal_name},
};

/// What a check says of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It answers.
    Ready,
    /// The provider rejects the credential.
    Authentication,
    /// It did not answer in time.
    Timeout,
    /// The check did not get the CPU time that it needs.
    Starved,
    /// The check failed.
    Failed(Cause),
}

impl Verdict {
    const fn code(&self) -> Option<RuntimeCode> {
        match self {
            Self::Ready => None,
            Self::Authentication => Some(RuntimeCode::AuthenticationFailed),
            Self::Timeout => Some(RuntimeCode::ModelProbeTimeout),
            Self::Starved => Some(RuntimeCode::ModelProbeCpuStarved),
            Self::Failed(_) => Some(RuntimeCode::ModelProbeFailed),
        }
    }
}

/// A way to read a check's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// `openclaw models status --json --probe`.
    Openclaw,
    /// Any Harness: the last line says it.
    Report,
}

impl Reader {
    fn parse(id: &str) -> Option<Self> {
        match id {
            "openclaw-models-status/1" => Some(Self::Openclaw),
            "report/1" => Some(Self::Report),
            _ => None,
        }
    }

    const fn event(self) -> &'static str {
        match self {
            Self::Openclaw => "openclaw.model_probe",
            Self::Report => "runtime.model_probe",
        }
    }

    fn read(self, probe: &Probe, stdout: &[u8], exit: Exit) -> Verdict {
        match self {
            // Every outcome that it classifies itself is an exit of 0.
            Self::Openclaw => exit_cause(exit).map_or_else(|| openclaw::read(&probe.expect, stdout), Verdict::Failed),
            Self::Report => report::read(stdout, exit_cause(exit)),
        }
    }
}

/// Checks the model; holds unless it answers.
pub async fn run(supervisor: &mut Supervisor, probe: &Probe) -> Result<(), End> {
    let begun = Instant::now();
    let cgroup = budget::Cgroup::find(supervisor.spec.limits.cgroup.as_deref());
    let cap = budget::cap(probe.base_timeout_ms, probe.cpu_budget_ms, cgroup.quota());
    let reader = Reader::parse(&probe.reader);
    let Look { verdict, waited, full } = match reader {
        None => Verdict::Failed(Cause::WrapperError).into(),
        Some(reader) => look(supervisor, probe, reader, cap, &cgroup).await?,
    };
    let code = verdict.code();
    let cause = match verdict {
        Verdict::Failed(cause) => Some(cause),
        _ => None,
    };
    supervisor.log.event(
        reader.map_or("runtime.model_probe", Reader::event),
        json!({
            "elapsedMs": millis(begun),
            "capMs": u64::try_from(cap.as_millis()).unwrap_or(u64::MAX),
            "cpuWaitMs": waited.map(|waited| u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)),
            "code": code.map_or("READY", RuntimeCode::code),
            "cause": cause,
        }),
    );
    supervisor.phase(
        "probe",
        if code.is_none() { "succeeded" } else { "failed" },
        begun,
        code.map(RuntimeCode::code),
    );
    let Some(code) = code else { return Ok(()) };
    let held = Held::new(&supervisor.spec.component, Token::known("model-probe"), code, cause);
    Err(if full {
        // The code says what became of the check; this says what to mend.
        held.because(PreparationStage::Layout, PreparationReason::StorageFull, None)
    } else {
        held
    }
    .into())
}

/// What a check came to.
struct Look {
    verdict: Verdict,
    /// How long it waited for CPU time, when that is known.
    waited: Option<Duration>,
    /// Whether no space was left when it ended.
    full: bool,
}

impl From<Verdict> for Look {
    fn from(verdict: Verdict) -> Self {
        Self {
            verdict,
            waited: None,
            full: false,
        }
    }
}

async fn look(
    supervisor: &mut Supervisor,
    probe: &Probe,
    reader: Reader,
    cap: Duration,
    cgroup: &budget::Cgroup,
) -> Result<Look, End> {
    if reader == Reader::Openclaw && preflight::rejects(supervisor, probe).await? {
        return Ok(Verdict::Authentication.into());
    }
    let mut repeated = false;
    loop {
        let (outcome, full) = Attempt { probe, cap, cgroup }.run(supervisor).await?;
        let verdict = match outcome {
            Outcome::Ended { stdout, exit } => reader.read(probe, &stdout, exit),
            Outcome::NotStarted(errno) => process_exit(ProcessExit::Errno(errno)),
            Outcome::Overflow => process_exit(ProcessExit::Errno(Token::known("ENOBUFS"))),
            Outcome::Capped { elapsed, waited } => {
                let starved = waited.is_some_and(|waited| waited > elapsed / 4);
                let verdict = if starved { Verdict::Starved } else { Verdict::Timeout };
                return Ok(Look { verdict, waited, full });
            }
            Outcome::Unprepared => Verdict::Failed(Cause::WrapperError),
        };
        // The provider may have been slow once. A check that used up its cap had time enough.
        if verdict == Verdict::Timeout && reader == Reader::Openclaw && !repeated {
            repeated = true;
            continue;
        }
        return Ok(Look {
            verdict,
            waited: None,
            full,
        });
    }
}

fn process_exit(exit: ProcessExit) -> Verdict {
    Verdict::Failed(Cause::ProcessExit(Some(exit)))
}

/// Why an ended process failed; `None` when it did not.
fn exit_cause(exit: Exit) -> Option<Cause> {
    match exit {
        Exit::Status(0) => None,
        Exit::Status(status) => Some(Cause::ProcessExit(Some(ProcessExit::Status(status.into())))),
        Exit::Signal(number) => Some(Cause::ProcessExit(Some(ProcessExit::Signal(signal_name(number))))),
    }
}
