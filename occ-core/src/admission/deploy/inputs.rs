//! What admission of a deployment is decided on.

use std::{borrow::Cow, collections::BTreeMap};

use crate::{
    admission::{
        Grants, Refusal,
        source::{self, Sources},
    },
    driver::{AccessRequest, Action, DriverKind, EffectError, EffectResult, Harness, HarnessSelection, ResourceRef},
    id::{AgentId, CredentialSourceId, NamespaceId, SecretId},
    installation::Drivers,
    resource::{
        Agent, BackendRef, CredentialSource, Document, HarnessAuth, HarnessIdentity, Namespace, PrincipalId,
        SecretSnapshot, ServiceAccount, SourceSnapshot,
    },
    store::{ConfigurationRow, DeployRead},
};

/// What a driver answered while admission gathered.
#[derive(Debug, Clone, PartialEq)]
pub enum Gathered<T> {
    /// This.
    Known(T),
    /// Nothing usable; this is what the caller is to be told if the answer is wanted.
    Failed(Refusal),
    /// It was not asked, because an earlier check refuses already.
    NotAsked,
}

impl<T> Gathered<T> {
    /// An effect's answer, or what `refusal` makes of its failure.
    pub(crate) fn of(answer: EffectResult<T>, refusal: impl FnOnce(&EffectError) -> Refusal) -> Self {
        answer.map_or_else(|error| Self::Failed(refusal(&error)), Self::Known)
    }

    pub(super) fn known(&self, kind: DriverKind) -> Result<&T, Refusal> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Failed(refusal) => Err(refusal.clone()),
            Self::NotAsked => Err(Refusal::driver_away(kind)),
        }
    }
}

/// All that admission of a deployment is decided on: rows of one moment, answers of drivers, and drivers for their pure methods.
#[derive(Debug)]
pub struct DeployInputs<'a> {
    /// Who asks.
    pub caller: &'a PrincipalId,
    /// The Namespace of the request.
    pub namespace: NamespaceId,
    /// The Agent of the request.
    pub agent: AgentId,
    /// The rows.
    pub read: &'a DeployRead,
    /// The answers to [`permission`] and to [`required`].
    pub grants: Grants,
    /// The Configuration Driver's document and its generation.
    pub document: Gathered<Option<(u64, Document)>>,
    /// Where the Secret Driver keeps each Secret now.
    pub secrets: BTreeMap<SecretId, Gathered<BackendRef>>,
    /// Whether the Agent's transport credentials exist; `None` when the Compute generates none.
    pub credentials: Option<Gathered<bool>>,
    /// The service account that the draft names, if it exists. The Secret of its issued token is among the rows.
    pub account: Option<ServiceAccount>,
    /// The records of the credential sources that the draft names, as far as they exist.
    pub sources: Vec<CredentialSource>,
    /// Set when the document is what an earlier version saved.
    pub repeated: Option<Repeated>,
    /// The selected drivers; only their pure methods are called.
    pub drivers: &'a Drivers,
}

/// An earlier version whose document is saved again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// The Sandbox Driver that transformed the document, if one was selected.
    pub sandbox_driver_id: Option<String>,
}

/// The first question, asked before anything is looked up.
pub fn permission(caller: &PrincipalId, namespace: NamespaceId, agent: AgentId) -> AccessRequest {
    let resource = ResourceRef::agent(namespace, agent);
    AccessRequest {
        principal: caller.clone(),
        action: Action::Deploy,
        resource,
    }
}

/// The other questions, once the rows are known: the caller's first, then the Agent principal's.
///
/// `read` and `operate` of the Agent are asked for the case that its transport credentials must be made.
pub fn required(caller: &PrincipalId, read: &DeployRead) -> Vec<AccessRequest> {
    let Some(agent) = read.agent.as_ref().map(|row| &row.agent) else {
        return Vec::new();
    };
    let namespace = agent.namespace_id;
    let ask = |action, resource| AccessRequest {
        principal: caller.clone(),
        action,
        resource,
    };
    let mut requests = vec![
        ask(
            Action::Read,
            ResourceRef::configuration(namespace, agent.configuration_id),
        ),
        ask(Action::Read, ResourceRef::agent(namespace, agent.id)),
        ask(Action::Operate, ResourceRef::agent(namespace, agent.id)),
    ];
    requests.extend(
        agent
            .harness_auth
            .as_ref()
            .and_then(|auth| source::auth_request(caller, namespace, auth)),
    );
    if let Some(configuration) = &read.configuration {
        requests.extend(source::binding_requests(
            caller,
            namespace,
            &configuration.secret_bindings,
        ));
    }
    for principal in [caller, &agent.service_principal_id] {
        let named = source_ids(agent).into_iter();
        requests.extend(named.map(|id| source::operate_source(principal, namespace, id)));
    }
    requests.extend(
        secret_ids(read)
            .into_iter()
            .map(|id| source::operate(&agent.service_principal_id, namespace, id)),
    );
    requests.into_iter().fold(Vec::new(), |mut distinct, request| {
        if !distinct.contains(&request) {
            distinct.push(request);
        }
        distinct
    })
}

/// Every Secret that the draft and its Configuration name: the model credential first.
pub fn secret_ids(read: &DeployRead) -> Vec<SecretId> {
    let auth = read.agent.as_ref().and_then(|row| row.agent.harness_auth.as_ref());
    let bindings = read.configuration.iter().flat_map(|row| row.secret_bindings.values());
    let named = auth
        .and_then(|auth| auth.secret().map(|(_, id)| id))
        .into_iter()
        .chain(bindings.map(|b| b.source.id));
    named.fold(Vec::new(), |mut ids, id| {
        if !ids.contains(&id) {
            ids.push(id);
        }
        ids
    })
}

/// Every credential source that a draft names: the model credential first.
pub fn source_ids(agent: &Agent) -> Vec<CredentialSourceId> {
    let auth = agent.harness_auth.as_ref().and_then(HarnessAuth::credential_source);
    let listed = agent.credential_sources.iter().map(|source| source.source_id);
    auth.into_iter().chain(listed).fold(Vec::new(), |mut ids, id| {
        if !ids.contains(&id) {
            ids.push(id);
        }
        ids
    })
}

impl<'a> DeployInputs<'a> {
    /// The selected Credential Gateway, and the records.
    pub(super) fn mediated(&self) -> Sources<'_> {
        Sources {
            gateway: self.drivers.gateway_id(),
            rows: &self.sources,
        }
    }

    /// A credential source as the version freezes it.
    pub(super) fn frozen_source(&self, id: CredentialSourceId) -> Result<SourceSnapshot, Refusal> {
        let row = self.mediated().usable(id)?;
        let gateway = self.drivers.credential_gateway.as_deref();
        let kind = gateway.and_then(|gateway| gateway.source_types().iter().find(|info| info.kind == row.kind));
        Ok(SourceSnapshot {
            source_id: id,
            credential_gateway_id: row.gateway_id.clone(),
            source_type: row.kind.clone(),
            login_mode: kind.and_then(|info| info.login_mode),
        })
    }

    pub(super) fn ask(&self, action: Action, resource: ResourceRef) -> AccessRequest {
        AccessRequest {
            principal: self.caller.clone(),
            action,
            resource,
        }
    }

    pub(super) fn namespace_row(&self) -> Result<&'a Namespace, Refusal> {
        self.read
            .namespace
            .as_ref()
            .map(|row| &row.namespace)
            .ok_or_else(Refusal::not_found)
    }

    pub(super) fn agent_row(&self) -> Result<&'a Agent, Refusal> {
        self.read
            .agent
            .as_ref()
            .map(|row| &row.agent)
            .ok_or_else(Refusal::not_found)
    }

    pub(super) fn configuration_row(&self) -> Result<&'a ConfigurationRow, Refusal> {
        self.read.configuration.as_ref().ok_or_else(Refusal::not_found)
    }

    /// The document, of the very generation that was read.
    pub(super) fn document(&self) -> Result<&Document, Refusal> {
        let generation = self.configuration_row()?.generation;
        match self.document.known(DriverKind::Configuration)? {
            Some((of, document)) if *of == generation => Ok(document),
            _ => Err(Refusal::driver_away(DriverKind::Configuration)),
        }
    }

    pub(super) fn selection(&self) -> Result<HarnessSelection, Refusal> {
        select(self.drivers, self.document()?)
    }

    /// The Harness that the document selects.
    pub(super) fn harness(&self) -> Result<&'a dyn Harness, Refusal> {
        let selection = self.selection()?;
        let harness = self.drivers.harness(&selection.harness);
        harness.map(|h| &**h).ok_or(Refusal::unavailable(
            "The Harness that the Configuration selects is not available.",
        ))
    }

    pub(super) fn harness_identity(&self) -> Result<HarnessIdentity, Refusal> {
        let harness = self.harness()?;
        Ok(HarnessIdentity {
            id: harness.identity().id.clone(),
            version: harness.version().to_owned(),
            mode: self.agent_row()?.execution_mode,
        })
    }

    /// The document as the version saves it: a Sandbox transforms a copy (seed: configureAgent). What an earlier version saved was
    /// transformed already, and is saved again as it is.
    pub(super) fn effective(&self) -> Result<Cow<'_, Document>, Refusal> {
        let document = self.document()?;
        let Some(sandbox) = self.drivers.sandbox.as_ref().filter(|_| self.repeated.is_none()) else {
            return Ok(Cow::Borrowed(document));
        };
        let configured = sandbox.configure_agent(document.clone(), &self.harness_identity()?);
        configured
            .map(Cow::Owned)
            .map_err(|terminal| Refusal::conflict(terminal.failure().message()))
    }

    /// The Secret that holds the issued token of the account that the draft names.
    pub(super) fn token(&self) -> Option<SecretId> {
        Some(self.account.as_ref()?.issued()?.0)
    }

    /// A Secret as the version freezes it.
    pub(super) fn snapshot_of(&self, id: SecretId) -> Result<SecretSnapshot, Refusal> {
        let secret = source::find(&self.read.secrets, id)?;
        Ok(SecretSnapshot {
            id,
            secret_driver_id: secret.driver_id.clone(),
            backend_ref: secret.backend_ref.clone(),
        })
    }
}

/// Which Harness a document selects: the answer of the first Harness, in selection order, that can read it (spec/drivers 0.5).
pub(crate) fn select(drivers: &Drivers, document: &Document) -> Result<HarnessSelection, Refusal> {
    let mut problem = None;
    for harness in &drivers.harnesses {
        match harness.select(document) {
            Ok(selection) => return Ok(selection),
            Err(found) => problem = problem.or(Some(found)),
        }
    }
    Err(problem.map_or(Refusal::driver_away(DriverKind::Harness), |problem| {
        super::document_problem(&problem)
    }))
}
