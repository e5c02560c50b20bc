//! The YAML document as a tree that knows where each part of it stands.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use super::{Path, Position};

/// One part of the document. `Debug` shows no content: settings are nobody's business but their driver's.
#[derive(Clone, PartialEq)]
pub(super) struct Node {
    pub(super) at: Position,
    pub(super) content: Content,
}

/// What stands there.
#[derive(Clone, PartialEq)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    /// Infinite, or not a number; the scan refuses it.
    NonFinite,
    Text(String),
    List(Vec<Node>),
    /// In the order of the file; repeated keys are still there.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) at: Position,
    pub(super) key: String,
    pub(super) value: Node,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({} at {})", self.kind(), self.at)
    }
}

impl Node {
    /// An empty mapping.
    pub(super) const fn empty(at: Position) -> Self {
        Self {
            at,
            content: Content::Map(Vec::new()),
        }
    }

    /// What it is, in YAML's words.
    pub(super) const fn kind(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "a boolean",
            Content::Number(_) | Content::NonFinite => "a number",
            Content::Text(_) => "a text",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        }
    }

    /// The same without positions.
    pub(super) fn to_json(&self) -> Value {
        match &self.content {
            Content::Null | Content::NonFinite => Value::Null,
            Content::Bool(bool) => Value::Bool(*bool),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Content::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|e| (e.key.clone(), e.value.to_json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Follows a JSON pointer as far as the document goes: where it ended, and its path below `base`.
    ///
    /// A last step that the document does not have (a missing setting) stays in the path: it names what is missing.
    pub(super) fn locate(&self, base: &Path, pointer: &str) -> (Position, Path) {
        let (mut node, mut at, mut path) = (Some(self), self.at, base.clone());
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            node = match node.map(|n| &n.content) {
                Some(Content::Map(entries)) => {
                    path = path.key(&step);
                    entries.iter().find(|e| e.key == step).map(|e| {
                        at = e.at;
                        &e.value
                    })
                }
                Some(Content::List(items)) => {
                    let Some((index, item)) = step.parse().ok().and_then(|i: usize| Some((i, items.get(i)?))) else {
                        break;
                    };
                    path = path.index(index);
                    at = item.at;
                    Some(item)
                }
                _ => break,
            };
        }
        (at, path)
    }
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        Self {
            line: location.line(),
            column: location.column(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self {
            at: referenced.into(),
            content: value,
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping, a list, a text, a number, a boolean or nothing")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Content, E> {
        Ok(Content::Bool(bool))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Content, E> {
        Ok(Content::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Content, E> {
        Ok(Number::from_f64(number).map_or(Content::NonFinite, Content::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<Key>>()? {
            let value = map.next_value()?;
            entries.push(Entry {
                at: key.referenced.into(),
                key: key.value.0,
                value,
            });
        }
        Ok(Content::Map(entries))
    }
}

/// A key: a text, or a scalar that is written like one.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Content::deserialize(deserializer)? {
            Content::Text(text) => Ok(Self(text)),
            _ => Err(D::Error::custom(super::document::KEY_NOT_TEXT)),
        }
    }
}
