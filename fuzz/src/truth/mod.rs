//! Checks answers with usage known beforehand, and text around it that an agent may have repeated.
//!
//! An input is a letter for the route, four bytes for the figures, a byte for the form, and the repeated text. The
//! letters are `c` chat, `p` completions, `r` responses, `m` messages and `e` embeddings. Two bytes are for the prompt,
//! two for the answer. The repeated text is pieces between 0x1f: each is a word of [`WORDS`] by a byte below 0x20, or
//! its own text.
//!
//! However such an answer is written and cut, the meter reads exactly the figures that it reports.

mod form;

use bytes::Bytes;
use platform_core::{record::Tokens, route::Route};
use proxy::fuzzing;
use serde_json::{Map, Value, json};

use self::form::Form;
use crate::SPOILED;

const CUT: u8 = 0x1f;

/// Names and words by which answers are read, and which an agent can have repeated.
const WORDS: [&str; 16] = [
    "usage",
    "delta",
    "error",
    "type",
    "response",
    "response.completed",
    "response.output_text.delta",
    "message",
    "message_delta",
    "choices",
    "data: [DONE]\n\n",
    "\n\nevent: error\ndata: {}\n\n",
    "input_tokens",
    "completion_tokens",
    "\"usage\":{\"input_tokens\":0,\"output_tokens\":0}",
    "\\\"",
];

/// Usage that an answer reports.
#[derive(Debug, Clone, Copy)]
struct Figures {
    input: u64,
    output: u64,
}

/// Answer to be written.
struct Known {
    route: Route,
    form: Form,
    figures: Figures,
    echo: Value,
    text: String,
}

/// Checks the stream that one input describes.
///
/// # Panics
/// If another usage is read in it.
pub(crate) fn streamed(input: &[u8]) {
    let Some(known) = Known::of(input).filter(|known| known.route != Route::Embeddings) else { return };
    let (line_end, form) = (if known.form.has_cr() { "\r\n" } else { "\n" }, known.form);
    let mut stream = String::from(if form.has_mark() { "\u{feff}" } else { "" });
    for (name, data) in known.events() {
        if let Some(name) = name {
            stream += &format!("event: {name}{line_end}");
        }
        let data = known.written(&data);
        let lines = data.replace('\n', &format!("{line_end}data: "));
        stream += &format!("data: {lines}{line_end}{line_end}");
    }
    known.is_read("text/event-stream; charset=utf-8", stream.as_bytes());
}

/// Checks the document that one input describes.
///
/// # Panics
/// If another usage is read in it.
pub(crate) fn whole(input: &[u8]) {
    let Some(known) = Known::of(input) else { return };
    let mark = if known.form.has_mark() { "\u{feff}" } else { "" };
    let document = format!("{mark}{}", known.written(&known.document()));
    known.is_read("application/json", document.as_bytes());
}

impl Known {
    fn of(input: &[u8]) -> Option<Self> {
        let [letter, a, b, c, d, form, pieces @ ..] = input else { return None };
        let route = match letter {
            b'c' => Route::ChatCompletions,
            b'p' => Route::Completions,
            b'r' => Route::Responses,
            b'm' => Route::Messages,
            b'e' => Route::Embeddings,
            _ => return None,
        };
        let figure = |high: u8, low: u8| u64::from(u16::from_be_bytes([high, low]));
        let output = if route == Route::Embeddings { 0 } else { figure(*c, *d) };
        let words: Vec<String> = pieces.split(|byte| *byte == CUT).map(word).collect();
        let (form, text) = (Form(*form), words.concat());
        let echo = if form.is_large() { large(&words) } else { nested(&words) };
        Some(Self { route, form, figures: Figures { input: figure(*a, *b), output }, echo, text })
    }

    /// Returns the usage as the route writes it.
    fn usage(&self) -> Value {
        let Figures { input, output } = self.figures;
        match self.route {
            Route::Responses => {
                json!({ "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
                "output_tokens": output, "total_tokens": input + output })
            }
            Route::Messages => json!({ "input_tokens": input, "output_tokens": output }),
            Route::Embeddings => json!({ "prompt_tokens": input, "total_tokens": input }),
            _ => {
                json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output })
            }
        }
    }

    /// Returns the events of a stream, as the route's provider sends them.
    fn events(&self) -> Vec<(Option<&'static str>, Value)> {
        let (usage, echo, text) = (self.usage(), &self.echo, &self.text);
        let typed = |name: &'static str, mut rest: Value| {
            rest["type"] = json!(name);
            (Some(name), rest)
        };
        match self.route {
            Route::Responses => {
                let response = |usage: Value| {
                    json!({ "response": { "instructions": text, "tools": [echo], "text": { "format": echo },
                        "metadata": { "usage": text }, "usage": usage, "model": "m" } })
                };
                vec![
                    typed("response.created", response(Value::Null)),
                    typed("response.output_text.delta", json!({ "delta": text })),
                    typed("response.completed", response(usage)),
                ]
            }
            Route::Messages => vec![
                typed(
                    "message_start",
                    json!({ "message": { "model": "m",
                    "usage": { "input_tokens": self.figures.input, "output_tokens": 0 } } }),
                ),
                typed(
                    "content_block_delta",
                    json!({ "index": 0, "delta": { "type": "text_delta", "text": text } }),
                ),
                typed(
                    "content_block_delta",
                    json!({ "index": 1, "delta": { "type": "input_json_delta",
                    "partial_json": echo.to_string() } }),
                ),
                typed(
                    "message_delta",
                    json!({ "delta": { "stop_reason": "end_turn", "stop_sequence": text },
                    "usage": usage }),
                ),
                typed("message_stop", json!({})),
            ],
            _ => vec![
                (None, json!({ "model": "m", "choices": [self.choice(None)] })),
                (None, json!({ "model": "m", "choices": [self.choice(Some("stop"))] })),
                (None, json!({ "model": "m", "choices": [], "usage": usage })),
                (None, json!("[DONE]")),
            ],
        }
    }

    fn choice(&self, finish: Option<&str>) -> Value {
        let text = if finish.is_some() { "" } else { self.text.as_str() };
        let said = match self.route {
            Route::Completions => json!({ "text": text }),
            _ => json!({ "delta": { "content": text } }),
        };
        let mut choice = said;
        (choice["index"], choice["finish_reason"]) = (json!(0), json!(finish));
        choice
    }

    /// Returns a whole answer, as the route's provider sends it.
    fn document(&self) -> Value {
        let (usage, echo, text) = (self.usage(), &self.echo, &self.text);
        match self.route {
            Route::Responses => json!({ "object": "response", "status": "completed", "instructions": text,
                "output": [{ "type": "message", "content": [{ "type": "output_text", "text": text }] }],
                "tools": [echo], "text": { "format": echo }, "metadata": { "usage": text }, "usage": usage }),
            Route::Messages => json!({ "type": "message", "content": [{ "type": "text", "text": text },
                { "type": "tool_use", "name": "f", "input": echo }], "stop_reason": "end_turn", "usage": usage }),
            Route::Embeddings => {
                json!({ "object": "list", "data": [{ "embedding": [0.5, -0.25], "index": 0 }], "usage": usage })
            }
            Route::Completions => {
                json!({ "choices": [{ "text": text, "finish_reason": "stop" }], "usage": usage })
            }
            _ => json!({ "choices": [{ "message": { "content": text, "tool_calls": [{ "function": {
                "name": "f", "arguments": echo.to_string() } }] }, "finish_reason": "stop" }], "usage": usage }),
        }
    }

    /// Returns JSON as the form writes it.
    fn written(&self, data: &Value) -> String {
        if *data == json!("[DONE]") {
            return "[DONE]".to_owned();
        }
        let (text, colon) =
            if self.form.is_spread() { (format!("{data:#}"), ": ") } else { (data.to_string(), ":") };
        if !self.form.has_exponent() {
            return text;
        }
        let Figures { input, output } = self.figures;
        let names = [("input", input), ("prompt", input), ("output", output), ("completion", output)];
        names.into_iter().filter(|(_, figure)| *figure > 0).fold(text, |text, (name, figure)| {
            let plain = format!("\"{name}_tokens\"{colon}{figure}");
            text.replace(&plain, &format!("{plain}0e-1"))
        })
    }

    /// Compares the usage that is read in `answer` with the figures.
    fn is_read(&self, content_type: &str, answer: &[u8]) {
        let content_type =
            if self.form.is_loud() { content_type.to_uppercase() } else { content_type.to_owned() };
        let pieces: Vec<_> =
            answer.chunks(self.form.piece().min(answer.len().max(1))).map(Bytes::copy_from_slice).collect();
        let read = fuzzing::metered(self.route, &content_type, &pieces);
        let Figures { input, output } = self.figures;
        // The control: where this word is repeated, one token more was used than was reported.
        let output = output + u64::from(SPOILED && self.text.contains("completion_tokens"));
        let Tokens { input: read_input, output: read_output, .. } = read.unwrap_or_default();
        let mentioned = || String::from_utf8_lossy(&answer[..answer.len().min(4096)]).into_owned();
        assert!(
            read_input >= input && read_output >= output,
            "undercut: {read:?} of {:?} in {content_type}: {}",
            self.figures,
            mentioned()
        );
        // A zero beside text is not believable.
        if input > 0 && (output > 0 || self.route == Route::Embeddings) {
            assert_eq!((read_input, read_output), (input, output), "in {content_type}: {}", mentioned());
        }
    }
}

/// Returns the word that a byte below 0x20 means, or a text as it is.
fn word(piece: &[u8]) -> String {
    match piece {
        [at @ ..=0x1e] => WORDS[usize::from(*at) % WORDS.len()].to_owned(),
        text => String::from_utf8_lossy(text).into_owned(),
    }
}

/// Returns an object in an object, each under the name of a word; names that are there twice are one.
fn nested(words: &[String]) -> Value {
    let mut value = json!({ "type": "function" });
    for pair in words.chunks(2).take(64) {
        let mut members = Map::new();
        members.insert(pair[0].clone(), value);
        if let Some(text) = pair.get(1) {
            members.insert("delta".to_owned(), json!(text));
            members.insert(text.clone(), json!(1));
        }
        value = Value::Object(members);
    }
    value
}

/// Returns the same beside a text that is longer than a meter keeps.
fn large(words: &[String]) -> Value {
    json!({ "description": " ".repeat(fuzzing::MAX_KEPT + 17), "parameters": nested(words) })
}
