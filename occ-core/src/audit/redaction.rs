//! What may not stand in an audit record, whoever writes it (spec/engine 19.4).

use serde_json::Value;

use super::credentials::{REDACTED, without_credentials};

/// Deepest nesting that is kept.
const DEPTH_MAX: usize = 16;
/// Words in a key's name after which its value is not kept.
const SENSITIVE: [&str; 16] = [
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "authorization",
    "cookie",
    "apikey",
    "api_key",
    "privatekey",
    "body",
    "content",
    "message",
    "prompt",
    "text",
    "transcript",
];
/// Endings after which a value is a reference or a number all the same.
const HARMLESS: [&str; 6] = ["id", "ids", "ref", "name", "kind", "count"];
/// The value under this key as it may be recorded.
pub(super) fn clean(key: &str, value: Value) -> Value {
    cleaned(key, value, 0)
}

fn cleaned(key: &str, value: Value, depth: usize) -> Value {
    let lower = key.to_ascii_lowercase();
    let harmless = HARMLESS.iter().any(|ending| lower.ends_with(ending));
    if depth > DEPTH_MAX || (!harmless && SENSITIVE.iter().any(|word| lower.contains(word))) {
        return Value::from(REDACTED);
    }
    match value {
        Value::String(text) => Value::from(plain(&text)),
        Value::Array(items) => items.into_iter().map(|item| cleaned("", item, depth + 1)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| {
                let value = cleaned(&key, value, depth + 1);
                (key, value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

/// A text without control characters, and without anything that looks like a credential.
fn plain(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    without_credentials(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_under_telling_names_are_not_kept_and_references_are() {
        for key in [
            "gatewayPassword",
            "token",
            "apiKeySecret",
            "messageBody",
            "Authorization",
            "content",
        ] {
            assert_eq!(clean(key, json!("harmless")), REDACTED, "{key}");
        }
        for key in [
            "secretId",
            "serviceKeyId",
            "credentialKind",
            "tokenCount",
            "secretName",
            "phase",
        ] {
            assert_eq!(clean(key, json!("x")), "x", "{key}");
        }
    }

    #[test]
    fn what_looks_like_a_credential_is_kept_nowhere() {
        for (text, kept) in [
            ("Bearer abc", "Bearer [redacted]"),
            ("refused: sk-live-012345", "refused: [redacted]"),
            ("at https://x.test/ghp_0123456789", "at https://x.test/[redacted]"),
            ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
            ("xapp-1-012345 of ghu_012345", "[redacted] of [redacted]"),
            ("eyJhbGciOi.x", "[redacted]"),
        ] {
            assert_eq!(clean("note", json!({ "a": [text] })), json!({ "a": [kept] }), "{text}");
        }
        assert_eq!(clean("note", json!("a\u{1b}[31m\nb")), "a [31m b");
    }

    #[test]
    fn deep_nesting_ends() {
        let deep = (0..40).fold(json!("x"), |inner, _| json!({ "a": inner }));
        assert!(clean("note", deep).to_string().contains(REDACTED));
    }
}
