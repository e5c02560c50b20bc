//! The model of the store behind a bad connection.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use occ_core::{
    driver::{EffectResult, Fault, FaultKind, StateEntry, StateReader},
    iam::{Grants, PolicyReader},
    resource::PrincipalId,
    store::{Change, CommitError, Expect, PassRead, Store, StoreError, StoreResult, Wait},
    work::{Claim, ClaimToken, Lease, Target},
};
use tokio::sync::watch;

use super::{dice::Dice, rules::Rules};
use crate::memory::MemoryStore;

/// Slow, cut off before and after it did what was asked, and silent for longer than a lease.
#[derive(Debug)]
pub struct FaultyStore {
    inner: MemoryStore,
    dice: Dice,
    rules: Rules,
    /// Of a thousand calls.
    rate: u64,
}

/// What happens to a call.
enum Fate {
    Answered,
    NotSent,
    AnswerLost,
}

impl FaultyStore {
    /// Around this store, with so many faults in a thousand calls.
    pub fn around(inner: MemoryStore, dice: Dice, rules: Rules, rate: u64) -> Arc<Self> {
        Arc::new(Self {
            inner,
            dice,
            rules,
            rate,
        })
    }

    async fn fate(&self) -> Fate {
        self.dice.pause().await;
        if !self.dice.strikes(self.rate) {
            return Fate::Answered;
        }
        if self.dice.chance(200) {
            tokio::time::sleep(self.dice.up_to(Duration::from_secs(12))).await;
        }
        if self.dice.chance(500) {
            Fate::NotSent
        } else {
            Fate::AnswerLost
        }
    }

    async fn reachable(&self) -> StoreResult<()> {
        match self.fate().await {
            Fate::Answered => Ok(()),
            Fate::NotSent | Fate::AnswerLost => Err(StoreError::Unavailable),
        }
    }

    fn committed(&self, change: &Change) -> Result<(), CommitError> {
        self.rules.before(change, &self.inner.data());
        let outcome = self.inner.change(change);
        if outcome == Err(CommitError::Refused) {
            self.rules
                .broken(format!("a change contradicts what is stored: {:?}", change.writes));
        }
        self.rules.after(&self.inner.data());
        outcome
    }

    /// A write that is no change: it happens or not, and its answer arrives or not.
    async fn written<T>(&self, write: impl AsyncFnOnce(&MemoryStore) -> StoreResult<T>) -> StoreResult<T> {
        let fate = self.fate().await;
        if matches!(fate, Fate::NotSent) {
            return Err(StoreError::Unavailable);
        }
        let outcome = write(&self.inner).await;
        self.rules.after(&self.inner.data());
        self.dice.pause().await;
        match fate {
            Fate::AnswerLost => Err(StoreError::Unavailable),
            _ => outcome,
        }
    }
}

fn away() -> occ_core::driver::EffectError {
    Fault::new("reach the store", FaultKind::Unavailable).into()
}

#[async_trait]
impl StateReader for FaultyStore {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        self.reachable().await.map_err(|_| away())?;
        StateReader::read(&self.inner, driver, key).await
    }
}

#[async_trait]
impl PolicyReader for FaultyStore {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        self.reachable().await.map_err(|_| away())?;
        self.inner.grants(principal).await
    }
}

macro_rules! reads {
    ($(fn $name:ident(&self $(, $arg:ident: $ty:ty)*) -> $out:ty;)*) => {
        #[async_trait]
        impl Store for FaultyStore {
            $(async fn $name(&self $(, $arg: $ty)*) -> $out {
                self.reachable().await?;
                self.inner.$name($($arg),*).await
            })*

            async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
                let claims = self.written(async |store| store.claim(limit, lease).await).await?;
                for claim in &claims {
                    self.rules.step(|| format!("claim {} attempt {}", claim.target.key(), claim.attempt));
                }
                Ok(claims)
            }

            async fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool> {
                self.written(async |store| store.renew(token, lease).await).await
            }

            async fn recover(&self, lease: Lease) -> StoreResult<usize> {
                self.written(async |store| store.recover(lease).await).await
            }

            async fn commit(&self, change: Change) -> Result<(), CommitError> {
                let fate = self.fate().await;
                if self.dice.strikes(self.rate / 2) {
                    let race = |expect: &&Expect| !matches!(expect, Expect::ClaimHeld(_));
                    if let Some(expect) = change.expect.iter().find(race) {
                        return Err(CommitError::Conflict(expect.clone()));
                    }
                }
                match fate {
                    Fate::NotSent if self.dice.chance(500) => Err(CommitError::UnknownOutcome),
                    Fate::NotSent => Err(CommitError::Unavailable),
                    Fate::AnswerLost => {
                        self.committed(&change)?;
                        Err(CommitError::UnknownOutcome)
                    }
                    Fate::Answered => {
                        self.committed(&change)?;
                        self.dice.pause().await;
                        Ok(())
                    }
                }
            }

            async fn work_arrived(&self) {
                self.inner.work_arrived().await;
            }

            fn movements(&self) -> watch::Receiver<()> {
                self.inner.movements()
            }
        }
    };
}

occ_test_support::store_reads! { reads
    fn pass_read(&self, target: &Target) -> StoreResult<PassRead>;
    fn postpone(&self, waits: &[Wait]) -> StoreResult<Vec<bool>>;
}
