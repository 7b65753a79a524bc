//! Decides what a call costs: what the upstream reports, checked by the price table. Pure.
//!
//! LiteLLM computes the cost of a streamed `/v1/messages` from its last event alone, which may hold the output only
//! (LiteLLM's setting `include_cost_in_streaming_usage`). Measured: a 21st part of the cost in its own ledger. So that
//! report is never used. Elsewhere the higher figure counts: a limit must not let more pass than it allows. The prices that
//! the upstream shows stand in for a report, and check none: it prices its reports by them, and knows of discounts.

use platform_core::{
    money::NanoDollars,
    record::{CostSource, ExchangeRecord, TokensSource},
    route::Route,
};

use crate::budget::KnownPrice;

/// Part of the higher figure by which the lower one may be below it, as a divisor: a twentieth is 5 %.
const TOLERANCE: u64 = 20;

/// Returns the cost that the body of an answer reported, if it can be right.
pub(super) fn reported(cost: Option<NanoDollars>, record: &ExchangeRecord) -> Option<NanoDollars> {
    cost.filter(|_| !(record.stream && record.route == Route::Messages))
}

/// Sets the cost of a call that has ended, and its source. The record has the reported cost, and the tokens.
pub(super) fn settle(record: &mut ExchangeRecord, price: Option<KnownPrice>) {
    // LiteLLM reports a cost of 0 if it does not know the model's price.
    let reported = record.cost_nanodollars.filter(|cost| *cost > NanoDollars(0));
    let price = price.filter(|_| record.tokens_source != TokensSource::None);
    let checks_reports = matches!(price, Some(KnownPrice::Table(_)));
    let priced = price.map(|price| price.tariff().cost(&record.tokens));
    (record.cost_nanodollars, record.cost_source) = match (reported, priced) {
        (Some(reported), Some(table)) if checks_reports => {
            let higher = reported.max(table);
            let source = match record.tokens_source {
                TokensSource::Exact if differ(reported, table) => CostSource::Unconfirmed,
                _ if table > reported => CostSource::Priced,
                _ => CostSource::Upstream,
            };
            (Some(higher), source)
        }
        (Some(reported), _) => (Some(reported), CostSource::Upstream),
        (None, Some(cost)) => (Some(cost), CostSource::Priced),
        (None, None) => (None, CostSource::None),
    };
}

/// Returns whether two costs differ by more than the tolerance. A billionth of a dollar is rounding.
fn differ(one: NanoDollars, other: NanoDollars) -> bool {
    let difference = one.0.abs_diff(other.0);
    difference > 1 && difference > one.0.max(other.0) / TOLERANCE
}

#[cfg(test)]
mod tests {
    use platform_core::{
        budget::Price,
        record::{JournalLine, Tokens},
        tariff::Tariff,
    };

    use super::*;

    fn record(source: TokensSource, reported: Option<u64>) -> ExchangeRecord {
        let line: JournalLine =
            serde_json::from_str(include_str!("../../tests/golden/journal-line.json")).unwrap();
        let tokens = Tokens { input: 1000, ..Tokens::default() };
        let cost_nanodollars = reported.map(NanoDollars);
        ExchangeRecord { tokens, tokens_source: source, cost_nanodollars, ..line.record }
    }

    /// Returns prices of this many billionths of a dollar for a token of a prompt.
    fn tariff(input: u64) -> Tariff {
        Price { input: NanoDollars(input * 1_000_000), ..Price::default() }.into()
    }

    #[test]
    fn the_higher_of_report_and_table_counts() {
        use CostSource::{None as Unknown, Priced, Unconfirmed, Upstream};
        use TokensSource::{Estimated, Exact, None as NoTokens, Partial};
        let table = [
            (Exact, Some(100_000), Some(100), 100_000, Upstream),
            // Five parts in a hundred, either way, and a little more.
            (Exact, Some(95_000), Some(100), 100_000, Priced),
            (Exact, Some(94_999), Some(100), 100_000, Unconfirmed),
            (Exact, Some(105_263), Some(100), 105_263, Upstream),
            (Exact, Some(105_264), Some(100), 105_264, Unconfirmed),
            (Exact, Some(u64::MAX), Some(100), u64::MAX, Unconfirmed),
            // A table of nothing is a price. So is not a report of nothing.
            (Exact, Some(100_000), Some(0), 100_000, Unconfirmed),
            (Exact, Some(0), Some(0), 0, Priced),
            (Exact, Some(0), Some(100), 100_000, Priced),
            (Exact, None, Some(100), 100_000, Priced),
            (Exact, Some(1), None, 1, Upstream),
            (Exact, Some(0), None, u64::MAX, Unknown),
            (Exact, None, None, u64::MAX, Unknown),
            // Without exact tokens the table confirms nothing, and denies nothing.
            (Partial, Some(1), Some(100), 100_000, Priced),
            (Estimated, Some(1), Some(100), 100_000, Priced),
            (Estimated, Some(200_000), Some(100), 200_000, Upstream),
            (NoTokens, Some(7), Some(100), 7, Upstream),
            (NoTokens, None, Some(100), u64::MAX, Unknown),
        ];
        for (tokens, reported, price, expected, source) in table {
            let mut record = record(tokens, reported);
            settle(&mut record, price.map(tariff).map(KnownPrice::Table));
            let expected = (source != Unknown).then_some(NanoDollars(expected));
            assert_eq!(
                (record.cost_nanodollars, record.cost_source),
                (expected, source),
                "{tokens:?} {reported:?}"
            );
        }
    }

    #[test]
    fn a_shown_price_stands_in_for_a_report() {
        use CostSource::{None as Unknown, Priced, Upstream};
        use TokensSource::{Estimated, Exact, None as NoTokens};
        for (tokens, reported, expected, source) in [
            (Exact, Some(1), Some(1), Upstream),
            (Exact, Some(200_000), Some(200_000), Upstream),
            (Exact, Some(0), Some(100_000), Priced),
            (Estimated, None, Some(100_000), Priced),
            (NoTokens, None, None, Unknown),
        ] {
            let mut record = record(tokens, reported);
            settle(&mut record, Some(KnownPrice::Shown(tariff(100))));
            let found = (record.cost_nanodollars, record.cost_source);
            assert_eq!(found, (expected.map(NanoDollars), source), "{tokens:?} {reported:?}");
        }
    }

    #[test]
    fn rounding_is_no_difference() {
        for (one, other, expected) in
            [(0, 0, false), (0, 1, false), (1, 2, false), (1, 3, true), (20, 22, true)]
        {
            assert_eq!(differ(NanoDollars(one), NanoDollars(other)), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_streamed_message_reports_no_cost() {
        let cost = Some(NanoDollars(7));
        for (route, stream, expected) in [
            (Route::Messages, true, None),
            (Route::Messages, false, cost),
            (Route::ChatCompletions, true, cost),
            (Route::Responses, true, cost),
        ] {
            let record = ExchangeRecord { route, stream, ..record(TokensSource::Exact, None) };
            assert_eq!(reported(cost, &record), expected, "{route:?} {stream}");
        }
    }
}
