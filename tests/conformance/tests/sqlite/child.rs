//! This program as another process: it writes until it is killed, or until there is no space left.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    sync::Arc,
};

use occ_core::store::{Store, sqlite::SqliteStore};
use tokio::process::Command;

use crate::world::{Load, World};

const ROLE: &str = "OCC_SQLITE_TEST_ROLE";
const FILE: &str = "OCC_SQLITE_TEST_FILE";

/// What the child process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Writes until it is killed.
    Write,
    /// Writes until the store refuses, says so, waits for a line, and writes once more.
    Fill,
    /// The same, but only until the store refuses.
    Stop,
}

pub fn role() -> Option<Role> {
    match std::env::var(ROLE).ok()?.as_str() {
        "write" => Some(Role::Write),
        "fill" => Some(Role::Fill),
        _ => Some(Role::Stop),
    }
}

/// This program in a role, below `wrapper` (a program and its arguments) if it is not empty.
pub fn command(role: Role, file: &Path, wrapper: &[&str]) -> Command {
    let own = std::env::current_exe().expect("this program's path");
    let mut command = match wrapper {
        [] => Command::new(own),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(own);
            command
        }
    };
    let role = match role {
        Role::Write => "write",
        Role::Fill => "fill",
        Role::Stop => "stop",
    };
    command
        .env(ROLE, role)
        .env(FILE, file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("somebody listens");
}

pub fn run(role: Role) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(act(role))
}

async fn act(role: Role) -> ExitCode {
    let file = PathBuf::from(std::env::var_os(FILE).expect("a file"));
    let store = match SqliteStore::open(&file).await {
        Ok(store) => store,
        Err(error) => {
            say(&format!("not opened: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let store: Arc<dyn Store> = Arc::new(store);
    let mut world = World::open(store).await;
    let load = if role == Role::Write { Load::Small } else { Load::Large };
    loop {
        match world.step(load).await {
            Ok(number) => say(&format!("committed {number}")),
            Err(error) => {
                say(&format!("refused {error:?}"));
                break;
            }
        }
    }
    if role == Role::Fill {
        // Reads go on while nothing can be written.
        say(&format!("read {}", world.count().await));
        std::io::stdin().read_line(&mut String::new()).expect("a line");
        match world.step(Load::Small).await {
            Ok(number) => say(&format!("committed {number}")),
            Err(error) => say(&format!("refused {error:?}")),
        }
    }
    ExitCode::SUCCESS
}
