//! Maps the names of members of content to what is checked in them.

use platform_core::capability::Capability;

/// Meaning of strings at a place in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringMeaning {
    /// Words for the model.
    Text,
    /// The inside of an image, file or other medium: no string may contain a URL.
    Medium,
    /// Position where a URL is expected: a string must be a `data:` URL.
    Locator,
    /// An item of the Responses API: as text, but a bare id means a stored item.
    Item,
}

/// Kind of a member of content.
#[derive(Debug, Clone, Copy)]
pub(super) enum MemberRule {
    Kind,
    Role,
    Opaque,
    Stored(Capability),
    Tools,
    Tool,
    Execution,
    Walk(StringMeaning),
}

/// Returns whether strings there are, or locate, something other than text.
pub(super) fn is_medium(meaning: StringMeaning) -> bool {
    matches!(meaning, StringMeaning::Medium | StringMeaning::Locator)
}

/// Returns the kind of a member with this name. The names are compared one after the other, so the frequent
/// ones are first.
pub(super) fn member_rule(meaning: StringMeaning, name: &[u8]) -> MemberRule {
    match name {
        b"type" => MemberRule::Kind,
        b"content" | b"text" => MemberRule::Walk(StringMeaning::Text),
        b"execution" if meaning == StringMeaning::Item => MemberRule::Execution,
        b"arguments" if !is_medium(meaning) => MemberRule::Opaque,
        b"role" if !is_medium(meaning) => MemberRule::Role,
        b"function" | b"name" | b"tool_calls" | b"tool_call_id" | b"tool_use_id" if !is_medium(meaning) => {
            MemberRule::Walk(StringMeaning::Text)
        }
        b"file_id" | b"file_ids" | b"fileId" | b"vector_store_id" | b"vector_store_ids" | b"container"
        | b"container_id" => MemberRule::Stored(Capability::StoredFiles),
        b"previous_response_id" | b"comparison_response_id" => {
            MemberRule::Stored(Capability::StoredResponses)
        }
        b"source" | b"image" | b"images" | b"file" | b"files" | b"audio" | b"video" | b"document"
        | b"media" | b"input_audio" | b"input_image" | b"input_file" | b"input_video" => {
            MemberRule::Walk(StringMeaning::Locator)
        }
        _ if holds_data(name) => MemberRule::Walk(StringMeaning::Medium),
        _ if names_a_url(name) => MemberRule::Walk(StringMeaning::Locator),
        _ if is_medium(meaning) => inside_medium(name),
        // Codex's notes on an item, with types of their own. They say when and by what the item was made.
        _ if meaning == StringMeaning::Item && name.ends_with(b"metadata_passthrough") => MemberRule::Opaque,
        _ => inside_text(name),
    }
}

/// Returns whether a member of this name contains the medium itself, in base64.
pub(super) fn holds_data(name: &[u8]) -> bool {
    matches!(name, b"data" | b"file_data" | b"fileData" | b"base64" | b"bytes")
}

fn inside_medium(name: &[u8]) -> MemberRule {
    match name {
        // `"audio": {"id": …}` is an earlier spoken answer.
        b"id" => MemberRule::Stored(Capability::StoredFiles),
        b"title" | b"filename" => MemberRule::Walk(StringMeaning::Text),
        _ => MemberRule::Walk(StringMeaning::Medium),
    }
}

fn inside_text(name: &[u8]) -> MemberRule {
    match name {
        b"tools" => MemberRule::Tools,
        b"definition" => MemberRule::Tool,
        // Arguments of a tool, like `arguments`, and its schema: only the agent uses them.
        b"input" | b"parameters" | b"input_schema" | b"output_schema" => MemberRule::Opaque,
        // Notes that have no effect and that contain URLs or types of their own.
        b"annotations"
        | b"citations"
        | b"logprobs"
        | b"cache_control"
        | b"prompt_cache_breakpoint"
        | b"caller"
        | b"reasoning_details"
        | b"transformations" => MemberRule::Opaque,
        // Results of a call of a granted kind.
        b"action" | b"actions" | b"operation" | b"environment" => MemberRule::Opaque,
        _ => MemberRule::Walk(StringMeaning::Text),
    }
}

/// Returns whether a name ends like `url`, `image_url`, `fileUri`, `video_urls`.
pub(super) fn names_a_url(name: &[u8]) -> bool {
    let singular = name.strip_suffix(b"s").unwrap_or(name);
    let tail = singular.len().checked_sub(3).map_or(singular, |start| &singular[start..]);
    tail.eq_ignore_ascii_case(b"url") || tail.eq_ignore_ascii_case(b"uri")
}
