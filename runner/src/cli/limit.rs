//! `sluice limit`: other limits for a run or an account, while it lives.

use std::io::{self, Write};

use platform_core::{
    budget::{Budget, Limit, LimitView},
    control::{AccountBudget, RunState},
    money::NanoDollars,
};
use platform_runtime::terminal;

use super::{
    Context, Error,
    exit::{Exit, Misused, Unknown},
    spending::{self, Spending, Whose},
};
use crate::data_plane::DataPlane;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    limits: Limits,
    /// Lift this limit, named as its option is (`total-tokens`); may be repeated
    #[arg(long, value_name = "LIMIT", value_parser = limit_named)]
    none: Vec<Limit>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Limits that are to hold from now on.
#[derive(clap::Args)]
struct Limits {
    /// Calls that are not refused, in all
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Calls a minute; so many may come at once after a pause
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<u64>,
    /// Calls at a time
    #[arg(long, value_name = "N")]
    calls_in_flight: Option<u64>,
    /// Tokens of prompts, in all
    #[arg(long, value_name = "N")]
    input_tokens: Option<u64>,
    /// Tokens of answers, in all
    #[arg(long, value_name = "N")]
    output_tokens: Option<u64>,
    /// Tokens of prompts and answers, in all
    #[arg(long, value_name = "N")]
    total_tokens: Option<u64>,
    /// Dollars, in all; under this limit only models can be called that have a price
    #[arg(long, value_name = "DOLLARS")]
    cost: Option<NanoDollars>,
}

/// As the options are named.
fn limit_named(text: &str) -> Result<Limit, String> {
    let name = |limit: Limit| limit.words().replace(' ', "-");
    Limit::ALL.into_iter().find(|limit| name(*limit) == text).ok_or_else(|| {
        let known: Vec<_> = Limit::ALL.into_iter().map(name).collect();
        format!("limits are: {}", known.join(", "))
    })
}

impl Limits {
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
    /// What is to hold from now on, where `before` held: what is not named stays.
    fn changed(&self, before: &[LimitView]) -> Budget {
        let (mut budget, named) = (Budget::default(), self.limits.budget());
        for view in before {
            let kept = view.allowed.filter(|_| !self.none.contains(&view.limit));
            budget.allow(view.limit, named.allows(view.limit).or(kept));
        }
        budget
    }

    fn check(&self) -> Result<(), Misused> {
        let named = self.limits.budget();
        if named == Budget::default() && self.none.is_empty() {
            return Err(Misused(
                "name what to change, for example --total-tokens N or --none cost; `sluice usage` shows what holds"
                    .to_owned(),
            ));
        }
        match self.none.iter().find(|limit| named.allows(**limit).is_some()) {
            Some(limit) => Err(Misused(format!("{limit}: a limit and --none at once"))),
            None => Ok(()),
        }
    }
}

pub(super) async fn limit(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    arguments.check()?;
    let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
    let now = apply(&data_plane, &arguments).await?;
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", terminal::safe_json(&serde_json::to_string(&now)?))?;
    } else {
        write!(out, "{}", now.text())?;
    }
    Ok(Exit::Success)
}

/// The data plane replaces all limits at once, so what holds is read first. Of two who do this at the same moment the later
/// one may undo the other's change.
async fn apply(data_plane: &DataPlane, arguments: &Arguments) -> Result<Spending, Error> {
    match (&arguments.whose.run, &arguments.whose.account) {
        (Some(run), _) => {
            let view = spending::of_run(data_plane, run).await?;
            if view.state == RunState::Closed {
                return Err(Box::new(Unknown(format!("run {run} is closed: it will not call any more"))));
            }
            Ok(data_plane.limit_run(run, &arguments.changed(&view.limits)).await?.into())
        }
        (None, Some(account)) => {
            let view = spending::of_account(data_plane, account).await?;
            let budget = arguments.changed(&view.limits);
            let account = account.clone();
            Ok(data_plane.limit_account(&AccountBudget { account, budget }).await?.into())
        }
        (None, None) => Err(Box::new(Misused("say whose: --run RUN or --account ACCOUNT".to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_lifted_by_the_name_of_its_option() {
        use clap::Args as _;
        let command = Limits::augment_args(clap::Command::new("limit"));
        let options: Vec<_> = command.get_arguments().filter_map(|option| option.get_long()).collect();
        assert_eq!(options.len(), Limit::ALL.len());
        for (option, limit) in options.into_iter().zip(Limit::ALL) {
            assert_eq!(limit_named(option), Ok(limit));
        }
        assert!(limit_named("tokens").unwrap_err().contains("total-tokens"));
    }
}
