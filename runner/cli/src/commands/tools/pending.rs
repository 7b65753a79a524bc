//! Implements `sluice tools pending`, `approve` and `deny`: decisions about calls that wait for a person.

use std::io::{self, Write};

use platform_core::{
    code::{Code, Coded},
    id::RunId,
};
use platform_runtime::terminal;
use runner_store::{AccountScope, DecideError, StoredToolCall, ToolDecision, ToolVerdict};
use serde_json::json;

use super::{
    super::{run_reference::RunReference, table::Table, times::format_span},
    Context, Error, Exit,
};

/// Most calls that are listed.
const MAX_CALLS: u32 = 500;

#[derive(clap::Args)]
pub(in crate::commands) struct PendingArguments {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Call that waits.
#[derive(clap::Args)]
struct WaitingCall {
    /// Id of the run, or at least 4 characters of its beginning or end
    run: RunReference,
    /// Id of the call, as `sluice tools pending` shows it
    call: String,
}

#[derive(clap::Args)]
pub(in crate::commands) struct ApproveArguments {
    #[command(flatten)]
    call: WaitingCall,
    /// Let the gateway's agent run this very command without asking from now on; `sluice gateway agents set --forbid`
    /// takes that back
    #[arg(long)]
    always: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(in crate::commands) struct DenyArguments {
    #[command(flatten)]
    call: WaitingCall,
    /// Reason, which the agent is given
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) async fn pending(context: &Context, arguments: &PendingArguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let calls = store.waiting_tool_calls(&AccountScope::All, MAX_CALLS).await?;
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", terminal::safe_json(&json!({ "calls": calls }).to_string()))?;
        return Ok(Exit::Success);
    }
    if calls.is_empty() {
        writeln!(io::stderr(), "no call waits; `tools.approval` names the tools whose calls do")?;
        return Ok(Exit::Success);
    }
    write!(out, "{}", in_words(&calls))?;
    if let Some(call) = calls.first() {
        let StoredToolCall { run_id, call: id, .. } = call;
        writeln!(
            io::stderr(),
            "next: sluice tools approve {run_id} {id}, or sluice tools deny {run_id} {id}"
        )?;
    }
    Ok(Exit::Success)
}

/// Returns the calls as a table, with the arguments of each below it.
fn in_words(calls: &[StoredToolCall]) -> String {
    let mut table = Table::new(["RUN", "CALL", "TOOL", "ACCOUNT", "DENIED AFTER", "ARGUMENTS"]);
    for call in calls {
        let wait = call.decide_by.map(|decide_by| format_span(call.began, decide_by));
        table.row([
            call.run_id.to_string(),
            call.call.clone(),
            call.tool.to_string(),
            call.account.to_string(),
            wait.unwrap_or_default(),
            // Who decides sees what is not seen, too.
            terminal::visible(call.args.as_deref().unwrap_or_default()),
        ]);
    }
    table.to_string()
}

pub(super) async fn approve(context: &Context, arguments: ApproveArguments) -> Result<Exit, Error> {
    let ApproveArguments { call, always, json } = arguments;
    let verdict = if always { ToolVerdict::ApproveAlways } else { ToolVerdict::Approve };
    let (run_id, decided) = decide(context, &call, verdict).await?;
    let next = format!("approved; how it ends: sluice tools explain {run_id}");
    print(&decided, if json { OutputForm::Json } else { OutputForm::Text(next) })
}

pub(super) async fn deny(context: &Context, arguments: DenyArguments) -> Result<Exit, Error> {
    let DenyArguments { call, reason, json } = arguments;
    let (run_id, decided) = decide(context, &call, ToolVerdict::Deny { reason }).await?;
    let next = format!("denied, and nothing ran; the run goes on: sluice runs cancel {run_id} ends it");
    print(&decided, if json { OutputForm::Json } else { OutputForm::Text(next) })
}

async fn decide(
    context: &Context,
    call: &WaitingCall,
    verdict: ToolVerdict,
) -> Result<(RunId, StoredToolCall), Error> {
    let store = context.store().await?;
    let run_id = call.run.in_store(&store).await?;
    let run = store.run(&run_id).await?;
    let by = format!("uid:{}", rustix::process::getuid().as_raw());
    let decided =
        store.decide_tool_call(&run, &call.call, &ToolDecision { verdict, by }).await.map_err(not_decided)?;
    Ok((run_id, decided))
}

/// Error for a call that waits for no decision.
#[derive(Debug, thiserror::Error)]
#[error("{0}; `sluice tools pending` lists calls that wait")]
struct NotDecided(DecideError);

impl Coded for NotDecided {
    fn code(&self) -> Code {
        self.0.code()
    }
}

fn not_decided(error: DecideError) -> Error {
    match error {
        DecideError::Store(error) => error.into(),
        error => NotDecided(error).into(),
    }
}

/// Form in which a decision is shown.
enum OutputForm {
    Json,
    /// Text about what comes next.
    Text(String),
}

fn print(call: &StoredToolCall, form: OutputForm) -> Result<Exit, Error> {
    match form {
        OutputForm::Json => {
            let json = json!({ "call": call });
            writeln!(io::stdout(), "{}", terminal::safe_json(&json.to_string()))?;
        }
        OutputForm::Text(next) => writeln!(io::stdout(), "{} of {}: {next}", call.call, call.run_id)?,
    }
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use runner_store::{ToolCallState, UnixMillis};

    use super::*;

    fn waiting(args: String) -> StoredToolCall {
        StoredToolCall {
            run_id: RunId::parse("run-19c1-5f0e").unwrap(),
            attempt: 1,
            id: "call".to_owned(),
            call: "call-1".to_owned(),
            account: "local".parse().unwrap(),
            tool: "github__comment".parse().unwrap(),
            effect: "writes".to_owned(),
            args_digest: String::new(),
            state: ToolCallState::Waiting,
            code: None,
            message: None,
            result: None,
            result_bytes: None,
            connection: None,
            began: UnixMillis(1),
            ended: None,
            args: Some(args),
            decide_by: None,
            decided: None,
            decided_by: None,
            gateway: None,
        }
    }

    #[test]
    fn no_member_of_arguments_is_out_of_sight() {
        let [blank, turned] = ["\u{a0}".repeat(3000), "b\u{202e}\u{200b}".to_owned()];
        let args = json!({ "a": format!("x{blank}"), turned: 1, "last": 2 }).to_string();
        let shown = in_words(&[waiting(args)]);
        let expected = r#"{"a":"x⟨3000× U+00A0⟩","b⟨U+202E⟩⟨U+200B⟩":1,"last":2}"#;
        assert!(shown.contains(expected), "{shown}");
    }
}
