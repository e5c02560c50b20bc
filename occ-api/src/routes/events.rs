//! A deployment as server-sent events: each time it changes, until it is over.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use occ_core::{
    control::{Caller, ControlPlane},
    id::{AgentId, NamespaceId, RevisionId},
    status::Deployment,
};
use serde_json::json;
use tokio::time::Instant;

use crate::{call::Call, envelope::Reply, reject::Rejected, server::Stopping};

/// How often a watcher looks.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// After so long without a change a comment says that the connection lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// After so long the stream ends; whoever still watches asks again, and is asked for its permission again.
const LIFETIME: Duration = Duration::from_mins(10);

struct Watcher {
    plane: ControlPlane,
    caller: Caller,
    stopping: Stopping,
    namespace: NamespaceId,
    agent: AgentId,
    revision: RevisionId,
    /// What was shown last; nothing yet when `pending` waits to be shown.
    shown: Option<Deployment>,
    pending: Option<Deployment>,
    quiet_since: Instant,
    until: Instant,
    over: bool,
}

/// What is refused is refused as by any other read; the stream begins only once the deployment was read.
pub(super) async fn watch(call: Call) -> Result<Response, Rejected> {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    call.no_query()?;
    let first = call.plane.deployment(&call.caller, namespace, agent, revision).await?;
    let now = Instant::now();
    let watcher = Watcher {
        plane: call.plane,
        caller: call.caller,
        stopping: call.stopping,
        namespace,
        agent,
        revision,
        shown: None,
        pending: Some(first),
        quiet_since: now,
        until: now + LIFETIME,
        over: false,
    };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    let mut response = Reply::Events.into_response();
    *response.body_mut() = Body::from_stream(events);
    Ok(response)
}

impl Watcher {
    /// The next event, or comment; nothing after the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(deployment) = self.pending.take() {
                self.over = deployment.status.is_terminal();
                let data = serde_json::to_string(&deployment).ok()?;
                self.shown = Some(deployment);
                self.quiet_since = Instant::now();
                return Some(format!("event: deployment\ndata: {data}\n\n"));
            }
            if self.over || Instant::now() >= self.until {
                return None;
            }
            if self.quiet_since.elapsed() >= KEEP_ALIVE {
                self.quiet_since = Instant::now();
                return Some(": nothing new\n\n".to_owned());
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = self.stopping.cancelled() => return None,
            }
            let read = self
                .plane
                .deployment(&self.caller, self.namespace, self.agent, self.revision)
                .await;
            match read {
                Ok(deployment) if self.shown.as_ref() != Some(&deployment) => self.pending = Some(deployment),
                Ok(_) => {}
                Err(refusal) => {
                    self.over = true;
                    let data = json!({ "code": refusal.code(), "message": refusal.message() });
                    return Some(format!("event: error\ndata: {data}\n\n"));
                }
            }
        }
    }
}
