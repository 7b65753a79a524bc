//! The figures of a `usage`, as OpenAI and Anthropic name them, told once or several times.

use platform_core::record::Tokens;

use super::json::Json;

/// What has been told so far. A later figure takes the place of an earlier one unless it is zero: Anthropic counts up,
/// some upstreams guess at first, and not every repetition holds every figure.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// OpenAI's chat, completions and embeddings: what came from a cache is within.
    prompt: u64,
    completion: u64,
    /// OpenAI's responses, as above; Anthropic's messages: what came from or went to a cache is not within.
    input: u64,
    output: u64,
    /// Anthropic's names, which LiteLLM also puts beside OpenAI's.
    cache_read: u64,
    cache_creation: u64,
    /// OpenAI's details.
    cached: u64,
    cache_written: u64,
    reasoning: u64,
}

impl Counts {
    /// Takes note of a member of a `usage`; returns whether it is a count.
    pub(super) fn note(&mut self, name: &[u8], value: Json<'_>) -> bool {
        let place = match name {
            b"prompt_tokens" => &mut self.prompt,
            b"completion_tokens" => &mut self.completion,
            b"input_tokens" => &mut self.input,
            b"output_tokens" => &mut self.output,
            b"cache_read_input_tokens" => &mut self.cache_read,
            b"cache_creation_input_tokens" => &mut self.cache_creation,
            b"prompt_tokens_details" | b"input_tokens_details" => {
                self.note_prompt(value);
                return false;
            }
            b"completion_tokens_details" | b"output_tokens_details" => {
                set(&mut self.reasoning, value.member("reasoning_tokens"));
                return false;
            }
            _ => return false,
        };
        set(place, value)
    }

    fn note_prompt(&mut self, details: Json<'_>) {
        for (name, value) in details.members() {
            match name {
                b"cached_tokens" => set(&mut self.cached, value),
                b"cache_creation_tokens" | b"cache_write_tokens" => set(&mut self.cache_written, value),
                _ => false,
            };
        }
    }

    pub(super) fn tokens(&self) -> Tokens {
        // Anthropic counts what came from and went to a cache beside its input; OpenAI counts it within.
        let beside = self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation);
        let either = |one: u64, other: u64| if one > 0 { one } else { other };
        Tokens {
            input: either(self.prompt, beside),
            output: either(self.completion, self.output),
            cached: either(self.cached, self.cache_read),
            cache_written: either(self.cache_written, self.cache_creation),
            cache_written_1h: 0,
            reasoning: self.reasoning,
        }
    }
}

/// Returns whether `value` is a count.
fn set(place: &mut u64, value: Json<'_>) -> bool {
    let count = value.count();
    *place = count.filter(|count| *count > 0).unwrap_or(*place);
    count.is_some()
}
