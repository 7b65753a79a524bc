//! Maps values of `type`, of content and of tools, to the capabilities they need: those that reach beyond words between
//! agent and model.

use platform_core::capability::Capability;

/// Type of a group of tools, which reaches as far as they do.
pub(super) const NAMESPACE: &[u8] = b"namespace";
/// Type of a search for tools, which the agent or the provider runs.
pub(super) const TOOL_SEARCH: &[u8] = b"tool_search";
/// Spelling of an `execution` by the agent itself.
pub(super) const CLIENT: &[u8] = b"\"client\"";

/// Returns whether an item of this `type` only carries what the agent itself ran if its `execution` is `client`.
pub(super) fn is_tool_search(kind: &[u8]) -> bool {
    matches!(kind, b"tool_search_call" | b"tool_search_output")
}

/// Returns the capability that an item of the Responses API of this `type` needs, if any.
pub(super) fn item(kind: &[u8]) -> Option<Capability> {
    match kind {
        // Its tools are checked like all others.
        b"additional_tools" => None,
        // Another effort of reasoning from here on; OpenAI's API takes no other setting there.
        b"configuration_update" => None,
        // What Codex's own agents write to each other.
        b"agent_message" => None,
        _ => content(kind),
    }
}

/// Returns the capability that a part of content, an item or a message of this `type` needs, if any.
pub(super) fn content(kind: &[u8]) -> Option<Capability> {
    match kind {
        // OpenAI chat, and what LiteLLM adds to it.
        b"text" | b"refusal" | b"image_url" | b"input_audio" | b"file" | b"function" | b"custom"
        | b"content" | b"video_url" | b"audio_url" | b"guarded_text" => None,
        // Anthropic.
        b"image" | b"document" | b"search_result" | b"thinking" | b"redacted_thinking" | b"tool_use"
        | b"tool_result" | b"tool_reference" => None,
        // Responses. A call and its output only carry what the agent itself ran.
        b"message"
        | b"input_text"
        | b"input_image"
        | b"input_file"
        | b"output_text"
        | b"reasoning"
        | b"summary_text"
        | b"reasoning_text"
        | b"function_call"
        | b"function_call_output"
        | b"custom_tool_call"
        | b"custom_tool_call_output"
        | b"compaction"
        | b"compaction_trigger"
        | b"context_compaction"
        // Text of the model's that only its provider can read.
        | b"encrypted_content" => None,
        b"item_reference" => Some(Capability::StoredResponses),
        b"container_upload" | b"file_search_call" => Some(Capability::StoredFiles),
        b"web_search_result" | b"web_fetch_result" | b"web_search_call" => Some(Capability::WebSearch),
        b"server_tool_use" => Some(Capability::ServerTools),
        // Traces of what ran on the provider's side, and tools given in the middle of a conversation.
        _ if kind.starts_with(b"mcp_") => Some(Capability::Mcp),
        _ if kind.starts_with(b"web_") => Some(Capability::WebSearch),
        _ if is_server_side(kind) => Some(Capability::ServerTools),
        _ => Some(Capability::UnlistedContent),
    }
}

fn is_server_side(kind: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 10] = [
        b"computer_",
        b"shell_call",
        b"local_shell_call",
        b"apply_patch_call",
        b"code_",
        b"bash_code_",
        b"text_editor_code_",
        b"image_generation_call",
        b"tool_search_",
        b"additional_tools",
    ];
    PREFIXES.iter().any(|prefix| kind.starts_with(prefix))
}

/// Returns the capability that a tool of this `type` needs, if any.
pub(super) fn tool(kind: &[u8]) -> Option<Capability> {
    match kind {
        b"function" | b"custom" => None,
        b"file_search" => Some(Capability::StoredFiles),
        // LiteLLM takes `url` for an MCP server of Anthropic's.
        b"url" => Some(Capability::Mcp),
        _ if kind.starts_with(b"mcp") => Some(Capability::Mcp),
        _ if kind.starts_with(b"web_") => Some(Capability::WebSearch),
        _ => Some(Capability::ServerTools),
    }
}

/// Returns the capability that a `tool_choice` of this `type` needs, if any.
pub(super) fn tool_choice(kind: &[u8]) -> Option<Capability> {
    match kind {
        b"auto" | b"any" | b"none" | b"required" | b"tool" | b"allowed_tools" => None,
        _ => tool(kind),
    }
}

/// Returns whether LiteLLM takes a tool with this member for one of Gemini's own: it drops the type beside it.
pub(super) fn is_gemini_tool(name: &[u8]) -> bool {
    const MEMBERS: [&str; 8] = [
        "googlesearch",
        "googlesearchretrieval",
        "enterprisewebsearch",
        "urlcontext",
        "codeexecution",
        "googlemaps",
        "computeruse",
        "filesearch",
    ];
    // LiteLLM spells them as `codeExecution` and as `code_execution`.
    let plain = |member: &&str| {
        let letters = name.iter().filter(|byte| **byte != b'_').map(u8::to_ascii_lowercase);
        letters.eq(member.bytes())
    };
    MEMBERS.iter().any(plain)
}
