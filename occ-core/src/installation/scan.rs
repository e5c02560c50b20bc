//! Checks of the whole document before anything reads a setting (spec/contracts 2.5). They fail closed.

use std::collections::BTreeMap;

use serde_json::Number;

use super::{
    Path, Position, Problem,
    credential::{self, Named},
    document::Fault,
    node::{Content, Entry, Node},
};

/// The largest integer that every JSON reader keeps exactly: 2^53 - 1.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// Keys that are refused wherever they stand, and why.
const RESERVED: &[(&str, &str)] = &[
    ("installationId", "the Installation's identity is kept in its database"),
    ("secretRef", "Secrets are bound to Configurations"),
    (
        "__proto__",
        "programs that read settings as objects take it for something else",
    ),
    (
        "constructor",
        "programs that read settings as objects take it for something else",
    ),
    (
        "prototype",
        "programs that read settings as objects take it for something else",
    ),
];

/// The first thing that has no place in an Installation file.
pub(super) fn scan(document: &Node) -> Result<(), Fault> {
    node(document, &Path::default())
}

fn node(node: &Node, path: &Path) -> Result<(), Fault> {
    let fault = |problem| {
        Err(Fault {
            at: node.at,
            path: path.clone(),
            problem,
        })
    };
    match &node.content {
        Content::Number(number) if is_safe(number) => Ok(()),
        Content::Number(_) | Content::NonFinite => fault(Problem::UnsafeNumber),
        Content::Text(text) if text.contains('\0') => fault(Problem::Nul),
        Content::Text(text) if credential::is_one(text) => fault(Problem::Credential),
        Content::Null | Content::Bool(_) | Content::Text(_) => Ok(()),
        Content::List(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(i, item)| self::node(item, &path.index(i))),
        Content::Map(entries) => map(entries, path),
    }
}

fn map(entries: &[Entry], path: &Path) -> Result<(), Fault> {
    let mut seen = BTreeMap::<&str, Position>::new();
    for entry in entries {
        let below = path.key(&entry.key);
        let fault = |problem| {
            Err(Fault {
                at: entry.at,
                path: below.clone(),
                problem,
            })
        };
        if entry.key.contains('\0') {
            return fault(Problem::Nul);
        }
        if credential::is_one(&entry.key) {
            return fault(Problem::Credential);
        }
        if let Some(first) = seen.insert(&entry.key, entry.at) {
            return fault(Problem::DuplicateKey { first });
        }
        if let Some((_, why)) = RESERVED.iter().find(|(key, _)| *key == entry.key) {
            return fault(Problem::Reserved(why));
        }
        // `drivers.secret` selects a driver; whatever else it holds is refused for its type.
        if below.as_str() != "drivers.secret" && is_given(credential::named(&entry.key), &entry.value) {
            return fault(Problem::Credential);
        }
        node(&entry.value, &below)?;
    }
    pair(entries, path)
}

/// Whether a setting of such a name holds a credential.
fn is_given(named: Named, value: &Node) -> bool {
    match (named, &value.content) {
        (Named::No, _)
        | (_, Content::Null | Content::Bool(_) | Content::NonFinite)
        | (Named::Several, Content::Number(_)) => false,
        (Named::One, Content::Number(_)) => true,
        (_, Content::Text(text)) => !credential::is_switch(text),
        (_, Content::List(items)) => items.iter().any(|item| is_given(named, item)),
        (_, Content::Map(entries)) => entries
            .iter()
            .any(|e| credential::holds_value(&e.key) && is_given(Named::One, &e.value)),
    }
}

/// `{name: API_KEY, value: …}`, as environments and headers are often written.
fn pair(entries: &[Entry], path: &Path) -> Result<(), Fault> {
    let field = |keys: &[&str]| {
        entries
            .iter()
            .find(|e| keys.contains(&e.key.to_ascii_lowercase().as_str()))
    };
    let (Some(name), Some(value)) = (field(&["name", "key", "header"]), field(&["value"])) else {
        return Ok(());
    };
    match &name.value.content {
        Content::Text(text) if is_given(credential::named(text), &value.value) => Err(Fault {
            at: value.at,
            path: path.key(&value.key),
            problem: Problem::Credential,
        }),
        _ => Ok(()),
    }
}

fn is_safe(number: &Number) -> bool {
    match (number.as_i64(), number.as_u64()) {
        (Some(integer), _) => integer.unsigned_abs() <= SAFE_INTEGER_MAX,
        (None, Some(_)) => false,
        // A fraction beyond 2^53 is an integer too.
        #[expect(clippy::cast_precision_loss, reason = "the bound itself is exact")]
        (None, None) => number
            .as_f64()
            .is_some_and(|float| float.abs() <= SAFE_INTEGER_MAX as f64),
    }
}
