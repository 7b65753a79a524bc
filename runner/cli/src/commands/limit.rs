//! Implements `sluice limit`: changes the limits of a live run or of an account.

use std::io::{self, Write};

use platform_core::{
    budget::{Budget, Limit, LimitView},
    control::{AccountBudget, RunState},
    invalid::InvalidValue,
    money::NanoDollars,
};
use platform_runtime::terminal;
use runner_control_client::DataPlane;

use super::{
    Context, Error,
    count::parse_count,
    error::{Misused, Unknown},
    exit::Exit,
    spending::{self, BudgetOwner, Spending},
};

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    owner: BudgetOwner,
    #[command(flatten)]
    limits: NewLimits,
    /// Remove this limit, named like its option (`total-tokens`); may be repeated
    #[arg(long, value_name = "LIMIT", value_parser = parse_limit)]
    none: Vec<Limit>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Limits to set.
#[derive(clap::Args)]
struct NewLimits {
    /// Limit on calls in total; refused calls do not count
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    requests: Option<u64>,
    /// Limit on calls per minute; after a pause, this many may come at once
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    requests_per_minute: Option<u64>,
    /// Limit on calls in flight
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    calls_in_flight: Option<u64>,
    /// Limit on tokens of prompts in total
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    input_tokens: Option<u64>,
    /// Limit on tokens of answers in total
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    output_tokens: Option<u64>,
    /// Limit on tokens of prompts and answers in total
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_count)]
    total_tokens: Option<u64>,
    /// Limit on cost in dollars in total; only models with a price can then be called
    #[arg(long, value_name = "DOLLARS", allow_negative_numbers = true)]
    cost: Option<NanoDollars>,
}

/// Parses the name of a limit as its option spells it.
fn parse_limit(text: &str) -> Result<Limit, InvalidValue> {
    let name = |limit: Limit| limit.words().replace(' ', "-");
    Limit::ALL.into_iter().find(|limit| name(*limit) == text).ok_or_else(|| {
        let known: Vec<_> = Limit::ALL.into_iter().map(name).collect();
        format!("limits are: {}", known.join(", ")).into()
    })
}

impl NewLimits {
    const fn budget(&self) -> Budget {
        Budget {
            requests: self.requests,
            requests_per_minute: self.requests_per_minute,
            calls_in_flight: self.calls_in_flight,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            total_tokens: self.total_tokens,
            cost_nanodollars: self.cost,
        }
    }
}

impl Arguments {
    /// Returns the whole new budget: requested limits replace those in `present`, all others stay.
    fn new_budget(&self, present: &[LimitView]) -> Budget {
        let mut budget = Budget::default();
        let requested = self.limits.budget();
        for view in present {
            let kept = view.allowed.filter(|_| !self.none.contains(&view.limit));
            budget.allow(view.limit, requested.allows(view.limit).or(kept));
        }
        budget
    }

    fn check(&self) -> Result<(), Misused> {
        let requested = self.limits.budget();
        if requested == Budget::default() && self.none.is_empty() {
            return Err(Misused(
                "name what to change, for example --total-tokens N or --none cost; `sluice usage` shows what holds"
                    .to_owned(),
            ));
        }
        match self.none.iter().find(|limit| requested.allows(**limit).is_some()) {
            Some(limit) => Err(Misused(format!("{limit} has a new limit and --none at once"))),
            None => Ok(()),
        }
    }
}

pub(super) async fn limit(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    arguments.check()?;
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let new_spending = apply(context, &data_plane, &arguments).await?;
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", terminal::safe_json(&serde_json::to_string(&new_spending)?))?;
    } else {
        write!(out, "{}", new_spending.text())?;
    }
    Ok(Exit::Success)
}

/// Replaces the requested limits. The data plane replaces a whole budget, so the present limits are read first. If two
/// commands do this at the same moment, the later one may undo the change of the other.
async fn apply(context: &Context, data_plane: &DataPlane, arguments: &Arguments) -> Result<Spending, Error> {
    let run_id = arguments.owner.run_id(context, data_plane).await?;
    match (&run_id, &arguments.owner.account) {
        (Some(run_id), _) => {
            let view = spending::read_run(data_plane, run_id).await?;
            if view.state == RunState::Closed {
                return Err(Error::from(Unknown(format!("run {run_id} is closed and makes no more calls"))));
            }
            Ok(data_plane.limit_run(run_id, &arguments.new_budget(&view.limits)).await?.into())
        }
        (None, Some(account)) => {
            let view = spending::read_account(data_plane, account).await?;
            let budget = arguments.new_budget(&view.limits);
            let account = account.clone();
            Ok(data_plane.limit_account(&AccountBudget { account, budget }).await?.into())
        }
        (None, None) => {
            Err(Error::from(Misused("name a run or an account: --run RUN or --account ACCOUNT".to_owned())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_lifted_by_its_option_name() {
        use clap::Args as _;
        let command = NewLimits::augment_args(clap::Command::new("limit"));
        let options: Vec<_> = command.get_arguments().filter_map(|option| option.get_long()).collect();
        assert_eq!(options.len(), Limit::ALL.len());
        for (option, limit) in options.into_iter().zip(Limit::ALL) {
            assert_eq!(parse_limit(option), Ok(limit));
        }
        assert!(parse_limit("tokens").unwrap_err().to_string().contains("total-tokens"));
    }
}
