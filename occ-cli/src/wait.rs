//! Waiting for what the control plane does by itself, and showing what it is doing.

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Write as _, stderr},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use occ_core::{
    control::StopView,
    id::{AgentId, NamespaceId, RevisionId},
    reason::ApiCode,
    status::{Deployment, DeploymentStatus},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    client::{CallError, Client},
    exit::{Done, Exit, Failure},
};

/// How often the API is asked.
const INTERVAL: Duration = Duration::from_millis(500);

/// One line that changes, on a terminal; one line a change, elsewhere.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    shown: String,
    started: Instant,
}

impl Progress {
    /// On standard error, so that standard output stays for results.
    pub(crate) fn new() -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            bar,
            shown: String::new(),
            started: Instant::now(),
        }
    }

    pub(crate) fn show(&mut self, text: String) {
        if text == self.shown {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(text.clone()),
            None => say(&format!("{:>4}s {text}", self.started.elapsed().as_secs())),
        }
        self.shown = text;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What a deployment is doing, in one line. Between two looks of a worker it is queued again, which tells nobody anything.
pub(crate) fn describe(deployment: &Deployment) -> String {
    let progress = deployment.progress.as_ref();
    match progress.and_then(|progress| progress.last_attempt.as_ref()) {
        Some(attempt) => format!("{}: {}", attempt.code, attempt.message),
        None => status(deployment.status).to_owned(),
    }
}

pub(crate) const fn status(status: DeploymentStatus) -> &'static str {
    match status {
        DeploymentStatus::Queued => "queued",
        DeploymentStatus::Running => "running",
        DeploymentStatus::Succeeded => "succeeded",
        DeploymentStatus::Failed => "failed",
    }
}

/// The path of a deployment.
pub(crate) fn path(namespace: NamespaceId, agent: AgentId, revision: RevisionId) -> String {
    format!("/namespaces/{namespace}/agents/{agent}/deployments/{revision}")
}

/// Waits until a deployment is over. An API that goes away meanwhile may come back: the wait goes on.
pub(crate) async fn deployment(
    client: &Client,
    (namespace, agent, revision): (NamespaceId, AgentId, RevisionId),
    timeout: Duration,
) -> Done<Deployment> {
    let path = path(namespace, agent, revision);
    until(
        timeout,
        "the deployment goes on; see `occ agent deployment-status`",
        async |progress| match client.get::<Deployment>(&path).await {
            Ok(deployment) => {
                progress.show(describe(&deployment));
                Ok(deployment.status.is_terminal().then_some(deployment))
            }
            Err(CallError::Failed(failure)) => survive(progress, failure),
            Err(error) => Err(error.into()),
        },
    )
    .await
}

/// An API that does not answer may be restarting: worth showing, and no end of the wait.
pub(crate) fn survive<T>(progress: &mut Progress, failure: Failure) -> Done<Option<T>> {
    if failure.exit() == Exit::Unreachable {
        progress.show(failure.to_string());
        Ok(None)
    } else {
        Err(failure)
    }
}

/// Asks `look` again and again until it has something.
pub(crate) async fn until<T>(
    timeout: Duration,
    meanwhile: &str,
    mut look: impl AsyncFnMut(&mut Progress) -> Done<Option<T>>,
) -> Done<T> {
    let mut progress = Progress::new();
    let found = async {
        loop {
            if let Some(found) = look(&mut progress).await? {
                return Ok(found);
            }
            tokio::time::sleep(INTERVAL).await;
        }
    };
    // A look at an API that hangs ends with the time too.
    tokio::time::timeout(timeout, found).await.unwrap_or_else(|_| {
        let late = format!("not done within {} s; {meanwhile}", timeout.as_secs());
        Err(Failure::new(Exit::Timeout, late))
    })
}

/// The same for one request that begins what is then waited for.
pub(crate) async fn begin<T>(timeout: Duration, request: impl Future<Output = Result<T, CallError>>) -> Done<T> {
    match tokio::time::timeout(timeout, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::new(
            Exit::Timeout,
            format!(
                "the API did not answer within {} s; it is not known whether the request was accepted",
                timeout.as_secs()
            ),
        )),
    }
}

/// Resolves when the user or the system wants this process to end: Ctrl-C, SIGTERM, or its terminal closed. From the call on,
/// these do not end it by themselves.
pub(crate) fn interrupted() -> impl Future<Output = ()> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [mut interrupt, mut terminate, mut hangup] = kinds.map(|kind| signal(kind).ok());
    async move {
        tokio::select! {
            Some(()) = next(&mut interrupt) => {}
            Some(()) = next(&mut terminate) => {}
            Some(()) = next(&mut hangup) => {}
            else => std::future::pending().await,
        }
    }
}

async fn next(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

/// A stop, once it was requested: how far it is.
pub(crate) async fn stop(client: &Client, stop: &str, timeout: Duration) -> Done {
    until(timeout, "the Agent is still being stopped", async |progress| {
        progress.show("stopping".to_owned());
        let view = match client.get::<StopView>(stop).await {
            Ok(view) => view,
            // Deleted meanwhile, which stops it too.
            Err(error) if error.is(ApiCode::NotFound) => return Ok(Some(())),
            Err(CallError::Failed(failure)) => return survive(progress, failure),
            Err(error) => return Err(error.into()),
        };
        match view.error {
            Some(error) => {
                let why = format!("the stop failed\n{}: {}", error.code, error.message);
                Err(Failure::refused(why).with_code(error.code))
            }
            None => Ok(view.status.is_terminal().then_some(())),
        }
    })
    .await
}

/// A line on standard error. Nobody may be there to read it, which is no reason to end.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stderr(), "{line}");
}

/// A failed deployment, in the words that people need: code, message, cause, exit and where to read on.
pub(crate) fn explain(deployment: &Deployment) -> String {
    let Some(error) = &deployment.error else {
        return status(deployment.status).to_owned();
    };
    let mut text = format!("{}: {}", error.code, error.message);
    if let Some(data) = &error.data {
        if let Some(failure) = &data.runtime_failure {
            let _ = write!(
                text,
                "\n  {} {} at {}: {}",
                failure.component, failure.check, failure.checked_at, failure.code
            );
            if let Some(cause) = &failure.cause {
                let (kind, detail) = cause.parts();
                let _ = write!(text, "\n  Cause: {kind} {}", detail.unwrap_or_default());
            }
        }
        if let Some(preparation) = &data.preparation {
            let _ = write!(
                text,
                "\n  {}: {} {}",
                preparation.stage,
                preparation.reason,
                preparation.reason.message()
            );
            if let Some(status) = preparation.exit_status {
                let _ = write!(text, " Exit status {status}.");
            }
            if let Some(signal) = &preparation.signal {
                let _ = write!(text, " Signal {signal}.");
            }
        }
        if let Some(timeout) = data.timeout_ms {
            let _ = write!(text, "\n  The deadline was {} s.", timeout / 1000);
        }
    }
    text + &format!("\n  See docs/reasons/{}.md", error.code)
}
