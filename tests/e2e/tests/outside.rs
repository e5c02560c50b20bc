//! What a stranger does: a Compute Driver in a workspace of its own, against the contract alone, and an installation that links
//! it, which is a copy of `examples/local` and one line more.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use occ_e2e::{Home, Up, binary, document, eventually};

/// This repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The manifest of an example as its copy elsewhere needs it: what the workspace gave is written out.
fn moved(example: &str, name: &str) -> String {
    let root = read("Cargo.toml");
    let mut manifest =
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n");
    let original = read(&format!("examples/{example}/Cargo.toml"));
    let (_, dependencies) = original.split_once("\n[dependencies]\n").unwrap();
    for line in dependencies.lines() {
        let plain = line
            .strip_suffix(".workspace = true")
            .map(|dependency| (dependency, ""));
        let with_features = || line.strip_suffix(" }")?.split_once(" = { workspace = true");
        let Some((dependency, features)) = plain.or_else(with_features) else {
            break;
        };
        let line = root
            .lines()
            .find(|line| line.starts_with(&format!("{dependency} = ")))
            .unwrap_or_else(|| panic!("{dependency} is not in the workspace's manifest"));
        let absolute = format!("path = \"{}/", repository().display());
        let line = line.replace("path = \"", &absolute);
        let _ = match line.strip_suffix(" }") {
            Some(table) => writeln!(manifest, "{table}{features} }}"),
            None => writeln!(manifest, "{line}"),
        };
    }
    manifest
}

/// Builds the installation in `folder`, and returns its binary.
fn build(folder: &Path) -> PathBuf {
    write(
        &folder.join("logging/Cargo.toml"),
        &moved("new-compute-driver", "logging"),
    );
    write(
        &folder.join("logging/src/lib.rs"),
        &read("examples/new-compute-driver/src/lib.rs"),
    );
    let linked = moved("local", "stranger") + "logging = { path = \"../logging\" }\n";
    write(&folder.join("stranger/Cargo.toml"), &linked);
    let main = read("examples/local/src/main.rs").replacen("use occ_", "use logging as _;\nuse occ_", 1);
    write(&folder.join("stranger/src/main.rs"), &main);
    // The same versions and the same profile: what this repository's build made can be used again.
    let root = read("Cargo.toml");
    let profiles = &root[root.find("[profile.").unwrap()..];
    let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"logging\", \"stranger\"]\n\n";
    write(&folder.join("Cargo.toml"), &format!("{workspace}{profiles}"));
    write(&folder.join("Cargo.lock"), &read("Cargo.lock"));
    let target = binary("occ").parent().unwrap().parent().unwrap().to_owned();
    let built = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--offline", "--package", "stranger", "--target-dir"])
        .arg(&target)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("debug/stranger")
}

#[test]
fn a_compute_from_outside_the_workspace_is_linked_and_drives_an_agent() {
    let lines = read("examples/new-compute-driver/src/lib.rs").lines().count();
    assert!(lines < 100, "it takes {lines} lines");

    let folder = tempfile::tempdir().unwrap();
    let mut home = Home::new().running(build(folder.path()));
    let drivers = home.json(["drivers"]);
    let linked = drivers.as_array().unwrap();
    assert!(linked.iter().any(|driver| driver["driver"] == "logging"), "{drivers}");

    let stock = read("tests/e2e/fixture/stranger.yaml");
    let file = home.write("installation.yaml", &stock).display().to_string();
    let up = Up::start(&home, ["--config", &file]);
    home.set("OCC_API", up.api());
    eventually("the Namespace is ready", || {
        (home.json(["namespace", "show", "default"])["status"] == "ready").then_some(())
    });
    let draft = home.draft("one", &document("http://127.0.0.1:9/v1"), "sk-outside-0123456789", &[]);
    let revision = home.deploy(&draft);
    let over = eventually("the deployment is over", || {
        let deployment = home.deployment(&draft, &revision);
        deployment["progress"].is_null().then_some(deployment)
    });
    assert_eq!(over["status"], "succeeded", "{over}");
    home.json(["agent", "stop", &draft.name]);
    eventually("the Agent is stopped", || {
        home.json(["agent", "show", &draft.name])["activeRevisionId"]
            .is_null()
            .then_some(())
    });
    home.json(["agent", "delete", &draft.name]);
    eventually("the Agent is gone", || {
        home.json(["agent", "list"]).as_array()?.is_empty().then_some(())
    });
    up.stop();
    let log = fs::read_to_string(home.log()).unwrap();
    for call in ["ensure namespace", "prepare", "activate", "stop", "delete agent"] {
        assert!(log.contains(&format!("logging: {call}")), "{call} is not in\n{log}");
    }
}
