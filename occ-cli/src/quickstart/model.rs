//! The model behind the quickstart: the real provider's with a key, else a stand-in on loopback that says so.

use std::{env, path::PathBuf, process::Stdio, time::Duration};

use occ_core::secret_value::SecretValue;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use crate::{
    exit::{Done, Failure},
    host::DataDir,
};

/// How long the stand-in may take to say where it listens.
const START: Duration = Duration::from_secs(20);

/// A model provider, and the key that it takes.
pub(super) struct Model {
    /// Its address, as a provider's `baseUrl`.
    pub base_url: String,
    /// The model's name at the provider.
    pub name: String,
    /// The provider's key.
    pub key: SecretValue,
    /// The stand-in's process; it ends with this one, however this one ends.
    stand_in: Option<Child>,
}

impl Model {
    /// The provider with `OPENAI_API_KEY`, else the stand-in that `OCC_MODEL_SERVER` names.
    pub(super) async fn choose(data: &DataDir) -> Done<Self> {
        let name = env::var("OCC_QUICKSTART_MODEL").ok().filter(|name| !name.is_empty());
        match env::var("OPENAI_API_KEY") {
            Ok(key) if !key.is_empty() => Ok(Self {
                base_url: "https://api.openai.com/v1".to_owned(),
                name: name.unwrap_or_else(|| "gpt-5".to_owned()),
                key: key.into(),
                stand_in: None,
            }),
            _ => Self::stand_in(data, name.unwrap_or_else(|| "gpt-5".to_owned())).await,
        }
    }

    pub(super) const fn is_stand_in(&self) -> bool {
        self.stand_in.is_some()
    }

    async fn stand_in(data: &DataDir, name: String) -> Done<Self> {
        let program = env::var_os("OCC_MODEL_SERVER").map(PathBuf::from).ok_or_else(|| {
            Failure::startup(
                "no model: set OPENAI_API_KEY, or OCC_MODEL_SERVER to the path of occ-model-server; ./quickstart sets the latter",
            )
        })?;
        let key = data.stand_in_key()?;
        let mut child = Command::new(&program)
            .arg("--expect-key-file")
            .arg(data.stand_in_key_file())
            .arg("--end-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            // Ctrl-C is for the quickstart, which still needs the model until its Agent is stopped.
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::startup(format!("cannot start {}: {}", program.display(), error.kind())))?;
        let ended = || Failure::startup(format!("{} ended before it listened", program.display()));
        let stdout = child.stdout.take().ok_or_else(ended)?;
        let mut lines = BufReader::new(stdout).lines();
        let first = tokio::time::timeout(START, lines.next_line()).await;
        let line = first.ok().and_then(Result::ok).flatten().ok_or_else(ended)?;
        let base_url = line
            .split_whitespace()
            .last()
            .filter(|word| word.starts_with("http://"))
            .ok_or_else(ended)?;
        Ok(Self {
            base_url: base_url.to_owned(),
            name,
            key,
            stand_in: Some(child),
        })
    }
}
