//! What the end of a container means: an answer, or who is to blame that there is none.

use platform_core::event::RunErrorCode;
use platform_runtime::settings::{Agent, Protocol};

use crate::{
    envelope::{self, Said},
    lifecycle::Failure,
    sandbox::Ended,
};

/// What the end of a container means for the run.
pub(crate) fn judge(agent: &Agent, ended: &Ended) -> Result<String, Failure> {
    let said = envelope::read(agent.protocol, &ended.stdout.text());
    if let Some(code) = ended.error_code() {
        let message = match (code, said) {
            (RunErrorCode::Timeout, _) => format!("stopped after {}", agent.runtime),
            (RunErrorCode::OomKilled, _) => format!("needed more than {} of memory", agent.memory),
            (RunErrorCode::Cancelled, _) => "cancelled".to_owned(),
            (_, Said::Failure { message, .. }) => message,
            _ => exit_message(ended, agent.protocol),
        };
        return Err(Failure::new(code, message));
    }
    let failed = |message| Err(Failure::new(RunErrorCode::ContainerFailed, message));
    match said {
        Said::Answer(text) => Ok(text),
        Said::Failure { message, .. } => failed(message),
        Said::Unreadable(message) => failed(message),
    }
}

fn exit_message(ended: &Ended, protocol: Protocol) -> String {
    let code = match ended.exit_code {
        None => "no exit code".to_owned(),
        // Docker was stopped, somebody ended the container, or the agent says what shells say of such an end.
        Some(code @ 137) => format!("exit code {code}, as after a SIGKILL that was not ours"),
        Some(code @ 143) => format!("exit code {code}, as after a SIGTERM that was not ours"),
        Some(code) => format!("exit code {code}"),
    };
    let hint = match protocol {
        Protocol::Envelope => "and without an envelope",
        Protocol::Text => "",
    };
    let stderr = ended.stderr.text();
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let parts = [
        format!("the agent ended with {code} {hint}").trim_end().to_owned(),
        last.unwrap_or_default().to_owned(),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}
