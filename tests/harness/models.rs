//! Lists models by what LiteLLM knows of them. LiteLLM treats unknown models differently, so tests of metering use all
//! kinds. All of them are the scripted upstream.

use serde::Serialize;
use serde_json::Value;

use crate::agent::{Answering, saying};

/// A kind of model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Models {
    /// Models unknown to LiteLLM, which fakes their streams of `/v1/responses`.
    Unknown,
    /// OpenAI's models: LiteLLM passes their streams on.
    OpenAi,
    /// Anthropic's models: LiteLLM translates their answers, except on `/v1/messages`.
    Anthropic,
}

impl Models {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Unknown, Self::OpenAi, Self::Anthropic];

    /// Returns the name of a model that follows `script` at `path`; `None` if this kind has no model there.
    #[must_use]
    pub fn name(self, path: &str, script: &str) -> Option<String> {
        let name = match (self, path) {
            (Self::Unknown, _) => script,
            (Self::OpenAi, "/v1/completions") => "gpt-3.5-turbo-instruct",
            (Self::OpenAi, "/v1/embeddings") => "text-embedding-3-large",
            (Self::OpenAi, _) => "gpt-5",
            (Self::Anthropic, "/v1/completions" | "/v1/embeddings") => return None,
            (Self::Anthropic, _) => "claude-sonnet-4-5",
        };
        Some(name.to_owned())
    }

    /// Returns `text`, extended so that a model of this kind follows `script`.
    #[must_use]
    pub fn text(self, script: &str, text: &str) -> String {
        match self {
            Self::Unknown => text.to_owned(),
            Self::OpenAi | Self::Anthropic => format!("{text} [{script}]"),
        }
    }

    /// Returns the body of a request in the form of the API at `path`; `None` if this kind has no model there.
    #[must_use]
    pub fn saying(self, path: &str, script: &str, answering: Answering, text: &str) -> Option<Value> {
        let name = self.name(path, script)?;
        Some(saying(path, &name, answering, &self.text(script, text)))
    }
}
