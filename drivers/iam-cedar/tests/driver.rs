//! Policies from files: what they decide, what they rest on, and what becomes of files that are not good.

use std::{fs, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use occ_core::{
    driver::{
        AccessRequest, Action, Decision, DriverKind, EffectResult, IamDriver, Identity, IdentityKind, OperationContext,
        ResourceKind, ResourceRef,
    },
    iam::{Grants, PolicyReader},
    id::{AgentId, InstallationId, NamespaceId, SecretId},
    registry::{BuildError, Built, HostServices, Registry},
    resource::PrincipalId,
};
use occ_iam_cedar::schema;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The Installation's identities: two people, and a service principal of an Agent. It grants nothing.
struct People {
    home: NamespaceId,
}

#[async_trait]
impl PolicyReader for People {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        let kind = match principal.as_str() {
            "ada" | "bea" => Some(IdentityKind::Human),
            "robot" => Some(IdentityKind::Service),
            _ => None,
        };
        let service = kind == Some(IdentityKind::Service);
        Ok(Grants {
            identity: kind.map(|kind| Identity {
                id: principal.clone(),
                kind,
                namespace_id: service.then_some(self.home),
                agent_id: service.then(AgentId::random),
            }),
            ..Grants::default()
        })
    }
}

const GROUPS: &str = r#"[
    { "uid": { "type": "Person", "id": "ada" }, "attrs": {}, "parents": [{ "type": "Group", "id": "operators" }] },
    { "uid": { "type": "Group", "id": "operators" }, "attrs": {}, "parents": [] }
]"#;

struct Rig {
    files: TempDir,
    home: NamespaceId,
    driver: Arc<dyn IamDriver>,
}

fn build(settings: Value, home: NamespaceId) -> Result<Arc<dyn IamDriver>, BuildError> {
    let host = HostServices::new(std::env::temp_dir(), Arc::new(People { home }));
    let registry = Registry::linked().expect("one driver is linked");
    let registration = registry.find(DriverKind::Iam, "cedar").expect("it is linked");
    match (registration.build)("iam-cedar", settings, &host)? {
        Built::Iam(driver) => Ok(driver),
        _ => panic!("it is an IAM Driver"),
    }
}

impl Rig {
    fn new(policies: &str) -> Self {
        let files = tempfile::tempdir().expect("a directory");
        fs::write(files.path().join("policies.cedar"), policies).expect("it is written");
        fs::write(files.path().join("people.json"), GROUPS).expect("it is written");
        let home = NamespaceId::random();
        let settings = json!({
            "policies": files.path().join("policies.cedar"),
            "entities": files.path().join("people.json"),
        });
        let driver = build(settings, home).expect("the files are good");
        Self { files, home, driver }
    }

    fn policies(&self) -> PathBuf {
        self.files.path().join("policies.cedar")
    }

    fn write(&self, policies: &str) {
        fs::write(self.policies(), policies).expect("it is written");
    }

    async fn ask(&self, principal: &str, action: Action, resource: ResourceRef) -> Decision {
        let request = AccessRequest {
            principal: principal.parse().expect("a principal"),
            action,
            resource,
        };
        let decision = self.driver.authorize(&OperationContext::default(), &request).await;
        decision.expect("an answer")
    }

    async fn may(&self, principal: &str, action: Action, resource: &ResourceRef) -> bool {
        self.ask(principal, action, resource.clone()).await.allowed
    }
}

/// The refusal of these policies at a start.
fn refused(policies: &str, entities: &str) -> String {
    let files = tempfile::tempdir().expect("a directory");
    let paths = ["policies.cedar", "people.json"].map(|name| files.path().join(name));
    fs::write(&paths[0], policies).expect("it is written");
    fs::write(&paths[1], entities).expect("it is written");
    let settings = json!({ "policies": paths[0], "entities": paths[1] });
    match build(settings, NamespaceId::random()) {
        Ok(_) => panic!("they are good"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn what_is_not_permitted_is_denied_and_no_action_implies_another() {
    let rig = Rig::new(r#"@id("read") permit(principal == Person::"ada", action == Action::"agent:read", resource);"#);
    let agent = ResourceRef::agent(rig.home, AgentId::random());
    assert!(rig.may("ada", Action::Read, &agent).await);
    for action in [
        Action::Update,
        Action::Deploy,
        Action::Operate,
        Action::Administer,
        Action::ReadLogs,
    ] {
        assert!(!rig.may("ada", action, &agent).await, "{action:?}");
    }
    assert!(!rig.may("bea", Action::Read, &agent).await);
    assert!(!rig.may("nobody", Action::Read, &agent).await);
    let secret = ResourceRef::secret(rig.home, SecretId::random());
    assert!(!rig.may("ada", Action::Read, &secret).await);
}

#[tokio::test]
async fn a_policy_can_be_confined_to_a_namespace_or_to_one_thing() {
    let (agent, other) = (AgentId::random(), AgentId::random());
    let rig = Rig::new("");
    let (home, away) = (rig.home, NamespaceId::random());
    rig.write(&format!(
        r#"@id("here") permit(principal, action == Action::"secret:read", resource in Namespace::"{home}");
           @id("this") permit(principal, action == Action::"agent:deploy", resource == Agent::"{agent}");
           @id("new") permit(principal, action == Action::"agent:create", resource == Namespace::"{home}");"#
    ));
    let secret = SecretId::random();
    assert!(rig.may("ada", Action::Read, &ResourceRef::secret(home, secret)).await);
    assert!(!rig.may("ada", Action::Read, &ResourceRef::secret(away, secret)).await);
    assert!(rig.may("ada", Action::Deploy, &ResourceRef::agent(home, agent)).await);
    assert!(!rig.may("ada", Action::Deploy, &ResourceRef::agent(home, other)).await);
    let agents = |namespace| ResourceRef::collection(ResourceKind::Agent, namespace);
    assert!(rig.may("ada", Action::Create, &agents(home)).await);
    assert!(!rig.may("ada", Action::Create, &agents(away)).await);
}

#[tokio::test]
async fn people_are_granted_by_their_groups_and_services_are_confined() {
    let rig = Rig::new(
        r#"@id("operators") permit(principal in Group::"operators", action, resource);
           @id("robots") permit(principal is Service, action == Action::"secret:operate", resource);"#,
    );
    let installation = ResourceRef::installation(InstallationId::random());
    assert!(rig.may("ada", Action::Administer, &installation).await);
    assert!(!rig.may("bea", Action::Administer, &installation).await);
    let secret = SecretId::random();
    assert!(
        rig.may("robot", Action::Operate, &ResourceRef::secret(rig.home, secret))
            .await
    );
    let away = ResourceRef::secret(NamespaceId::random(), secret);
    assert!(
        !rig.may("robot", Action::Operate, &away).await,
        "whatever a policy says"
    );
}

#[tokio::test]
async fn a_forbidding_policy_wins_and_decisions_name_what_they_rest_on() {
    let rig = Rig::new(
        r#"@id("all") permit(principal == Person::"ada", action, resource);
           @id("never") forbid(principal, action == Action::"agent:delete", resource);"#,
    );
    let agent = ResourceRef::agent(rig.home, AgentId::random());
    let read = rig.ask("ada", Action::Read, agent.clone()).await;
    assert!(read.allowed);
    assert_eq!(
        (read.driver_id.as_str(), read.evidence.identity_id.as_deref()),
        ("iam-cedar", Some("ada"))
    );
    assert_eq!(read.evidence.binding_ids, ["all"]);
    let delete = rig.ask("ada", Action::Delete, agent).await;
    assert!(!delete.allowed);
    assert_eq!(delete.evidence.restriction_ids, ["never"]);
}

#[tokio::test]
async fn a_change_of_the_files_counts_at_once() {
    let rig = Rig::new("");
    let agent = ResourceRef::agent(rig.home, AgentId::random());
    assert!(!rig.may("ada", Action::Read, &agent).await);
    rig.write(r#"@id("g") permit(principal in Group::"operators", action == Action::"agent:read", resource);"#);
    assert!(rig.may("ada", Action::Read, &agent).await);
    fs::write(rig.files.path().join("people.json"), "[]").expect("it is written");
    assert!(!rig.may("ada", Action::Read, &agent).await);
}

#[tokio::test]
async fn a_bad_file_changes_nothing_until_it_is_mended() {
    let good = r#"@id("read") permit(principal == Person::"ada", action == Action::"agent:read", resource);"#;
    let rig = Rig::new(good);
    let agent = ResourceRef::agent(rig.home, AgentId::random());
    for bad in [
        "permit(principal",
        // It would grant more, and is refused whole.
        r#"@id("more") permit(principal, action, resource); @id("typo") permit(principal, action == Action::"agent:raed", resource);"#,
        r#"@id("twice") permit(principal, action, resource); @id("twice") permit(principal, action, resource);"#,
        "permit(principal, action, resource);",
    ] {
        rig.write(bad);
        assert!(rig.may("ada", Action::Read, &agent).await, "{bad}");
        assert!(!rig.may("bea", Action::Read, &agent).await, "{bad}");
    }
    fs::remove_file(rig.policies()).expect("it is removed");
    assert!(rig.may("ada", Action::Read, &agent).await);
    rig.write(r#"@id("read") permit(principal == Person::"bea", action == Action::"agent:read", resource);"#);
    assert!(!rig.may("ada", Action::Read, &agent).await);
    assert!(rig.may("bea", Action::Read, &agent).await);
}

#[test]
fn files_that_are_not_good_are_refused_at_the_start_with_their_reason() {
    let named = r#"@id("a") permit(principal, action, resource);"#;
    for (policies, entities, reason) in [
        ("permit(principal", "[]", "policies.cedar: line 1: "),
        ("permit(principal, action, resource);", "[]", "policy number 1 has none"),
        (
            "// One that misspells\n@id(\"a\") permit(principal, action == Action::\"agent:raed\", resource);",
            "[]",
            "line 2: ",
        ),
        (
            r#"@id("a") permit(principal == ?principal, action, resource);"#,
            "[]",
            "templates",
        ),
        (named, "{", "people.json"),
        (
            named,
            r#"[{ "uid": { "type": "Person", "id": "ada" }, "attrs": { "admin": true }, "parents": [] }]"#,
            "admin",
        ),
        (
            named,
            r#"[{ "uid": { "type": "Service", "id": "robot" }, "attrs": {}, "parents": [] }]"#,
            "Service is none",
        ),
        (
            named,
            r#"[{ "uid": { "type": "Service", "id": "x" }, "attrs": {}, "parents": [{ "type": "Group", "id": "g" }] }]"#,
            "people.json",
        ),
    ] {
        let said = refused(policies, entities);
        assert!(said.contains(reason), "{policies}: {said}");
    }
    for settings in [
        json!({ "policies": "relative.cedar" }),
        json!({}),
        json!({ "policies": "/no/such/file", "other": 1 }),
        json!({ "policies": "/no/such/file" }),
    ] {
        assert!(build(settings.clone(), NamespaceId::random()).is_err(), "{settings}");
    }
}

#[test]
fn the_schema_has_every_question() {
    for action in [
        "agent:deploy",
        "agent:read_logs",
        "secret:operate",
        "installation:administer",
        "namespace:create",
    ] {
        assert!(schema().contains(&format!("\"{action}\"")), "{action}");
    }
}
