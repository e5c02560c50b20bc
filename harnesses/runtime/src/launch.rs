//! `occ-runtime launch`: a supervisor that outlives its launcher.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use crate::{
    exit::{self, Answer},
    keep::SELF,
    secrets::Secrets,
    spec::LaunchSpec,
    supervise::{Greeting, NotBegun},
};

/// Longest greeting that is read, in bytes.
const GREETING_MAX_BYTES: u64 = 4096;

/// Starts a supervisor and prints who it is.
pub fn run(path: &Path) -> Result<ExitCode, NotBegun> {
    let spec = LaunchSpec::read(path)?;
    let (secrets, text) = Secrets::read(io::stdin())?;
    secrets.check(&spec)?;
    // Whatever goes wrong after the greeting is said there.
    let errors = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&spec.files.log)
        .map_err(|e| NotBegun::Storage("log file", e))?;
    let start = |e| NotBegun::System("start the supervisor", e);
    let mut child = Command::new(SELF)
        .arg0("occ-runtime")
        .arg("supervise")
        .arg("--spec")
        .arg(path)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(start)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A supervisor that refuses what it was given closes the pipe early; its exit code says why.
        let _ = stdin.write_all(&text);
    }
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout.take(GREETING_MAX_BYTES))
            .read_line(&mut line)
            .map_err(start)?;
    }
    match serde_json::from_str(&line) {
        Ok(Greeting::Started(identity)) => {
            answer(Some(identity)).map_err(start)?;
            Ok(exit::LAUNCHED.into())
        }
        Ok(Greeting::Held(holder)) => {
            let _ = child.wait();
            answer(holder).map_err(start)?;
            eprintln!("occ-runtime: {}", NotBegun::Held);
            Ok(exit::HELD.into())
        }
        Err(_) => {
            let code = child
                .wait()
                .ok()
                .and_then(|status| status.code())
                .and_then(|code| u8::try_from(code).ok());
            eprintln!("occ-runtime: the supervisor did not start; see the end of the log file");
            Ok(code.filter(|code| *code != 0).unwrap_or(exit::START_FAILED).into())
        }
    }
}

fn answer(identity: Option<crate::identity::ProcessIdentity>) -> io::Result<()> {
    let mut line = serde_json::to_vec(&Answer { identity })?;
    line.push(b'\n');
    let mut stdout = io::stdout();
    stdout.write_all(&line)?;
    stdout.flush()
}
