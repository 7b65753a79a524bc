//! Describes tool calls of agents in one line for people.

use platform_core::{
    event::AgentEvent,
    json::{self, Bounds},
};
use serde_json::Value;

/// Arguments that say most about a call, the best first.
const TELLING_ARGUMENTS: [&str; 10] =
    ["command", "cmd", "file_path", "path", "filename", "pattern", "query", "url", "prompt", "description"];
/// Most characters of a line that is shown.
const MAX_CHARS: usize = 200;

/// Returns the name of a tool, and the argument that says most: `bash  cargo test`.
pub(super) fn call(name: &str, arguments: &str) -> String {
    let read = json::from_str(arguments, Bounds::STORED);
    let argument = read.map_or_else(|_cut| arguments.to_owned(), |value| telling(&value));
    one_line(&format!("{name}  {argument}"))
}

/// Returns the first line of a tool's result, and the number of lines after it.
pub(super) fn result(result: &str) -> String {
    let mut lines = result.lines().filter(|line| !line.trim().is_empty());
    let first = one_line(lines.next().unwrap_or_default());
    match lines.count() {
        0 => first,
        more => format!("{first}  (+{more})"),
    }
}

/// Returns the state of a call of a host tool, its name, and what is known of it: `github__comment done, 12 B in 340 ms`.
/// None for other events.
pub(super) fn host_tool(event: &AgentEvent) -> Option<String> {
    let AgentEvent::HostTool { name, state, arguments, code, result_bytes, duration_ms, .. } = event else {
        return None;
    };
    let code = code.as_ref().map(|code| format!(": {code}"));
    let size = result_bytes.map(|bytes| format!(", {bytes} B"));
    let time = duration_ms.map(|millis| format!(" in {millis} ms"));
    let details: String = [code, size, time].into_iter().flatten().collect();
    let said = format!("{name} {}{details}", state.word());
    Some(arguments.as_ref().map_or_else(|| one_line(&said), |arguments| call(&said, arguments)))
}

/// Returns the argument that says most about a call.
fn telling(arguments: &Value) -> String {
    match arguments {
        Value::Object(fields) => {
            let known = TELLING_ARGUMENTS.into_iter().find_map(|name| fields.get(name));
            let any = fields.values().find(|value| value.is_string());
            known.or(any).map_or_else(|| unless_empty(arguments), words)
        }
        Value::Null => String::new(),
        other => words(other),
    }
}

/// Returns the JSON text of `arguments`, unless there are none.
fn unless_empty(arguments: &Value) -> String {
    if arguments.as_object().is_some_and(serde_json::Map::is_empty) {
        String::new()
    } else {
        arguments.to_string()
    }
}

/// Returns a value in words: a command line may be a list.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Returns `text` in one line of bounded length.
fn one_line(text: &str) -> String {
    let mut line: Vec<_> = text.trim_end().chars().take(MAX_CHARS + 1).collect();
    if line.len() > MAX_CHARS {
        line[MAX_CHARS] = '…';
    }
    line.into_iter()
        .map(|character| if matches!(character, '\n' | '\r' | '\t') { ' ' } else { character })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_with_its_telling_argument() {
        for (arguments, line) in [
            (r#"{"description":"Runs tests","command":"cargo test"}"#, "bash  cargo test"),
            (r#"{"command":["bash","-lc","cargo test\n--all"]}"#, "bash  bash -lc cargo test --all"),
            (r#"{"file_path":"src/lib.rs","content":"long"}"#, "bash  src/lib.rs"),
            (r#"{"count":2,"word":"x"}"#, "bash  x"),
            (r#"{"count":2}"#, r#"bash  {"count":2}"#),
            ("{}", "bash"),
            ("null", "bash"),
            (r#"{"command":"cut of"#, r#"bash  {"command":"cut of"#),
        ] {
            assert_eq!(call("bash", arguments), line);
        }
        let long = call("bash", &format!(r#"{{"command":"{}"}}"#, "x".repeat(500)));
        assert!(long.chars().count() == 201 && long.ends_with("x…"), "{long}");
    }

    #[test]
    fn a_result_is_its_first_line_and_a_count() {
        for (text, line) in [("", ""), ("ok\n", "ok"), ("\n  a\nb\n\nc\n", "  a  (+2)")] {
            assert_eq!(result(text), line);
        }
    }
}
