//! Plans one random call: its request, its model, and its cut.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::hostile;
use crate::{
    agent::{Answering, saying},
    models::Models,
    random::Random,
};

/// Largest number of tokens of an answer; no answer reports more.
pub(super) const MAX_OUTPUT: u64 = 32_768;
/// Largest number of prompt tokens that is reported: the proxy reserves more for any request.
const MAX_INPUT: usize = 1000;
/// Prefix of every request, followed by the number of the call.
const MARK: &str = "mark=";

const PATHS: [&str; 5] =
    ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"];

/// Kind of a call; figures are kept by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Kind {
    /// Path of the route.
    pub path: &'static str,
    /// Form of the answer.
    pub mode: Mode,
    /// Kind of the model by LiteLLM's knowledge of it.
    pub models: Models,
}

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A JSON document.
    Whole,
    /// Events.
    Streamed,
}

/// The moment at which a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The client stays until it has the whole answer.
    Never,
    /// The client leaves once it has received this many bytes of the body.
    AfterBytes(usize),
    /// The client leaves this long after its call has begun.
    After(Duration),
}

/// A planned call.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) body: Value,
    pub(super) leaving: Leaving,
}

/// Parts of a model's script, and the moment at which the client leaves.
struct Script {
    content: String,
    fate: String,
    leaving: Leaving,
}

impl Plan {
    /// Returns the call `number`, in which some field or the answer has about `size` bytes.
    pub(super) fn of(random: &mut Random, number: usize, size: usize) -> Self {
        let kind = kind(random);
        let script = script(random, kind, size);
        let figures = match random.below(20) {
            0 => "-nousage".to_owned(),
            1 | 2 => String::new(),
            _ => {
                let most = usize::try_from(MAX_OUTPUT).unwrap();
                format!("-usage{}x{}", 1 + random.below(MAX_INPUT), 1 + random.below(most))
            }
        };
        let name = format!("fake-{}{figures}{}", script.content, script.fate);
        let body = body(random, kind, &Prompt { number, size, script: &name });
        Self { kind, body, leaving: script.leaving }
    }
}

/// Returns the number of the call that a request belongs to.
pub(super) fn number(body: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(body, MARK.as_bytes())?;
    let digits: String = body[at + MARK.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .map(|byte| char::from(*byte))
        .collect();
    digits.parse().ok()
}

fn kind(random: &mut Random) -> Kind {
    loop {
        let (path, models) = (PATHS[random.below(PATHS.len())], Models::ALL[random.below(Models::ALL.len())]);
        let mode =
            if path == "/v1/embeddings" || random.below(3) == 0 { Mode::Whole } else { Mode::Streamed };
        if models.name(path, "fake").is_some() {
            return Kind { path, mode, models };
        }
    }
}

fn script(random: &mut Random, kind: Kind, size: usize) -> Script {
    let content = match random.below(4) {
        // An answer of `/v1/responses` repeats the request, three times in a stream.
        _ if size > 4096 && kind.path != "/v1/responses" => format!("big{size}"),
        0 => "echo".to_owned(),
        1 if kind.path != "/v1/completions" => "steps".to_owned(),
        _ => format!("words{}", random.below(60)),
    };
    let about = 2 * size + 4096;
    let (fate, leaving) = match random.below(20) {
        0 | 1 => (format!("-cutat{}", random.below(about)), Leaving::Never),
        2 => (format!("-cut{}", random.below(5)), Leaving::Never),
        3 => (format!("-errmid{}", 1 + random.below(4)), Leaving::Never),
        4 => ("-gap2ms".to_owned(), Leaving::AfterBytes(random.below(about))),
        5 => (String::new(), Leaving::AfterBytes(random.below(about))),
        6 => {
            let moment = Duration::from_millis(20 + random.below(200) as u64);
            ("-firstbyte250ms".to_owned(), Leaving::After(moment))
        }
        _ => (String::new(), Leaving::Never),
    };
    Script { content, fate, leaving }
}

/// Parts of a request's text.
struct Prompt<'a> {
    number: usize,
    size: usize,
    script: &'a str,
}

fn body(random: &mut Random, kind: Kind, prompt: &Prompt<'_>) -> Value {
    let Kind { path, mode, models } = kind;
    let name = models.name(path, prompt.script).expect("the kind has a model there");
    let answering = if mode == Mode::Whole { Answering::Whole } else { Answering::Streamed };
    let pieces = random.below(6);
    let text = format!(
        "{MARK}{}; {}\ncall: exec {}\nsay: done",
        prompt.number,
        hostile::text(random, pieces),
        hostile::object(random, 2)
    );
    let mut body = saying(path, &name, answering, &models.text(prompt.script, &text));
    match path {
        "/v1/chat/completions" => {
            body["max_tokens"] = json!(MAX_OUTPUT);
            let function = json!({ "name": "exec", "parameters": hostile::schema(random) });
            body["tools"] = json!([{ "type": "function", "function": function }]);
            if random.below(4) == 0 && models != Models::Anthropic {
                let schema = json!({ "name": "usage", "schema": hostile::schema(random) });
                body["response_format"] = json!({ "type": "json_schema", "json_schema": schema });
            }
        }
        "/v1/completions" => body["max_tokens"] = json!(MAX_OUTPUT),
        "/v1/responses" => add_echoed_fields(random, &mut body, prompt.size),
        "/v1/messages" => {
            body["max_tokens"] = json!(MAX_OUTPUT);
            body["system"] = json!(hostile::text(random, 2));
            body["tools"] = json!([{ "name": "exec", "input_schema": hostile::schema(random) }]);
        }
        _ => body["input"] = vectors(body["input"].take(), &mut body, prompt.size),
    }
    body
}

/// Adds fields that an answer of `/v1/responses` repeats in front of its usage.
fn add_echoed_fields(random: &mut Random, body: &mut Value, size: usize) {
    body["max_output_tokens"] = json!(MAX_OUTPUT);
    let mut instructions = hostile::text(random, 3);
    if size > 4096 {
        instructions += &"x".repeat(size);
    }
    body["instructions"] = json!(instructions);
    let parameters = hostile::schema(random);
    body["tools"] = json!([{ "type": "function", "name": "exec", "description": "usage", "strict": false, "parameters": parameters }]);
    if random.below(3) == 0 {
        let schema = hostile::schema(random);
        body["text"] = json!({ "format": { "type": "json_schema", "name": "usage", "strict": false, "schema": schema } });
    }
    if random.below(3) == 0 {
        body["metadata"] = json!({ "usage": "\"usage\":null", "type": "response.completed" });
    }
}

/// Returns inputs with vectors of about `size` bytes together. The last input is `input`, which has the script.
fn vectors(input: Value, body: &mut Value, size: usize) -> Value {
    const DIMENSIONS: usize = 3072;
    const NUMBER: usize = 6;
    let inputs = size / (DIMENSIONS * NUMBER);
    if inputs == 0 {
        return input;
    }
    body["dimensions"] = json!(DIMENSIONS);
    let mut all = vec![json!("x"); inputs - 1];
    all.push(input);
    Value::Array(all)
}
