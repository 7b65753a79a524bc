//! Executes a tool through `POST /tool/exec`.

use std::io::{self, Read as _};

use platform_core::{
    host_tools::{EXEC_PATH, exec::ExecAnswer},
    id::{InvalidId, ToolCallId},
    name::env,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    arguments::{ArgumentSource, CallOrder},
    error::Error,
    gateway,
    settings::ToolSettings,
};

/// Largest text of arguments. The gateway's own limit is far below by default.
const MAX_ARGUMENTS: u64 = 16 * 1024 * 1024;

/// Body of a call, as the gateway reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Call<'c> {
    run_id: &'c str,
    call_id: &'c str,
    tool: &'c str,
    args: &'c RawValue,
}

/// Calls the tool once and returns its result as a line of JSON.
pub(crate) fn exec(settings: &ToolSettings, order: &CallOrder) -> Result<String, Error> {
    let no_run = || Error::Usage(format!("{} is not set: there is no run to call tools for", env::RUN_ID));
    let run_id = settings.run_id.as_ref().ok_or_else(no_run)?;
    let text = read_arguments(&order.arguments)?;
    let invalid = |error| Error::Usage(format!("the arguments are not JSON: {error}"));
    let args: &RawValue = serde_json::from_str(text.trim()).map_err(invalid)?;
    let call_id = match &order.call_id {
        Some(id) => id.clone(),
        None => new_call_id()?,
    };
    let id = call_id.as_str();
    let call = Call { run_id: run_id.as_str(), call_id: id, tool: order.tool.as_str(), args };
    let answer = gateway::post(&settings.gateway, EXEC_PATH, &call, Some(id))?;
    match serde_json::from_slice(&answer.body) {
        Ok(ExecAnswer::Done { result, .. }) if answer.status == 200 => Ok(format!("{result}\n")),
        Ok(ExecAnswer::Failed { error, .. }) => Err(gateway::refused(answer.status, error, Some(id))),
        _ => Err(gateway::reason_of(&answer, Some(id)).unwrap_or_else(|| Error::NoAnswer {
            reason: format!("status {} without a result or a reason", answer.status),
            call_id: Some(id.to_owned()),
        })),
    }
}

fn read_arguments(source: &ArgumentSource) -> Result<String, Error> {
    match source {
        ArgumentSource::Text(text) => Ok(text.clone()),
        ArgumentSource::Stdin => {
            let mut text = String::new();
            let unreadable = |error| Error::Usage(format!("standard input: {error}"));
            io::stdin().lock().take(MAX_ARGUMENTS + 1).read_to_string(&mut text).map_err(unreadable)?;
            if text.len() as u64 > MAX_ARGUMENTS {
                return Err(Error::Usage(format!("the arguments have more than {MAX_ARGUMENTS} bytes")));
            }
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
