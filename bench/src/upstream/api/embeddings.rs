//! Shapes the answers of `/v1/embeddings`. Every input has the same vector, of three or of `dimensions` numbers.

use serde::Serialize;
use serde_json::{Value, json};

use super::Written;
use crate::upstream::{answer::Answer, ask::Ask};

const VECTOR: [f32; 3] = [0.5, -0.25, 0.125];
/// The same vector as little-endian floats in base64, which OpenAI's SDKs request by default.
const VECTOR_BASE64: &str = "AAAAPwAAgL4AAAA+";

/// Largest number of dimensions: an answer is built before it is sent.
const MAX_DIMENSIONS: usize = 4096;

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Value>,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

pub(super) fn whole(ask: &Ask, answer: &Answer) -> Written {
    let requested =
        ask.field("dimensions").and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let dimensions = requested.map_or(VECTOR.len(), |count| count.min(MAX_DIMENSIONS));
    let vector = match ask.field("encoding_format").and_then(Value::as_str) {
        Some("base64") => json!(VECTOR_BASE64.repeat(dimensions / VECTOR.len())),
        _ => json!(VECTOR.iter().cycle().take(dimensions).collect::<Vec<_>>()),
    };
    let one = |index| json!({ "object": "embedding", "index": index, "embedding": vector });
    super::json(&List {
        object: "list",
        data: (0..inputs(ask)).map(one).collect(),
        model: &answer.model,
        usage: answer.usage.map(|usage| usage.of_embeddings()),
    })
}

/// Returns the number of inputs. A list holds several inputs, unless it holds one input's token numbers.
fn inputs(ask: &Ask) -> usize {
    match ask.field("input") {
        Some(Value::Array(list)) if !list.iter().all(Value::is_number) => list.len(),
        _ => 1,
    }
}
