//! This program again as `occ`, and what a client asks of it.

use std::{fs, path::PathBuf, process::Stdio, sync::Mutex, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, Command},
};

const OCC: &str = "OCC_TRACES_TEST_IS_OCC";
const MODEL_KEY: &str = "canary-model-key-0123456789";
const BINDING: &str = "canary-bound-secret-0123456789";

/// Whether this process is to be `occ`.
pub fn is_occ() -> bool {
    std::env::var_os(OCC).is_some()
}

/// Waits for a condition, within a bound for a busy machine.
pub async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..1200 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen within a minute");
}

const INSTALLATION: &str = "\
drivers:
  configuration: { id: configuration-local, driver: local }
  iam: { id: iam-native, driver: native }
  secret: { id: secret-local, driver: local }
  compute: { id: compute-logging, driver: logging, configuration: {} }
  harness:
    - { id: openclaw, driver: openclaw }
";

/// A control plane's directory, and where its processes send their traces.
pub struct Plane {
    directory: TempDir,
    endpoint: Option<String>,
    queue: &'static str,
    client: reqwest::Client,
    key: Mutex<String>,
}

/// An Agent that can be deployed.
pub struct Agent {
    pub id: String,
    namespace: String,
}

/// A running `occ up`.
pub struct Up {
    child: Child,
    api: String,
}

impl Up {
    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.start_kill().expect("it runs");
    }

    /// SIGTERM, and a clean end.
    pub async fn stop(mut self) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await;
        assert!(sent.expect("a signal").success());
        let ended = tokio::time::timeout(Duration::from_mins(1), self.child.wait()).await;
        let status = ended.expect("it ends").expect("a status");
        assert!(status.success(), "{status:?}");
    }
}

impl Plane {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("installation.yaml"), INSTALLATION).expect("it is written");
        Self {
            directory,
            endpoint: None,
            queue: "2048",
            client: client(),
            key: Mutex::default(),
        }
    }

    /// The same, with a collector.
    pub fn exporting_to(mut self, endpoint: &str) -> Self {
        self.endpoint = Some(endpoint.to_owned());
        self
    }

    /// The same, with room for so few spans that wait for the collector.
    pub fn with_short_queue(mut self) -> Self {
        self.queue = "16";
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// All that the processes logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).expect("a log")
    }

    /// What no span may hold.
    pub fn secrets(&self) -> Vec<String> {
        let key = self.key.lock().expect("no panic").clone();
        vec![key, MODEL_KEY.to_owned(), BINDING.to_owned()]
    }

    /// Starts `occ up` as this service, and waits until it says that it is there.
    pub async fn up(&self, service: &str, arguments: &[&str]) -> Up {
        let log = fs::File::options().create(true).append(true).open(self.path("log"));
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        command
            .env_clear()
            .envs([(OCC, "1"), ("PATH", "/usr/bin:/bin"), ("OTEL_SERVICE_NAME", service)])
            // Soon enough for a test that waits for it.
            .envs([
                ("OTEL_BSP_SCHEDULE_DELAY", "50"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "x-canary=1"),
            ])
            .env("OTEL_BSP_MAX_QUEUE_SIZE", self.queue)
            .env("HOME", self.directory.path())
            .args(["up", "--output", "json", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(self.path("data"))
            .arg("--config")
            .arg(self.path("installation.yaml"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log.expect("a log"))
            .kill_on_drop(true);
        if let Some(endpoint) = &self.endpoint {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        }
        let mut child = command.spawn().expect("it starts");
        let mut output = child.stdout.take().expect("its output");
        let mut text = Vec::new();
        let said: Value = loop {
            let read = output.read_buf(&mut text).await.expect("its output");
            assert!(read > 0, "it ended: {}", self.log());
            if let Ok(said) = serde_json::from_slice(&text) {
                break said;
            }
        };
        if let Some(file) = said["keyFile"].as_str() {
            let key = fs::read_to_string(file).expect("the key").trim().to_owned();
            *self.key.lock().expect("no panic") = key;
        }
        let api = said["api"].as_str().unwrap_or_default().to_owned();
        Up { child, api }
    }

    async fn ask(
        &self,
        up: &Up,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> (u16, Value) {
        let key = self.key.lock().expect("no panic").clone();
        let method = method.parse().expect("a method");
        let mut request = self
            .client
            .request(method, format!("{}{path}", up.api))
            .header("x-api-key", key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let body: Value = response.json().await.expect("JSON");
        (status, body["data"].clone())
    }

    async fn made(&self, up: &Up, path: &str, body: Value) -> String {
        let (status, data) = self.ask(up, "POST", path, Some(body), &[]).await;
        assert_eq!(status, 201, "{path}: {data}");
        data["id"].as_str().expect("an id").to_owned()
    }

    /// Makes an Agent, once its Namespace is ready.
    pub async fn agent(&self, up: &Up) -> Agent {
        let namespace = until("a Namespace", async || {
            let (_, all) = self.ask(up, "GET", "/namespaces", None, &[]).await;
            (all[0]["status"] == "ready").then(|| all[0]["id"].as_str().expect("an id").to_owned())
        })
        .await;
        let base = format!("/namespaces/{namespace}");
        let secret = json!({ "name": "model", "value": MODEL_KEY });
        let secret = self.made(up, &format!("{base}/secrets"), secret).await;
        let bound = json!({ "name": "bound", "value": BINDING });
        let bound = self.made(up, &format!("{base}/secrets"), bound).await;
        let binding = |id: &str| json!({ "source": { "kind": "secret", "namespaceId": namespace, "id": id } });
        let configuration = json!({
            "kind": "agent", "values": document(), "secretBindings": { "TOKEN": binding(&bound) },
        });
        let configuration = self.made(up, &format!("{base}/configurations"), configuration).await;
        let agent = json!({
            "name": "triage", "configurationId": configuration,
            "executionMode": "embedded",
            "harnessAuth": { "method": "api_key", "source": { "kind": "secret", "namespaceId": namespace, "id": secret } },
        });
        let (status, agent) = self.ask(up, "POST", &format!("{base}/agents"), Some(agent), &[]).await;
        assert_eq!(status, 201, "{agent}");
        let role = json!({ "permissions": [{ "action": "operate", "kind": "secret" }] });
        let role = self.made(up, &format!("{base}/iam/roles"), role).await;
        for secret in [secret, bound] {
            let access = json!({
                "principalId": agent["servicePrincipalId"], "roleId": role,
                "resource": { "kind": "secret", "id": secret },
            });
            self.made(up, &format!("{base}/iam/access-bindings"), access).await;
        }
        let id = agent["id"].as_str().expect("an id").to_owned();
        Agent { id, namespace }
    }

    /// Admits a version, and says which.
    pub async fn deploy(&self, up: &Up, agent: &Agent, headers: &[(&str, &str)]) -> String {
        let path = format!("/namespaces/{}/agents/{}/deploy", agent.namespace, agent.id);
        let (status, data) = self.ask(up, "POST", &path, None, headers).await;
        assert_eq!(status, 202, "{data}");
        data["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until it is active.
    pub async fn succeeded(&self, up: &Up, agent: &Agent, revision: &str) {
        let path = format!(
            "/namespaces/{}/agents/{}/deployments/{revision}",
            agent.namespace, agent.id
        );
        until("the deployment", async || {
            let (status, data) = self.ask(up, "GET", &path, None, &[]).await;
            assert_eq!(status, 200, "{data}");
            assert_ne!(data["status"], "failed", "{data}");
            (data["status"] == "succeeded").then_some(())
        })
        .await;
    }

    /// So many requests, one after another.
    pub async fn ask_often(&self, up: &Up, count: usize) {
        for _ in 0..count {
            let (status, _) = self.ask(up, "GET", "/namespaces", None, &[]).await;
            assert_eq!(status, 200);
        }
    }
}

fn client() -> reqwest::Client {
    static CLIENT: std::sync::OnceLock<()> = std::sync::OnceLock::new();
    CLIENT.get_or_init(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// A native document with one provider, which is never asked.
fn document() -> Value {
    json!({
        "gateway": {
            "mode": "local",
            "auth": {
                "mode": "password",
                "password": { "source": "env", "provider": "default", "id": "OPENCLAW_GATEWAY_PASSWORD" },
            },
            "http": { "endpoints": { "chatCompletions": { "enabled": true } } },
        },
        "agents": {
            "defaults": {
                "model": "openai/gpt-5",
                "skipBootstrap": true,
                "models": { "openai/gpt-5": { "agentRuntime": { "id": "openclaw" } } },
            },
        },
        "models": {
            "providers": {
                "openai": {
                    "baseUrl": "http://127.0.0.1:9/v1",
                    "api": "openai-responses",
                    "models": [{ "id": "gpt-5", "name": "gpt-5" }],
                },
            },
        },
    })
}
