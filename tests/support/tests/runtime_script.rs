//! `scripts/runtime.sh`, with an npm and a Python that install something small at once, fail, or hang half-way.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Counts its calls and writes what the real one would write, as far as the script looks at it.
const NPM: &str = r#"#!/bin/bash
echo "$@" >>"$FAKES/npm-calls"
while [[ $# -gt 1 ]]; do [[ $1 == --prefix ]] && into=$2; shift; done
[[ ! -e $FAKES/npm-fails ]] || { echo "npm error: no such network" >&2; exit 1; }
case $1 in
  openclaw@*) mkdir -p "$into/node_modules/openclaw"; echo >"$into/node_modules/openclaw/openclaw.mjs" ;;
  node-linux-*) mkdir -p "$into/node_modules/${1%@*}/bin"; cp "$FAKES/node" "$into/node_modules/${1%@*}/bin/node" ;;
esac
[[ ! -p $FAKES/npm-hangs ]] || { echo started >"$FAKES/npm-hangs"; exec sleep 600; }
"#;

const NODE: &str = r#"#!/bin/bash
[[ $1 == --version ]] && echo v24.19.0 || echo "OpenClaw 2026.9.6 (test)"
"#;

/// As on a machine without the `venv` module, so that the fallback is used.
const PYTHON: &str = "#!/bin/bash\necho 'No module named venv' >&2\nexit 1\n";

struct Machine {
    directory: TempDir,
}

impl Machine {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let machine = Self {
            directory: tempfile::tempdir()?,
        };
        fs::create_dir(machine.fakes())?;
        for (name, text) in [("npm", NPM), ("node", NODE), ("python3", PYTHON)] {
            executable(&machine.fakes().join(name), text)?;
        }
        Ok(machine)
    }

    fn fakes(&self) -> PathBuf {
        self.directory.path().join("fakes")
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache/occ")
    }

    fn openclaw(&self) -> PathBuf {
        self.cache()
            .join("openclaw-2026.9.6/node_modules/openclaw/openclaw.mjs")
    }

    fn ensure(&self) -> Command {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/runtime.sh");
        let mut command = Command::new("bash");
        command
            .args([
                "-c",
                r#"set -euo pipefail; . "$0"; occ_runtime_ensure; echo "$OCC_NODE"; echo "$OCC_OPENCLAW""#,
                script,
            ])
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", self.fakes().display()))
            .env("FAKES", self.fakes())
            .env("XDG_CACHE_HOME", self.directory.path().join("cache"));
        command
    }

    fn npm_calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.fakes().join("npm-calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    fn partial_folders(&self) -> std::io::Result<Vec<String>> {
        let names = fs::read_dir(self.cache())?
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        Ok(names
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .filter(|name| name.ends_with(".partial"))
            .collect())
    }
}

/// Written by another process: a file that this one has open for writing cannot be executed, and a child that another test
/// has just forked would keep it open.
fn executable(path: &Path, text: &str) -> TestResult {
    let mut install = Command::new("install")
        .args(["-m", "755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()?;
    install
        .stdin
        .take()
        .ok_or("stdin is piped")?
        .write_all(text.as_bytes())?;
    assert!(install.wait()?.success());
    Ok(())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A command in a process group of its own, which is killed with everything below it.
struct Group(Child);

impl Group {
    fn spawn(mut command: Command) -> std::io::Result<Self> {
        command
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-KILL", "--", &format!("-{}", self.0.id())])
            .status();
        let _ = self.0.wait();
    }
}

#[test]
fn both_are_installed_once_and_found_again_without_an_installer() -> TestResult {
    let machine = Machine::new()?;
    let first = machine.ensure().output()?;
    assert!(first.status.success(), "{}", stderr(&first));
    let printed = String::from_utf8(first.stdout)?;
    let paths: Vec<_> = printed.lines().map(PathBuf::from).collect();
    assert_eq!(
        paths,
        [machine.cache().join("node-24.19.0/bin/node"), machine.openclaw()]
    );
    assert!(paths.iter().all(|path| path.is_file()));
    assert!(machine.npm_calls().iter().all(|call| call.contains("--ignore-scripts")));

    fs::write(machine.fakes().join("npm-fails"), "")?;
    let second = machine.ensure().output()?;
    assert!(second.status.success(), "{}", stderr(&second));
    assert_eq!(stderr(&second), "", "nothing is done, so nothing is said");
    assert_eq!(machine.npm_calls().len(), 2, "Node and OpenClaw, once each");
    Ok(())
}

#[test]
fn a_failed_install_says_so_and_leaves_nothing() -> TestResult {
    let machine = Machine::new()?;
    fs::write(machine.fakes().join("npm-fails"), "")?;
    let output = machine.ensure().output()?;
    assert!(!output.status.success());
    assert!(stderr(&output).contains("no such network"), "npm's own words");
    assert!(stderr(&output).contains("set OCC_NODE"), "what to do");
    assert!(!machine.cache().join("node-24.19.0").exists());
    assert!(machine.partial_folders()?.is_empty());
    Ok(())
}

#[test]
fn an_install_that_is_killed_is_not_taken_for_a_complete_one() -> TestResult {
    let machine = Machine::new()?;
    let node = machine.fakes().join("node");
    let fifo = machine.fakes().join("npm-hangs");
    assert!(Command::new("mkfifo").arg(&fifo).status()?.success());
    let mut command = machine.ensure();
    command.env("OCC_NODE", &node);
    let interrupted = Group::spawn(command)?;
    let mut said = String::new();
    BufReader::new(fs::File::open(&fifo)?).read_line(&mut said)?;
    assert_eq!(said, "started\n", "npm has written its files and has not ended");
    drop(interrupted);
    fs::remove_file(&fifo)?;
    assert!(!machine.openclaw().exists());
    assert!(!machine.partial_folders()?.is_empty());

    let output = machine.ensure().env("OCC_NODE", &node).output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(machine.openclaw().is_file());
    assert!(machine.partial_folders()?.is_empty());
    assert_eq!(machine.npm_calls().len(), 2, "it was installed again");
    Ok(())
}

#[test]
fn two_at_once_install_once() -> TestResult {
    let machine = Machine::new()?;
    let both = (0..2)
        .map(|_| machine.ensure().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
        .collect::<Result<Vec<_>, _>>()?;
    for child in both {
        let output = child.wait_with_output()?;
        assert!(output.status.success(), "{}", stderr(&output));
    }
    assert_eq!(machine.npm_calls().len(), 2, "Node and OpenClaw, once each");
    Ok(())
}

#[test]
fn a_folder_without_the_program_is_installed_again() -> TestResult {
    let machine = Machine::new()?;
    fs::create_dir_all(machine.cache().join("openclaw-2026.9.6/node_modules"))?;
    let output = machine.ensure().output()?;
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(machine.openclaw().is_file());
    Ok(())
}

#[test]
fn a_node_of_another_line_is_refused() -> TestResult {
    let machine = Machine::new()?;
    for (version, accepted) in [
        ("v24.16.0", true),
        ("v24.15.9", false),
        ("v20.20.2", false),
        ("v26.1.0", false),
        ("v240.16.0", false),
        ("no", false),
    ] {
        let node = machine.fakes().join("other-node");
        executable(
            &node,
            &format!("#!/bin/bash\n[[ $1 == --version ]] && echo {version} || echo 2026.9.6\n"),
        )?;
        let output = machine.ensure().env("OCC_NODE", &node).output()?;
        assert_eq!(output.status.success(), accepted, "{version}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains("24.16 or later"), !accepted, "{version}");
    }
    Ok(())
}

#[test]
fn a_cache_that_cannot_be_written_names_the_setting() -> TestResult {
    let machine = Machine::new()?;
    fs::write(machine.directory.path().join("cache"), "a file")?;
    let output = machine.ensure().output()?;
    assert!(!output.status.success());
    assert!(stderr(&output).contains("XDG_CACHE_HOME"));
    Ok(())
}
