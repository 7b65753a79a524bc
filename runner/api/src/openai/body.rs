//! Reads a chat completion's request, in which the model is an agent.

use axum::http::HeaderMap;
use platform_core::{id::AgentId, json::RawBuf, priority::Priority};
use runner_engine::{run_order::RunOrder, run_request::Keep};
use runner_model::conversation::{Message, Role};
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::UsageChunk;
use crate::{
    body::{MessagePart, OtherPart},
    caller::Caller,
    error::Error,
    operation::schemas,
    runs::{RepositoryBody, new_run_id},
};

/// Request of a chat completion. Fields that are not here are ignored, because clients send many that no agent takes.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatCompletionRequest)]
pub(super) struct CompletionBody {
    /// Id of the agent.
    #[schema(value_type = schemas::AgentId)]
    model: String,
    messages: Vec<MessageBody>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// Chunks, as server-sent events.
    Streamed,
}

/// Wishes for a stream.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = ChatCompletionStreamOptions)]
#[serde(default)]
struct StreamOptions {
    /// Asks for the tokens in the last chunk.
    include_usage: bool,
}

/// Message of a conversation. Those of tools are left out.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatCompletionMessage)]
struct MessageBody {
    /// `system`, `developer`, `user`, `assistant`, `tool` or `function`.
    #[schema(pattern = "^(system|developer|user|assistant|tool|function)$")]
    role: String,
    content: Option<MessageContent>,
}

/// Text, or parts of the type `text`.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatCompletionContent)]
#[serde(untagged, try_from = "RawBuf")]
enum MessageContent {
    Text(String),
    Parts(#[schema(inline)] Vec<MessagePart>),
}

impl TryFrom<RawBuf> for MessageContent {
    type Error = &'static str;

    fn try_from(raw: RawBuf) -> Result<Self, Self::Error> {
        let content =
            if raw.get().starts_with('"') { raw.read().map(Self::Text) } else { raw.read().map(Self::Parts) };
        content.map_err(|_other| "`content` is neither a text nor a list of parts")
    }
}

impl CompletionBody {
    pub(super) const fn form(&self) -> Form {
        if matches!(self.stream, Some(true)) { Form::Streamed } else { Form::Whole }
    }

    /// Returns whether the client wants the usage at the end of its stream.
    pub(super) const fn usage(&self) -> UsageChunk {
        if matches!(self.stream_options, Some(StreamOptions { include_usage: true })) {
            UsageChunk::Sent
        } else {
            UsageChunk::LeftOut
        }
    }

    /// Returns the name of the agent, as the client wrote it.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Returns the order of `caller`. A request with the same `Idempotency-Key` is the same order.
    pub(super) fn order(self, hash: String, headers: &HeaderMap, caller: &Caller) -> Result<RunOrder, Error> {
        let agent_id =
            AgentId::parse(&self.model).map_err(|error| Error::Invalid(format!("`model`: {error}")))?;
        caller.may_run(&agent_id)?;
        let mut messages = self.messages.iter().filter_map(|message| message.read().transpose());
        let mut history = messages.by_ref().collect::<Result<Vec<_>, Error>>()?;
        let question =
            history.pop().filter(|last| last.role == Role::User && !last.content.trim().is_empty());
        let problem =
            || Error::Invalid("`messages` must end with a message of the user that has text".to_owned());
        Ok(RunOrder {
            run_id: new_run_id(headers, caller)?,
            account: caller.account().clone(),
            correlation: caller.correlation(None),
            agent_id,
            model: None,
            gateway_agent: caller.gateway_agent_order(None)?,
            image: None,
            limits: caller.limits(),
            priority: Priority::default(),
            history,
            question: question.ok_or_else(problem)?.content,
            thread: None,
            repo: RepositoryBody::default().choice(caller),
            host_tools: None,
            keep: Keep::Nothing,
            hash: Some(hash),
        })
    }
}

impl MessageBody {
    /// Returns the message; `None` for one without text, and for calls and results of tools, which belong to other agents.
    fn read(&self) -> Result<Option<Message>, Error> {
        let role = match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" | "function" => return Ok(None),
            other => return Err(Error::Invalid(format!("`messages`: no role `{}`", other.escape_debug()))),
        };
        let content = match &self.content {
            None => String::new(),
            Some(MessageContent::Text(text)) => text.clone(),
            Some(MessageContent::Parts(parts)) => parts.iter().map(text).collect::<Result<String, _>>()?,
        };
        Ok((role == Role::User || !content.is_empty()).then_some(Message { role, content }))
    }
}

fn text(part: &MessagePart) -> Result<String, Error> {
    part.text().map_err(|OtherPart { kind }| {
        Error::Invalid(format!("`messages`: a part of type `{}`; only text is taken", kind.escape_debug()))
    })
}

#[cfg(test)]
mod tests {
    use platform_core::id::AccountId;
    use serde_json::{Value, json};

    use super::*;
    use crate::body::parse;

    fn order(body: &Value) -> Result<RunOrder, Error> {
        let caller = Caller::Anonymous(AccountId::parse("acct-1").unwrap());
        let body: CompletionBody = parse(body.to_string().as_bytes(), 1 << 20)?;
        body.order(String::new(), &HeaderMap::new(), &caller)
    }

    #[test]
    fn a_conversation_is_read() {
        let body = json!({
            "model": "sandbox:agent", "temperature": 0.2, "tools": [], "user": "u", "messages": [
                { "role": "developer", "content": "Be short." },
                { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
                { "role": "assistant", "content": null, "tool_calls": [] },
                { "role": "tool", "content": "result", "tool_call_id": "c" },
                { "role": "assistant", "content": "c" },
                { "role": "user", "content": "d" },
            ],
        });
        let order = order(&body).unwrap();
        let history: Vec<_> =
            order.history.iter().map(|message| (message.role.name(), message.content.as_str())).collect();
        assert_eq!(history, [("system", "Be short."), ("user", "ab"), ("assistant", "c")]);
        assert_eq!(order.question, "d");
    }

    #[test]
    fn what_no_agent_can_answer_is_refused() {
        let with = |messages: Value| json!({ "model": "sandbox:agent", "messages": messages });
        let image = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": {} }] }]);
        for (body, why) in [
            (with(json!([])), "must end with a message"),
            (with(json!([{ "role": "assistant", "content": "a" }])), "must end with a message"),
            (with(json!([{ "role": "user", "content": " " }])), "must end with a message"),
            (with(json!([{ "role": "robot", "content": "a" }])), "no role `robot`"),
            (with(image), "type `image_url`"),
            (json!({ "model": "gpt 4", "messages": [] }), "`model`"),
            (json!({ "messages": [] }), "missing field `model`"),
            (with(json!([["user", "a"]])), "invalid type: sequence"),
        ] {
            let refused = order(&body).unwrap_err().to_string();
            assert!(refused.contains(why), "{why} is not in {refused}");
        }
    }
}
