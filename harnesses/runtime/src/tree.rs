//! Process trees: who descends from this process, and how all of them are ended.
//!
//! The supervisor and its keeper are child subreapers, so a process that leaves its session, its group and its parent still
//! descends from them, and nothing that a component started can escape.

use std::{fs, time::Duration};

use rustix::process::{self, Pid, PidfdFlags, WaitOptions, WaitStatus};

use crate::{identity::Stat, status::Exit};

/// How long a round of kills is given before the tree is looked at again.
const ROUND: Duration = Duration::from_millis(10);

/// A living process below this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descendant {
    /// Its number.
    pub pid: u32,
    start_time: u64,
}

/// Every living descendant of this process; zombies have ended.
pub fn descendants() -> Vec<Descendant> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, Stat)> = numbers.filter_map(|pid| Some((pid, Stat::read(pid)?))).collect();
    let mut found = Vec::new();
    let mut parents = vec![std::process::id()];
    while let Some(parent) = parents.pop() {
        for (pid, stat) in all.iter().filter(|(_, stat)| stat.parent == parent) {
            parents.push(*pid);
            if !stat.ended() {
                found.push(Descendant {
                    pid: *pid,
                    start_time: stat.start_time,
                });
            }
        }
    }
    found
}

impl Descendant {
    fn kill(self) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        match process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pinned) if Stat::read(self.pid).is_some_and(|stat| stat.start_time == self.start_time) => {
                let _ = process::pidfd_send_signal(pinned, process::Signal::KILL);
            }
            // A kernel before 5.3: the number was read a moment ago, and leaving the process alive would be worse.
            Err(rustix::io::Errno::NOSYS) => {
                let _ = process::kill_process(pid, process::Signal::KILL);
            }
            _ => {}
        }
    }
}

/// Kills every descendant until none is left, reaping meanwhile. `reaped` is told of each child that ended.
pub async fn end_all(mut reaped: impl FnMut(Pid, Exit)) {
    loop {
        while let Some((pid, exit)) = reap_one() {
            reaped(pid, exit);
        }
        let living = descendants();
        if living.is_empty() {
            return;
        }
        living.into_iter().for_each(Descendant::kill);
        tokio::time::sleep(ROUND).await;
    }
}

/// Takes the end of one child, if one has ended.
pub fn reap_one() -> Option<(Pid, Exit)> {
    loop {
        match process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if let Some(exit) = exit_of(status) {
                    return Some((pid, exit));
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    let exited = status
        .exit_status()
        .and_then(|status| u8::try_from(status).ok())
        .map(Exit::Status);
    exited.or_else(|| status.terminating_signal().map(Exit::Signal))
}
