//! The generated gateway password: one a Agent, in a file that its owner alone can read.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use occ_core::{
    driver::{Fault, FaultKind},
    secret_value::SecretValue,
};
use rand::TryRng as _;
use zeroize::Zeroizing;

use crate::{error::Result, naming::AgentPaths, storage};

const PASSWORD_MAX_BYTES: u64 = 1024;

/// The password, if it exists.
pub(crate) fn password(agent: &AgentPaths) -> Result<Option<SecretValue>> {
    let content = storage::read(&agent.password(), PASSWORD_MAX_BYTES)?.map(SecretValue::new);
    match content {
        Some(value) if value.expose().is_empty() => {
            Err(Fault::new("read the gateway password", FaultKind::Corrupt).into())
        }
        other => Ok(other),
    }
}

/// Creates the password, if there is none; 32 random bytes in base64url (spec/drivers 1.13).
pub(crate) fn provision(agent: &AgentPaths) -> Result<()> {
    storage::private_dir(&agent.credentials())?;
    if password(agent)?.is_some() {
        return Ok(());
    }
    let mut bytes = Zeroizing::new([0_u8; 32]);
    rand::rngs::SysRng
        .try_fill_bytes(bytes.as_mut_slice())
        .map_err(|_| Fault::new("draw random bytes", FaultKind::Unavailable))?;
    let text = Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(bytes.as_slice()));
    // Whoever came first stays: a password that a gateway may have is never replaced.
    storage::create(&agent.password(), text.as_bytes()).map(drop)
}

/// Deletes the password; absent is well.
pub(crate) fn delete(agent: &AgentPaths) -> Result<()> {
    storage::remove_file(&agent.password())
}
