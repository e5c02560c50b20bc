//! People whom an identity provider recognises (docs/adr/0016).

use serde::{Deserialize, Serialize};

use super::{Origin, SignedIn, throttle};
use crate::{
    admission::Refusal,
    audit::AuditEvent,
    control::{Answer, Caller, ControlPlane, commit::Tries, installation::opaque, operation::Scope},
    reason::ApiCode,
    resource::{Email, Name, PrincipalId},
    store::{AccountName, AccountRow, Change, Expect, NewAccount, Write},
};

const LINK: &str = "openclaw.accounts.identities.create";

/// Who an identity provider says that somebody is, once its answer was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedIdentity {
    /// The provider, exactly as it names itself.
    pub issuer: String,
    /// The person, exactly as the provider names them.
    pub subject: String,
    /// The address that the provider says it has verified.
    pub verified_email: Option<Email>,
    /// What the person is called.
    pub name: Option<Name>,
}

/// An attempt that was counted; one that is right counts no more.
#[derive(Debug)]
pub struct FederatedAttempt(throttle::Attempt);

/// What becomes of an identity that is linked to no account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstSignIn {
    /// It is refused: an administrator links identities.
    #[default]
    Refuse,
    /// It is linked to the account with the address that the provider has verified, if that has no identity of this provider yet.
    LinkVerifiedEmail,
    /// The same; without such an account one is made, for a new person to whom nothing is granted.
    Create,
}

impl ControlPlane {
    /// Signs in whom an identity provider has recognised. `first` says what becomes of an identity that is not linked.
    pub async fn sign_in_federated(
        &self,
        who: VerifiedIdentity,
        first: FirstSignIn,
        counted: FederatedAttempt,
        from: Origin,
    ) -> Answer<SignedIn> {
        let mut tries = Tries::new(&*self.store);
        loop {
            match self.try_federated(&who, first, from, &mut tries).await {
                Ok(Some(signed_in)) => {
                    self.people.throttle.right(counted.0);
                    return Ok(signed_in);
                }
                Ok(None) => {}
                // Another attempt of the same person has linked it meanwhile.
                Err(refusal)
                    if refusal.code() == ApiCode::ResourceConflict && self.linked_to(&who).await?.is_some() =>
                {
                    tries.again().await?;
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// `None` to look again.
    async fn try_federated(
        &self,
        who: &VerifiedIdentity,
        first: FirstSignIn,
        from: Origin,
        tries: &mut Tries<'_>,
    ) -> Answer<Option<SignedIn>> {
        let (account, change) = match self.linked_to(who).await? {
            Some(account) => (account, Change::new()),
            None => match self.first_sign_in(who, first, from, tries).await? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let change = change.expect(Expect::Account(account.principal.clone(), account.version));
        self.begin_session(&account, change, "oidc", from, tries).await
    }

    async fn linked_to(&self, who: &VerifiedIdentity) -> Answer<Option<AccountRow>> {
        let name = AccountName::Federated {
            issuer: &who.issuer,
            subject: &who.subject,
        };
        Ok(self.store.account(name).await?)
    }

    /// The account to which the identity is linked by the change; `None` to look again, because one was made for it.
    async fn first_sign_in(
        &self,
        who: &VerifiedIdentity,
        first: FirstSignIn,
        from: Origin,
        tries: &mut Tries<'_>,
    ) -> Answer<Option<(AccountRow, Change)>> {
        let email = who.verified_email.as_ref().filter(|_| first != FirstSignIn::Refuse);
        let Some(email) = email else {
            return Err(self.not_linked(from).await?);
        };
        let link = |principal: &PrincipalId| Write::FederatedIdentity {
            issuer: who.issuer.clone(),
            subject: who.subject.clone(),
            principal: principal.clone(),
        };
        if let Some(account) = self.store.account(AccountName::Email(email)).await? {
            let event = self.linked(&account.principal, who, from).await?;
            let change = Change::new().write(link(&account.principal)).audit(event);
            return Ok(Some((account, change)));
        }
        if first != FirstSignIn::Create {
            return Err(self.not_linked(from).await?);
        }
        let principal = opaque("prn_");
        let name = who.name.as_ref().map_or(email.as_str(), Name::as_str);
        let event = self.of_people(&principal, "openclaw.accounts.create", from).await?;
        let linked = self.linked(&principal, who, from).await?;
        let change = Change::new()
            .write(Write::Principal(principal.clone(), name.to_owned()))
            .write(Write::Account(NewAccount {
                principal: principal.clone(),
                email: email.clone(),
                password_hash: None,
                code: None,
            }))
            .write(link(&principal))
            .audit(event.with("accountId", principal.as_str()).with("method", "oidc"))
            .audit(linked);
        tries.commit(change).await?;
        Ok(None)
    }

    /// The person is who links: nobody else did.
    async fn linked(&self, principal: &PrincipalId, who: &VerifiedIdentity, from: Origin) -> Answer<AuditEvent> {
        let event = self.of_people(principal, LINK, from).await?;
        Ok(event
            .with("accountId", principal.as_str())
            .with("issuer", who.issuer.as_str()))
    }

    async fn not_linked(&self, from: Origin) -> Answer<Refusal> {
        let refusal = Refusal::fixed(
            ApiCode::Forbidden,
            "No account is linked to this identity. Ask an administrator.",
        );
        self.refused(None, "IDENTITY_NOT_LINKED", from, refusal).await
    }

    /// Records that an identity provider recognised nobody, and gives the refusal back.
    pub async fn refused_federated(&self, refusal: Refusal, from: Origin) -> Answer<Refusal> {
        self.refused(None, "IDENTITY_NOT_PROVED", from, refusal).await
    }

    /// Counts an attempt through an identity provider; 429 when there are too many from one address.
    pub fn count_federated(&self, from: Origin) -> Answer<FederatedAttempt> {
        self.counted(None, from).map(FederatedAttempt)
    }

    /// Links an identity to an account, once for each provider. Needs `installation:administer`.
    pub async fn link_identity(
        &self,
        caller: &Caller,
        principal: &PrincipalId,
        issuer: String,
        subject: String,
    ) -> Answer<()> {
        let op = self.operation(caller, LINK, Scope::Installation);
        op.answer(async {
            let (resource, allowed) = self.keeps_accounts(&op).await?;
            self.account_of(principal).await?;
            let event = op
                .event(resource, &allowed)
                .with("accountId", principal.as_str())
                .with("issuer", issuer.as_str());
            let write = Write::FederatedIdentity {
                issuer,
                subject,
                principal: principal.clone(),
            };
            let change = Change::new().write(write).audit(event);
            Tries::new(&*self.store).commit_alone(change).await?;
            Ok(())
        })
        .await
    }

    /// Takes every identity from an account, and ends its sessions. Needs `installation:administer`.
    pub async fn unlink_identities(&self, caller: &Caller, principal: &PrincipalId) -> Answer<()> {
        let op = self.operation(caller, "openclaw.accounts.identities.delete", Scope::Installation);
        op.answer(async {
            let (resource, allowed) = self.keeps_accounts(&op).await?;
            self.account_of(principal).await?;
            let event = op.event(resource, &allowed).with("accountId", principal.as_str());
            let write = Write::UnlinkIdentities(principal.clone());
            Tries::new(&*self.store)
                .commit_alone(Change::new().write(write).audit(event))
                .await?;
            Ok(())
        })
        .await
    }
}
