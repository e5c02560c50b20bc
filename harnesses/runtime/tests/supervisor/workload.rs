//! A workload of the fixture under a real supervisor, in a directory of its own.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    reason::Token,
};
use occ_runtime::{
    exit::{self, Launched},
    identity::{ProcessIdentity, Signal},
    spec::{EnvSource, Files, LaunchSpec, Limits, LogPolicy, Probe, Readiness, Workspace},
    status::{State, Status},
};
use tempfile::TempDir;

/// A bound for conditions on a busy machine; no test waits it out when all is well.
const PATIENCE: Duration = Duration::from_mins(3);
pub const FIXTURE: &str = env!("CARGO_BIN_EXE_occ-runtime-fixture");
pub const RUNTIME: &str = env!("CARGO_BIN_EXE_occ-runtime");

/// Waits until something holds.
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub struct Workload {
    pub spec: LaunchSpec,
    pub secrets: BTreeMap<String, String>,
    pub port: u16,
    /// What the launcher is started through.
    wrapper: Vec<String>,
    directory: TempDir,
}

impl Workload {
    /// A gateway with these flags, without probe and workspace.
    pub fn gateway(flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = vec![FIXTURE.to_owned(), "gateway".to_owned(), port.to_string(), at("")];
        command.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let spec = LaunchSpec {
            revision_id: RevisionId::random(),
            component: Token::known("gateway"),
            command,
            environment: [("PLAIN".to_owned(), EnvSource::Text("plain".to_owned()))].into(),
            working_directory: at(""),
            requires: vec![FIXTURE.to_owned()],
            files: Files {
                status: at("status"),
                lock: at("lock"),
                log: at("log"),
            },
            log: LogPolicy::default(),
            readiness: Readiness {
                url: format!("http://127.0.0.1:{port}/readyz"),
                start_timeout_ms: 60_000,
            },
            probe: None,
            workspace: None,
            limits: Limits::default(),
            stop_grace_ms: 30_000,
            status_listen: None,
            check_only: false,
        };
        Self {
            spec,
            secrets: BTreeMap::new(),
            port,
            wrapper: Vec::new(),
            directory,
        }
    }

    /// The same, where this directory of it is a file system of 256 KiB in a mount namespace of the workload's own.
    pub fn with_little_space(mut self, name: &str) -> Self {
        const MOUNT: &str = r#"mount -t tmpfs -o size=256k none "$1" || exit; shift; exec "$@""#;
        let at = self.path(name).display().to_string();
        fs::create_dir(&at).unwrap();
        self.wrapper = ["unshare", "-r", "-m", "sh", "-c", MOUNT, "sh", &at]
            .map(str::to_owned)
            .into();
        self
    }

    /// The same with a model check whose runs behave so.
    pub fn with_probe(mut self, reader: &str, behaviours: &[&str]) -> Self {
        let mut command = vec![
            FIXTURE.to_owned(),
            "probe".to_owned(),
            self.path("").display().to_string(),
        ];
        command.extend(behaviours.iter().map(|behaviour| (*behaviour).to_owned()));
        let root = format!("{}.probe", self.spec.files.lock);
        self.spec.probe = Some(Probe {
            reader: reader.to_owned(),
            expect: [("provider", "openai"), ("model", "openai/gpt-5")]
                .map(|(k, v)| (k.into(), v.into()))
                .into(),
            command,
            environment: [("HOME", "home"), ("STATE", "state")]
                .map(|(name, place)| (name.to_owned(), EnvSource::Text(format!("{root}/{place}"))))
                .into(),
            directory: root,
            files: [("nested/settings.json".to_owned(), "{\"setting\":1}".to_owned())].into(),
            base_timeout_ms: 60_000,
            cpu_budget_ms: 0,
        });
        self
    }

    /// The same with a workspace that the fixture initializes.
    pub fn with_workspace(mut self, flags: &[&str]) -> Self {
        let templates = self.path("templates");
        fs::create_dir(&templates).unwrap();
        for name in ["AGENTS", "SOUL", "IDENTITY", "USER"] {
            fs::write(
                templates.join(format!("{name}.md")),
                format!("---\ntitle: x\n---\n\nstock {name}\n"),
            )
            .unwrap();
        }
        let workspace = self.path("workspace").display().to_string();
        let templates = templates.display().to_string();
        let mut command = vec![
            FIXTURE.to_owned(),
            "setup".to_owned(),
            workspace.clone(),
            templates.clone(),
        ];
        command.push(self.path("").display().to_string());
        command.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self.spec.workspace = Some(Workspace {
            command,
            environment: BTreeMap::new(),
            timeout_ms: 60_000,
            directory: workspace,
            templates,
            setup: None,
            namespace_id: NamespaceId::random(),
            agent_id: AgentId::random(),
        });
        self
    }

    /// A path in the workload's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The text of a file in the workload's directory; empty when there is none.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits for a text in the log, and gives the whole log.
    #[track_caller]
    pub fn until_logged(&self, text: &str) -> String {
        eventually(text, || Some(self.text("log")).filter(|log| log.contains(text)))
    }

    /// Runs `occ-runtime launch` as a Compute does.
    pub fn launch_output(&self) -> Output {
        // A file of its own: launches at once would read each other's half-written one.
        let spec = tempfile::Builder::new().tempfile_in(&self.directory).unwrap();
        let (mut file, spec) = spec.keep().unwrap();
        file.write_all(&serde_json::to_vec(&self.spec).unwrap()).unwrap();
        let mut words = self.wrapper.iter().map(String::as_str).chain([RUNTIME]);
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .args(["launch", "--spec"])
            .arg(spec)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A launch that refuses its spec ends before it reads the secrets; its exit code says why.
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(&serde_json::to_vec(&self.secrets).unwrap());
        child.wait_with_output().unwrap()
    }

    /// Launches, and says who the supervisor is.
    #[track_caller]
    pub fn launch(&self) -> ProcessIdentity {
        let output = self.launch_output();
        match exit::read(output.status.code(), &output.stdout) {
            Ok(Launched::Started(identity)) => identity,
            other => panic!(
                "{other:?}: {} {}",
                String::from_utf8_lossy(&output.stderr),
                self.text("log")
            ),
        }
    }

    pub fn status(&self) -> Option<Status> {
        Status::read(Path::new(&self.spec.files.status))
    }

    /// Waits for a status.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&Status) -> bool) -> Status {
        eventually(&format!("{what}: {:?}\n{}", self.status(), self.text("log")), || {
            self.status().filter(|s| condition(s))
        })
    }

    #[track_caller]
    pub fn until_ready(&self) -> Status {
        self.until("ready", Status::ready)
    }

    #[track_caller]
    pub fn until_held(&self) -> Status {
        self.until("held", |status| matches!(status.state, State::Held { .. }))
    }

    /// Every process of this role that the fixture recorded.
    pub fn recorded(&self, role: &str) -> Vec<ProcessIdentity> {
        let text = self.text("processes");
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix(role)?.strip_prefix(' '));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The keeper below this supervisor.
    #[track_caller]
    pub fn keeper(supervisor: &ProcessIdentity) -> ProcessIdentity {
        eventually("a keeper", || {
            let children = fs::read_dir("/proc")
                .unwrap()
                .flatten()
                .filter_map(|e| e.file_name().to_str()?.parse().ok());
            let keeper = children
                .filter(|pid| parent(*pid) == Some(supervisor.pid))
                .find(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("keep")));
            ProcessIdentity::of(keeper?).ok()
        })
    }

    /// Asks the gateway over HTTP; `None` when it does not answer.
    pub fn get(&self, path: &str) -> Option<String> {
        get(self.port, path)
    }

    /// Whether no process of the component is left: the keeper holds the lock until then.
    pub fn tree_is_gone(&self) -> bool {
        File::open(format!("{}.tree", self.spec.files.lock)).map_or(true, |file| file.try_lock().is_ok())
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        if let Some(holder) = ProcessIdentity::read(Path::new(&self.spec.files.lock)) {
            let _ = holder.signal(Signal::Kill);
            let begun = Instant::now();
            while (holder.is_alive() || !self.tree_is_gone()) && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

pub fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
