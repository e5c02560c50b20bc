//! People: how they sign in, and the accounts that administrators keep for them (docs/adr/0014).

mod accounts;
mod federation;
mod password;
mod session;
mod sign_in;
mod throttle;

use std::net::IpAddr;

pub use accounts::{AccountCode, CreateAccount, CreatedAccount, PersonView};
pub use federation::{FederatedAttempt, FirstSignIn, VerifiedIdentity};
pub use session::{SessionToken, SessionView, SignedIn};
pub use sign_in::{CodeAttempt, PasswordAttempt, PasswordChange};

use crate::{admission::Refusal, id::RequestId, reason::ApiCode};

/// Where an attempt to sign in comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The client's address, as far as it is known.
    pub address: Option<IpAddr>,
    /// The request.
    pub request: RequestId,
}

/// What signing in needs beside the store; one for a process.
#[derive(Debug, Default)]
pub(super) struct SignIn {
    passwords: password::Passwords,
    throttle: throttle::Throttle,
}

/// The one answer to an attempt that proves nothing: whether the account exists is not to be seen from it.
const fn wrong() -> Refusal {
    Refusal::fixed(
        ApiCode::Unauthenticated,
        "The email address or what goes with it is not right.",
    )
}
