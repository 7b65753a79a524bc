//! Parses the lines in which an agent reports its events: one JSON object a line, as `protocol = "events"` says.
//!
//! The lines contain only claims of the agent. Unknown fields are ignored; a line of another form is an error.

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

/// Most bytes of an id, a name or an error code.
const MAX_WORD: usize = 256;

/// Line of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentLine {
    /// A piece of the agent's text.
    Text(String),
    /// A call of a tool.
    ToolCall {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        name: String,
        /// Arguments, as the JSON text that the agent wrote.
        arguments: String,
    },
    /// The result of a call of a tool.
    ToolResult {
        /// Id of the call.
        id: String,
        /// Text of the result.
        result: String,
        /// True if the tool failed.
        is_error: bool,
    },
    /// Tokens that the agent counted.
    Usage {
        /// Tokens of prompts.
        input_tokens: u64,
        /// Tokens of answers.
        output_tokens: u64,
        /// Tokens of prompts that a cache held.
        cached_tokens: u64,
    },
    /// The end of the run.
    End(AgentEnd),
}

/// End of a run, as the agent reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEnd {
    /// The answer.
    Result(String),
    /// A failure.
    Error {
        /// Name of the failure.
        code: String,
        /// Reason for the failure.
        message: String,
    },
}

/// Type of a line.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LineType {
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Result,
    Error,
}

#[derive(Deserialize)]
struct TypeField {
    r#type: LineType,
}

#[derive(Deserialize)]
struct TextFields {
    text: String,
}

#[derive(Deserialize)]
struct ToolCallFields<'l> {
    #[serde(deserialize_with = "word")]
    id: String,
    #[serde(deserialize_with = "word")]
    name: String,
    #[serde(borrow)]
    arguments: &'l RawValue,
}

#[derive(Deserialize)]
struct ToolResultFields {
    #[serde(deserialize_with = "word")]
    id: String,
    result: String,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct UsageFields {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cached_tokens: u64,
}

#[derive(Deserialize)]
struct ErrorFields {
    #[serde(deserialize_with = "word")]
    code: String,
    #[serde(default)]
    message: String,
}

/// Reads a text that is neither empty nor longer than `MAX_WORD`.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_word = (1..=MAX_WORD).contains(&text.len());
    if is_word { Ok(text) } else { Err(de::Error::invalid_length(text.len(), &"1 to 256 bytes")) }
}

impl AgentLine {
    /// Parses a line, without its line feed.
    ///
    /// # Errors
    /// The reason why the line is not in the format.
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        // Serde would read the fields of a list, too.
        if !line.trim_ascii_start().starts_with('{') {
            return Err(de::Error::custom("not a JSON object"));
        }
        Ok(match serde_json::from_str::<TypeField>(line)?.r#type {
            LineType::Text => Self::Text(serde_json::from_str::<TextFields>(line)?.text),
            LineType::ToolCall => {
                let ToolCallFields { id, name, arguments } = serde_json::from_str(line)?;
                Self::ToolCall { id, name, arguments: arguments.get().to_owned() }
            }
            LineType::ToolResult => {
                let ToolResultFields { id, result, is_error } = serde_json::from_str(line)?;
                Self::ToolResult { id, result, is_error }
            }
            LineType::Usage => {
                let UsageFields { input_tokens, output_tokens, cached_tokens } = serde_json::from_str(line)?;
                Self::Usage { input_tokens, output_tokens, cached_tokens }
            }
            LineType::Result => Self::End(AgentEnd::Result(serde_json::from_str::<TextFields>(line)?.text)),
            LineType::Error => {
                let ErrorFields { code, message } = serde_json::from_str(line)?;
                Self::End(AgentEnd::Error { code, message })
            }
        })
    }
}

impl AgentEnd {
    /// Returns the last end that `stdout` reports; `None` if it reports none.
    pub fn last_of(stdout: &str) -> Option<Self> {
        stdout.lines().rev().find_map(|line| match AgentLine::parse(line) {
            Ok(AgentLine::End(end)) => Some(end),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn each_type_of_line_is_read() {
        for (line, expected) in [
            (r#"{"type":"text","text":"Hi","result":{"un":"known"}}"#, AgentLine::Text(text("Hi"))),
            (
                r#"{"type":"tool_call","id":"c1","name":"bash","arguments":{"b": 1, "a": [18446744073709551616]}}"#,
                AgentLine::ToolCall {
                    id: text("c1"),
                    name: text("bash"),
                    arguments: text(r#"{"b": 1, "a": [18446744073709551616]}"#),
                },
            ),
            (
                r#"{"type":"tool_result","id":"c1","result":"ok\n"}"#,
                AgentLine::ToolResult { id: text("c1"), result: text("ok\n"), is_error: false },
            ),
            (
                r#" {"is_error":true,"result":"no","id":"c1","type":"tool_result"} "#,
                AgentLine::ToolResult { id: text("c1"), result: text("no"), is_error: true },
            ),
            (
                r#"{"type":"usage","input_tokens":3,"output_tokens":2}"#,
                AgentLine::Usage { input_tokens: 3, output_tokens: 2, cached_tokens: 0 },
            ),
            (r#"{"type":"result","text":""}"#, AgentLine::End(AgentEnd::Result(String::new()))),
            (
                r#"{"type":"error","code":"no_answer"}"#,
                AgentLine::End(AgentEnd::Error { code: text("no_answer"), message: String::new() }),
            ),
        ] {
            assert_eq!(AgentLine::parse(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        let long =
            format!(r#"{{"type":"tool_call","id":"{}","name":"a","arguments":{{}}}}"#, "i".repeat(257));
        for line in [
            "",
            "Compiling sluice",
            "[]",
            r#"["text"]"#,
            "{}",
            r#"{"type":"thought","text":"t"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"text","text":1}"#,
            r#"{"type":"text","text":"t"} more"#,
            r#"{"type":"text","text":"t","text":"u"}"#,
            r#"{"type":"text","type":"usage","text":"t"}"#,
            r#"{"type":"tool_call","id":"","name":"bash","arguments":{}}"#,
            r#"{"type":"tool_call","id":"c1","name":"bash"}"#,
            r#"{"type":"tool_result","id":"c1","result":{}}"#,
            r#"{"type":"usage","input_tokens":-1}"#,
            r#"{"type":"error","message":"why"}"#,
            &long,
        ] {
            assert!(AgentLine::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_last_end_counts() {
        let result = r#"{"type":"result","text":"one"}"#;
        let error = r#"{"type":"error","code":"timeout","message":"m"}"#;
        let end = |stdout: &str| AgentEnd::last_of(stdout);
        assert_eq!(end(&format!("noise\n{error}\n{result}\nbye\n")), Some(AgentEnd::Result(text("one"))));
        let timeout = AgentEnd::Error { code: text("timeout"), message: text("m") };
        assert_eq!(end(&format!("{result}\n{error}")), Some(timeout));
        assert_eq!(end(&format!("{{\"type\":\"text\",\"text\":\"t\"}}\n{}", &result[5..])), None);
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "[\\{\\}\\[\\]\":,a-z_0-9\\\\ ]{0,80}") {
            drop(AgentLine::parse(&line));
        }
    }
}
