//! The component itself: started, watched until it serves, and started again when it ends.

use std::{convert::Infallible, path::Path, pin::pin, time::Duration};

use occ_core::reason::{PreparationReason, PreparationStage, RuntimeCode, Token};
use rustix::io::Errno;
use tokio::time::{Instant, timeout};

use super::{
    Child, End, Event, Held, Supervisor, is_full, output,
    readiness::{Readiness, Seen},
};
use crate::status::{Exit, State};

/// How often a component that does not serve yet is asked.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// So many foreign answers in a row are no accident of a starting component.
const FOREIGN_ANSWERS: u32 = 4;
/// Wait before the first restart, and the longest one.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A component that served this long has earned a quick restart again.
const STABLE: Duration = Duration::from_mins(1);
/// A component that never served is ended within this time.
const UNSERVED_GRACE: Duration = Duration::from_secs(10);
/// How long the end of the output is waited for after the last process has ended.
const OUTPUT_END: Duration = Duration::from_secs(1);

/// How one run of the component went.
enum Run {
    /// It ended by itself.
    Ended { exit: Exit, served_for: Option<Duration> },
    /// It was not started.
    NotStarted(i32),
    /// It did not serve in time and was ended.
    Late,
    /// Something else answered in its place; it was ended.
    Foreign,
}

/// Runs the component until the supervisor is told to stop, or it fails before it was ever ready.
pub async fn run(supervisor: &mut Supervisor) -> Result<Infallible, End> {
    let mut was_ready = false;
    let mut retried = false;
    let mut backoff = BACKOFF.0;
    supervisor.publisher.state(State::Starting);
    loop {
        let run = once(supervisor, &mut was_ready).await?;
        let exit = match run {
            Run::Ended { exit, .. } => Some(exit),
            _ => None,
        };
        supervisor.publisher.ended(exit, was_ready);
        if was_ready {
            if matches!(run, Run::Ended { served_for: Some(time), .. } if time >= STABLE) {
                backoff = BACKOFF.0;
            }
        } else if retried || !matches!(run, Run::Ended { .. }) {
            return Err(held(supervisor, &run).into());
        } else {
            retried = true;
        }
        tokio::select! {
            () = supervisor.stop.requested() => return Err(End::Stop),
            () = tokio::time::sleep(backoff) => {}
        }
        if was_ready {
            backoff = (backoff * 2).min(BACKOFF.1);
        }
    }
}

fn held(supervisor: &Supervisor, run: &Run) -> Held {
    let component = &supervisor.spec.component;
    let failure = |check, code| Held::new(component, Token::known(check), code, None);
    match run {
        Run::Ended { exit, .. } => {
            // A program without space to write in seldom says so by its exit.
            let full = is_full(Path::new(&supervisor.spec.working_directory));
            let reason = if full {
                PreparationReason::StorageFull
            } else {
                PreparationReason::ComponentExited
            };
            failure("startup", RuntimeCode::Unavailable).because(PreparationStage::Readiness, reason, Some(*exit))
        }
        Run::NotStarted(errno) => {
            let held = failure("startup", RuntimeCode::Unavailable);
            match Errno::from_raw_os_error(*errno) {
                Errno::NOENT | Errno::ACCESS | Errno::NOEXEC => {
                    held.because(PreparationStage::Launch, PreparationReason::ExecutableMissing, None)
                }
                Errno::NOTDIR => held.because(PreparationStage::Layout, PreparationReason::StorageDenied, None),
                _ => held,
            }
        }
        Run::Late => failure("readiness", RuntimeCode::Unavailable),
        Run::Foreign => failure("readiness", RuntimeCode::IncompatibleResponse),
    }
}

async fn once(supervisor: &mut Supervisor, was_ready: &mut bool) -> Result<Run, End> {
    let spec = &supervisor.spec;
    let begun = Instant::now();
    let task = supervisor.task(&spec.command, &spec.environment, &spec.working_directory);
    let started = async {
        let (writer, reader) = output()?;
        let child = Child::start(task, writer.try_clone()?, writer).await?;
        Ok::<_, std::io::Error>((child, tokio::spawn(supervisor.log.clone().copy(reader))))
    };
    let (mut child, copied) = match started.await {
        Ok(started) => started,
        Err(error) => {
            return Ok(Run::NotStarted(
                error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
            ));
        }
    };
    let start_timeout = Duration::from_millis(spec.readiness.start_timeout_ms);
    let mut serving = pin!(timeout(start_timeout, until_serving(&spec.readiness.url)));
    let mut serves_since = None;
    let mut stop = supervisor.stop.clone();

    let run = loop {
        tokio::select! {
            biased;
            () = stop.requested() => {
                supervisor.publisher.state(State::Stopping);
                let event = child.end(Duration::from_millis(spec.stop_grace_ms)).await;
                if let Event::Ended(exit) = event {
                    supervisor.publisher.ended(Some(exit), false);
                }
                let _ = timeout(OUTPUT_END, copied).await;
                return Err(End::Stop);
            }
            event = child.next() => match event {
                Event::Started(pid) => supervisor.publisher.child(pid),
                Event::NotStarted(errno) => break Run::NotStarted(errno),
                Event::Ended(exit) => {
                    break Run::Ended { exit, served_for: serves_since.map(|since: Instant| since.elapsed()) };
                }
            },
            seen = &mut serving, if serves_since.is_none() => {
                let run = match seen {
                    Ok(Seen::Ready) => {
                        serves_since = Some(Instant::now());
                        *was_ready = true;
                        supervisor.phase("startup", "succeeded", begun, None);
                        supervisor.publisher.state(State::Ready);
                        continue;
                    }
                    Ok(Seen::Foreign | Seen::NotYet) => Run::Foreign,
                    Err(_) => Run::Late,
                };
                child.end(UNSERVED_GRACE.min(Duration::from_millis(spec.stop_grace_ms))).await;
                break run;
            }
        }
    };
    let _ = timeout(OUTPUT_END, copied).await;
    supervisor.phase(
        if serves_since.is_some() { "run" } else { "startup" },
        "failed",
        begun,
        None,
    );
    Ok(run)
}

/// Asks until the component serves, or something else answers in its place.
async fn until_serving(url: &str) -> Seen {
    let Some(readiness) = Readiness::new(url) else {
        return Seen::Foreign;
    };
    let mut foreign = 0;
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        match readiness.look().await {
            Seen::Ready => return Seen::Ready,
            Seen::NotYet => foreign = 0,
            Seen::Foreign => {
                foreign += 1;
                if foreign == FOREIGN_ANSWERS {
                    return Seen::Foreign;
                }
            }
        }
    }
}
