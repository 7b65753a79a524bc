//! Changes advice about a run's own limits once the run has ended: nothing raises them any more.

use platform_core::{budget::Limit, record::ExchangeRecord, refusal::Refusal};

use super::{Advice, Rule, shell};

impl Advice {
    /// Returns this advice for a run that has ended, or was closed. Its own limit cannot change any more: a new run
    /// has the tightest limit of its order and of its agent's entry.
    #[must_use]
    pub fn for_ended_run(mut self, record: &ExchangeRecord) -> Self {
        let Rule::Run(limit) = Rule::of(record) else { return self };
        let ExchangeRecord { run_id, graph, account, refusal, .. } = record;
        let raise = format!("sluice limit --run {run_id} ");
        let Some(at) = self.commands.iter().position(|command| command.starts_with(&raise)) else {
            return self;
        };
        self.commands.remove(at);
        self.why +=
            "; the run has ended, and its limit stays: a new run has its own, at most the setting below";
        let option = match limit {
            _ if *refusal == Some(Refusal::ModelUnpriced) => return self,
            Limit::CostNanodollars => "--cost DOLLARS",
            Limit::TotalTokens => "--total-tokens N",
            _ => return self,
        };
        let [graph, account] = [graph.as_str(), account.as_str()].map(shell);
        self.commands.insert(at, format!("sluice run --agent {graph} --account {account} {option} QUESTION"));
        self
    }
}
