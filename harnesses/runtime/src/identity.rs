//! Who a process is: a number alone may be reused, with its start time and the boot it may not.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize};

/// Longest identity file that is read, in bytes.
const MAX_BYTES: u64 = 4096;

/// A process that cannot be mistaken for a later one of the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks after the boot (`/proc/PID/stat`, field 22).
    pub start_time: u64,
    /// Which boot that was (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// The fields of `/proc/PID/stat` that say who a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) start_time: u64,
}

impl Stat {
    /// `None` when there is no such process.
    pub(crate) fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The second field is the program's name in parentheses; it may hold spaces and parentheses of its own.
        let after = line.iter().rposition(|b| *b == b')')? + 1;
        let rest = std::str::from_utf8(line.get(after..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let start_time = fields.nth(17)?.parse().ok()?;
        Some(Self {
            state,
            parent,
            start_time,
        })
    }

    /// A zombie has ended; only its number is still taken.
    pub(crate) const fn ended(self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

impl ProcessIdentity {
    /// The process that has this number now.
    pub fn of(pid: u32) -> io::Result<Self> {
        let stat = Stat::read(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            pid,
            start_time: stat.start_time,
            boot_id: boot_id()?,
        })
    }

    /// This process.
    pub fn own() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// The identity that a supervisor left in its lock file. Garbage and a half-written text read as `None`.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&read_bounded(path, MAX_BYTES)?).ok()
    }

    /// Whether exactly this process still runs. A zombie does not.
    pub fn is_alive(&self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.start_time == self.start_time && !stat.ended())
            && boot_id().is_ok_and(|boot| boot == self.boot_id)
    }
}

/// The file's bytes; `None` when it is absent, unreadable, no regular file or longer than `max`.
pub(crate) fn read_bounded(path: &Path, max: u64) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let file = fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= max).then_some(bytes)
}

#[cfg(feature = "identity")]
pub use signal::{NotSignalled, Signal};

#[cfg(feature = "identity")]
mod signal {
    use rustix::process::{self, Pid, PidfdFlags};

    use super::ProcessIdentity;

    /// What a process can be told.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Signal {
        /// Stop within the grace: `SIGTERM`.
        Terminate,
        /// End now: `SIGKILL`. The supervisor's keeper then kills everything below it.
        Kill,
    }

    impl From<Signal> for process::Signal {
        fn from(signal: Signal) -> Self {
            match signal {
                Signal::Terminate => Self::TERM,
                Signal::Kill => Self::KILL,
            }
        }
    }

    /// A signal that reached nobody.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    pub enum NotSignalled {
        /// The process has ended; its number may belong to another one, which was left alone.
        #[error("the process has ended")]
        Ended,
        /// The kernel refused: the process belongs to somebody else, or pidfd is not supported.
        #[error("the process may not be signalled")]
        Refused,
    }

    impl ProcessIdentity {
        /// Signals exactly this process; never another one that got its number.
        pub fn signal(&self, signal: Signal) -> Result<(), NotSignalled> {
            let pid = i32::try_from(self.pid)
                .ok()
                .and_then(Pid::from_raw)
                .ok_or(NotSignalled::Ended)?;
            // The descriptor pins one process; the identity is compared afterwards, so no reuse fits between.
            let pinned = process::pidfd_open(pid, PidfdFlags::empty()).map_err(refusal)?;
            if !self.is_alive() {
                return Err(NotSignalled::Ended);
            }
            process::pidfd_send_signal(&pinned, signal.into()).map_err(refusal)
        }
    }

    fn refusal(error: rustix::io::Errno) -> NotSignalled {
        if error == rustix::io::Errno::SRCH {
            NotSignalled::Ended
        } else {
            NotSignalled::Refused
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_does_not_confuse_the_fields() {
        let mut line = b"7 (a) R 1 (b)) S 3".to_vec();
        for field in 5..=21 {
            line.extend_from_slice(format!(" {field}").as_bytes());
        }
        line.extend_from_slice(b" 4242 0 0");
        assert_eq!(
            Stat::parse(&line),
            Some(Stat {
                state: b'S',
                parent: 3,
                start_time: 4242
            })
        );
        assert_eq!(Stat::parse(b"7 (a"), None);
    }

    #[test]
    fn this_process_is_alive_and_another_start_or_boot_is_not_it() {
        let own = ProcessIdentity::own().unwrap();
        assert!(own.is_alive());
        assert!(
            !ProcessIdentity {
                start_time: own.start_time + 1,
                ..own.clone()
            }
            .is_alive()
        );
        assert!(
            !ProcessIdentity {
                boot_id: "another".into(),
                ..own
            }
            .is_alive()
        );
    }

    #[test]
    fn garbage_is_no_identity() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert_eq!(ProcessIdentity::read(&path), None);
        for garbage in [
            "",
            "{",
            "{\"pid\":1}",
            "{\"pid\":1,\"startTime\":2,\"bootId\":\"x\",\"more\":1}",
        ] {
            fs::write(&path, garbage).unwrap();
            assert_eq!(ProcessIdentity::read(&path), None, "{garbage}");
        }
        let own = ProcessIdentity::own().unwrap();
        fs::write(&path, serde_json::to_vec(&own).unwrap()).unwrap();
        assert_eq!(ProcessIdentity::read(&path), Some(own));
        assert_eq!(ProcessIdentity::read(dir.path()), None);
    }

    #[cfg(feature = "identity")]
    #[test]
    fn a_process_of_the_same_number_is_never_signalled() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let identity = ProcessIdentity::of(child.id()).unwrap();
        let later = ProcessIdentity {
            start_time: identity.start_time - 1,
            ..identity.clone()
        };
        assert_eq!(later.signal(Signal::Kill), Err(NotSignalled::Ended));
        assert!(identity.is_alive());
        assert_eq!(identity.signal(Signal::Kill), Ok(()));
        child.wait().unwrap();
        assert!(!identity.is_alive());
        assert_eq!(identity.signal(Signal::Kill), Err(NotSignalled::Ended));
    }
}
