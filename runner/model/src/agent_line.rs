//! Parses the lines in which an agent reports its events: one JSON object a line, as `protocol = "events"` says.
//!
//! The lines contain only claims of the agent. Unknown fields are ignored; a line of another form is an error.

use std::borrow::Cow;

use platform_core::json::{self, Bounds, Raw};
use serde::{Deserialize, Deserializer, de};

/// Most bytes of an id or a name. LiteLLM makes ids of more than a KiB for models that sign their calls.
const MAX_WORD: usize = 4096;
/// Bounds of a line. The collector of the output bounds its length, and what may nest in it stays text.
const BOUNDS: Bounds = Bounds::of(usize::MAX).with_depth(usize::MAX).with_values(usize::MAX);
/// Most bytes of an error code.
const MAX_CODE: usize = 256;
/// Escape of the character that stands for an unreadable one.
const REPLACEMENT: &str = "\\ufffd";
/// Bytes of an escaped UTF-16 unit, such as `\ufffd`.
const UNIT_ESCAPE: usize = 6;

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
    arguments: Raw<'l>,
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
    #[serde(deserialize_with = "code")]
    code: String,
    #[serde(default)]
    message: String,
}

/// Reads a text that is neither empty nor longer than `MAX_WORD`.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_word = (1..=MAX_WORD).contains(&text.len());
    if is_word { Ok(text) } else { Err(de::Error::invalid_length(text.len(), &"1 to 4096 bytes")) }
}

/// Reads an error code. It is shown to people, so it has one line.
fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_code = (1..=MAX_CODE).contains(&text.len()) && !text.contains(char::is_control);
    if is_code { Ok(text) } else { Err(de::Error::custom("no code of 1 to 256 bytes in one line")) }
}

/// Replaces escaped UTF-16 surrogates without their other half: many languages can print them, and no reader of texts takes them.
fn replace_lone_surrogates(line: &str) -> Cow<'_, str> {
    if !line.contains("\\ud") && !line.contains("\\uD") {
        return Cow::Borrowed(line);
    }
    let mut whole = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let length = match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(low_half(escape), Some(0xdc00..=0xdfff)) => 2 * UNIT_ESCAPE,
            Some(0xd800..=0xdfff) => {
                whole.push_str(REPLACEMENT);
                rest = &escape[UNIT_ESCAPE..];
                continue;
            }
            // A backslash and what it escapes, which may be a backslash.
            _ => escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end),
        };
        let (kept, after) = escape.split_at(length);
        whole.push_str(kept);
        rest = after;
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// Returns the UTF-16 unit that `text` begins with as an escape.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Returns the unit after the first one.
fn low_half(text: &str) -> Option<u16> {
    unit(text.get(UNIT_ESCAPE..)?)
}

impl AgentLine {
    /// Parses a line, without its line feed. Replaces halves of characters.
    ///
    /// # Errors
    /// The reason why the line is not in the format.
    pub fn parse(line: &str) -> Result<Self, json::Error> {
        let line = replace_lone_surrogates(line);
        let line: Raw<'_> = json::from_str(&line, BOUNDS)?;
        Ok(match line.read::<TypeField>()?.r#type {
            LineType::Text => Self::Text(line.read::<TextFields>()?.text),
            LineType::ToolCall => {
                let ToolCallFields { id, name, arguments } = line.read()?;
                Self::ToolCall { id, name, arguments: arguments.get().to_owned() }
            }
            LineType::ToolResult => {
                let ToolResultFields { id, result, is_error } = line.read()?;
                Self::ToolResult { id, result, is_error }
            }
            LineType::Usage => {
                let UsageFields { input_tokens, output_tokens, cached_tokens } = line.read()?;
                Self::Usage { input_tokens, output_tokens, cached_tokens }
            }
            LineType::Result => Self::End(AgentEnd::Result(line.read::<TextFields>()?.text)),
            LineType::Error => {
                let ErrorFields { code, message } = line.read()?;
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

    /// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
    fn raw_nest(layers: usize) -> String {
        let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
        (0..layers).fold("1".to_owned(), |inner, _| {
            format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
        })
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
            format!(r#"{{"type":"tool_call","id":"{}","name":"a","arguments":{{}}}}"#, "i".repeat(4097));
        let nested = format!(r#"{{"type":"text","text":{}}}"#, raw_nest(15));
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
            r#"{"type":"error","code":"why\nsluice: next: rm"}"#,
            r#"{"type":{"text":null},"text":"t"}"#,
            &long,
            &nested,
        ] {
            assert!(AgentLine::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn arguments_are_passed_on_unread() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for written in [raw_nest(15), r#"{"a":1,"a":2}"#.to_owned(), deep] {
            let line = format!(r#"{{"type":"tool_call","id":"c","name":"n","arguments":{written}}}"#);
            let AgentLine::ToolCall { arguments, .. } = AgentLine::parse(&line).unwrap() else { panic!() };
            assert_eq!(arguments, written);
        }
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        for (escaped, expected) in [
            (r"cut \ud83d", "cut \u{fffd}"),
            (r"\uDE00 low", "\u{fffd} low"),
            (r"\ud83d\ude00", "\u{1f600}"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ud83d\n", "\u{fffd}\n"),
            (r"\\ud83d", r"\ud83d"),
            (r"\\\ud83d\u00e9", "\\\u{fffd}é"),
        ] {
            let line = format!(r#"{{"type":"result","text":"{escaped}"}}"#);
            let parsed = AgentLine::parse(&line).unwrap();
            assert_eq!(parsed, AgentLine::End(AgentEnd::Result(text(expected))), "{line}");
        }
        let call = r#"{"type":"tool_call","id":"c","name":"n","arguments":{"a":"\ud83d"}}"#;
        let AgentLine::ToolCall { arguments, .. } = AgentLine::parse(call).unwrap() else { panic!() };
        assert_eq!(arguments, r#"{"a":"\ufffd"}"#);
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

        #[test]
        fn no_escape_makes_it_panic(text in "(\\\\|u|ud|d8|3d|de|é|0|\"){0,40}") {
            drop(AgentLine::parse(&format!("{{\"type\":\"text\",\"text\":\"{text}\\ud83d\"}}")));
        }
    }
}
