//! The component's log: its output and the supervisor's own events, one line each, with secrets replaced.

mod file;
mod lines;
mod redact;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use file::LogFile;
pub use lines::Lines;
use occ_core::time::{Clock as _, SystemClock};
pub use redact::Redactor;
use serde_json::{Map, Value};

/// The log of one component; clones write to the same file.
#[derive(Clone)]
pub struct Log {
    file: Arc<Mutex<LogFile>>,
    redactor: Arc<Redactor>,
}

impl Log {
    /// A log over an open file.
    pub fn new(file: LogFile, redactor: Redactor) -> Self {
        Self {
            file: Arc::new(Mutex::new(file)),
            redactor: Arc::new(redactor),
        }
    }

    fn file(&self) -> MutexGuard<'_, LogFile> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an event of the supervisor itself (spec/drivers 8.4). Its fields hold closed words and numbers only.
    pub fn event(&self, event: &'static str, fields: Value) {
        let mut line = Map::new();
        line.insert("time".into(), SystemClock.now().to_string().into());
        line.insert("event".into(), event.into());
        if let Value::Object(fields) = fields {
            line.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        let mut file = self.file();
        file.write_line(Value::Object(line).to_string().as_bytes());
        file.flush();
    }

    /// Copies a component's output until every process that holds it has ended.
    pub async fn copy(self, mut output: impl tokio::io::AsyncRead + Unpin) {
        use tokio::io::AsyncReadExt as _;
        let mut lines = Lines::new(&self.redactor);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match output.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    let mut file = self.file();
                    lines.push(&buffer[..read], |line| file.write_line(line));
                    file.flush();
                }
            }
        }
        let mut file = self.file();
        lines.finish(|line| file.write_line(line));
        file.flush();
    }
}
