//! `occ-runtime supervise`: one component from its workspace to its end.

mod check;
mod child;
mod component;
mod end;
mod listener;
mod lock;
mod publish;
mod readiness;
mod serve;
mod space;
mod tools;

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

pub use child::{Child, Event, Task, output};
pub use end::{End, Held, signal_name};
use lock::{Lock, NotLocked};
pub use publish::Publisher;
use rustix::process::{self, Resource, Rlimit};
use serde::{Deserialize, Serialize};
use serde_json::json;
pub use space::is_full;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::Instant,
};

use crate::{
    exit,
    identity::ProcessIdentity,
    keep::wire::Order,
    log::{Log, LogFile, Redactor},
    orphans, probe,
    secrets::{InvalidSecrets, Secrets},
    setup,
    spec::{Environment, InvalidSpec, LaunchSpec},
    status::State,
    tree,
};

/// The first line that a supervisor writes to its standard output; there is no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Greeting {
    /// It runs.
    Started(ProcessIdentity),
    /// Another one runs the component.
    Held(Option<ProcessIdentity>),
}

/// Why a supervisor did not begin.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// The spec.
    #[error(transparent)]
    Spec(#[from] InvalidSpec),
    /// The secrets.
    #[error(transparent)]
    Secrets(#[from] InvalidSecrets),
    /// Another supervisor runs.
    #[error("another supervisor runs this component")]
    Held,
    /// One of its files.
    #[error("cannot use the {0}: {1}")]
    Storage(&'static str, #[source] io::Error),
    /// The operating system.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
}

impl NotBegun {
    /// The exit code that says so.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Spec(_) => exit::INVALID_SPEC,
            Self::Secrets(_) => exit::INVALID_SECRETS,
            Self::Held => exit::HELD,
            Self::Storage(..) => exit::STORAGE,
            Self::System(..) => exit::START_FAILED,
        }
    }
}

/// Tells a supervisor's parts that it was told to stop.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Waits until the supervisor is told to stop; at once when it was. Cancel safe.
    pub async fn requested(&mut self) {
        // The sender lives as long as the runtime.
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    fn on_signals() -> io::Result<Self> {
        let (sender, receiver) = watch::channel(false);
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // With a handler, which stays, a write beyond a limit of a file's size fails instead of ending the process.
        drop(signal(SignalKind::from_raw(process::Signal::XFSZ.as_raw()))?);
        tokio::spawn(async move {
            loop {
                tokio::select! { _ = terminate.recv() => {} _ = interrupt.recv() => {} }
                let _ = sender.send(true);
            }
        });
        Ok(Self(receiver))
    }
}

/// What every part of a supervisor's work needs.
pub struct Supervisor {
    /// What it was told.
    pub spec: LaunchSpec,
    /// The values that the spec refers to.
    pub secrets: Secrets,
    /// Its status.
    pub publisher: Publisher,
    /// Its log.
    pub log: Log,
    /// Whether it was told to stop.
    pub stop: Stop,
    started: Instant,
}

/// Runs a supervisor to its end; secrets come on standard input.
pub async fn run(path: &Path) -> Result<ExitCode, NotBegun> {
    // Not the leader of a session when a launcher started it. As a container's first process it is one already.
    let _ = process::setsid();
    let _ = rustix::thread::set_name(c"occ-runtime");
    process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    // A memory image of any process here would hold secrets.
    let _ = process::setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
    process::set_child_subreaper(Some(process::getpid()))
        .map_err(|e| NotBegun::System("become a subreaper", e.into()))?;

    let spec = LaunchSpec::read(path)?;
    let (secrets, text) = Secrets::read(io::stdin())?;
    drop(text);
    secrets.check(&spec)?;
    let own = ProcessIdentity::own().map_err(|e| NotBegun::System("read /proc", e))?;
    let lock = match Lock::take(Path::new(&spec.files.lock), &own) {
        Ok(lock) => lock,
        Err(NotLocked::Held(holder)) => {
            greet(&Greeting::Held(holder));
            return Err(NotBegun::Held);
        }
        Err(NotLocked::Io(error)) => return Err(NotBegun::Storage("lock file", error)),
    };
    let _ = std::env::set_current_dir("/");
    let file = LogFile::open(Path::new(&spec.files.log), spec.log).map_err(|e| NotBegun::Storage("log file", e))?;
    let log = Log::new(file, Redactor::new(secrets.values()));
    let first = if spec.check_only {
        State::Probing
    } else {
        State::Setup { retrying: false }
    };
    let publisher = Publisher::new(
        spec.files.status.clone().into(),
        spec.revision_id,
        spec.component.clone(),
        own.clone(),
        first,
    )
    .map_err(|e| NotBegun::Storage("status file", e))?;
    let stop = Stop::on_signals().map_err(|e| NotBegun::System("watch signals", e))?;
    reap_orphans().map_err(|e| NotBegun::System("watch signals", e))?;
    tokio::spawn(publisher.clone().repeat());
    if let Some(address) = spec.status_listen {
        serve::serve(address, publisher.clone())
            .await
            .map_err(|e| NotBegun::System("listen on the status address", e))?;
    }
    // For every client of this process; an error means that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    greet(&Greeting::Started(own));

    let mut supervisor = Supervisor {
        spec,
        secrets,
        publisher,
        log,
        stop,
        started: Instant::now(),
    };
    if supervisor.spec.check_only {
        return Ok(supervisor.check(lock).await);
    }
    let End::Held(held) = supervisor.work().await else {
        return Ok(supervisor.finish(lock).await);
    };
    let code = held.failure.code;
    supervisor.phase("held", "failed", Instant::now(), Some(code.code()));
    supervisor.publisher.state((*held).into());
    supervisor.stop.requested().await;
    Ok(supervisor.finish(lock).await)
}

impl Supervisor {
    async fn work(&mut self) -> End {
        let ended: Result<std::convert::Infallible, End> = async {
            tools::check(&self.spec)?;
            setup::run(self).await?;
            if let Some(probe) = self.spec.probe.clone() {
                self.publisher.state(State::Probing);
                probe::run(self, &probe).await?;
            }
            component::run(self).await
        }
        .await;
        match ended {
            Err(end) => end,
        }
    }

    async fn finish(&mut self, lock: Lock) -> ExitCode {
        tree::end_all(|_, _| ()).await;
        self.phase("stop", "succeeded", Instant::now(), None);
        self.publisher.state(State::Stopped);
        drop(lock);
        ExitCode::SUCCESS
    }

    /// A command of this component with its environment filled.
    pub fn task(&self, command: &[String], environment: &Environment, directory: &str) -> Task {
        let tree_lock = lock::tree_lock(&self.spec.files.lock);
        let mut environment = self.secrets.environment(environment);
        environment.insert(orphans::MARK.to_owned(), tree_lock.display().to_string());
        Task {
            order: Order {
                command: command.to_vec(),
                environment,
                working_directory: directory.to_owned(),
                limits: self.spec.limits.clone(),
            },
            tree_lock,
            grace_ms: self.spec.stop_grace_ms,
        }
    }

    /// Logs that a phase, begun at `since`, went this way.
    pub fn phase(&self, phase: &'static str, outcome: &'static str, since: Instant, code: Option<&'static str>) {
        self.log.event(
            "runtime.startup_phase",
            json!({
                "container": self.spec.component,
                "phase": phase,
                "outcome": outcome,
                "ms": millis(since),
                "sinceStartMs": millis(self.started),
                "code": code,
            }),
        );
    }
}

/// Milliseconds since `since`.
pub fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn greet(greeting: &Greeting) {
    let mut line = serde_json::to_vec(greeting).unwrap_or_default();
    line.push(b'\n');
    // Whoever launched may be gone; the component runs all the same.
    let mut stdout = io::stdout();
    let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
}

/// Takes the ends of keepers, and of processes that a killed keeper left behind.
fn reap_orphans() -> io::Result<()> {
    let mut ended = signal(SignalKind::child())?;
    tokio::spawn(async move {
        while ended.recv().await.is_some() {
            while tree::reap_one().is_some() {}
        }
    });
    Ok(())
}

/// Removes a directory with all that it holds; an absent one is well.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
