//! One turn of the Responses API: what the request said, and the events that answer it.

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// A complete answer, ready to be sent as a stream or as one document.
pub(super) struct Turn {
    number: usize,
    created_at: u64,
    model: String,
    text: String,
    input_tokens: usize,
}

impl Turn {
    pub(super) fn new(number: usize, request: &Value, text: String) -> Self {
        let created_at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let input_tokens = tokens(&request["input"].to_string());
        Self {
            number,
            created_at,
            model: model_of(request).unwrap_or_default(),
            text,
            input_tokens,
        }
    }

    /// The response object of a request that did not ask for a stream, and of the last event.
    pub(super) fn completed(&self) -> Value {
        let output_tokens = tokens(&self.text);
        let usage = json!({
            "input_tokens": self.input_tokens,
            "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": output_tokens,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": self.input_tokens + output_tokens,
        });
        self.response(
            "completed",
            &json!([self.message("completed", &json!([self.part(&self.text)]))]),
            &usage,
        )
    }

    /// The events in the order in which clients insist on them.
    pub(super) fn events(&self) -> Vec<Value> {
        let started = self.response("in_progress", &json!([]), &Value::Null);
        let item = self.message_id();
        let at = |mut event: Value| {
            event["item_id"] = item.clone().into();
            event["output_index"] = 0.into();
            event["content_index"] = 0.into();
            event
        };
        let done = self.message("completed", &json!([self.part(&self.text)]));

        let mut events = vec![
            json!({ "type": "response.created", "response": started }),
            json!({ "type": "response.in_progress", "response": started }),
            json!({
                "type": "response.output_item.added",
                "output_index": 0,
                "item": self.message("in_progress", &json!([])),
            }),
            at(json!({ "type": "response.content_part.added", "part": self.part("") })),
        ];
        events.extend(
            deltas(&self.text)
                .into_iter()
                .map(|delta| at(json!({ "type": "response.output_text.delta", "delta": delta }))),
        );
        events.extend([
            at(json!({ "type": "response.output_text.done", "text": self.text })),
            at(json!({ "type": "response.content_part.done", "part": self.part(&self.text) })),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": done }),
            json!({ "type": "response.completed", "response": self.completed() }),
        ]);
        for (number, event) in events.iter_mut().enumerate() {
            event["sequence_number"] = number.into();
        }
        events
    }

    fn response(&self, status: &str, output: &Value, usage: &Value) -> Value {
        json!({
            "id": format!("resp_test_{}", self.number),
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "model": self.model,
            "output": output,
            "usage": usage,
            "error": null,
            "incomplete_details": null,
            "parallel_tool_calls": true,
            "tool_choice": "auto",
            "tools": [],
        })
    }

    fn message_id(&self) -> String {
        format!("msg_test_{}", self.number)
    }

    fn message(&self, status: &str, content: &Value) -> Value {
        json!({
            "id": self.message_id(),
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        })
    }

    #[expect(clippy::unused_self, reason = "reads as a part of this turn at every call")]
    fn part(&self, text: &str) -> Value {
        json!({ "type": "output_text", "text": text, "annotations": [] })
    }
}

/// The model that a request names.
pub(super) fn model_of(request: &Value) -> Option<String> {
    request["model"].as_str().map(str::to_owned)
}

/// Begins a user message in which `OpenClaw` tells the model about itself, after what the user said.
const INTERNAL_CONTEXT: &str = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>";

/// What the user said last: `input` is a string, or a list of messages whose content is a string or parts.
pub(super) fn last_user_text(request: &Value) -> String {
    let input = &request["input"];
    if let Some(text) = input.as_str() {
        return text.to_owned();
    }
    let messages = input.as_array().into_iter().flatten().rev();
    let mut said = messages
        .filter(|message| message["role"] == "user")
        .map(|message| text_of(&message["content"]));
    said.find(|text| !text.starts_with(INTERNAL_CONTEXT))
        .unwrap_or_default()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        _ => String::new(),
    }
}

/// A few pieces, so that a client that joins deltas wrongly is found.
fn deltas(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let Some(second) = words.first().map(|first| first.len()).filter(|at| *at < text.len()) else {
        return vec![text];
    };
    vec![&text[..second], &text[second..]]
}

/// Billing is not tested here; a plausible number is enough.
fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_user_message_is_found_in_each_shape_of_input() {
        let cases = [
            (json!({ "input": "plain" }), "plain"),
            (
                json!({ "input": [{ "role": "user", "content": "first" }, { "role": "user", "content": "second" }] }),
                "second",
            ),
            (
                json!({ "input": [
                    { "role": "user", "content": [{ "type": "input_text", "text": "a" }, { "type": "input_text", "text": "b" }] },
                    { "role": "assistant", "content": "not this" },
                ] }),
                "a\nb",
            ),
            (
                json!({ "input": [
                    { "role": "user", "content": "what was said" },
                    { "role": "user", "content": [{ "type": "input_text", "text": format!("{INTERNAL_CONTEXT}\nnoise") }] },
                ] }),
                "what was said",
            ),
            (json!({ "input": [{ "role": "system", "content": "rules" }] }), ""),
            (json!({}), ""),
        ];
        for (request, expected) in cases {
            assert_eq!(last_user_text(&request), expected, "{request}");
        }
    }

    #[test]
    fn deltas_join_to_the_text() {
        for text in ["", "one", "two words", "three whole words", " leading", "ünïcödé wörds"] {
            assert_eq!(deltas(text).concat(), text);
        }
    }
}
