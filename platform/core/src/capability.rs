//! Defines the capabilities that a run may be granted beyond plain model calls: a closed list of names.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Way in which a call reaches beyond the model, or back to stored data of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Images, audio, files and documents named by URL, which LiteLLM or the provider fetches.
    MediaUrls,
    /// Files, vector stores and containers named by id, and the search in them.
    StoredFiles,
    /// Tools that the provider runs: code, computers, shells, images; and their results in a conversation.
    ServerTools,
    /// MCP servers that LiteLLM or the provider calls.
    Mcp,
    /// Search of the web and fetching from it.
    WebSearch,
    /// Earlier answers and conversations named by id.
    StoredResponses,
    /// Prompt templates named by id.
    StoredPrompts,
    /// Answers produced in the background while no client waits, so that Sluicegate cannot meter them.
    Background,
    /// Content of a type that is not on the list.
    UnlistedContent,
    /// Faster service or service at a chosen location, which may cost more than the price table says.
    PremiumService,
}

impl Capability {
    /// All capabilities, for tables and tests.
    pub const ALL: [Self; 10] = [
        Self::MediaUrls,
        Self::StoredFiles,
        Self::ServerTools,
        Self::Mcp,
        Self::WebSearch,
        Self::StoredResponses,
        Self::StoredPrompts,
        Self::Background,
        Self::UnlistedContent,
        Self::PremiumService,
    ];

    /// Returns the name, as grants spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MediaUrls => "media_urls",
            Self::StoredFiles => "stored_files",
            Self::ServerTools => "server_tools",
            Self::Mcp => "mcp",
            Self::WebSearch => "web_search",
            Self::StoredResponses => "stored_responses",
            Self::StoredPrompts => "stored_prompts",
            Self::Background => "background",
            Self::UnlistedContent => "unlisted_content",
            Self::PremiumService => "premium_service",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for a text that names no capability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a capability; there are: {list}", list = Capability::ALL.map(Capability::name).join(", "))]
pub struct UnknownCapability(String);

impl FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(text: &str) -> Result<Self, UnknownCapability> {
        let named = Self::ALL.into_iter().find(|capability| capability.name() == text);
        named.ok_or_else(|| UnknownCapability(text.chars().take(80).collect()))
    }
}

/// Set of capabilities; a list of names in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Capability>", into = "Vec<Capability>")]
pub struct Capabilities(u16);

impl Capabilities {
    /// Returns whether `capability` is in the set.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u16 != 0
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(granted: I) -> Self {
        Self(granted.into_iter().fold(0, |set, capability| set | 1 << capability as u16))
    }
}

impl From<Vec<Capability>> for Capabilities {
    fn from(granted: Vec<Capability>) -> Self {
        granted.into_iter().collect()
    }
}

impl From<Capabilities> for Vec<Capability> {
    fn from(granted: Capabilities) -> Self {
        Capability::ALL.into_iter().filter(|capability| granted.has(*capability)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_a_list_of_names_in_json() {
        for capability in Capability::ALL {
            assert_eq!(serde_json::to_string(&capability).unwrap(), format!("\"{}\"", capability.name()));
        }
        let granted: Capabilities = serde_json::from_str(r#"["mcp","media_urls","mcp"]"#).unwrap();
        assert!(granted.has(Capability::Mcp) && !granted.has(Capability::Background));
        assert_eq!(serde_json::to_string(&granted).unwrap(), r#"["media_urls","mcp"]"#);
        assert!(serde_json::from_str::<Capabilities>(r#"["everything"]"#).is_err());
    }
}
