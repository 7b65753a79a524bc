//! Reads and formats usage and limits, for `sluice usage` and `sluice limit`: tables for people, JSON for programs.
//!
//! Changes nothing, and reads no other run or account than the selected one.

mod tables;

use platform_core::{
    budget::LimitView,
    control::{AccountView, InexactCalls, RunState, RunView, Usage},
    id::{AccountId, RunId},
};
use runner_control_client::DataPlane;
use serde::Serialize;

use self::tables::{limit_table, overview, usage_table};
use super::{
    Context, Error,
    error::Unknown,
    run_reference::{self, RunReference},
};

/// Owner of the budget that a command reads or changes: a run or an account.
#[derive(clap::Args, Debug, Clone)]
#[group(multiple = false)]
pub(super) struct BudgetOwner {
    /// Select this run: its id, or at least 4 characters of its beginning or end
    #[arg(long, value_name = "RUN")]
    pub(super) run: Option<RunReference>,
    /// Select the newest run; trial runs of `sluice doctor` do not count
    #[arg(long)]
    pub(super) last: bool,
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
    inexact: InexactCalls,
}

#[derive(Debug, PartialEq, Serialize)]
struct LimitUse {
    #[serde(flatten)]
    view: LimitView,
    left: Option<u64>,
}

impl BudgetOwner {
    /// Returns the selected run, if one is selected.
    ///
    /// # Errors
    /// If several runs have the given part, no run exists yet, or the proxy or the store fails.
    pub(super) async fn run_id(
        &self,
        context: &Context,
        data_plane: &DataPlane,
    ) -> Result<Option<RunId>, Error> {
        match &self.run {
            Some(run) => run.in_proxy(data_plane).await.map(Some),
            None if self.last => run_reference::newest(&context.store().await?).await.map(Some),
            None => Ok(None),
        }
    }

    /// Reads usage and limits of `run_id`, or of what else is selected, from the data plane.
    pub(super) async fn read(
        &self,
        run_id: Option<&RunId>,
        data_plane: &DataPlane,
    ) -> Result<Spending, Error> {
        match (run_id, &self.account) {
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
        Err(error) if error.is_unknown_run() => {
            let recorded = RunReference::from(run_id.clone()).recorded(data_plane).await?;
            Err(Error::from(Unknown(match recorded.first() {
                Some(run_id) => format!(
                    "run {run_id} is not open any more; `sluice audit stats --run {run_id}` sums its calls"
                ),
                None => format!(
                    "there is no run {run_id}; `sluice usage` shows the live ones, `sluice audit tail` all calls"
                ),
            })))
        }
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

    /// Removes `account` and its runs from an overview. A run or an account that was asked for stays.
    pub(super) fn leave_out(&mut self, account: &str) {
        if let Self::All { accounts, runs } = self {
            accounts.retain(|other| other.account.as_str() != account);
            runs.retain(|run| run.account.as_str() != account);
        }
    }

    /// Returns tables, with bars if standard output is a terminal.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Run(RunSpending { run_id, account, state, in_flight, usage, limits }) => {
                let state = state_word(*state);
                let heading = format!("run {run_id} of account {account}: {state}, {in_flight} in flight");
                format!("{heading}\n\n{}\n{}", usage_table(usage), limit_table(limits, usage.inexact))
            }
            Self::Account(AccountSpending { account, limits, inexact }) => {
                format!("account {account}\n\n{}", limit_table(limits, *inexact))
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
    fn from(AccountView { account, limits, inexact }: AccountView) -> Self {
        Self { account, limits: limits.into_iter().map(Into::into).collect(), inexact }
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
