//! Formats usage and limits as tables. Marks figures that are not exact.

use std::io::{self, IsTerminal};

use platform_core::{
    budget::{Limit, LimitView},
    control::{InexactCalls, Usage},
    money::NanoDollars,
};

use super::{AccountSpending, LimitUse, RunSpending};
use crate::commands::{figures, table::Table};

/// Width of a bar in cells.
const BAR_WIDTH: u64 = 20;

pub(super) fn usage_table(usage: &Usage) -> Table<8> {
    let mut table =
        Table::new(["CALLS", "REFUSED", "INPUT", "OUTPUT", "CACHED", "CACHE_WRITTEN", "REASONING", "COST"]);
    let Usage { calls, refused, tokens, cost_nanodollars, inexact, .. } = *usage;
    let counts = [tokens.input, tokens.output, tokens.cached, tokens.cache_written, tokens.reasoning];
    let [input, output, cached, written, reasoning] = counts.map(|count| figures::tokens(count, inexact));
    let cost = figures::cost(cost_nanodollars, inexact);
    table.row([calls.to_string(), refused.to_string(), input, output, cached, written, reasoning, cost]);
    table
}

pub(super) fn limit_table(limits: &[LimitUse], inexact: InexactCalls) -> Table<6> {
    let is_terminal = io::stdout().is_terminal();
    let mut table = Table::new(["LIMIT", "ALLOWED", "USED", "RESERVED", "LEFT", ""]);
    for LimitUse { view, left } in limits {
        let amount = |amount: u64| view.limit.amount(amount);
        let or_none = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), amount);
        // A rate is not used up: its use, reservations and rest have no meaning.
        let is_sum = view.limit != Limit::RequestsPerMinute;
        let sum = |amount: u64| is_sum.then_some(amount);
        let bar = if is_terminal && is_sum { bar(view) } else { String::new() };
        table.row([
            view.limit.to_string(),
            or_none(view.allowed),
            if is_sum { used_in_words(view, inexact) } else { "-".to_owned() },
            or_none(sum(view.reserved)),
            or_none(left.and_then(sum)),
            bar,
        ]);
    }
    table
}

/// Formats the used amount of a limit, with a mark if it is not exact.
fn used_in_words(view: &LimitView, inexact: InexactCalls) -> String {
    match view.limit {
        Limit::CostNanodollars => figures::cost(NanoDollars(view.used), inexact),
        Limit::InputTokens | Limit::OutputTokens | Limit::TotalTokens => figures::tokens(view.used, inexact),
        limit => limit.amount(view.used),
    }
}

/// Draws the used, reserved and free parts of a limit. The least use shows as one cell.
fn bar(view: &LimitView) -> String {
    let Some(allowed) = view.allowed else { return String::new() };
    let cells = |amount: u64| {
        let cells = (u128::from(amount) * u128::from(BAR_WIDTH)).div_ceil(u128::from(allowed.max(1)));
        usize::try_from(cells.min(u128::from(BAR_WIDTH))).unwrap_or(0)
    };
    let used = if allowed == 0 { cells(1) } else { cells(view.used) };
    let reserved = cells(view.used.saturating_add(view.reserved)).max(used) - used;
    format!(
        "{}{}{}",
        "█".repeat(used),
        "▒".repeat(reserved),
        "░".repeat(cells(allowed.max(1)) - used - reserved)
    )
}

pub(super) fn overview(accounts: &[AccountSpending], runs: &[RunSpending]) -> Table<8> {
    let mut table =
        Table::new(["ACCOUNT", "RUN", "IN FLIGHT", "CALLS", "INPUT", "OUTPUT", "COST", "NEAREST LIMIT"]);
    for account in accounts {
        table.row(overview_row([account.account.as_str(), ""], &account.limits, account.inexact));
        for run in runs.iter().filter(|run| run.account == account.account) {
            let names = [run.account.as_str(), run.run_id.as_str()];
            table.row(overview_row(names, &run.limits, run.usage.inexact));
        }
    }
    table
}

fn overview_row([account, run]: [&str; 2], limits: &[LimitUse], inexact: InexactCalls) -> [String; 8] {
    let find = |limit| limits.iter().map(|used| &used.view).find(|view| view.limit == limit);
    let used =
        |limit: Limit| find(limit).map_or_else(|| limit.amount(0), |view| used_in_words(view, inexact));
    [
        account.to_string(),
        run.to_owned(),
        find(Limit::CallsInFlight).map_or(0, |view| view.reserved).to_string(),
        used(Limit::Requests),
        used(Limit::InputTokens),
        used(Limit::OutputTokens),
        used(Limit::CostNanodollars),
        nearest_limit(limits),
    ]
}

/// Returns the limit of which the greatest part is used or reserved, in words.
fn nearest_limit(limits: &[LimitUse]) -> String {
    let used_percent = |used: &LimitUse| {
        let LimitView { limit, allowed, used, reserved } = used.view;
        let total = u128::from(used) + u128::from(reserved);
        let percent = match allowed? {
            0 => 100,
            allowed => total * 100 / u128::from(allowed),
        };
        (limit != Limit::RequestsPerMinute).then_some((percent, limit))
    };
    let fullest = limits.iter().filter_map(used_percent).max_by_key(|(percent, _)| *percent);
    fullest.map_or_else(|| "-".to_owned(), |(percent, limit)| format!("{limit}, {percent} %"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_used_reserved_and_free_parts() {
        let cases = [
            ((None, 7, 0), (0, 0, 0)),
            ((Some(100), 0, 0), (0, 0, 20)),
            ((Some(100), 1, 0), (1, 0, 19)),
            ((Some(100), 50, 25), (10, 5, 5)),
            ((Some(100), 100, 0), (20, 0, 0)),
            ((Some(100), 130, 40), (20, 0, 0)),
            ((Some(0), 0, 0), (20, 0, 0)),
            ((Some(u64::MAX - 1), u64::MAX / 2, u64::MAX / 2), (10, 10, 0)),
        ];
        for ((allowed, used, reserved), (full, shaded, empty)) in cases {
            let view = LimitView { limit: Limit::TotalTokens, allowed, used, reserved };
            let expected = format!("{}{}{}", "█".repeat(full), "▒".repeat(shaded), "░".repeat(empty));
            assert_eq!(bar(&view), expected, "{view:?}");
        }
    }

    #[test]
    fn the_nearest_limit_is_the_fullest() {
        let used = |limit, allowed, used| LimitUse::from(LimitView { limit, allowed, used, reserved: 0 });
        let none = used(Limit::Requests, None, 1000);
        let half = used(Limit::InputTokens, Some(10), 5);
        let most = used(Limit::CostNanodollars, Some(1000), 990);
        assert_eq!(nearest_limit(&[none, half, most]), "cost, 99 %");
        assert_eq!(nearest_limit(&[used(Limit::Requests, None, 1000)]), "-");
        assert_eq!(nearest_limit(&[used(Limit::Requests, Some(0), 0)]), "requests, 100 %");
    }
}
