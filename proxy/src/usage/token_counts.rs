//! Keeps the figures of a `usage`, as OpenAI and Anthropic name them, reported once or several times.

use platform_core::{record::Tokens, route::Route};

/// A figure of a `usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    /// OpenAI's chat, completions and embeddings: cached tokens are included.
    Prompt,
    Completion,
    /// Both together; the prompt alone, where answers have no tokens.
    Total,
    /// OpenAI's responses, as above; Anthropic's messages: cached and cache-written tokens are not included.
    Input,
    Output,
    /// Anthropic's names, which LiteLLM also puts beside OpenAI's.
    CacheRead,
    CacheCreation,
    /// OpenAI's details.
    Cached,
    CacheWritten,
    Reasoning,
    /// Anthropic's details, and LiteLLM's: written to a cache that keeps it for an hour.
    Hour,
}

const FIGURES: usize = Figure::Hour as usize + 1;

impl Figure {
    /// Returns the figure of the member `name` of a `usage`.
    pub(super) const fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"prompt_tokens" => Self::Prompt,
            b"completion_tokens" => Self::Completion,
            b"total_tokens" => Self::Total,
            b"input_tokens" => Self::Input,
            b"output_tokens" => Self::Output,
            b"cache_read_input_tokens" => Self::CacheRead,
            b"cache_creation_input_tokens" => Self::CacheCreation,
            _ => return None,
        })
    }
}

/// Figures that were reported.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenCounts([Option<u64>; FIGURES]);

impl TokenCounts {
    /// Notes a figure. Of one that an object holds twice, which readers understand in different ways, the larger
    /// counts.
    pub(super) fn note(&mut self, figure: Figure, count: Option<u64>) {
        let known = &mut self.0[figure as usize];
        *known = (*known).max(count);
    }

    /// Notes figures that were reported later. The larger counts: Anthropic counts up, and not every repetition holds
    /// every figure.
    pub(super) fn merge(&mut self, later: &Self) {
        for (known, later) in self.0.iter_mut().zip(later.0) {
            *known = (*known).max(later);
        }
    }

    /// Returns whether anything but details was reported.
    pub(super) fn is_usage(&self) -> bool {
        self.0[..=Figure::CacheCreation as usize].iter().any(Option::is_some)
    }

    /// Returns whether all is there that answers of `route` count, and can be true: no prompt is empty.
    pub(super) fn are_whole(&self, route: Route) -> bool {
        let has_output = self.is_there(Figure::Completion) || self.is_there(Figure::Output);
        self.tokens().input > 0 && (has_output || route == Route::Embeddings)
    }

    const fn is_there(&self, figure: Figure) -> bool {
        self.0[figure as usize].is_some()
    }

    fn of(&self, figure: Figure) -> u64 {
        self.0[figure as usize].unwrap_or_default()
    }

    pub(super) fn tokens(&self) -> Tokens {
        let of = |figure| self.of(figure);
        // Anthropic counts cached and cache-written tokens beside its input; OpenAI includes them.
        let beside =
            of(Figure::Input).saturating_add(of(Figure::CacheRead)).saturating_add(of(Figure::CacheCreation));
        let cache_written_1h = of(Figure::Hour);
        Tokens {
            input: of(Figure::Prompt).max(beside).max(of(Figure::Total)),
            output: of(Figure::Completion).max(of(Figure::Output)),
            cached: of(Figure::Cached).max(of(Figure::CacheRead)),
            cache_written: of(Figure::CacheWritten).max(of(Figure::CacheCreation)).max(cache_written_1h),
            cache_written_1h,
            reasoning: of(Figure::Reasoning),
        }
    }
}

/// Parses a count as JSON writes numbers, whole ones or not; also one within quotes. One that is too large is the
/// largest; a negative one does not count.
pub(super) fn parse_count(number: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(number).ok()?;
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (is_small, power) = match exponent.strip_prefix('-') {
        Some(power) => (true, power),
        None => (false, exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    if ![whole, fraction, power].into_iter().all(are_digits) {
        return None;
    }
    let power = power.parse::<usize>().unwrap_or(usize::MAX);
    let before_point =
        if is_small { whole.len().saturating_sub(power) } else { whole.len().saturating_add(power) };
    let mut digits = whole.bytes().chain(fraction.bytes());
    let mut value = 0_u64;
    for _ in 0..before_point {
        let digit = digits.next();
        if digit.is_none() && value == 0 {
            break;
        }
        let digit = u64::from(digit.unwrap_or(b'0') - b'0');
        let Some(more) = value.checked_mul(10).and_then(|value| value.checked_add(digit)) else {
            return Some(u64::MAX);
        };
        value = more;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_however_they_are_written() {
        let table = [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("12.7", Some(12)),
            ("0", Some(0)),
            ("1e3", Some(1000)),
            ("5E2", Some(500)),
            ("1.25e+1", Some(12)),
            ("1250e-2", Some(12)),
            ("1e-400", Some(0)),
            ("0e999999999999999999999", Some(0)),
            ("1e999999999999999999999", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("-1", None),
            ("-0", None),
            ("+1", None),
            (".5", None),
            ("1.", None),
            ("1e", None),
            ("1e+-1", None),
            ("", None),
            ("many", None),
            ("true", None),
            ("null", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_count(text.as_bytes()), expected, "{text}");
        }
    }
}
