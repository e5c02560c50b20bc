//! What a test's process logs.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing_subscriber::fmt::MakeWriter;

/// Everything that is logged, at every level.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// What was logged so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("no test panics while it logs").clone()
    }
}

/// Listens from now on; and whether it is the first in its process to do so. In a process of one test this is the first; among
/// others, the log of whoever came first is as good.
pub fn captured() -> (Log, bool) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone());
    let first = subscriber.try_init().is_ok();
    (log, first)
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics while it logs").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
