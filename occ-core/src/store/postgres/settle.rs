//! What passes change, in one statement for all that end at once.
//!
//! A pass moves the pointer of its Agent, or ends: with versions that are retired, and with what is recorded. That is the same change as any
//! other: one that has another shape, and one of which something does not hold, is [`apply`](super::commit)'s.

use std::collections::HashSet;

use serde_json::{Value, json};
use sqlx::types::Json;

use super::{PostgresStore, arguments, change, fault::Fault, locks::Locks, together::committed};
use crate::{
    id::{AgentId, RevisionId},
    resource::DesiredRuntimeState,
    store::{Change, CommitError, Expect, Write},
    work::{ClaimToken, Transition},
};

const SETTLE: &str = "SELECT settle($1, $2, $3)";

/// A change of a pass: what it rests on, and what it writes.
#[derive(Default)]
struct Shape<'a> {
    claim: Option<ClaimToken>,
    runtime: Option<(AgentId, Option<RevisionId>, DesiredRuntimeState)>,
    selected: Option<(AgentId, Option<RevisionId>)>,
    retired: Vec<RevisionId>,
    end: Option<&'a Transition>,
}

impl<'a> Shape<'a> {
    /// `None` when it has something else, or something twice.
    fn of(change: &'a Change) -> Option<Self> {
        let mut shape = Self::default();
        for expect in &change.expect {
            let first = match expect {
                Expect::ClaimHeld(token) => shape.claim.replace(*token).is_none(),
                Expect::AgentRuntime { agent, active, desired } => {
                    shape.runtime.replace((*agent, *active, *desired)).is_none()
                }
                _ => false,
            };
            first.then_some(())?;
        }
        for write in &change.writes {
            let first = match write {
                Write::ActiveRevision(agent, revision) => shape.selected.replace((*agent, *revision)).is_none(),
                Write::RevisionRetired(id) => {
                    shape.retired.push(*id);
                    true
                }
                Write::Settle(token, transition) => {
                    shape.claim == Some(*token) && shape.end.replace(transition).is_none()
                }
                _ => false,
            };
            first.then_some(())?;
        }
        // A write that finds nothing is `apply`'s to tell: of an Agent that is there, everything is.
        let there = shape.runtime.map(|(agent, ..)| agent);
        let whole = shape.selected.is_none_or(|(agent, _)| there == Some(agent))
            && (shape.retired.is_empty() || there.is_some())
            && shape.claim.is_some()
            && change.state.is_empty();
        whole.then_some(shape)
    }
}

/// The same, as the statement takes it.
pub(super) struct Settling {
    locks: Locks,
    claim: ClaimToken,
    row: Value,
}

impl PostgresStore {
    /// `None` when the change is none of a pass.
    pub(super) async fn settling(&self, change: &Change) -> Result<Option<Settling>, CommitError> {
        let Some(shape) = Shape::of(change) else {
            return Ok(None);
        };
        let Some(claim) = shape.claim else { return Ok(None) };
        let mut events: Vec<_> = change.audit.iter().map(change::event).collect();
        let mut end = Value::Null;
        if let Some(transition) = shape.end {
            let settlement = self.settlement(claim, transition).await?;
            events.extend(settlement.event.as_ref().map(change::event));
            end = change::settlement(None, &settlement);
        }
        let row = json!({
            "token": claim,
            "agent": shape.runtime.map(|(agent, ..)| agent),
            "active": shape.runtime.and_then(|(_, active, _)| active),
            "desired": shape.runtime.map(|(.., desired)| desired),
            "selects": shape.selected.is_some(),
            "selected": shape.selected.and_then(|(_, selected)| selected),
            "retired": shape.retired, "end": end, "events": events,
        });
        Ok(Some(Settling {
            locks: Locks::of(change),
            claim,
            row,
        }))
    }

    /// Whether it was committed. Otherwise nothing was, and [`apply`](super::commit) says why.
    pub(super) async fn settle(&self, settling: Settling) -> Result<bool, Fault> {
        let answer = self.asked.settlings.ask(settling, |all| self.settle_all(all)).await;
        answer.unwrap_or(Err(Fault::Lost))
    }

    async fn settle_all(&self, all: Vec<Settling>) -> Vec<Result<bool, Fault>> {
        let count = all.len();
        let (mut locks, mut claims, mut rows) = (Locks::default(), HashSet::new(), Vec::new());
        for (number, mut settling) in all.into_iter().enumerate() {
            // Of two changes under one claim the later one is left out: the earlier one may end it.
            if claims.insert(settling.claim) {
                locks.join(settling.locks);
                settling.row["number"] = json!(number);
                rows.push(settling.row);
            }
        }
        let sent = async {
            let (names, alone): (Vec<_>, Vec<_>) = locks.into_iter().unzip();
            self.connections
                .once(SETTLE, arguments![names, alone, Json(rows)])
                .await
        };
        committed(sent.await, count)
    }
}
