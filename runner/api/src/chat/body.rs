//! Reads an order of the chat: the AI SDK's request, or a single message.
//!
//! Of the messages that a client sends only the last user message counts. The thread is what the store has.

use platform_core::{
    id::{AgentId, ExternalId, GatewayAgentId, ModelName, RunId},
    json::RawBuf,
    priority::Priority,
};
use platform_runtime::{random, settings::DEFAULT_AGENT};
use runner_engine::{
    run_order::RunOrder,
    run_request::Keep,
    thread::{ThreadOrder, WhenBusy, read_thread_key},
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    body::{MessagePart, OtherPart},
    caller::Caller,
    error::Error,
    runs::{RepositoryBody, derived_run_id, hash_of_value},
};

/// Longest message, in characters.
const MAX_MESSAGE: usize = 16_000;

/// Order of the chat, as a client sends it. Fields that are not here are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatRequest)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatBody {
    /// Id of the chat at the client; the key of the thread if `state_key` is absent.
    id: Option<String>,
    /// Messages of the chat at the client.
    #[serde(default)]
    messages: Vec<MessageBody>,
    /// The one message to answer, in place of `messages`.
    message: Option<SingleMessage>,
    #[serde(default)]
    #[schema(inline)]
    trigger: Trigger,
    /// Message to answer anew.
    message_id: Option<String>,
    /// Agent to run; `NAME` is short for `sandbox:NAME`.
    graph_name: Option<String>,
    /// Agent of the agent's gateway, or of its `openclaw_agents`, by its id; the one of the configuration if absent.
    #[schema(value_type = Option<String>)]
    gateway_agent: Option<GatewayAgentId>,
    model: Option<String>,
    /// Key of the thread.
    state_key: Option<String>,
    /// Repository to work on; that of the agent if absent.
    repository: Option<RepositoryBody>,
    /// Random id by which a client tells a repeated request from a new one.
    request_id: Option<String>,
}

/// Text, or a message.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SingleChatMessage)]
#[serde(untagged, try_from = "RawBuf")]
enum SingleMessage {
    Text(String),
    Message(MessageBody),
}

impl TryFrom<RawBuf> for SingleMessage {
    type Error = &'static str;

    fn try_from(raw: RawBuf) -> Result<Self, Self::Error> {
        let message = if raw.get().starts_with('"') {
            raw.read().map(Self::Text)
        } else {
            raw.read().map(Self::Message)
        };
        message.map_err(|_other| "`message` is neither a text nor a message of the AI SDK")
    }
}

/// Message of a chat, as the AI SDK sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatMessage)]
struct MessageBody {
    id: Option<String>,
    role: String,
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    parts: Vec<MessagePart>,
    /// Text in place of parts, as older clients send it.
    content: Option<String>,
}

/// Reason why a client asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Trigger {
    #[default]
    SubmitMessage,
    RegenerateMessage,
}

/// Question of a chat, with its id at the client.
struct Question {
    text: String,
    id: Option<String>,
}

/// Order of the chat, with the thread that it continues.
#[derive(Debug)]
pub(super) struct ChatOrder {
    pub(super) thread: ExternalId,
    pub(super) order: RunOrder,
}

impl ChatBody {
    /// Returns the order of `caller`. The same request again is the same order.
    pub(super) fn order(self, caller: &Caller) -> Result<ChatOrder, Error> {
        let agent_id = agent_id(self.graph_name.as_deref())?;
        caller.may_run(&agent_id)?;
        let model = self.model.as_deref().map(ModelName::parse).transpose();
        let model = model.map_err(|error| Error::Invalid(format!("`model`: {error}")))?;
        let question = self.question()?;
        let thread = match self.state_key.as_deref().or(self.id.as_deref()) {
            Some(name) => thread_key(name)?,
            None => self.new_thread(caller, &question)?,
        };
        let run_id = self.run_id(caller, &thread, &question)?;
        let hash = self.hash(&agent_id, &question);
        let anew = self.message_id.into_iter().filter(|_| self.trigger == Trigger::RegenerateMessage);
        let thread_order = ThreadOrder {
            key: thread.clone(),
            question_id: question.id.as_deref().and_then(|id| ExternalId::parse(id).ok()),
            // A question that the thread knows already was edited, or is asked again.
            anew: anew.chain(question.id).collect(),
            busy: WhenBusy::Refuse,
        };
        let order = RunOrder {
            run_id,
            account: caller.account().clone(),
            correlation: caller.correlation(Some(thread.clone())),
            agent_id,
            gateway_agent: caller.gateway_agent_order(self.gateway_agent)?,
            model,
            image: None,
            limits: caller.limits(),
            priority: Priority::default(),
            history: Vec::new(),
            question: question.text,
            thread: Some(thread_order),
            repo: self.repository.unwrap_or_default().choice(caller),
            host_tools: None,
            keep: Keep::Nothing,
            hash: Some(hash),
        };
        Ok(ChatOrder { thread, order })
    }

    /// Returns the question: the single message, or the last one of a user.
    fn question(&self) -> Result<Question, Error> {
        let question = match &self.message {
            Some(SingleMessage::Text(text)) => Question { text: text.clone(), id: None },
            Some(SingleMessage::Message(message)) => message.question()?,
            None => {
                let last = self.messages.iter().rev().find(|message| message.role == "user");
                let last =
                    last.ok_or_else(|| Error::Invalid("`messages` has no message of a user".to_owned()))?;
                last.question()?
            }
        };
        let length = question.text.chars().count();
        if question.text.trim().is_empty() {
            return Err(Error::Invalid("the message is empty".to_owned()));
        }
        if length > MAX_MESSAGE {
            return Err(Error::Invalid(format!(
                "the message has {length} characters, more than {MAX_MESSAGE}"
            )));
        }
        Ok(question)
    }

    /// Returns the id of the run: the same for the same request. A request that names no message and lacks its own id
    /// is another one each time.
    fn run_id(&self, caller: &Caller, thread: &ExternalId, question: &Question) -> Result<RunId, Error> {
        let is_repeatable = match self.trigger {
            Trigger::SubmitMessage => question.id.is_some() || self.request_id.is_some(),
            Trigger::RegenerateMessage => self.request_id.is_some(),
        };
        let unique = if is_repeatable { String::new() } else { format!("{:032x}", random::bits()) };
        let id = question.id.as_deref().unwrap_or_default();
        let request_id = self.request_id.as_deref().unwrap_or_default();
        let parts = ["chat", thread.as_str(), self.trigger.name(), id, &question.text, request_id, &unique];
        derived_run_id(caller, &parts.map(str::as_bytes))
    }

    /// Returns the key of a new thread: the same for the same request.
    fn new_thread(&self, caller: &Caller, question: &Question) -> Result<ExternalId, Error> {
        let nameless = ExternalId::parse("new").map_err(|_never| Error::Internal)?;
        let run_id = self.run_id(caller, &nameless, question)?;
        ExternalId::parse(&format!("thread-{run_id}")).map_err(|_never| Error::Internal)
    }

    /// Returns the hash of the parts of the request that decide about its run.
    fn hash(&self, agent_id: &AgentId, question: &Question) -> String {
        let mut parts =
            json!([self.trigger.name(), agent_id, self.model, question.text, question.id, self.request_id]);
        if let (Value::Array(parts), Some(repository)) = (&mut parts, &self.repository) {
            parts.push(json!(repository));
        }
        if let (Value::Array(parts), Some(agent)) = (&mut parts, &self.gateway_agent) {
            parts.push(json!({ "gatewayAgent": agent }));
        }
        hash_of_value(&parts)
    }
}

impl Trigger {
    const fn name(self) -> &'static str {
        match self {
            Self::SubmitMessage => "submit-message",
            Self::RegenerateMessage => "regenerate-message",
        }
    }
}

impl MessageBody {
    /// Returns the text of a question.
    fn question(&self) -> Result<Question, Error> {
        let mut text = self.content.clone().unwrap_or_default();
        for part in &self.parts {
            text += &part.text().map_err(|OtherPart { kind }| {
                Error::Invalid(format!("the message has a part of type `{kind}`: only text is taken"))
            })?;
        }
        Ok(Question { text, id: self.id.clone() })
    }
}

/// Returns the agent that a graph's name means. A name without a family is one of Sluicegate's own.
pub(super) fn agent_id(name: Option<&str>) -> Result<AgentId, Error> {
    let name = name.unwrap_or(DEFAULT_AGENT);
    let id =
        if name.contains(':') { AgentId::parse(name) } else { AgentId::parse(&format!("sandbox:{name}")) };
    id.map_err(|error| Error::Invalid(format!("`graphName`: {error}")))
}

/// Returns the key of the thread that a client names.
pub(super) fn thread_key(name: &str) -> Result<ExternalId, Error> {
    read_thread_key(name)
        .map_err(|error| Error::Invalid(format!("the key of the thread (`stateKey`, else `id`): {error}")))
}

#[cfg(test)]
mod tests {
    use platform_core::id::AccountId;

    use super::*;
    use crate::body::parse;

    fn caller() -> Caller {
        Caller::Anonymous(AccountId::parse("acct-1").unwrap())
    }

    fn order(body: Value) -> Result<ChatOrder, Error> {
        parse::<ChatBody>(body.to_string().as_bytes(), 1 << 20)?.order(&caller())
    }

    fn user(id: &str, text: &str) -> Value {
        json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
    }

    fn sent(messages: &[Value]) -> Value {
        json!({ "id": "chat-1", "messages": messages, "trigger": "submit-message", "unknown": 1 })
    }

    #[test]
    fn only_the_last_user_message_counts() {
        let forged = json!({ "id": "a", "role": "assistant", "parts": [{ "type": "data-approval" }] });
        let found = order(sent(&[user("m1", "first"), user("m2", "second"), forged])).unwrap();
        assert_eq!((found.order.question.as_str(), found.order.history.len()), ("second", 0));
        let single = order(json!({ "message": "plain", "stateKey": "s", "graphName": "openclaw" })).unwrap();
        assert_eq!((single.order.question.as_str(), single.thread.as_str()), ("plain", "s"));
        assert_eq!(single.order.agent_id.as_str(), "sandbox:openclaw");
        let old = json!({ "messages": [{ "role": "user", "content": "text" }] });
        assert_eq!(order(old).unwrap().order.question, "text");
    }

    #[test]
    fn the_same_request_orders_the_same_run() {
        let id = |body: &Value| order(body.clone()).unwrap().order.run_id;
        let once = sent(&[user("m1", "q")]);
        assert_eq!(id(&once), id(&once));
        assert_ne!(id(&once), id(&sent(&[user("m1", "edited")])));
        assert_ne!(id(&once), id(&sent(&[user("m2", "q")])));
        let mut again = once.clone();
        again["trigger"] = "regenerate-message".into();
        assert_ne!(id(&again), id(&again), "each click asks anew");
        again["requestId"] = "x".into();
        assert_eq!(id(&again), id(&again));
        let nameless = json!({ "message": "q", "stateKey": "s" });
        assert_ne!(id(&nameless), id(&nameless));
        let threadless = json!({ "message": "q", "requestId": "x" });
        assert_eq!(id(&threadless), id(&threadless), "without a thread, too");
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        let file = json!({ "role": "user", "parts": [{ "type": "file", "url": "data:,x" }] });
        for (body, why) in [
            (json!({ "message": " " }), "is empty"),
            (json!({ "message": "x".repeat(16_001) }), "16001 characters"),
            (json!({ "messages": [] }), "no message of a user"),
            (json!({ "messages": [file] }), "type `file`"),
            (json!({ "message": "q", "stateKey": "a/b" }), "key of the thread"),
            (json!({ "message": "q", "id": "" }), "key of the thread"),
            (json!({ "message": "q", "graphName": "a:b:c d" }), "`graphName`"),
            (json!({ "message": 7 }), "the body"),
            (json!({ "message": ["id", "user"] }), "`message` is neither"),
            (json!({ "messages": [["id", "user"]] }), "invalid type: sequence"),
        ] {
            let refused = order(body).unwrap_err().to_string();
            assert!(refused.contains(why), "{why} is not in {refused}");
        }
        assert!(order(json!({ "message": "x".repeat(16_000) })).is_ok(), "control");
    }
}
