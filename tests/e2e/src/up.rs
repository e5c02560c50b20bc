//! A running `occ up`.

use std::{
    ffi::OsStr,
    io::Read as _,
    process::{Child, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{Home, eventually};

/// A control plane process. Killed when dropped.
#[derive(Debug)]
pub struct Up {
    child: Child,
    /// What it announced: `api`, `keyFile`, `dataDir`.
    pub said: Value,
}

impl Up {
    /// Starts `occ up` with these further arguments, and waits until it says that it is there.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn start<S: AsRef<OsStr>>(home: &Home, arguments: impl IntoIterator<Item = S>) -> Self {
        Self::logging_to(home, arguments, home.open_log().into())
    }

    /// The same with its log somewhere else.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn logging_to<S: AsRef<OsStr>>(home: &Home, arguments: impl IntoIterator<Item = S>, log: Stdio) -> Self {
        let mut command = home.command(["up", "--output", "json"]);
        if !home.has("OCC_LISTEN") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(arguments).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("occ can be started");
        let mut stdout = child.stdout.take().expect("its output is piped");
        let mut text = String::new();
        let said = loop {
            let mut part = [0; 1024];
            let read = stdout.read(&mut part).expect("its output can be read");
            if read == 0 {
                let status = child.wait();
                let log = std::fs::read_to_string(home.log()).unwrap_or_default();
                panic!("occ up ended: {status:?}\n{log}");
            }
            text += &String::from_utf8_lossy(&part[..read]);
            if let Ok(said) = serde_json::from_str(&text) {
                break said;
            }
        };
        Self { child, said }
    }

    /// Starts a whole control plane, and makes its address the home's.
    ///
    /// # Panics
    /// When it ends instead.
    pub fn whole(home: &mut Home) -> Self {
        let up = Self::start(home, [""; 0]);
        home.set("OCC_API", up.api());
        up
    }

    /// Its address.
    ///
    /// # Panics
    /// When it has no API.
    pub fn api(&self) -> &str {
        self.said["api"].as_str().expect("it has an API")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    ///
    /// # Panics
    /// When it cannot be asked.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_none()
    }

    /// Ends it with SIGKILL, at once.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When it has ended.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("it has an id"), signal).expect("it can be signalled");
    }

    /// Sends a signal, and waits for the end that it causes.
    ///
    /// # Panics
    /// When there is none.
    pub fn end(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        eventually("occ up ends when it is told to", || {
            self.child.try_wait().expect("it is a child")
        })
    }

    /// The same with SIGTERM, which must be a clean end.
    ///
    /// # Panics
    /// When it is not.
    pub fn stop(self) {
        let status = self.end(Signal::TERM);
        assert_eq!(status.code(), Some(0), "{status:?}");
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
