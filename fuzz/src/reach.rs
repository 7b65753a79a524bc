//! Finds what a body reaches beyond the model: the documented ways, searched in the tree that LiteLLM would read.

use platform_core::route::Route;
use serde_json::Value;

/// Fields that name data stored elsewhere.
const ELSEWHERE: [&str; 7] = [
    "previous_response_id",
    "conversation",
    "background",
    "mcp_servers",
    "container",
    "web_search_options",
    "moderation",
];
/// Members in which a part of content keeps a place to fetch from.
const PLACES: [&str; 5] = ["image_url", "file_url", "audio_url", "video_url", "url"];

/// Checks that `body`, sent without a grant, names nothing to fetch, no tool that runs elsewhere and no stored data.
pub(crate) fn no_further_than_the_model(route: Route, body: &Value) {
    for field in ELSEWHERE {
        let value = body.get(field).unwrap_or(&Value::Null);
        assert!(is_nothing(value), "{field} passes: {value}");
    }
    if route == Route::Responses {
        assert!(is_nothing(&body["prompt"]) && body["store"] == false, "{body}");
    }
    list(&body["tools"]).iter().for_each(tool);
    for item in list(&body["messages"]).iter().chain(list(&body["input"])) {
        list(&item["tools"]).iter().for_each(tool);
        part(item);
    }
}

/// Checks a tool, or a group of them.
fn tool(tool: &Value) {
    let kind = tool["type"].as_str().unwrap_or("function");
    let is_ours = match kind {
        "function" | "custom" => tool.get("tools").is_none() && tool.get("execution").is_none(),
        "namespace" => true,
        "tool_search" => tool["execution"] == "client",
        _ => false,
    };
    assert!(is_ours, "a tool runs elsewhere: {tool}");
    for member in ["googleSearch", "urlContext", "server_url", "codeExecution"] {
        assert!(tool.get(member).is_none(), "a tool runs elsewhere: {tool}");
    }
    list(&tool["tools"]).iter().for_each(self::tool);
}

/// Checks a message, an item, or a part of its content.
fn part(part: &Value) {
    let kind = part["type"].as_str().unwrap_or_default();
    let elsewhere = ["mcp_", "web_", "computer_", "item_reference", "container_upload", "file_search_call"];
    assert!(!elsewhere.iter().any(|start| kind.starts_with(start)), "content from elsewhere: {part}");
    let is_ours = !kind.starts_with("tool_search_") || part["execution"] == "client";
    assert!(is_ours, "a search elsewhere: {part}");
    for place in PLACES {
        inline(&part[place]);
        inline(&part[place]["url"]);
        inline(&part["source"][place]);
    }
    for holder in [part, &part["file"], &part["source"], &part["image_url"]] {
        assert!(is_nothing(&holder["file_id"]), "something stored: {part}");
    }
    list(&part["content"]).iter().for_each(self::part);
}

fn inline(place: &Value) {
    assert!(!place.as_str().is_some_and(|text| text.contains("://")), "something to fetch: {place}");
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value == false
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
