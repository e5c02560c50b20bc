//! Policies that were read and found good, and what they decide.

use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
};

use cedar_policy::{
    Authorizer, Context, Decision as Verdict, Entities, Entity, EntityId, EntityTypeName, EntityUid, Policy, PolicyId,
    PolicySet, Request, RestrictedExpression, ValidationMode, Validator,
};
use miette::Diagnostic;
use occ_core::{
    driver::{AccessRequest, Evidence, Identity, IdentityKind},
    iam::check_request,
};

use crate::{
    InvalidPolicies,
    schema::{action_of, parsed, target_of},
};

/// Good policies and entities.
#[derive(Debug)]
pub(crate) struct Policies {
    set: PolicySet,
    entities: Entities,
}

impl Policies {
    /// What two files say; refused whole when anything in them is not understood.
    pub(crate) fn read(policies: (&Path, &str), entities: Option<(&Path, &str)>) -> Result<Self, InvalidPolicies> {
        let (path, text) = policies;
        Ok(Self {
            set: named(path, text)?,
            entities: match entities {
                Some((path, text)) => people(path, text)?,
                None => Entities::empty(),
            },
        })
    }

    /// Whether the request is allowed, and what that rests on. Whatever cannot be asked is denied.
    pub(crate) fn decide(&self, identity: Option<&Identity>, request: &AccessRequest) -> (bool, Evidence) {
        let nothing = (false, Evidence::default());
        let Some(identity) = identity else { return nothing };
        if check_request(request).is_err() {
            return nothing;
        }
        let mut evidence = Evidence {
            identity_id: Some(identity.id.to_string()),
            ..Evidence::default()
        };
        // One that is confined to a Namespace acts nowhere else, whatever a policy says.
        if identity.namespace_id.is_some() && identity.namespace_id != request.resource.namespace_id {
            return (false, evidence);
        }
        let Some((question, entities)) = self.question(identity, request) else {
            return (false, evidence);
        };
        let answer = Authorizer::new().is_authorized(&question, &self.set, &entities);
        let reasons: BTreeSet<String> = answer.diagnostics().reason().map(ToString::to_string).collect();
        // A policy that failed might have forbidden it.
        let failed = answer.diagnostics().errors().next().is_some();
        let allowed = answer.decision() == Verdict::Allow && !failed;
        if answer.decision() == Verdict::Allow {
            evidence.binding_ids = reasons.into_iter().collect();
        } else {
            evidence.restriction_ids = reasons.into_iter().collect();
        }
        (allowed, evidence)
    }

    /// The question in Cedar's terms, with the entities that it is about beside those of the file.
    fn question(&self, identity: &Identity, request: &AccessRequest) -> Option<(Request, Entities)> {
        let resource = &request.resource;
        let target = uid(target_of(request.action, resource.kind), &resource.id)?;
        let parents = match resource.namespace_id {
            Some(namespace) if namespace.to_string() != resource.id => {
                HashSet::from([uid("Namespace", &namespace.to_string())?])
            }
            _ => HashSet::new(),
        };
        let mut about = vec![Entity::new_no_attrs(target.clone(), parents)];
        let principal = match identity.kind {
            IdentityKind::Human => {
                let person = uid("Person", identity.id.as_str())?;
                if self.entities.get(&person).is_none() {
                    about.push(Entity::with_uid(person.clone()));
                }
                person
            }
            IdentityKind::Service => {
                let service = uid("Service", identity.id.as_str())?;
                let text = |name: &str, value: Option<String>| {
                    value.map(|value| (name.to_owned(), RestrictedExpression::new_string(value)))
                };
                let namespace = text("namespace", identity.namespace_id.map(|id| id.to_string()));
                let agent = text("agent", identity.agent_id.map(|id| id.to_string()));
                let attributes = namespace.into_iter().chain(agent).collect();
                about.push(Entity::new(service.clone(), attributes, HashSet::new()).ok()?);
                service
            }
        };
        let action = uid("Action", &action_of(request.action, resource.kind))?;
        let entities = self.entities.clone().add_entities(about, Some(parsed())).ok()?;
        let question = Request::new(principal, action, target, Context::empty(), Some(parsed())).ok()?;
        Some((question, entities))
    }
}

fn uid(kind: &str, id: &str) -> Option<EntityUid> {
    let kind: EntityTypeName = kind.parse().ok()?;
    Some(EntityUid::from_type_name_and_id(kind, EntityId::new(id)))
}

/// The policies of a file, each under the id that it gives itself, held to the schema.
fn named(path: &Path, text: &str) -> Result<PolicySet, InvalidPolicies> {
    let wrong = |problem: String| InvalidPolicies::Policies {
        path: path.to_owned(),
        problem,
    };
    let read: PolicySet = text
        .parse()
        .map_err(|error: cedar_policy::ParseErrors| wrong(told(&error, text)))?;
    if read.templates().next().is_some() {
        return Err(wrong(
            "templates are not supported: write a policy for each principal or group".to_owned(),
        ));
    }
    let mut set = PolicySet::new();
    let mut in_order: Vec<&Policy> = read.policies().collect();
    // `policy7` after `policy12` would be their order as texts.
    in_order.sort_by_key(|policy| (policy.id().to_string().len(), policy.id().to_string()));
    for (index, policy) in in_order.into_iter().enumerate() {
        let unnamed = || InvalidPolicies::Unnamed {
            path: path.to_owned(),
            number: index + 1,
        };
        let id = policy
            .annotation("id")
            .filter(|id| !id.is_empty())
            .ok_or_else(unnamed)?;
        set.add(policy.new_id(PolicyId::new(id))).map_err(|_| unnamed())?;
    }
    let judged = Validator::new(parsed().clone()).validate(&set, ValidationMode::Strict);
    match judged.validation_errors().next() {
        Some(error) => Err(wrong(told(error, text))),
        None => Ok(set),
    }
}

/// What is wrong, from the outermost cause in, and on which line where that is known.
fn told(error: &dyn Diagnostic, text: &str) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        told.push_str(": ");
        told.push_str(&inner.to_string());
        cause = inner.source();
    }
    let label = error.labels().and_then(|mut labels| labels.next());
    match label.and_then(|label| text.get(..label.offset())) {
        Some(before) => format!("line {}: {told}", before.matches('\n').count() + 1),
        None => told,
    }
}

/// The people and groups of a file, held to the schema.
fn people(path: &Path, text: &str) -> Result<Entities, InvalidPolicies> {
    let entities = Entities::from_json_str(text, Some(parsed())).map_err(|error| InvalidPolicies::Entities {
        path: path.to_owned(),
        problem: told(&error, text),
    })?;
    let foreign = entities.iter().find_map(|entity| {
        let found = entity.uid().type_name().to_string();
        (!["Person", "Group", "Action"].contains(&found.as_str())).then_some(found)
    });
    match foreign {
        Some(found) => Err(InvalidPolicies::Foreign {
            path: path.to_owned(),
            found,
        }),
        None => Ok(entities),
    }
}
