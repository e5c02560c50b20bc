//! The secrets of one launch, from the pipe to the processes that need them.

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
};

use occ_core::secret_value::SecretValue;
use zeroize::Zeroizing;

use crate::spec::{EnvSource, Environment, LaunchSpec};

/// Longest text on standard input, in bytes: 64 values of 64 KiB with every byte escaped.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Values by slot key.
#[derive(Debug, Clone, Default)]
pub struct Secrets(BTreeMap<String, SecretValue>);

/// Secrets that cannot be used. Never holds a value.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSecrets {
    /// Standard input could not be read.
    #[error("standard input cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// It is not one JSON object of texts, or too long.
    #[error("standard input is not a JSON object from slot key to value")]
    Malformed,
    /// A secret that the spec names is not there.
    #[error("the secret {0:?} is not among those on standard input")]
    Missing(String),
    /// A value cannot be the value of an environment variable.
    #[error("the secret {0:?} contains NUL")]
    Nul(String),
}

impl Secrets {
    /// Reads the whole stream; an empty one is no secrets.
    pub fn read(stream: impl io::Read) -> Result<(Self, Zeroizing<Vec<u8>>), InvalidSecrets> {
        let mut text = Zeroizing::new(Vec::new());
        stream
            .take(MAX_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(InvalidSecrets::Unreadable)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(InvalidSecrets::Malformed);
        }
        if text.is_empty() {
            return Ok((Self::default(), text));
        }
        let values: BTreeMap<String, String> = serde_json::from_slice(&text).map_err(|_| InvalidSecrets::Malformed)?;
        let secrets = values
            .into_iter()
            .map(|(key, value)| (key, SecretValue::from(value)))
            .collect();
        Ok((Self(secrets), text))
    }

    /// Checks that every secret of the spec is there and can be delivered.
    pub fn check(&self, spec: &LaunchSpec) -> Result<(), InvalidSecrets> {
        for key in spec.secret_keys() {
            let value = self.0.get(key).ok_or_else(|| InvalidSecrets::Missing(key.to_owned()))?;
            if value.expose().contains(&0) {
                return Err(InvalidSecrets::Nul(key.to_owned()));
            }
        }
        Ok(())
    }

    /// Every value.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(SecretValue::expose_str)
    }

    /// The value of one variable.
    pub fn resolve<'a>(&'a self, source: &'a EnvSource) -> Option<&'a str> {
        match source {
            EnvSource::Text(text) => Some(text),
            EnvSource::Secret(key) => self.0.get(key).and_then(SecretValue::expose_str),
        }
    }

    /// A whole environment with its values. Goes into an [`Order`](crate::keep::wire::Order), which overwrites it.
    pub fn environment(&self, environment: &Environment) -> BTreeMap<String, String> {
        environment
            .iter()
            .filter_map(|(name, source)| Some((name.clone(), self.resolve(source)?.to_owned())))
            .collect()
    }
}
