//! Reads the answer or the failure in an agent's output, in the format that its entry names.
//!
//! An envelope is the specification's `SandboxProgramContract`, one JSON document on stdout. The output contains only
//! claims of the agent. The journal proves the success and the cost of calls.

use platform_core::json::{self, Bounds};
use platform_runtime::settings::Protocol;
use runner_model::agent_line::AgentEnd;
use serde::Deserialize;

/// Bounds of an envelope. `output_capture_limit` bounds its length, and nothing that may nest in it is read.
const BOUNDS: Bounds = Bounds::of(usize::MAX).with_depth(usize::MAX).with_values(usize::MAX);

/// Output of an agent, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentOutput {
    /// The answer.
    Answer(String),
    /// The agent reports a failure.
    Failure {
        /// Answer up to the failure.
        partial: String,
        /// Kind of the failure, in the agent's own words.
        code: String,
        /// Reason for the failure.
        message: String,
    },
    /// The output is not in the format that the agent's entry names.
    Unreadable(String),
}

#[derive(Deserialize)]
struct Envelope {
    payloads: Vec<Payload>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    /// The specification says `kind` in one place and `code` in another.
    #[serde(alias = "kind")]
    code: String,
    #[serde(default)]
    message: Option<String>,
}

/// Parses `stdout` according to `protocol`.
pub(crate) fn read(protocol: Protocol, stdout: &str) -> AgentOutput {
    match protocol {
        Protocol::Text => AgentOutput::Answer(stdout.trim_end_matches('\n').to_owned()),
        Protocol::Envelope => match json::from_str::<Envelope>(stdout, BOUNDS) {
            Ok(envelope) => envelope.into(),
            Err(error) => AgentOutput::Unreadable(format!(
                "stdout is not an envelope ({error}): if the agent prints plain text, set `protocol = \"text\"` in its entry"
            )),
        },
        Protocol::Events => AgentEnd::last_of(stdout).map_or_else(
            || {
                AgentOutput::Unreadable(
                    "stdout has no line with the result, or only a part of one: the agent has to print one at its end; see `output_capture_limit` in its entry".to_owned(),
                )
            },
            AgentOutput::from,
        ),
    }
}

impl From<Envelope> for AgentOutput {
    fn from(envelope: Envelope) -> Self {
        let texts: Vec<_> = envelope.payloads.into_iter().filter_map(|payload| payload.text).collect();
        let text = texts.join("\n\n");
        match envelope.meta.error {
            None => Self::Answer(text),
            Some(Failure { code, message }) => {
                let message = message.map_or(code.clone(), |message| format!("{code}: {message}"));
                Self::Failure { partial: text, code, message }
            }
        }
    }
}

impl From<AgentEnd> for AgentOutput {
    fn from(end: AgentEnd) -> Self {
        match end {
            AgentEnd::Result(text) => Self::Answer(text),
            AgentEnd::Error { code, message } => {
                let message = if message.is_empty() { code.clone() } else { format!("{code}: {message}") };
                Self::Failure { partial: String::new(), code, message }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
    fn raw_nest(layers: usize) -> String {
        let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
        (0..layers).fold("1".to_owned(), |inner, _| {
            format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
        })
    }

    #[test]
    fn an_envelope_is_answer_failure_or_unreadable() {
        let answer = |text: &str| AgentOutput::Answer(text.to_owned());
        let failure = |partial: &str, code: &str, message: &str| AgentOutput::Failure {
            partial: partial.to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        let cases = [
            (r#"{"payloads":[{"text":"Hi"}],"meta":{"durationMs":1,"error":null}}"#, answer("Hi")),
            (
                r#"{"payloads":[{"text":"a","mediaUrl":null},{"text":"b"}],"meta":{"aborted":false}}"#,
                answer("a\n\nb"),
            ),
            (r#"{"payloads":[],"meta":{}}"#, answer("")),
            (
                r#"{"payloads":[{"text":"Hal"}],"meta":{"error":{"code":"llm_error","message":"cut"}}}"#,
                failure("Hal", "llm_error", "llm_error: cut"),
            ),
            (
                r#"{"payloads":[],"meta":{"error":{"kind":"input_error"}}}"#,
                failure("", "input_error", "input_error"),
            ),
        ];
        for (stdout, output) in cases {
            assert_eq!(read(Protocol::Envelope, stdout), output, "{stdout}");
        }
        let nested = format!(r#"{{"payloads":[],"meta":{{"error":{}}}}}"#, raw_nest(15));
        for stdout in [
            "",
            "Hi",
            "{}",
            r#"{"payloads":[]}"#,
            "{\"payloads\":[],\"meta\":{}} trailing",
            "[[],{}]",
            &nested,
        ] {
            let AgentOutput::Unreadable(message) = read(Protocol::Envelope, stdout) else {
                panic!("{stdout:?} was taken for an envelope");
            };
            assert!(message.contains("set `protocol = \"text\"`"), "{message}");
        }
    }

    #[test]
    fn the_last_event_is_answer_or_failure() {
        let text = r#"{"type":"text","text":"a"}"#;
        let result = r#"{"type":"result","text":"answer"}"#;
        let error = r#"{"type":"error","code":"not_logged_in","message":"no key"}"#;
        let read = |stdout: &str| read(Protocol::Events, stdout);
        assert_eq!(read(&format!("{text}\n{result}\n")), AgentOutput::Answer("answer".to_owned()));
        let failure = AgentOutput::Failure {
            partial: String::new(),
            code: "not_logged_in".to_owned(),
            message: "not_logged_in: no key".to_owned(),
        };
        assert_eq!(read(&format!("{text}\n{error}\n")), failure);
        for stdout in ["", text, &result[..20]] {
            assert!(matches!(read(stdout), AgentOutput::Unreadable(_)), "{stdout}");
        }
    }

    #[test]
    fn text_output_is_the_answer() {
        assert_eq!(read(Protocol::Text, "line\n\n"), AgentOutput::Answer("line".to_owned()));
    }
}
