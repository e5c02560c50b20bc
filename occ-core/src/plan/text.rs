//! Texts with places that only the Compute can fill.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};

/// A directory of a workload. Where it lies is the Compute's business; what survives is part of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Directory {
    /// The revision's own read-only files ([`PlannedFile`](super::PlannedFile)).
    Files,
    /// Gateway state; survives versions and stops.
    State,
    /// The Agent's workspace; survives versions and stops.
    Workspace,
    /// The component's home; survives versions and stops.
    Home,
    /// Scratch space; may vanish with the component.
    Temporary,
}

/// One part of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Segment {
    /// Itself.
    Literal(String),
    /// The path of a program or package that the Compute's settings or image provide, such as `node`.
    Tool(String),
    /// The directory that a tool's program lies in; for a package, where its other files are.
    ToolDirectory(String),
    /// The path of a directory.
    Directory(Directory),
    /// The number of the named port.
    Port(String),
}

/// A text in pieces: literals and places to fill.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(pub Vec<Segment>);

impl Text {
    /// A text without places.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![Segment::Literal(text.into())])
    }

    /// The path of a tool.
    pub fn tool(name: impl Into<String>) -> Self {
        Self(vec![Segment::Tool(name.into())])
    }

    /// The number of a port.
    pub fn port(name: impl Into<String>) -> Self {
        Self(vec![Segment::Port(name.into())])
    }

    /// The path of a directory.
    pub fn directory(directory: Directory) -> Self {
        Self(vec![Segment::Directory(directory)])
    }

    /// A path below a directory.
    pub fn path(directory: Directory, below: &str) -> Self {
        Self(vec![
            Segment::Directory(directory),
            Segment::Literal(format!("/{below}")),
        ])
    }

    /// Fills the places.
    pub fn resolve(&self, layout: &Layout) -> Result<String, Unresolved> {
        let mut out = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Literal(text) => out.push_str(text),
                Segment::Tool(name) => {
                    out.push_str(layout.tools.get(name).ok_or_else(|| Unresolved::Tool(name.clone()))?);
                }
                Segment::ToolDirectory(name) => {
                    let program = layout.tools.get(name).ok_or_else(|| Unresolved::Tool(name.clone()))?;
                    // A program without a directory is looked for in the current one.
                    out.push_str(program.rsplit_once('/').map_or(".", |(directory, _)| directory));
                }
                Segment::Directory(directory) => {
                    out.push_str(
                        layout
                            .directories
                            .get(directory)
                            .ok_or(Unresolved::Directory(*directory))?,
                    );
                }
                Segment::Port(name) => {
                    let port = layout.ports.get(name).ok_or_else(|| Unresolved::Port(name.clone()))?;
                    let _ = write!(out, "{port}");
                }
            }
        }
        Ok(out)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::literal(text)
    }
}

/// What a Compute fills the places with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    /// Paths of tools by name.
    pub tools: BTreeMap<String, String>,
    /// Paths of directories.
    pub directories: BTreeMap<Directory, String>,
    /// Numbers of ports by name.
    pub ports: BTreeMap<String, u16>,
}

/// A place that the Compute has nothing for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// No path is configured for this tool.
    #[error("no path is configured for the tool {0}")]
    Tool(String),
    /// The Compute gives the component no such directory.
    #[error("the component has no {0:?} directory")]
    Directory(Directory),
    /// The component declares no such port.
    #[error("the component has no port {0}")]
    Port(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_a_missing_one_is_named() {
        let layout = Layout {
            tools: [("node".to_owned(), "/opt/node".to_owned())].into(),
            directories: [(Directory::State, "/s".to_owned())].into(),
            ports: [("gateway".to_owned(), 8080)].into(),
        };
        assert_eq!(Text::tool("node").resolve(&layout).as_deref(), Ok("/opt/node"));
        assert_eq!(
            Text::path(Directory::State, "a/b").resolve(&layout).as_deref(),
            Ok("/s/a/b")
        );
        let beside = Text(vec![
            Segment::ToolDirectory("node".to_owned()),
            Segment::Literal("/docs".to_owned()),
        ]);
        assert_eq!(beside.resolve(&layout).as_deref(), Ok("/opt/docs"));
        assert_eq!(Text::port("gateway").resolve(&layout).as_deref(), Ok("8080"));
        assert_eq!(
            Text::tool("codex").resolve(&layout),
            Err(Unresolved::Tool("codex".to_owned()))
        );
    }
}
