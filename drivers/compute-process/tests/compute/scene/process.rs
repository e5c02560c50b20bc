//! Processes of this machine, as a test sees and ends them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Living processes whose command line holds both texts.
pub fn named(one: &str, other: &str) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid| cmdline(*pid).is_some_and(|line| line.contains(one) && line.contains(other)))
        .collect()
}

/// The process's command line; `None` when it ended, as a zombie has.
pub fn cmdline(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    (!line.is_empty()).then(|| String::from_utf8_lossy(&line).replace('\0', " "))
}

/// The process's environment, as it was when it started.
pub fn environ(pid: u32) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/environ")).unwrap()).into_owned()
}

/// The processes that this one started, or took over.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// SIGKILL.
pub fn kill(pid: u32) {
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
}

/// SIGSTOP: it stays and does nothing, whatever else it is told.
pub fn suspend(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP).unwrap();
}

/// A JSON answer of a loopback port.
pub async fn get(port: u64, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", u16::try_from(port).ok()?))
        .await
        .ok()?;
    stream
        .write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
        .await
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}
