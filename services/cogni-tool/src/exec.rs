//! Executes a tool through `POST /tool/exec`.

use std::io::{self, Read as _};

use platform_core::{
    host_tools::{EXEC_PATH, exec::ExecError},
    id::{InvalidId, RunId, ToolCallId, ToolName},
    json::{self, Bounds, Raw},
    name::env,
};
use serde::{Deserialize, Deserializer};

use crate::{
    arguments::{ArgumentSource, CallOrder},
    error::Error,
    gateway,
    settings::ToolSettings,
};

/// Largest text of arguments. The gateway's own limit is far below by default.
const MAX_ARGUMENTS: usize = 16 * 1024 * 1024;

/// Answer to a call: a result or an error.
#[derive(Deserialize)]
struct ToolAnswer<'a> {
    ok: bool,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<Raw<'a>>,
    error: Option<ExecError>,
}

/// Reads a result that is there, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw<'de>>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

/// Calls the tool once and returns its result as a line of JSON.
pub(crate) fn exec(settings: &ToolSettings, order: &CallOrder) -> Result<String, Error> {
    let no_run = || Error::Usage(format!("{} is not set: there is no run to call tools for", env::RUN_ID));
    let run_id = settings.run_id.as_ref().ok_or_else(no_run)?;
    let text = read_arguments(&order.arguments)?;
    let invalid = |error| Error::Usage(format!("the arguments cannot be read: {error}"));
    let args = json::from_str(&text, Bounds::of(MAX_ARGUMENTS)).map_err(invalid)?;
    let call_id = match &order.call_id {
        Some(id) => id.clone(),
        None => new_call_id()?,
    };
    let id = call_id.as_str();
    let body = body(run_id, &call_id, &order.tool, args);
    let answer = gateway::post(&settings.gateway, EXEC_PATH, &body, Some(id))?;
    match json::from_slice(&answer.body, gateway::BOUNDS) {
        Ok(ToolAnswer { ok: true, result: Some(result), .. }) if answer.status == 200 => {
            Ok(format!("{}\n", gateway::line_of(result)))
        }
        Ok(ToolAnswer { ok: false, error: Some(error), .. }) => {
            Err(gateway::refused(answer.status, error, Some(id)))
        }
        _ => Err(gateway::reason_of(&answer, Some(id)).unwrap_or_else(|| Error::NoAnswer {
            reason: format!("status {} without a result or a reason", answer.status),
            call_id: Some(id.to_owned()),
        })),
    }
}

/// Returns the body of a call, with the arguments as they were written.
fn body(run_id: &RunId, call_id: &ToolCallId, tool: &ToolName, args: Raw<'_>) -> String {
    // None of the ids has a character that needs an escape.
    format!(r#"{{"runId":"{run_id}","callId":"{call_id}","tool":"{tool}","args":{}}}"#, args.get())
}

fn read_arguments(source: &ArgumentSource) -> Result<String, Error> {
    match source {
        ArgumentSource::Text(text) => Ok(text.clone()),
        ArgumentSource::Stdin => {
            let mut text = String::new();
            let unreadable = |error| Error::Usage(format!("standard input: {error}"));
            io::stdin()
                .lock()
                .take(MAX_ARGUMENTS as u64 + 1)
                .read_to_string(&mut text)
                .map_err(unreadable)?;
            Ok(text)
        }
    }
}

/// Returns a random id, so that no two invocations are the same call.
fn new_call_id() -> Result<ToolCallId, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Usage(format!("no random call id: {error}")))?;
    let invalid = |error: InvalidId| Error::Usage(error.to_string());
    ToolCallId::parse(&format!("{:032x}", u128::from_ne_bytes(bytes))).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_an_id_of_its_own() {
        assert_ne!(new_call_id().unwrap(), new_call_id().unwrap());
    }
}
