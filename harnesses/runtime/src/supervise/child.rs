//! A command under a keeper, as the supervisor sees it.

use std::{
    io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe},
};

use crate::{
    keep::{
        SELF,
        wire::{Head, Order, Report, Request},
    },
    status::Exit,
    tree,
};

/// A command to keep.
pub struct Task {
    /// What runs.
    pub order: Order,
    /// Locked while anything of it lives.
    pub tree_lock: PathBuf,
    /// Between SIGTERM and SIGKILL when the keeper itself gets SIGTERM, in milliseconds.
    pub grace_ms: u64,
}

/// How a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It runs, as this process.
    Started(u32),
    /// The operating system would not start it.
    NotStarted(i32),
    /// It ended, and nothing that it started is left.
    Ended(Exit),
}

/// A command that runs, or is being started or ended. Dropping it ends its whole tree at once, in the background.
pub struct Child {
    reports: Lines<BufReader<OwnedReadHalf>>,
    requests: OwnedWriteHalf,
    last: Option<Event>,
}

impl Child {
    /// Starts a keeper with the task.
    pub async fn start(task: Task, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(SELF);
        command.arg0("occ-runtime").arg("keep").env_clear();
        command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout)
            .stderr(stderr);
        // The signals that a terminal sends to this process's group are for this process to pass on.
        command.process_group(0).spawn()?;
        drop(command);
        ours.set_nonblocking(true)?;
        let (reports, mut requests) = tokio::net::UnixStream::from_std(ours)?.into_split();
        let order = task.order.to_bytes();
        let head = Head {
            order_bytes: order.len() as u64,
            tree_lock: task.tree_lock,
            grace_ms: task.grace_ms,
        };
        let mut line = serde_json::to_vec(&head)?;
        line.push(b'\n');
        // A keeper that dies already is noticed by the end of its reports.
        let _ = requests.write_all(&line).await;
        let _ = requests.write_all(&order).await;
        Ok(Self {
            reports: BufReader::new(reports).lines(),
            requests,
            last: None,
        })
    }

    /// What happens next; the last event again once it is [`Event::Ended`] or [`Event::NotStarted`]. Cancel safe.
    pub async fn next(&mut self) -> Event {
        if let Some(last) = self.last {
            return last;
        }
        let line = self.reports.next_line().await.ok().flatten();
        let event = match line.and_then(|line| serde_json::from_str(&line).ok()) {
            Some(Report::Started { pid }) => return Event::Started(pid),
            Some(Report::NotStarted { errno }) => Event::NotStarted(errno),
            Some(Report::Ended(exit)) => Event::Ended(exit),
            None => {
                // The keeper was killed. The kernel killed the command, and the rest of the tree is below this process now.
                tree::end_all(|_, _| ()).await;
                Event::Ended(Exit::Signal(rustix::process::Signal::KILL.as_raw()))
            }
        };
        self.last = Some(event);
        event
    }

    /// Asks the command to end; its whole tree is killed after the grace.
    pub async fn stop(&mut self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let mut line = serde_json::to_vec(&Request::Stop { grace_ms }).unwrap_or_default();
        line.push(b'\n');
        let _ = self.requests.write_all(&line).await;
    }

    /// Asks the command to end and waits until nothing of it is left.
    pub async fn end(&mut self, grace: Duration) -> Event {
        self.stop(grace).await;
        loop {
            match self.next().await {
                Event::Started(_) => {}
                end => return end,
            }
        }
    }
}

/// A pipe for a command's output: what it writes to, and where that is read.
pub fn output() -> io::Result<(OwnedFd, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    Ok((writer.into(), pipe::Receiver::from_owned_fd(reader.into())?))
}
