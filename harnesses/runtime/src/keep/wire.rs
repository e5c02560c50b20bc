//! What the supervisor, the keeper and the launcher of a command say to one another: one JSON text a line, over a socket that
//! is the receiver's standard input. Its end is how each learns that the other one died.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::{spec::Limits, status::Exit};

/// Longest message, in bytes: 64 secrets of 64 KiB, escaped, fit.
pub const MESSAGE_MAX_BYTES: u64 = 48 * 1024 * 1024;

/// A command to run. Holds secrets: it has no `Debug`, and its values are overwritten when it is dropped.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    /// The directory that it starts in.
    pub working_directory: String,
    /// What it may use.
    pub limits: Limits,
    /// Locked by the keeper for as long as anything of the tree lives.
    pub tree_lock: PathBuf,
    /// How long a keeper that is told to stop by a signal waits between SIGTERM and SIGKILL, in milliseconds.
    pub grace_ms: u64,
}

impl Order {
    /// The message.
    pub fn to_line(&self) -> Zeroizing<Vec<u8>> {
        let mut line = Zeroizing::new(Vec::new());
        serde_json::to_writer(&mut *line, self).expect("an order has string keys and no failing value");
        line.push(b'\n');
        line
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        self.environment.values_mut().for_each(Zeroize::zeroize);
    }
}

/// From the supervisor to the keeper, after the order.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Request {
    /// SIGTERM to the command's group; SIGKILL to the whole tree after the grace.
    Stop {
        /// In milliseconds.
        grace_ms: u64,
    },
}

/// From the keeper to the supervisor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Report {
    /// The command runs.
    Started {
        /// Its process.
        pid: u32,
    },
    /// It could not be started, for this reason of the operating system.
    NotStarted {
        /// The error's number.
        errno: i32,
    },
    /// It ended, and nothing that it started is left.
    Ended(Exit),
}

/// Reads the one order that a stream carries.
pub fn read_order(stream: impl io::Read) -> io::Result<Order> {
    let mut line = Zeroizing::new(Vec::new());
    io::BufReader::new(stream.take(MESSAGE_MAX_BYTES)).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}
