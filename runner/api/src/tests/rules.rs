//! Reads a body by the documented rules, written down once more. `None` stands for a refusal.

use platform_core::{
    id::{AgentId, ModelName, ToolName},
    money::NanoDollars,
};
use serde_json::{Map, Value};

use super::{ACCOUNT, OrderRoute};

/// Longest message of a chat, in characters.
const MAX_MESSAGE: usize = 16_000;
const DEFAULT_AGENT: &str = "sandbox:agent";
const ORDER_FIELDS: [&str; 11] = [
    "input",
    "agentId",
    "model",
    "messages",
    "account",
    "priority",
    "stateKey",
    "limits",
    "repository",
    "hostTools",
    "keepWorkspace",
];

/// Meaning of a body.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) question: String,
    pub(super) history: Vec<(&'static str, String)>,
    pub(super) agent: String,
    pub(super) model: Option<String>,
    pub(super) thread: Thread,
    pub(super) total_tokens: Option<u64>,
    pub(super) cost: Option<NanoDollars>,
    pub(super) repository: Repository,
    pub(super) host_tools: Option<Vec<String>>,
}

/// Repository of an order.
#[derive(Default)]
pub(super) struct Repository {
    pub(super) url: Option<String>,
    pub(super) base: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) pull_request: Option<bool>,
}

/// Thread of an order.
#[derive(Default)]
pub(super) enum Thread {
    #[default]
    None,
    New,
    Named(String),
}

/// Reads `body`.
pub(super) fn read(route: OrderRoute, body: &Value) -> Option<Reading> {
    let body = body.as_object()?;
    match route {
        OrderRoute::Chat => chat(body),
        OrderRoute::Completions => completion(body),
        OrderRoute::Runs => run(body),
    }
}

/// Returns the text of a field; `Some(None)` if it is absent or null.
fn text(of: &Map<String, Value>, field: &str) -> Option<Option<String>> {
    match of.get(field) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    }
}

fn model(name: Option<String>) -> Option<Option<String>> {
    checked(name, |name| ModelName::parse(name).is_ok())
}

/// Refuses a text that is there and fails `check`.
fn checked(text: Option<String>, check: impl Fn(&str) -> bool) -> Option<Option<String>> {
    if text.as_deref().is_none_or(check) { Some(text) } else { None }
}

fn elements<'v>(body: &'v Map<String, Value>, field: &str) -> Option<&'v [Value]> {
    body.get(field).map_or(Some(&[]), |list| list.as_array().map(Vec::as_slice))
}

/// Returns the text of parts, all of which are texts.
fn parts(parts: &[Value]) -> Option<String> {
    parts.iter().map(|part| part["text"].as_str().filter(|_| part["type"] == "text")).collect()
}

/// A message of a chat is read whether it counts or not. Its parts only if it does.
struct ChatMessage<'v> {
    role: &'v str,
    id: Option<String>,
    content: Option<String>,
    parts: &'v [Value],
}

impl<'v> ChatMessage<'v> {
    fn read(value: &'v Value) -> Option<Self> {
        let message = value.as_object()?;
        let [id, content] = ["id", "content"].map(|field| text(message, field));
        let parts = elements(message, "parts")?;
        Some(Self { role: message.get("role")?.as_str()?, id: id?, content: content?, parts })
    }

    fn question(self) -> Option<(String, Option<String>)> {
        Some((self.content.unwrap_or_default() + &parts(self.parts)?, self.id))
    }
}

/// Returns the question of a chat, with its id.
fn question(body: &Map<String, Value>) -> Option<(String, Option<String>)> {
    let messages = elements(body, "messages")?.iter().map(ChatMessage::read).collect::<Option<Vec<_>>>()?;
    match body.get("message") {
        None | Some(Value::Null) => messages.into_iter().rfind(|message| message.role == "user")?.question(),
        Some(Value::String(text)) => Some((text.clone(), None)),
        Some(message) => ChatMessage::read(message)?.question(),
    }
}

/// Returns the trigger of a chat.
fn trigger(body: &Map<String, Value>) -> Option<&str> {
    let trigger = body.get("trigger").map_or(Some("submit-message"), Value::as_str)?;
    ["submit-message", "regenerate-message"].contains(&trigger).then_some(trigger)
}

fn chat(body: &Map<String, Value>) -> Option<Reading> {
    trigger(body)?;
    text(body, "messageId")?;
    text(body, "requestId")?;
    let (question, _) = question(body)?;
    if question.trim().is_empty() || question.chars().count() > MAX_MESSAGE {
        return None;
    }
    let agent = text(body, "graphName")?.unwrap_or_else(|| DEFAULT_AGENT.to_owned());
    let agent = if agent.contains(':') { agent } else { format!("sandbox:{agent}") };
    let [id, state_key] = [text(body, "id")?, text(body, "stateKey")?];
    let thread = match state_key.or(id) {
        None => Thread::New,
        Some(key) => is_thread_key(&key).then_some(Thread::Named(key))?,
    };
    let model = model(text(body, "model")?)?;
    let agent = AgentId::accepts(&agent).then_some(agent)?;
    let repository = body.get("repository").filter(|given| !given.is_null());
    let repository = repository.map_or_else(|| Some(Repository::default()), Repository::read)?;
    Some(Reading { question, agent, model, thread, repository, ..Reading::default() })
}

/// Returns whether a chat's body that is sent again is the same run: it names itself, or its message.
pub(super) fn is_repeatable(body: &Value) -> bool {
    let Some(body) = body.as_object() else { return false };
    let names_itself = body.get("requestId").is_some_and(Value::is_string);
    let asks_anew = trigger(body) == Some("regenerate-message");
    let has_id = question(body).is_some_and(|(_, id)| id.is_some());
    names_itself || (has_id && !asks_anew)
}

fn completion(body: &Map<String, Value>) -> Option<Reading> {
    let is_flag = |value: Option<&Value>| value.is_none_or(Value::is_boolean);
    let options = body.get("stream_options").filter(|options| !options.is_null());
    if options.is_some_and(|options| !options.is_object() || !is_flag(options.get("include_usage"))) {
        return None;
    }
    is_flag(body.get("stream").filter(|stream| !stream.is_null())).then_some(())?;
    let agent = body.get("model")?.as_str().filter(|model| AgentId::accepts(model))?.to_owned();
    body.get("messages")?;
    let mut history = Vec::new();
    for message in elements(body, "messages")? {
        let message = message.as_object()?;
        let content = message.get("content").unwrap_or(&Value::Null);
        let role = match message.get("role")?.as_str()? {
            "system" | "developer" => "system",
            "user" => "user",
            "assistant" => "assistant",
            "tool" | "function" => "",
            _ => return None,
        };
        let content = match content {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Array(_) if role.is_empty() => String::new(),
            Value::Array(list) => parts(list)?,
            _ => return None,
        };
        if role == "user" || !(role.is_empty() || content.is_empty()) {
            history.push((role, content));
        }
    }
    let (role, question) = history.pop()?;
    let asks = role == "user" && !question.trim().is_empty();
    asks.then(|| Reading { question, history, agent, ..Reading::default() })
}

fn run(body: &Map<String, Value>) -> Option<Reading> {
    body.keys().all(|field| ORDER_FIELDS.contains(&field.as_str())).then_some(())?;
    let question = body.get("input")?.as_str().filter(|input| !input.trim().is_empty())?.to_owned();
    let agent = text(body, "agentId")?.unwrap_or_else(|| DEFAULT_AGENT.to_owned());
    let agent = AgentId::accepts(&agent).then_some(agent)?;
    let model = model(text(body, "model")?)?;
    checked(text(body, "account")?, |account| account == ACCOUNT)?;
    let state_key = checked(text(body, "stateKey")?, is_thread_key)?;
    let priority = body.get("priority").map_or(Some("normal"), Value::as_str)?;
    ["low", "normal", "high"].contains(&priority).then_some(())?;
    body.get("keepWorkspace").is_none_or(Value::is_boolean).then_some(())?;
    let mut history = Vec::new();
    for message in elements(body, "messages")? {
        let message = message.as_object()?;
        let role = message.get("role")?.as_str()?;
        let role = ["system", "user", "assistant"].into_iter().find(|known| *known == role)?;
        history.push((role, message.get("content")?.as_str()?.to_owned()));
    }
    let (total_tokens, cost) = body.get("limits").map_or(Some((None, None)), limits)?;
    let thread = state_key.map_or(Thread::None, Thread::Named);
    let repository = body.get("repository").map_or_else(|| Some(Repository::default()), Repository::read)?;
    let host_tools = host_tools(body)?;
    Some(Reading { question, history, agent, model, thread, total_tokens, cost, repository, host_tools })
}

fn is_thread_key(key: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    (1..=128).contains(&key.len()) && key.chars().all(is_plain)
}

/// Reads the limits of an order. None of them is zero.
fn limits(limits: &Value) -> Option<(Option<u64>, Option<NanoDollars>)> {
    let limits = limits.as_object()?;
    limits.keys().all(|field| ["totalTokens", "cost"].contains(&field.as_str())).then_some(())?;
    let total_tokens = match limits.get("totalTokens") {
        None | Some(Value::Null) => None,
        Some(tokens) => Some(tokens.as_u64().filter(|tokens| *tokens > 0)?),
    };
    let cost = text(limits, "cost")?.map(|cost| cost.parse::<NanoDollars>()).transpose().ok()?;
    (cost != Some(NanoDollars(0))).then_some((total_tokens, cost))
}

/// Returns the names of an order's host tools; `Some(None)` if they are absent or null.
fn host_tools(body: &Map<String, Value>) -> Option<Option<Vec<String>>> {
    let Some(list) = body.get("hostTools").filter(|list| !list.is_null()) else { return Some(None) };
    let name = |tool: &Value| tool.as_str().filter(|name| ToolName::accepts(name)).map(str::to_owned);
    list.as_array()?.iter().map(name).collect::<Option<Vec<_>>>().map(Some)
}

impl Repository {
    /// Reads the repository of an order.
    fn read(repository: &Value) -> Option<Self> {
        let fields = repository.as_object()?;
        let known = ["url", "base", "branch", "pullRequest"];
        fields.keys().all(|field| known.contains(&field.as_str())).then_some(())?;
        let [url, base, branch] = ["url", "base", "branch"].map(|field| text(fields, field));
        let pull_request = match fields.get("pullRequest") {
            None | Some(Value::Null) => None,
            Some(wanted) => Some(wanted.as_bool()?),
        };
        Some(Self { url: url?, base: base?, branch: branch?, pull_request })
    }
}
