//! Derives the result of a run from the end of its container: the reason for the end, the exit code, and the output.

use platform_core::{event::RunErrorCode as Code, record::CallEnd};
use platform_runtime::settings::{Agent, Protocol};
use runner_docker::{ContainerExit, KilledBy, OutputState};
use runner_model::lifecycle::Failure;

use super::call;
use crate::envelope::{self, AgentOutput};

/// Words between the end of the last call and the agent's own words in a message.
pub const AGENT_SAID: &str = "; the agent said: ";

/// Returns the result of a run after its container ended. `last` is the end of the run's last call, if there was one.
/// If that call failed, it is the reason for an agent's failure; the agent's own words come after it.
pub(crate) fn judge(agent: &Agent, exit: &ContainerExit, last: Option<CallEnd>) -> Result<String, Failure> {
    if let Some(failure) = external_failure(agent, exit) {
        return Err(failure);
    }
    let is_short = exit.output == OutputState::MayBeShort;
    let own = match (exit.exit_code, envelope::read(agent.protocol, &exit.stdout.text())) {
        // An envelope and a result show their own end.
        (Some(0), AgentOutput::Answer(_)) if is_short && agent.protocol == Protocol::Text => output_lost(),
        (Some(0), AgentOutput::Unreadable(_)) if is_short => output_lost(),
        (Some(0), AgentOutput::Answer(text)) if agent.protocol == Protocol::Text || !text.is_empty() => {
            return Ok(text);
        }
        // An empty answer may be the agent's intention.
        (Some(0), AgentOutput::Answer(text)) => return call::failure(last).map_or(Ok(text), Err),
        (_, AgentOutput::Failure { code, message, .. }) if last.is_some_and(|call| call.is_failure()) => {
            // The call has a code already.
            let words = message.strip_prefix(&format!("{code}: ")).unwrap_or(&message);
            Failure::new(error_code(&code), words)
        }
        (_, AgentOutput::Failure { code, message, .. }) => Failure::new(error_code(&code), message),
        (Some(0), AgentOutput::Unreadable(message)) => Failure::new(Code::ContainerFailed, message),
        (_, AgentOutput::Unreadable(_)) => {
            Failure::new(Code::ContainerFailed, exit_message(exit, missing_part(agent.protocol)))
        }
        (_, AgentOutput::Answer(_)) => Failure::new(Code::ContainerFailed, exit_message(exit, "")),
    };
    Err(match call::failure(last) {
        Some(failure) => {
            Failure::new(failure.code, format!("{}{AGENT_SAID}{}", failure.message, own.message))
        }
        None => own,
    })
}

/// Returns the failure of an agent that ended well, with an answer that may not have come as a whole.
fn output_lost() -> Failure {
    Failure::new(
        Code::DockerUnavailable,
        "Docker was away and may have lost the end of the answer: run it again",
    )
}

/// Returns the failure if neither the agent nor a model caused the end.
fn external_failure(agent: &Agent, exit: &ContainerExit) -> Option<Failure> {
    let (code, message) = match (exit.killed_by, exit.exit_code) {
        (Some(KilledBy::Timeout), _) => (Code::Timeout, format!("stopped after {}", agent.run_timeout)),
        (Some(KilledBy::Cancel), _) => (Code::Cancelled, "cancelled".to_owned()),
        (Some(KilledBy::Disk), _) => (Code::ContainerFailed, exit_message(exit, "")),
        // The agent may have succeeded although one of its processes was killed.
        (None, Some(0)) => return None,
        (None, _) if exit.oom_seen => {
            (Code::OomKilled, format!("needed more than {} of memory", agent.memory))
        }
        (None, _) => return None,
    };
    Some(Failure::new(code, message))
}

/// Returns the code of a run for an agent's own error code. Unknown codes have no meaning here.
fn error_code(word: &str) -> Code {
    match word {
        // The agent gave up for lack of time, before it was ended.
        "timeout" => Code::Timeout,
        // A model answered, with an empty answer.
        "no_answer" => Code::NoAnswer,
        _ => Code::ContainerFailed,
    }
}

/// Returns the part of the output that is missing, in words.
const fn missing_part(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Envelope => "and without an envelope",
        Protocol::Events => "and without a result",
        Protocol::Text => "",
    }
}

fn exit_message(exit: &ContainerExit, missing: &str) -> String {
    let code = match exit.exit_code {
        None => "no exit code".to_owned(),
        // Docker was stopped, another process killed the container, or the agent's shell reports a killed child.
        Some(code @ 137) => format!("exit code {code}, as after a SIGKILL that was not ours"),
        Some(code @ 143) => format!("exit code {code}, as after a SIGTERM that was not ours"),
        Some(code) => format!("exit code {code}"),
    };
    let stderr = exit.stderr.text();
    let last_line = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let parts = [
        format!("the agent ended with {code} {missing}").trim_end().to_owned(),
        last_line.unwrap_or_default().to_owned(),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use platform_core::{limit::ByteSize, record::Outcome};
    use platform_runtime::{
        config::Sources,
        settings::{DEFAULT_AGENT, Settings},
    };
    use runner_docker::{Capture, Captured};
    use serde_json::json;

    use super::*;

    const REFUSED: Option<CallEnd> = Some(CallEnd { outcome: Outcome::Complete, status: 400, refusal: None });
    const ANSWERED: Option<CallEnd> =
        Some(CallEnd { outcome: Outcome::Complete, status: 200, refusal: None });

    fn captured(text: &str) -> Captured {
        let mut capture = Capture::new(ByteSize::kib(1));
        capture.push(text.as_bytes());
        capture.finish()
    }

    fn ended(exit_code: i64, stdout: &str) -> ContainerExit {
        let (stdout, stderr) = (captured(stdout), captured("trouble\n"));
        ContainerExit {
            exit_code: Some(exit_code),
            killed_by: None,
            oom_seen: false,
            output: OutputState::Whole,
            stdout,
            stderr,
        }
    }

    fn failure_output(error: &str) -> String {
        json!({ "payloads": [], "meta": { "error": { "code": error, "message": "its words" } } }).to_string()
    }

    fn judged(protocol: Protocol, ended: &ContainerExit, last: Option<CallEnd>) -> Result<String, Failure> {
        let settings = Settings::read(&Sources::default()).unwrap();
        let (_, agent) = settings.agents.iter().find(|(id, _)| id.as_str() == DEFAULT_AGENT).unwrap();
        judge(&Agent { protocol, ..agent.clone() }, ended, last)
    }

    #[test]
    fn a_failed_last_call_names_the_failure() {
        let code = |ended: &ContainerExit, last| judged(Protocol::Envelope, ended, last).unwrap_err().code;
        for (own, name) in
            [("llm_error", Code::ContainerFailed), ("timeout", Code::Timeout), ("no_answer", Code::NoAnswer)]
        {
            for exit_code in [0, 1, 2] {
                let ended = ended(exit_code, &failure_output(own));
                assert_eq!(code(&ended, REFUSED), Code::ModelRefused, "{own}");
                assert_eq!(code(&ended, ANSWERED), name, "{own}");
                assert_eq!(code(&ended, None), name, "{own}");
            }
        }
        let failure =
            judged(Protocol::Envelope, &ended(1, &failure_output("llm_error")), REFUSED).unwrap_err();
        let message = "the model API refused the run's last call (status 400); the agent said: its words";
        assert_eq!(failure.message, message);
        let failure = judged(Protocol::Text, &ended(7, "half an answer"), REFUSED).unwrap_err();
        assert_eq!(failure.code, Code::ModelRefused);
        assert!(
            failure.message.ends_with("; the agent said: the agent ended with exit code 7: trouble"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn an_agents_error_event_is_named_once() {
        let error = |code: &str| json!({ "type": "error", "code": code, "message": "why" }).to_string();
        let result = json!({ "type": "result", "text": "Hi" }).to_string();
        let judged =
            |exit_code, stdout: &str, last| judged(Protocol::Events, &ended(exit_code, stdout), last);
        assert_eq!(judged(0, &result, REFUSED), Ok("Hi".to_owned()));
        for (word, code) in [
            ("agent_failed", Code::ContainerFailed),
            ("not_logged_in", Code::ContainerFailed),
            ("timeout", Code::Timeout),
            ("no_answer", Code::NoAnswer),
        ] {
            let failure = judged(1, &error(word), ANSWERED).unwrap_err();
            assert_eq!((failure.code, failure.message), (code, format!("{word}: why")));
        }
        let failure = judged(1, &error("model_error"), REFUSED).unwrap_err();
        let message = "the model API refused the run's last call (status 400); the agent said: why";
        assert_eq!((failure.code, failure.message.as_str()), (Code::ModelRefused, message));
        for (stdout, message) in [
            (result.as_str(), "the agent ended with exit code 3: trouble"),
            ("no event", "the agent ended with exit code 3 and without a result: trouble"),
        ] {
            assert_eq!(judged(3, stdout, ANSWERED).unwrap_err().message, message);
        }
        assert!(judged(0, "no event", ANSWERED).unwrap_err().message.contains("no line with the result"));
    }

    #[test]
    fn an_empty_answer_fails_with_its_last_call() {
        let answer = json!({ "payloads": [{ "text": "Hi" }], "meta": {} }).to_string();
        assert_eq!(judged(Protocol::Envelope, &ended(0, &answer), REFUSED), Ok("Hi".to_owned()));
        assert_eq!(judged(Protocol::Text, &ended(0, "Hi"), REFUSED), Ok("Hi".to_owned()));
        assert_eq!(
            judged(Protocol::Text, &ended(0, ""), REFUSED),
            Ok(String::new()),
            "it prints what it likes"
        );
        let nothing = ended(0, r#"{"payloads":[],"meta":{}}"#);
        assert_eq!(judged(Protocol::Envelope, &nothing, ANSWERED), Ok(String::new()));
        assert_eq!(judged(Protocol::Envelope, &nothing, REFUSED).unwrap_err().code, Code::ModelRefused);
    }

    #[test]
    fn an_answer_that_may_be_short_is_none() {
        let short = |text: &str| ContainerExit { output: OutputState::MayBeShort, ..ended(0, text) };
        let code = |protocol, ended: &ContainerExit| {
            judged(protocol, ended, ANSWERED).map_err(|failure| failure.code)
        };
        assert_eq!(code(Protocol::Text, &short("half")), Err(Code::DockerUnavailable));
        assert_eq!(code(Protocol::Text, &ended(0, "half")), Ok("half".to_owned()), "control");
        let result = json!({ "type": "result", "text": "Hi" }).to_string();
        assert_eq!(code(Protocol::Events, &short(&result)), Ok("Hi".to_owned()), "it shows its own end");
        assert_eq!(code(Protocol::Events, &short("")), Err(Code::DockerUnavailable));
        let failed = ContainerExit { exit_code: Some(143), ..short("half") };
        assert_eq!(code(Protocol::Text, &failed), Err(Code::ContainerFailed), "it did not end well");
    }

    #[test]
    fn the_killer_decides_before_words_and_calls() {
        for own in ["llm_error", "timeout"] {
            let code = |change: fn(&mut ContainerExit)| {
                let mut ended = ended(137, &failure_output(own));
                change(&mut ended);
                judged(Protocol::Envelope, &ended, REFUSED).unwrap_err().code
            };
            assert_eq!(code(|ended| ended.killed_by = Some(KilledBy::Timeout)), Code::Timeout);
            assert_eq!(code(|ended| ended.killed_by = Some(KilledBy::Cancel)), Code::Cancelled);
            assert_eq!(code(|ended| ended.killed_by = Some(KilledBy::Disk)), Code::ContainerFailed);
            assert_eq!(code(|ended| ended.oom_seen = true), Code::OomKilled);
        }
    }
}
