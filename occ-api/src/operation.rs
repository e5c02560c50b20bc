//! What an operation of the API is, as data.

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// What body an operation takes.
pub(crate) struct Body {
    /// At most so many bytes.
    pub limit: usize,
    /// Its schema.
    pub schema: Make,
}

pub(crate) type Make = fn(&mut SchemaGenerator) -> Schema;

/// What an operation gives.
pub(crate) enum Gives {
    /// One thing.
    One(Make),
    /// All of a list.
    List(Make),
    /// A page of a list.
    Page(Make),
    /// 204.
    Nothing,
    /// 303 to another place.
    Redirect,
    /// Server-sent events of this thing.
    Events(Make),
    /// The OpenAPI document.
    Document,
    /// The page that shows it.
    Html,
}

/// A parameter of a query.
pub(crate) struct Parameter {
    pub name: &'static str,
    pub about: &'static str,
    /// A pattern, or nothing for an integer from 1 to 1000.
    pub pattern: Option<&'static str>,
}

/// Who may call an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    /// Whoever comes.
    Anyone,
    /// Whoever is recognised.
    Recognised,
    /// A person with a session.
    Session,
}

/// One operation.
pub(crate) struct Operation {
    pub id: &'static str,
    pub method: &'static str,
    pub path: &'static str,
    pub about: &'static str,
    pub body: Option<Body>,
    pub status: u16,
    pub gives: Gives,
    pub query: &'static [Parameter],
    /// `Idempotency-Key` is taken.
    pub once: bool,
    /// `If-Match` is taken, or an `ETag` given.
    pub tagged: bool,
    /// Who may call it.
    pub callers: Callers,
    /// Statuses of its refusals, besides those that follow from what it takes.
    pub also: &'static [u16],
}

pub(crate) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

pub(crate) const fn op(
    id: &'static str,
    method: &'static str,
    path: &'static str,
    gives: Gives,
    about: &'static str,
) -> Operation {
    Operation {
        id,
        method,
        path,
        about,
        body: None,
        status: 200,
        gives,
        query: &[],
        once: false,
        tagged: false,
        callers: Callers::Recognised,
        also: &[],
    }
}

impl Operation {
    pub(crate) const fn taking(self, limit: usize, schema: Make) -> Self {
        Self {
            body: Some(Body { limit, schema }),
            ..self
        }
    }
    pub(crate) const fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }
    pub(crate) const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }
    pub(crate) const fn once(self) -> Self {
        Self { once: true, ..self }
    }
    pub(crate) const fn tagged(self) -> Self {
        Self { tagged: true, ..self }
    }
    pub(crate) const fn open(self) -> Self {
        Self {
            callers: Callers::Anyone,
            ..self
        }
    }
    pub(crate) const fn own(self) -> Self {
        Self {
            callers: Callers::Session,
            ..self
        }
    }
    pub(crate) const fn also(self, also: &'static [u16]) -> Self {
        Self { also, ..self }
    }

    /// Every status with which it may refuse, in order. What it does not name, it never answers.
    pub(crate) fn refusals(&self) -> BTreeSet<u16> {
        let mut all = BTreeSet::from([500, 503]);
        if self.callers != Callers::Anyone {
            // Any request is looked at for a query and a body that are not taken, and any caller for its grants.
            all.extend([400, 401, 403, 413]);
        }
        if self.path.contains('{') {
            all.insert(404);
        }
        if self.body.is_some() {
            all.insert(415);
        }
        if self.once {
            all.insert(409);
        }
        if self.tagged && self.method != "GET" {
            all.extend([409, 412]);
        }
        all.extend(self.also);
        all
    }
}
