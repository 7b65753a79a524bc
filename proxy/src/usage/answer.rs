//! Reads the JSON of answers and of stream events, of all model APIs alike.
//!
//! One set of structs covers OpenAI's chat, completions, responses and embeddings and Anthropic's messages:
//! their field names do not collide. Shapes: platform.openai.com/docs/api-reference and
//! docs.anthropic.com/en/api/messages-streaming.

use std::{borrow::Cow, sync::LazyLock};

use memchr::memmem::Finder;
use platform_core::{
    control::TapEvent, money::NanoDollars, record::Tokens, route::Route, untrusted::JournalText,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::{Count, Reading, Stage};

pub(super) type Tap<'t> = Option<&'t mut dyn FnMut(TapEvent)>;

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    usage: Option<Usage<'a>>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    /// OpenAI chat and completions.
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    /// OpenAI responses: the object in `response.completed`.
    #[serde(borrow, default)]
    response: Option<Box<Answer<'a>>>,
    /// OpenAI responses: the answer's parts.
    #[serde(borrow, default)]
    output: Option<Vec<Part<'a>>>,
    /// OpenAI responses: a part that begins.
    #[serde(borrow, default)]
    item: Option<Part<'a>>,
    /// Anthropic: the object in `message_start`.
    #[serde(borrow, default)]
    message: Option<Inner<'a>>,
    /// Anthropic: the answer's parts.
    #[serde(borrow, default)]
    content: Option<Vec<Part<'a>>>,
    /// Anthropic: a part that begins.
    #[serde(borrow, default)]
    content_block: Option<Part<'a>>,
    /// Anthropic: an object. OpenAI responses: a string.
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Inner<'a> {
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    usage: Option<Usage<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Message<'a>>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(default)]
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Delta<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Object {
        #[serde(borrow, default)]
        text: Option<Cow<'a, str>>,
    },
}

#[derive(Deserialize)]
struct Usage<'a> {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, alias = "input_tokens_details")]
    prompt_tokens_details: Option<Details>,
    #[serde(default, alias = "output_tokens_details")]
    completion_tokens_details: Option<Details>,
    #[serde(borrow, default)]
    cost: Option<&'a RawValue>,
}

#[derive(Deserialize, Default, Clone, Copy)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl Usage<'_> {
    fn tokens(&self) -> Tokens {
        let cache_read = self.cache_read_input_tokens.unwrap_or(0);
        // Anthropic counts what came from and went to the cache beside `input_tokens`; OpenAI counts it within.
        let input = self.prompt_tokens.or_else(|| {
            let cache_write = self.cache_creation_input_tokens.unwrap_or(0);
            self.input_tokens.map(|input| input.saturating_add(cache_read).saturating_add(cache_write))
        });
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let completion = self.completion_tokens_details.unwrap_or_default();
        Tokens {
            input: input.unwrap_or(0),
            output: self.completion_tokens.or(self.output_tokens).unwrap_or(0),
            cached: prompt.cached_tokens.unwrap_or(cache_read),
            reasoning: completion.reasoning_tokens.unwrap_or(0),
        }
    }
}

/// Words of which an event that tells more than text has at least one. Searchers are made once: making one takes longer
/// than searching an event.
static TELLING: LazyLock<[Finder<'static>; 8]> = LazyLock::new(|| {
    [
        "\"usage\"",
        "\"error\"",
        "tool",
        "function_call",
        "message_st",
        "response.completed",
        "\"finish_reason\":\"",
        "\"finish_reason\": \"",
    ]
    .map(Finder::new)
});

/// Reads the `data` of one event of `route`'s stream.
pub(super) fn read_event(route: Route, data: &[u8], reading: &mut Reading, tap: &mut Tap<'_>) {
    if data == b"[DONE]" {
        reading.stage = Stage::Ended;
        return;
    }
    let worth_it =
        reading.model.is_none() || tap.is_some() || TELLING.iter().any(|word| word.find(data).is_some());
    if !worth_it {
        return;
    }
    let Ok(event) = serde_json::from_slice::<Answer<'_>>(data) else {
        reading.failed |= is_error(data);
        return;
    };
    let kind = event.kind.as_deref().unwrap_or_default();
    reading.failed |= event.error.is_some() || FAILED.contains(&kind);
    // A tool is named where its part begins; `response.completed` names them all again.
    if let Some(response) = event.response.as_deref() {
        note_identity(response.model.as_deref(), response.usage.as_ref(), reading);
        if response.usage.is_some() {
            reading.count = Count::Final;
        }
    }
    let ended = match route {
        Route::Responses => matches!(kind, "response.completed" | "response.incomplete"),
        Route::Messages => kind == "message_stop",
        _ => false,
    };
    if ended {
        reading.stage = Stage::Ended;
    }
    let begun = if kind == "response.output_item.done" { None } else { event.item.as_ref() };
    for part in begun.into_iter().chain(&event.content_block) {
        note_part(part, reading, tap);
    }
    note_delta(kind, event.delta.as_ref(), tap);
    note_answer(&event, reading, tap);
}

/// Types of events that tell of an error.
const FAILED: [&str; 2] = ["error", "response.failed"];

/// Whether the event `data` tells of an error, however odd the rest of it is.
pub(super) fn is_error(data: &[u8]) -> bool {
    let Ok(event) = serde_json::from_slice::<Value>(data) else { return false };
    event.get("error").is_some_and(|error| !error.is_null())
        || event["type"].as_str().is_some_and(|kind| FAILED.contains(&kind))
}

/// Whether the event `data` of a chat or completion stream tells nothing but usage: no error, and nothing in any choice.
/// OpenAI has no choices there, LiteLLM one with an empty delta.
pub(super) fn is_usage_only(data: &[u8]) -> bool {
    let Ok(event) = serde_json::from_slice::<Value>(data) else { return false };
    let silent = |choice: &Value| {
        let members = choice.as_object();
        members.is_some_and(|members| members.iter().all(|(name, said)| name == "index" || is_nothing(said)))
    };
    event["usage"].is_object()
        && event["error"].is_null()
        && event["choices"].as_array().is_some_and(|choices| choices.iter().all(silent))
}

fn is_nothing(said: &Value) -> bool {
    match said {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.iter().all(is_nothing),
        Value::Object(members) => members.values().all(is_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Reads a whole JSON answer.
pub(super) fn read_document(document: &[u8], reading: &mut Reading, tap: &mut Tap<'_>) {
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(document) else { return };
    reading.failed |= answer.error.is_some();
    for part in answer.output.iter().chain(&answer.content).flatten() {
        note_part(part, reading, tap);
    }
    note_answer(&answer, reading, tap);
}

fn note_answer(answer: &Answer<'_>, reading: &mut Reading, tap: &mut Tap<'_>) {
    note_identity(answer.model.as_deref(), answer.usage.as_ref(), reading);
    if answer.usage.is_some() {
        reading.count = Count::Final;
    }
    if let Some(message) = &answer.message {
        note_identity(message.model.as_deref(), message.usage.as_ref(), reading);
    }
    for choice in answer.choices.iter().flatten() {
        if choice.finish_reason.is_some() {
            reading.stage = reading.stage.max(Stage::Finished);
        }
        let message = choice.delta.as_ref().or(choice.message.as_ref());
        let text = message.and_then(|message| message.content.as_deref()).or(choice.text.as_deref());
        tell_text(text, tap);
        for call in message.and_then(|message| message.tool_calls.as_ref()).into_iter().flatten() {
            note_tool(call.function.as_ref().and_then(|function| function.name.as_deref()), reading, tap);
        }
    }
}

fn note_identity(model: Option<&str>, usage: Option<&Usage<'_>>, reading: &mut Reading) {
    if let Some(model) = model.filter(|_| reading.model.is_none()) {
        reading.model = Some(JournalText::of(model));
    }
    let Some(usage) = usage else { return };
    // Anthropic repeats usage with growing counts, and not every repetition holds every count.
    let (now, before) = (usage.tokens(), reading.tokens.unwrap_or_default());
    reading.tokens = Some(Tokens {
        input: now.input.max(before.input),
        output: now.output.max(before.output),
        cached: now.cached.max(before.cached),
        reasoning: now.reasoning.max(before.reasoning),
    });
    if let Some(cost) = usage.cost.and_then(|cost| NanoDollars::parse_dollars(cost.get())) {
        reading.cost = Some(cost);
    }
}

fn note_part(part: &Part<'_>, reading: &mut Reading, tap: &mut Tap<'_>) {
    match part.kind.as_deref() {
        Some("tool_use" | "function_call" | "custom_tool_call") => {
            note_tool(part.name.as_deref(), reading, tap)
        }
        Some("text") => tell_text(part.text.as_deref(), tap),
        _ => {}
    }
}

fn note_tool(name: Option<&str>, reading: &mut Reading, tap: &mut Tap<'_>) {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return };
    reading.tool(name);
    if let Some(tell) = tap {
        tell(TapEvent::Tool { name: JournalText::of(name).as_str().to_owned() });
    }
}

fn note_delta(kind: &str, delta: Option<&Delta<'_>>, tap: &mut Tap<'_>) {
    match delta {
        Some(Delta::Text(text)) if kind == "response.output_text.delta" => {
            tell_text(Some(text.as_ref()), tap)
        }
        Some(Delta::Object { text }) => tell_text(text.as_deref(), tap),
        _ => {}
    }
}

fn tell_text(text: Option<&str>, tap: &mut Tap<'_>) {
    if let (Some(text), Some(tell)) = (text.filter(|text| !text.is_empty()), tap) {
        tell(TapEvent::Text { delta: text.to_owned() });
    }
}
