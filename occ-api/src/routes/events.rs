//! A deployment as server-sent events: each time it changes, until it is over.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use futures_util::stream;
use occ_core::{
    admission::Refusal,
    control::{Caller, ControlPlane, News},
    id::{AgentId, NamespaceId, RevisionId},
    status::Deployment,
};
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{call::Call, envelope::Reply, listeners::Place, reject::Rejected, server::Stopping};

/// After so long without a change a comment says that the connection lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A reader that takes nothing for so long has lost its place.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long the stream ends; whoever still watches asks again, and is asked for its permission again.
const LIFETIME: Duration = Duration::from_mins(10);

/// Looks at a deployment for one reader. It has its place for as long as it runs.
struct Watcher {
    plane: ControlPlane,
    caller: Caller,
    stopping: Stopping,
    namespace: NamespaceId,
    agent: AgentId,
    revision: RevisionId,
    news: News,
    events: mpsc::Sender<String>,
    _place: Place,
}

/// What is refused is refused as by any other read; the stream begins only once the deployment was read.
pub(super) async fn watch(call: Call) -> Result<Response, Rejected> {
    let (namespace, agent, revision) = (call.id("namespace")?, call.id("agent")?, call.id("revision")?);
    call.no_query()?;
    let news = call.plane.news();
    let first = call.plane.deployment(&call.caller, namespace, agent, revision).await?;
    let place = call.listeners.place().ok_or(Refusal::unavailable(
        "Too many readers wait for deployments now. Try again later, or read the deployment without waiting.",
    ))?;
    let (events, taken) = mpsc::channel(1);
    let watcher = Watcher {
        plane: call.plane,
        caller: call.caller,
        stopping: call.stopping,
        namespace,
        agent,
        revision,
        news,
        events,
        _place: place,
    };
    tokio::spawn(watcher.run(first));
    let body = stream::unfold(taken, |mut taken| async move {
        let event = taken.recv().await?;
        Some((Ok::<_, Infallible>(event), taken))
    });
    let mut response = Reply::Events.into_response();
    *response.body_mut() = Body::from_stream(body);
    Ok(response)
}

impl Watcher {
    /// Until the deployment is over, the reader is gone or takes nothing, the time is up, or the server stops.
    async fn run(mut self, first: Deployment) {
        let until = Instant::now() + LIFETIME;
        let mut shown = first;
        if !self.show(&shown).await {
            return;
        }
        let mut told = Instant::now();
        while !shown.status.is_terminal() && Instant::now() < until {
            let quiet = (told + KEEP_ALIVE).min(until);
            let heard = tokio::select! {
                heard = timeout_at(quiet, self.news.wait()) => heard.is_ok(),
                () = self.stopping.cancelled() => return,
                () = self.events.closed() => return,
            };
            if !heard {
                told = Instant::now();
                if !self.send(": nothing new\n\n".to_owned()).await {
                    return;
                }
                continue;
            }
            let read = self
                .plane
                .deployment(&self.caller, self.namespace, self.agent, self.revision)
                .await;
            match read {
                Ok(deployment) if deployment != shown => {
                    shown = deployment;
                    told = Instant::now();
                    if !self.show(&shown).await {
                        return;
                    }
                }
                Ok(_) => {}
                Err(refusal) => {
                    let data = json!({ "code": refusal.code(), "message": refusal.message() });
                    self.send(format!("event: error\ndata: {data}\n\n")).await;
                    return;
                }
            }
        }
    }

    async fn show(&self, deployment: &Deployment) -> bool {
        match serde_json::to_string(deployment) {
            Ok(data) => self.send(format!("event: deployment\ndata: {data}\n\n")).await,
            Err(_) => false,
        }
    }

    /// Whether the reader took what came before in time.
    async fn send(&self, event: String) -> bool {
        self.events.send_timeout(event, PATIENCE).await.is_ok()
    }
}
