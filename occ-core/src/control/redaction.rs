//! Redaction of log lines: the values that OCC delivered to the workload, and what looks like a credential.

use std::borrow::Cow;

use super::{ControlPlane, operation::look, runtime::Runtime, secrets::identity_of};
use crate::{driver::OperationContext, secret_value::SecretValue};

/// Longest line that is shown, in bytes.
const LINE_MAX_BYTES: usize = 16 * 1024;
/// Shorter values are not searched for: they would blank out ordinary words.
const VALUE_MIN_BYTES: usize = 6;
const REDACTED: &str = "[redacted]";
/// Beginnings of well-known credentials, our own service keys among them.
const PREFIXES: [&str; 14] = [
    "occ_",
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "eyJ",
];
/// Names whose value is not shown, whatever it looks like.
const NAMES: [&str; 8] = [
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "authorization",
];

/// What is removed from lines.
pub(super) struct Redaction {
    values: Vec<SecretValue>,
}

impl ControlPlane {
    /// The values that the version's workload was given, as far as they can still be had; the patterns catch what they can of the rest.
    pub(super) async fn delivered_values(&self, cx: &OperationContext, runtime: &Runtime) -> Vec<SecretValue> {
        let snapshot = &runtime.revision.snapshot;
        let mut values = Vec::new();
        for frozen in snapshot
            .harness_auth
            .secret
            .iter()
            .chain(snapshot.secret_bindings.values())
        {
            let record = self
                .store
                .secret(runtime.revision.namespace_id, frozen.id)
                .await
                .ok()
                .flatten();
            let own = record.filter(|record| record.driver_id == self.drivers.secret.identity().id);
            if let Some(record) = own {
                values.extend(
                    look(
                        self.drivers
                            .secret
                            .value(cx, &identity_of(&record), &record.backend_ref),
                    )
                    .await,
                );
            }
        }
        if let Some(access) = self.drivers.compute.gateway_access() {
            values.extend(look(access.password(cx, &runtime.target.agent)).await.ok().flatten());
        }
        values
    }
}

impl Redaction {
    pub(super) fn of(values: Vec<SecretValue>) -> Self {
        Self {
            values: values
                .into_iter()
                .filter(|value| value.expose().len() >= VALUE_MIN_BYTES)
                .collect(),
        }
    }

    /// The line without credentials and control characters, at most 16 KiB.
    pub(super) fn apply(&self, line: &str) -> String {
        let mut line = Cow::Borrowed(line);
        for value in self.values.iter().filter_map(SecretValue::expose_str) {
            // A value of several lines never stands in one line whole.
            for part in value
                .lines()
                .map(str::trim)
                .filter(|part| part.len() >= VALUE_MIN_BYTES)
            {
                if line.contains(part) {
                    line = Cow::Owned(line.replace(part, REDACTED));
                }
            }
        }
        let mut out = patterns(&line);
        if out.len() > LINE_MAX_BYTES {
            out.truncate(
                (0..=LINE_MAX_BYTES)
                    .rev()
                    .find(|at| out.is_char_boundary(*at))
                    .unwrap_or(0),
            );
        }
        out
    }
}

/// Words of a line: runs of the characters that credentials are written with, and what stands between them.
fn patterns(line: &str) -> String {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '~' | '%');
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    let mut hide = false;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| in_word(c) != in_word(first)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        if !in_word(first) {
            // What ends a value that is hidden by its name: the next word is another field's.
            hide = hide && !part.contains([',', ';', '}', '&']);
            out.extend(part.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }));
            continue;
        }
        let lower = part.to_ascii_lowercase();
        let scheme = lower == "bearer" || (hide && lower == "basic");
        let credential = PREFIXES
            .iter()
            .any(|prefix| part.starts_with(prefix) && part.len() > prefix.len() + 4);
        if !scheme && (hide || credential) {
            out.push_str(REDACTED);
            hide = false;
        } else {
            out.push_str(part);
            hide = scheme || (NAMES.iter().any(|name| lower.ends_with(name)) && assigns(rest));
        }
    }
    out
}

/// Whether what follows a name gives it a value: `=`, `:` or `": "`.
fn assigns(rest: &str) -> bool {
    rest.trim_start_matches(['"', '\'', ' ']).starts_with(['=', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str) -> String {
        Redaction::of(Vec::new()).apply(line)
    }

    #[test]
    fn what_looks_like_a_credential_is_removed() {
        for (line, shown) in [
            ("using sk-live-0123456789 now", "using [redacted] now"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
            ("{\"token\":\"abc\",\"n\":1}", "{\"token\":\"[redacted]\",\"n\":1}"),
            (
                "gateway_password=hunter2 port=80",
                "gateway_password=[redacted] port=80",
            ),
            ("key occ_123e4567-e89b-42d3-a456-426614174000_abcdef", "key [redacted]"),
        ] {
            assert_eq!(plain(line), shown);
        }
    }

    #[test]
    fn ordinary_lines_stay_as_they_are() {
        for line in [
            "listening on 127.0.0.1:40123",
            "token expired",
            "GET /healthz 200 (3 ms)",
            "ärger: nichts ✓",
            "",
        ] {
            assert_eq!(plain(line), line);
        }
    }

    #[test]
    fn delivered_values_are_removed_wherever_they_stand() {
        let values = vec![
            SecretValue::from("correct horse battery".to_owned()),
            SecretValue::from("abc".to_owned()),
        ];
        let redaction = Redaction::of(values);
        assert_eq!(redaction.apply("x=<correct horse battery>!"), "x=<[redacted]>!");
        assert_eq!(
            redaction.apply("abc stays: too short to search for"),
            "abc stays: too short to search for"
        );
    }

    #[test]
    fn terminal_sequences_lose_their_power_and_long_lines_their_end() {
        assert_eq!(plain("\u{1b}[31mred\u{7}"), "?[31mred?");
        assert!(plain(&"é".repeat(20_000)).len() <= LINE_MAX_BYTES);
    }
}
