//! Connections that are known to answer.
//!
//! Every statement is one round trip in a transaction of its own, and has a limit. A connection goes back only after it
//! answered: one that broke, fell silent, or whose caller went away is closed, and so are those that were opened before it, for
//! what silenced one (a failover, a firewall, a frozen proxy) silences its siblings.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection,
    postgres::{PgArguments, PgConnectOptions, PgRow},
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout, timeout_at},
};

use super::fault::Fault;

/// After so long an idle connection is asked whether it still answers.
const IDLE: Duration = Duration::from_secs(10);
/// How long it has to say so.
const PING: Duration = Duration::from_secs(1);
/// Between two attempts to reach a server that is starting.
const RETRY: Duration = Duration::from_millis(50);

pub(super) struct Connections {
    options: PgConnectOptions,
    limit: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
    /// Connections that were opened before are not used again.
    suspect: Mutex<Instant>,
}

struct Idle {
    connection: PgConnection,
    opened: Instant,
    since: Instant,
}

impl Connections {
    /// At most so many connections; none is opened yet. `limit` bounds each wait: for a connection, and for an answer.
    pub(super) fn new(options: PgConnectOptions, most: usize, limit: Duration) -> Self {
        Self {
            options,
            limit,
            permits: Semaphore::new(most),
            idle: Mutex::default(),
            suspect: Mutex::new(Instant::now()),
        }
    }

    /// Sends a statement once. For what must not happen twice.
    pub(super) async fn once(&self, sql: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, Fault> {
        self.send(sql, arguments, self.limit).await
    }

    /// Sends a statement that may happen twice, again on another connection when one was lost.
    pub(super) async fn again(&self, sql: &'static str, arguments: PgArguments) -> Result<Vec<PgRow>, Fault> {
        self.again_within(sql, arguments, self.limit).await
    }

    /// The same with a limit for each of its two attempts.
    pub(super) async fn again_within(
        &self,
        sql: &'static str,
        arguments: PgArguments,
        limit: Duration,
    ) -> Result<Vec<PgRow>, Fault> {
        match self.send(sql, arguments.clone(), limit).await {
            Err(Fault::Lost) => self.send(sql, arguments, limit).await,
            answer => answer,
        }
    }

    /// Closes all; later statements find the store closed.
    pub(super) async fn close(&self) {
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for idle in idle {
            let _ = timeout(PING, idle.connection.close()).await;
        }
    }

    /// No connection that is open now is used again once it is idle.
    pub(super) fn suspect(&self) {
        *self.suspect.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn send(&self, sql: &'static str, arguments: PgArguments, limit: Duration) -> Result<Vec<PgRow>, Fault> {
        let limit = limit.min(self.limit);
        let (_permit, mut connection, opened) = self.checkout(limit).await?;
        let answer = timeout(limit, sqlx::query_with(sql, arguments).fetch_all(&mut connection)).await;
        let answer = answer
            .map_err(|_| Fault::Lost)
            .and_then(|answer| answer.map_err(Fault::from));
        if matches!(answer, Err(Fault::Lost)) {
            self.suspect();
        } else {
            self.keep(connection, opened);
        }
        answer
    }

    fn keep(&self, connection: PgConnection, opened: Instant) {
        if opened < *self.suspect.lock().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.permits.is_closed() {
            let since = Instant::now();
            idle.push(Idle {
                connection,
                opened,
                since,
            });
        }
    }

    async fn checkout(&self, limit: Duration) -> Result<(SemaphorePermit<'_>, PgConnection, Instant), Fault> {
        let deadline = Instant::now() + limit;
        let permit = match timeout_at(deadline, self.permits.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(Fault::Closed),
            Err(_) => return Err(Fault::Unreachable),
        };
        loop {
            // The one that was used last: its caches are warm, and the others may grow old and be asked.
            let newest = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut idle) = newest else { break };
            if idle.since.elapsed() < IDLE {
                return Ok((permit, idle.connection, idle.opened));
            }
            if let Ok(Ok(())) = timeout(PING, idle.connection.ping()).await {
                return Ok((permit, idle.connection, idle.opened));
            }
            self.suspect();
        }
        let opened = Instant::now();
        timeout_at(deadline, self.connect())
            .await
            .map_or(Err(Fault::Unreachable), |connected| {
                connected.map(|connection| (permit, connection, opened))
            })
    }

    /// Waits for a server that is starting.
    async fn connect(&self) -> Result<PgConnection, Fault> {
        loop {
            match self.options.connect().await {
                Ok(connection) => return Ok(connection),
                Err(error) if starting(&error) => tokio::time::sleep(RETRY).await,
                Err(error) => {
                    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
                    tracing::warn!(code = code.as_deref(), "the database cannot be reached");
                    return Err(Fault::Unreachable);
                }
            }
        }
    }
}

/// Whether the server may be there in a moment.
pub(super) fn starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        // cannot_connect_now, crash_shutdown, admin_shutdown, too_many_connections.
        sqlx::Error::Database(said) => {
            matches!(said.code().as_deref(), Some("57P03" | "57P02" | "57P01" | "53300"))
        }
        _ => false,
    }
}
