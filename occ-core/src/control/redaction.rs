//! Redaction of log lines: the values that OCC delivered to the workload, and what looks like a credential.

use std::borrow::Cow;

use super::{Answer, ControlPlane, operation::look, runtime::Runtime, secrets::identity_of};
use crate::{
    admission::Refusal,
    audit::credentials::{REDACTED, without_credentials},
    driver::{EffectError, OperationContext, StateEntry, StateReader, StateWrite},
    id::SecretId,
    reason::ApiCode,
    secret_value::SecretValue,
    time::Timestamp,
};

/// Longest line that is shown, in bytes.
const LINE_MAX_BYTES: usize = 16 * 1024;
/// Shorter values are not searched for: they would blank out ordinary words.
const VALUE_MIN_BYTES: usize = 6;
/// Under which name the store keeps when a Secret's value was replaced last.
const REPLACED: &str = "control/replaced-secrets";
/// A value that a version was given and that nobody has any more cannot be found in its lines.
const UNKNOWN_VALUE: Refusal = Refusal::fixed(
    ApiCode::RuntimeLogsUnavailable,
    "A Secret that the version was given was replaced or deleted since, so its lines could show the earlier value. Deploy again.",
);
/// The same for now: a driver is away, or another one is selected.
const UNREADABLE_VALUE: Refusal = Refusal::fixed(
    ApiCode::RuntimeLogsUnavailable,
    "A value that the version was given cannot be read now, so its lines cannot be redacted.",
);

/// What is removed from lines.
pub(super) struct Redaction {
    values: Vec<SecretValue>,
}

impl ControlPlane {
    /// The values that the version's workload was given. Lines are shown only when all of them are known.
    pub(super) async fn delivered_values(&self, cx: &OperationContext, runtime: &Runtime) -> Answer<Vec<SecretValue>> {
        let revision = &runtime.revision;
        let snapshot = &revision.snapshot;
        let frozen = snapshot.harness_auth.secret.iter();
        let mut values = Vec::new();
        for frozen in frozen.chain(snapshot.secret_bindings.values()) {
            let record = self.store.secret(revision.namespace_id, frozen.id).await?;
            let Some(record) = record else {
                return Err(UNKNOWN_VALUE);
            };
            if record.driver_id != self.drivers.secret.identity().id {
                return Err(UNREADABLE_VALUE);
            }
            if self
                .replaced_at(record.id)
                .await?
                .is_some_and(|at| at >= revision.created_at)
            {
                return Err(UNKNOWN_VALUE);
            }
            let identity = identity_of(&record);
            let value = self.drivers.secret.value(cx, &identity, &record.backend_ref);
            values.push(look(value).await.map_err(|error| withheld(&error))?);
        }
        if let Some(access) = self.drivers.compute.gateway_access() {
            let password = look(access.password(cx, &runtime.target.agent)).await;
            values.extend(password.map_err(|error| withheld(&error))?);
        }
        Ok(values)
    }

    /// When a Secret's value was replaced last; never, when nothing is kept.
    async fn replaced_at(&self, id: SecretId) -> Answer<Option<Timestamp>> {
        Ok(self.replaced(id).await?.map(|entry| {
            let millis = entry.value.try_into().map_or(i64::MAX, i64::from_be_bytes);
            Timestamp::from_millis(millis)
        }))
    }

    async fn replaced(&self, id: SecretId) -> Answer<Option<StateEntry>> {
        let found = look(StateReader::read(&*self.store, REPLACED, &id.to_string())).await;
        found.map_err(|_| Refusal::unavailable("The database is unavailable."))
    }

    /// What remembers that a Secret's value is replaced now, for the lines of versions that were given the earlier one. The value itself
    /// is kept nowhere.
    pub(super) async fn remember_replaced(&self, id: SecretId) -> Answer<StateWrite> {
        let now = self.store.now().await?.as_millis().to_be_bytes();
        Ok(StateWrite {
            driver: REPLACED.to_owned(),
            key: id.to_string(),
            expected: self.replaced(id).await?.map(|entry| entry.version),
            value: Some(now.to_vec()),
        })
    }

    /// What forgets it with the Secret.
    pub(super) async fn forget_replaced(&self, id: SecretId) -> Answer<Vec<StateWrite>> {
        let found = self.replaced(id).await?.map(|entry| StateWrite {
            driver: REPLACED.to_owned(),
            key: id.to_string(),
            expected: Some(entry.version),
            value: None,
        });
        Ok(found.into_iter().collect())
    }
}

/// Lines that cannot be redacted are not shown.
fn withheld(error: &EffectError) -> Refusal {
    tracing::warn!(%error, "a value that a version was given could not be had, so its lines are not shown");
    UNREADABLE_VALUE
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
        let mut out = without_credentials(&line);
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
