//! What these tests share: a home with the real tools, and the questions that they all ask.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use occ_e2e::{Draft, Home, Up, eventually, within};
use serde_json::Value;

/// A deployment on a busy machine of two cores: a check of the model and a gateway's start.
pub const DEPLOYMENT: Duration = Duration::from_mins(6);

/// The real tools.
#[derive(Debug, Clone)]
pub struct Tools {
    pub node: PathBuf,
    pub openclaw: PathBuf,
}

impl Tools {
    pub fn find() -> Option<Self> {
        let named = |variable| env::var_os(variable).map(PathBuf::from).filter(|path| path.is_file());
        Some(Self {
            node: named("OCC_NODE")?,
            openclaw: named("OCC_OPENCLAW")?,
        })
    }

    /// A home whose Installation gives a check the time that it takes beside other tests.
    pub fn home(&self) -> Home {
        let home = Home::bare().with("OCC_WORKER_LEASE_DURATION_MS", "2000");
        let file = home.write("installation.yaml", &installation(self));
        home.with("OCC_CONFIG_PATH", file.to_str().expect("the path is text"))
    }
}

fn installation(tools: &Tools) -> String {
    let quoted = |path: &Path| format!("{:?}", path.display().to_string());
    format!(
        "\
drivers:
  configuration: {{ id: configuration-local, driver: local }}
  iam: {{ id: iam-native, driver: native }}
  secret: {{ id: secret-local, driver: local }}
  compute:
    id: compute-process
    driver: process
    configuration:
      tools: {{ node: {node}, openclaw: {openclaw} }}
  harness:
    - id: openclaw
      driver: openclaw
      configuration: {{ probeTimeoutSeconds: 300 }}
",
        node = quoted(&tools.node),
        openclaw = quoted(&tools.openclaw),
    )
}

/// Starts a control plane, whose Namespace is then ready.
pub fn ready(home: &mut Home) -> Up {
    let up = Up::whole(home);
    eventually("the Namespace is ready", || {
        (home.json(["namespace", "show", "default"])["status"] == "ready").then_some(())
    });
    up
}

pub fn agent(home: &Home, draft: &Draft) -> Value {
    home.json(["agent", "show", &draft.name])
}

/// Where Compute keeps an Agent.
pub fn place(home: &Home, draft: &Draft) -> PathBuf {
    let namespaces = home.data().join("drivers/compute/compute-process/namespaces");
    let namespace = fs::read_dir(namespaces).unwrap().next().unwrap().unwrap().path();
    namespace.join("agents").join(&draft.agent)
}

/// A deployment's end.
pub fn over(home: &Home, draft: &Draft, revision: &str) -> Value {
    within(DEPLOYMENT, "the deployment is over", || {
        let deployment = home.deployment(draft, revision);
        deployment["progress"].is_null().then_some(deployment)
    })
}

/// The end of a deployment that works: this version is selected, and its gateway is the only one and answers.
pub fn ends_well(home: &Home, draft: &Draft, revision: &str) {
    let over = over(home, draft, revision);
    let log = home.occ(["agent", "logs", &draft.name, revision, "--lines", "20"]);
    assert_eq!(over["status"], "succeeded", "{over}\n{}", log.text());
    assert_eq!(agent(home, draft)["activeRevisionId"], revision);
    eventually("there is one gateway", || {
        (home.gateways().len() == 1 && home.supervisors().len() == 1).then_some(())
    });
    let environment = String::from_utf8_lossy(&home.gateways()[0].environment).into_owned();
    assert!(environment.contains(revision), "the gateway is another version's");
    answers(home, draft);
}

pub fn answers(home: &Home, draft: &Draft) {
    let ran = home.occ(["agent", "chat", &draft.name, "Say that you hear me."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Say that you hear me."), "{ran:?}");
}
