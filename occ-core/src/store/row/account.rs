//! Accounts, sessions and keys, as their rows have them.

use std::time::Duration;

use super::{Columns, Corrupt, Row};
use crate::store::{AccountRow, AgentTokenKeyRow, CodeRow, PasswordHash, SessionRow};

/// With the column `name` of its principal, and `code_expired` as the database's clock judges it.
pub(in crate::store) fn account(row: &impl Row) -> Result<AccountRow, Corrupt> {
    let row = Columns { row, of: "account" };
    let code = match row.optional_text("code_hash")? {
        Some(hash) => Some(CodeRow {
            hash,
            expires_at: row.moment("code_expires_at")?,
            expired: row.flag("code_expired")?,
        }),
        None => None,
    };
    Ok(AccountRow {
        principal: row.parsed("principal_id")?,
        name: row.text("name")?,
        email: row.parsed("email")?,
        password_hash: row.optional_text("password_hash")?.map(PasswordHash::new),
        code,
        disabled: row.flag("disabled")?,
        version: row.number("version")?,
        created_at: row.moment("created_at")?,
    })
}

/// With columns `expired` and `unused_for`, as the database's clock judges them.
pub(in crate::store) fn session(row: &impl Row) -> Result<SessionRow, Corrupt> {
    let row = Columns { row, of: "session" };
    Ok(SessionRow {
        id: row.parsed("id")?,
        principal: row.parsed("principal_id")?,
        token_hash: row.text("token_hash")?,
        expires_at: row.moment("expires_at")?,
        expired: row.flag("expired")?,
        unused_for: Duration::from_millis(row.number("unused_for")?),
    })
}

/// With columns `expired` and `moment`, as the database's clock has them.
pub(in crate::store) fn agent_token_key(row: &impl Row) -> Result<AgentTokenKeyRow, Corrupt> {
    let row = Columns {
        row,
        of: "key of Agents' tokens",
    };
    let digits = row.text("public_key")?;
    let mut public_key = [0; 32];
    let pairs = digits.as_bytes().chunks(2);
    if pairs.len() != public_key.len() {
        return Err(row.corrupt());
    }
    for (byte, pair) in public_key.iter_mut().zip(pairs) {
        let pair = std::str::from_utf8(pair).map_err(|_| row.corrupt())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| row.corrupt())?;
    }
    Ok(AgentTokenKeyRow {
        id: row.parsed("id")?,
        public_key,
        expires_at: row.moment("expires_at")?,
        expired: row.flag("expired")?,
        now: row.moment("moment")?,
    })
}

/// The key as it is stored.
pub(in crate::store) fn digits(public_key: &[u8; 32]) -> String {
    use std::fmt::Write as _;
    public_key.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
