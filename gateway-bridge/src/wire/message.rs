//! Reads the text of messages.

use platform_core::json::Raw;
use serde::Deserialize;

use super::Malformed;

#[derive(Deserialize)]
pub(super) struct RawMessage<'a> {
    #[serde(borrow)]
    content: Option<Raw<'a>>,
}

#[derive(Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<String>,
}

impl RawMessage<'_> {
    pub(super) fn text(&self) -> Result<String, Malformed> {
        self.content.map_or_else(|| Ok(String::new()), text_of)
    }
}

/// Returns the text of a message's content: one text, or parts of which some are text.
pub(super) fn text_of(content: Raw<'_>) -> Result<String, Malformed> {
    if content.get().starts_with('"') {
        return content.read().map_err(|_error| Malformed);
    }
    let parts: Vec<ContentPart> = content.read().map_err(|_error| Malformed)?;
    let texts = parts.into_iter().filter(|part| part.kind.as_deref() == Some("text"));
    Ok(texts.filter_map(|part| part.text).collect())
}
