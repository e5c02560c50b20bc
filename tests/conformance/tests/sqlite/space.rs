//! No space left.

use std::process::Command;

use occ_core::store::sqlite::{OpenError, SqliteStore};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::{
    child::{Role, command},
    crash::whole,
    subject::raw,
};

/// In a mount namespace of its own: a file system of 3 MiB, so much of it taken by a file.
const MOUNT: &str = r#"
    mount -t tmpfs -o size=3m none "$1" || exit
    head -c "$2" /dev/zero >"$1/ballast"
    shift 2
    exec "$@"
"#;

fn mounted<'a>(at: &'a str, ballast: &'a str) -> [&'a str; 9] {
    ["unshare", "-r", "-m", "sh", "-c", MOUNT, "sh", at, ballast]
}

/// Whether this machine lets a test mount something.
pub fn mountable() -> Result<(), &'static str> {
    let works = Command::new("unshare")
        .args(["-r", "-m", "mount", "-t", "tmpfs", "none", "/mnt"])
        .output();
    match works {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err("this machine lets nobody mount a file system"),
    }
}

pub async fn a_full_file_system_refuses_the_change_and_recovers() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path().to_str().expect("a path");
    let file = directory.path().join("occ.db");
    let mut child = command(Role::Fill, &file, &mounted(at, "1048576"))
        .spawn()
        .expect("the writer starts");
    let pid = child.id().expect("it runs");
    let mut input = child.stdin.take().expect("its input");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut next = async || lines.next_line().await.expect("a line").expect("the writer goes on");
    let mut committed = 0;
    let refusal = loop {
        let line = next().await;
        match line.strip_prefix("committed ") {
            Some(number) => committed = number.parse().expect("a number"),
            None => break line,
        }
    };
    assert!(committed > 3, "{refusal}");
    assert_eq!(refusal, "refused NoSpace");
    assert_eq!(next().await, format!("read {committed}"));
    // The child's file system is reached through its root.
    let inside = format!("/proc/{pid}/root{}", directory.path().display());
    std::fs::remove_file(format!("{inside}/ballast")).expect("space is made");
    input.write_all(b"\n").await.expect("it is told");
    assert_eq!(next().await, format!("committed {}", committed + 1));
    child.wait().await.expect("it ends");
}

pub async fn a_full_file_system_takes_no_new_database() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path().to_str().expect("a path");
    let file = directory.path().join("occ.db");
    // Nothing left, then room for the file's beginning, for a part of its shared memory, for a part of its log.
    for ballast in ["3145728", "3137536", "3129344", "3104768", "3000000"] {
        let output = command(Role::Stop, &file, &mounted(at, ballast))
            .output()
            .await
            .expect("it ends");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(
            text.starts_with("not opened: there is no space left"),
            "{ballast}: {text}"
        );
    }
}

pub async fn a_file_size_limit_refuses_the_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("occ.db");
    // Files of at most 2 MiB, and an error instead of a signal.
    let wrapper = ["sh", "-c", r#"trap '' XFSZ; ulimit -f 4096; exec "$@""#, "sh"];
    let output = command(Role::Stop, &file, &wrapper)
        .output()
        .await
        .expect("the writer ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.ends_with("refused Unavailable\n"), "{text}");
    let committed = i64::try_from(text.lines().count()).expect("a number") - 1;
    assert!(committed > 3, "{text}");
    // Without the limit, all that was acknowledged is there, and it goes on.
    let store = SqliteStore::open(&file).await.expect("the store opens");
    assert_eq!(whole(&mut raw(&file).await).await, committed);
    store.close().await;

    // A limit that leaves no room for the schema.
    let file = directory.path().join("small.db");
    let wrapper = ["sh", "-c", r#"trap '' XFSZ; ulimit -f 16; exec "$@""#, "sh"];
    let output = command(Role::Stop, &file, &wrapper).output().await.expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("not opened: "), "{text}");
    let opened: Result<_, OpenError> = SqliteStore::open(&file).await;
    opened.expect("what was not finished is no obstacle").close().await;
}
