//! A place in a native document: what is there, and its JSON pointer.

use occ_core::{driver::DocumentProblem, resource::Document};
use serde_json::Value;

use crate::message;

/// What is at a place. Objects are told apart because the document itself is one.
#[derive(Debug, Clone, Copy)]
enum Node<'a> {
    Absent,
    Object(&'a Document),
    Other(&'a Value),
}

impl<'a> From<Option<&'a Value>> for Node<'a> {
    fn from(value: Option<&'a Value>) -> Self {
        match value {
            None => Self::Absent,
            Some(Value::Object(object)) => Self::Object(object),
            Some(other) => Self::Other(other),
        }
    }
}

/// A place in a document.
#[derive(Debug, Clone)]
pub struct Place<'a> {
    node: Node<'a>,
    pointer: String,
}

impl<'a> Place<'a> {
    pub fn root(document: &'a Document) -> Self {
        Self {
            node: Node::Object(document),
            pointer: String::new(),
        }
    }

    /// The problem at this place.
    pub fn problem(&self, message: &'static str) -> DocumentProblem {
        DocumentProblem {
            pointer: self.pointer.clone(),
            message,
        }
    }

    fn below(&self, key: &str, value: Option<&'a Value>) -> Self {
        let key = key.replace('~', "~0").replace('/', "~1");
        Self {
            node: value.into(),
            pointer: format!("{}/{key}", self.pointer),
        }
    }

    /// The member `key` of the object here. Nothing is below nothing; below another value is a problem.
    pub fn get(&self, key: &str) -> Result<Self, DocumentProblem> {
        Ok(self.below(key, self.object()?.and_then(|object| object.get(key))))
    }

    /// The member below several keys.
    pub fn path(&self, keys: &[&str]) -> Result<Self, DocumentProblem> {
        keys.iter().try_fold(self.clone(), |place, key| place.get(key))
    }

    pub const fn exists(&self) -> bool {
        !matches!(self.node, Node::Absent)
    }

    pub fn object(&self) -> Result<Option<&'a Document>, DocumentProblem> {
        match self.node {
            Node::Absent => Ok(None),
            Node::Object(object) => Ok(Some(object)),
            Node::Other(_) => Err(self.problem(message::OBJECT)),
        }
    }

    /// The members of the object here, with their names.
    pub fn members(&self) -> Result<Vec<(&'a str, Self)>, DocumentProblem> {
        let members = self.object()?.into_iter().flatten();
        let mut members: Vec<_> = members
            .map(|(key, value)| (key.as_str(), self.below(key, Some(value))))
            .collect();
        // By key, also where some crate of the program lets `serde_json` keep the order of insertion.
        members.sort_unstable_by_key(|(key, _)| *key);
        Ok(members)
    }

    /// The items of the list here.
    pub fn items(&self) -> Result<Vec<Self>, DocumentProblem> {
        match self.node {
            Node::Absent => Ok(Vec::new()),
            Node::Other(Value::Array(items)) => {
                let items = items.iter().enumerate();
                Ok(items
                    .map(|(index, item)| self.below(&index.to_string(), Some(item)))
                    .collect())
            }
            _ => Err(self.problem(message::LIST)),
        }
    }

    pub fn text(&self) -> Result<Option<&'a str>, DocumentProblem> {
        match self.node {
            Node::Absent => Ok(None),
            Node::Other(Value::String(text)) => Ok(Some(text)),
            _ => Err(self.problem(message::TEXT)),
        }
    }

    pub fn boolean(&self) -> Result<Option<bool>, DocumentProblem> {
        match self.node {
            Node::Absent => Ok(None),
            Node::Other(Value::Bool(value)) => Ok(Some(*value)),
            _ => Err(self.problem(message::BOOLEAN)),
        }
    }

    pub fn port(&self) -> Result<Option<u64>, DocumentProblem> {
        match self.node {
            Node::Absent => Ok(None),
            Node::Other(value) => match value.as_u64() {
                Some(port @ 1..=65_535) => Ok(Some(port)),
                _ => Err(self.problem(message::PORT)),
            },
            Node::Object(_) => Err(self.problem(message::PORT)),
        }
    }

    /// The text here, if it is one; whatever else it is, is none.
    pub const fn as_text(&self) -> Option<&'a str> {
        match self.node {
            Node::Other(Value::String(text)) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Everything directly below, of objects and lists.
    pub fn children(&self) -> Vec<(Option<&'a str>, Self)> {
        match self.node {
            Node::Object(object) => object
                .iter()
                .map(|(key, value)| (Some(key.as_str()), self.below(key, Some(value))))
                .collect(),
            Node::Other(Value::Array(items)) => {
                let items = items.iter().enumerate();
                items
                    .map(|(index, item)| (None, self.below(&index.to_string(), Some(item))))
                    .collect()
            }
            Node::Absent | Node::Other(_) => Vec::new(),
        }
    }
}
