//! Computes the numbers that an answer reports. Their rules are simple, so that a test can state the figure it expects.
//! They are not how any model counts:
//!
//! | figure | rule |
//! |---|---|
//! | prompt tokens | bytes of the prompt's text / 4, rounded up |
//! | of these cached | a quarter, rounded down |
//! | completion tokens | words of the answer; of a tool call, fragments of its arguments |
//! | of these reasoning | a fifth, rounded down |
//! | price | 1 µ$ per prompt token and 2 µ$ per completion token; a stream of messages tells that of its last event |

use serde_json::{Value, json};

use super::{api::Api, ledger::Reported};

/// Tokens that one answer consumed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) prompt: usize,
    pub(super) completion: usize,
    /// Price inside the usage, if it is reported there.
    pub(super) price: Option<Price>,
}

/// A price in millionths of a dollar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    micro_dollars: u32,
}

impl Usage {
    pub(super) fn of(prompt_bytes: usize, completion: usize) -> Self {
        Self { prompt: prompt_bytes.div_ceil(4), completion, price: None }
    }

    pub(super) fn price(&self) -> Price {
        let micro_dollars = self.prompt.saturating_add(self.completion.saturating_mul(2));
        Price { micro_dollars: u32::try_from(micro_dollars).unwrap_or(u32::MAX) }
    }

    /// Returns the usage as the ledger records it.
    pub(super) fn reported(&self, api: Api) -> Reported {
        let figure = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let completion = if api == Api::Embeddings { 0 } else { self.completion };
        Reported { input: figure(self.prompt), output: figure(completion), cached: figure(self.cached()) }
    }

    fn cached(&self) -> usize {
        self.prompt / 4
    }

    fn reasoning(&self) -> usize {
        self.completion / 5
    }

    /// Returns the usage as chat and legacy completions report it.
    pub(super) fn of_completions(&self) -> Value {
        self.priced(json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": { "cached_tokens": self.cached() },
            "completion_tokens_details": { "reasoning_tokens": self.reasoning() },
        }))
    }

    pub(super) fn of_embeddings(&self) -> Value {
        self.priced(json!({ "prompt_tokens": self.prompt, "total_tokens": self.prompt }))
    }

    pub(super) fn of_responses(&self) -> Value {
        self.priced(json!({
            "input_tokens": self.prompt,
            "input_tokens_details": { "cached_tokens": self.cached() },
            "output_tokens": self.completion,
            "output_tokens_details": { "reasoning_tokens": self.reasoning() },
            "total_tokens": self.prompt + self.completion,
        }))
    }

    /// Returns the usage as Anthropic reports it: `input_tokens` are those that were *not* read from the cache.
    pub(super) fn of_messages(&self) -> Value {
        self.priced(json!({
            "input_tokens": self.prompt - self.cached(),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached(),
            "output_tokens": self.completion,
        }))
    }

    /// Returns the usage in the last event of a stream of messages, as LiteLLM passes it on: the output alone, with the
    /// price of that (`include_cost_in_streaming_usage`).
    pub(super) fn of_last_message_event(&self) -> Value {
        let price = self.price.map(|_whole| Self { prompt: 0, ..*self }.price());
        Self { price, ..*self }.priced(json!({ "output_tokens": self.completion }))
    }

    fn priced(&self, mut usage: Value) -> Value {
        if let Some(price) = self.price {
            usage["cost"] = price.dollars().into();
        }
        usage
    }
}

impl Price {
    pub(super) const NOTHING: Self = Self { micro_dollars: 0 };

    fn dollars(self) -> f64 {
        f64::from(self.micro_dollars) / 1e6
    }

    /// Returns the price as LiteLLM writes it into a header. It has Python's float format: `2.3e-05`, `0.00012`.
    pub(super) fn header(self) -> String {
        let dollars = self.dollars();
        if self.micro_dollars == 0 || self.micro_dollars >= 100 {
            return dollars.to_string();
        }
        let scientific = format!("{dollars:e}");
        scientific.replace("e-", "e-0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_the_rules() {
        let usage = Usage::of(33, 10);
        assert_eq!((usage.prompt, usage.cached(), usage.completion, usage.reasoning()), (9, 2, 10, 2));
        assert_eq!(usage.price().micro_dollars, 29);
        assert_eq!(usage.of_messages()["input_tokens"], 7);
        let told = Usage { price: Some(usage.price()), ..usage };
        assert_eq!(told.of_last_message_event(), json!({ "output_tokens": 10, "cost": 2e-5 }));
        assert_eq!(usage.of_last_message_event(), json!({ "output_tokens": 10 }));
    }

    #[test]
    fn a_price_is_printed_as_python_does() {
        let printed =
            [(0, "0"), (1, "1e-06"), (23, "2.3e-05"), (99, "9.9e-05"), (100, "0.0001"), (120, "0.00012")];
        for (micro_dollars, text) in printed {
            assert_eq!(Price { micro_dollars }.header(), text);
        }
    }
}
