//! Reads `openclaw models status --json --probe` (spec/drivers 7.1): one row of `auth.probes.results`.

use std::collections::BTreeMap;

use occ_core::reason::{Cause, ProbeStatus};
use serde::Deserialize;

use super::Verdict;

#[derive(Deserialize)]
struct Output {
    auth: Auth,
}

#[derive(Deserialize)]
struct Auth {
    probes: Probes,
}

#[derive(Deserialize)]
struct Probes {
    results: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    provider: String,
    model: String,
    source: String,
    status: String,
}

/// Classifies the output. `expect` has `provider`, `model` and, unless it is `env`, `source`.
pub fn read(expect: &BTreeMap<String, String>, stdout: &[u8]) -> Verdict {
    let (Some(provider), Some(model)) = (expect.get("provider"), expect.get("model")) else {
        return Verdict::Failed(Cause::WrapperError);
    };
    let source = expect.get("source").map_or("env", String::as_str);
    if serde_json::from_slice::<serde::de::IgnoredAny>(stdout).is_err() {
        return Verdict::Failed(Cause::InvalidJson);
    }
    let row = serde_json::from_slice::<Output>(stdout).ok().and_then(|output| {
        let [row] = <[Row; 1]>::try_from(output.auth.probes.results).ok()?;
        (row.provider == *provider && row.model == *model && row.source == source).then_some(row)
    });
    let Some(row) = row else {
        return Verdict::Failed(Cause::InvalidShape);
    };
    Verdict::Failed(Cause::ProbeStatus(match row.status.as_str() {
        "ok" => return Verdict::Ready,
        "auth" => return Verdict::Authentication,
        "timeout" => return Verdict::Timeout,
        "format" => ProbeStatus::Format,
        "rate_limit" => ProbeStatus::RateLimit,
        "billing" => ProbeStatus::Billing,
        "unknown" => ProbeStatus::Unknown,
        "no_model" => ProbeStatus::NoModel,
        _ => ProbeStatus::Other,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn expect() -> BTreeMap<String, String> {
        [("provider", "openai"), ("model", "openai/gpt-5")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into()
    }

    /// The row as `OpenClaw` 2026.9.6 prints it.
    fn row(status: &str) -> Value {
        json!({
            "provider": "openai", "model": "openai/gpt-5", "label": "env", "source": "env", "mode": "api_key",
            "status": status, "latencyMs": 12318, "error": "provider text",
        })
    }

    fn output(rows: &[Value]) -> String {
        json!({ "auth": { "providers": [{ "key": "sk...st" }], "probes": { "results": rows } } }).to_string()
    }

    fn of(status: ProbeStatus) -> Verdict {
        Verdict::Failed(Cause::ProbeStatus(status))
    }

    #[test]
    fn each_status_has_its_verdict() {
        for (status, verdict) in [
            ("ok", Verdict::Ready),
            ("auth", Verdict::Authentication),
            ("timeout", Verdict::Timeout),
            ("format", of(ProbeStatus::Format)),
            ("rate_limit", of(ProbeStatus::RateLimit)),
            ("billing", of(ProbeStatus::Billing)),
            ("unknown", of(ProbeStatus::Unknown)),
            ("no_model", of(ProbeStatus::NoModel)),
            ("something-newer", of(ProbeStatus::Other)),
            // A word of another reader is none of this one's.
            ("turn-failed", of(ProbeStatus::Other)),
        ] {
            assert_eq!(read(&expect(), output(&[row(status)]).as_bytes()), verdict, "{status}");
        }
    }

    #[test]
    fn another_row_than_the_wanted_one_is_a_wrong_shape() {
        let shape = Verdict::Failed(Cause::InvalidShape);
        let mut other = row("ok");
        for (member, value) in [
            ("provider", "anthropic"),
            ("model", "openai/gpt-4"),
            ("source", "models.json"),
        ] {
            let before = other[member].take();
            other[member] = value.into();
            assert_eq!(
                read(&expect(), output(std::slice::from_ref(&other)).as_bytes()),
                shape,
                "{member}"
            );
            other[member] = before;
        }
        assert_eq!(read(&expect(), output(&[]).as_bytes()), shape);
        assert_eq!(read(&expect(), output(&[row("ok"), row("ok")]).as_bytes()), shape);
        assert_eq!(read(&expect(), b"{}"), shape);
        assert_eq!(read(&expect(), b"[1]"), shape);
    }

    #[test]
    fn what_is_not_json_is_said_to_be_so() {
        for text in ["", "Error: no", "{\"auth\":", "{} {}"] {
            assert_eq!(
                read(&expect(), text.as_bytes()),
                Verdict::Failed(Cause::InvalidJson),
                "{text}"
            );
        }
    }

    #[test]
    fn a_check_without_an_expectation_cannot_be_read() {
        assert_eq!(read(&BTreeMap::new(), b"{}"), Verdict::Failed(Cause::WrapperError));
    }
}
