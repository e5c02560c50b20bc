//! A user's home: where a control plane keeps everything, and the commands that the user runs.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File, Permissions},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Process, processes};

/// A binary of this workspace, beside the test's own.
///
/// # Panics
/// When it was not built.
pub fn binary(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own program");
    // target/<profile>/deps/<test>
    let found = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    found.unwrap_or_else(|| {
        panic!("{name} is not built: run ./test e2e, or cargo build -p occ-example-local -p occ-runtime -p occ-test-support --bins")
    })
}

/// What a command did.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
}

impl Ran {
    /// Its output as JSON.
    ///
    /// # Panics
    /// When it failed, or its output is something else.
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Its output and its complaints together.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// A home that is gone with its value.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
    program: PathBuf,
    variables: BTreeMap<String, String>,
    /// All that commands printed, for whoever looks for secrets in it.
    transcript: Mutex<String>,
}

impl Home {
    /// A home on a machine that has the tools, or what passes for them: they exist, and fail when they are run.
    ///
    /// # Panics
    /// When the machine has no temporary directory.
    pub fn new() -> Self {
        let home = Self::bare();
        for tool in ["node", "openclaw.mjs"] {
            let path = home.path().join(tool);
            fs::write(&path, "#!/bin/sh\nexit 3\n").expect("the home can be written");
            fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("the home can be written");
        }
        let path = |tool| home.path().join(tool).display().to_string();
        let (node, openclaw) = (path("node"), path("openclaw.mjs"));
        home.with("OCC_NODE", &node).with("OCC_OPENCLAW", &openclaw)
    }

    /// A home on a machine with a stand-in for Node and OpenClaw that is ready in a moment.
    ///
    /// # Panics
    /// When the machine has no temporary directory.
    pub fn quick() -> Self {
        let home = Self::new();
        fs::write(home.path().join("node"), include_str!("../fixture/openclaw.py")).expect("the home can be written");
        home
    }

    /// A home on a machine that has none of the tools.
    ///
    /// # Panics
    /// When the machine has no temporary directory.
    pub fn bare() -> Self {
        let dir = tempfile::tempdir().expect("there is a temporary directory");
        let variables = [
            ("HOME", dir.path().display().to_string()),
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("OCC_DATA_DIR", dir.path().join("data").display().to_string()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        Self {
            dir,
            program: binary("occ"),
            variables,
            transcript: Mutex::default(),
        }
    }

    /// The same with another variable in the user's environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.set(name, value);
        self
    }

    /// The same with another installation's binary as its `occ`.
    #[must_use]
    pub fn running(mut self, program: PathBuf) -> Self {
        self.program = program;
        self
    }

    /// Changes a variable of the user's environment.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// The home itself.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where the control plane keeps everything.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Writes a file into the home.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).expect("the home can be written");
        path
    }

    /// `occ` with this home's environment, and no other.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .envs(&self.variables)
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs `occ` to its end.
    pub fn occ<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.run(self.command(arguments), None)
    }

    /// Runs `occ` with JSON output, which must succeed.
    ///
    /// # Panics
    /// When it fails.
    pub fn json<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Value {
        let mut command = self.command(arguments);
        command.args(["--output", "json"]);
        self.run(command, None).json()
    }

    /// Runs `occ` with something on its standard input.
    pub fn pipe<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &str) -> Ran {
        self.run(self.command(arguments), Some(input))
    }

    fn run(&self, mut command: Command, input: Option<&str>) -> Ran {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.spawn().expect("occ can be started");
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            // A command that wants none of it may have ended already.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().expect("occ can be waited for");
        let text = |bytes| String::from_utf8(bytes).expect("occ prints UTF-8");
        let ran = Ran {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        };
        if let Ok(mut transcript) = self.transcript.lock() {
            *transcript += &ran.text();
        }
        ran
    }

    /// All that the commands printed so far, and what every `occ up` of this home logged.
    pub fn transcript(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        self.transcript.lock().map(|text| text.clone()).unwrap_or_default() + &log
    }

    /// The log of every `occ up` of this home.
    pub fn log(&self) -> PathBuf {
        self.path().join("up.log")
    }

    /// A file to append that log to.
    pub(crate) fn open_log(&self) -> File {
        let log = File::options().create(true).append(true).open(self.log());
        log.expect("the home can be written")
    }

    /// The gateways of this home's Agents.
    pub fn gateways(&self) -> Vec<Process> {
        let mut all = self.processes();
        all.retain(Process::is_gateway);
        all
    }

    /// The supervisors of this home's Agents.
    pub fn supervisors(&self) -> Vec<Process> {
        let mut all = self.processes();
        all.retain(|process| process.is_called(&["occ-runtime", "supervise"]));
        all
    }

    /// Every process of this home but its control planes and its clients: what a workload runs.
    pub fn workload(&self) -> Vec<Process> {
        // By its arguments: the program of a process shows another path once a build has replaced it.
        let occ = self.program.display().to_string();
        let mut all = self.processes();
        all.retain(|process| !process.is_called(&[&occ]));
        all
    }

    /// Every process that belongs to this home: whose arguments or environment name it.
    pub fn processes(&self) -> Vec<Process> {
        let mut all = processes();
        all.retain(|process| process.names(self.path()));
        all
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Home {
    /// Workloads outlive their control plane by design; a test that failed must not leave one behind.
    fn drop(&mut self) {
        // The supervisor's end is its tree's end; a second look finds what began meanwhile.
        for _ in 0..2 {
            for process in self.processes() {
                process.kill();
            }
        }
    }
}
