//! Reads the order of a run from the arguments.

use std::{
    fs,
    io::{self, Read, Write},
    path::Path,
};

use platform_core::{
    control::UpstreamHealth,
    grant::Correlation,
    id::{AgentId, ModelName},
    json::{self, Bounds},
};
use runner_audit::advice::shell;
use runner_control_client::DataPlane;
use runner_engine::{
    run_order::{OrderError, OrderLimits, OrderedAgent, RunOrder},
    run_request::Keep,
    thread::ThreadOrder,
};
use runner_model::conversation::Message;

use super::Arguments;
use crate::commands::{Context, Error, error::Misused, preflight, run_reference::new_run_id};

/// Reads the order that the arguments describe.
pub(super) async fn read_order(
    context: &Context,
    data_plane: &DataPlane,
    mut arguments: Arguments,
) -> Result<RunOrder, Error> {
    let settings = &context.settings;
    // Before a person is asked for the question on a terminal.
    match OrderedAgent::find(settings, &arguments.agent, arguments.model.clone()) {
        Err(OrderError::NoModel { agent }) => {
            arguments.model = Some(only_model(data_plane, &agent).await?);
        }
        found => {
            drop(found?);
            if let Some(model) = &arguments.model {
                preflight::check_model(settings, data_plane, model).await?;
            }
        }
    }
    Ok(RunOrder {
        limits: limits(&arguments)?,
        history: arguments.history.as_deref().map_or(Ok(vec![]), read_history)?,
        question: read_question(arguments.question)?,
        run_id: arguments.run_id.map_or_else(new_run_id, Ok)?,
        account: arguments.account,
        correlation: Correlation { user: arguments.user, ..Correlation::default() },
        agent_id: arguments.agent,
        gateway_agent: arguments.gateway_agent.into(),
        model: arguments.model,
        image: arguments.image,
        priority: arguments.priority,
        thread: arguments.state_key.map(ThreadOrder::behind),
        repo: arguments.repository.into(),
        host_tools: Some(arguments.host_tools).filter(|tools| !tools.is_empty()),
        keep: if arguments.keep { Keep::Workspace } else { Keep::Nothing },
        hash: None,
    })
}

/// Returns the limits of the options.
fn limits(arguments: &Arguments) -> Result<OrderLimits, Misused> {
    let Arguments { total_tokens, cost, .. } = *arguments;
    for (option, limit) in [("--total-tokens", total_tokens), ("--cost", cost.map(|cost| cost.0))] {
        if limit == Some(0) {
            return Err(Misused(format!(
                "{option} 0 allows no call: leave it out for the limit of the agent's entry"
            )));
        }
    }
    Ok(OrderLimits { total_tokens, cost })
}

/// Returns the model of an agent that has none: the only one that the upstream offers.
async fn only_model(data_plane: &DataPlane, agent: &AgentId) -> Result<ModelName, Error> {
    let offered = match data_plane.upstream().await {
        Ok(UpstreamHealth::Ready { models, .. }) => models,
        _ => Vec::new(),
    };
    let model = single_model(agent, &offered)?;
    let note = "the only one that the upstream offers; upstream.default_model sets another";
    writeln!(io::stderr(), "sluice: {agent} has no model of its own, so it asks {model}: {note}")?;
    Ok(model)
}

/// Returns the model if exactly one is offered. A name with `*` stands for many.
fn single_model(agent: &AgentId, offered: &[String]) -> Result<ModelName, Misused> {
    if let [only] = offered
        && !only.contains('*')
        && let Ok(model) = ModelName::parse(only)
    {
        return Ok(model);
    }
    let problem = format!("{agent} has no model: set its `model` or upstream.default_model, or pass one");
    Err(Misused(match offered.iter().find(|name| !name.contains('*')) {
        Some(first) => format!(
            "{problem}, such as `--model {}`; the upstream offers: {}",
            shell(first),
            offered.join(", ")
        ),
        None => format!("{problem} with --model"),
    }))
}

/// Reads the messages before the question from `file`.
fn read_history(file: &Path) -> Result<Vec<Message>, Error> {
    let misused = |why: String| Error::from(Misused(format!("--history {}: {why}", file.display())));
    let text = fs::read(file).map_err(|error| misused(error.to_string()))?;
    json::from_slice(&text, Bounds::of(usize::MAX))
        .map_err(|error| misused(format!("not a JSON list of messages, {{role, content}}: {error}")))
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
    fn one_model_is_taken_and_several_are_listed() {
        let agent = AgentId::parse("sandbox:agent").unwrap();
        let told = |offered: &[&str]| {
            let offered: Vec<_> = offered.iter().map(|&name| name.to_owned()).collect();
            single_model(&agent, &offered).map_err(|refused| refused.to_string())
        };
        assert_eq!(told(&["gpt-4o"]).unwrap().as_str(), "gpt-4o");
        let several = told(&["openai/*", "gpt-4o", "o3"]).unwrap_err();
        assert!(several.contains("such as `--model gpt-4o`; the upstream offers: openai/*, gpt-4o, o3"));
        for unknown in [told(&[]), told(&["openai/*"])] {
            assert!(unknown.unwrap_err().ends_with("or pass one with --model"));
        }
    }

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
