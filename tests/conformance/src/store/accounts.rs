//! Accounts of people and their sessions, and what verifies tokens of Agents.

use std::{sync::Arc, time::Duration};

use occ_core::{
    id::{AgentTokenKeyId, ServiceKeyId, SessionId},
    resource::{Email, PrincipalId},
    store::{
        AccountName, AccountRow, Change, CommitError, Expect, NewAccount, NewAgentTokenKey, NewCode, NewServiceKey,
        NewSession, PasswordHash, Slice, Taken, Write,
    },
};

use super::{
    Subject,
    world::{World, principal, until},
};

const HOUR: Duration = Duration::from_hours(1);

fn email(text: &str) -> Email {
    text.parse().expect("an email address")
}

fn phc(text: &str) -> PasswordHash {
    PasswordHash::new(text.to_owned())
}

fn hash(digit: &str) -> String {
    digit.repeat(64)
}

impl World {
    fn new_account(&self) -> NewAccount {
        NewAccount {
            principal: self.actor.clone(),
            email: email("ada@example.com"),
            password_hash: Some(phc("$argon2id$first")),
            code: Some(NewCode {
                hash: hash("a"),
                lifetime: HOUR,
            }),
        }
    }

    fn new_session(&self, lifetime: Duration, idle: Duration) -> NewSession {
        NewSession {
            id: SessionId::random(),
            principal: self.actor.clone(),
            token_hash: hash("b"),
            lifetime,
            idle,
        }
    }

    async fn account(&self) -> AccountRow {
        let found = self.store.account(AccountName::Principal(&self.actor)).await;
        found.expect("a read").expect("the account")
    }

    /// Whether the session is there and not over.
    async fn is_live(&self, session: &NewSession) -> bool {
        let found = self.store.session(session.id).await.expect("a read");
        found.is_some_and(|row| !row.expired)
    }

    async fn begin(&self, lifetime: Duration, idle: Duration) -> NewSession {
        let session = self.new_session(lifetime, idle);
        self.write(Write::Session(session.clone())).await;
        session
    }
}

pub(super) async fn an_account_is_one_of_a_person(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    assert_eq!(
        world.store.account(AccountName::Principal(&world.actor)).await,
        Ok(None)
    );
    assert_eq!(world.store.accounts(&Slice::ALL).await, Ok(Vec::new()));
    let before = world.now().await;
    world.write(Write::Account(world.new_account())).await;
    let row = world.account().await;
    assert_eq!(
        (
            &row.principal,
            row.name.as_str(),
            row.email.as_str(),
            row.disabled,
            row.version
        ),
        (&world.actor, "Operator", "ada@example.com", false, 1)
    );
    assert_eq!(row.password_hash, Some(phc("$argon2id$first")));
    let code = row.code.clone().expect("a code");
    assert!(code.hash == hash("a") && !code.expired && code.expires_at >= before.plus(HOUR));
    let by_email = world.store.account(AccountName::Email(&email("ada@example.com"))).await;
    assert_eq!(by_email, Ok(Some(row.clone())));
    assert_eq!(
        world.store.account(AccountName::Email(&email("eve@example.com"))).await,
        Ok(None)
    );
    assert_eq!(world.store.accounts(&Slice::ALL).await, Ok(vec![row]));

    // One a person, and one an address.
    let again = NewAccount {
        email: email("other@example.com"),
        ..world.new_account()
    };
    let taken = CommitError::NameTaken(Taken::Account);
    assert_eq!(world.refused(Change::new().write(Write::Account(again))).await, taken);
    let eve = principal("prn_eve");
    let same_address = NewAccount {
        principal: eve.clone(),
        ..world.new_account()
    };
    let change = Change::new()
        .write(Write::Principal(eve, "Eve".to_owned()))
        .write(Write::Account(same_address));
    assert_eq!(world.refused(change).await, taken);
    let agent = world.agent("triage").await;
    for nobody in [agent.service_principal_id, principal("prn_nobody")] {
        let account = NewAccount {
            principal: nobody,
            email: email("x@example.com"),
            ..world.new_account()
        };
        let refused = world.refused(Change::new().write(Write::Account(account))).await;
        assert_eq!(refused, CommitError::Refused);
    }
}

pub(super) async fn an_accounts_changes_are_counted_and_fenced(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    world.write(Write::Account(world.new_account())).await;
    let expect = Expect::Account(world.actor.clone(), 1);
    let password = Write::AccountPassword(world.actor.clone(), phc("$argon2id$second"));
    let change = Change::new().expect(expect.clone()).write(password);
    world.commit(change.clone()).await;
    let row = world.account().await;
    assert_eq!((row.version, row.code), (2, None), "the code is used up");
    assert_eq!(row.password_hash, Some(phc("$argon2id$second")));
    assert_eq!(world.refused(change).await, CommitError::Conflict(expect));
    let soon = NewCode {
        hash: hash("c"),
        lifetime: Duration::from_millis(50),
    };
    world.write(Write::AccountCode(world.actor.clone(), soon)).await;
    assert_eq!(world.account().await.version, 3);
    until("the end of the code", async || {
        world.account().await.code.expect("it stays").expired.then_some(())
    })
    .await;
    for absent in [
        Write::AccountPassword(principal("prn_nobody"), phc("$argon2id$x")),
        Write::AccountDisabled(principal("prn_nobody"), true),
    ] {
        assert_eq!(world.refused(Change::new().write(absent)).await, CommitError::Refused);
    }
}

pub(super) async fn a_session_ends_by_the_databases_clock(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    world.write(Write::Account(world.new_account())).await;
    let lasting = world.begin(HOUR, HOUR).await;
    let row = world
        .store
        .session(lasting.id)
        .await
        .expect("a read")
        .expect("the session");
    assert_eq!((&row.principal, &row.token_hash), (&world.actor, &lasting.token_hash));
    assert!(!row.expired && row.unused_for < HOUR);
    let short = world.begin(Duration::from_millis(50), HOUR).await;
    let idle = world.begin(HOUR, Duration::from_millis(50)).await;
    until("the end of both", async || {
        let over = !world.is_live(&short).await && !world.is_live(&idle).await;
        over.then_some(())
    })
    .await;
    for over in [&short, &idle] {
        world.write(Write::TouchSession(over.id)).await;
        assert!(!world.is_live(over).await, "one that is over stays over");
    }
    let unused_for = async || {
        let row = world.store.session(lasting.id).await.expect("a read");
        row.expect("the session").unused_for
    };
    let long = Duration::from_millis(30);
    until("some time without use", async || {
        (unused_for().await > long).then_some(())
    })
    .await;
    let before = unused_for().await;
    world.write(Write::TouchSession(lasting.id)).await;
    assert!(unused_for().await <= before, "it was used");
    // The next one sweeps.
    world.begin(HOUR, HOUR).await;
    for over in [&short, &idle] {
        assert_eq!(world.store.session(over.id).await, Ok(None));
    }
    assert!(world.is_live(&lasting).await);
    assert_eq!(world.store.session(SessionId::random()).await, Ok(None));
    let ghost = NewSession {
        principal: principal("prn_nobody"),
        ..world.new_session(HOUR, HOUR)
    };
    assert_eq!(
        world.refused(Change::new().write(Write::Session(ghost))).await,
        CommitError::Refused
    );
}

pub(super) async fn sessions_end_with_what_they_rest_on(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    world.write(Write::Account(world.new_account())).await;
    let eve = principal("prn_eve");
    let change = Change::new()
        .write(Write::Principal(eve.clone(), "Eve".to_owned()))
        .write(Write::Account(NewAccount {
            principal: eve.clone(),
            email: email("eve@example.com"),
            ..world.new_account()
        }));
    world.commit(change).await;
    let eves = NewSession {
        principal: eve,
        ..world.new_session(HOUR, HOUR)
    };
    world.write(Write::Session(eves.clone())).await;
    let whose = world.actor.clone();
    for (end, what) in [
        (Write::AccountPassword(whose.clone(), phc("$argon2id$x")), "password"),
        (Write::AccountDisabled(whose.clone(), true), "disabled"),
        (Write::EndSessions(whose.clone()), "all"),
    ] {
        let (first, second) = (world.begin(HOUR, HOUR).await, world.begin(HOUR, HOUR).await);
        world.write(end).await;
        assert!(!world.is_live(&first).await && !world.is_live(&second).await, "{what}");
        assert!(world.is_live(&eves).await, "{what}: another person's stay");
    }
    world.write(Write::AccountDisabled(whose, false)).await;
    let (ended, kept) = (world.begin(HOUR, HOUR).await, world.begin(HOUR, HOUR).await);
    world.write(Write::EndSession(ended.id)).await;
    world.write(Write::EndSession(ended.id)).await;
    assert!(!world.is_live(&ended).await && world.is_live(&kept).await);
}

pub(super) async fn the_keys_of_a_disabled_account_say_so(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    world.write(Write::Account(world.new_account())).await;
    let key = NewServiceKey {
        id: ServiceKeyId::random(),
        principal: world.actor.clone(),
        name: "laptop".to_owned(),
        secret_hash: hash("0"),
        namespace_id: None,
        expires_at: None,
    };
    world.write(Write::ServiceKey(key.clone())).await;
    for disabled in [false, true, false] {
        world.write(Write::AccountDisabled(world.actor.clone(), disabled)).await;
        let row = world.store.service_key(key.id).await.expect("a read").expect("the key");
        assert_eq!((row.disabled, row.expired), (disabled, false));
    }
}

pub(super) async fn what_verifies_tokens_of_agents_ends_by_the_databases_clock(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let key = |lifetime| NewAgentTokenKey {
        id: AgentTokenKeyId::random(),
        public_key: std::array::from_fn(|index| u8::try_from(index * 8).unwrap_or_default()),
        lifetime,
    };
    let (lasting, soon) = (key(HOUR), key(Duration::from_millis(50)));
    let read = async |key: &NewAgentTokenKey| world.store.agent_token_key(key.id).await.expect("a read");
    let before = world.now().await;
    for key in [&lasting, &soon] {
        world.write(Write::AgentTokenKey(key.clone())).await;
    }
    let row = read(&lasting).await.expect("the key");
    assert_eq!((row.public_key, row.expired), (lasting.public_key, false));
    assert!(row.now >= before && row.expires_at >= before.plus(HOUR));
    until("the end of the key", async || {
        read(&soon).await.expect("it stays").expired.then_some(())
    })
    .await;
    let again = Change::new().write(Write::AgentTokenKey(lasting.clone()));
    assert_eq!(
        world.refused(again).await,
        CommitError::Refused,
        "a key does not change"
    );
    // The next one sweeps.
    world.write(Write::AgentTokenKey(key(HOUR))).await;
    assert_eq!(read(&soon).await, None);
    assert!(read(&lasting).await.is_some());
}

pub(super) async fn an_identity_is_linked_to_one_account(subject: Arc<dyn Subject>) {
    let world = World::new(subject).await;
    let eve = principal("prn_eve");
    let change = Change::new()
        .write(Write::Account(world.new_account()))
        .write(Write::Principal(eve.clone(), "Eve".to_owned()))
        .write(Write::Account(NewAccount {
            principal: eve.clone(),
            email: email("eve@example.com"),
            ..world.new_account()
        }));
    world.commit(change).await;
    let (a, b) = ("https://a.example", "https://b.example");
    let link = |issuer: &str, subject: &str, principal: &PrincipalId| Write::FederatedIdentity {
        issuer: issuer.to_owned(),
        subject: subject.to_owned(),
        principal: principal.clone(),
    };
    let read = async |issuer, subject| {
        let found = world.store.account(AccountName::Federated { issuer, subject }).await;
        found.expect("a read").map(|row| row.principal)
    };
    assert_eq!(read(a, "1").await, None);
    world.write(link(a, "1", &world.actor)).await;
    world.write(link(b, "1", &eve)).await;
    assert_eq!(
        (read(a, "1").await, read(b, "1").await),
        (Some(world.actor.clone()), Some(eve.clone()))
    );
    assert_eq!((read(a, "2").await, read("https://A.example", "1").await), (None, None));
    let taken = CommitError::NameTaken(Taken::Account);
    for again in [link(a, "1", &eve), link(a, "2", &world.actor)] {
        assert_eq!(world.refused(Change::new().write(again)).await, taken);
    }
    let ghost = Change::new().write(link(a, "3", &principal("prn_nobody")));
    assert_eq!(world.refused(ghost).await, CommitError::Refused);

    let session = world.new_session(HOUR, HOUR);
    world.write(Write::Session(session.clone())).await;
    let seen = world.account().await.version;
    world.write(Write::UnlinkIdentities(world.actor.clone())).await;
    assert_eq!((read(a, "1").await, read(b, "1").await), (None, Some(eve.clone())));
    assert!(!world.is_live(&session).await);
    assert!(
        world.account().await.version > seen,
        "who signs in meanwhile looks again"
    );
    world.write(link(a, "1", &eve)).await;
    assert_eq!(read(a, "1").await, Some(eve));
    let ghost = Change::new().write(Write::UnlinkIdentities(principal("prn_nobody")));
    assert_eq!(world.refused(ghost).await, CommitError::Refused);
}
