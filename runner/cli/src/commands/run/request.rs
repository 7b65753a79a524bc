//! Builds the request for a run from the arguments and the configuration.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use platform_core::{
    budget::Budget, control::UpstreamHealth, grant::Correlation, id::AgentId, money::NanoDollars, name,
};
use runner_control_client::DataPlane;
use runner_engine::request::{Keep, RunRequest, RunSpec};
use runner_model::conversation::{Message, Role};

use super::{Arguments, new_run_id};
use crate::commands::{Context, Error, error::Misused};

/// Builds the request that the arguments describe.
pub(super) async fn build_request(
    context: &Context,
    data_plane: &DataPlane,
    arguments: Arguments,
) -> Result<RunRequest, Error> {
    let agents = &context.settings.agents;
    let Some(agent) = agents.get(&arguments.agent) else {
        let known: Vec<_> = agents.keys().map(ToString::to_string).collect();
        return Err(Error::from(Misused(format!(
            "no agent {}; there are: {}",
            arguments.agent,
            known.join(", ")
        ))));
    };
    let mut agent = agent.clone();
    let default_model = || agent.model.clone().or_else(|| context.settings.upstream.default_model.clone());
    let Some(model) = arguments.model.or_else(default_model) else {
        return Err(Error::from(Misused(no_model_message(&arguments.agent, data_plane).await)));
    };
    let budget = &mut agent.budget;
    tighten(budget, arguments.total_tokens, arguments.cost)?;
    if budget.cost_nanodollars.is_some() && !context.settings.has_price(&model) {
        return Err(Error::from(Misused(format!(
            "the run has a limit of cost, and model {model} has no price: add [prices.\"{model}\"], or run it without --cost and without `cost` in its agent's entry"
        ))));
    }
    agent.image = arguments.image.unwrap_or(agent.image);
    let mut messages = arguments.history.as_deref().map_or(Ok(vec![]), read_history)?;
    let content = match arguments.question.as_str() {
        "-" => read_stdin()?,
        question => question.to_owned(),
    };
    messages.push(Message { role: Role::User, content });
    // W3C Trace Context demands that an invalid trace context is ignored.
    let caller = context.sources.environment.get(name::env::TRACEPARENT).and_then(|text| text.parse().ok());
    Ok(RunRequest {
        run_id: arguments.run_id.map_or_else(new_run_id, Ok)?,
        account: arguments.account,
        correlation: Correlation { user: arguments.user, ..Correlation::default() },
        agent_id: arguments.agent,
        priority: arguments.priority,
        spec: RunSpec {
            agent,
            model,
            messages,
            state_key: arguments.state_key,
            keep: if arguments.keep { Keep::Workspace } else { Keep::Nothing },
            caller: None,
        },
    }
    .part_of(arguments.traceparent.or(caller)))
}

/// Applies the limits of the options where they are tighter than those of the agent's entry.
fn tighten(budget: &mut Budget, total_tokens: Option<u64>, cost: Option<NanoDollars>) -> Result<(), Misused> {
    for (option, limit) in [("--total-tokens", total_tokens), ("--cost", cost.map(|cost| cost.0))] {
        if limit == Some(0) {
            return Err(Misused(format!(
                "{option} 0 allows no call: leave it out for the limit of the agent's entry"
            )));
        }
    }
    budget.total_tokens = tighter(budget.total_tokens, total_tokens);
    budget.cost_nanodollars = tighter(budget.cost_nanodollars, cost);
    Ok(())
}

/// Returns the tighter of two limits.
fn tighter<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// Returns the message for an agent without a model, with the models on offer.
async fn no_model_message(agent: &AgentId, data_plane: &DataPlane) -> String {
    let offered = match data_plane.upstream().await {
        Ok(UpstreamHealth::Ready { models, .. }) => format!("; the upstream offers: {}", models.join(", ")),
        _ => String::new(),
    };
    format!("{agent} has no model: pass --model, or set its `model` or upstream.default_model{offered}")
}

/// Reads the messages before the question from `file`.
fn read_history(file: &Path) -> Result<Vec<Message>, Error> {
    let misused = |why: String| Error::from(Misused(format!("--history {}: {why}", file.display())));
    let text = fs::read(file).map_err(|error| misused(error.to_string()))?;
    serde_json::from_slice(&text)
        .map_err(|error| misused(format!("not a JSON list of messages, {{role, content}}: {error}")))
}

fn read_stdin() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
