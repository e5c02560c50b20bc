//! One change, one transaction, one round trip.

use serde_json::{Value, json};
use sqlx::{Row as _, postgres::PgArguments, types::Json};

use super::{
    PostgresStore,
    admit::Admission,
    arguments, change,
    fault::{Fault, MISSING},
    locks::Locks,
    record::{first, records},
};
use crate::{
    store::{
        Change, CommitError, Expect, Write,
        row::{
            settlement::{Settlement, settled},
            work::WorkRow,
        },
    },
    time::Timestamp,
    work::{ClaimToken, Transition},
};

/// A claimed piece of work. While it is claimed nothing of it changes but its lease.
const CLAIMED: &str = records!(
    "work",
    "SELECT * FROM work WHERE claim_token = $1 AND state = 'claimed'"
);
/// How often a change is sent that met another transaction and was undone.
const TRIES: usize = 4;

/// What `apply` and `recover` take.
#[derive(Default)]
pub(super) struct Statement {
    pub locks: Locks,
    pub tokens: Vec<ClaimToken>,
    pub keys: Vec<String>,
    pub expects: Vec<Value>,
    pub writes: Vec<Value>,
    pub state: Vec<Value>,
    pub audit: Vec<Value>,
    pub bytes: Vec<Vec<u8>>,
}

impl Statement {
    pub(super) fn json(&self) -> Value {
        let mut change = json!({
            "locks": self.locks.json(), "expects": self.expects, "writes": self.writes, "state": self.state,
            "audit": self.audit,
        });
        if !self.tokens.is_empty() {
            change["tokens"] = json!(self.tokens);
        }
        if !self.keys.is_empty() {
            change["keys"] = json!(self.keys);
        }
        change
    }
}

impl PostgresStore {
    pub(super) async fn commit_change(&self, change: &Change) -> Result<(), CommitError> {
        if let Some(admission) = Admission::of(change)
            && self.admit(admission).await?
        {
            self.wake.everywhere();
            return Ok(());
        }
        let settles = change.writes.iter().any(|write| matches!(write, Write::Settle(..)));
        if let Some(settling) = self.settling(change).await?
            && self.settle(settling).await?
        {
            if settles {
                self.lane_came_free();
            }
            return Ok(());
        }
        let statement = self.statement(change).await?;
        match self.apply(statement).await {
            Ok(None) => {}
            Ok(Some(index)) => {
                let expect = change.expect.get(index).cloned();
                return Err(expect.map_or(CommitError::Refused, CommitError::Conflict));
            }
            Err(Fault::Refused(refusal)) if refusal.code == MISSING => {
                let write = refusal.write().and_then(|index| change.writes.get(index));
                return Err(write.map_or(CommitError::Refused, missing));
            }
            Err(fault) => return Err(fault.into()),
        }
        let has = |wakes: fn(&Write) -> bool| change.writes.iter().any(wakes);
        if has(|write| matches!(write, Write::Enqueue(_) | Write::EnqueueLater(..) | Write::Requeue(_))) {
            self.wake.everywhere();
        } else if settles {
            self.lane_came_free();
        }
        Ok(())
    }

    /// And with it this worker.
    fn lane_came_free(&self) {
        self.wake.here();
        self.wake.moved();
    }

    async fn statement(&self, change: &Change) -> Result<Statement, CommitError> {
        let mut statement = Statement {
            locks: Locks::of(change),
            expects: change.expect.iter().map(change::expect).collect(),
            audit: change.audit.iter().map(change::event).collect(),
            ..Statement::default()
        };
        for expect in &change.expect {
            match expect {
                Expect::ClaimHeld(token) => statement.tokens.push(*token),
                Expect::WorkFailed(key) | Expect::WorkActor(key, _) => statement.keys.push(key.clone()),
                _ => {}
            }
        }
        for write in &change.writes {
            let write = match write {
                Write::Settle(token, transition) => {
                    statement.tokens.push(*token);
                    let settlement = self.settlement(*token, transition).await?;
                    statement.audit.extend(settlement.event.as_ref().map(change::event));
                    change::settlement(Some(*token), &settlement)
                }
                write => change::write(write, &mut statement.bytes)?,
            };
            statement.writes.push(write);
        }
        for record in &change.state {
            let record = change::state(record, &mut statement.bytes);
            statement.state.push(record);
        }
        Ok(statement)
    }

    /// What a transition makes of claimed work. The present is filled in when it is written.
    pub(super) async fn settlement(
        &self,
        token: ClaimToken,
        transition: &Transition,
    ) -> Result<Settlement, CommitError> {
        let read = async {
            match self.claims.get(token) {
                Some(work) => Ok(Some(work)),
                None => first(
                    &self.connections.again(CLAIMED, arguments![token.0]).await?,
                    WorkRow::of,
                ),
            }
        };
        let work = read.await.map_err(|fault| match fault {
            // Nothing was written yet.
            Fault::Lost => CommitError::Unavailable,
            fault => fault.into(),
        })?;
        let work = work.ok_or(CommitError::Conflict(Expect::ClaimHeld(token)))?;
        let settlement = settled(&work, transition, Timestamp::from_millis(0));
        settlement.map_err(|corrupt| Fault::from(corrupt).into())
    }

    /// `None` when it was committed; otherwise the expectation that did not hold.
    async fn apply(&self, statement: Statement) -> Result<Option<usize>, Fault> {
        let arguments = arguments![Json(statement.json()), statement.bytes];
        let index = self.undone_whole("SELECT apply($1, $2)", arguments).await?;
        Ok(usize::try_from(index).ok())
    }

    /// A function's number. Sent again when it met another transaction: then nothing of it happened.
    pub(super) async fn undone_whole(&self, sql: &'static str, arguments: PgArguments) -> Result<i32, Fault> {
        let mut tries = 1;
        loop {
            match self.connections.once(sql, arguments.clone()).await {
                Err(Fault::Refused(refusal)) if refusal.passes() && tries < TRIES => tries += 1,
                answer => return Ok(answer?[0].try_get(0)?),
            }
        }
    }
}

/// What a write stands for that found nothing to change.
fn missing(write: &Write) -> CommitError {
    match write {
        Write::Settle(token, _) => CommitError::Conflict(Expect::ClaimHeld(*token)),
        Write::Enqueue(work) | Write::EnqueueLater(work, _) => {
            CommitError::Conflict(Expect::WorkActor(work.target.key(), work.actor.clone()))
        }
        Write::Requeue(work) => CommitError::Conflict(Expect::WorkFailed(work.target.key())),
        _ => {
            tracing::error!("a change names something that does not exist");
            CommitError::Refused
        }
    }
}
