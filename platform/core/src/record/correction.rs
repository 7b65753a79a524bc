//! Defines the part of a record that corrects an earlier one by what the upstream's ledger says of the call.
//!
//! Only records with tokens estimated at least in part are corrected. A correction is its own line, so the chain keeps
//! both. It counts as no call, and has no tokens and no cost besides those of its two figures.

use serde::{Deserialize, Serialize};

use super::{CostSource, ExchangeRecord, Kind, Tokens, TokensSource};
use crate::{id::CallId, money::NanoDollars};

/// Most calls that one request corrects.
pub const MAX_CORRECTIONS: usize = 100;

/// Figures of a call that count under limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Cost; 0 if it is unknown.
    pub cost_nanodollars: NanoDollars,
}

/// Correction of a call's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// Number of the line with the call's record.
    pub line: u64,
    /// Figures that counted until then.
    pub before: Figures,
    /// Figures that count from then on.
    pub after: Figures,
}

/// Figures of the upstream's ledger about a call. What it does not know stays as it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerFigures {
    /// The call.
    pub call_id: CallId,
    /// Tokens of the prompt.
    pub input: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
    /// Cost.
    pub cost_nanodollars: Option<NanoDollars>,
}

/// Effect of the ledger's figures on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionEffect {
    /// A correction was written, and the counters of limits have moved.
    Corrected,
    /// The call counts with these figures already, or with what was seen of it, which is more.
    Unchanged,
    /// The call's tokens are exact, or its line is not among those that are kept for corrections.
    NotOpen,
}

impl Figures {
    /// Returns the figures as tokens, without those that limits do not know.
    #[must_use]
    pub fn tokens(self) -> Tokens {
        Tokens { input: self.input, output: self.output, ..Tokens::default() }
    }
}

impl From<&ExchangeRecord> for Figures {
    fn from(record: &ExchangeRecord) -> Self {
        let Tokens { input, output, .. } = record.tokens;
        Self { input, output, cost_nanodollars: record.cost_nanodollars.unwrap_or_default() }
    }
}

impl Correction {
    /// Moves sums that include the corrected call.
    pub fn apply(&self, tokens: &mut Tokens, cost: &mut NanoDollars) {
        let Self { before, after, .. } = self;
        let moved = |sum: u64, before: u64, after: u64| sum.saturating_sub(before).saturating_add(after);
        tokens.input = moved(tokens.input, before.input, after.input);
        tokens.output = moved(tokens.output, before.output, after.output);
        cost.0 = moved(cost.0, before.cost_nanodollars.0, after.cost_nanodollars.0);
    }
}

impl LedgerFigures {
    /// Returns the figures with which a call of this `record` counts: never less than what was seen of it.
    #[must_use]
    pub fn correct(&self, record: &ExchangeRecord) -> Figures {
        let booked = Figures::from(record);
        let seen = record.seen.as_deref().copied().unwrap_or_default();
        Figures {
            input: self.input.unwrap_or(booked.input).max(seen.input),
            output: self.output.unwrap_or(booked.output).max(seen.output),
            cost_nanodollars: self
                .cost_nanodollars
                .unwrap_or(booked.cost_nanodollars)
                .max(seen.cost_nanodollars),
        }
    }
}

impl ExchangeRecord {
    /// Returns whether the upstream's ledger may correct this record.
    #[must_use]
    pub fn is_correctable(&self) -> bool {
        self.kind == Kind::Model
            && matches!(self.tokens_source, TokensSource::Partial | TokensSource::Estimated)
    }

    /// Returns the record that corrects this one. It says who made the call, and how the call ended.
    #[must_use]
    pub fn corrected(&self, correction: Correction) -> Self {
        Self {
            refusal: None,
            rule: None,
            timeout: None,
            request_bytes: 0,
            response_bytes: 0,
            ttfb_us: None,
            duration_us: 0,
            tokens: Tokens::default(),
            tokens_source: TokensSource::None,
            cost_nanodollars: None,
            cost_source: CostSource::None,
            tools: Vec::new(),
            kind: Kind::Correction,
            calls: 0,
            seen: None,
            output_rate: None,
            correction: Some(Box::new(correction)),
            ..self.clone()
        }
    }
}
