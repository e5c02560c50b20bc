//! Where the database is, and how it is spoken to.

use std::{fmt, str::FromStr as _, time::Duration};

use sqlx::{ConnectOptions as _, postgres::PgConnectOptions};

use super::open::OpenError;

/// Where a `PostgreSQL` database is, and the limits of a store over it. Its `Debug` and `Display` hold no password.
#[derive(Clone)]
pub struct PostgresSettings {
    pub(super) server: PgConnectOptions,
    pub(super) query_timeout: Duration,
    pub(super) connections: usize,
}

impl PostgresSettings {
    /// From a URL, `postgres://user:password@host:port/database?sslmode=verify-full`. What it leaves out is taken from `PGHOST`,
    /// `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGSSLMODE` and the password file.
    pub fn from_url(url: &str) -> Result<Self, OpenError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(OpenError::InvalidUrl);
        }
        let server = PgConnectOptions::from_str(url).map_err(|_| OpenError::InvalidUrl)?;
        Ok(Self {
            // Statements hold no values, but there are many.
            server: server.application_name("occ").disable_statement_logging(),
            query_timeout: Duration::from_secs(5),
            connections: 16,
        })
    }

    /// The same, with a limit for each wait on the database: for a connection, and for an answer. Five seconds otherwise.
    #[must_use]
    pub const fn with_query_timeout(mut self, timeout: Duration) -> Self {
        self.query_timeout = timeout;
        self
    }

    /// The same, with at most so many connections beside the one that listens. Sixteen otherwise.
    #[must_use]
    pub const fn with_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// The same server, spoken to as the store does.
    pub(super) fn session(&self) -> PgConnectOptions {
        let limit = self.query_timeout.as_millis().to_string();
        self.server.clone().options([
            ("search_path", "occ,pg_temp"),
            // Who waits longer has gone away: what he asked for ends as well, and with it its locks.
            ("statement_timeout", limit.as_str()),
            ("lock_timeout", limit.as_str()),
            ("tcp_user_timeout", "15000"),
            ("client_connection_check_interval", "5000"),
            // Each statement looks up a few rows by an index. A new database has no statistics that would say so.
            ("enable_seqscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
            ("jit", "off"),
            // The same statements all day, of values that do not change how they are best run: to plan one costs more than to run it.
            ("plan_cache_mode", "force_generic_plan"),
        ])
    }
}

/// Host, port and database.
impl fmt::Display for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.server;
        let database = server.get_database().unwrap_or_else(|| server.get_username());
        match server.get_socket() {
            Some(socket) => write!(f, "{}/{database}", socket.display()),
            None => write!(f, "{}:{}/{database}", server.get_host(), server.get_port()),
        }
    }
}

impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresSettings({self})")
    }
}
