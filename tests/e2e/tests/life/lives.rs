//! One Agent, from its first deployment to its deletion.

use std::{fs, net::TcpStream, path::Path};

use occ_e2e::{Draft, Home, Model, Up, document, eventually, find, id, processes, within};
use occ_test_support::model_server::{Authorization, Behaviour};

use crate::scene::{DEPLOYMENT, Tools, agent, answers, ends_well, place, ready};

const KEY: &str = "sk-canary-6f0b5f0d9c2e4a7b";
const BOUND: &str = "bound-canary-1d8e7c6b5a493827";

pub fn from_the_first_deployment_to_the_deletion(tools: &Tools) {
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let mut home = tools.home();
    let up = ready(&mut home);
    let draft = drafted(&home, &model);
    first_deployment(&home, &draft);
    assert!(
        model
            .requests()
            .iter()
            .all(|request| request.authorization == Authorization::Matches),
        "the model saw the key and no other"
    );
    keeps_its_secrets(&home, &draft, &tools.node);

    // The control plane is killed, and the Agent does not notice.
    let gateway = home.gateways().remove(0);
    up.kill();
    let up = Up::whole(&mut home);
    answers(&home, &draft);
    assert!(gateway.lives());

    stops_and_keeps(&home, &draft);
    second_deployment(&home, &draft);
    deletes(&home, &draft);
    keeps_no_canary(&home, &[]);
    up.stop();
}

/// The Agent has a model key, a bound Secret, and initial files.
fn drafted(home: &Home, model: &Model) -> Draft {
    assert_eq!(home.pipe(["secret", "create", "one"], KEY).code, Some(0));
    assert_eq!(home.pipe(["secret", "create", "bound"], BOUND).code, Some(0));
    let file = home
        .write("document.json", &document(&model.base_url()).to_string())
        .display()
        .to_string();
    let configuration = home.json(["configuration", "create", &file, "--bind", "TEAM_TOKEN=bound"]);
    home.write("agents.md", "You are the first text.\n");
    home.write("user.md", "");
    let files = [
        "--workspace-file",
        "AGENTS.md=agents.md",
        "--workspace-file",
        "USER.md=user.md",
    ];
    let draft = home.agent("one", id(&configuration), &files);
    let role = home.json(["role", "create", "--permission", "secret:operate"]);
    home.json([
        "access-binding",
        "create",
        "--agent",
        "one",
        "--role",
        id(&role),
        "--resource",
        "secret:bound",
    ]);
    draft
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The initial files are there when the gateway starts.
fn first_deployment(home: &Home, draft: &Draft) {
    let revision = home.deploy(draft);
    within(DEPLOYMENT, "a gateway runs", || home.gateways().pop());
    let workspace = place(home, draft).join("workspace");
    assert_eq!(text(&workspace.join("AGENTS.md")), "You are the first text.\n");
    assert_eq!(text(&workspace.join("USER.md")), "");
    ends_well(home, draft, &revision);
    assert_eq!(home.json(["revision", "show", "one"])["revision"], 1);
    let checks = home.json(["agent", "diagnostics", "one"]);
    let well = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .all(|check| check["status"] == "succeeded");
    assert!(well, "{checks}");
}

/// No secret is in a file, an argument, an answer, a log or the environment of anything but the harness.
fn keeps_its_secrets(home: &Home, draft: &Draft, node: &Path) {
    for question in [
        &["agent", "logs", "one", "--lines", "1000", "--output", "json"][..],
        &["secret", "show", "one", "--output", "json"],
        &["revision", "show", "one", "--output", "json"],
        &["configuration", "show", &draft.configuration, "--output", "json"],
        &["agent", "gateway", "one", "--output", "json"],
    ] {
        assert_eq!(home.occ(question).code, Some(0));
    }
    let password = place(home, draft).join("credentials/gateway-password");
    keeps_no_canary(home, &[&password]);
    let canaries = canaries(home, &[&password]);
    let node = node.canonicalize().expect("node exists");
    let mut harness = 0;
    for process in processes() {
        for canary in &canaries {
            let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(canary);
            assert!(
                !holds(&process.arguments),
                "an argument of {} holds a secret",
                process.program.display()
            );
            if holds(&process.environment) {
                assert_eq!(
                    process.program, node,
                    "only the harness needs a secret in its environment"
                );
                harness += 1;
            }
        }
    }
    assert!(
        harness >= 3,
        "the harness has its key, its password and its bound Secret"
    );
}

fn canaries(home: &Home, files: &[&Path]) -> Vec<String> {
    let files = files.iter().map(|path| text(path).trim().to_owned());
    let administrator = text(&home.data().join("admin.key")).trim().to_owned();
    [KEY.to_owned(), BOUND.to_owned(), administrator]
        .into_iter()
        .chain(files)
        .collect()
}

fn keeps_no_canary(home: &Home, credentials: &[&Path]) {
    let canaries = canaries(home, credentials);
    for find in find(home.path(), &canaries) {
        let designed = find.file == home.data().join("admin.key") || credentials.contains(&find.file.as_path());
        assert!(
            designed && find.mode == 0o600,
            "{} holds a secret ({:o})",
            find.file.display(),
            find.mode
        );
    }
    let transcript = home.transcript();
    assert!(
        canaries.iter().all(|canary| !transcript.contains(canary)),
        "a secret was shown"
    );
}

/// No process, no open port, no route; credentials and workspace are kept, edits included.
fn stops_and_keeps(home: &Home, draft: &Draft) {
    let url = home.json(["agent", "gateway", "one"])["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let address = url.strip_prefix("http://").unwrap().to_owned();
    assert!(TcpStream::connect(&address).is_ok());
    fs::write(place(home, draft).join("workspace/AGENTS.md"), "You are an edit.\n").unwrap();
    fs::write(place(home, draft).join("workspace/notes.txt"), "kept\n").unwrap();
    let stopped = home.json(["agent", "stop", "one", "--wait"]);
    assert!(stopped["activeRevisionId"].is_null());
    eventually("nothing runs", || home.workload().is_empty().then_some(()));
    assert!(TcpStream::connect(&address).is_err(), "the port is closed");
    assert_eq!(
        home.occ(["agent", "gateway", "one"]).code,
        Some(1),
        "the route is refused"
    );
    assert!(place(home, draft).join("credentials/gateway-password").exists());
}

/// The next version finds everything as it was left.
fn second_deployment(home: &Home, draft: &Draft) {
    let password = place(home, draft).join("credentials/gateway-password");
    let before = text(&password);
    let revision = home.deploy(draft);
    ends_well(home, draft, &revision);
    assert_eq!(home.json(["revision", "show", "one"])["revision"], 2);
    let workspace = place(home, draft).join("workspace");
    assert_eq!(
        text(&workspace.join("AGENTS.md")),
        "You are an edit.\n",
        "initial files are never replayed"
    );
    assert_eq!(text(&workspace.join("notes.txt")), "kept\n");
    assert_eq!(text(&password), before);
}

/// Nothing is left of a running Agent that is deleted; what it shared with others is.
fn deletes(home: &Home, draft: &Draft) {
    let place = place(home, draft);
    assert_eq!(home.occ(["agent", "delete", "one", "--wait"]).code, Some(0));
    assert!(home.workload().is_empty());
    assert_eq!(
        fs::read_dir(place.parent().unwrap()).unwrap().count(),
        0,
        "nothing is left on disk"
    );
    assert_eq!(
        home.json(["configuration", "show", &draft.configuration])["id"],
        draft.configuration
    );
    assert_eq!(home.json(["secret", "show", "one"])["name"], "one");
    let again = home.agent("one", &draft.configuration, &[]);
    assert_ne!(again.agent, draft.agent);
    assert!(agent(home, &again)["activeRevisionId"].is_null());
}
