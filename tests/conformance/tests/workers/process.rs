//! A worker's process, as its test sees it.

use std::{
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
};

use crate::child::{FILES, PLACE, ROLE};

/// Waits for a condition, within a bound for a busy machine.
pub async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..2400 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen within two minutes");
}

/// This program in a role, below `wrapper` (a program and its arguments) if it is not empty.
pub fn command(role: &str, place: &str, files: &Path, wrapper: &[&str]) -> Command {
    let own = std::env::current_exe().expect("this program's path");
    let mut command = match wrapper {
        [] => Command::new(own),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(own);
            command
        }
    };
    command
        .env(ROLE, role)
        .env(PLACE, place)
        .env(FILES, files)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// A running one.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&said);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lock().expect("no panic").push(line);
            }
        });
        let input = child.stdin.take();
        Self { child, input, said }
    }

    /// A worker over this database, once it is there.
    pub async fn worker(url: &str, files: &Path) -> Self {
        Self::ready("worker", url, files).await
    }

    /// The same in another role.
    pub async fn ready(role: &str, url: &str, files: &Path) -> Self {
        let worker = Self::start(command(role, url, files, &[]));
        worker.heard("ready").await;
        worker
    }

    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Waits for this line.
    pub async fn heard(&self, line: &str) {
        until(line, async || (!self.said(line).is_empty()).then_some(())).await;
    }

    /// What follows these words in the lines so far.
    pub fn said(&self, words: &str) -> Vec<String> {
        let said = self.said.lock().expect("no panic");
        let rests = said.iter().filter_map(|line| line.strip_prefix(words));
        rests.map(|rest| rest.trim().to_owned()).collect()
    }

    pub async fn tell(&mut self, order: &str) {
        let input = self.input.as_mut().expect("its input");
        input
            .write_all(format!("{order}\n").as_bytes())
            .await
            .expect("it listens");
    }

    pub async fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.id().to_string()])
            .status()
            .await;
        assert!(sent.expect("a signal").success());
    }

    /// SIGKILL, and the end that it causes.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("it is killed");
    }

    /// A clean end.
    pub async fn end(mut self) {
        drop(self.input.take());
        let ended = tokio::time::timeout(Duration::from_mins(2), self.child.wait()).await;
        assert!(ended.expect("it ends").expect("a status").success());
    }
}
