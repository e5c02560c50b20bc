//! The status as others see it.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use occ_core::{
    id::RevisionId,
    reason::Token,
    time::{Clock as _, SystemClock},
};

use tokio::sync::Notify;

use crate::{
    identity::ProcessIdentity,
    status::{Exit, State, Status},
};

/// How soon a status that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Keeps the status and writes it whole at each change. Clones publish the same status.
#[derive(Clone)]
pub struct Publisher {
    shared: Arc<Mutex<Shared>>,
    failed: Arc<Notify>,
}

struct Shared {
    status: Status,
    path: PathBuf,
}

impl Publisher {
    /// Publishes a first status.
    pub fn new(
        path: PathBuf,
        revision_id: RevisionId,
        component: Token,
        own: ProcessIdentity,
        state: State,
    ) -> io::Result<Self> {
        let now = SystemClock.now();
        let status = Status {
            revision_id,
            component,
            supervisor: own,
            state,
            since: now,
            at: now,
            child_pid: None,
            restarts: 0,
            last_exit: None,
        };
        let shared = Shared { status, path };
        shared.write()?;
        Ok(Self {
            shared: Arc::new(Mutex::new(shared)),
            failed: Arc::new(Notify::new()),
        })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present status.
    pub fn status(&self) -> Status {
        self.shared().status.clone()
    }

    /// The component is in this state now.
    pub fn state(&self, state: State) {
        self.change(|status| status.state = state);
    }

    /// The component's process.
    pub fn child(&self, pid: u32) {
        self.change(|status| status.child_pid = Some(pid));
    }

    /// The component's process ended; `again` when it is started again after it had been ready.
    pub fn ended(&self, exit: Option<Exit>, again: bool) {
        self.change(|status| {
            status.child_pid = None;
            status.last_exit = exit.or(status.last_exit);
            status.restarts = status.restarts.saturating_add(u32::from(again));
            if again {
                status.state = State::Restarting;
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Status)) {
        let mut shared = self.shared();
        let before = shared.status.clone();
        change(&mut shared.status);
        if shared.status == before {
            return;
        }
        shared.status.at = SystemClock.now();
        if shared.status.state != before.state {
            shared.status.since = shared.status.at;
        }
        if shared.write().is_err() {
            self.failed.notify_one();
        }
    }

    /// Repeats writes that failed, as on a full disk.
    pub async fn repeat(self) {
        loop {
            self.failed.notified().await;
            tokio::time::sleep(RETRY).await;
            if self.shared().write().is_err() {
                self.failed.notify_one();
            }
        }
    }
}

impl Shared {
    fn write(&self) -> io::Result<()> {
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(".new");
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(&self.status)?)?;
        fs::rename(&temporary, &self.path)
    }
}
