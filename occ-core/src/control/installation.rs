//! The Installation and its first set-up (spec/engine 1.3, 11).

use super::{
    Answer, Bootstrap, Bootstrapped, Caller, ControlPlane, InstallationCapabilities, InstallationView, IssuedKey,
    commit::Tries,
    key::{NewKey, days},
    operation::Scope,
};
use crate::{
    admission::Refusal,
    audit::{AuditEvent, AuditKind},
    driver::{Action, ResourceKind, ResourceRef},
    iam::{AccessBinding, Permission, Role, Subject},
    id::{InstallationId, NamespaceId},
    reason::ApiCode,
    resource::{Installation, Name, Namespace, NamespaceStatus, PrincipalId},
    store::{Change, Expect, Write},
    trace,
    work::{NewWork, Target},
};

/// How long the first key lasts.
const FIRST_KEY_DAYS: u64 = 365;

impl ControlPlane {
    /// Sets the Installation up: an administrator with a key, and the Namespace `default`. Once a database.
    ///
    /// Whoever calls this is trusted: there is nobody yet to ask.
    pub async fn bootstrap(&self, input: Bootstrap) -> Answer<Bootstrapped> {
        self.bootstrap_as(opaque("prn_"), input).await
    }

    /// The same, with the administrator's id chosen by the caller: one that writes it down first knows whose key is missing when
    /// it is cut off before it could keep the key.
    pub async fn bootstrap_as(&self, administrator: PrincipalId, input: Bootstrap) -> Answer<Bootstrapped> {
        let now = self.store.now().await?;
        let installation = Installation {
            id: InstallationId::random(),
            name: input.name,
            created_at: now,
        };
        let role = Role {
            id: format!("role_admin_{}", crate::randomness::uuid()),
            namespace_id: None,
            permissions: administrator_permissions(),
        };
        let binding = AccessBinding {
            id: format!("binding_{}", crate::randomness::uuid()),
            namespace_id: None,
            subject: Subject::Identity(administrator.clone()),
            role_id: role.id.clone(),
            resource: None,
        };
        let namespace = Namespace {
            id: NamespaceId::random(),
            name: default_namespace(),
            existing_namespace: None,
            status: NamespaceStatus::Provisioning,
            created_at: now,
        };
        let (key, value) = NewKey {
            principal: administrator.clone(),
            name: "bootstrap".to_owned(),
            namespace: None,
        }
        .issue(now.plus(days(FIRST_KEY_DAYS)));
        let mut set_up = AuditEvent::mutation(
            administrator.clone(),
            "openclaw.installation.bootstrap",
            ResourceRef::installation(installation.id),
        )
        .with("roleId", role.id.as_str())
        .with("accessBindingId", binding.id.as_str())
        .with("serviceKeyId", key.id.to_string());
        set_up.kind = AuditKind::Bootstrap;
        let created = AuditEvent::mutation(
            administrator.clone(),
            "openclaw.namespaces.create",
            ResourceRef::namespace(namespace.id),
        );
        let view = IssuedKey {
            key: (&key).into(),
            value,
        };
        let work = NewWork::new(
            Target::NamespaceReady {
                namespace: namespace.id,
            },
            administrator.clone(),
        )
        .in_trace(trace::current());
        let change = Change::new()
            .expect(Expect::NoInstallation)
            .write(Write::Installation(installation.clone()))
            .write(Write::Principal(administrator.clone(), input.administrator.to_string()))
            .write(Write::Role(role))
            .write(Write::AccessBinding(binding))
            .write(Write::ServiceKey(key))
            .write(Write::Namespace(namespace.clone()))
            .write(Write::Enqueue(work))
            .audit(set_up)
            .audit(created);
        if !Tries::new(&*self.store).commit(change).await? {
            return Err(Refusal::new(ApiCode::InstallationExists));
        }
        Ok(Bootstrapped {
            installation,
            administrator,
            key: view,
            namespace,
        })
    }

    /// The Installation, and what its drivers offer.
    pub async fn installation(&self, caller: &Caller) -> Answer<InstallationView> {
        let op = self.operation(caller, "openclaw.installation.read", Scope::Installation);
        op.answer(async {
            let installation = self.known_installation().await?;
            op.require(Action::Read, ResourceRef::installation(installation.id))
                .await?;
            let capabilities = InstallationCapabilities::of(&self.drivers);
            Ok(InstallationView {
                installation,
                capabilities,
            })
        })
        .await
    }

    /// The Installation, without asking whether anybody may see it.
    pub(super) async fn known_installation(&self) -> Answer<Installation> {
        if let Some(installation) = self.installation.get() {
            return Ok(installation.clone());
        }
        let found = self.store.installation().await?;
        let installation = found.ok_or(Refusal::unavailable("The Installation has not been set up yet."))?;
        Ok(self.installation.get_or_init(|| installation).clone())
    }
}

/// A principal's id: opaque, and derived from nothing.
pub(super) fn opaque(prefix: &str) -> PrincipalId {
    format!("{prefix}{}", crate::randomness::uuid())
        .parse()
        .expect("a prefix and a UUID are a valid principal id")
}

fn default_namespace() -> Name {
    "default".parse().expect("a valid name")
}

/// What the administrator's Role permits (spec/engine 11).
fn administrator_permissions() -> Vec<Permission> {
    use Action::{Administer, Create, Delete, Deploy, Operate, Read, Update};
    const CRUD: [Action; 4] = [Create, Read, Update, Delete];
    const TABLE: [(ResourceKind, &[Action]); 9] = [
        (ResourceKind::Installation, &[Administer, Read]),
        (ResourceKind::Namespace, &[Create, Read, Delete]),
        (ResourceKind::Configuration, &CRUD),
        (ResourceKind::Preset, &CRUD),
        (ResourceKind::ServiceAccount, &CRUD),
        (ResourceKind::Secret, &[Create, Read, Update, Delete, Operate]),
        (ResourceKind::CredentialSource, &[Create, Read, Update, Delete, Operate]),
        (
            ResourceKind::Agent,
            &[Create, Read, Update, Delete, Deploy, Operate, Administer],
        ),
        (ResourceKind::AgentRevision, &[Read]),
    ];
    let permissions = |(kind, actions): (ResourceKind, &[Action])| {
        actions
            .iter()
            .map(move |action| Permission { action: *action, kind })
            .collect::<Vec<_>>()
    };
    TABLE.into_iter().flat_map(permissions).collect()
}
