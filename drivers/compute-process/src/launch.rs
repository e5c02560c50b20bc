//! Starting a supervisor that outlives this process.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::Stdio,
    time::Duration,
};

use occ_core::{
    driver::{EffectError, EffectResult, Fault, FaultKind, SecretAccess},
    plan::SecretSlot,
    reason::{PreparationReason, PreparationStage},
    secret_value::SecretValue,
};
use occ_runtime::exit::{self, LaunchFailed, Launched};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};
use zeroize::Zeroizing;

use crate::{credentials, error::Error, naming::AgentPaths, stage::Staged, storage};

/// How long a supervisor may take until it says that it runs. It does nothing before that but read its files.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer of a launcher, in bytes.
const ANSWER_MAX_BYTES: u64 = 4096;

/// The values that go to the supervisor, by slot key: the Compute's own password from its file, the others from the engine.
pub(crate) async fn secrets(
    staged: &Staged,
    agent: &AgentPaths,
    access: &dyn SecretAccess,
) -> EffectResult<Vec<(String, SecretValue)>> {
    let mut values = Vec::with_capacity(staged.secrets.len());
    for (key, slot) in &staged.secrets {
        let value = match slot {
            SecretSlot::GatewayPassword => credentials::password(agent)?
                .ok_or(Fault::new("find the Agent's gateway password", FaultKind::Missing))?,
            SecretSlot::HarnessCredential | SecretSlot::Binding(_) => access.value(slot).await?,
        };
        values.push((key.clone(), value));
    }
    Ok(values)
}

/// Runs `occ-runtime launch`. Nothing of this process's environment reaches the workload, and no secret is on a command line.
///
/// The launcher holds a lock for as long as it lives, as its standard error: should this process die or be cancelled now, the
/// next one sees that a supervisor is on its way instead of concluding that nothing runs. So the launcher is not killed then.
pub(crate) async fn launch(
    supervisor: &Path,
    staged: &Staged,
    secrets: &[(String, SecretValue)],
) -> Result<Launched, LaunchError> {
    let text = encode(secrets)?;
    let mut child = Command::new(supervisor)
        .arg("launch")
        .arg("--spec")
        .arg(&staged.spec)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::from(lock(&staged.launch_lock)?))
        .spawn()
        .map_err(|error| spawn_failed(&error))?;
    let (mut stdin, mut stdout) = (child.stdin.take(), child.stdout.take());
    let answered = timeout(TIMEOUT, async {
        if let Some(stdin) = &mut stdin {
            // A launcher that refuses its spec closes the pipe early; its exit code says why.
            let _ = stdin.write_all(&text).await;
        }
        drop(stdin);
        let mut answer = Vec::new();
        if let Some(stdout) = &mut stdout {
            stdout.take(ANSWER_MAX_BYTES).read_to_end(&mut answer).await?;
        }
        Ok::<_, io::Error>((child.wait().await?, answer))
    });
    let Ok(answered) = answered.await else {
        let _ = child.start_kill();
        return Err(Fault::new("launch a supervisor", FaultKind::Timeout).into());
    };
    let (status, answer) = answered.map_err(|error| Fault::io("launch a supervisor", &error))?;
    exit::read(status.code(), &answer).map_err(|failed| refused(failed, staged))
}

/// Opens and locks the file; both end with the last process that has it open. Only for a run that was seen to be over.
fn lock(path: &Path) -> Result<File, LaunchError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path);
    let file = file.map_err(|error| LaunchError::from(Error::storage("open the launch lock")(error)))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Fault::new("begin a launch while another is under way", FaultKind::Conflict).into())
        }
        Err(TryLockError::Error(error)) => Err(Error::storage("lock the launch lock")(error).into()),
    }
}

/// Why no supervisor was launched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error(transparent)]
    Own(#[from] Error),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl LaunchError {
    pub(crate) fn own(self) -> Error {
        match self {
            Self::Own(error) => error,
            Self::Fault(fault) => fault.into(),
        }
    }
}

fn spawn_failed(error: &io::Error) -> LaunchError {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound | Kind::PermissionDenied | Kind::IsADirectory | Kind::NotADirectory => {
            Error::refused(PreparationStage::Launch, PreparationReason::SupervisorMissing).into()
        }
        // `ENOEXEC` has no kind of its own.
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            Error::refused(PreparationStage::Launch, PreparationReason::SupervisorMissing).into()
        }
        _ => Fault::io("start the supervisor's launcher", error).into(),
    }
}

fn refused(failed: LaunchFailed, staged: &Staged) -> LaunchError {
    let fault = match failed {
        LaunchFailed::Spec => Fault::new("hand the spec to the supervisor", FaultKind::Protocol),
        LaunchFailed::Secrets => Fault::new("hand the secrets to the supervisor", FaultKind::Protocol),
        LaunchFailed::Storage => match storage::trial(&staged.spec) {
            Ok(()) => Fault::new("let the supervisor use its files", FaultKind::Denied),
            // The supervisor does not say what it met; this is what is met now.
            Err(error) => return error.into(),
        },
        LaunchFailed::Start => Fault::new("launch a supervisor", FaultKind::Unavailable),
    };
    fault.into()
}

/// One JSON object, in memory that is overwritten after its use and never moved meanwhile.
fn encode(secrets: &[(String, SecretValue)]) -> Result<Zeroizing<Vec<u8>>, LaunchError> {
    // No byte of a value takes more than six when it is escaped.
    let size = secrets
        .iter()
        .map(|(key, value)| (key.len() + value.expose().len()) * 6 + 8)
        .sum::<usize>()
        + 2;
    let mut text = Zeroizing::new(Vec::with_capacity(size));
    let unusable = |_| Fault::new("encode the secrets", FaultKind::Corrupt);
    let mut separator = "{";
    for (key, value) in secrets {
        let value = value
            .expose_str()
            .ok_or(Fault::new("encode the secrets", FaultKind::Corrupt))?;
        text.extend_from_slice(separator.as_bytes());
        write_json(&mut *text, key).map_err(unusable)?;
        text.push(b':');
        write_json(&mut *text, value).map_err(unusable)?;
        separator = ",";
    }
    text.extend_from_slice(if secrets.is_empty() { b"{}" } else { b"}" });
    debug_assert!(text.len() <= size);
    Ok(text)
}

fn write_json(writer: impl Write, text: &str) -> serde_json::Result<()> {
    serde_json::to_writer(writer, text)
}

impl From<LaunchError> for EffectError {
    fn from(error: LaunchError) -> Self {
        error.own().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_encoded_as_one_object_of_texts() {
        let value = |text: &str| SecretValue::from(text.to_owned());
        let secrets = [
            ("a".to_owned(), value("1\n\"\u{1}")),
            ("binding:B".to_owned(), value("é")),
        ];
        let text = encode(&secrets).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(read, serde_json::json!({ "a": "1\n\"\u{1}", "binding:B": "é" }));
        assert_eq!(encode(&[]).unwrap().as_slice(), b"{}");
        assert!(encode(&[("a".to_owned(), SecretValue::new(vec![0xff]))]).is_err());
    }
}
