//! Reads the JSON of answers and of stream events, of all model APIs alike.
//!
//! One set of names covers OpenAI's chat, completions, responses and embeddings and Anthropic's messages: they do not
//! collide. Each field is read for itself, so that one of an unexpected type costs nothing but itself. Shapes:
//! platform.openai.com/docs/api-reference and docs.anthropic.com/en/api/messages-streaming.

use platform_core::{money::NanoDollars, route::Route, untrusted::JournalText};

use super::{
    Count, Heard, Reading, Stage,
    counts::Counts,
    json::Json,
    telling::{said, tells_more_than_text},
};

pub(super) type Tap<'t> = Option<&'t mut dyn FnMut(Heard<'_>)>;

/// Members of an answer's parts that are no text of the model.
const NOT_SAID: [&[u8]; 12] = [
    b"type",
    b"role",
    b"id",
    b"call_id",
    b"status",
    b"finish_reason",
    b"object",
    b"model",
    b"phase",
    b"token",
    b"signature",
    b"encrypted_content",
];

/// What may stand on the outermost level of an answer or event.
#[derive(Debug, Default)]
struct Fields<'a> {
    kind: &'a [u8],
    model: Json<'a>,
    usage: Json<'a>,
    error: Json<'a>,
    /// OpenAI chat and completions.
    choices: Json<'a>,
    /// OpenAI responses: the object in `response.completed`.
    response: Json<'a>,
    /// OpenAI responses: the answer's parts.
    output: Json<'a>,
    /// OpenAI responses: how it stands, and what is missing.
    status: Json<'a>,
    incomplete_details: Json<'a>,
    /// OpenAI responses: a part that begins.
    item: Json<'a>,
    /// Anthropic: the object in `message_start`.
    message: Json<'a>,
    /// Anthropic: the answer's parts.
    content: Json<'a>,
    stop_reason: Json<'a>,
    /// Anthropic: a part that begins.
    content_block: Json<'a>,
    /// Anthropic: an object. OpenAI responses: a string.
    delta: Json<'a>,
}

impl<'a> Fields<'a> {
    fn of(json: Json<'a>) -> Self {
        let mut fields = Self::default();
        for (name, value) in json.members() {
            let place = match name {
                b"type" => {
                    fields.kind = value.quoted().unwrap_or_default();
                    continue;
                }
                b"model" => &mut fields.model,
                b"usage" => &mut fields.usage,
                b"error" => &mut fields.error,
                b"choices" => &mut fields.choices,
                b"response" => &mut fields.response,
                b"output" => &mut fields.output,
                b"status" => &mut fields.status,
                b"incomplete_details" => &mut fields.incomplete_details,
                b"item" => &mut fields.item,
                b"message" => &mut fields.message,
                b"content" => &mut fields.content,
                b"stop_reason" => &mut fields.stop_reason,
                b"content_block" => &mut fields.content_block,
                b"delta" => &mut fields.delta,
                _ => continue,
            };
            *place = value;
        }
        fields
    }
}

impl Fields<'_> {
    /// Whether it tells of an error.
    fn fails(&self) -> bool {
        self.error.is_there() || self.kind == b"error" || self.response.member("error").is_there()
    }
}

/// Whether the event `data` tells of an error, however odd the rest of it is.
pub(super) fn is_error(data: &[u8]) -> bool {
    Fields::of(Json::of(data)).fails()
}

/// Reads the `data` of one event of `route`'s stream.
pub(super) fn read_event(route: Route, data: &[u8], reading: &mut Reading, tap: &mut Tap<'_>) {
    let data = data.trim_ascii();
    if data == b"[DONE]" {
        reading.stage = Stage::Ended;
        return;
    }
    let said = said(route, data);
    reading.said += said.bytes;
    if reading.model.is_some() && tap.is_none() && !tells_more_than_text(route, data, said) {
        return;
    }
    let event = Fields::of(Json::of(data));
    reading.failed |= event.fails();
    if event.response.is_there() {
        read_response(&Fields::of(event.response), reading);
    }
    if ends(route, event.kind) {
        reading.stage = Stage::Ended;
    }
    // A tool is named where its part begins; `response.completed` names them all again.
    if event.kind != b"response.output_item.done" {
        note_part(event.item, reading, tap);
    }
    note_part(event.content_block, reading, tap);
    note_finish(event.delta.member("stop_reason"), reading);
    note_delta(&event, tap);
    note_answer(&event, reading, tap);
}

/// Whether an event of type `kind` is the last of its stream.
fn ends(route: Route, kind: &[u8]) -> bool {
    match route {
        Route::Responses => matches!(kind, b"response.completed" | b"response.incomplete"),
        Route::Messages => kind == b"message_stop",
        _ => false,
    }
}

/// What is known of an event that is too long to be looked into, by its beginning.
pub(super) fn read_beginning(route: Route, data: &[u8], reading: &mut Reading) {
    const ENOUGH: usize = 256;
    let kinds: [&[u8]; 2] = [b"\"response.completed\"", b"\"response.incomplete\""];
    let beginning = data.get(..ENOUGH).unwrap_or(data);
    let is_last = kinds.iter().any(|kind| memchr::memmem::find(beginning, kind).is_some());
    if route == Route::Responses && is_last {
        reading.stage = Stage::Ended;
    }
}

/// Whether the event `data` of a chat or completion stream tells nothing but usage: a count, no error, and choices, if any,
/// that say nothing. OpenAI sends none, LiteLLM one whose `delta` is empty.
pub(super) fn is_usage_only(data: &[u8]) -> bool {
    let event = Fields::of(Json::of(data));
    let says_nothing = |choice: Json<'_>| {
        choice.members().all(|(name, value)| match name {
            b"index" => true,
            b"delta" => value.is_empty_object(),
            b"text" => value.quoted() == Some(b""),
            _ => false,
        })
    };
    let is_count = |(name, value): (&[u8], Json<'_>)| Counts::default().note(name, value);
    event.usage.members().any(is_count)
        && !event.error.is_there()
        && event.choices.raw().first() == Some(&b'[')
        && event.choices.elements().all(says_nothing)
}

/// Reads a whole JSON answer, or as much of it as there is.
pub(super) fn read_document(document: &[u8], reading: &mut Reading, tap: &mut Tap<'_>) {
    let answer = Fields::of(Json::of(document));
    reading.failed |= answer.error.is_there();
    for part in answer.output.elements().chain(answer.content.elements()) {
        note_part(part, reading, tap);
    }
    note_finish(answer.stop_reason, reading);
    note_status(&answer, reading);
    note_answer(&answer, reading, tap);
    // Only an estimate needs it.
    if reading.counts.is_none() {
        reading.said += text_of(document, &answer);
    }
}

/// Bytes of text in a whole answer, or in as much of it as there is.
fn text_of(document: &[u8], answer: &Fields<'_>) -> u64 {
    let document = Json::of(document);
    if !document.raw().ends_with(b"}") {
        return document.text_bytes(&NOT_SAID);
    }
    [answer.choices, answer.output, answer.content].map(|spoken| spoken.text_bytes(&NOT_SAID)).iter().sum()
}

/// The `response` within an event of OpenAI's responses.
fn read_response(response: &Fields<'_>, reading: &mut Reading) {
    note_model(response.model, reading);
    note_usage(response.usage, Count::Final, reading);
    reading.failed |= response.error.is_there();
    note_status(response, reading);
}

fn note_answer(answer: &Fields<'_>, reading: &mut Reading, tap: &mut Tap<'_>) {
    note_model(answer.model, reading);
    note_usage(answer.usage, Count::Final, reading);
    if answer.message.is_there() {
        note_model(answer.message.member("model"), reading);
        note_usage(answer.message.member("usage"), Count::Preliminary, reading);
    }
    for choice in answer.choices.elements() {
        note_choice(choice, reading, tap);
    }
}

fn note_choice(choice: Json<'_>, reading: &mut Reading, tap: &mut Tap<'_>) {
    for (name, value) in choice.members() {
        match name {
            b"finish_reason" => {
                reading.stage = reading.stage.max(Stage::Finished);
                note_finish(value, reading);
            }
            b"text" => tell_text(value, tap),
            b"delta" | b"message" => note_message(value, reading, tap),
            _ => {}
        }
    }
}

fn note_message(message: Json<'_>, reading: &mut Reading, tap: &mut Tap<'_>) {
    for (name, value) in message.members() {
        match name {
            b"content" => {
                tell_text(value, tap);
                value.elements().for_each(|part| tell_text(part.member("text"), tap));
            }
            b"function_call" => note_tool(value.member("name"), reading, tap),
            b"tool_calls" => {
                for call in value.elements() {
                    note_tool(call.member("function").member("name"), reading, tap);
                    note_tool(call.member("custom").member("name"), reading, tap);
                }
            }
            _ => {}
        }
    }
}

fn note_model(model: Json<'_>, reading: &mut Reading) {
    if reading.model.is_none() {
        reading.model = model.text().map(|model| JournalText::of(&model));
    }
}

fn note_usage(usage: Json<'_>, count: Count, reading: &mut Reading) {
    let mut counts = reading.counts.unwrap_or_default();
    let mut any = false;
    for (name, value) in usage.members() {
        if name == b"cost" {
            reading.cost = value.number().and_then(NanoDollars::parse_dollars).or(reading.cost);
        } else {
            any |= counts.note(name, value);
        }
    }
    if any {
        reading.counts = Some(counts);
        reading.count = reading.count.max(count);
    }
}

/// Why the first answer to end did.
fn note_finish(reason: Json<'_>, reading: &mut Reading) {
    if reading.finish.is_none() {
        reading.finish = reason.text().filter(|reason| !reason.is_empty()).map(|it| JournalText::of(&it));
    }
}

/// OpenAI's responses have a status, and say of an incomplete one why it is.
fn note_status(response: &Fields<'_>, reading: &mut Reading) {
    match response.status.quoted() {
        None | Some(b"in_progress" | b"queued") => {}
        Some(b"incomplete") => {
            note_finish(response.incomplete_details.member("reason"), reading);
            note_finish(response.status, reading);
        }
        Some(_) => note_finish(response.status, reading),
    }
}

fn note_part(part: Json<'_>, reading: &mut Reading, tap: &mut Tap<'_>) {
    match part.member("type").quoted() {
        Some(b"tool_use" | b"server_tool_use" | b"function_call" | b"custom_tool_call") => {
            note_tool(part.member("name"), reading, tap);
        }
        Some(b"text") => tell_text(part.member("text"), tap),
        // The whole message of OpenAI's responses, outside of streams; within, it has no content yet.
        Some(b"message") => {
            part.member("content").elements().for_each(|piece| tell_text(piece.member("text"), tap));
        }
        _ => {}
    }
}

fn note_tool(name: Json<'_>, reading: &mut Reading, tap: &mut Tap<'_>) {
    let Some(name) = name.text().filter(|name| !name.is_empty()) else { return };
    reading.tool(&name);
    if let Some(tell) = tap {
        tell(Heard::Tool(&name));
    }
}

fn note_delta(event: &Fields<'_>, tap: &mut Tap<'_>) {
    if event.kind == b"response.output_text.delta" {
        tell_text(event.delta, tap);
    }
    tell_text(event.delta.member("text"), tap);
}

fn tell_text(text: Json<'_>, tap: &mut Tap<'_>) {
    let Some(tell) = tap else { return };
    if let Some(text) = text.text().filter(|text| !text.is_empty()) {
        tell(Heard::Text(&text));
    }
}
