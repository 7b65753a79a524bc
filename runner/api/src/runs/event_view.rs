//! Writes an event of a run as JSON, in the form that clients see.

use std::borrow::Cow;

use platform_core::{
    event::{ActivityKind, AgentEvent, OutputStream, Phase, RunErrorCode},
    host_tools::ToolCallState,
    record::Tokens,
};
use runner_store::UnixMillis;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, Object, ObjectBuilder, RefOr, Schema, SchemaFormat, Type},
};

use crate::operation::schemas;
use crate::rfc3339::rfc3339;

/// Event of a run, as clients see it.
#[derive(Debug, Serialize)]
pub(super) struct EventView {
    /// Number of the event in its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// Time at which it was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// True for live text, which has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<bool>,
    #[serde(flatten)]
    kind: EventKind,
}

/// Event of a run, by its type.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EventKind {
    /// The run entered a phase.
    Status {
        #[schema(value_type = schemas::RunPhase)]
        phase: Phase,
    },
    /// The gateway of the run reports what its agent does now.
    Activity {
        #[serde(rename = "kind")]
        #[schema(value_type = schemas::ActivityKind)]
        activity: ActivityKind,
        /// Object of the activity, such as the tool that is used.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        label: Option<String>,
    },
    /// A piece of the answer, as the model produces it.
    TextDelta { delta: String },
    /// Text that a model produces, and that need not be the answer.
    Progress { text: String },
    /// The model called a tool.
    Tool { name: String },
    /// The agent reports that it calls a tool.
    #[serde(rename_all = "camelCase")]
    ToolCall {
        id: String,
        name: String,
        /// Arguments of the call, as JSON text. If bytes were cut, the text is the beginning.
        arguments: String,
        /// Bytes cut from the end of the arguments.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        cut_bytes: Option<u64>,
    },
    /// The agent reports the result of a tool call.
    #[serde(rename_all = "camelCase")]
    ToolResult {
        id: String,
        result: String,
        is_error: bool,
        /// Bytes cut from the end of the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        cut_bytes: Option<u64>,
    },
    /// A call of a host tool entered a state. The control plane says so, and not the agent.
    #[serde(rename_all = "camelCase")]
    HostTool {
        /// Id of the call, as the journal has it.
        id: String,
        name: String,
        #[schema(value_type = schemas::HostToolState)]
        state: ToolCallState,
        /// Arguments as JSON text, without secrets and with long texts shortened; in the first event of a call.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        arguments: Option<String>,
        /// Code of the reason why the call has no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        code: Option<String>,
        /// Length of the result, in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        result_bytes: Option<u64>,
        /// Milliseconds that the tool took, without a wait for an approval.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        duration_ms: Option<u64>,
    },
    /// The agent reports tokens that it counted itself. Only the journal proves usage.
    #[serde(rename_all = "camelCase")]
    AgentUsage { input_tokens: u64, output_tokens: u64, cached_tokens: u64 },
    /// The agent's commits were collected: what became of them by the end of the run. They may still be on their way then;
    /// the run's `commits` says more.
    #[serde(rename_all = "camelCase")]
    Commits {
        /// Stage, as in the run's `commits`.
        stage: String,
        branch: String,
        /// Last commit, if the commits were accepted.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        commit: Option<String>,
        /// Address of the pull request.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        pull_request: Option<String>,
    },
    /// The agent wrote to stdout or stderr.
    Log {
        #[schema(value_type = schemas::ProcessOutput)]
        stream: OutputStream,
        text: String,
    },
    /// A part of an output was left out here.
    LogCut {
        #[schema(value_type = schemas::ProcessOutput)]
        stream: OutputStream,
        bytes: u64,
    },
    /// Live pieces that a slow reader missed, events beyond those that are stored, or one that cannot be read.
    Missed { count: u64 },
    /// Stored events are no longer kept here: the run ended long ago.
    Pruned { count: u64 },
    /// Usage of the run, once it has ended.
    UsageReport {
        /// Calls of the model API.
        calls: u64,
        tokens: TokensView,
    },
    /// The authoritative answer, which replaces all text that was streamed.
    #[serde(rename_all = "camelCase")]
    AssistantFinal {
        content: String,
        /// Bytes cut from its end.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        cut_bytes: Option<u64>,
    },
    /// The run succeeded. No event follows.
    Done,
    /// The run failed. No event follows.
    Error {
        #[schema(value_type = schemas::RunErrorCode)]
        code: RunErrorCode,
        message: String,
    },
}

/// Tokens of a run's calls.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tokens)]
#[serde(rename_all = "camelCase")]
struct TokensView {
    input: u64,
    output: u64,
    cached: u64,
    cache_written: u64,
    cache_written_1h: u64,
    reasoning: u64,
}

impl EventView {
    /// Returns a stored event, which has a number.
    pub(super) fn stored(seq: u64, at: Option<UnixMillis>, event: AgentEvent) -> Self {
        Self { seq: Some(seq), at: at.map(rfc3339), live: None, kind: EventKind::of(event) }
    }

    /// Returns live text.
    pub(super) fn live(event: AgentEvent) -> Self {
        Self { seq: None, at: None, live: Some(true), kind: EventKind::of(event) }
    }

    /// Returns the number of the event, if it has one.
    pub(super) const fn seq(&self) -> Option<u64> {
        self.seq
    }
}

impl EventKind {
    fn of(event: AgentEvent) -> Self {
        let cut = |bytes: u64| (bytes > 0).then_some(bytes);
        match event {
            AgentEvent::Status { phase } => Self::Status { phase },
            AgentEvent::Activity { kind: activity, label } => Self::Activity { activity, label },
            AgentEvent::TextDelta { delta } => Self::TextDelta { delta },
            AgentEvent::Progress { text } => Self::Progress { text },
            AgentEvent::Tool { name } => Self::Tool { name },
            AgentEvent::ToolCall { id, name, arguments, cut_bytes } => {
                Self::ToolCall { id, name, arguments, cut_bytes: cut(cut_bytes) }
            }
            AgentEvent::ToolResult { id, result, is_error, cut_bytes } => {
                Self::ToolResult { id, result, is_error, cut_bytes: cut(cut_bytes) }
            }
            AgentEvent::HostTool { id, name, state, arguments, code, result_bytes, duration_ms } => {
                Self::HostTool { id, name, state, arguments, code, result_bytes, duration_ms }
            }
            AgentEvent::AgentUsage { input_tokens, output_tokens, cached_tokens } => {
                Self::AgentUsage { input_tokens, output_tokens, cached_tokens }
            }
            AgentEvent::Commits { stage, branch, commit, pull_request } => {
                Self::Commits { stage, branch, commit, pull_request }
            }
            AgentEvent::Log { stream, text } => Self::Log { stream, text },
            AgentEvent::LogCut { stream, bytes } => Self::LogCut { stream, bytes },
            AgentEvent::Missed { count } => Self::Missed { count },
            AgentEvent::Pruned { count } => Self::Pruned { count },
            AgentEvent::UsageReport { calls, tokens } => {
                Self::UsageReport { calls, tokens: TokensView::of(tokens) }
            }
            AgentEvent::AssistantFinal { content, cut_bytes } => {
                Self::AssistantFinal { content, cut_bytes: cut(cut_bytes) }
            }
            AgentEvent::Done => Self::Done,
            AgentEvent::Error { code, message } => Self::Error { code, message },
        }
    }
}

impl TokensView {
    const fn of(tokens: Tokens) -> Self {
        let Tokens { input, output, cached, cache_written, cache_written_1h, reasoning } = tokens;
        Self { input, output, cached, cache_written, cache_written_1h, reasoning }
    }
}

impl ToSchema for EventView {
    fn name() -> Cow<'static, str> {
        "Event".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        EventKind::schemas(schemas);
    }
}

impl PartialSchema for EventView {
    /// Returns one object for each type of event, with the fields that all have: generators of clients read that, but
    /// not a choice inside a combination.
    fn schema() -> RefOr<Schema> {
        let mut schema = EventKind::schema();
        if let RefOr::T(Schema::OneOf(choice)) = &mut schema {
            for item in &mut choice.items {
                if let RefOr::T(Schema::Object(object)) = item {
                    *object = with_common_fields(object.clone());
                }
            }
        }
        schema
    }
}

/// Returns the schema of one type of event with the fields that all have, and with a name for generated clients.
fn with_common_fields(event: Object) -> Object {
    let format = |format| Some(SchemaFormat::KnownFormat(format));
    let seq = ObjectBuilder::new().schema_type(Type::Integer).format(format(KnownFormat::Int64));
    let seq = seq.minimum(Some(1)).description(Some("Number of the event in its run; live text has none."));
    let at = ObjectBuilder::new().schema_type(Type::String).format(format(KnownFormat::DateTime));
    let at = at.description(Some("Time at which it was stored."));
    let live = ObjectBuilder::new().schema_type(Type::Boolean);
    let live = live.description(Some("True for live text, which is sent once."));
    let title = title(&json!(event)["properties"]["type"]["enum"][0]);
    let event = ObjectBuilder::from(event).title(Some(title));
    event.property("seq", seq).property("at", at).property("live", live).build()
}

/// Returns the name of a type of event in camel case: `TextDeltaEvent`.
fn title(kind: &Value) -> String {
    let words = kind.as_str().unwrap_or_default().split('_').filter_map(|word| word.split_at_checked(1));
    words.map(|(first, rest)| first.to_ascii_uppercase() + rest).collect::<String>() + "Event"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: AgentEvent) -> Value {
        json!(EventView::stored(7, Some(UnixMillis(1_500)), event))
    }

    #[test]
    fn keys_are_camel_case_and_texts_stay() {
        let tokens = Tokens { cache_written: 2, cache_written_1h: 3, ..Tokens::default() };
        let json = event(AgentEvent::UsageReport { calls: 1, tokens });
        let written = json!({ "input": 0, "output": 0, "cached": 0, "reasoning": 0, "cacheWritten": 2, "cacheWritten1h": 3 });
        let at = "1970-01-01T00:00:01.500Z";
        let expected = json!({ "type": "usage_report", "seq": 7, "at": at, "calls": 1, "tokens": written });
        assert_eq!(json, expected);
        let call = AgentEvent::ToolCall {
            id: "c_1".to_owned(),
            name: "read_file".to_owned(),
            arguments: r#"{"file_path":"a_b"}"#.to_owned(),
            cut_bytes: 3,
        };
        let expected = json!({
            "type": "tool_call", "id": "c_1", "name": "read_file", "arguments": r#"{"file_path":"a_b"}"#,
            "cutBytes": 3, "live": true,
        });
        assert_eq!(json!(EventView::live(call)), expected);
    }

    /// Events as they are written have the fields of their schema, and no others.
    #[test]
    fn events_are_written_as_their_schema_says() {
        let text = || "t".to_owned();
        let stream = OutputStream::Stderr;
        let events = [
            AgentEvent::Status { phase: Phase::Queued },
            AgentEvent::activity(ActivityKind::ToolUse, Some("t")),
            AgentEvent::TextDelta { delta: text() },
            AgentEvent::Progress { text: text() },
            AgentEvent::Tool { name: text() },
            AgentEvent::ToolCall { id: text(), name: text(), arguments: text(), cut_bytes: 1 },
            AgentEvent::ToolResult { id: text(), result: text(), is_error: true, cut_bytes: 1 },
            AgentEvent::HostTool {
                id: text(),
                name: text(),
                state: ToolCallState::Failed,
                arguments: Some(text()),
                code: Some(text()),
                result_bytes: Some(1),
                duration_ms: Some(1),
            },
            AgentEvent::AgentUsage { input_tokens: 1, output_tokens: 2, cached_tokens: 0 },
            AgentEvent::Commits {
                stage: text(),
                branch: text(),
                commit: Some(text()),
                pull_request: Some(text()),
            },
            AgentEvent::Log { stream, text: text() },
            AgentEvent::LogCut { stream, bytes: 7 },
            AgentEvent::Missed { count: 7 },
            AgentEvent::Pruned { count: 7 },
            AgentEvent::UsageReport { calls: 1, tokens: Tokens::default() },
            AgentEvent::AssistantFinal { content: text(), cut_bytes: 1 },
            AgentEvent::Done,
            AgentEvent::Error { code: RunErrorCode::Timeout, message: text() },
        ];
        let schema = json!(EventView::schema());
        let choices = schema["oneOf"].as_array().unwrap();
        assert_eq!(choices.len(), events.len());
        for (choice, shown) in choices.iter().zip(events) {
            let kind = shown.kind();
            let mut fields: Vec<String> = event(shown).as_object().unwrap().keys().cloned().collect();
            fields.push("live".to_owned());
            fields.sort();
            let documented: Vec<_> = choice["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(choice["properties"]["type"]["enum"], json!([kind]), "{choice}");
            assert_eq!(fields, documented, "{kind}");
            assert!(choice["title"].as_str().unwrap().ends_with("Event"), "{choice}");
        }
    }
}
