//! A store around another one: it shows what was recorded, and fails or is raced when a test says so.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use occ_core::{
    audit::AuditEvent,
    driver::{EffectResult, StateEntry, StateReader},
    iam::{Grants, PolicyReader},
    id::{AgentId, NamespaceId, RevisionId},
    resource::PrincipalId,
    store::{
        AgentRow, Change, CommitError, PassRead, SavedRevision, Slice, Store, StoreError, StoreResult, Wait, Write,
    },
    work::{Claim, ClaimToken, Lease, NewWork, Target},
};
use tokio::sync::watch;

type Race = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// What happens to a commit.
enum Fate {
    /// It is not tried, and this is answered.
    Fails(CommitError),
    /// It happens, and yet nobody knows.
    LosesItsAnswer,
    /// Somebody else comes first.
    IsRaced(Race),
}

/// Sees what happens in a store, while it happens.
pub trait Watch: Send + Sync {
    /// A method is called.
    fn called(&self, _method: &'static str) {}

    /// Work was claimed.
    fn claimed(&self, _claims: &[Claim]) {}

    /// A change was committed.
    fn committed(&self, _change: &Change) {}
}

/// Passes everything on; see the module.
pub struct RecordingStore {
    inner: Arc<dyn Store>,
    fates: Mutex<VecDeque<Fate>>,
    audit: Mutex<Vec<AuditEvent>>,
    work: Mutex<Vec<NewWork>>,
    watch: Mutex<Option<Arc<dyn Watch>>>,
    deaf: AtomicBool,
    mute: AtomicBool,
    failing: AtomicUsize,
    late: AtomicUsize,
    unreadable: AtomicUsize,
    spoilt: AtomicUsize,
    unheld: AtomicUsize,
}

impl RecordingStore {
    /// Around this store.
    pub fn around(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            fates: Mutex::default(),
            audit: Mutex::default(),
            work: Mutex::default(),
            watch: Mutex::default(),
            deaf: AtomicBool::default(),
            mute: AtomicBool::default(),
            failing: AtomicUsize::default(),
            late: AtomicUsize::default(),
            unreadable: AtomicUsize::default(),
            spoilt: AtomicUsize::default(),
            unheld: AtomicUsize::default(),
        }
    }

    /// From now on this one sees what happens, and no earlier one.
    pub fn watch(&self, watch: Arc<dyn Watch>) {
        *lock(&self.watch) = Some(watch);
    }

    /// From now on nothing says that work arrived or moved.
    pub fn deafen(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    /// From now on no renewal of a claim is answered, nor done.
    pub fn silence_renewals(&self) {
        self.mute.store(true, Ordering::Relaxed);
    }

    /// So many renewals of a claim fail, and are not done.
    pub fn fail_renewals(&self, times: usize) {
        self.failing.store(times, Ordering::Relaxed);
    }

    /// So many claims find nothing, as if somebody else had been first.
    pub fn lose_claims(&self, times: usize) {
        self.late.store(times, Ordering::Relaxed);
    }

    /// So many reads of what a pass needs fail.
    pub fn fail_pass_reads(&self, times: usize) {
        self.unreadable.store(times, Ordering::Relaxed);
    }

    /// So many reads of what a pass needs find a row that does not decode.
    pub fn spoil_pass_reads(&self, times: usize) {
        self.spoilt.store(times, Ordering::Relaxed);
    }

    /// So many times nothing is held off, because it fails.
    pub fn fail_waits(&self, times: usize) {
        self.unheld.store(times, Ordering::Relaxed);
    }

    fn seen(&self, see: impl FnOnce(&dyn Watch)) {
        let watch = lock(&self.watch).clone();
        if let Some(watch) = watch {
            see(&*watch);
        }
    }

    /// The next commit fails so; nothing of it happens.
    pub fn fail(&self, error: CommitError) {
        lock(&self.fates).push_back(Fate::Fails(error));
    }

    /// The next commit happens, and its answer is lost.
    pub fn lose_answer(&self) {
        lock(&self.fates).push_back(Fate::LosesItsAnswer);
    }

    /// Before the next commit, this happens to its end.
    pub fn race(&self, other: impl Future<Output = ()> + Send + 'static) {
        lock(&self.fates).push_back(Fate::IsRaced(Box::new(move || Box::pin(other))));
    }

    /// What was to happen to commits and did not yet happens no more; so many were left.
    pub fn let_be(&self) -> usize {
        std::mem::take(&mut *lock(&self.fates)).len()
    }

    /// What was recorded since the last look.
    pub fn take_audit(&self) -> Vec<AuditEvent> {
        std::mem::take(&mut lock(&self.audit))
    }

    /// What was queued since the last look.
    pub fn take_work(&self) -> Vec<NewWork> {
        std::mem::take(&mut lock(&self.work))
    }
}

/// Whether one was left, which is one less now.
fn one_less(left: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl StateReader for RecordingStore {
    async fn read(&self, driver: &str, key: &str) -> EffectResult<Option<StateEntry>> {
        self.seen(|watch| watch.called("read"));
        StateReader::read(&*self.inner, driver, key).await
    }
}

#[async_trait]
impl PolicyReader for RecordingStore {
    async fn grants(&self, principal: &PrincipalId) -> EffectResult<Grants> {
        self.seen(|watch| watch.called("grants"));
        self.inner.grants(principal).await
    }

    async fn grants_of(&self, principals: &[PrincipalId]) -> EffectResult<Vec<(PrincipalId, Grants)>> {
        self.seen(|watch| watch.called("grants_of"));
        self.inner.grants_of(principals).await
    }
}

macro_rules! passed_on {
    ($(fn $name:ident(&self $(, $arg:ident: $ty:ty)*) -> $out:ty;)*) => {
        #[async_trait]
        impl Store for RecordingStore {
            $(async fn $name(&self $(, $arg: $ty)*) -> $out {
                self.seen(|watch| watch.called(stringify!($name)));
                self.inner.$name($($arg),*).await
            })*

            async fn claim(&self, limit: usize, lease: Lease) -> StoreResult<Vec<Claim>> {
                self.seen(|watch| watch.called("claim"));
                if one_less(&self.late) {
                    return Ok(Vec::new());
                }
                let claims = self.inner.claim(limit, lease).await?;
                self.seen(|watch| watch.claimed(&claims));
                Ok(claims)
            }

            fn hears(&self) -> bool {
                !self.deaf.load(Ordering::Relaxed) && self.inner.hears()
            }

            fn movements(&self) -> watch::Receiver<()> {
                if self.deaf.load(Ordering::Relaxed) {
                    return watch::channel(()).1;
                }
                self.inner.movements()
            }

            async fn work_arrived(&self) {
                if self.deaf.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                self.inner.work_arrived().await;
            }

            async fn renew(&self, token: ClaimToken, lease: Lease) -> StoreResult<bool> {
                self.seen(|watch| watch.called("renew"));
                if self.mute.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                if one_less(&self.failing) {
                    return Err(StoreError::Unavailable);
                }
                self.inner.renew(token, lease).await
            }

            async fn postpone(&self, waits: &[Wait]) -> StoreResult<Vec<bool>> {
                self.seen(|watch| watch.called("postpone"));
                if one_less(&self.unheld) {
                    return Err(StoreError::Unavailable);
                }
                self.inner.postpone(waits).await
            }

            async fn pass_read(&self, target: &Target) -> StoreResult<PassRead> {
                self.seen(|watch| watch.called("pass_read"));
                if one_less(&self.unreadable) {
                    return Err(StoreError::Unavailable);
                }
                if one_less(&self.spoilt) {
                    return Err(StoreError::Corrupt("row"));
                }
                self.inner.pass_read(target).await
            }

            async fn commit(&self, change: Change) -> Result<(), CommitError> {
                self.seen(|watch| watch.called("commit"));
                let fate = lock(&self.fates).pop_front();
                match fate {
                    Some(Fate::Fails(error)) => return Err(error),
                    Some(Fate::IsRaced(race)) => race().await,
                    Some(Fate::LosesItsAnswer) => {
                        self.inner.commit(change).await?;
                        return Err(CommitError::UnknownOutcome);
                    }
                    None => {}
                }
                let committed = change.clone();
                self.inner.commit(change).await?;
                self.seen(|watch| watch.committed(&committed));
                let Change { audit, writes, .. } = committed;
                lock(&self.audit).extend(audit);
                lock(&self.work).extend(writes.into_iter().filter_map(|write| match write {
                    Write::Enqueue(work) | Write::Requeue(work) => Some(work),
                    _ => None,
                }));
                Ok(())
            }
        }
    };
}

crate::store_reads! { passed_on
    fn agents_in(&self, namespace: NamespaceId, slice: &Slice) -> StoreResult<Vec<AgentRow>>;
    fn saved_revision(&self, namespace: NamespaceId, agent: AgentId, id: RevisionId) -> StoreResult<Option<SavedRevision>>;
    fn saved_revisions(&self, namespace: NamespaceId, agent: AgentId, slice: &Slice) -> StoreResult<Vec<SavedRevision>>;
    fn recover(&self, lease: Lease) -> StoreResult<usize>;
}
