//! Writes the rules of ids and names again, as the specification has them.

/// Returns whether `text` is the id of a run.
pub(crate) fn is_run(text: &str) -> bool {
    let is_known = |char: char| matches!(char, 'a'..='z' | '0'..='9' | '-');
    !text.is_empty() && text.len() < 64 && text.chars().all(is_known) && !text.starts_with('-')
}

/// Returns whether `text` is the id of a call of a tool.
pub(crate) fn is_call(text: &str) -> bool {
    text.len() <= 64 && is_tool(text)
}

/// Returns whether `text` is the name of a tool.
pub(crate) fn is_tool(text: &str) -> bool {
    let is_known = |char: char| matches!(char, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '-');
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_known)
}
