//! Writes the events of a run as chunks of the AI SDK's UI message stream.
//!
//! Majors 5, 6 and 7 of the SDK all announce `v1`, and each kills the stream at a chunk that it does not know. So only
//! chunks are sent that all of them take. A stream ends with `finish`, `error` or `abort`: its end alone would look like
//! success.
//!
//! A call of a host tool is a part that the control plane vouches for. Its id begins with `host-`, as that of no other
//! part does. What model and agent say of the same call is left out.

use std::collections::HashSet;

use platform_core::{
    event::{ActivityKind, AgentEvent, Phase, RunErrorCode},
    id::ToolName,
    json::{self, Bounds},
};
use runner_engine::tool_lists::ToolLists;
use runner_store::{Run, Store};
use serde_json::{Value, json};

use super::host_tool::{self, HostToolPart};
use crate::error::Error;

/// Message for a client if its stream ends before the run.
const INTERRUPTED: &str = "the stream broke off; the run goes on: resume the stream, or read the thread";

/// Writer of one assistant message, the answer of a run.
#[derive(Debug)]
pub(super) struct UiStream {
    run_id: String,
    /// Text part that is open, with its text so far.
    open_text: Option<String>,
    /// Number of text parts that were opened.
    text_parts: u32,
    /// Ids of tool calls for which output may follow.
    tool_calls: HashSet<String>,
    /// Host tools that the run may call.
    host_tools: Vec<ToolName>,
    usage: Option<Value>,
    has_ended: bool,
}

impl UiStream {
    /// Returns a writer of the answer of `run`.
    pub(super) async fn of_run(store: &Store, run: &Run) -> Result<Self, Error> {
        let host_tools = ToolLists::ordered(&store.order(&run.run_id).await?);
        Ok(Self { host_tools, ..Self::of(run.run_id.as_str()) })
    }

    /// Returns a writer of the answer of run `run_id`, which may call no host tool.
    fn of(run_id: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            open_text: None,
            text_parts: 0,
            tool_calls: HashSet::new(),
            host_tools: Vec::new(),
            usage: None,
            has_ended: false,
        }
    }

    /// Returns the chunks that begin the message. The message has the id of its run.
    pub(super) fn start(&self, agent_id: &str, thread: &str) -> Vec<Value> {
        let metadata = json!({ "runId": self.run_id, "agentId": agent_id, "stateKey": thread });
        vec![
            json!({ "type": "start", "messageId": self.run_id, "messageMetadata": metadata }),
            json!({ "type": "start-step" }),
        ]
    }

    /// Returns the chunks for an event of the run, which has the number `seq` if it is stored.
    pub(super) fn event(&mut self, seq: Option<u64>, event: &AgentEvent) -> Vec<Value> {
        match event {
            AgentEvent::Status { phase } => vec![status(phase.name())],
            AgentEvent::Activity { kind, label } => vec![activity(*kind, label.as_deref())],
            AgentEvent::TextDelta { delta } => self.text(delta),
            AgentEvent::Progress { text } => {
                vec![json!({ "type": "data-progress", "data": { "text": text }, "transient": true })]
            }
            AgentEvent::Tool { name } | AgentEvent::ToolCall { name, .. } if self.is_host_tool(name) => {
                Vec::new()
            }
            AgentEvent::Tool { name } => self.named_tool(seq, name),
            AgentEvent::ToolCall { id, name, arguments, .. } => {
                self.tool_call(&host_tool::id_of_agent(id), name, arguments)
            }
            AgentEvent::ToolResult { id, result, is_error: true, .. } => {
                self.tool_output(&host_tool::id_of_agent(id), &json!({ "error": result }))
            }
            AgentEvent::ToolResult { id, result, .. } => {
                self.tool_output(&host_tool::id_of_agent(id), &json!(result))
            }
            AgentEvent::HostTool { .. } => self.host_tool(event),
            AgentEvent::Missed { count } | AgentEvent::Pruned { count } => {
                vec![json!({ "type": "data-missed", "data": { "count": count }, "transient": true })]
            }
            AgentEvent::UsageReport { calls, tokens } => {
                self.usage = Some(json!({
                    "calls": calls, "inputTokens": tokens.input, "outputTokens": tokens.output,
                    "totalTokens": tokens.input.saturating_add(tokens.output),
                }));
                Vec::new()
            }
            AgentEvent::AssistantFinal { content, .. } => self.answer(content),
            AgentEvent::Done => self.finish(),
            AgentEvent::Error { code: RunErrorCode::Cancelled, .. } => self.cancelled(),
            AgentEvent::Error { code, message } => self.error(code.code(), message),
            AgentEvent::AgentUsage { .. }
            | AgentEvent::Commits { .. }
            | AgentEvent::Log { .. }
            | AgentEvent::LogCut { .. } => Vec::new(),
        }
    }

    /// Returns the chunks of a stream that ends before its run.
    pub(super) fn interrupted(&mut self) -> Vec<Value> {
        self.error("interrupted", INTERRUPTED)
    }

    /// Returns whether the message is complete.
    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn text(&mut self, delta: &str) -> Vec<Value> {
        let mut chunks = Vec::new();
        if self.open_text.is_none() {
            self.text_parts += 1;
            self.open_text = Some(String::new());
            chunks.push(json!({ "type": "text-start", "id": self.text_id() }));
        }
        if let Some(text) = &mut self.open_text {
            text.push_str(delta);
        }
        chunks.push(json!({ "type": "text-delta", "id": self.text_id(), "delta": delta }));
        chunks
    }

    fn end_text(&mut self) -> Vec<Value> {
        let was_open = self.open_text.take().is_some();
        was_open.then(|| json!({ "type": "text-end", "id": self.text_id() })).into_iter().collect()
    }

    fn text_id(&self) -> String {
        format!("text-{}", self.text_parts)
    }

    /// Returns the chunks that make the last text part equal to the answer: the rest of it, if its beginning is there.
    fn answer(&mut self, content: &str) -> Vec<Value> {
        let streamed = self.open_text.as_deref();
        let mut chunks = Vec::new();
        match content.strip_prefix(streamed.unwrap_or_default()) {
            Some("") if streamed.is_some() => {}
            Some(rest) => chunks.extend(self.text(rest)),
            None => {
                chunks.extend(self.end_text());
                chunks.extend(self.text(content));
            }
        }
        chunks.extend(self.end_text());
        chunks
    }

    /// Returns the chunks of a tool of which only the name is known.
    fn named_tool(&mut self, seq: Option<u64>, name: &str) -> Vec<Value> {
        let Some(seq) = seq else { return Vec::new() };
        let id = format!("{}-{seq}", self.run_id);
        let mut chunks = self.tool_call(&id, name, "{}");
        chunks.extend(self.tool_output(&id, &json!("")));
        chunks
    }

    /// Returns whether a model or an agent names a host tool of the run. Clients of the Model Context Protocol put the
    /// name of a server before that of the tool.
    fn is_host_tool(&self, asked: &str) -> bool {
        let is_named = |name: &ToolName| {
            let before = asked.strip_suffix(name.as_str());
            before.is_some_and(|before| !before.ends_with(|last: char| last.is_alphanumeric()))
        };
        self.host_tools.iter().any(is_named)
    }

    /// Returns the chunks of a state of a call of a host tool.
    fn host_tool(&mut self, event: &AgentEvent) -> Vec<Value> {
        let Some(part) = HostToolPart::of(event) else { return Vec::new() };
        let mut chunks = self.tool_call(&part.id, part.name, part.arguments);
        chunks.push(part.state_chunk());
        if let Some(output) = part.output() {
            chunks.extend(self.tool_output(&part.id, &output));
        }
        chunks
    }

    fn tool_call(&mut self, id: &str, name: &str, arguments: &str) -> Vec<Value> {
        if !self.tool_calls.insert(id.to_owned()) {
            return Vec::new();
        }
        // Arguments that were cut are not JSON any more.
        let parsed = json::from_str(arguments, Bounds::STORED).ok().filter(|input| !is_refused(input));
        let input = parsed.unwrap_or_else(|| json!({ "text": arguments }));
        let mut chunks = self.end_text();
        let start = json!({ "type": "tool-input-start" });
        let available = json!({ "type": "tool-input-available", "input": input });
        chunks.extend([start, available].into_iter().map(|chunk| {
            let mut chunk = tool_chunk(chunk, id);
            chunk["toolName"] = name.into();
            chunk
        }));
        chunks
    }

    fn tool_output(&self, id: &str, output: &Value) -> Vec<Value> {
        // An output without its input kills the stream.
        if !self.tool_calls.contains(id) {
            return Vec::new();
        }
        vec![tool_chunk(json!({ "type": "tool-output-available", "output": output }), id)]
    }

    fn finish(&mut self) -> Vec<Value> {
        self.has_ended = true;
        let mut chunks = self.end_text();
        let mut metadata = json!({ "done": true });
        if self.text_parts > 0 {
            metadata["answerPart"] = self.text_id().into();
        }
        if let Some(usage) = self.usage.take() {
            metadata["usage"] = usage;
        }
        chunks.push(json!({ "type": "finish-step" }));
        chunks.push(json!({ "type": "finish", "messageMetadata": metadata }));
        chunks
    }

    fn cancelled(&mut self) -> Vec<Value> {
        self.has_ended = true;
        let mut chunks = self.end_text();
        // The client does nothing about `abort`.
        chunks.push(status("cancelled"));
        chunks.push(json!({ "type": "abort" }));
        chunks
    }

    fn error(&mut self, code: &str, message: &str) -> Vec<Value> {
        self.has_ended = true;
        let mut chunks = self.end_text();
        // After `error`, the client reads nothing.
        chunks.push(json!({ "type": "data-error", "data": { "code": code, "message": message } }));
        chunks.push(json!({ "type": "error", "errorText": message }));
        chunks
    }
}

/// Returns a chunk of the part that shows the phase of the run. Each replaces the one before.
pub(super) fn status(phase: &str) -> Value {
    json!({ "type": "data-status", "id": "status", "data": { "phase": phase } })
}

/// Returns a chunk of the part that shows what the agent does now. Each replaces the one before.
fn activity(kind: ActivityKind, label: Option<&str>) -> Value {
    let mut data = json!({ "kind": kind.name() });
    if let Some(label) = label {
        data["label"] = label.into();
    }
    json!({ "type": "data-activity", "id": "activity", "data": data })
}

/// Returns the chunk of the part that shows a run's place in the queue.
pub(super) fn queued(ahead: u64, waiting: u64) -> Value {
    let mut chunk = status(Phase::Queued.name());
    chunk["data"]["ahead"] = ahead.into();
    chunk["data"]["waiting"] = waiting.into();
    chunk
}

/// Marks a chunk as that of a tool which the client does not know and must not execute.
fn tool_chunk(mut chunk: Value, id: &str) -> Value {
    chunk["toolCallId"] = id.into();
    chunk["dynamic"] = true.into();
    chunk["providerExecuted"] = true.into();
    chunk
}

/// Returns whether the AI SDK refuses to parse a chunk with this value in it: it has a key that could change the prototype of
/// an object. The whole stream would end there.
fn is_refused(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(key, field)| {
            let has_prototype = || field.get("prototype").is_some();
            key == "__proto__" || key == "constructor" && has_prototype() || is_refused(field)
        }),
        Value::Array(items) => items.iter().any(is_refused),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use platform_core::{host_tools::ToolCallState, record::Tokens};

    use super::*;

    /// Returns the types of all chunks of these events, and the text of the last text part.
    fn written(events: &[AgentEvent]) -> (Vec<String>, String) {
        let mut stream = UiStream::of("r1");
        let chunks: Vec<_> =
            events.iter().zip(1..).flat_map(|(event, seq)| stream.event(Some(seq), event)).collect();
        let types = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap().to_owned()).collect();
        let last = format!("text-{}", stream.text_parts);
        let deltas = chunks.iter().filter(|chunk| chunk["id"] == last.as_str());
        (types, deltas.filter_map(|chunk| chunk["delta"].as_str()).collect())
    }

    fn delta(text: &str) -> AgentEvent {
        AgentEvent::TextDelta { delta: text.to_owned() }
    }

    fn answer(text: &str) -> AgentEvent {
        AgentEvent::AssistantFinal { content: text.to_owned(), cut_bytes: 0 }
    }

    fn call(id: &str) -> AgentEvent {
        AgentEvent::ToolCall {
            id: id.to_owned(),
            name: "sh".to_owned(),
            arguments: "{\"a\":".to_owned(),
            cut_bytes: 3,
        }
    }

    fn result(id: &str) -> AgentEvent {
        AgentEvent::ToolResult { id: id.to_owned(), result: "out".to_owned(), is_error: false, cut_bytes: 0 }
    }

    #[test]
    fn the_last_text_part_is_the_answer() {
        let text = ["text-start", "text-delta", "text-end"];
        assert_eq!(written(&[delta("a"), delta("b"), answer("ab")]).1, "ab");
        assert_eq!(written(&[delta("a"), delta("b"), answer("ab")]).0, [text[0], text[1], text[1], text[2]]);
        assert_eq!(
            written(&[delta("thinking"), answer("ab")]),
            ([text, text].concat().iter().map(|t| (*t).to_owned()).collect(), "ab".to_owned())
        );
        let longer = [text[0], text[1], text[1], text[2]].map(str::to_owned).to_vec();
        assert_eq!(written(&[delta("a"), answer("ab")]), (longer, "ab".to_owned()), "the rest follows");
        assert_eq!(written(&[answer("ab")]).1, "ab");
        assert_eq!(written(&[delta("ab"), call("c"), answer("ab")]).1, "ab");
    }

    /// An agent could end its own answer's stream with them.
    #[test]
    fn inputs_that_clients_refuse_stay_text() {
        let input = |arguments: &str| {
            let mut stream = UiStream::of("r1");
            stream.tool_call("c", "bash", arguments)[1]["input"].clone()
        };
        for refused in [
            r#"{"__proto__":{"polluted":1}}"#,
            r#"{"a":[{"\u005f_proto__":1}]}"#,
            r#"{"a":{"constructor":{"prototype":{}}}}"#,
        ] {
            assert_eq!(input(refused), json!({ "text": refused }));
        }
        for taken in [r#"{"a":"__proto__"}"#, r#"{"constructor":"x"}"#, "[1]"] {
            assert_eq!(input(taken).to_string(), taken);
        }
    }

    #[test]
    fn no_tool_output_comes_before_its_input() {
        let (types, _) = written(&[result("lost"), call("c"), call("c"), result("c")]);
        assert_eq!(types, ["tool-input-start", "tool-input-available", "tool-output-available"]);
        let mut stream = UiStream::of("r1");
        let chunks = stream.event(Some(1), &call("c"));
        assert_eq!(chunks[1]["input"], json!({ "text": "{\"a\":" }), "what was cut stays text");
        assert!(chunks.iter().all(|chunk| chunk["providerExecuted"] == true), "a client would run it again");
    }

    fn host_tool(state: ToolCallState) -> AgentEvent {
        let has_ended = state.has_ended();
        AgentEvent::HostTool {
            id: "dp-1".to_owned(),
            name: "github__comment".to_owned(),
            state,
            arguments: (state == ToolCallState::Waiting).then(|| r#"{"number":1}"#.to_owned()),
            code: (state == ToolCallState::Denied).then(|| "approval_denied".to_owned()),
            result_bytes: (state == ToolCallState::Done).then_some(11),
            duration_ms: has_ended.then_some(5),
        }
    }

    #[test]
    fn a_host_tool_is_one_part_with_its_states() {
        let mut stream = UiStream::of("r1");
        let waiting = stream.event(Some(1), &host_tool(ToolCallState::Waiting));
        let types: Vec<_> = waiting.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["tool-input-start", "tool-input-available", "data-host-tool"]);
        assert_eq!(waiting[1]["input"], json!({ "number": 1 }));
        assert!(waiting[..2].iter().all(|chunk| chunk["toolCallId"] == "host-dp-1"), "{waiting:?}");
        for (state, output) in [
            (ToolCallState::Approved, None),
            (ToolCallState::Executing, None),
            (ToolCallState::Done, Some(json!({ "state": "done", "resultBytes": 11, "durationMs": 5 }))),
            (
                ToolCallState::Denied,
                Some(json!({ "state": "denied", "error": "approval_denied", "durationMs": 5 })),
            ),
        ] {
            let chunks = stream.event(Some(2), &host_tool(state));
            let data = json!({ "toolCallId": "host-dp-1", "callId": "dp-1", "state": state });
            assert_eq!(chunks[0], json!({ "type": "data-host-tool", "id": "host-dp-1", "data": data }));
            assert_eq!(chunks.get(1).map(|chunk| chunk["output"].clone()), output, "{state:?}");
        }
    }

    #[test]
    fn a_host_tool_is_shown_once() {
        let granted = vec![ToolName::parse("github__comment").unwrap()];
        let mut stream = UiStream { host_tools: granted, ..UiStream::of("r1") };
        let named = |name: &str| AgentEvent::Tool { name: name.to_owned() };
        for name in ["github__comment", "mcp__sluicegate__github__comment", "host.github__comment"] {
            assert_eq!(stream.event(Some(1), &named(name)), Vec::<Value>::new(), "{name}");
            let AgentEvent::ToolCall { id, arguments, cut_bytes, .. } = call(name) else { unreachable!() };
            let reported = AgentEvent::ToolCall { id, name: name.to_owned(), arguments, cut_bytes };
            assert_eq!(stream.event(Some(2), &reported), Vec::<Value>::new(), "{name}");
            assert_eq!(stream.event(Some(3), &result(name)), Vec::<Value>::new(), "{name}");
        }
        for (seq, name) in (4..).zip(["xgithub__comment", "github__comments", "Bash"]) {
            assert_eq!(stream.event(Some(seq), &named(name)).len(), 3, "control: {name}");
        }
    }

    #[test]
    fn an_agent_cannot_speak_for_a_host_tool() {
        let mut stream = UiStream::of("r1");
        let chunks = stream.event(Some(1), &call("host-dp-1"));
        assert!(chunks.iter().all(|chunk| chunk["toolCallId"] == "agent-host-dp-1"), "{chunks:?}");
        stream.event(Some(2), &host_tool(ToolCallState::Waiting));
        let chunks = stream.event(Some(3), &result("host-dp-1"));
        assert_eq!(chunks[0]["toolCallId"], "agent-host-dp-1");
    }

    #[test]
    fn an_activity_is_one_part_that_is_replaced() {
        let mut stream = UiStream::of("r1");
        for (label, data) in [
            (None, json!({ "kind": "tool_use" })),
            (Some("exec"), json!({ "kind": "tool_use", "label": "exec" })),
        ] {
            let chunks = stream.event(Some(1), &AgentEvent::activity(ActivityKind::ToolUse, label));
            assert_eq!(chunks, [json!({ "type": "data-activity", "id": "activity", "data": data })]);
        }
    }

    #[test]
    fn each_stream_has_an_end_of_its_kind() {
        let usage =
            AgentEvent::UsageReport { calls: 1, tokens: Tokens { input: 3, output: 4, ..Tokens::default() } };
        let mut stream = UiStream::of("r1");
        stream.event(None, &delta("a"));
        stream.event(Some(1), &usage);
        let ends = stream.event(Some(2), &AgentEvent::Done);
        assert_eq!(ends[0]["type"], "text-end", "an open part is closed");
        assert_eq!(ends[2]["messageMetadata"]["usage"]["totalTokens"], 7);
        let failed = |code| AgentEvent::Error { code, message: "why".to_owned() };
        let cases = [(RunErrorCode::Cancelled, "abort"), (RunErrorCode::Timeout, "error")];
        for (code, end) in cases {
            assert_eq!(written(&[failed(code)]).0.last().unwrap(), end);
        }
        assert_eq!(stream.interrupted().last().unwrap()["type"], "error");
    }
}
