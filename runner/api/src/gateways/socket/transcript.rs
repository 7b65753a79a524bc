//! Writes the stored events of a run as the events `chat` and `agent` of the protocol.
//!
//! The number of an event is that of the stored event, so it is the same for each client and after each reconnection. Text
//! is sent whole with each delta, as gateways do: a client that missed some has lost nothing. Deltas that come shortly after
//! one another are one.

use std::collections::BTreeMap;

use platform_core::{
    event::{AgentEvent, Phase, RunErrorCode},
    host_tools::ToolCallState,
    id::RunId,
    json::{self, Bounds},
};
use serde_json::{Value, json};

use super::{channel::ClientEvent, session_key::ClientSession};

/// Answer of a run, as a client is told of it.
#[derive(Debug)]
pub(super) struct RunTranscript {
    pub(super) run_id: RunId,
    pub(super) session: ClientSession,
    tools: ToolNews,
    text: String,
    /// Bytes of the text that the client has.
    told: usize,
    /// True if the next text begins another message: a tool was called.
    is_closed: bool,
    has_begun: bool,
    /// Names of the tools that were called, by the ids of their calls.
    called: BTreeMap<String, String>,
    answer: Option<String>,
    /// Number of the last event with text, and its time.
    seq: u64,
    at: i64,
}

/// Choice of a client about news of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolNews {
    Told,
    Silent,
}

/// Event of a run that clients are told of.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberedEvent<'e> {
    pub(super) seq: u64,
    /// Time in milliseconds.
    pub(super) at: i64,
    pub(super) event: &'e AgentEvent,
}

/// Consequence of an event.
#[derive(Debug, PartialEq)]
pub(super) enum RunNews {
    Event(ClientEvent),
    /// A call of a tool waits for a decision, or was decided.
    Approval {
        call: String,
        state: ToolCallState,
    },
    /// The run has ended.
    Ended,
}

impl RunTranscript {
    pub(super) fn new(run_id: RunId, session: ClientSession, tools: ToolNews) -> Self {
        Self {
            run_id,
            session,
            tools,
            text: String::new(),
            told: 0,
            is_closed: false,
            has_begun: false,
            called: BTreeMap::new(),
            answer: None,
            seq: 0,
            at: 0,
        }
    }

    /// Takes an event, and returns what the client is told at once. Text waits for [`Self::flush`].
    pub(super) fn take(&mut self, numbered: NumberedEvent<'_>) -> Vec<RunNews> {
        (self.seq, self.at) = (numbered.seq, numbered.at);
        match numbered.event {
            AgentEvent::Status { phase: Phase::Queued } => {
                self.begin_attempt();
                Vec::new()
            }
            AgentEvent::Status { phase: Phase::Running } => self.begin(),
            AgentEvent::TextDelta { delta } => {
                let news = self.begin();
                self.add(delta);
                news
            }
            AgentEvent::Tool { .. } => {
                let news = self.flush();
                self.is_closed = true;
                news
            }
            AgentEvent::ToolCall { id, name, arguments, .. } => {
                let mut news = self.flush();
                self.is_closed = true;
                // Arguments that were cut are not JSON any more.
                let arguments: Value = json::from_str(arguments, Bounds::STORED).unwrap_or_default();
                self.called.insert(id.clone(), name.clone());
                news.extend(
                    self.tool(json!({ "phase": "start", "name": name, "toolCallId": id, "args": arguments })),
                );
                news
            }
            AgentEvent::ToolResult { id, result, is_error, .. } => {
                let content = json!([{ "type": "text", "text": result }]);
                let name = self.called.remove(id).unwrap_or_default();
                let data = json!({ "phase": "result", "name": name, "toolCallId": id, "isError": is_error, "result": { "content": content } });
                self.tool(data).into_iter().collect()
            }
            AgentEvent::HostTool { id, state, .. } => {
                vec![RunNews::Approval { call: id.clone(), state: *state }]
            }
            AgentEvent::AssistantFinal { content, .. } => {
                self.answer = Some(content.clone());
                Vec::new()
            }
            AgentEvent::Done => self.end(),
            AgentEvent::Error { code, message } => self.fail(*code, message),
            _ => Vec::new(),
        }
    }

    /// Returns whether the client lacks text.
    pub(super) fn has_untold(&self) -> bool {
        self.told < self.text.len()
    }

    /// Returns the text that the client lacks.
    pub(super) fn flush(&mut self) -> Vec<RunNews> {
        if !self.has_untold() {
            return Vec::new();
        }
        let delta = self.text[self.told..].to_owned();
        self.told = self.text.len();
        let agent = self.agent_event("assistant", json!({ "text": self.text, "delta": delta }));
        let message = self.message(&self.text);
        let chat = self.chat(json!({ "state": "delta", "deltaText": delta, "message": message }));
        vec![agent, chat]
    }

    /// Forgets the answer of the attempt before.
    fn begin_attempt(&mut self) {
        self.text.clear();
        self.called.clear();
        self.answer = None;
        (self.told, self.is_closed, self.has_begun) = (0, false, false);
    }

    fn begin(&mut self) -> Vec<RunNews> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Vec::new();
        }
        vec![self.agent_event("lifecycle", json!({ "phase": "start", "startedAt": self.at }))]
    }

    fn add(&mut self, delta: &str) {
        if std::mem::take(&mut self.is_closed) {
            self.text.clear();
            self.told = 0;
        }
        self.text.push_str(delta);
    }

    fn tool(&self, data: Value) -> Option<RunNews> {
        (self.tools == ToolNews::Told).then(|| self.agent_event("tool", data))
    }

    fn end(&mut self) -> Vec<RunNews> {
        let mut news = self.begin();
        news.extend(self.flush());
        let answer = self.answer.take().unwrap_or_else(|| self.text.clone());
        let message = self.message(&answer);
        news.push(
            self.agent_event("lifecycle", json!({ "phase": "end", "endedAt": self.at, "aborted": false })),
        );
        news.push(self.chat(json!({ "state": "final", "stopReason": "stop", "message": message })));
        news.push(RunNews::Ended);
        news
    }

    fn fail(&mut self, code: RunErrorCode, message: &str) -> Vec<RunNews> {
        let mut news = self.flush();
        if code == RunErrorCode::Cancelled {
            let mut aborted = json!({ "state": "aborted", "stopReason": "rpc" });
            if !self.text.is_empty() {
                aborted["message"] = self.message(&self.text);
            }
            news.push(
                self.agent_event("lifecycle", json!({ "phase": "end", "endedAt": self.at, "aborted": true })),
            );
            news.push(self.chat(aborted));
        } else {
            let data = json!({ "phase": "error", "endedAt": self.at, "error": message });
            news.push(self.agent_event("lifecycle", data));
            news.push(
                self.chat(json!({ "state": "error", "errorMessage": message, "errorCode": code.code() })),
            );
        }
        news.push(RunNews::Ended);
        news
    }

    fn message(&self, text: &str) -> Value {
        json!({ "role": "assistant", "content": [{ "type": "text", "text": text }], "timestamp": self.at })
    }

    fn chat(&self, payload: Value) -> RunNews {
        RunNews::Event(ClientEvent::new("chat", self.addressed(payload)))
    }

    fn agent_event(&self, stream: &str, data: Value) -> RunNews {
        let payload = json!({ "stream": stream, "data": data, "ts": self.at });
        RunNews::Event(ClientEvent::new("agent", self.addressed(payload)))
    }

    fn addressed(&self, mut payload: Value) -> Value {
        payload["runId"] = self.run_id.as_str().into();
        payload["sessionKey"] = self.session.to_string().into();
        payload["agentId"] = self.session.agent.as_str().into();
        payload["seq"] = self.seq.into();
        payload
    }
}

#[cfg(test)]
mod tests {
    use platform_core::id::{ExternalId, GatewayAgentId};

    use super::*;

    fn transcript() -> RunTranscript {
        let run_id = RunId::parse("run-1").unwrap();
        let agent = GatewayAgentId::parse("main").unwrap();
        let session = ClientSession::of(agent, ExternalId::parse("main").ok(), &run_id);
        RunTranscript::new(run_id, session, ToolNews::Told)
    }

    /// Returns the events for clients in one line each.
    fn told(transcript: &mut RunTranscript, events: &[AgentEvent]) -> Vec<String> {
        let mut lines = Vec::new();
        for (event, seq) in events.iter().zip(1..) {
            for news in transcript.take(NumberedEvent { seq, at: 7, event }) {
                lines.push(match news {
                    RunNews::Event(ClientEvent { name, payload }) => {
                        assert_eq!(payload["sessionKey"], "agent:main:main");
                        let what = [&payload["state"], &payload["data"]["phase"], &payload["stream"]];
                        let what = what.into_iter().find_map(Value::as_str).unwrap();
                        let text = payload["message"]["content"][0]["text"].as_str().unwrap_or_default();
                        format!("{} {name} {what} {text}", payload["seq"])
                    }
                    other => format!("{other:?}"),
                });
            }
        }
        lines
    }

    fn delta(text: &str) -> AgentEvent {
        AgentEvent::TextDelta { delta: text.to_owned() }
    }

    #[test]
    fn text_is_whole_and_deltas_are_gathered() {
        let mut run = transcript();
        let begun = told(&mut run, &[delta("Hello "), delta("there")]);
        assert_eq!(begun, ["1 agent start "]);
        let flushed = run.flush();
        let RunNews::Event(ClientEvent { payload, .. }) = &flushed[1] else { panic!("{flushed:?}") };
        assert_eq!((&payload["deltaText"], &payload["seq"]), (&json!("Hello there"), &json!(2)));
        assert!(run.flush().is_empty(), "nothing is told twice");
        let answer = AgentEvent::AssistantFinal { content: "Hello there!".to_owned(), cut_bytes: 0 };
        let ended = told(&mut run, &[answer, AgentEvent::Done]);
        assert_eq!(ended, ["2 agent end ", "2 chat final Hello there!", "Ended"]);
    }

    #[test]
    fn a_tool_begins_another_message() {
        let mut run = transcript();
        let call = AgentEvent::ToolCall {
            id: "c".to_owned(),
            name: "exec".to_owned(),
            arguments: "{}".to_owned(),
            cut_bytes: 0,
        };
        let lines = told(&mut run, &[delta("I look."), call, delta("Done.")]);
        assert_eq!(lines, ["1 agent start ", "2 agent assistant ", "2 chat delta I look.", "2 agent start "]);
        let result = AgentEvent::ToolResult {
            id: "c".to_owned(),
            result: "42".to_owned(),
            is_error: false,
            cut_bytes: 0,
        };
        let ended = run.take(NumberedEvent { seq: 4, at: 7, event: &result });
        let RunNews::Event(ClientEvent { payload, .. }) = &ended[0] else { panic!("{ended:?}") };
        assert_eq!(payload["data"]["name"], "exec", "{payload}");
        let flushed = run.flush();
        let RunNews::Event(ClientEvent { payload, .. }) = &flushed[1] else { panic!("{flushed:?}") };
        assert_eq!(payload["message"]["content"][0]["text"], "Done.");
    }

    #[test]
    fn an_attempt_begins_with_no_text() {
        let mut run = transcript();
        let failed = AgentEvent::Error { code: RunErrorCode::Timeout, message: "why".to_owned() };
        let first = told(&mut run, &[delta("Hel"), failed]);
        assert_eq!(first.last().unwrap(), "Ended");
        let queued = AgentEvent::Status { phase: Phase::Queued };
        let answer = AgentEvent::AssistantFinal { content: "Hello".to_owned(), cut_bytes: 0 };
        let second = told(&mut run, &[queued, delta("Hello"), answer, AgentEvent::Done]);
        let deltas = ["2 agent start ", "4 agent assistant ", "4 chat delta Hello"];
        assert_eq!(second, [&deltas[..], &["4 agent end ", "4 chat final Hello", "Ended"]].concat());
    }

    #[test]
    fn a_cancelled_run_is_aborted() {
        let failed = |code| AgentEvent::Error { code, message: "why".to_owned() };
        let lines = told(&mut transcript(), &[delta("Hel"), failed(RunErrorCode::Cancelled)]);
        assert_eq!(lines.last().unwrap(), "Ended");
        assert!(lines.contains(&"2 chat aborted Hel".to_owned()), "{lines:?}");
        let lines = told(&mut transcript(), &[failed(RunErrorCode::Timeout)]);
        assert_eq!(lines, ["1 agent error ", "1 chat error ", "Ended"]);
    }
}
