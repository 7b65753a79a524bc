//! Defines rows of the upstream's own ledger of calls, as the data plane passes them on: without keys, prompts and answers.

use serde::{Deserialize, Serialize};

use crate::{money::NanoDollars, untrusted::JournalText};

/// Most rows of a page.
pub const MAX_SPEND_PAGE: u16 = 500;

/// Page of the upstream's ledger: rows of calls that began in a span of time, the earliest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendPage {
    /// Number of rows on all pages; more than that if `capped`.
    pub total: u64,
    /// True if the upstream stopped counting at `total`.
    #[serde(default)]
    pub capped: bool,
    /// Rows of this page.
    pub rows: Vec<SpendRow>,
    /// Rows of this page that cannot be read.
    #[serde(default)]
    pub unreadable: Vec<UnreadableRow>,
    /// Bytes of the page, as the upstream sent it.
    #[serde(default)]
    pub bytes: u64,
}

/// Row of the upstream's ledger that is not as LiteLLM writes it. It may hold prompts of others, so only its hash is
/// passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableRow {
    /// Id of the row, if that can be read.
    pub request_id: Option<JournalText>,
    /// Time at which the upstream began the call, in milliseconds since the epoch, if that can be read.
    pub began_ms: Option<i64>,
    /// Field that cannot be read; `row` if the row as a whole cannot.
    pub field: JournalText,
    /// SHA-256 of the row as the upstream sent it, in hexadecimal.
    pub sha256: JournalText,
}

/// Row of the upstream's ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendRow {
    /// Id of the row: the upstream has one row for each.
    pub request_id: JournalText,
    /// Id of the call, as its sender chose it.
    pub call_id: Option<JournalText>,
    /// Time at which the upstream began the call, in milliseconds since the epoch.
    pub began_ms: i64,
    /// Cost of the call; absent if the upstream's figure is not an amount.
    pub cost: Option<NanoDollars>,
    /// Tokens of the call, of input and output.
    pub tokens: u64,
    /// Those of the input.
    #[serde(default)]
    pub input: u64,
    /// Those of the output.
    #[serde(default)]
    pub output: u64,
    /// End of the call.
    pub end: SpendEnd,
    /// Model that was asked for.
    pub model: Option<JournalText>,
    /// Account that the upstream billed.
    pub account: Option<JournalText>,
    /// Key with which the call was made.
    pub key: SpendKey,
}

/// End of a call, as the upstream saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpendEnd {
    /// A model answered.
    Answered,
    /// The upstream's cache answered.
    Cached,
    /// No model answered.
    Failed,
}

/// Key with which a call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpendKey {
    /// The data plane's key, or the upstream's master key.
    Own,
    /// Another key.
    Other,
}

impl SpendRow {
    /// Returns what the call cost. Returns `None` if the upstream does not know a price: its figure then is 0, and the
    /// call is not free for that.
    #[must_use]
    pub fn known_cost(&self) -> Option<NanoDollars> {
        let nothing = NanoDollars(0);
        self.cost.filter(|cost| *cost > nothing || self.end != SpendEnd::Answered || self.tokens == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_for_nothing_has_no_known_cost() {
        let row = |cost: Option<u64>, tokens, end| SpendRow {
            request_id: JournalText::of("chatcmpl-1"),
            call_id: None,
            began_ms: 0,
            cost: cost.map(NanoDollars),
            tokens,
            input: 0,
            output: 0,
            end,
            model: None,
            account: None,
            key: SpendKey::Own,
        };
        let table = [
            (row(Some(7), 3, SpendEnd::Answered), Some(7)),
            (row(Some(0), 3, SpendEnd::Answered), None),
            (row(Some(0), 0, SpendEnd::Answered), Some(0)),
            (row(Some(0), 3, SpendEnd::Failed), Some(0)),
            (row(Some(0), 3, SpendEnd::Cached), Some(0)),
            (row(None, 0, SpendEnd::Failed), None),
        ];
        for (row, cost) in table {
            assert_eq!(row.known_cost(), cost.map(NanoDollars), "{row:?}");
        }
    }
}
