//! An IAM Driver that decides by the native policy, with one flaw or none.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use occ_conformance::{
    Case,
    iam::{Subject, suite},
};
use occ_core::{
    driver::{
        AccessRequest, Action, CONTRACT_VERSION, Decision, DriverIdentity, DriverKind, EffectResult, Evidence,
        IamDriver, Identity, IdentityKind, OperationContext, ResourceKind,
    },
    iam::{Grants, PolicyReader, Subject as Grantee},
    id::{AgentId, InstallationId, NamespaceId, SecretId},
    resource::PrincipalId,
};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    IdentityPerInstance,
    SignsForAnother,
    AllowsNobody,
    AllowsWhatCannotExist,
    AnswersInReverse,
    IgnoresScopes,
    IgnoresRestrictions,
    ReadsEachTime,
    RemembersThePolicy,
    DeniesWhenAway,
    FindsAnother,
}

struct Model {
    flaw: Flaw,
    identity: DriverIdentity,
    policy: Arc<dyn PolicyReader>,
    remembered: Mutex<Option<Grants>>,
}

/// The rules of spec/engine 11.
fn decide(flaw: Flaw, grants: &Grants, request: &AccessRequest) -> (bool, Evidence) {
    let nothing = (false, Evidence::default());
    let Some(identity) = &grants.identity else {
        return (flaw == Flaw::AllowsNobody, Evidence::default());
    };
    let resource = &request.resource;
    let whole = identity.id == request.principal
        && (identity.kind == IdentityKind::Service || identity.namespace_id.is_none() && identity.agent_id.is_none())
        && (identity.agent_id.is_none() || identity.namespace_id.is_some())
        && unique(grants.restrictions.iter().map(|one| &one.id))
        && grants
            .bindings
            .iter()
            .all(|binding| grants.roles.iter().any(|role| role.id == binding.role_id));
    if !whole || !(possible(request) || flaw == Flaw::AllowsWhatCannotExist) {
        return nothing;
    }
    let mut evidence = Evidence {
        identity_id: Some(identity.id.to_string()),
        ..Evidence::default()
    };
    let covers =
        |scope: Option<NamespaceId>| scope.is_none() || scope == resource.namespace_id || flaw == Flaw::IgnoresScopes;
    if identity.namespace_id.is_some() && !covers(identity.namespace_id) {
        return (false, evidence);
    }
    for binding in &grants.bindings {
        let role = grants
            .roles
            .iter()
            .find(|role| role.id == binding.role_id)
            .expect("it is whole");
        let group = match &binding.subject {
            Grantee::Identity(id) if *id == request.principal => None,
            Grantee::Group(group) if identity.kind == IdentityKind::Human && grants.groups.contains(group) => {
                Some(group)
            }
            _ => continue,
        };
        let exact = binding
            .resource
            .as_ref()
            .is_none_or(|one| one.kind == resource.kind && one.id == resource.id);
        let permits = role
            .permissions
            .iter()
            .any(|one| one.action == request.action && one.kind == resource.kind);
        if exact && permits && covers(binding.namespace_id) && covers(role.namespace_id) {
            evidence.binding_ids.push(binding.id.clone());
            evidence.role_ids.push(role.id.clone());
            evidence.group_ids.extend(group.cloned());
        }
    }
    let granted = !evidence.binding_ids.is_empty();
    let restrictions = grants.restrictions.iter().filter(|one| {
        granted
            && one.action == request.action
            && one.kind == resource.kind
            && covers(one.namespace_id)
            && one.resource_id.as_ref().is_none_or(|id| *id == resource.id)
    });
    evidence.restriction_ids = restrictions.map(|one| one.id.clone()).collect();
    let allowed = granted && (evidence.restriction_ids.is_empty() || flaw == Flaw::IgnoresRestrictions);
    let Evidence {
        group_ids,
        binding_ids,
        role_ids,
        restriction_ids,
        ..
    } = &mut evidence;
    for ids in [group_ids, binding_ids, role_ids, restriction_ids] {
        ids.sort();
        ids.dedup();
    }
    (allowed, evidence)
}

fn unique<'a>(mut ids: impl Iterator<Item = &'a String>) -> bool {
    let mut seen = BTreeSet::new();
    ids.all(|id| seen.insert(id))
}

fn possible(request: &AccessRequest) -> bool {
    let (id, inside) = (&request.resource.id, request.resource.namespace_id);
    let parent = inside.is_some_and(|namespace| namespace.to_string() == *id);
    match (request.resource.kind, request.action) {
        (ResourceKind::Installation, _) | (ResourceKind::Namespace, Action::Create) => {
            inside.is_none() && id.parse::<InstallationId>().is_ok()
        }
        (ResourceKind::Namespace, _) | (_, Action::Create) => parent,
        (ResourceKind::Agent, _) => inside.is_some() && id.parse::<AgentId>().is_ok(),
        (ResourceKind::Secret, _) => inside.is_some() && id.parse::<SecretId>().is_ok(),
        _ => inside.is_some(),
    }
}

impl Model {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        if self.is(Flaw::RemembersThePolicy) {
            if let Some(grants) = self.remembered.lock().expect("no panic").clone() {
                return Ok(grants);
            }
            let grants = self.policy.grants(principal).await?;
            *self.remembered.lock().expect("no panic") = Some(grants.clone());
            return Ok(grants);
        }
        match self.policy.grants(principal).await {
            Err(_) if self.is(Flaw::DeniesWhenAway) => Ok(Grants::default()),
            other => other,
        }
    }

    fn decision(&self, grants: &Grants, request: &AccessRequest) -> Decision {
        let (allowed, evidence) = decide(self.flaw, grants, request);
        let driver_id = match self.flaw {
            Flaw::SignsForAnother => "another".to_owned(),
            _ => self.identity.id.clone(),
        };
        Decision {
            allowed,
            driver_id,
            evidence,
        }
    }
}

#[async_trait]
impl IamDriver for Model {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    async fn lookup(&self, _: &OperationContext, principal: &PrincipalId) -> EffectResult<Option<Identity>> {
        let identity = self.grants(principal).await?.identity;
        Ok(identity.filter(|one| one.id == *principal || self.is(Flaw::FindsAnother)))
    }

    async fn authorize(&self, _: &OperationContext, request: &AccessRequest) -> EffectResult<Decision> {
        Ok(self.decision(&self.grants(&request.principal).await?, request))
    }

    async fn authorize_all(&self, cx: &OperationContext, requests: &[AccessRequest]) -> EffectResult<Vec<Decision>> {
        let mut read: Vec<(PrincipalId, Grants)> = Vec::new();
        let mut decisions = Vec::new();
        for request in requests {
            if self.is(Flaw::ReadsEachTime) {
                decisions.push(self.authorize(cx, request).await?);
                continue;
            }
            if !read.iter().any(|(principal, _)| *principal == request.principal) {
                read.push((request.principal.clone(), self.grants(&request.principal).await?));
            }
            let (_, grants) = read
                .iter()
                .find(|(one, _)| *one == request.principal)
                .expect("it was read");
            decisions.push(self.decision(grants, request));
        }
        if self.is(Flaw::AnswersInReverse) {
            decisions.reverse();
        }
        Ok(decisions)
    }
}

struct Made(Flaw);

impl Subject for Made {
    fn driver(&self, policy: Arc<dyn PolicyReader>) -> Arc<dyn IamDriver> {
        let id = match self.0 {
            Flaw::IdentityPerInstance => Uuid::new_v4().to_string(),
            _ => "model".to_owned(),
        };
        Arc::new(Model {
            flaw: self.0,
            identity: DriverIdentity {
                kind: DriverKind::Iam,
                id,
                implementation: "conformance/model".to_owned(),
                contract: CONTRACT_VERSION,
            },
            policy,
            remembered: Mutex::default(),
        })
    }
}

fn cases(flaw: Flaw) -> Vec<Case> {
    suite(move || Made(flaw))
}

#[test]
fn an_iam_driver_that_keeps_its_contract_keeps_every_rule() {
    super::keeps_every_rule(cases(Flaw::None));
}

#[test]
fn every_rule_for_iam_drivers_has_teeth() {
    let table = [
        (Flaw::IdentityPerInstance, "it_says_who_it_is"),
        (Flaw::SignsForAnother, "every_decision_is_signed"),
        (Flaw::AllowsNobody, "nobody_is_allowed_nothing"),
        (Flaw::AllowsWhatCannotExist, "what_cannot_exist_is_denied"),
        (Flaw::AnswersInReverse, "several_questions_are_answered_as_each_alone"),
        (Flaw::IgnoresScopes, "every_decision_is_the_models"),
        (
            Flaw::IgnoresRestrictions,
            "more_restrictions_or_fewer_bindings_never_allow_more",
        ),
        (Flaw::ReadsEachTime, "several_questions_rest_on_one_state_of_the_policy"),
        (Flaw::RemembersThePolicy, "a_change_of_policy_counts_at_once"),
        (
            Flaw::DeniesWhenAway,
            "a_policy_that_cannot_be_read_is_an_error_and_not_an_answer",
        ),
        (Flaw::FindsAnother, "a_lookup_gives_the_identity_and_never_another"),
    ];
    super::every_rule_has_teeth(&table, cases);
}
