//! Reads the order of a run from the arguments.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use platform_core::{
    control::UpstreamHealth,
    grant::Correlation,
    json::{self, Bounds},
};
use runner_control_client::DataPlane;
use runner_engine::{
    order::{OrderError, OrderLimits, OrderedAgent, RunOrder},
    request::Keep,
    thread::ThreadOrder,
};
use runner_model::conversation::Message;

use super::{Arguments, new_run_id};
use crate::commands::{Context, Error, error::Misused};

/// Reads the order that the arguments describe.
pub(super) async fn read_order(
    context: &Context,
    data_plane: &DataPlane,
    arguments: Arguments,
) -> Result<RunOrder, Error> {
    let settings = &context.settings;
    // Before a person is asked for the question on a terminal.
    match OrderedAgent::find(settings, &arguments.agent, arguments.model.clone()) {
        Err(OrderError::NoModel { agent }) => {
            let offered = offered_models(data_plane).await;
            let problem = "has no model: pass --model, or set its `model` or upstream.default_model";
            return Err(Misused(format!("{agent} {problem}{offered}")).into());
        }
        found => drop(found?),
    }
    Ok(RunOrder {
        limits: limits(&arguments)?,
        history: arguments.history.as_deref().map_or(Ok(vec![]), read_history)?,
        question: read_question(arguments.question)?,
        run_id: arguments.run_id.map_or_else(new_run_id, Ok)?,
        account: arguments.account,
        correlation: Correlation { user: arguments.user, ..Correlation::default() },
        agent_id: arguments.agent,
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

/// Returns the models on offer, in words; empty if they are not known.
async fn offered_models(data_plane: &DataPlane) -> String {
    match data_plane.upstream().await {
        Ok(UpstreamHealth::Ready { models, .. }) => format!("; the upstream offers: {}", models.join(", ")),
        _ => String::new(),
    }
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
