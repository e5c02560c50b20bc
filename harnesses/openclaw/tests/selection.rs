//! Which Harness a document selects: the table of spec/contracts 10.3 and spec/drivers 0.5.

mod rig;

use occ_harness_openclaw::message;
use rig::{document, harness, usual, with};
use serde_json::{Value, json};

const RUNTIME: &str = "/agents/defaults/models/openai~1gpt-5/agentRuntime/id";

fn selected(value: Value) -> Result<String, (String, &'static str)> {
    let selection = harness()
        .select(&document(value))
        .map_err(|problem| (problem.pointer, problem.message))?;
    Ok(selection.harness)
}

fn problem(pointer: &str, message: &'static str) -> Result<String, (String, &'static str)> {
    Err((pointer.to_owned(), message))
}

#[expect(clippy::unnecessary_wraps, reason = "the other half of `problem`")]
fn ok(harness: &str) -> Result<String, (String, &'static str)> {
    Ok(harness.to_owned())
}

#[test]
fn the_seed_s_own_text_is_used_word_for_word() {
    assert_eq!(
        message::RUNTIME_REQUIRED,
        "The configured Agent model requires an explicit supported Harness runtime."
    );
}

#[test]
fn without_a_model_the_harness_is_openclaw() {
    assert_eq!(selected(json!({})), ok("openclaw"));
    assert_eq!(
        selected(json!({ "agents": { "defaults": { "model": { "fallbacks": [] } } } })),
        ok("openclaw")
    );
    assert_eq!(
        selected(json!({ "agents": { "entries": { "main": {} } } })),
        ok("openclaw")
    );
}

#[test]
fn some_providers_need_an_explicit_runtime() {
    let model = |text: &str| json!({ "agents": { "defaults": { "model": text } } });
    let required = problem("/agents/defaults/model", message::RUNTIME_REQUIRED);
    assert_eq!(selected(model("openai/gpt-5")), required);
    assert_eq!(selected(model("codex/gpt-5")), required);
    assert_eq!(selected(model("anthropic/claude-opus-5")), ok("openclaw"));
    // Explicitly configured, or routed by a plugin.
    let row = json!({ "baseUrl": "https://models.example/v1", "models": [] });
    for (at, value) in [
        ("/models/providers/anthropic", row.clone()),
        ("/plugins/entries/anthropic", json!({ "enabled": true })),
    ] {
        assert_eq!(
            selected(with(model("anthropic/claude-opus-5"), at, value)),
            required,
            "{at}"
        );
    }
    assert_eq!(
        selected(with(model("corp/large"), "/models/providers/corp", row)),
        required
    );
    let primary = json!({ "agents": { "defaults": { "model": { "primary": "openai/gpt-5" } } } });
    assert_eq!(
        selected(primary),
        problem("/agents/defaults/model/primary", message::RUNTIME_REQUIRED)
    );
}

#[test]
fn the_runtime_may_be_said_at_every_place() {
    let silent = with(usual(), "/agents/defaults/models", Value::Null);
    let runtime = json!({ "agentRuntime": { "id": "openclaw" } });
    for (at, value) in [
        ("/agents/defaults/models/openai~1gpt-5", runtime.clone()),
        ("/agents/defaults/models/openai~1*", runtime.clone()),
        ("/agents/entries/main/models/openai~1gpt-5", runtime.clone()),
        ("/agents/entries/main", runtime.clone()),
        ("/models/providers/openai/agentRuntime", json!({ "id": "openclaw" })),
        (
            "/models/providers/openai/models",
            json!([{ "id": "gpt-5", "agentRuntime": { "id": "openclaw" } }]),
        ),
    ] {
        assert_eq!(selected(with(silent.clone(), at, value)), ok("openclaw"), "{at}");
    }
    assert_eq!(
        selected(silent),
        problem("/agents/defaults/model", message::RUNTIME_REQUIRED)
    );
}

#[test]
fn a_runtime_for_another_model_is_none_for_this_one() {
    let other = json!({ "openai/gpt-4": { "agentRuntime": { "id": "openclaw" } } });
    let value = with(usual(), "/agents/defaults/models", other);
    assert_eq!(
        selected(value),
        problem("/agents/defaults/model", message::RUNTIME_REQUIRED)
    );
}

#[test]
fn runtimes_that_contradict_each_other_are_refused() {
    for at in [
        "/models/providers/openai/agentRuntime",
        "/agents/entries/main/agentRuntime",
        "/agents/defaults/models/openai~1*/agentRuntime",
    ] {
        let Err((pointer, message)) = selected(with(usual(), at, json!({ "id": "codex" }))) else {
            panic!("{at} was accepted")
        };
        assert_eq!(message, message::RUNTIME_CONFLICT, "{at}");
        assert!(pointer.ends_with("/agentRuntime/id"), "{pointer}");
    }
}

#[test]
fn an_unknown_runtime_is_refused() {
    for unknown in ["auto", "claude-cli", "OpenClaw", ""] {
        let value = with(usual(), RUNTIME, json!(unknown));
        assert_eq!(selected(value), problem(RUNTIME, message::RUNTIME_UNKNOWN), "{unknown}");
    }
    assert_eq!(
        selected(with(usual(), RUNTIME, json!(5))),
        problem(RUNTIME, message::TEXT)
    );
}

#[test]
fn codex_needs_a_codex_model_or_its_connected_plugin() {
    let base = with(usual(), RUNTIME, json!("codex"));
    let refused = problem("/agents/defaults/model", message::CODEX_MODEL);
    assert_eq!(selected(base.clone()), refused);
    let plugin = |enabled: bool, transport: &str| {
        let plugin = json!({ "enabled": enabled, "config": { "appServer": { "transport": transport } } });
        with(base.clone(), "/plugins/entries/codex", plugin)
    };
    assert_eq!(selected(plugin(true, "websocket")), ok("codex"));
    assert_eq!(selected(plugin(false, "websocket")), refused);
    assert_eq!(selected(plugin(true, "stdio")), refused);

    let codex = |runtime: &str| {
        json!({
            "agents": {
                "defaults": {
                    "model": "codex/gpt-5",
                    "models": { "codex/gpt-5": { "agentRuntime": { "id": runtime } } },
                },
            },
        })
    };
    assert_eq!(selected(codex("codex")), ok("codex"));
    assert_eq!(
        selected(codex("openclaw")),
        problem("/agents/defaults/model", message::CODEX_RUNTIME)
    );
    let claude = json!({
        "agents": {
            "defaults": {
                "model": "anthropic/claude-opus-5",
                "models": { "anthropic/claude-opus-5": { "agentRuntime": { "id": "codex" } } },
            },
        },
    });
    assert_eq!(selected(claude), refused);
}

#[test]
fn a_list_of_agents_is_refused() {
    let value = with(usual(), "/agents/list", json!([{ "id": "main" }]));
    assert_eq!(selected(value), problem("/agents/list", message::AGENTS_LIST));
    assert_eq!(selected(with(usual(), "/agents/list", json!([]))), ok("openclaw"));
    assert_eq!(
        selected(with(usual(), "/agents/list", json!({}))),
        problem("/agents/list", message::LIST)
    );
}

#[test]
fn an_entry_s_model_overrides_the_default_and_all_entries_share_it() {
    let entries = |main: Value, other: Value| {
        let entries = json!({ "main": { "model": main }, "helper": other });
        with(
            with(usual(), "/agents/entries", entries),
            "/agents/defaults/model",
            json!("openai/gpt-4"),
        )
    };
    let same = json!({ "model": { "primary": "openai/gpt-5" } });
    assert_eq!(selected(entries(json!("openai/gpt-5"), same.clone())), ok("openclaw"));
    // The entry without a model of its own has the default's.
    let Err((_, message)) = selected(entries(json!("openai/gpt-5"), json!({}))) else {
        panic!("accepted")
    };
    assert_eq!(message, message::ENTRY_MODEL);
    let Err((pointer, message)) = selected(entries(json!("openai/gpt-6"), same)) else {
        panic!("accepted")
    };
    assert_eq!(message, message::ENTRY_MODEL);
    assert_eq!(pointer, "/agents/entries/main/model");
}

#[test]
fn fallbacks_stay_within_provider_and_harness() {
    let with_fallback = |fallback: &str| {
        let model = json!({ "primary": "openai/gpt-5", "fallbacks": [fallback] });
        with(usual(), "/agents/defaults/model", model)
    };
    let at = "/agents/defaults/model/fallbacks/0";
    assert_eq!(
        selected(with_fallback("anthropic/claude-opus-5")),
        problem(at, message::FALLBACK_PROVIDER)
    );
    assert_eq!(
        selected(with_fallback("openai/gpt-4")),
        problem(at, message::RUNTIME_REQUIRED)
    );
    let runtime = |id: &str| json!({ "agentRuntime": { "id": id } });
    let said = "/agents/defaults/models/openai~1gpt-4";
    assert_eq!(
        selected(with(with_fallback("openai/gpt-4"), said, runtime("openclaw"))),
        ok("openclaw")
    );
    let codex = with(with_fallback("openai/gpt-4"), said, runtime("codex"));
    let plugin = json!({ "enabled": true, "config": { "appServer": { "transport": "websocket" } } });
    let codex = with(codex, "/plugins/entries/codex", plugin);
    assert_eq!(selected(codex), problem(at, message::FALLBACK_RUNTIME));
    assert_eq!(selected(with_fallback("gpt-4")), problem(at, message::MODEL));
}

#[test]
fn selectable_models_have_the_same_provider_and_an_explicit_runtime() {
    let selectable = |key: &str, value: Value| with(usual(), &format!("/agents/defaults/models/{key}"), value);
    let runtime = |id: &str| json!({ "alias": "x", "agentRuntime": { "id": id } });
    assert_eq!(
        selected(selectable("openai~1gpt-4", runtime("openclaw"))),
        ok("openclaw")
    );
    for (key, value, message) in [
        ("openai~1gpt-4", json!({ "alias": "x" }), message::SELECTABLE_RUNTIME),
        ("openai~1gpt-4", runtime("codex"), message::SELECTABLE_RUNTIME),
        (
            "anthropic~1claude-opus-5",
            runtime("openclaw"),
            message::SELECTABLE_PROVIDER,
        ),
        ("gpt-4", runtime("openclaw"), message::MODEL),
    ] {
        assert_eq!(
            selected(selectable(key, value)),
            problem(&format!("/agents/defaults/models/{key}"), message),
            "{key}"
        );
    }
}

#[test]
fn the_provider_lists_only_what_the_agent_can_use() {
    let listed = json!([{ "id": "gpt-5" }, { "id": "gpt-5-mini" }]);
    let value = with(usual(), "/models/providers/openai/models", listed);
    let refused = problem("/models/providers/openai/models/1/id", message::CATALOG);
    assert_eq!(selected(value.clone()), refused);
    for (at, used) in [
        ("/agents/defaults/utilityModel", json!("openai/gpt-5-mini")),
        ("/agents/defaults/imageModel", json!({ "primary": "openai/gpt-5-mini" })),
        ("/agents/defaults/subagents", json!({ "model": "openai/gpt-5-mini" })),
        (
            "/agents/defaults/models/openai~1gpt-5-mini",
            json!({ "agentRuntime": { "id": "openclaw" } }),
        ),
        (
            "/agents/defaults/models/openai~1*",
            json!({ "agentRuntime": { "id": "openclaw" } }),
        ),
    ] {
        assert_eq!(selected(with(value.clone(), at, used)), ok("openclaw"), "{at}");
    }
}

#[test]
fn a_wrong_shape_is_named_where_it_is() {
    for (at, value, message) in [
        ("/agents", json!("hunter2"), message::OBJECT),
        ("/agents/defaults", json!(["hunter2"]), message::OBJECT),
        ("/agents/defaults/model", json!(4711), message::TEXT_OR_OBJECT),
        ("/agents/defaults/model", json!("gpt-5"), message::MODEL),
        ("/agents/defaults/model", json!("openai/"), message::MODEL),
        ("/agents/defaults/model", json!("openai/gpt 5"), message::MODEL),
        ("/agents/entries", json!([]), message::OBJECT),
        ("/models/providers", json!("hunter2"), message::OBJECT),
    ] {
        assert_eq!(selected(with(usual(), at, value)), problem(at, message), "{at}");
    }
}
