//! The real supervisor.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::SystemTime,
};

/// The supervisor's program, built when it is older than its sources: a test of another package does not build it.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test
            .parent()
            .and_then(Path::parent)
            .expect("tests are built into target/<profile>/deps");
        let program = profile.join("occ-runtime");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let newest = newest(&sources.join("harnesses/runtime/src")).max(newest(&sources.join("occ-core/src")));
        let built = fs::metadata(&program).and_then(|found| found.modified()).ok();
        if built < newest {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args([
                "build",
                "--quiet",
                "--package",
                "occ-runtime",
                "--features",
                "supervisor",
                "--bin",
                "occ-runtime",
            ]);
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(
                cargo.current_dir(&sources).status().unwrap().success(),
                "the supervisor does not build"
            );
        }
        program
    })
}

fn newest(path: &Path) -> Option<SystemTime> {
    let found = fs::metadata(path).ok()?;
    if !found.is_dir() {
        return found.modified().ok();
    }
    fs::read_dir(path)
        .ok()?
        .flatten()
        .filter_map(|entry| newest(&entry.path()))
        .max()
}
