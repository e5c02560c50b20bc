//! `occ-runtime keep`: the parent of one command, which leaves nothing of it behind.
//!
//! The keeper is a child subreaper. Whatever the command starts stays below it, also in another session, and is killed before
//! the keeper ends: when the command ends, when the supervisor says so, and when the supervisor dies (its end of the socket
//! closes; unlike a death signal that does not depend on a thread). When the keeper itself is killed, the command gets
//! SIGKILL from the kernel, and the rest falls to the supervisor, a subreaper too. When both are killed, the next keeper ends
//! what they left.

mod exec;
pub mod wire;

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Command, ExitCode, Stdio},
    time::Duration,
};

pub use exec::run as exec;
use rustix::process::{self, Pid, Signal};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};
use wire::{Report, Request};
use zeroize::Zeroizing;

use crate::{identity, orphans, status::Exit, tree};

/// This program, also after its file was replaced by another version.
pub const SELF: &str = "/proc/self/exe";
/// How often a lock that a dying tree holds is tried.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Runs the keeper; its order and requests come from the socket on standard input.
pub async fn run() -> ExitCode {
    match keep().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

async fn keep() -> io::Result<()> {
    let _ = rustix::thread::set_name(c"occ-keep");
    process::set_child_subreaper(Some(process::getpid()))?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut child_ended = signal(SignalKind::child())?;
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (head, order) = wire::read_head(&control)?;
    control.set_nonblocking(true)?;
    let (requests, mut reports) = tokio::net::UnixStream::from_std(control)?.into_split();
    let mut requests = BufReader::new(requests).lines();
    let grace = Duration::from_millis(head.grace_ms);
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&head.tree_lock)?;

    while lock.try_lock().is_err() {
        // An earlier supervisor was killed and its keeper is still ending the tree.
        tokio::select! {
            () = tokio::time::sleep(LOCK_RETRY) => {}
            _ = requests.next_line() => return Ok(()),
        }
    }

    loop {
        // An earlier supervisor and its keeper were killed together.
        let left = orphans::find(&head.tree_lock);
        if left.is_empty() {
            break;
        }
        for process in left {
            // One that ended meanwhile needs no signal; the next look tells of one that did not.
            let _ = process.signal(identity::Signal::Kill);
        }
        tokio::select! {
            () = tokio::time::sleep(LOCK_RETRY) => {}
            _ = requests.next_line() => return Ok(()),
        }
    }

    let pid = match start(order) {
        Ok(pid) => pid,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error());
            tree::end_all(|_, _| ()).await;
            return report(&mut reports, Report::NotStarted { errno }).await;
        }
    };
    let mut exit = None;
    report(
        &mut reports,
        Report::Started {
            pid: pid.as_raw_nonzero().get().cast_unsigned(),
        },
    )
    .await?;

    let mut deadline: Option<Instant> = None;
    while exit.is_none() {
        let stop = tokio::select! {
            _ = child_ended.recv() => {
                while let Some((ended, how)) = tree::reap_one() {
                    if ended == pid {
                        exit = Some(how);
                    }
                }
                None
            }
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => break,
            request = requests.next_line() => match request.ok().flatten().map(|line| serde_json::from_str(&line)) {
                Some(Ok(Request::Stop { grace_ms })) => Some(Duration::from_millis(grace_ms)),
                // The supervisor is gone, or says something that only another version understands.
                Some(Err(_)) | None => break,
            },
            _ = terminate.recv() => Some(grace),
            _ = interrupt.recv() => Some(grace),
        };
        if let (Some(grace), None) = (stop, exit) {
            let until = Instant::now() + grace;
            deadline = Some(deadline.map_or(until, |before| before.min(until)));
            let _ = process::kill_process_group(pid, Signal::TERM);
        }
    }
    tree::end_all(|ended, how| {
        if ended == pid {
            exit = Some(how);
        }
    })
    .await;
    report(
        &mut reports,
        Report::Ended(exit.unwrap_or(Exit::Signal(Signal::KILL.as_raw()))),
    )
    .await
}

/// Starts the command in a process group of its own and waits until it runs, or could not. Takes the order: the keeper needs
/// nothing of it any more.
fn start(order: Zeroizing<Vec<u8>>) -> io::Result<Pid> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let child = Command::new(SELF)
        .arg0("occ-runtime")
        .args(["exec", "--keeper", &std::process::id().to_string()])
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .process_group(0)
        .spawn()?;
    ours.write_all(&order)?;
    drop(order);
    ours.shutdown(Shutdown::Write)?;
    // The other end is closed by the exec itself.
    let mut errno = String::new();
    ours.read_to_string(&mut errno)?;
    match errno.parse() {
        Ok(errno) => Err(io::Error::from_raw_os_error(errno)),
        Err(_) => i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidData.into()),
    }
}

async fn report(reports: &mut tokio::net::unix::OwnedWriteHalf, report: Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(&report)?;
    line.push(b'\n');
    reports.write_all(&line).await
}
