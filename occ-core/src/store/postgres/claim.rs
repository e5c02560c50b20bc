//! Taking up work, keeping it, and taking back what was lost (spec/engine 4).

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value, json};
use sqlx::{Row as _, types::Json};
use uuid::Uuid;

use super::{
    PostgresStore, arguments,
    change::{self, millis},
    commit::Statement,
    fault::{Fault, UNIQUE},
    record::{Record, records},
};
use crate::{
    reason::Failure,
    store::{
        QueueDepth, StoreError, Wait,
        row::{
            self, Columns, Corrupt,
            settlement::{self, Follows, Settlement},
            work::WorkRow,
        },
    },
    time::Timestamp,
    work::{Claim, ClaimToken, Lease},
};

/// How long work that does not decode is left alone, in milliseconds.
const SPOILT_PAUSE: i64 = 60_000;
/// How many one recovery handles of each sort. The rest waits for the next, so that no transaction grows long.
const BATCH: i32 = 500;
/// How often a claim is repeated that met another claimer in one of its lanes.
const TRIES: usize = 4;
/// How many claims are remembered. More than a worker has; those of passes that were cut off are among them.
const REMEMBERED: usize = 4096;

const CLAIM: &str = records!("work", "SELECT * FROM claim($1, $2, $3)");
const POSTPONE: &str = "SELECT postpone($1, $2, $3, $4, $5)";
/// The next moment at which there is something to do: queued work of a free lane becomes due, or a lease lapses.
const NEXT_DUE: &str = "SELECT greatest(0, moment - present()) FROM (
        SELECT least(
            (SELECT q.available_at FROM work q
                WHERE q.state = 'queued'
                    AND NOT EXISTS (SELECT 1 FROM work c WHERE c.lane = q.lane AND c.state = 'claimed' OFFSET 0)
                ORDER BY q.available_at, q.created_at, q.key LIMIT 1),
            (SELECT min(lease_expires_at) FROM work WHERE state = 'claimed')
        ) AS moment
    ) due WHERE moment IS NOT NULL";

/// Both counts are of partial indexes.
const DEPTH: &str = "SELECT (SELECT count(*) FROM work WHERE state = 'queued') AS queued,
    (SELECT count(*) FROM work WHERE state = 'claimed') AS claimed,
    coalesce((SELECT greatest(0, present() - min(available_at)) FROM work WHERE state = 'queued'), 0) AS overdue";

/// The rows of claims that this store made: while work is claimed nothing of it changes but its lease, so that to settle it
/// needs no look.
#[derive(Default)]
pub(super) struct Claims(Mutex<HashMap<ClaimToken, WorkRow>>);

impl Claims {
    pub(super) fn get(&self, token: ClaimToken) -> Option<WorkRow> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&token)
            .cloned()
    }

    pub(super) fn forget(&self, token: ClaimToken) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&token);
    }

    fn remember(&self, token: ClaimToken, work: WorkRow) {
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.len() >= REMEMBERED {
            claims.clear();
        }
        claims.insert(token, work);
    }
}

fn attempts(lease: Lease) -> i32 {
    i32::try_from(lease.max_attempts).unwrap_or(i32::MAX)
}

impl PostgresStore {
    pub(super) async fn take(&self, limit: usize, lease: Lease) -> Result<Vec<Claim>, Fault> {
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let arguments = arguments![limit, millis(lease.duration), attempts(lease)];
        let mut tries = 1;
        let rows = loop {
            match self.queue.once(CLAIM, arguments.clone()).await {
                // Another claimer was in one of the lanes at the same moment; nothing of this claim was made.
                Err(Fault::Refused(refusal)) if (refusal.code == UNIQUE || refusal.passes()) && tries < TRIES => {
                    tries += 1;
                }
                answer => break answer?,
            }
        };
        let mut claims = Vec::with_capacity(rows.len());
        for record in &Record::all(&rows)? {
            let row = Columns {
                row: record,
                of: "work",
            };
            let token = ClaimToken(row.parsed("claim_token")?);
            if let Some(work) = WorkRow::readable(record) {
                claims.push((row.moment("available_at")?, claim(&row, token, &work)?, work));
                continue;
            }
            // Looked at again later, and not at every turn. The others are claimed, whatever becomes of this one: a recovery finds it.
            let arguments = arguments![token.0, SPOILT_PAUSE];
            if let Err(fault) = self.connections.again("SELECT set_aside($1, $2)", arguments).await {
                tracing::warn!(cause = %StoreError::from(fault), "a piece of work that does not decode stays claimed");
            }
        }
        // The rows of an UPDATE come in no order.
        claims.sort_by(|(a, first, _), (b, second, _)| {
            let order = |at: &Timestamp, claim: &Claim| (*at, claim.created_at, claim.target.key());
            order(a, first).cmp(&order(b, second))
        });
        let remembered = claims.into_iter().map(|(_, claim, work)| {
            self.claims.remember(claim.token, work);
            claim
        });
        Ok(remembered.collect())
    }

    pub(super) async fn extend(&self, token: ClaimToken, lease: Lease) -> Result<bool, Fault> {
        // A silent connection must leave time for another before the lease ends.
        let limit = (lease.duration / 4).max(Duration::from_millis(250));
        let arguments = arguments![token.0, millis(lease.duration)];
        let rows = self
            .queue
            .again_within("SELECT renew($1, $2)", arguments, limit)
            .await?;
        Ok(rows[0].try_get(0)?)
    }

    pub(super) async fn put_off(&self, waits: &[Wait]) -> Result<Vec<bool>, Fault> {
        let keys: Vec<_> = waits.iter().map(|wait| wait.key.clone()).collect();
        let agents: Vec<_> = waits.iter().map(|wait| wait.agent.to_string()).collect();
        let versions: Vec<_> = waits
            .iter()
            .map(|wait| row::number(wait.version))
            .collect::<Result<_, _>>()?;
        let leasts: Vec<_> = waits.iter().map(|wait| millis(wait.least)).collect();
        let mosts: Vec<_> = waits.iter().map(|wait| millis(wait.most)).collect();
        let arguments = arguments![keys, agents, versions, leasts, mosts];
        let rows = self.queue.again(POSTPONE, arguments).await?;
        let done: HashSet<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let held: Vec<_> = waits.iter().map(|wait| done.contains(&*wait.key)).collect();
        if Wait::any_due(waits, &held) {
            self.wake.everywhere();
        }
        Ok(held)
    }

    pub(super) async fn wait_for_due(&self) -> Result<Option<Duration>, Fault> {
        let rows = self.queue.again(NEXT_DUE, arguments![]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let wait: i64 = row.try_get(0)?;
        Ok(Some(Duration::from_millis(wait.try_into().unwrap_or(0))))
    }

    pub(super) async fn read_depth(&self) -> Result<QueueDepth, Fault> {
        let rows = self.connections.again(DEPTH, arguments![]).await?;
        let count = |column| -> Result<u64, Fault> {
            let number: i64 = rows[0].try_get(column)?;
            number.try_into().map_err(|_| Fault::Corrupt("work"))
        };
        Ok(QueueDepth {
            queued: count("queued")?,
            claimed: count("claimed")?,
            overdue: Duration::from_millis(count("overdue")?),
        })
    }

    /// One look and no lock while nothing is lost; each batch is one change, of which what another recovery did first is left out.
    pub(super) async fn recover_lost(&self, lease: Lease) -> Result<usize, Fault> {
        let rows = self
            .queue
            .again("SELECT lost($1, $2) AS work", arguments![BATCH, attempts(lease)])
            .await?;
        let (mut lost, mut spoilt) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in &rows {
            let Json::<Map<String, Value>>(columns) = row.try_get("work")?;
            let record = Record::from_columns(columns);
            match WorkRow::readable(&record) {
                Some(work) => lost.push((work, record)),
                None => spoilt.push(
                    Columns {
                        row: &record,
                        of: "work",
                    }
                    .text("key")?,
                ),
            }
        }
        if !spoilt.is_empty() {
            let arguments = arguments![spoilt, SPOILT_PAUSE, attempts(lease)];
            let aside = self.queue.again("SELECT set_aside_lost($1, $2, $3)", arguments).await;
            if let Err(fault) = aside {
                // The others are taken back all the same.
                tracing::warn!(cause = %StoreError::from(fault), "lost work that does not decode stays as it is");
            }
        }
        if lost.is_empty() {
            return Ok(0);
        }
        // In one order, so that two recoveries do not wait for each other in a circle.
        lost.sort_by(|(first, _), (second, _)| first.key.cmp(&second.key));
        let mut statement = Statement::default();
        for (work, record) in &lost {
            recovery(&mut statement, work, record, lease)?;
        }
        let arguments = arguments![Json(statement.json())];
        let count = self.undone_whole("SELECT recover($1)", arguments).await?;
        self.wake.everywhere();
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

fn claim(row: &Columns<'_, Record>, token: ClaimToken, work: &WorkRow) -> Result<Claim, Corrupt> {
    Ok(Claim {
        token,
        target: work.target,
        actor: work.actor.clone(),
        attempt: work.attempts,
        created_at: work.created_at,
        claimed_at: row.moment("claimed_at")?,
        last_attempt: work.last_attempt,
        trace: work.trace.clone(),
    })
}

fn recovery(statement: &mut Statement, work: &WorkRow, record: &Record, lease: Lease) -> Result<(), Fault> {
    let row = Columns {
        row: record,
        of: "work",
    };
    let published = row.flag("published")?;
    let token = row.optional_parsed::<Uuid>("claim_token")?.map(ClaimToken);
    // The present is filled in when it is written.
    let now = Timestamp::from_millis(0);
    let (settlement, follows): (Settlement, Follows) = match token {
        Some(_) => settlement::lapsed(work, published, lease, crate::randomness::unit(), now)?,
        None => settlement::abandoned(work, published, Failure::MaxAttemptsExhausted)?,
    };
    let mut write = change::settlement(token, &settlement);
    write["key"] = json!(work.key);
    write["spent"] = json!(work.attempts);
    write["events"] = settlement.event.as_ref().map(change::event).into_iter().collect();
    match follows {
        Follows::Nothing => {}
        Follows::NamespaceFails(namespace) => {
            statement.locks.namespace(namespace);
            write["namespace"] = json!(namespace);
        }
        Follows::Work(next, delay) => {
            write["row"] = change::work(&next, delay);
        }
    }
    match token {
        Some(token) => statement.tokens.push(token),
        None => statement.keys.push(work.key.clone()),
    }
    statement.writes.push(write);
    Ok(())
}
