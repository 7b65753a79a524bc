//! Reads and formats usage and limits, for `sluice usage` and `sluice limit`: tables for people, JSON for programs.
//!
//! Changes nothing, and reads no other run or account than the selected one.

use std::io::{self, IsTerminal};

use platform_core::{
    budget::{Limit, LimitView},
    control::{AccountView, RunState, RunView, Usage},
    id::{AccountId, RunId},
};
use runner_control_client::DataPlane;
use serde::Serialize;

use super::{Error, error::Unknown, table::Table};

/// Width of a bar in cells.
const BAR_WIDTH: u64 = 20;

/// Run or account whose budget a command reads or changes.
#[derive(clap::Args, Debug, Clone)]
#[group(multiple = false)]
pub(super) struct BudgetOwner {
    /// Select this run
    #[arg(long = "run", value_name = "RUN")]
    pub(super) run_id: Option<RunId>,
    /// Select this account, over all its runs
    #[arg(long, value_name = "ACCOUNT")]
    pub(super) account: Option<AccountId>,
}

/// Usage and limits of a run, of an account, or of all runs and accounts.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Spending {
    Run(RunSpending),
    Account(AccountSpending),
    All { accounts: Vec<AccountSpending>, runs: Vec<RunSpending> },
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct RunSpending {
    #[serde(rename = "run")]
    run_id: RunId,
    account: AccountId,
    state: RunState,
    in_flight: u64,
    usage: Usage,
    limits: Vec<LimitUse>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct AccountSpending {
    account: AccountId,
    limits: Vec<LimitUse>,
}

#[derive(Debug, PartialEq, Serialize)]
struct LimitUse {
    #[serde(flatten)]
    view: LimitView,
    left: Option<u64>,
}

impl BudgetOwner {
    /// Reads usage and limits from the data plane.
    pub(super) async fn read(&self, data_plane: &DataPlane) -> Result<Spending, Error> {
        match (&self.run_id, &self.account) {
            (Some(run_id), _) => Ok(read_run(data_plane, run_id).await?.into()),
            (None, Some(account)) => Ok(read_account(data_plane, account).await?.into()),
            (None, None) => {
                let mut runs: Vec<RunSpending> =
                    data_plane.runs().await?.into_iter().map(Into::into).collect();
                runs.sort_by(|one, other| (&one.account, &one.run_id).cmp(&(&other.account, &other.run_id)));
                let accounts = data_plane.accounts().await?.into_iter().map(Into::into).collect();
                Ok(Spending::All { accounts, runs })
            }
        }
    }
}

/// Reads a run. The data plane knows a closed run for a while.
pub(super) async fn read_run(data_plane: &DataPlane, run_id: &RunId) -> Result<RunView, Error> {
    match data_plane.run(run_id).await {
        Err(error) if error.is_unknown_run() => Err(Error::from(Unknown(format!(
            "there is no run {run_id}; `sluice usage` shows the live ones, `sluice audit tail` all calls"
        )))),
        answered => Ok(answered?),
    }
}

/// Reads an account. The data plane knows it if it is configured, or if a run of it was registered.
pub(super) async fn read_account(data_plane: &DataPlane, account: &AccountId) -> Result<AccountView, Error> {
    let all = data_plane.accounts().await?;
    all.into_iter().find(|view| view.account == *account).ok_or_else(|| {
        Error::from(Unknown(format!(
            "the proxy does not know account {account}: the configuration does not name it, and no run of it was \
             opened; `sluice usage` shows those it knows"
        )))
    })
}

impl Spending {
    /// Returns whether nothing can change any more, because the run is closed.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Run(RunSpending { state: RunState::Closed, .. }))
    }

    /// Returns tables, with bars if standard output is a terminal.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Run(RunSpending { run_id, account, state, in_flight, usage, limits }) => {
                let state = state_word(*state);
                let heading = format!("run {run_id} of account {account}: {state}, {in_flight} in flight");
                format!("{heading}\n\n{}\n{}", usage_table(usage), limit_table(limits))
            }
            Self::Account(AccountSpending { account, limits }) => {
                format!("account {account}\n\n{}", limit_table(limits))
            }
            Self::All { accounts, runs } => overview(accounts, runs).to_string(),
        }
    }
}

impl From<RunView> for RunSpending {
    fn from(view: RunView) -> Self {
        let RunView { grant, state, in_flight, usage, limits, .. } = view;
        Self {
            run_id: grant.run_id,
            account: grant.account,
            state,
            in_flight,
            usage,
            limits: limits.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<RunView> for Spending {
    fn from(view: RunView) -> Self {
        Self::Run(view.into())
    }
}

impl From<AccountView> for AccountSpending {
    fn from(AccountView { account, limits }: AccountView) -> Self {
        Self { account, limits: limits.into_iter().map(Into::into).collect() }
    }
}

impl From<AccountView> for Spending {
    fn from(view: AccountView) -> Self {
        Self::Account(view.into())
    }
}

impl From<LimitView> for LimitUse {
    fn from(view: LimitView) -> Self {
        Self { view, left: view.left() }
    }
}

const fn state_word(state: RunState) -> &'static str {
    match state {
        RunState::Open => "open",
        RunState::Closing => "closing",
        RunState::Closed => "closed",
    }
}

fn usage_table(usage: &Usage) -> Table<8> {
    let mut table =
        Table::new(["CALLS", "REFUSED", "INPUT", "OUTPUT", "CACHED", "CACHE_WRITTEN", "REASONING", "COST"]);
    let Usage { calls, refused, tokens, cost_nanodollars } = usage;
    let counts = [
        calls,
        refused,
        &tokens.input,
        &tokens.output,
        &tokens.cached,
        &tokens.cache_written,
        &tokens.reasoning,
    ];
    let [calls, refused, input, output, cached, written, reasoning] = counts.map(ToString::to_string);
    let cost = cost_nanodollars.to_string();
    table.row([calls, refused, input, output, cached, written, reasoning, cost]);
    table
}

fn limit_table(limits: &[LimitUse]) -> Table<6> {
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
            or_none(sum(view.used)),
            or_none(sum(view.reserved)),
            or_none(left.and_then(sum)),
            bar,
        ]);
    }
    table
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

fn overview(accounts: &[AccountSpending], runs: &[RunSpending]) -> Table<8> {
    let mut table =
        Table::new(["ACCOUNT", "RUN", "IN FLIGHT", "CALLS", "INPUT", "OUTPUT", "COST", "NEAREST LIMIT"]);
    for account in accounts {
        table.row(overview_row(&account.account, "", &account.limits));
        for run in runs.iter().filter(|run| run.account == account.account) {
            table.row(overview_row(&run.account, run.run_id.as_str(), &run.limits));
        }
    }
    table
}

fn overview_row(account: &AccountId, run: &str, limits: &[LimitUse]) -> [String; 8] {
    let find = |limit| limits.iter().map(|used| &used.view).find(|view| view.limit == limit);
    let used = |limit: Limit| limit.amount(find(limit).map_or(0, |view| view.used));
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
