//! Sums up the tokens and the cost of calls.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::{
    money::NanoDollars,
    record::{Correction, ExchangeRecord, Kind, Outcome, Tokens, TokensSource},
};

/// Totals over the calls of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Calls of the model API that were not refused.
    pub calls: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Tokens of all these calls.
    pub tokens: Tokens,
    /// Cost of all these calls, as far as it is known.
    pub cost_nanodollars: NanoDollars,
    /// Calls among them with inexact figures; none if an earlier version counted.
    #[serde(default)]
    pub inexact: InexactCalls,
    /// Calls of host tools that were not refused. They are not among `calls`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Numbers of calls with inexact figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InexactCalls {
    /// Calls that used tokens at an unknown cost.
    pub unpriced: u64,
    /// Calls with tokens estimated at least in part.
    pub estimated: u64,
}

impl Usage {
    /// Adds the calls of `record`.
    pub fn add(&mut self, record: &ExchangeRecord) {
        let counted = match (record.outcome, record.kind) {
            (Outcome::Refused, _) => &mut self.refused,
            (_, Kind::Model | Kind::Correction) => &mut self.calls,
            (_, Kind::Tool) => &mut self.tool_calls,
        };
        *counted = counted.saturating_add(record.calls);
        self.tokens += record.tokens;
        self.cost_nanodollars = self.cost_nanodollars + record.cost_nanodollars.unwrap_or_default();
        self.inexact += record.into();
        if let Some(correction) = &record.correction {
            self.correct(correction);
        }
    }

    /// Corrects the figures of one of these calls.
    pub fn correct(&mut self, correction: &Correction) {
        correction.apply(&mut self.tokens, &mut self.cost_nanodollars);
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        let Self { calls, refused, tokens, cost_nanodollars, inexact, tool_calls } = other;
        self.calls = self.calls.saturating_add(calls);
        self.refused = self.refused.saturating_add(refused);
        self.tokens += tokens;
        self.cost_nanodollars = self.cost_nanodollars + cost_nanodollars;
        self.inexact += inexact;
        self.tool_calls = self.tool_calls.saturating_add(tool_calls);
    }
}

impl InexactCalls {
    /// Counts `calls` calls that ended with these figures. A call that used no tokens costs nothing, so its cost is not
    /// unknown.
    #[must_use]
    pub const fn of(calls: u64, tokens: TokensSource, cost: Option<NanoDollars>) -> Self {
        let is_unpriced = cost.is_none() && !matches!(tokens, TokensSource::None);
        let is_estimated = matches!(tokens, TokensSource::Partial | TokensSource::Estimated);
        Self {
            unpriced: if is_unpriced { calls } else { 0 },
            estimated: if is_estimated { calls } else { 0 },
        }
    }
}

impl From<&ExchangeRecord> for InexactCalls {
    fn from(record: &ExchangeRecord) -> Self {
        Self::of(record.calls, record.tokens_source, record.cost_nanodollars)
    }
}

impl AddAssign for InexactCalls {
    fn add_assign(&mut self, Self { unpriced, estimated }: Self) {
        self.unpriced = self.unpriced.saturating_add(unpriced);
        self.estimated = self.estimated.saturating_add(estimated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_inexact_by_its_sources() {
        let inexact = |unpriced, estimated| InexactCalls { unpriced, estimated };
        let known = Some(NanoDollars(0));
        for (tokens, cost, expected) in [
            (TokensSource::Exact, known, inexact(0, 0)),
            (TokensSource::Exact, None, inexact(3, 0)),
            (TokensSource::Partial, known, inexact(0, 3)),
            (TokensSource::Estimated, None, inexact(3, 3)),
            (TokensSource::None, None, inexact(0, 0)),
        ] {
            assert_eq!(InexactCalls::of(3, tokens, cost), expected, "{tokens:?} {cost:?}");
        }
    }

    #[test]
    fn usage_of_an_earlier_version_is_read() {
        let earlier = r#"{"calls":1,"refused":2,"tokens":{"input":3,"output":4,"cached":0,"reasoning":0},"cost_nanodollars":5}"#;
        let usage: Usage = serde_json::from_str(earlier).unwrap();
        assert_eq!((usage.calls, usage.inexact), (1, InexactCalls::default()));
        let inexact = InexactCalls { unpriced: 6, estimated: u64::MAX };
        let mut sum = Usage { inexact, ..usage };
        let kept = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Usage>(&kept).unwrap(), sum);
        sum += sum;
        assert_eq!(sum.inexact, InexactCalls { unpriced: 12, estimated: u64::MAX });
    }
}
