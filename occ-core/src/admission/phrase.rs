//! Messages composed of fixed texts and ids, and of nothing else.

use std::fmt::{Display, Write as _};

use super::refusal::MESSAGE_MAX_CHARS;
use crate::{
    driver::{Action, ResourceRef},
    id::{AgentId, ConfigurationId, RevisionId, SecretId},
    resource::{ExecutionMode, PrincipalId},
    store::SavedField,
};

/// What may stand in a message besides fixed texts.
pub(crate) trait Sayable {
    /// Appends it.
    fn say(&self, out: &mut String);
}

macro_rules! sayable {
    ($($name:ty),*) => {$(
        impl Sayable for $name {
            fn say(&self, out: &mut String) {
                say(self, out);
            }
        }
    )*};
}
sayable!(
    AgentId,
    ConfigurationId,
    RevisionId,
    SecretId,
    PrincipalId,
    ResourceRef,
    usize,
    u64
);

impl Sayable for Action {
    fn say(&self, out: &mut String) {
        out.push_str(self.as_str());
    }
}

/// A resource that a Namespace owns, by its kind and its id.
impl Sayable for (&'static str, String) {
    fn say(&self, out: &mut String) {
        say(format_args!("{} {}", self.0, self.1), out);
    }
}

impl Sayable for SavedField {
    fn say(&self, out: &mut String) {
        out.push_str(self.as_str());
    }
}

impl Sayable for ExecutionMode {
    fn say(&self, out: &mut String) {
        out.push_str(self.as_str());
    }
}

fn say(part: impl Display, out: &mut String) {
    let _ = write!(out, "{part}");
}

/// A message in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase(String);

impl Phrase {
    /// Begins with a fixed text.
    pub(crate) fn new(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// Goes on with a fixed text.
    #[must_use]
    pub(crate) fn text(mut self, text: &'static str) -> Self {
        self.0.push_str(text);
        self
    }

    /// Goes on with an id or a number.
    #[must_use]
    pub(crate) fn id(mut self, part: &impl Sayable) -> Self {
        part.say(&mut self.0);
        self
    }

    /// Goes on with as many of `parts` as leave room for how many were left out.
    #[must_use]
    pub(crate) fn list<S: Sayable>(mut self, parts: &[S]) -> Self {
        const REST: usize = " and 4294967295 more.".len();
        for (index, part) in parts.iter().enumerate() {
            let mut next = String::from(if index == 0 { "" } else { ", " });
            part.say(&mut next);
            if self.0.chars().count() + next.chars().count() + REST > MESSAGE_MAX_CHARS {
                let _ = write!(self.0, " and {} more", parts.len() - index);
                break;
            }
            self.0.push_str(&next);
        }
        self
    }

    pub(crate) fn into_text(self) -> String {
        if self.0.chars().count() > MESSAGE_MAX_CHARS {
            self.0.chars().take(MESSAGE_MAX_CHARS).collect()
        } else {
            self.0
        }
    }
}
