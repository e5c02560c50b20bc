//! The machine's processes, as `/proc` shows them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};

/// A process that lived a moment ago.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its parent's id.
    pub parent: i32,
    /// Its program.
    pub program: PathBuf,
    /// Its arguments, NUL between them; programs may rewrite them.
    pub arguments: Vec<u8>,
    /// Its environment at its start, NUL between the variables.
    pub environment: Vec<u8>,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let stat = fs::read_to_string(proc.join("stat")).ok()?;
        // The name in parentheses may hold anything; behind it stand the state and the parent.
        let mut behind = stat.rsplit_once(')')?.1.split_whitespace();
        let state = behind.next()?;
        let parent = behind.next()?.parse().ok()?;
        // What is dead and not yet waited for runs no more.
        if matches!(state, "Z" | "X") {
            return None;
        }
        Some(Self {
            pid,
            parent,
            program: fs::read_link(proc.join("exe")).unwrap_or_default(),
            arguments: fs::read(proc.join("cmdline")).ok()?,
            environment: fs::read(proc.join("environ")).unwrap_or_default(),
        })
    }

    /// Whether its arguments or its environment name this path.
    pub fn names(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_encoded_bytes();
        contains(&self.arguments, path) || contains(&self.environment, path)
    }

    /// Whether its arguments begin with these.
    pub fn is_called(&self, arguments: &[&str]) -> bool {
        let mut own = self.arguments.split(|byte| *byte == 0);
        arguments.iter().all(|wanted| own.next() == Some(wanted.as_bytes()))
    }

    /// Whether it is an Agent's gateway. OpenClaw renames itself once it runs.
    pub fn is_gateway(&self) -> bool {
        self.is_called(&["openclaw-gateway"]) || contains(&self.arguments, b"\0gateway\0run\0")
    }

    /// Ends it with SIGKILL.
    pub fn kill(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Whether it still runs.
    pub fn lives(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.program == self.program)
    }
}

/// Every process that runs, and that may be looked at.
pub fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read).collect()
}

pub(crate) fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
