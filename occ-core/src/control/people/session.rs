//! Sessions: what the cookie of a person's browser carries.
//!
//! A token is `occ_session_<uuid>_<64 hexadecimal digits>`. The first part names the session; of the second, 256 random bits, only the
//! SHA-256 is kept. The session's CSRF token is another hash of the second part: who has only the database has neither.

use std::{fmt, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::{
    admission::Refusal,
    control::{Answer, Caller, Conditions, ControlPlane, Credential, token},
    digest,
    id::{RequestId, SessionId},
    reason::ApiCode,
    resource::{Email, PrincipalId},
    secret_value::SecretValue,
    store::{AccountName, AccountRow, Change, NewSession, Write},
    time::Timestamp,
    trace,
};

/// How long a session lasts at most.
pub(super) const LIFETIME: Duration = Duration::from_hours(24);
/// After so long without a request it is over.
pub(super) const IDLE: Duration = Duration::from_hours(2);
/// Its use is recorded when the last record is older than this: a read stays a read.
const RECORD_AFTER: Duration = Duration::from_mins(2);
const PREFIX: &str = "occ_session_";

/// The token of a session, as it was presented or just made.
#[derive(Clone)]
pub struct SessionToken(SecretValue);

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(..)")
    }
}

impl SessionToken {
    /// What was presented, whatever it is.
    pub fn presented(text: &str) -> Self {
        Self(SecretValue::from(text.to_owned()))
    }

    /// The token itself, for the cookie.
    pub fn expose(&self) -> &SecretValue {
        &self.0
    }

    fn secret(&self) -> &str {
        let whole = self.0.expose_str().unwrap_or_default();
        token::parts(PREFIX, whole).map_or("", |(_, secret)| secret)
    }

    /// What a write of this session has to present besides, which another site cannot read.
    pub fn csrf(&self) -> SecretValue {
        digest::hex(format!("occ csrf {}", self.secret()).as_bytes()).into()
    }

    /// Whether this is the session's CSRF token.
    pub fn is_csrf(&self, presented: &str) -> bool {
        self.csrf().expose().ct_eq(presented.as_bytes()).into()
    }
}

/// A session, as its person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Its public id.
    pub id: SessionId,
    /// Who is signed in.
    pub principal_id: PrincipalId,
    /// What the person is called.
    pub name: String,
    /// What the person signed in with.
    pub email: Email,
    /// When it ends at the latest; earlier when it is not used.
    pub expires_at: Timestamp,
}

/// A session that was just begun.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// What may be shown again.
    pub session: SessionView,
    /// What the browser keeps. Shown this once.
    pub token: SessionToken,
    /// For how long it may keep it.
    pub lifetime: Duration,
}

/// A session of this account, to be stored, and its token.
pub(super) fn begin(account: &AccountRow) -> (NewSession, SessionToken) {
    let id = SessionId::random();
    let (value, token_hash) = token::issue(PREFIX, id.uuid());
    let new = NewSession {
        id,
        principal: account.principal.clone(),
        token_hash,
        lifetime: LIFETIME,
        idle: IDLE,
    };
    (new, SessionToken(value))
}

pub(super) fn view(id: SessionId, account: &AccountRow, expires_at: Timestamp) -> SessionView {
    SessionView {
        id,
        principal_id: account.principal.clone(),
        name: account.name.clone(),
        email: account.email.clone(),
        expires_at,
    }
}

impl ControlPlane {
    /// Who presents this session. One that is malformed, unknown, wrong, ended or unused for too long reads the same: 401.
    pub async fn authenticate_session(&self, presented: &SessionToken, request: RequestId) -> Answer<Caller> {
        let refused = || Refusal::new(ApiCode::Unauthenticated);
        let whole = presented.0.expose_str().unwrap_or_default();
        let (uuid, secret) = token::parts(PREFIX, whole).ok_or_else(refused)?;
        let id: SessionId = format!("{}{uuid}", SessionId::PREFIX).parse().map_err(|_| refused())?;
        let row = self.store.session(id).await?;
        // An unknown session is compared too, so that its answer takes as long.
        let same = token::proves(secret, row.as_ref().map(|row| row.token_hash.as_str()));
        let row = row.filter(|row| same && !row.expired).ok_or_else(refused)?;
        if row.unused_for >= RECORD_AFTER {
            // Best effort: a use that is not recorded ends the session early, and a session that ended meanwhile stays ended.
            let touch = Change::new().write(Write::TouchSession(id));
            if let Err(error) = self.store.commit(touch).await {
                tracing::debug!(%error, "the use of a session was not recorded");
            }
        }
        Ok(Caller {
            principal: row.principal,
            credential: Credential::Session(id),
            namespace: None,
            request,
            conditions: Conditions::default(),
            trace: trace::current(),
        })
    }

    /// The caller's own session. 401 for a caller that has none.
    pub async fn own_session(&self, caller: &Caller) -> Answer<SessionView> {
        let (id, account) = self.own_account(caller).await?;
        let row = self.store.session(id).await?;
        let row = row.ok_or_else(|| Refusal::new(ApiCode::Unauthenticated))?;
        Ok(view(id, &account, row.expires_at))
    }

    /// The caller's session and account.
    pub(super) async fn own_account(&self, caller: &Caller) -> Answer<(SessionId, AccountRow)> {
        let Credential::Session(id) = caller.credential else {
            return Err(Refusal::fixed(
                ApiCode::Unauthenticated,
                "This is for a person's own session.",
            ));
        };
        let account = self.store.account(AccountName::Principal(&caller.principal)).await?;
        let account = account.ok_or_else(|| Refusal::new(ApiCode::Unauthenticated))?;
        Ok((id, account))
    }
}
