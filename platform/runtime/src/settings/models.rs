//! Reads how much text models take and give, for agents that have to know it beforehand, and how fast.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SectionName;
use crate::config::Section;

/// `[models."name"]`: how much text a model takes and gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelLimits {
    /// Tokens of a prompt and its answer together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Tokens a second that an answer may have unseen. The data plane alone uses it, so runs do not store it.
    #[serde(skip)]
    pub tokens_per_second: Option<u64>,
}

impl ModelLimits {
    /// Returns whether no limit is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

pub(super) fn read(root: &Section<'_>) -> BTreeMap<String, ModelLimits> {
    let read = |model: &str, section: &Section<'_>| {
        let context_window =
            section.field("context_window", "Tokens of a prompt and its answer together.").optional();
        let max_output_tokens = section.field("max_output_tokens", "Tokens of an answer.").optional();
        if let (Some(window), Some(output)) = (context_window, max_output_tokens)
            && output > window
        {
            let problem = format!("{output} do not fit into the `context_window` of {window} tokens");
            section.reject("max_output_tokens", problem);
        }
        let tokens_per_second = section
            .field(
                "tokens_per_second",
                "Tokens a second that the model may generate unseen, in calls that end early; if absent, the highest rate of its exactly counted calls of the last day, and 200 at least.",
            )
            .optional();
        (model.to_owned(), ModelLimits { context_window, max_output_tokens, tokens_per_second })
    };
    let doc = "How much text a model takes and gives, by the name in the request. Agents get it as COGNI_CONTEXT_WINDOW and COGNI_MAX_TOKENS.";
    root.each(SectionName::Models.name(), doc, read).into_iter().collect()
}
