//! Checks request bodies. An input is a letter for the route, then the body.
//!
//! The letters are `c` chat, `p` completions, `r` responses, `i` its count of tokens, `k` its
//! compaction, `m` messages, `t` count_tokens and `e` embeddings. With a
//! capital letter the run was granted everything and may name any model. With a small letter it was granted nothing,
//! and may name `m` or `gpt-4o`. With its highest bit set, the body is spelled in `words`.
//!
//! A body that passes is one JSON object as serde_json reads it, without a name that occurs twice. The body that is
//! sent differs from it in Sluicegate's own fields and in nothing else. Without a grant it reaches no further than the
//! model.

use std::sync::LazyLock;

use bytes::Bytes;
use platform_core::{capability::Capability, grant::RunGrant, route::Route};
use proxy::fuzzing;
use serde_json::{Value, json};

use crate::{
    SPOILED,
    json::{Members, elements},
    reach, words,
};

/// Most tokens an answer may have.
const MOST: u64 = 1000;

/// Orders to LiteLLM that no body may carry.
const NEVER: [&str; 14] = [
    "api_base",
    "api_key",
    "base_url",
    "mock_response",
    "custom_llm_provider",
    "no-log",
    "fallbacks",
    "tags",
    "cache",
    "guardrails",
    "litellm_metadata",
    "extra_body",
    "num_retries",
    // Not an order: only for the control, where it is expected never to pass.
    "min_p",
];

static NOTHING: LazyLock<RunGrant> =
    LazyLock::new(|| crate::grant(json!({ "models": ["m", "gpt-4o"] })).expect("a grant"));
static LEAVING_OUT: LazyLock<RunGrant> = LazyLock::new(|| {
    crate::grant(json!({ "models": ["m", "gpt-4o"], "ungranted_tools": "drop" })).expect("a grant")
});
static EVERYTHING: LazyLock<RunGrant> = LazyLock::new(|| {
    crate::grant(json!({ "capabilities": Capability::ALL.map(Capability::name) })).expect("a grant")
});

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let Some((&letter, body)) = input.split_first() else { return };
    let (choice, spelled) = (letter & 0x7f, letter >= 0x80);
    let body = if spelled { words::spelled(body).into() } else { Bytes::copy_from_slice(body) };
    let route = match choice.to_ascii_lowercase() {
        b'c' => Route::ChatCompletions,
        b'p' => Route::Completions,
        b'r' => Route::Responses,
        b'i' => Route::InputTokens,
        b'k' => Route::Compact,
        b'm' => Route::Messages,
        b't' => Route::CountTokens,
        b'e' => Route::Embeddings,
        b'-' => Route::Unknown,
        _ => return,
    };
    let grant: &RunGrant = if choice.is_ascii_uppercase() { &EVERYTHING } else { &NOTHING };
    if !choice.is_ascii_uppercase() {
        leaves_a_body_that_passes(route, &body);
    }
    let check = |body: &Bytes| fuzzing::rewritten(route, body, grant, MOST);
    let Ok(rewritten) = check(&body) else { return };
    assert_ne!(route, Route::Unknown, "a route that does not exist takes a body");

    let tree: Value = serde_json::from_slice(&body).expect("what passes is JSON");
    let sent: Value = serde_json::from_slice(&rewritten.sent).expect("what is sent is JSON");
    let before = Members::of(std::str::from_utf8(&body).expect("JSON is UTF-8")).expect("an object");
    let after = Members::of(std::str::from_utf8(&rewritten.sent).expect("JSON is UTF-8")).expect("an object");
    assert_eq!((before.twice(), after.twice()), (None, None), "a name is there twice");
    same_but_for_ours(route, &before, &after);
    for field in ["messages", "input", "tools"] {
        for element in elements(after.get(field).unwrap_or_default()) {
            assert_eq!(Members::of(element).and_then(|it| it.twice().map(str::to_owned)), None, "in {field}");
        }
    }
    let never = if SPOILED { &NEVER[..] } else { &NEVER[..13] };
    assert!(!never.iter().any(|name| sent.get(name).is_some()), "an order to LiteLLM: {sent}");

    assert_eq!(sent["model"], rewritten.model.as_str(), "the model that is checked is the one that is sent");
    assert!(grant.models.as_ref().is_none_or(|all| all.iter().any(|it| it.as_str() == rewritten.model)));
    assert_eq!(rewritten.stream, tree.get("stream") == Some(&json!(true)));
    let usage_asked = tree.get("stream_options").and_then(|options| options.get("include_usage"));
    assert_eq!(rewritten.usage_asked, usage_asked == Some(&json!(true)));
    if !choice.is_ascii_uppercase() {
        reach::no_further_than_the_model(route, &sent);
    }
    let limits = limits(route);
    let asked = limits.iter().filter_map(|name| tree.get(*name)).filter_map(Value::as_u64).min();
    assert_eq!(rewritten.output, asked, "another length was asked for");
    for limit in limits.iter().filter_map(|name| sent.get(*name)) {
        assert!(limit.as_u64().is_some_and(|limit| (1..=MOST).contains(&limit)), "no limit: {limit}");
    }
    let again = check(&rewritten.sent.clone().into()).expect("what is sent would itself pass");
    assert_eq!(again.sent, rewritten.sent, "and would not be changed again");
}

/// Checks that a body from which hosted tools were left out would pass where they are refused.
fn leaves_a_body_that_passes(route: Route, body: &Bytes) {
    let Ok(rewritten) = fuzzing::rewritten(route, body, &LEAVING_OUT, MOST) else { return };
    let sent: Value = serde_json::from_slice(&rewritten.sent).expect("what is left is JSON");
    reach::no_further_than_the_model(route, &sent);
    let again = fuzzing::rewritten(route, &rewritten.sent.clone().into(), &NOTHING, MOST);
    assert_eq!(again.expect("what is left passes").sent, rewritten.sent, "and is not changed again");
}

/// Compares the body that is sent with the one that came: Sluicegate's fields have its values, all others their text.
fn same_but_for_ours(route: Route, before: &Members<'_>, after: &Members<'_>) {
    let streams =
        matches!(route, Route::ChatCompletions | Route::Completions) && before.get("stream") == Some("true");
    let ours = |name: &str, value: &str| -> Option<String> {
        let value = match (name, route) {
            ("user", Route::Messages | Route::CountTokens) => value,
            ("user", _) => r#""acct-1""#,
            ("metadata", Route::Messages) => r#"{"user_id":"acct-1"}"#,
            ("metadata" | "safety_identifier", _) => return None,
            ("client_metadata", Route::Responses) => return None,
            ("store", Route::Responses) => "false",
            ("store", _) if value == "true" => "false",
            ("stream_options", _) if streams => return Some(with_usage(value)),
            _ if limits(route).contains(&name) && !is_within(value) => return Some(MOST.to_string()),
            _ => value,
        };
        Some(value.to_owned())
    };
    let mut expected: Vec<(String, String)> =
        before.0.iter().filter_map(|(name, value)| Some((name.clone(), ours(name, value)?))).collect();
    // The limit on thinking falls with that on the answer.
    expected.retain(|(name, _)| name != "thinking");
    let missing = |name: &str| before.get(name).is_none();
    if streams && missing("stream_options") {
        expected.push(("stream_options".to_owned(), with_usage("null")));
    }
    if route == Route::Responses && missing("store") {
        expected.push(("store".to_owned(), "false".to_owned()));
    }
    if let Some(limit) = limits(route).first()
        && limits(route).iter().all(|name| missing(name))
    {
        expected.push(((*limit).to_owned(), MOST.to_string()));
    }
    let mut sent: Vec<(String, String)> = after
        .0
        .iter()
        .map(|(name, value)| {
            let options = name == "stream_options" && streams;
            (name.clone(), if options { normal(value) } else { (*value).to_owned() })
        })
        .collect();
    sent.retain(|(name, _)| name != "thinking");
    expected.sort_unstable();
    sent.sort_unstable();
    assert_eq!(sent, expected, "something else was changed");
}

/// Returns the fields of `route` that limit the length of an answer; the first one is set if none is there.
const fn limits(route: Route) -> &'static [&'static str] {
    match route {
        Route::ChatCompletions => &["max_tokens", "max_completion_tokens"],
        Route::Completions | Route::Messages => &["max_tokens"],
        Route::Responses => &["max_output_tokens"],
        _ => &[],
    }
}

/// Returns whether `value` is a limit that may stay.
fn is_within(value: &str) -> bool {
    value.parse().is_ok_and(|limit| (1..=MOST).contains(&limit))
}

/// Returns `options` with the usage asked for.
fn with_usage(options: &str) -> String {
    let mut options: Value = serde_json::from_str(options).expect("a value");
    if options.is_null() {
        options = json!({});
    }
    options["include_usage"] = json!(true);
    options.to_string()
}

fn normal(value: &str) -> String {
    serde_json::from_str::<Value>(value).expect("a value").to_string()
}
