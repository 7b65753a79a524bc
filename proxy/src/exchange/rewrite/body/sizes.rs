//! Keeps the sizes that a body asks for, and limits them. Another module decides the limit.

use std::ops::Range;

use platform_core::route::Route;

use super::{Checked, fields::Size};

/// Tokens reserved for a compaction: no field of the API limits its length. The models that offer the route write no
/// longer answers.
const LONGEST_COMPACTION: u64 = 128_000;

/// A size as the body writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    /// Size, or `None` for null, which asks for nothing although the member is there.
    pub(crate) value: Option<u64>,
    /// Position of the value in the body.
    pub(crate) at: Range<usize>,
}

/// The sizes a body asks for, by the names it uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// `n`: how many answers.
    pub(crate) n: Option<Count>,
    /// `best_of`: how many attempts.
    pub(crate) best_of: Option<Count>,
    /// `max_tokens`
    pub(crate) max_tokens: Option<Count>,
    /// `max_completion_tokens`
    pub(crate) max_completion_tokens: Option<Count>,
    /// `max_output_tokens`
    pub(crate) max_output_tokens: Option<Count>,
    /// `budget_tokens` of `thinking`, which has to be less than an answer may have.
    pub(crate) thinking: Option<Count>,
    /// Number of prompts, if there can be several.
    pub(crate) prompts: u64,
}

impl Sizes {
    pub(super) fn note(&mut self, size: Size, count: Count) {
        let slot = match size {
            Size::N => &mut self.n,
            Size::BestOf => &mut self.best_of,
            Size::MaxTokens => &mut self.max_tokens,
            Size::MaxCompletionTokens => &mut self.max_completion_tokens,
            Size::MaxOutputTokens => &mut self.max_output_tokens,
        };
        *slot = Some(count);
    }

    /// Returns the number of requested answers, each with as many tokens as one may have.
    pub(crate) fn answers(&self, route: Route) -> u64 {
        let asked = |count: &Option<Count>| count.as_ref().and_then(|count| count.value);
        let each = asked(&self.n).max(asked(&self.best_of)).unwrap_or(1).max(1);
        match route {
            Route::Embeddings
            | Route::InputTokens
            | Route::CountTokens
            | Route::Models
            | Route::ToolExec
            | Route::Mcp
            | Route::Unknown => 0,
            Route::Completions => each.saturating_mul(self.prompts.max(1)),
            Route::ChatCompletions | Route::Responses | Route::Compact | Route::Messages => each,
        }
    }

    /// Returns the most tokens of an answer, where the run allows `allowed`. A compaction may be longer than that.
    pub(crate) fn most_output(&self, route: Route, allowed: u64) -> u64 {
        match route {
            Route::Compact => allowed.max(LONGEST_COMPACTION),
            _ => self.output().unwrap_or(u64::MAX).min(allowed).max(1),
        }
    }

    /// Returns the most tokens that an answer may have, as far as the body says.
    pub(crate) fn output(&self) -> Option<u64> {
        self.limits().filter_map(|count| count.value).min()
    }

    fn limits(&self) -> impl Iterator<Item = &Count> {
        [&self.max_tokens, &self.max_completion_tokens, &self.max_output_tokens].into_iter().flatten()
    }
}

impl Checked<'_> {
    /// Limits an answer to `most` tokens. A lower limit in the body stays.
    pub(crate) fn limit_output(&mut self, route: Route, most: u64) {
        let value = || most.to_string().into_bytes();
        if let Some(thinking) = self.sizes.thinking.as_ref().filter(|thinking| thinking.value >= Some(most)) {
            self.edits.replace(thinking.at.clone(), most.saturating_sub(1).to_string().into());
        }
        if self.sizes.limits().next().is_none() {
            return match route {
                Route::ChatCompletions | Route::Completions | Route::Messages => {
                    // On chat, too: LiteLLM 1.106.2 turns it into what newer models of OpenAI want, and 17 of its
                    // providers know no `max_completion_tokens`.
                    self.edits.insert("max_tokens", &value());
                }
                Route::Responses => self.edits.insert("max_output_tokens", &value()),
                // No field limits a compaction: `Sizes::most_output` reserves all that it may use.
                Route::Compact
                | Route::Embeddings
                | Route::InputTokens
                | Route::CountTokens
                | Route::Models
                | Route::ToolExec
                | Route::Mcp
                | Route::Unknown => {}
            };
        }
        // Zero and null are replaced, too: some models take them for no limit.
        let is_outside = |count: &&Count| !count.value.is_some_and(|asked| (1..=most).contains(&asked));
        for count in self.sizes.limits().filter(is_outside) {
            self.edits.replace(count.at.clone(), value().into());
        }
    }
}
