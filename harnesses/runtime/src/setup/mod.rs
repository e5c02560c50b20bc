//! The workspace before anything runs: the native initialization, and the initial files once (spec/drivers 1.14, spec/engine 12).

mod directory;
mod marker;
mod stock;
mod verify;

use std::{io, time::Duration};

use directory::{Entry, Workspace};
use marker::Marker;
use occ_core::{
    reason::{PreparationReason, PreparationStage, RuntimeCode, Token},
    resource::{WorkspaceFileName, WorkspaceFiles},
};
use stock::Stock;
use tokio::time::{Instant, sleep, sleep_until};
pub use verify::verify;

use crate::{
    spec,
    status::{Exit, State},
    supervise::{Child, End, Event, Held, Supervisor, output},
};

/// So many runs may fail before the failure is held.
const ATTEMPTS: u32 = 5;
/// Wait before the second run, and the longest one.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How a run of the setup fails.
enum Failure {
    /// The supervisor was told to stop.
    Stop,
    /// Going on would replace a text that somebody else wrote, or create again one that was lost. Repeating it changes nothing.
    Refused,
    /// The native command or the file system failed; a repetition may succeed.
    Failed(PreparationReason, Option<Exit>),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => PreparationReason::StorageFull,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotFound => {
                PreparationReason::StorageDenied
            }
            _ => PreparationReason::SetupFailed,
        };
        Self::Failed(reason, None)
    }
}

/// Sets the workspace up if it is this component's to do and was not done before.
pub async fn run(supervisor: &mut Supervisor) -> Result<(), End> {
    let Some(workspace) = supervisor.spec.workspace.clone() else {
        return Ok(());
    };
    let check = Token::known("workspace-setup");
    let begun = Instant::now();
    let mut backoff = BACKOFF.0;
    let mut failed = 0;
    loop {
        let held = match attempt(supervisor, &workspace).await {
            Ok(()) => {
                supervisor.phase("setup", "succeeded", begun, None);
                return Ok(());
            }
            Err(Failure::Stop) => return Err(End::Stop),
            Err(Failure::Refused) => Held::new(
                &supervisor.spec.component,
                check,
                RuntimeCode::WorkspaceSetupRefused,
                None,
            )
            .because(PreparationStage::WorkspaceSetup, PreparationReason::SetupConflict, None),
            Err(Failure::Failed(reason, exit)) => {
                failed += 1;
                if failed < ATTEMPTS {
                    supervisor.phase("setup", "retrying", begun, Some(reason.code()));
                    supervisor.publisher.state(State::Setup { retrying: true });
                    tokio::select! {
                        () = supervisor.stop.requested() => return Err(End::Stop),
                        () = sleep(backoff) => {}
                    }
                    backoff = (backoff * 2).min(BACKOFF.1);
                    continue;
                }
                Held::new(
                    &supervisor.spec.component,
                    check.clone(),
                    RuntimeCode::Unavailable,
                    None,
                )
                .because(PreparationStage::WorkspaceSetup, reason, exit)
            }
        };
        supervisor.phase("setup", "failed", begun, Some(held.failure.code.code()));
        return Err(held.into());
    }
}

async fn attempt(supervisor: &mut Supervisor, workspace: &spec::Workspace) -> Result<(), Failure> {
    let directory = Workspace::open(&workspace.directory)?.ok_or(Failure::Refused)?;
    let Some(setup) = &workspace.setup else {
        let mut empty = true;
        for name in WorkspaceFileName::ALL {
            empty &= matches!(directory.read(name.as_str())?, Entry::Absent);
        }
        // Somebody who deleted one of the files wants it gone; only a workspace that never had any is initialized.
        return if empty {
            native(supervisor, workspace).await
        } else {
            Ok(())
        };
    };
    let marker = Marker::of(workspace, setup);
    match directory.read(Marker::FILE)? {
        Entry::Text(text) if Marker::parse(&text).as_ref() == Some(&marker) => return Ok(()),
        Entry::Text(_) | Entry::Irregular => return Err(Failure::Refused),
        Entry::Absent => {}
    }
    // Completed, and yet not in this workspace: the texts are gone, and must not be made up.
    let files = setup.files.as_ref().ok_or(Failure::Refused)?;
    let stock = Stock::read(&workspace.templates);
    if let Some(wanted) = &setup.defaults_id
        && *wanted
            != stock
                .as_ref()
                .map_err(|_| Failure::Failed(PreparationReason::SetupFailed, None))?
                .digest()
    {
        return Err(Failure::Refused);
    }
    apply(supervisor, workspace, &directory, files, stock.ok().as_ref()).await?;
    directory.write(Marker::FILE, &marker.to_bytes())?;
    Ok(())
}

async fn apply(
    supervisor: &mut Supervisor,
    workspace: &spec::Workspace,
    directory: &Workspace,
    files: &WorkspaceFiles,
    stock: Option<&Stock>,
) -> Result<(), Failure> {
    let replaceable = |name: WorkspaceFileName, text: &[u8]| {
        files.0.get(&name).is_some_and(|wanted| wanted.as_bytes() == text)
            || stock.is_some_and(|stock| stock.is(name, text))
    };
    let mut absent = Vec::new();
    for name in WorkspaceFileName::ALL {
        match directory.read(name.as_str())? {
            Entry::Absent => absent.push(name),
            Entry::Irregular => return Err(Failure::Refused),
            Entry::Text(text) if files.0.contains_key(&name) && !replaceable(name, &text) => {
                return Err(Failure::Refused);
            }
            Entry::Text(_) => {}
        }
    }
    native(supervisor, workspace).await?;
    for (name, wanted) in &files.0 {
        match directory.read(name.as_str())? {
            Entry::Text(text) if text == wanted.as_bytes() => continue,
            // What the native command has just made is stock, also when the templates say it differently.
            Entry::Text(text) if absent.contains(name) || replaceable(*name, &text) => {}
            Entry::Absent => {}
            Entry::Text(_) | Entry::Irregular => return Err(Failure::Refused),
        }
        directory.write(name.as_str(), wanted.as_bytes())?;
    }
    native(supervisor, workspace).await?;
    for (name, wanted) in &files.0 {
        if !matches!(directory.read(name.as_str())?, Entry::Text(text) if text == wanted.as_bytes()) {
            return Err(Failure::Failed(PreparationReason::SetupFailed, None));
        }
    }
    Ok(())
}

/// Runs the native command; its output goes to the log.
async fn native(supervisor: &mut Supervisor, workspace: &spec::Workspace) -> Result<(), Failure> {
    let task = supervisor.task(&workspace.command, &workspace.environment, &workspace.directory);
    let (writer, reader) = output()?;
    let mut child = Child::start(task, writer.try_clone()?, writer).await?;
    let copied = tokio::spawn(supervisor.log.clone().copy(reader));
    let deadline = Instant::now() + Duration::from_millis(workspace.timeout_ms);
    let failed = |exit| Failure::Failed(PreparationReason::SetupFailed, exit);
    let result = loop {
        tokio::select! {
            () = supervisor.stop.requested() => {
                child.end(Duration::ZERO).await;
                break Err(Failure::Stop);
            }
            event = child.next() => match event {
                Event::Started(_) => {}
                Event::NotStarted(_) => break Err(failed(None)),
                Event::Ended(Exit::Status(0)) => break Ok(()),
                Event::Ended(exit) => break Err(failed(Some(exit))),
            },
            () = sleep_until(deadline) => {
                child.end(Duration::ZERO).await;
                break Err(failed(None));
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), copied).await;
    result
}
