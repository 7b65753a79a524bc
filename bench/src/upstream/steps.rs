//! Plays a model that works through a list. The user's message has the list, one line per step, and the conversation
//! shows the progress. The model keeps no state, so any number of conversations may go on at once. A request without
//! tools gets text: an example is a client that asks for a summary of a conversation with a list in it.
//!
//! ```text
//! call: exec {"command":"git init"}
//! call: edit {"path":"a","edits":[{"oldText":"b","newText":"c"}]}
//! call: mcp__host/clock {}
//! say: Done.
//! ```
//!
//! A name before a `/` is the namespace of the tool, which the Responses API alone has.

use super::ask::Ask;

const CALL: &str = "call: ";
const SAY: &str = "say: ";

/// Next action of the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A call of a tool.
    Call { tool: String, arguments: String },
    /// The end, after all tools were called, with the text of the list, if it has one.
    Say(Option<String>),
}

/// Returns the step after those with results in the conversation.
pub(super) fn next(ask: &Ask) -> Step {
    if !ask.offers_tools() {
        return Step::Say(None);
    }
    let turns: Vec<_> = ask.turns().collect();
    let lists =
        |(role, text): &(&str, String)| *role == "user" && text.lines().any(|line| line.starts_with(CALL));
    let Some(at) = turns.iter().rposition(lists) else { return Step::Say(None) };
    let done = ask.results_since(at);
    let lines = || turns[at].1.lines();
    let call = lines().filter_map(|line| line.strip_prefix(CALL)).nth(done);
    match call.map(|call| call.split_once(' ').unwrap_or((call, "{}"))) {
        Some((tool, arguments)) => Step::Call { tool: tool.to_owned(), arguments: arguments.to_owned() },
        None => Step::Say(lines().find_map(|line| line.strip_prefix(SAY)).map(str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::upstream::api::Api;

    fn after(turns: &[Value]) -> Step {
        let list = "Do this:\ncall: exec {\"command\":\"ls -l\"}\ncall: read\nsay: Both done.";
        let mut messages = vec![json!({ "role": "user", "content": list })];
        messages.extend_from_slice(turns);
        let tools = json!([{ "type": "function", "function": { "name": "exec" } }]);
        let body = json!({ "model": "fake-steps", "messages": messages, "tools": tools }).to_string();
        next(&Ask::read(Api::Chat, body.as_bytes()).unwrap())
    }

    #[test]
    fn each_result_leads_to_the_next_step() {
        let call = |tool: &str, arguments: &str| Step::Call {
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
        };
        let (said, result) =
            (json!({ "role": "assistant", "content": null }), json!({ "role": "tool", "content": "x" }));
        let note = json!({ "role": "user", "content": "Note: call: nothing" });
        assert_eq!(after(std::slice::from_ref(&note)), call("exec", "{\"command\":\"ls -l\"}"));
        assert_eq!(after(&[note, said.clone(), result.clone()]), call("read", "{}"));
        assert_eq!(
            after(&[said.clone(), result.clone(), said, result]),
            Step::Say(Some("Both done.".to_owned()))
        );
    }

    #[test]
    fn every_api_shows_its_results() {
        let (call, output) = ("custom_tool_call", "custom_tool_call_output");
        let list =
            json!({ "role": "user", "content": [{ "type": "text", "text": "call: exec\ncall: read" }] });
        let result = |content: &str| json!({ "type": "tool_result", "tool_use_id": "t", "content": content });
        let table = [
            (Api::Messages, "messages", json!([list, { "role": "user", "content": [result("a")] }])),
            (
                Api::Responses,
                "input",
                json!([list, { "type": call, "input": "x" }, { "type": output, "output": "a" }]),
            ),
        ];
        for (api, field, turns) in table {
            let mut body = json!({ "model": "fake-steps", "tools": [{ "name": "exec" }] });
            body[field] = turns;
            let ask = Ask::read(api, body.to_string().as_bytes()).unwrap();
            let read = Step::Call { tool: "read".to_owned(), arguments: "{}".to_owned() };
            assert_eq!(next(&ask), read, "{body}");
        }
    }

    #[test]
    fn without_a_list_or_tools_nothing_is_done() {
        let list = r#"[{"role":"user","content":"call: exec\nsay: Done."}]"#;
        let tools = r#"[{"type":"function","function":{"name":"exec"}}]"#;
        let exec = Step::Call { tool: "exec".to_owned(), arguments: "{}".to_owned() };
        for (messages, tools, step) in
            [("[]", tools, Step::Say(None)), (list, "[]", Step::Say(None)), (list, tools, exec)]
        {
            let body = format!(r#"{{"model":"fake-steps","messages":{messages},"tools":{tools}}}"#);
            assert_eq!(next(&Ask::read(Api::Chat, body.as_bytes()).unwrap()), step, "{body}");
        }
    }
}
