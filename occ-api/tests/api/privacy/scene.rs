//! A world of two Namespaces, callers with the grants of a plan, and what each answer must be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use occ_core::{
    control::{ControlPlane, CreateNamespace, CreatePreset, CreateServiceAccount, CreateServiceKey},
    driver::{Action, CredentialGateway, ResourceKind},
    iam::{AccessBinding, ExactResource, Permission, Role, Subject},
    id::NamespaceId,
    resource::{AgentRevision, NamespaceStatus, PrincipalId},
    store::{Change, Store as _, Write},
};
use occ_test_support::drivers::{MediatingGateway, NullCompute, Optional, World};
use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    calls::{CALLS, COLLECTIONS, Call, Own, REFERENCES, Reference},
    model::{Grant, Kind, Question, allows},
};
use crate::served::{Seen, Served, store};

/// What each Namespace calls its own; found in no answer about the other.
const MARKS: [&str; 2] = ["amber", "birch"];

#[derive(Debug, Clone)]
pub struct CallerPlan {
    pub grants: Vec<Grant>,
    /// The only Namespace that its key opens.
    pub opens: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub callers: Vec<CallerPlan>,
    /// Who asks what in which Namespace.
    pub steps: Vec<(usize, usize, usize)>,
}

struct Tenant {
    id: NamespaceId,
    things: BTreeMap<Kind, String>,
    /// What only its readers may see.
    private: Vec<String>,
    /// The version as it was admitted.
    version: AgentRevision,
}

struct Actor {
    key: String,
    plan: CallerPlan,
}

pub struct Scene {
    served: Served,
    tenants: Vec<Tenant>,
    actors: Vec<Actor>,
}

/// What a caller sees of an answer, but for the request and the moment.
#[derive(PartialEq, Debug)]
struct Told {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Told {
    /// With the ids that the caller sent written alike.
    fn of(seen: &Seen, sent: &[&str]) -> Self {
        let mut body = seen.body.clone();
        body["meta"]["requestId"] = json!("");
        let body = sent
            .iter()
            .fold(body.to_string(), |body, id| body.replace(id, "<sent>"));
        Self {
            status: seen.status.as_u16(),
            headers: headers(&seen.headers),
            body,
        }
    }
}

fn headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers
        .iter()
        .filter(|(name, _)| !["date", "x-request-id"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

impl Scene {
    pub async fn of(callers: &[CallerPlan]) -> Self {
        let mut world = World::builder().store(store().await).build().await;
        let gateway: Arc<dyn CredentialGateway> = Arc::new(MediatingGateway::named("broker"));
        let optional = Optional {
            credential_gateway: Some(gateway),
            ..Optional::default()
        };
        let mediated = world.selecting(None, NullCompute::default(), optional);
        let first = world.namespace;
        let mut tenants = Vec::new();
        for (number, mark) in MARKS.into_iter().enumerate() {
            if number > 0 {
                let input = CreateNamespace {
                    name: format!("{mark}-namespace").parse().expect("a name"),
                    existing_namespace: None,
                };
                let made = world.plane.create_namespace(&world.admin, input).await;
                world.namespace = made.expect("a new Namespace").id;
                world.set_namespace(world.namespace, NamespaceStatus::Ready).await;
            }
            tenants.push(Tenant::in_namespace_of(&world, &mediated, mark).await);
        }
        world.namespace = first;
        let mut actors = Vec::new();
        for plan in callers {
            actors.push(Actor {
                key: admitted(&world, &tenants, plan).await,
                plan: plan.clone(),
            });
        }
        Self {
            served: Served::serving(world, mediated).await,
            tenants,
            actors,
        }
    }

    pub async fn play(&self, (actor, number, tenant): (usize, usize, usize)) -> Result<(), String> {
        let actor = &self.actors[actor];
        if let Some(call) = CALLS.get(number) {
            return self.one_thing(actor, call, tenant).await;
        }
        let number = number - CALLS.len();
        match COLLECTIONS.get(number) {
            Some((path, kind)) => self.all_of_a_kind(actor, path, *kind, tenant).await,
            None => self.named(actor, &REFERENCES[number - COLLECTIONS.len()], tenant).await,
        }
    }

    /// What was frozen is as it was: the bytes are held to their digest when they are read.
    pub async fn versions_are_as_they_were(&self) -> Result<(), String> {
        for Tenant { id, version, .. } in &self.tenants {
            let store = &self.served.world.store;
            let row = store.revision(*id, version.agent_id, version.id).await.expect("a read");
            let now = row.expect("it is there").revision;
            if now != *version {
                return Err(format!("a version changed\n{version:#?}\n{now:#?}"));
            }
        }
        Ok(())
    }

    fn may(&self, actor: &Actor, action: Action, kind: ResourceKind, id: &str, namespace: Option<usize>) -> bool {
        let question = Question {
            action,
            kind,
            id,
            namespace,
        };
        let exact = |tenant: usize, kind: Kind| self.tenants[tenant].things[&kind].clone();
        allows(&actor.plan.grants, actor.plan.opens, &question, exact)
    }

    /// Its answer, which holds nothing of another Namespace than the one that is asked, but what was sent.
    async fn ask(
        &self,
        actor: &Actor,
        (method, path): (&str, &str),
        body: Option<&Value>,
        asked: Option<usize>,
    ) -> Result<Seen, String> {
        let method: Method = method.parse().expect("a method");
        let url = format!("http://{}{path}", self.served.address);
        let mut request = self
            .served
            .http
            .request(method.clone(), url)
            .header("x-api-key", &actor.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        let seen = Seen::of(request.send().await.expect("an answer")).await;
        let text = seen.body.to_string();
        let sent = format!("{path} {}", body.unwrap_or(&Value::Null));
        let others = asked.map(|asked| &self.tenants[1 - asked].private);
        for private in others.into_iter().flatten().filter(|private| !sent.contains(*private)) {
            if text.contains(private) {
                return Err(format!("{method} {path} tells {private} of another Namespace: {text}"));
            }
        }
        if seen.status.as_u16() == 500 {
            return Err(format!("{method} {path}: {text}"));
        }
        Ok(seen)
    }

    async fn one_thing(&self, actor: &Actor, call: &Call, tenant: usize) -> Result<(), String> {
        let Self { tenants, .. } = self;
        let (here, there) = (&tenants[tenant], &tenants[1 - tenant]);
        let own = here.own();
        let body = call.body.map(|body| body(&own));
        let nobodys = format!("{}{}", call.kind.prefix(), Uuid::new_v4());
        let nowhere = NamespaceId::random();
        let ask = async |namespace: NamespaceId, id: &str| {
            let below = call
                .path
                .replace("{agent}", &here.things[&Kind::Agent])
                .replace("{id}", id);
            let path = format!("/namespaces/{namespace}{below}");
            let seen = self
                .ask(actor, (call.method, &path), body.as_ref(), Some(tenant))
                .await?;
            Ok::<_, String>(Told::of(&seen, &[id, &namespace.to_string()]))
        };
        let absent = ask(here.id, &nobodys).await?;
        let foreign = ask(here.id, &there.things[&call.kind]).await?;
        let outside = ask(nowhere, &nobodys).await?;
        let existing = ask(here.id, &here.things[&call.kind]).await?;
        let describe = |what: &str, a: &Told, b: &Told| {
            Err(format!(
                "{} {}: {what}\n{a:#?}\n{b:#?}\n{:#?}",
                call.method, call.path, actor.plan
            ))
        };
        if foreign != absent {
            return describe("another Namespace's thing is not as nobody's", &foreign, &absent);
        }
        let permitted = |id: &str, namespace: Option<usize>| {
            call.needs.iter().all(|need| {
                let id = if need.kind == call.kind {
                    id
                } else {
                    &here.things[&need.kind]
                };
                self.may(actor, need.action, need.kind.resource(), id, namespace)
            })
        };
        let may = permitted(&here.things[&call.kind], Some(tenant));
        if !may && (existing != absent || existing.status != 403) {
            return describe("a denied caller sees a difference", &existing, &absent);
        }
        if may && call.only && existing.status == 403 {
            return describe("a permitted caller is refused", &existing, &absent);
        }
        let nowhere_may = permitted(&nobodys, None);
        if !may && !nowhere_may && outside != absent {
            return describe("a Namespace that exists is not as one that does not", &outside, &absent);
        }
        Ok(())
    }

    async fn all_of_a_kind(&self, actor: &Actor, path: &str, kind: Kind, tenant: usize) -> Result<(), String> {
        let here = &self.tenants[tenant];
        let own = here.id.to_string();
        let full = format!("/namespaces/{own}{path}");
        let seen = self.ask(actor, ("GET", &full), None, Some(tenant)).await?;
        if self.may(actor, Action::Read, ResourceKind::Namespace, &own, Some(tenant)) {
            let all = self.served.send(Method::GET, &full).await;
            let (found, all) = (ids(&seen), ids(&all));
            let readable = |id: &String| self.may(actor, Action::Read, kind.resource(), id, Some(tenant));
            let expected: BTreeSet<_> = all.into_iter().filter(readable).collect();
            if found != expected || seen.status.as_u16() != 200 {
                return Err(format!(
                    "GET {path} holds {found:?} instead of {expected:?}\n{:#?}",
                    actor.plan
                ));
            }
        } else {
            let nowhere = NamespaceId::random().to_string();
            let other = self
                .ask(
                    actor,
                    ("GET", &format!("/namespaces/{nowhere}{path}")),
                    None,
                    Some(tenant),
                )
                .await?;
            let (told, outside) = (Told::of(&seen, &[&own]), Told::of(&other, &[&nowhere]));
            let anywhere = self.may(actor, Action::Read, ResourceKind::Namespace, &nowhere, None);
            if told.status != 403 || (!anywhere && told != outside) {
                return Err(format!("GET {path}: {told:#?}\n{outside:#?}\n{:#?}", actor.plan));
            }
        }
        // Of the Namespaces the caller sees those that it may read.
        let seen = self.ask(actor, ("GET", "/namespaces"), None, None).await?;
        let readable = |number: usize| {
            let id = self.tenants[number].id.to_string();
            self.may(actor, Action::Read, ResourceKind::Namespace, &id, Some(number))
                .then_some(id)
        };
        let expected: BTreeSet<_> = (0..MARKS.len()).filter_map(readable).collect();
        if ids(&seen) != expected {
            return Err(format!("GET /namespaces holds {} instead of {expected:?}", seen.body));
        }
        Ok(())
    }

    async fn named(&self, actor: &Actor, reference: &Reference, tenant: usize) -> Result<(), String> {
        let (here, there) = (&self.tenants[tenant], &self.tenants[1 - tenant]);
        let own = here.own();
        let agent = &here.things[&Kind::Agent];
        let path = format!("/namespaces/{}{}", here.id, reference.path.replace("{agent}", agent));
        let nobodys = format!("{}{}", reference.kind.prefix(), Uuid::new_v4());
        let ask = async |id: &str| {
            let body = (reference.body)(&own, id);
            let seen = self
                .ask(actor, (reference.method, &path), Some(&body), Some(tenant))
                .await?;
            Ok::<_, String>(Told::of(&seen, &[id]))
        };
        let absent = ask(&nobodys).await?;
        let foreign = ask(&there.things[&reference.kind]).await?;
        let describe = |what: &str, a: &Told, b: &Told| {
            let Reference { method, path, kind, .. } = reference;
            Err(format!(
                "{method} {path} with a {kind:?}: {what}\n{a:#?}\n{b:#?}\n{:#?}",
                actor.plan
            ))
        };
        if foreign != absent {
            return describe("another Namespace's is not as nobody's", &foreign, &absent);
        }
        let (action, kind) = reference.asks;
        let target = if action == Action::Create {
            own.namespace.as_str()
        } else {
            agent
        };
        let asks = self.may(actor, action, kind.resource(), target, Some(tenant));
        let thing = &here.things[&reference.kind];
        let knows = self.may(actor, reference.action, reference.kind.resource(), thing, Some(tenant));
        if !asks || !knows {
            let existing = ask(thing).await?;
            if existing != absent || (!asks && existing.status != 403) {
                return describe("a denied caller sees a difference", &existing, &absent);
            }
        }
        Ok(())
    }
}

fn ids(seen: &Seen) -> BTreeSet<String> {
    let list = seen.data().as_array().into_iter().flatten();
    list.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect()
}

impl Tenant {
    /// The same things in each Namespace, under names that are its own.
    async fn in_namespace_of(world: &World, mediated: &ControlPlane, mark: &str) -> Self {
        let namespace = world.namespace;
        let (plane, admin) = (&world.plane, &world.admin);
        let named = |what: &str| format!("{mark}-{what}").parse().expect("a name");
        let agent = world.deployable(&format!("{mark}-agent")).await;
        let revision = plane
            .deploy_agent(admin, namespace, agent.id)
            .await
            .expect("it is admitted");
        let account = CreateServiceAccount {
            name: named("account"),
            credential: None,
        };
        let account = plane.create_service_account(admin, namespace, account).await;
        let preset = CreatePreset {
            name: named("preset"),
            settings: serde_json::from_value(json!({ "configurationId": agent.configuration_id })).expect("settings"),
        };
        let preset = plane.create_preset(admin, namespace, preset).await;
        // Referred to by nobody, so that they can be deleted as well.
        let configuration = world.configuration(json!({ "words": mark })).await;
        let secret = world.secret(&format!("{mark}-secret"), "sk-test-0123456789").await;
        let from = json!({ "kind": "secret", "namespaceId": namespace, "id": world.secret(&format!("{mark}-model"), "sk-test-0123456789").await });
        let source = json!({ "name": format!("{mark}-source"), "type": "openai", "secrets": { "api_key": from } });
        let source = serde_json::from_value(source).expect("a source");
        let source = mediated.register_credential_source(admin, namespace, source).await;
        let things = BTreeMap::from([
            (Kind::Agent, agent.id.to_string()),
            (Kind::Configuration, configuration.to_string()),
            (Kind::Secret, secret.to_string()),
            (Kind::Account, account.expect("a new account").id.to_string()),
            (Kind::Preset, preset.expect("a new Preset").id.to_string()),
            (Kind::Source, source.expect("a new source").id.to_string()),
            (Kind::Revision, revision.id.to_string()),
        ]);
        let mut private: Vec<_> = things.values().cloned().collect();
        private.extend([
            mark.to_owned(),
            namespace.to_string(),
            agent.service_principal_id.to_string(),
        ]);
        let row = world.store.revision(namespace, agent.id, revision.id).await;
        Self {
            id: namespace,
            things,
            private,
            version: row.expect("a read").expect("it is there").revision,
        }
    }

    fn own(&self) -> Own {
        Own {
            namespace: self.id.to_string(),
            configuration: self.things[&Kind::Configuration].clone(),
            secret: self.things[&Kind::Secret].clone(),
        }
    }
}

/// A person with these grants; gives its key.
async fn admitted(world: &World, tenants: &[Tenant], plan: &CallerPlan) -> String {
    let principal: PrincipalId = format!("prn_{}", Uuid::new_v4()).parse().expect("an id");
    let mut change = Change::new().write(Write::Principal(principal.clone(), "somebody".to_owned()));
    for grant in &plan.grants {
        let namespace_id = grant.scope.map(|scope| tenants[scope].id);
        let role = Role {
            id: format!("role_{}", Uuid::new_v4()),
            namespace_id,
            permissions: grant
                .permissions
                .iter()
                .map(|(action, kind)| Permission {
                    action: *action,
                    kind: *kind,
                })
                .collect(),
        };
        let exact = |kind: Kind, scope: usize| ExactResource {
            kind: kind.resource(),
            id: tenants[scope].things[&kind].clone(),
        };
        let binding = AccessBinding {
            id: format!("binding_{}", Uuid::new_v4()),
            namespace_id,
            subject: Subject::Identity(principal.clone()),
            role_id: role.id.clone(),
            resource: grant.exact.zip(grant.scope).map(|(kind, scope)| exact(kind, scope)),
        };
        change = change.write(Write::Role(role)).write(Write::AccessBinding(binding));
    }
    world.store.commit(change).await.expect("a caller");
    let input = CreateServiceKey {
        principal_id: principal,
        name: "key".parse().expect("a name"),
        namespace_id: plan.opens.map(|number| tenants[number].id),
        expires_in: None,
    };
    let issued = world
        .plane
        .create_service_key(&world.admin, input)
        .await
        .expect("a key");
    issued.value.expose_str().expect("a key is text").to_owned()
}
