//! Agents that are recognised by a token of their own.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use occ_core::{
    control::ControlPlane,
    driver::{Action, ResourceKind},
    iam::{AccessBinding, Subject},
    id::{AgentTokenKeyId, NamespaceId},
    resource::{Agent, AgentStatus, DesiredRuntimeState},
    store::{Change, NewAgentTokenKey, Store as _, Write},
};
use occ_test_support::drivers::World;
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Seen, Served, key_of, store};

async fn world() -> (Served, Agent) {
    let world = World::builder().store(store().await).build().await;
    let agent = world.deployable("a").await;
    (Served::over(world).await, agent)
}

fn tokens(served: &Served, agent: &Agent) -> String {
    served.path(&format!("/agents/{}/tokens", agent.id))
}

async fn mint(served: &Served, agent: &Agent) -> String {
    let seen = served.json(Method::POST, &tokens(served, agent), &json!({})).await;
    assert_eq!(seen.status.as_u16(), 201, "{}", seen.body);
    seen.data()["value"].as_str().expect("a token").to_owned()
}

async fn get(served: &Served, path: &str, token: &str) -> Seen {
    let request = served
        .http
        .get(format!("http://{}{path}", served.address))
        .bearer_auth(token);
    Seen::of(request.send().await.expect("an answer")).await
}

/// Lets the Agent read its Namespace.
async fn let_read(served: &Served, agent: &Agent) {
    let_read_as(served, agent, "binding_agent").await;
}

async fn let_read_as(served: &Served, agent: &Agent, binding: &str) {
    let role = served.world.role(&[(Action::Read, ResourceKind::Namespace)]).await;
    let binding = AccessBinding {
        id: binding.to_owned(),
        namespace_id: Some(agent.namespace_id),
        subject: Subject::Identity(agent.service_principal_id.clone()),
        role_id: role.id,
        resource: None,
    };
    let change = Change::new().write(Write::AccessBinding(binding));
    served.world.store.commit(change).await.expect("it commits");
}

#[tokio::test]
async fn an_agent_acts_as_its_own_principal_and_only_as_granted() {
    let (served, agent) = world().await;
    served.world.store.take_audit();
    let token = mint(&served, &agent).await;
    let minted = served.world.store.take_audit();
    assert_eq!(minted.len(), 1);
    assert_eq!(
        (minted[0].action.as_str(), &minted[0].actor),
        ("openclaw.agents.tokens.create", &served.world.admin.principal)
    );
    assert_eq!(minted[0].resource.id, agent.id.to_string());

    let namespace = served.path("");
    let denied = get(&served, &namespace, &token).await;
    assert_eq!((denied.status.as_u16(), denied.code()), (403, "FORBIDDEN"));
    let audit = served.world.store.take_audit();
    assert_eq!(audit[0].actor, agent.service_principal_id);
    assert_eq!(audit[0].details["agentTokenId"], minted[0].details["agentTokenId"]);
    let_read(&served, &agent).await;
    assert_eq!(get(&served, &namespace, &token).await.status.as_u16(), 200);
    // A grant of the Namespace is none of the Installation, nor of its neighbour.
    for path in ["/installation", "/accounts", "/installation/audit"] {
        assert_eq!(get(&served, path, &token).await.status.as_u16(), 403, "{path}");
    }
    let other = served
        .json(Method::POST, "/namespaces", &json!({ "name": "other" }))
        .await;
    let other: NamespaceId = other.data()["id"].as_str().expect("an id").parse().expect("an id");
    assert_eq!(
        get(&served, &format!("/namespaces/{other}"), &token)
            .await
            .status
            .as_u16(),
        403
    );
    assert_eq!(
        get(&served, "/namespaces", &token)
            .await
            .data()
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn a_write_of_an_agent_needs_no_page() {
    let (served, agent) = world().await;
    let token = mint(&served, &agent).await;
    let url = format!("http://{}/namespaces", served.address);
    let request = served.http.post(url).bearer_auth(&token).json(&json!({ "name": "n" }));
    let seen = Seen::of(request.send().await.expect("an answer")).await;
    assert_eq!(
        (seen.status.as_u16(), seen.message()),
        (403, "You are not authorized to do this.")
    );
}

#[tokio::test]
async fn a_token_is_made_for_whoever_administers_the_agent() {
    let (served, agent) = world().await;
    let path = tokens(&served, &agent);
    for (body, status, at) in [
        (json!({ "expiresIn": 60 }), 201, ""),
        (json!({ "expiresIn": 3600 }), 201, ""),
        (json!({ "expiresIn": 59 }), 400, "/expiresIn"),
        (json!({ "expiresIn": 3601 }), 400, "/expiresIn"),
        (json!({ "expiresIn": -1 }), 400, "/expiresIn"),
        (json!({ "principalId": "x" }), 400, "/principalId"),
    ] {
        let seen = served.json(Method::POST, &path, &body).await;
        assert_eq!((seen.status.as_u16(), seen.detail().0), (status, at), "{body}");
    }
    let absent = served.path("/agents/agt_123e4567-e89b-42d3-a456-426614174000/tokens");
    assert_eq!(
        served.json(Method::POST, &absent, &json!({})).await.status.as_u16(),
        404
    );
    // Operating an Agent is not administering it.
    let iam = &served.world.iam;
    iam.deny(&served.world.admin.principal, Action::Administer, ResourceKind::Agent);
    for path in [&path, &absent] {
        assert_eq!(served.json(Method::POST, path, &json!({})).await.status.as_u16(), 403);
    }
    iam.relent();
    // An Agent that administers itself still makes no token with one.
    let token = mint(&served, &agent).await;
    let role = served.world.role(&[(Action::Administer, ResourceKind::Agent)]).await;
    let binding = AccessBinding {
        id: "binding_itself".to_owned(),
        namespace_id: Some(agent.namespace_id),
        subject: Subject::Identity(agent.service_principal_id.clone()),
        role_id: role.id,
        resource: None,
    };
    served
        .world
        .store
        .commit(Change::new().write(Write::AccessBinding(binding)))
        .await
        .expect("it commits");
    let url = format!("http://{}{path}", served.address);
    let request = served.http.post(url).bearer_auth(&token).json(&json!({}));
    let seen = Seen::of(request.send().await.expect("an answer")).await;
    assert_eq!(
        (seen.status.as_u16(), seen.message()),
        (403, "An Agent's token makes no other token.")
    );
}

/// The parts of a token: its key, its claims and its signature.
fn parts(token: &str) -> (String, Value, String) {
    let mut parts = token.strip_prefix("occ_agent_").expect("its prefix").split('.');
    let key = parts.next().expect("a key").to_owned();
    let claims = URL_SAFE_NO_PAD.decode(parts.next().expect("claims")).expect("base64");
    let signature = parts.next().expect("a signature").to_owned();
    (key, serde_json::from_slice(&claims).expect("JSON"), signature)
}

fn signed(key: &ed25519_dalek::SigningKey, id: AgentTokenKeyId, claims: &Value) -> String {
    use ed25519_dalek::Signer as _;
    let text = format!("occ_agent_{}.{}", id.uuid(), URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = key.sign(text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

#[tokio::test]
async fn a_token_that_was_touched_is_none() {
    let (served, agent) = world().await;
    let_read(&served, &agent).await;
    let token = mint(&served, &agent).await;
    let path = served.path("");
    let (key, claims, signature) = parts(&token);
    let encoded = |claims: &Value| URL_SAFE_NO_PAD.encode(claims.to_string());
    let with = |name: &str, value: Value| {
        let mut changed = claims.clone();
        changed[name] = value;
        format!("occ_agent_{key}.{}.{signature}", encoded(&changed))
    };
    // A key that the database does not know, however well it signs.
    let strange = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let unknown = AgentTokenKeyId::random();
    let mut cut = token.clone();
    cut.pop();
    for (number, forged) in [
        cut,
        format!("{token}x"),
        format!("{token}.x"),
        format!("{token}{}", "x".repeat(3000)),
        token.replacen("occ_agent_", "occ_", 1),
        format!("occ_agent_{key}.{}.", encoded(&claims)),
        format!("occ_agent_{key}..{signature}"),
        with("sub", json!(served.world.admin.principal)),
        with("exp", json!(i64::MAX)),
        signed(&strange, unknown, &claims),
        // Signed by another key under the real key's name.
        signed(&strange, format!("atk_{key}").parse().expect("an id"), &claims),
        // As JSON Web Tokens have been forged: no algorithm, no signature.
        format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), encoded(&claims)),
        String::new(),
        served.key.clone(),
    ]
    .into_iter()
    .enumerate()
    {
        let seen = get(&served, &path, &forged).await;
        assert_eq!(
            (seen.status.as_u16(), seen.code()),
            (401, "UNAUTHENTICATED"),
            "{number}"
        );
    }
    // Two credentials, or one twice.
    let url = format!("http://{}{path}", served.address);
    for request in [
        served
            .http
            .get(&url)
            .bearer_auth(&token)
            .header("x-api-key", &served.key),
        served
            .http
            .get(&url)
            .bearer_auth(&token)
            .header("cookie", "occ_session=x"),
        served
            .http
            .get(&url)
            .bearer_auth(&token)
            .header("authorization", format!("Bearer {token}")),
        served.http.get(&url).header("x-api-key", &token),
        served.http.get(&url).header("cookie", format!("occ_session={token}")),
        served.http.get(&url).basic_auth("x", Some(&token)),
    ] {
        assert_eq!(request.send().await.expect("an answer").status().as_u16(), 401);
    }
    assert_eq!(get(&served, &path, &token).await.status.as_u16(), 200);
    let lower = served.http.get(&url).header("authorization", format!("bearer {token}"));
    assert_eq!(lower.send().await.expect("an answer").status().as_u16(), 200);
}

#[tokio::test]
async fn a_token_is_for_one_installation_and_for_an_hour_at_most() {
    let (served, agent) = world().await;
    let_read(&served, &agent).await;
    let (_, claims, _) = parts(&mint(&served, &agent).await);
    // A key that the database knows, so that only the claims are at fault.
    let signer = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
    let keep = async |lifetime| {
        let key = NewAgentTokenKey {
            id: AgentTokenKeyId::random(),
            public_key: signer.verifying_key().to_bytes(),
            lifetime,
        };
        let id = key.id;
        served
            .world
            .store
            .commit(Change::new().write(Write::AgentTokenKey(key)))
            .await
            .expect("it commits");
        id
    };
    let id = keep(std::time::Duration::from_hours(1)).await;
    let with = |changes: &[(&str, Value)]| {
        let mut changed = claims.clone();
        for (name, value) in changes {
            changed[*name] = value.clone();
        }
        signed(&signer, id, &changed)
    };
    let (iat, exp) = (
        claims["iat"].as_i64().expect("a moment"),
        claims["exp"].as_i64().expect("a moment"),
    );
    assert_eq!(exp - iat, 900_000);
    let path = served.path("");
    for (token, status) in [
        (with(&[]), 200),
        (with(&[("aud", json!("ins_123e4567-e89b-42d3-a456-426614174000"))]), 401),
        (with(&[("exp", json!(iat - 1)), ("iat", json!(iat - 900_000))]), 401),
        (with(&[("exp", json!(iat + 3_600_001))]), 401),
        (with(&[("sub", json!(served.world.admin.principal))]), 401),
        (
            with(&[("agent", json!("agt_123e4567-e89b-42d3-a456-426614174000"))]),
            401,
        ),
        (
            with(&[("namespace", json!("ns_123e4567-e89b-42d3-a456-426614174000"))]),
            401,
        ),
        (with(&[("more", json!(1))]), 401),
    ] {
        assert_eq!(get(&served, &path, &token).await.status.as_u16(), status, "{token}");
    }
    let over = keep(std::time::Duration::from_millis(1)).await;
    while served
        .world
        .store
        .agent_token_key(over)
        .await
        .expect("a read")
        .is_some_and(|key| !key.expired)
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        get(&served, &path, &signed(&signer, over, &claims))
            .await
            .status
            .as_u16(),
        401
    );
}

#[tokio::test]
async fn a_token_ends_with_its_agent() {
    let (served, agent) = world().await;
    let_read(&served, &agent).await;
    let token = mint(&served, &agent).await;
    let path = served.path("");
    assert_eq!(get(&served, &path, &token).await.status.as_u16(), 200);
    let deleting = Agent {
        status: AgentStatus::Deleting,
        desired_runtime_state: DesiredRuntimeState::Stopped,
        ..agent.clone()
    };
    served
        .world
        .store
        .commit(Change::new().write(Write::UpdateAgent(deleting)))
        .await
        .expect("it commits");
    assert_eq!(get(&served, &path, &token).await.status.as_u16(), 401);
    let refused = served.json(Method::POST, &tokens(&served, &agent), &json!({})).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (409, "AGENT_DELETING"));
    served
        .world
        .store
        .commit(Change::new().write(Write::RemoveAgent(agent.id)))
        .await
        .expect("it commits");
    assert_eq!(get(&served, &path, &token).await.status.as_u16(), 401);
    // Another Agent of the same name is another.
    let configuration = served.world.configuration(json!({})).await;
    let secret = served.world.secret("next-key", "sk-test-0123456789").await;
    let next = served.world.agent("a", configuration, secret).await;
    let_read_as(&served, &next, "binding_next").await;
    assert_eq!(get(&served, &path, &token).await.status.as_u16(), 401);
    assert_eq!(
        get(&served, &path, &mint(&served, &next).await).await.status.as_u16(),
        200
    );
}

#[tokio::test]
async fn every_process_verifies_what_another_signed() {
    let (served, agent) = world().await;
    let_read(&served, &agent).await;
    let first = mint(&served, &agent).await;
    assert_eq!(
        parts(&first).0,
        parts(&mint(&served, &agent).await).0,
        "one key signs for a day"
    );
    let path = served.path("");
    let Served { world, .. } = served;
    let plane = ControlPlane::new(Arc::clone(&world.store) as _, Arc::clone(&world.drivers));
    let again = Served::serving(world, plane).await;
    assert_eq!(get(&again, &path, &first).await.status.as_u16(), 200);
    let second = mint(&again, &agent).await;
    assert_ne!(parts(&first).0, parts(&second).0, "each signs with its own");
    assert_eq!(get(&again, &path, &second).await.status.as_u16(), 200);
    // Nor does a key that is not recorded sign: nothing was made, and the next is good.
    again.world.store.fail(occ_core::store::CommitError::Unavailable);
    assert_eq!(
        again
            .json(Method::POST, &tokens(&again, &agent), &json!({}))
            .await
            .status
            .as_u16(),
        503
    );
    assert_eq!(
        get(&again, &path, &mint(&again, &agent).await).await.status.as_u16(),
        200
    );
    let stranger = key_of(&again.world, &again.world.admin.principal).await;
    assert!(!stranger.is_empty());
}

#[tokio::test]
async fn no_token_is_kept_or_printed() {
    let world = World::builder().store(store().await).build().await;
    let agent = world.deployable("a").await;
    let input = serde_json::from_value(json!({})).expect("a body");
    let token = world
        .plane
        .create_agent_token(&world.admin, agent.namespace_id, agent.id, input)
        .await
        .expect("a token");
    let text = token.value.expose_str().expect("text").to_owned();
    let (_, _, signature) = parts(&text);
    assert!(!format!("{token:?} {:?}", world.plane.drivers()).contains(&signature));
    let audit = serde_json::to_string(&world.store.take_audit()).expect("JSON");
    assert!(audit.contains("openclaw.agents.tokens.create") && !audit.contains(&signature));
}
