//! The Installation of the stock binary: everything on this machine, for one user.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{InstallationError, InstallationFile};

/// The Installation file of the stock binary as text, for people to edit.
///
/// `tools` are the programs and packages that workloads need (`node`, `openclaw`), by name, with their absolute paths; they
/// become `drivers.compute.configuration.tools`.
pub fn stock_yaml(tools: &BTreeMap<String, String>) -> String {
    let mut rendered = String::new();
    for (name, path) in tools {
        let _ = write!(rendered, "\n        {}: {}", quoted(name), quoted(path));
    }
    let tools = if rendered.is_empty() { " {}" } else { &rendered };
    format!(
        "\
# The Installation: one driver of each kind, and its settings.
# `occ drivers` lists what this binary has linked. Secrets have no place in this file.

logging:
  level: info # debug, info, warn or error

drivers:
  # Where Configuration documents are kept.
  configuration:
    id: configuration-local
    driver: local

  # Who may do what.
  iam:
    id: iam-native
    driver: native

  # Where secret values are kept.
  secret:
    id: secret-local
    driver: local

  # Where workloads run: as processes of this user.
  compute:
    id: compute-process
    driver: process
    configuration:
      # Programs and packages that workloads need, with their paths.
      tools:{tools}

  # What runs agents.
  harness:
    - id: openclaw
      driver: openclaw
"
    )
}

impl InstallationFile {
    /// The Installation of the stock binary when no file is given: [`stock_yaml`], read.
    pub fn stock(tools: &BTreeMap<String, String>) -> Result<Self, InstallationError> {
        Self::parse(&stock_yaml(tools), "built-in installation")
    }
}

/// The text as a double-quoted YAML scalar.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // What YAML does not count as printable, and the line breaks that it would fold.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
