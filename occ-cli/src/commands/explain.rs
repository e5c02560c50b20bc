//! `occ explain`

use clap::Args;
use occ_core::reason::{PreparationReason, ProbeStatus, RuntimeCode, catalogue};
use serde_json::json;

use super::Context;
use crate::exit::{Done, Failure};

/// What a code means, without a server.
#[derive(Debug, Args)]
#[command(after_help = "Example: occ explain RUNTIME_MODEL_PROBE_FAILED")]
pub(crate) struct Explain {
    /// A code, as statuses and errors show it.
    code: String,
}

pub(crate) fn run(explain: &Explain, cx: &Context<'_>) -> Done {
    let code = explain.code.as_str();
    let mut messages: Vec<&str> = catalogue()
        .into_iter()
        .filter_map(|(known, message)| (known == code).then_some(message))
        .collect();
    messages.extend(RuntimeCode::from_code(code).map(RuntimeCode::message));
    messages.extend(PreparationReason::from_code(code).map(PreparationReason::message));
    messages.extend(ProbeStatus::from_code(code).map(ProbeStatus::message));
    if messages.is_empty() {
        return Err(Failure::refused(
            "there is no such code; codes are written as statuses and errors show them",
        ));
    }
    let page = format!("docs/reasons/{code}.md");
    cx.output
        .one(&json!({ "code": code, "messages": messages, "page": page }), |_| {
            vec![
                ("code", code.to_owned()),
                ("means", messages.join("\n")),
                ("page", page.clone()),
            ]
        })
}
