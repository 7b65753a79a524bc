//! Implements `sluice tools test`.

use std::io::{self, Write};

use platform_core::{
    code::{Code, Coded},
    host_tools::exec::{ExecAnswer, ExecError},
    id::{AccountId, RunId, ToolName},
};
use platform_runtime::terminal;
use runner_tools::TestCaller;

use super::{Context, Error, Exit, gateway, store};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Name of the tool
    tool: ToolName,
    /// Arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Account for which the tool acts
    #[arg(long, default_value = "local", value_name = "ACCOUNT")]
    account: AccountId,
    /// Run for which the tool acts: tools of repositories need one
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,
    /// Print a failure as JSON, too
    #[arg(long)]
    json: bool,
}

/// Error of a host tool that gave no result.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}{}", .0.code, .0.message, next_command(&.0.code))]
struct ToolFailed(ExecError);

impl Coded for ToolFailed {
    fn code(&self) -> Code {
        Code::ToolFailed
    }

    fn word(&self) -> &str {
        &self.0.code
    }
}

/// Returns the command that helps after a failure with `code`.
fn next_command(code: &str) -> &'static str {
    match code {
        "tool_unknown" | "tool_unavailable" => "; `sluice tools ls` lists tools and what they lack",
        "invalid_arguments" => "; `sluice tools ls --json` has the schema of the arguments",
        _ => "",
    }
}

pub(super) async fn test(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    let Arguments { tool, arguments, account, run, json: _ } = arguments;
    let store = store(context).await?;
    let caller = TestCaller { account: account.clone(), run_id: run.clone() };
    let gateway = gateway(context, &store);
    let answer = gateway.test(tool, arguments, &caller).await;
    gateway.close().await;
    match answer {
        ExecAnswer::Done { result, .. } => {
            writeln!(io::stdout(), "{}", terminal::safe_json(&result.to_string()))?;
            Ok(Exit::Success)
        }
        ExecAnswer::Failed { error, .. } => Err(ToolFailed(error).into()),
    }
}
