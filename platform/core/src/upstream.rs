//! Defines what the data plane says about its upstream.

use serde::{Deserialize, Serialize};

use crate::money::NanoDollars;

/// State of the circuit to the upstream. Times are RFC 3339, UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum UpstreamState {
    /// Calls are sent.
    Up,
    /// Calls are refused at once: the upstream could not be reached several times in a row.
    Down {
        /// Time since which the upstream is down.
        since: String,
        /// Reason for the last failure to reach it, in words.
        reason: String,
        /// Milliseconds until the next probe.
        probe_in_ms: u64,
    },
    /// Calls are refused while a probe is under way.
    Probing {
        /// Time since which the upstream is down.
        since: String,
        /// Reason for the last failure to reach it, in words.
        reason: String,
    },
}

impl UpstreamState {
    /// Words for the states, in the order in which they are declared.
    pub const WORDS: [&'static str; 3] = ["up", "down", "probing"];

    /// Returns the word for the state.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Up => Self::WORDS[0],
            Self::Down { .. } => Self::WORDS[1],
            Self::Probing { .. } => Self::WORDS[2],
        }
    }
}

/// Result of a health check of the upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum UpstreamHealth {
    /// The upstream answered, and accepted the key.
    Ready {
        /// Version of the upstream, if it states one.
        version: Option<String>,
        /// Models the upstream offers.
        models: Vec<String>,
    },
    /// The upstream answered, but not with a list of models.
    Refused {
        /// HTTP status of the answer.
        status: u16,
    },
    /// The upstream is a LiteLLM without a database. It knows its master key alone, and was sent another one.
    KeyUnknown,
    /// The upstream did not answer.
    Unreachable {
        /// Reason in words.
        reason: String,
    },
}

/// State of the prices that the upstream shows at `/model/info`, for models without one in the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownPrices {
    /// The configuration turns them off.
    Off,
    /// The upstream has not been asked yet.
    #[default]
    Unread,
    /// The last answer was read.
    Read,
    /// The upstream shows no prices, or not to this proxy's key. Those that were read before stay.
    Refused,
    /// The upstream did not answer, or its answer was not understood. Those that were read before stay.
    Failed,
}

/// Price that calls of a model have under the usual service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPrice {
    /// Name that calls ask for; `*` stands for all models without their own price.
    pub model: String,
    /// Source of the price.
    pub source: PriceSource,
    /// Price of a million tokens of prompts.
    pub input: NanoDollars,
    /// Price of a million tokens of answers.
    pub output: NanoDollars,
}

/// Source of a price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceSource {
    /// `[prices]` of the configuration.
    Table,
    /// The upstream, which shows it at `/model/info`.
    Upstream,
}

/// Returns whether the `listed` models offer `model`; `*` in one stands for any text.
#[must_use]
pub fn offers(listed: &[String], model: &str) -> bool {
    listed.iter().any(|offer| match offer.split_once('*') {
        Some((begin, end)) => model.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
        None => offer == model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_offers_many_models() {
        for (offer, model, is_offered) in [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "gpt-4o-mini", false),
            ("openai/*", "openai/gpt-4o", true),
            ("openai/*", "anthropic/x", false),
            ("openai/*", "other/openai/", false),
            ("*", "anything", true),
            ("a*a", "a", false),
        ] {
            let listed = ["first".to_owned(), offer.to_owned()];
            assert_eq!(offers(&listed, model), is_offered, "{offer} {model}");
        }
    }
}
