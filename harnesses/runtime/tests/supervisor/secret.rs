use std::{fs, path::Path};

use occ_runtime::{exit, spec::EnvSource};

use crate::workload::Workload;

const PASSWORD: &str = "canary-password-5b1c";
const BINDING: &str = "canary\"binding\\with\nlines-5b1c";

fn with_secrets(flags: &[&str]) -> Workload {
    let mut workload = Workload::gateway(flags);
    for (name, key) in [("PASSWORD", "gatewayPassword"), ("BOUND", "binding:BOUND")] {
        workload
            .spec
            .environment
            .insert(name.into(), EnvSource::Secret(key.into()));
    }
    workload.secrets.insert("gatewayPassword".into(), PASSWORD.into());
    workload.secrets.insert("binding:BOUND".into(), BINDING.into());
    workload
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn files_below(path: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(path).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            files_below(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

#[test]
fn secrets_reach_the_component_and_no_argument_environment_or_file() {
    let workload = with_secrets(&["say=PASSWORD"]);
    let supervisor = workload.launch();
    workload.until_ready();
    assert!(workload.get("/environment/PASSWORD").unwrap().ends_with(PASSWORD));
    assert!(workload.get("/environment/BOUND").unwrap().ends_with(BINDING));
    let keeper = Workload::keeper(&supervisor);
    for pid in [supervisor.pid, keeper.pid] {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap();
            assert!(!contains(&bytes, "canary"), "{file} of {pid}");
        }
    }
    let gateway = &workload.recorded("gateway")[0];
    assert!(!contains(
        &fs::read(format!("/proc/{}/cmdline", gateway.pid)).unwrap(),
        "canary"
    ));
    let mut files = Vec::new();
    files_below(&workload.path(""), &mut files);
    assert!(files.len() >= 5);
    for file in files {
        assert!(!contains(&fs::read(&file).unwrap(), "canary"), "{}", file.display());
    }
}

#[test]
fn a_component_s_words_are_logged_without_the_secrets_in_them() {
    let workload = with_secrets(&["say=PASSWORD"]);
    workload.launch();
    workload.until_ready();
    workload.until_logged("the value is [redacted] indeed\n");
    workload.until_logged("and again [redacted]\n");
}

#[test]
fn a_secret_that_the_launch_does_not_bring_is_named_and_nothing_is_started() {
    let mut workload = with_secrets(&[]);
    workload.secrets.remove("binding:BOUND");
    let output = workload.launch_output();
    assert_eq!(output.status.code(), Some(i32::from(exit::INVALID_SECRETS)));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("binding:BOUND") && !said.contains("canary"), "{said}");
    assert!(workload.status().is_none());
}

#[test]
fn a_value_that_no_environment_can_hold_is_refused() {
    let mut workload = with_secrets(&[]);
    workload.secrets.insert("gatewayPassword".into(), "a\0b".into());
    assert_eq!(
        workload.launch_output().status.code(),
        Some(i32::from(exit::INVALID_SECRETS))
    );
}

#[test]
fn large_secrets_arrive_whole() {
    let mut workload = with_secrets(&[]);
    let large = "\u{e9}\"".repeat(20_000);
    workload.secrets.insert("gatewayPassword".into(), large.clone());
    workload.launch();
    workload.until_ready();
    assert!(workload.get("/environment/PASSWORD").unwrap().ends_with(&large));
}

#[test]
fn the_keeper_s_memory_holds_no_secret_once_the_component_runs() {
    use std::os::unix::fs::FileExt as _;

    let workload = with_secrets(&[]);
    let supervisor = workload.launch();
    workload.until_ready();
    let keeper = Workload::keeper(&supervisor).pid;
    let Ok(memory) = fs::File::open(format!("/proc/{keeper}/mem")) else {
        eprintln!("skipped: this user may not read the memory of its own processes");
        return;
    };
    let maps = fs::read_to_string(format!("/proc/{keeper}/maps")).unwrap();
    let mut looked_at = 0;
    for line in maps
        .lines()
        .filter(|line| line.contains(" rw-p ") || line.split(' ').nth(1) == Some("rw-p"))
    {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            looked_at += 1;
            assert!(!contains(&bytes, "canary"), "{line}");
        }
    }
    assert!(looked_at >= 3, "heap, stack and data");
}
