//! Builds the request for a run from the arguments and the configuration.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use platform_core::{
    budget::Budget,
    control::UpstreamHealth,
    grant::Correlation,
    id::{AgentId, ModelName},
    money::NanoDollars,
    name,
};
use runner_control_client::DataPlane;
use runner_engine::{
    agent_data::AgentData,
    pricing::Pricing,
    request::{Keep, RunRequest, RunSpec},
};
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
    let configured = agent.model.as_ref().or(context.settings.upstream.default_model.as_ref());
    let model = match (&arguments.model, configured) {
        (Some(model), _) => model.to_string(),
        (None, Some(model)) => checked_model(model, &arguments.agent)?,
        (None, None) => {
            return Err(Error::from(Misused(no_model_message(&arguments.agent, data_plane).await)));
        }
    };
    let budget = &mut agent.budget;
    tighten(budget, arguments.total_tokens, arguments.cost)?;
    agent.image = arguments.image.unwrap_or(agent.image);
    let AgentData { instructions, behaviour, model_limits } =
        AgentData::of(&agent, &model, &context.settings)?;
    let mut messages: Vec<_> = instructions.into_iter().collect();
    messages.extend(arguments.history.as_deref().map_or(Ok(vec![]), read_history)?);
    messages.push(Message { role: Role::User, content: read_question(arguments.question)? });
    // W3C Trace Context demands that an invalid trace context is ignored.
    let caller = context.sources.environment.get(name::env::TRACEPARENT).and_then(|text| text.parse().ok());
    let request = RunRequest {
        run_id: arguments.run_id.map_or_else(new_run_id, Ok)?,
        account: arguments.account,
        correlation: Correlation { user: arguments.user, ..Correlation::default() },
        agent_id: arguments.agent,
        priority: arguments.priority,
        spec: RunSpec {
            agent,
            model,
            messages,
            behaviour,
            model_limits,
            files: None,
            state_key: arguments.state_key,
            keep: if arguments.keep { Keep::Workspace } else { Keep::Nothing },
            caller: None,
        },
    };
    Pricing::of(&context.settings).check(&request)?;
    Ok(request.part_of(arguments.traceparent.or(caller)))
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

/// Returns the model that the configuration names for `agent`.
fn checked_model(model: &str, agent: &AgentId) -> Result<String, Misused> {
    match ModelName::parse(model) {
        Ok(_) => Ok(model.to_owned()),
        Err(error) => Err(Misused(format!(
            "the model of {agent} cannot be asked: {error}; correct `model` in its entry, or upstream.default_model"
        ))),
    }
}

/// Returns the question of the argument, or that of standard input for `-`.
fn read_question(argument: String) -> Result<String, Error> {
    let question = if argument == "-" { read_stdin()? } else { argument };
    if question.trim().is_empty() {
        return Err(Error::from(Misused(
            "the question is empty: pass it as the last argument, or pass `-` and write it to standard input"
                .to_owned(),
        )));
    }
    Ok(question)
}

fn read_stdin() -> Result<String, Error> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(decode(bytes)?)
}

/// Decodes a question from standard input.
fn decode(bytes: Vec<u8>) -> Result<String, Misused> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let first = error.as_bytes().get(valid).copied().unwrap_or_default();
        Misused(format!(
            "standard input is not UTF-8: byte {}, {first:#04x}, is wrong; convert the text, for example with `iconv -f LATIN1 -t UTF-8`",
            valid + 1
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_is_not_utf8_is_named() {
        let cases: [(&[u8], &str); 3] =
            [(b"\xff?", "byte 1, 0xff"), (b"caf\xe9?", "byte 4, 0xe9"), (b"cut \xe2\x82", "byte 5, 0xe2")];
        for (bytes, place) in cases {
            let refused = decode(bytes.to_vec()).unwrap_err().to_string();
            assert!(refused.contains(place), "{place} is not in {refused}");
        }
        assert_eq!(decode("café?".into()).unwrap(), "café?", "control");
    }
}
