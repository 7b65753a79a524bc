//! What the end of a container means: an answer, or who is to blame that there is none.

use platform_core::event::RunErrorCode;
use platform_runtime::settings::{Agent, Protocol};

use crate::{
    envelope::{self, Said},
    lifecycle::Failure,
    sandbox::Ended,
};

/// The code with which an agent says that it gave up for want of time, before anybody ended it.
const GAVE_UP: &str = "timeout";

/// What the end of a container means for the run.
pub(crate) fn judge(agent: &Agent, ended: &Ended) -> Result<String, Failure> {
    let said = envelope::read(agent.protocol, &ended.stdout.text());
    if let (None, Said::Failure { code, message, .. }) = (ended.killed_by, &said)
        && code == GAVE_UP
    {
        return Err(Failure::new(RunErrorCode::Timeout, message.clone()));
    }
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

#[cfg(test)]
mod tests {
    use platform_core::limit::ByteSize;
    use platform_runtime::{
        config::Sources,
        settings::{DEFAULT_AGENT, Settings},
    };

    use super::*;
    use crate::sandbox::{Capture, KilledBy};

    fn judged(killed_by: Option<KilledBy>, exit_code: i64, error: &str) -> Failure {
        let settings = Settings::read(&Sources::default()).unwrap();
        let agent = settings.agents.iter().find(|(id, _)| id.as_str() == DEFAULT_AGENT).unwrap().1;
        let mut stdout = Capture::new(ByteSize::kib(1));
        let said = serde_json::json!({ "payloads": [], "meta": { "error": { "code": error } } });
        stdout.push(said.to_string().as_bytes());
        let stderr = Capture::new(ByteSize::kib(1)).finish();
        let ended =
            Ended { exit_code: Some(exit_code), killed_by, oom_seen: false, stdout: stdout.finish(), stderr };
        judge(agent, &ended).unwrap_err()
    }

    #[test]
    fn an_agent_that_gives_up_has_timed_out_unless_somebody_ended_it() {
        let code = |killed_by, exit_code, error| judged(killed_by, exit_code, error).code;
        assert_eq!(code(None, 2, "timeout"), RunErrorCode::Timeout);
        assert_eq!(judged(None, 2, "timeout").message, "timeout", "in its own words");
        assert_eq!(code(None, 0, "timeout"), RunErrorCode::Timeout);
        assert_eq!(code(None, 2, "llm_error"), RunErrorCode::ContainerFailed);
        assert_eq!(code(Some(KilledBy::Cancel), 137, "timeout"), RunErrorCode::Cancelled);
    }
}
