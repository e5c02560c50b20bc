//! `occ-model-server` as the quickstart uses it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Ends the process that the test started, also when an assertion fails.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(arguments: &[&str]) -> Result<(Started, String), Box<dyn std::error::Error>> {
    start_from(arguments, Stdio::null())
}

fn start_with_stdin(arguments: &[&str]) -> Result<(Started, String), Box<dyn std::error::Error>> {
    start_from(arguments, Stdio::piped())
}

fn start_from(arguments: &[&str], stdin: Stdio) -> Result<(Started, String), Box<dyn std::error::Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_occ-model-server"));
    let mut child = command.args(arguments).stdin(stdin).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("stdout is piped")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    Ok((Started(child), line.trim().to_owned()))
}

#[tokio::test]
async fn the_first_line_says_that_it_is_a_double_and_ends_with_the_base_url() -> TestResult {
    let (_server, line) = start(&["--reply", "from the command line"])?;
    assert!(line.contains("test double"), "{line}");
    let base_url = line.rsplit(' ').next().ok_or("the line has words")?;
    let body = client()
        .post(format!("{base_url}/responses"))
        .json(&serde_json::json!({ "model": "m", "input": "hi" }))
        .send()
        .await?
        .text()
        .await?;
    assert!(body.contains("from the command line"));
    Ok(())
}

#[tokio::test]
async fn the_expected_key_is_read_from_a_file() -> TestResult {
    let mut file = tempfile::NamedTempFile::new()?;
    writeln!(file, "canary-key")?;
    let path = file.path().to_str().ok_or("a temporary path is text")?;
    let (_server, line) = start(&["--expect-key-file", path])?;
    let base_url = line.rsplit(' ').next().ok_or("the line has words")?;
    let models = |key| client().get(format!("{base_url}/models")).bearer_auth(key).send();
    assert_eq!(models("canary-key").await?.status(), 200);
    assert_eq!(models("canary-key2").await?.status(), 401);
    Ok(())
}

#[test]
fn sigterm_ends_it_with_success() -> TestResult {
    let (mut server, _) = start(&["--behaviour", "hang"])?;
    let sent = Command::new("kill")
        .args(["-TERM", &server.0.id().to_string()])
        .status()?;
    assert!(sent.success());
    assert!(server.0.wait()?.success());
    Ok(())
}

#[test]
fn a_missing_key_file_is_an_error() -> TestResult {
    let output = Command::new(env!("CARGO_BIN_EXE_occ-model-server"))
        .args(["--expect-key-file", "/nonexistent/key"])
        .output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr)?.starts_with("occ-model-server: "));
    Ok(())
}

#[test]
fn it_ends_with_its_standard_input_or_a_signal_whichever_comes_first() -> TestResult {
    let (mut server, _) = start_with_stdin(&["--end-with-stdin"])?;
    drop(server.0.stdin.take());
    assert!(server.0.wait()?.success());

    let (mut server, _) = start_with_stdin(&["--end-with-stdin"])?;
    let open = server.0.stdin.take();
    let sent = Command::new("kill")
        .args(["-TERM", &server.0.id().to_string()])
        .status()?;
    assert!(sent.success());
    assert!(server.0.wait()?.success());
    drop(open);
    Ok(())
}

/// A client. Whatever else is built beside this, it wants a TLS provider even for plain HTTP.
fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}
