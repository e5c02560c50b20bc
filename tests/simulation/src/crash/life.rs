//! The lives, and what must hold at their end wherever they were cut.

use std::collections::BTreeSet;

use occ_core::{
    control::CreateNamespace, driver::ActivationOrder, id::RevisionId, reason::Failure, resource::NamespaceStatus,
    status::DeploymentStatus,
};

use super::{Cut, Stage};
use crate::chaos::Manner;

/// What happens in a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// The first version is deployed.
    Deploy,
    /// A second version replaces the first.
    Replace,
    /// The Agent is stopped.
    Stop,
    /// The Agent is deleted.
    Delete,
    /// A first version is deployed by somebody who may no longer.
    Refused,
    /// A Namespace is created.
    CreateNamespace,
    /// A Namespace is deleted.
    DeleteNamespace,
}

/// A scripted life.
#[derive(Debug)]
pub struct Life {
    /// What it is called.
    pub name: &'static str,
    /// How the Compute behaves in it.
    pub manner: Manner,
    deed: Deed,
}

const AFTER: Manner = Manner {
    order: ActivationOrder::AfterCommit,
    exclusive: false,
    maintenance: None,
    rate: 0,
};
const BEFORE: Manner = Manner {
    order: ActivationOrder::BeforeCommit,
    ..AFTER
};
const EXCLUSIVE: Manner = Manner {
    exclusive: true,
    ..AFTER
};

const fn life(name: &'static str, manner: Manner, deed: Deed) -> Life {
    Life { name, manner, deed }
}

/// Every life.
pub const LIVES: &[Life] = &[
    life("first deployment", AFTER, Deed::Deploy),
    life("first deployment, activated before the commit", BEFORE, Deed::Deploy),
    life("replacement", AFTER, Deed::Replace),
    life("replacement, activated before the commit", BEFORE, Deed::Replace),
    life("exclusive replacement", EXCLUSIVE, Deed::Replace),
    life("stop", AFTER, Deed::Stop),
    life("deletion", AFTER, Deed::Delete),
    life("refused candidate", AFTER, Deed::Refused),
    life("refused exclusive candidate", EXCLUSIVE, Deed::Refused),
    life("creation of a Namespace", AFTER, Deed::CreateNamespace),
    life("deletion of a Namespace", AFTER, Deed::DeleteNamespace),
];

const OTHER: &str = "other";

impl Life {
    /// Whether a stop of its Agent may happen in it.
    pub fn is_stoppable(&self) -> bool {
        matches!(self.deed, Deed::Deploy | Deed::Replace)
    }

    /// What happened before.
    pub(super) async fn prepare(&self, stage: &Stage) {
        match self.deed {
            Deed::Replace | Deed::Stop | Deed::Delete => {
                stage.deploy().await;
                stage.rests().await;
            }
            Deed::Refused => stage.deny(),
            Deed::DeleteNamespace => {
                create_namespace(stage).await;
                stage.rests().await;
            }
            Deed::Deploy | Deed::CreateNamespace => {}
        }
    }

    /// What happens while the worker may die.
    pub(super) async fn lead(&self, stage: &Stage) {
        let (plane, admin, namespace, agent) = (&stage.plane, &stage.admin, stage.namespace, stage.agent);
        match self.deed {
            Deed::Deploy | Deed::Replace | Deed::Refused => {
                stage.deploy().await;
            }
            Deed::Stop => {
                plane.stop_agent(admin, namespace, agent).await.expect("the Agent");
            }
            Deed::Delete => {
                plane.delete_agent(admin, namespace, agent).await.expect("the Agent");
            }
            Deed::CreateNamespace => create_namespace(stage).await,
            Deed::DeleteNamespace => {
                let all = plane.namespaces(admin).await.expect("a list");
                let other = all.iter().find(|namespace| namespace.name.as_str() == OTHER);
                let other = other.expect("the other Namespace").id;
                plane.delete_namespace(admin, other).await.expect("the Namespace");
            }
        }
        stage.rests().await;
    }

    /// What must hold in the end.
    pub(super) async fn holds(&self, stage: &Stage, cut: Cut) {
        let end = End::of(stage).await;
        let hold = |rule: bool, what: &str| {
            stage
                .rules
                .hold(rule, || format!("{} with {cut:?}: {what}: {end:?}", self.name));
        };
        let versions = end.versions.len();
        if cut.stop.is_some() && end.stopped {
            hold(end.active.is_none(), "a stopped Agent selects nothing");
            hold(end.running.is_empty(), "nothing of a stopped Agent runs");
            return;
        }
        match self.deed {
            Deed::Deploy | Deed::Replace => {
                let newest = end.versions.last().map(|(id, ..)| *id);
                hold(end.active == newest, "the newest version is selected");
                hold(end.running.iter().copied().eq(newest), "it alone runs");
                hold(end.routed == newest, "and serves");
                hold(
                    end.versions
                        .iter()
                        .all(|(_, status, _)| *status == DeploymentStatus::Succeeded),
                    "each deployment has succeeded",
                );
                hold(versions == 1 + usize::from(self.deed == Deed::Replace), "none is lost");
            }
            Deed::Stop => hold(end.active.is_none() && end.running.is_empty(), "it is stopped"),
            Deed::Delete => {
                hold(!end.exists && end.running.is_empty(), "it is gone");
                let left = stage
                    .rules
                    .runtime(|runtime| runtime.credentials.contains(&stage.agent));
                hold(!left, "and so are its credentials");
            }
            Deed::Refused => {
                hold(end.active.is_none() && end.running.is_empty(), "nothing of it runs");
                let refused = |(_, status, error): &(_, _, Option<Failure>)| {
                    *status == DeploymentStatus::Failed && *error == Some(Failure::AuthorizationDenied)
                };
                hold(end.versions.iter().all(refused) && versions == 1, "it is refused");
            }
            Deed::CreateNamespace => hold(end.other == Some(NamespaceStatus::Ready), "it is ready"),
            Deed::DeleteNamespace => hold(end.other.is_none(), "it is gone"),
        }
    }
}

async fn create_namespace(stage: &Stage) {
    let input = CreateNamespace {
        name: OTHER.parse().expect("a name"),
        existing_namespace: None,
    };
    let created = stage.plane.create_namespace(&stage.admin, input).await;
    created.expect("a new Namespace");
}

/// How everything is in the end.
#[derive(Debug)]
struct End {
    exists: bool,
    stopped: bool,
    active: Option<RevisionId>,
    versions: Vec<(RevisionId, DeploymentStatus, Option<Failure>)>,
    running: BTreeSet<RevisionId>,
    routed: Option<RevisionId>,
    other: Option<NamespaceStatus>,
}

impl End {
    async fn of(stage: &Stage) -> Self {
        let (plane, admin, namespace, id) = (&stage.plane, &stage.admin, stage.namespace, stage.agent);
        let agent = plane.agent(admin, namespace, id).await.ok();
        let mut versions = Vec::new();
        for revision in plane.revisions(admin, namespace, id).await.unwrap_or_default() {
            let status = plane.deployment(admin, namespace, id, revision.id).await;
            let status = status.expect("its deployment");
            versions.push((revision.id, status.status, status.error.map(|error| error.code)));
        }
        let (running, routed) = stage.rules.runtime(|runtime| {
            (
                runtime.running.get(&id).cloned().unwrap_or_default(),
                runtime.routed.get(&id).copied(),
            )
        });
        let namespaces = plane.namespaces(admin).await.expect("a list");
        let other = namespaces.iter().find(|namespace| namespace.name.as_str() == OTHER);
        Self {
            exists: agent.is_some(),
            stopped: agent
                .as_ref()
                .is_some_and(|agent| agent.desired_runtime_state == occ_core::resource::DesiredRuntimeState::Stopped),
            active: agent.and_then(|agent| agent.active_revision_id),
            versions,
            running,
            routed,
            other: other.map(|namespace| namespace.status),
        }
    }
}
