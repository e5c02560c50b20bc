//! Queues of others on the same server, with the same chains of durable steps; see `rivals/`.

use std::{path::PathBuf, process::Stdio};

use serde_json::json;
use tokio::process::Command;

use crate::{Error, Rival, Sizes, ground::Ground};

/// Those that Node runs.
const SCRIPTS: [&str; 2] = ["graphile-worker", "pg-boss"];
/// The one in Rust, and where its release build is.
const BUILT: (&str, &str) = ("awa", "awa/target/release/occ-bench-awa");

/// The programs in `directory`, where `npm install` and `cargo build --release` were done.
#[derive(Debug, Clone)]
pub struct Rivals {
    /// Where the programs and `node_modules` are.
    pub directory: PathBuf,
    /// Node.
    pub node: PathBuf,
}

impl Rivals {
    /// Measures each on a database of its own. `steps` is how many durable steps a deployment of ours takes.
    pub(crate) async fn measure(&self, ground: &Ground, sizes: &Sizes, steps: usize) -> Result<Vec<Rival>, Error> {
        let plan = json!({
            "chains": sizes.deployments,
            "steps": steps,
            "callers": sizes.callers,
            "concurrency": occ_core::work::Policy::default().concurrency,
            "samples": sizes.latencies,
            "idleSeconds": sizes.idle.as_secs(),
        });
        let mut measured = Vec::new();
        let scripts = SCRIPTS.map(|program| {
            let mut command = Command::new(&self.node);
            command.arg(format!("{program}.mjs"));
            (program, command)
        });
        let (program, path) = BUILT;
        // Absolute, because it starts in the directory.
        let path = std::path::absolute(self.directory.join(path)).map_err(|_| Error::Rival { program })?;
        let built = (program, Command::new(path));
        for (program, mut command) in scripts.into_iter().chain([built]) {
            let database = ground.database().await?;
            let ran = command
                .arg(plan.to_string())
                .current_dir(&self.directory)
                .env("DATABASE_URL", database)
                .stdin(Stdio::null())
                .stderr(Stdio::inherit())
                .kill_on_drop(true)
                .output()
                .await;
            let failed = || Error::Rival { program };
            let ran = ran.map_err(|_| failed())?;
            let line = String::from_utf8(ran.stdout).map_err(|_| failed())?;
            measured.push(serde_json::from_str(line.trim()).map_err(|_| failed())?);
        }
        Ok(measured)
    }
}
