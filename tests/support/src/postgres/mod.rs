//! A real `PostgreSQL` for tests: a server of their own, and a database for each.
//!
//! `DATABASE_URL` names a server that is used instead; its user must be allowed to create databases.

mod cluster;
mod database;
mod shared;

pub use cluster::Cluster;
pub use database::Database;
pub use shared::server;

use std::path::PathBuf;

/// Where `initdb` and `pg_ctl` are: `OCC_POSTGRES_BIN`, or the newest that Debian's packages installed.
pub fn binaries() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("OCC_POSTGRES_BIN") {
        return Some(named.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max()?;
    let bin = PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin"));
    bin.join("initdb").exists().then_some(bin)
}

/// Why tests with `PostgreSQL` cannot run here; `None` when they can.
pub fn absent() -> Option<&'static str> {
    let present = std::env::var_os("DATABASE_URL").is_some() || binaries().is_some();
    (!present).then_some("there is no PostgreSQL here: install the package postgresql, or set DATABASE_URL")
}
