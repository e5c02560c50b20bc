//! What the supervisor, the keeper and the launcher of a command say to one another, over a socket that is the receiver's
//! standard input. Its end is how each learns that the other one died.

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::{spec::Limits, status::Exit};

/// Longest order, in bytes: 64 secrets of 64 KiB, escaped, fit.
const ORDER_MAX_BYTES: u64 = 48 * 1024 * 1024;
/// Longest head, in bytes.
const HEAD_MAX_BYTES: u64 = 16 * 1024;

/// What the keeper itself needs. The order follows it as so many bytes, which the keeper passes on unread.
#[derive(Debug, Serialize, Deserialize)]
pub struct Head {
    /// Length of the order.
    pub order_bytes: u64,
    /// Locked by the keeper for as long as anything of the tree lives.
    pub tree_lock: PathBuf,
    /// How long a keeper that is told to stop by a signal waits between SIGTERM and SIGKILL, in milliseconds.
    pub grace_ms: u64,
}

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
}

impl Order {
    /// The order as it travels.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(serde_json::to_vec(self).expect("an order has string keys and no failing value"))
    }

    /// Reads an order until its sender shuts its side down.
    pub fn read(stream: impl io::Read) -> io::Result<Self> {
        let mut bytes = Zeroizing::new(Vec::new());
        stream.take(ORDER_MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        self.environment.values_mut().for_each(Zeroize::zeroize);
    }
}

/// Reads a head and its order, and not a byte more. The order's bytes are never moved, so that overwriting them leaves none.
pub fn read_head(mut stream: impl io::Read) -> io::Result<(Head, Zeroizing<Vec<u8>>)> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() as u64 <= HEAD_MAX_BYTES {
        stream.read_exact(&mut byte)?;
        if byte == *b"\n" {
            break;
        }
        line.push(byte[0]);
    }
    let head: Head = serde_json::from_slice(&line)?;
    if head.order_bytes > ORDER_MAX_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let length = usize::try_from(head.order_bytes).map_err(io::Error::other)?;
    let mut order = Zeroizing::new(vec![0; length]);
    stream.read_exact(&mut order)?;
    Ok((head, order))
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
