//! One run of a check, in directories of its own.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use occ_core::reason::Token;
use rustix::io::Errno;
use tokio::{
    io::AsyncReadExt as _,
    time::{Instant, sleep_until, timeout},
};

use super::budget::Cgroup;
use crate::{
    spec::Probe,
    status::Exit,
    supervise::{Child, End, Event, Supervisor, is_full, output, remove_directory},
};

/// Longest output of a check, in bytes (spec/drivers 7.1).
const OUTPUT_MAX_BYTES: usize = 256 * 1024;
/// How long the end of the output is waited for after the last process has ended.
const OUTPUT_END: Duration = Duration::from_secs(1);

/// One run to make.
pub struct Attempt<'a> {
    pub probe: &'a Probe,
    pub cap: Duration,
    pub cgroup: &'a Cgroup,
}

/// How it went.
pub enum Outcome {
    /// It ended by itself.
    Ended { stdout: Vec<u8>, exit: Exit },
    /// The operating system would not start it, for this reason.
    NotStarted(Token),
    /// It printed too much, and was killed.
    Overflow,
    /// It took too long, and was killed.
    Capped {
        elapsed: Duration,
        waited: Option<Duration>,
    },
    /// Its directories could not be made.
    Unprepared,
}

impl Attempt<'_> {
    /// Runs the check; nothing of it is left afterwards, neither process nor file. Says besides whether it left the disk full.
    pub async fn run(&self, supervisor: &mut Supervisor) -> Result<(Outcome, bool), End> {
        let root = Path::new(&self.probe.directory);
        let outcome = if prepare(root, self.probe).is_ok() {
            self.execute(supervisor).await
        } else {
            Ok(Outcome::Unprepared)
        };
        // Looked at before the check's own files make room.
        let full = root.parent().is_some_and(is_full);
        // What cannot be removed now is removed before the next check.
        let _ = remove_directory(root);
        Ok((outcome?, full))
    }

    async fn execute(&self, supervisor: &mut Supervisor) -> Result<Outcome, End> {
        let probe = self.probe;
        let task = supervisor.task(&probe.command, &probe.environment, &probe.directory);
        let begun = Instant::now();
        let waiting = self.cgroup.begin();
        let started = async {
            let (writer, reader) = output()?;
            let silent = File::options().write(true).open("/dev/null")?;
            Ok::<_, io::Error>((Child::start(task, writer, silent.into()).await?, reader))
        };
        let Ok((mut child, mut reader)) = started.await else {
            return Ok(Outcome::Unprepared);
        };
        let mut stdout = Vec::new();
        let mut chunk = vec![0; 16 * 1024];
        let mut open = true;
        let exit = loop {
            tokio::select! {
                () = supervisor.stop.requested() => {
                    child.end(Duration::ZERO).await;
                    return Err(End::Stop);
                }
                event = child.next() => match event {
                    Event::Started(_) => {}
                    Event::NotStarted(errno) => return Ok(Outcome::NotStarted(errno_name(errno))),
                    Event::Ended(exit) => break exit,
                },
                read = reader.read(&mut chunk), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(read) => stdout.extend_from_slice(&chunk[..read]),
                },
                () = sleep_until(begun + self.cap) => {
                    let (elapsed, waited) = (begun.elapsed(), waiting.since());
                    child.end(Duration::ZERO).await;
                    return Ok(Outcome::Capped { elapsed, waited });
                }
            }
            if stdout.len() > OUTPUT_MAX_BYTES {
                child.end(Duration::ZERO).await;
                return Ok(Outcome::Overflow);
            }
        };
        while open && stdout.len() <= OUTPUT_MAX_BYTES {
            match timeout(OUTPUT_END, reader.read(&mut chunk)).await {
                Ok(Ok(read)) if read > 0 => stdout.extend_from_slice(&chunk[..read]),
                _ => open = false,
            }
        }
        if stdout.len() > OUTPUT_MAX_BYTES {
            return Ok(Outcome::Overflow);
        }
        Ok(Outcome::Ended { stdout, exit })
    }
}

fn prepare(root: &Path, probe: &Probe) -> io::Result<()> {
    remove_directory(root)?;
    let mut private = fs::DirBuilder::new();
    private.mode(0o700);
    private.create(root)?;
    for name in ["home", "state", "tmp"] {
        private.create(root.join(name))?;
    }
    private.recursive(true);
    for (name, content) in &probe.files {
        let path = root.join("state").join(name);
        if let Some(parent) = path.parent() {
            private.create(parent)?;
        }
        let mut file = File::options().create_new(true).write(true).mode(0o600).open(path)?;
        file.write_all(content.as_bytes())?;
    }
    Ok(())
}

/// The name of an error that starting a process can have.
fn errno_name(number: i32) -> Token {
    match Errno::from_raw_os_error(number) {
        Errno::NOENT => Token::known("ENOENT"),
        Errno::ACCESS => Token::known("EACCES"),
        Errno::PERM => Token::known("EPERM"),
        Errno::NOEXEC => Token::known("ENOEXEC"),
        Errno::TOOBIG => Token::known("E2BIG"),
        Errno::NOMEM => Token::known("ENOMEM"),
        Errno::AGAIN => Token::known("EAGAIN"),
        Errno::NOTDIR => Token::known("ENOTDIR"),
        Errno::ISDIR => Token::known("EISDIR"),
        Errno::LOOP => Token::known("ELOOP"),
        Errno::NAMETOOLONG => Token::known("ENAMETOOLONG"),
        Errno::TXTBSY => Token::known("ETXTBSY"),
        Errno::MFILE => Token::known("EMFILE"),
        Errno::NFILE => Token::known("ENFILE"),
        Errno::IO => Token::known("EIO"),
        Errno::NOSPC => Token::known("ENOSPC"),
        Errno::SRCH => Token::known("ESRCH"),
        _ => Token::known("EINVAL"),
    }
}
