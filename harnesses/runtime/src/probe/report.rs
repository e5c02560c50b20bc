//! Reads `report/1`: the last line of standard output is `{"status": WORD}`, for a Harness that knows the vocabulary itself.

use occ_core::reason::{Cause, ProbeStatus};
use serde::Deserialize;

use super::Verdict;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    status: String,
}

/// Classifies the output. A failed process may still report why; it may not report success.
pub fn read(stdout: &[u8], failed: Option<Cause>) -> Verdict {
    let verdict = last_line(stdout);
    match (failed, verdict) {
        (Some(cause), Verdict::Ready | Verdict::Failed(Cause::InvalidJson | Cause::InvalidShape)) => {
            Verdict::Failed(cause)
        }
        (_, verdict) => verdict,
    }
}

fn last_line(stdout: &[u8]) -> Verdict {
    let mut lines = stdout.split(|byte| *byte == b'\n').rev();
    let line = lines.find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
        return Verdict::Failed(Cause::InvalidJson);
    }
    let Ok(report) = serde_json::from_slice::<Report>(line) else {
        return Verdict::Failed(Cause::InvalidShape);
    };
    match report.status.as_str() {
        "ok" => Verdict::Ready,
        "auth" => Verdict::Authentication,
        "timeout" => Verdict::Timeout,
        word => Verdict::Failed(Cause::ProbeStatus(
            ProbeStatus::from_code(word).unwrap_or(ProbeStatus::Other),
        )),
    }
}

#[cfg(test)]
mod tests {
    use occ_core::reason::ProcessExit;

    use super::*;

    #[test]
    fn the_last_line_is_the_report() {
        for (text, verdict) in [
            ("noise\n{\"status\":\"ok\"}\n\n", Verdict::Ready),
            ("{\"status\":\"auth\"}", Verdict::Authentication),
            ("{\"status\":\"timeout\"}", Verdict::Timeout),
            (
                "{\"status\":\"no-reply\"}",
                Verdict::Failed(Cause::ProbeStatus(ProbeStatus::NoReply)),
            ),
            (
                "{\"status\":\"new\"}",
                Verdict::Failed(Cause::ProbeStatus(ProbeStatus::Other)),
            ),
            ("{\"status\":\"ok\"}\nbye", Verdict::Failed(Cause::InvalidJson)),
            ("", Verdict::Failed(Cause::InvalidJson)),
            (
                "{\"status\":\"ok\",\"text\":\"x\"}",
                Verdict::Failed(Cause::InvalidShape),
            ),
        ] {
            assert_eq!(read(text.as_bytes(), None), verdict, "{text}");
        }
    }

    #[test]
    fn a_failed_process_may_say_why_and_may_not_say_that_it_succeeded() {
        let exit = Cause::ProcessExit(Some(ProcessExit::Status(3)));
        assert_eq!(
            read(b"{\"status\":\"ok\"}", Some(exit.clone())),
            Verdict::Failed(exit.clone())
        );
        assert_eq!(read(b"panic", Some(exit.clone())), Verdict::Failed(exit.clone()));
        assert_eq!(read(b"{\"status\":\"auth\"}", Some(exit)), Verdict::Authentication);
    }
}
